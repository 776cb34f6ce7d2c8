#!/usr/bin/env bats
# Reads of global memory that nothing has written: reported when the value matters, and only then.

bats_require_minimum_version 1.5.0

load helpers

setup() {
  begin_test
  program=build/tests/emulator/unwritten_cases
}

@test "unwritten memory: each use of it is reported, and each right program runs silent" {
  while read -r name kind; do
    run common/emulator/emulate "$program" "$name"
    echo "$name $kind: $status $output"
    if [ "$kind" = bad ]; then
      [ "$status" -eq 3 ]
      [ "$(grep -c '^emulator: unwritten-memory-read: error' <<<"$output")" -eq 1 ]
    else
      [ "$status" -eq 0 ]
      [ -z "$output" ]
    fi
  done < <(common/emulator/emulate "$program")
}

@test "unwritten memory: the message names the byte, the use and the fix" {
  run common/emulator/emulate "$program" one_short
  [ "$status" -eq 3 ]
  [[ "$output" == *"in kernel doubles, block (0,0,0), thread 255"* ]]
  [[ "$output" == *"reads global memory at byte 1020 of an allocation of 1024 bytes, which nothing"* ]]
  [[ "$output" == *"the value matters: at unwritten_cases.cu:"*" it goes to global memory"* ]]
  [[ "$output" == *"cudaMemcpy, cudaMemset"* ]]
}

@test "unwritten memory: EMULATOR_CHECK=shared does not look" {
  EMULATOR_CHECK=shared run common/emulator/emulate "$program" nothing_copied
  [ "$status" -eq 0 ]
  [ -z "$output" ]
}
