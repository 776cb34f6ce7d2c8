#!/usr/bin/env bats
# The clock at full size: the ladder at 8192 x 8192 x 8192 (ten minutes of processor time), and all of
# chapter 03's and 05's ratios. make check-all has small ones.

load ../helpers

setup() {
  begin_test
  clock=$BATS_TEST_TMPDIR/clock.txt
  export EMULATOR_CLOCK=h200 EMULATOR_CHECK=off
}

@test "clock: all rungs at 8192 x 8192 x 8192 are in the measured order, and the tensor cores as busy" {
  for rung in 0 1 2 3 4 5 6; do
    EMULATOR_MATH=skip run -0 --separate-stderr emulator/emulate build/emulator/tests/clock_ladder \
      --rung "$rung" --m 8192 --n 8192 --k 8192
    echo "$stderr" >>"$clock"
  done
  run -0 python3 emulator/tests/check_clock.py 8192,8192,8192 "$clock"
  [[ $output == *"7 rungs as measured" ]]
}

@test "clock: every tile of chapter 03" {
  tiles=(16x16 32x32 8x256 64x64 128x64 32x256)
  for number in "${!tiles[@]}"; do
    run -0 --separate-stderr emulator/emulate build/emulator/tests/clock_copies --tile "$number"
    echo "$stderr" >"$clock"
    run -0 python3 emulator/tests/check_ratios.py copies "${tiles[$number]}" "$clock"
  done
}

@test "clock: every size of cluster of chapter 05" {
  for cluster in 2 4 8; do
    run -0 --separate-stderr emulator/emulate build/emulator/tests/clock_stream --cluster "$cluster" --tiles 512
    echo "$stderr" >"$clock"
    run -0 python3 emulator/tests/check_ratios.py stream "$cluster" "$clock"
  done
}

@test "counters: as ncu counts them on an H200, for every lesson" {
  unset EMULATOR_CLOCK
  run -0 python3 emulator/record/counters.py
}
