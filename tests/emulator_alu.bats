#!/usr/bin/env bats
# Arithmetic, loads, stores and atomics on the emulator against what one NVIDIA H200 answered in
# November 2026: 1,356 forms of instructions (recorded/alu_cases.bin) and 634 of video instructions
# (recorded/video_cases.bin), each at 4,096 operands. To record anew: alu_cases record
# tests/emulator/recorded/alu_cases.bin on an H200; the same with video_cases.

load helpers

setup() {
  begin_test
  built=build/tests/emulator
  recorded=tests/emulator/recorded
}

bats_require_minimum_version 1.5.0

@test "every arithmetic and memory instruction answers as the H200 did" {
  run --separate-stderr common/emulator/emulate "$built/alu_cases" check \
    "$recorded/alu_cases.bin"
  echo "$output"
  echo "$stderr"
  [ "$status" -eq 0 ]
  [ "${lines[-1]}" = "PASS alu_cases: 1356 instructions, 0 differ" ]
  [ -z "$stderr" ]
}

@test "every video instruction answers as the H200 did" {
  run --separate-stderr common/emulator/emulate "$built/video_cases" check \
    "$recorded/video_cases.bin"
  echo "$output"
  echo "$stderr"
  [ "$status" -eq 0 ]
  [ "${lines[-1]}" = "PASS alu_cases: 634 instructions, 0 differ" ]
  [ -z "$stderr" ]
}

@test "a recording of other cases is refused" {
  head -c 1000 "$recorded/alu_cases.bin" >"$BATS_TEST_TMPDIR/short.bin"
  run common/emulator/emulate "$built/alu_cases" check "$BATS_TEST_TMPDIR/short.bin"
  [ "$status" -eq 1 ]
  [[ $output == *"the recording is not of these cases"* ]]
}

@test "alu_generate names a line without an instruction" {
  printf 'i ii\n' >"$BATS_TEST_TMPDIR/bad.txt"
  run "$built/alu_generate" "$BATS_TEST_TMPDIR/bad.txt"
  [ "$status" -eq 2 ]
  [[ $output == *"no instruction in"* ]]
}
