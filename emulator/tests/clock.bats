#!/usr/bin/env bats
# EMULATOR_CLOCK: the modelled time against what an H200 took, and that it changes nothing else.
# builds: %/copy_speed %/shared_stream

load helpers
export EMULATOR_THREADS=1

clocked() { # -EXIT_CODE ARGUMENTS...
  EMULATOR_CLOCK=h200 run "$1" --separate-stderr emulator/emulate "${@:2}"
}

@test "clock: the ladder's rungs are in the measured order, and the tensor cores as busy" {
  for size in "512 512 4096" "1024 1024 256"; do
    read -r m n k <<<"$size"
    EMULATOR_MATH=skip EMULATOR_CHECK=off clocked -0 build/emulator/tests/clock_ladder --m "$m" --n "$n" --k "$k"
    echo "$stderr" >"$BATS_TEST_TMPDIR/clock.txt"
    run -0 python3 emulator/tests/check_clock.py "$m,$n,$k" "$BATS_TEST_TMPDIR/clock.txt"
    [[ $output == *"7 rungs as measured" ]]
  done
}

# The ratios of a program's ways: copies TILE, or stream CLUSTER.
ratios_agree() { # KIND WHICH PROGRAM ARGUMENTS...
  EMULATOR_CHECK=off clocked -0 "${@:3}"
  echo "$stderr" >"$BATS_TEST_TMPDIR/clock.txt"
  run -0 python3 emulator/tests/check_ratios.py "$1" "$2" "$BATS_TEST_TMPDIR/clock.txt"
  [[ $output == *"all as near as they must be" ]]
}

@test "clock: chapter 03's ways to copy are as fast to each other as measured" {
  ratios_agree copies 64x64 build/emulator/tests/clock_copies --tile 3
}

@test "clock: chapter 05's ways to stream are as fast to each other as measured" {
  ratios_agree stream 2 build/emulator/tests/clock_stream --cluster 2 --tiles 64
}

@test "clock: an integer division by a number known at run time takes what was measured, one by a constant does not" {
  clocked -0 build/emulator/tests/clock_division
  local each
  each=$(sed -n 's/^CLOCK(division, \([0-9]*\).*/\1/p' emulator/clock/h200.def)
  [[ $stderr =~ "kernel divisions: "([0-9]+)" clocks" ]]
  [ "${BASH_REMATCH[1]}" -ge $((64 * each)) ]
  [ "${BASH_REMATCH[1]}" -le $((64 * each + 1000)) ]
  [[ $stderr =~ "kernel by_constants: "([0-9]+)" clocks" ]]
  [ "${BASH_REMATCH[1]}" -le 2000 ]
}

@test "clock: results and reports are those of a run without it" {
  for program in 02_tma_load/tma_load 02_tma_load/pitfalls/arrival_count_too_low 07_pipelined_gemm/pitfalls/stage_released_before_wgmma; do
    [ -x "build/$program" ] || continue
    run --separate-stderr emulator/emulate "build/$program"
    local plain_status=$status plain_output=$output plain_stderr=$stderr
    clocked "-$plain_status" "build/$program"
    [ "$output" = "$plain_output" ]
    [[ $stderr == *"emulator: clock h200, kernel "* ]]
    [ "$(sed '/^emulator: clock \|^  busy: \|^  warps waited \|^  launches: \|^  1 of its launches failed: /d' <<<"$stderr")" = "$plain_stderr" ]
  done
}

@test "clock: a recording is in its order, and hangs together" {
  for program in 02_tma_load/tma_load 02_tma_load/cp_async_ring 05_multicast/multicast 07_pipelined_gemm/serial; do
    clocked -0 --record "$BATS_TEST_TMPDIR/recording.jsonl" "build/$program"
    run -0 python3 emulator/tests/check_recording.py "$BATS_TEST_TMPDIR/recording.jsonl"
    [[ $output == *"all consistent" ]]
    run head -n 1 "$BATS_TEST_TMPDIR/recording.jsonl"
    [[ $output == *'"clock": "h200"'* ]]
  done
}

@test "clock: a trace is in its clocks, and says so" {
  clocked -0 --trace "$BATS_TEST_TMPDIR/trace.json" build/02_tma_load/tma_load
  run -0 python3 emulator/tests/check_trace.py "$BATS_TEST_TMPDIR/trace.json"
  grep -q '"otherData": {"time": "a microsecond stands for one clock of a modelled H200"}}' "$BATS_TEST_TMPDIR/trace.json"
  run -0 emulator/emulate --trace "$BATS_TEST_TMPDIR/trace.json" build/02_tma_load/tma_load
  grep -q '"a microsecond stands for one warp instruction of the cluster"}}' "$BATS_TEST_TMPDIR/trace.json"
}

@test "clock: a kernel that fails says that its time ends there" {
  clocked ! build/02_tma_load/pitfalls/too_many_bytes
  [[ $stderr == *"1 of its launches failed: what is counted of them ends there"* ]]
  clocked -0 build/02_tma_load/first_load
  [[ $stderr != *"launches failed"* ]]
  [[ $stderr != *"of their time:"$'\n'* ]]
}

@test "clock: invalid settings say what is allowed" {
  EMULATOR_CLOCK=h100 run -2 --separate-stderr emulator/emulate build/02_tma_load/tma_load
  [[ $stderr == *"EMULATOR_CLOCK is 'h100', but must be h200 (the only chip that was measured), recorded ("*") or off"* ]]
  EMULATOR_MATH=skip run -2 --separate-stderr emulator/emulate build/02_tma_load/tma_load
  [[ $stderr == *"EMULATOR_MATH is 'skip', but must be exact without EMULATOR_CLOCK"* ]]
  run emulator/emulate --help
  [[ $output == *"EMULATOR_CLOCK=h200"* ]]
}

@test "clock: the parameters are those that the script derives from what was measured" {
  local copied=$BATS_TEST_TMPDIR/emulator
  mkdir -p "$copied"
  mkdir -p "$BATS_TEST_TMPDIR/common/book"
  cp common/book/*.py "$BATS_TEST_TMPDIR/common/book/"
  cp -r emulator/clock "$copied/"
  : >"$copied/clock/h200.def"
  run -0 python3 "$copied/clock/parameters.py"
  run -0 diff emulator/clock/h200.def "$copied/clock/h200.def"
}
