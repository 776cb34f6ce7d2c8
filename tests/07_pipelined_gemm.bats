#!/usr/bin/env bats
# Chapter 07: every rung gives the H200's bits (the recorded output holds checksums of C), bad
# arguments are refused with a sentence, and the trace is a trace.

load helpers

setup() {
  begin_test
  chapter=07_pipelined_gemm
}

refused() {
  run common/run-program build/07_pipelined_gemm/pipelined_gemm "$@"
  echo "$output"
  [ "$status" -eq 2 ]
}

@test "serial gives the recorded bits" { prints_what_was_recorded serial; }
@test "ring gives the recorded bits" { prints_what_was_recorded ring; }
@test "producer_consumer gives the recorded bits" { prints_what_was_recorded producer_consumer; }
@test "two_consumers gives the recorded bits" { prints_what_was_recorded two_consumers; }
@test "multicast gives the recorded bits" { prints_what_was_recorded multicast; }
@test "persistent gives the recorded bits" { prints_what_was_recorded persistent; }
@test "overlapped_epilogue gives the recorded bits" { prints_what_was_recorded overlapped_epilogue; }
@test "small_shapes gives the recorded bits" { prints_what_was_recorded small_shapes; }
@test "pipelined_gemm gives the recorded bits" { prints_what_was_recorded pipelined_gemm; }
@test "first_wgmma prints what was recorded" { prints_what_was_recorded first_wgmma; }
@test "majors prints what was recorded" { prints_what_was_recorded majors; }
@test "fragment_layout prints what was recorded" { prints_what_was_recorded fragment_layout; }

@test "all rungs that sum unsplit in one order have the same bits" {
  local bits
  bits=$(cat tests/recorded/$chapter/{serial,ring,producer_consumer,two_consumers,multicast}.txt \
    tests/recorded/$chapter/{persistent,overlapped_epilogue}.txt | grep normal | sort -u | wc -l)
  [ "$bits" -eq 1 ]
}

@test "swizzle_mismatch prints what was recorded, and the emulator names the mistake" {
  run common/run-program build/$chapter/swizzle_mismatch
  if [[ $output == *"Emulated"* ]]; then
    [ "$status" -eq 3 ]
    [[ $output == *"swizzle-mismatch"* ]]
    run common/run-chapters "$PWD/build/$chapter/swizzle_mismatch"
    [ "$status" -eq 0 ]
    [[ $output == *"(exit code 3: this program makes its mistake on purpose)"* ]]
  else
    [ "$status" -eq 0 ]
  fi
  common/run-program build/$chapter/swizzle_mismatch 2>/dev/null |
    tail -n +2 | diff - tests/recorded/$chapter/swizzle_mismatch.txt
}

@test "a product of any size, and random ones" {
  run common/run-program build/$chapter/pipelined_gemm --m 130 --n 77 --k 200 --check 130
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"PASS pipelined_gemm: 130 rows of 130 x 77 x 200"* ]]
  run common/run-program build/$chapter/pipelined_gemm --m 29 --n 417 --k 72 --check 29
  echo "$output"
  [ "$status" -eq 0 ]
  run common/run-program build/$chapter/pipelined_gemm --runs 2 --seed 2998
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "a product of any size by the fastest of several configurations" {
  run common/run-program build/$chapter/pipelined_gemm --m 130 --n 77 --k 200 --check 130 --measure 8
  echo "$output"
  [ "$status" -eq 0 ]
  run common/run-program build/$chapter/pipelined_gemm --m 70 --n 130 --k 75 --check 70 --measure 1000
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "plans by measuring are right, leave C alone, keep the fastest, and free everything when a call fails" {
  run common/run-program build/tests/$chapter/measured
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"the stream is capturing a graph"* ]]
  [[ $output == *"the activation (GEMM_IDENTITY to GEMM_SILU) is -1, but must be 0 to 3"* ]]
  [[ $output == *"the type of C (GEMM_BF16, GEMM_FP16, GEMM_FP32) is 3, but must be 0 to 2"* ]]
}

@test "clusters that share a tile divide its sums, whether they wait for each other or not" {
  run common/run-program build/tests/$chapter/shared_sums
  echo "$output"
  [ "$status" -eq 0 ]
  EMULATOR_SCHEDULE=random:3 run common/run-program build/tests/$chapter/shared_sums
  echo "$output"
  [ "$status" -eq 0 ]
  run common/run-program build/tests/$chapter/impatient
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "large tiles, of which a warpgroup has several blocks of rows, compute what small ones do" {
  run common/run-program build/tests/$chapter/large_tiles
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"192x224, halves: 8 of 8 right"* ]]
  EMULATOR_SCHEDULE=random:3 run common/run-program build/tests/$chapter/large_tiles
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "products with few rows are computed without TMA, in any order of the copies" {
  local schedule
  for schedule in late random:3; do
    EMULATOR_SCHEDULE=$schedule run common/run-program build/tests/$chapter/few_rows
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"bf16: 20 of 20 right"* ]]
    [[ $output == *"fp16: 20 of 20 right"* ]]
  done
}

@test "rows of C that begin anywhere are stored whole, and nothing beside them" {
  run common/run-program build/tests/$chapter/unaligned_rows
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"64x256: 8 of 8 right"* ]]
}

@test "rows that TMA cannot reach are read in place, and what lies between them changes nothing" {
  run common/run-program build/tests/$chapter/in_place
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"B, 64x128: 8 of 8 right"* ]]
}

@test "an even and an odd k that TMA cannot load are loaded without it, or read in place" {
  run common/run-program build/$chapter/pipelined_gemm --m 130 --n 77 --k 258 --check 130
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"configuration direct_64x64/3"* ]]
  run common/run-program build/$chapter/pipelined_gemm --m 70 --n 130 --k 59 --check 70
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"configuration direct_64x64/3"* ]]
  run common/run-program build/$chapter/pipelined_gemm --m 70 --n 130 --k 75 --check 70
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"configuration in_place_64x128_swapped"* ]]
}

@test "what does not fit into memory is refused with the numbers" {
  refused --m 1048576 --n 1048576 --k 1048576
  [[ $output == *"6291456 MiB of device memory"* ]]
  [[ $output == *"choose a smaller m, n or k"* ]]
}

@test "zero, too large, no number, no file, unknown: exit 2" {
  refused --m 0
  refused --n 99999999999
  refused --k many
  refused --trace
  refused --trace=
  refused --trace "$BATS_TEST_TMPDIR/a" --trace="$BATS_TEST_TMPDIR/b"
  [[ $output == *"--trace is given twice"* ]]
  refused --runs 1 --m 5
  [[ $output == *"--runs chooses shapes and configurations: leave out --m"* ]]
  refused --trace "$BATS_TEST_TMPDIR/a" --runs 2
  refused --trace "$BATS_TEST_TMPDIR/a" --measure 2
  [ ! -e "$BATS_TEST_TMPDIR/a" ]
  refused --no-such-option
  [[ $output == *"usage: pipelined_gemm"* ]]
}

@test "the trace is JSON with every stage and both consumers, and becomes a picture" {
  local trace=$BATS_TEST_TMPDIR/trace.json
  run common/run-program build/$chapter/pipelined_gemm --trace "$trace" --m 256 --n 512 --k 512
  echo "$output"
  [ "$status" -eq 0 ]
  python3 - "$trace" <<'PYTHON'
import json, sys
events = [e for e in json.load(open(sys.argv[1]))["traceEvents"] if e["ph"] == "X"]
assert {e["tid"] for e in events} == set(range(8)), sorted({e["tid"] for e in events})
assert all(e["dur"] >= 0 for e in events)
PYTHON
  python3 07_pipelined_gemm/timeline.py "$trace" "$BATS_TEST_TMPDIR/timeline.svg"
  grep -q '<svg' "$BATS_TEST_TMPDIR/timeline.svg"
}

@test "a trace that cannot be written is said" {
  run common/run-program build/$chapter/pipelined_gemm --trace /no/such/folder/trace --m 256 --n 256
  echo "$output"
  [ "$status" -eq 1 ]
  [[ $output == *"cannot write /no/such/folder/trace"* ]]
}

@test "each pitfall is reported by its rule, and with its fix it is silent" { try_pitfalls; }
