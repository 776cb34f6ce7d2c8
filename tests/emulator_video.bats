#!/usr/bin/env bats
# Video instructions on the emulator against what one NVIDIA H200 answered in November 2026: 634 forms
# (recorded/video_cases.bin), each at 4,096 operands. To record anew: video_cases record
# tests/emulator/recorded/video_cases.bin on an H200.

bats_require_minimum_version 1.5.0

load helpers

setup() {
  begin_test
  built=build/tests/emulator
  recorded=tests/emulator/recorded
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
