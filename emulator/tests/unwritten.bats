#!/usr/bin/env bats
# Reads of global memory that nothing has written: reported when the value matters, and only then.

load helpers
program=build/emulator/tests/unwritten_cases

@test "unwritten memory: each use of it is reported, and each right program runs silent" {
  while read -r name kind; do
    run emulator/emulate "$program" "$name"
    echo "$name $kind: $status $output"
    if [ "$kind" = bad ]; then
      [ "$status" -eq 3 ]
      [ "$(grep -c '^emulator: unwritten-memory-read: error' <<<"$output")" -eq 1 ]
    else
      [ "$status" -eq 0 ]
      [ -z "$output" ]
    fi
  done < <(emulator/emulate "$program" --list)
}

@test "unwritten memory: the message names the byte, the use and the fix" {
  run -3 emulator/emulate "$program" one_short
  [[ "$output" == *"in kernel doubles, block (0,0,0), thread 255"* ]]
  [[ "$output" == *"reads global memory at byte 1020 of an allocation of 1024 bytes, which nothing"* ]]
  [[ "$output" == *"the value matters: at unwritten_cases.cu:"*" it goes to global memory"* ]]
  [[ "$output" == *"cudaMemcpy, cudaMemset"* ]]
}

@test "unwritten registers, parameters and tensor maps: reported where they matter, and only there" {
  program=build/emulator/tests/unwritten_operands
  local names
  names=$(LD_LIBRARY_PATH=build/emulator "$program" --list)
  [ "$(wc -l <<<"$names")" -gt 25 ]
  while read -r name _; do
    run emulator/emulate "$program" "$name"
    echo "$name: $status $output"
    case $name in
      good_*)
        [ "$status" -eq 0 ]
        [ -z "$output" ]
        ;;
      bad_*)
        [ "$(grep -c '^emulator: un[a-z]*-[a-z-]*read: error' <<<"$output")" -eq 1 ]
        ;;
      fault_*)
        [[ "$output" == *"parameter-out-of-bounds: "* ]]
        ;;
      refused_*) # what an H200 answers: 1 and 701
        [ "$output" = "1 701" ]
        ;;
    esac
  done <<<"$names"
}

@test "unwritten registers and tensor maps: the messages name the use and the fix" {
  program=build/emulator/tests/unwritten_operands
  run emulator/emulate "$program" bad_mbarrier_count
  [[ "$output" == *"in kernel bad_mbarrier_count, block (0,0,0), thread 0"* ]]
  [[ "$output" == *"reads a register that thread 0 has never written, and the value matters: here it decides what"* ]]
  run emulator/emulate "$program" bad_map_half_in_global
  [[ "$output" == *"uses a tensor map in global memory at byte 0 of an allocation of 128 bytes, of which nothing has"* ]]
  [[ "$output" == *"written 64 of 128 bytes: the first is byte 64."* ]]
  [[ "$output" == *"cuTensorMapEncode"* ]]
  run emulator/emulate "$program" bad_gap
  [[ "$output" == *"reads byte 4 of the kernel's parameters, which belongs to none of them"* ]]
}

@test "unwritten memory: EMULATOR_CHECK=shared does not look" {
  EMULATOR_CHECK=shared run -0 emulator/emulate "$program" nothing_copied
  [ -z "$output" ]
}
