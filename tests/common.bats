#!/usr/bin/env bats
# common/check.h, tile.h and element.h: what they print, and the exit codes.
# builds: tests/joined/03_tma_store/pitfalls/joined

load helpers
program=build/tests/common/verdicts

verdict() { run "-$2" common/make/run-program $program --case "$1"; } # CASE EXIT_CODE

@test "a check that holds: PASS, exit 0" {
  verdict 0 0
  [[ ${lines[0]} == "device: "* ]]
  [ "${lines[-1]}" = "PASS verdicts: case 0" ]
}

@test "two swapped integers: both places, expected and got, exit 1" {
  verdict 1 1
  [[ $output == *"tile: row 1, column 1: expected 104, got 107"* ]]
  [[ $output == *"tile: row 2, column 1: expected 107, got 104"* ]]
  [[ $output == *"tile: 2 of 12 elements are wrong"* ]]
  [ "${lines[-1]}" = "FAIL verdicts: case 1" ]
}

@test "of many mismatches the first five are shown and all are counted" {
  verdict 2 1
  [ "$(grep -c 'got 200' <<<"$output")" -eq 5 ]
  [[ $output == *"12 of 12 elements are wrong"* ]]
}

@test "a NaN fails whatever the tolerance" {
  verdict 3 1
  [[ $output == *"row 0, column 1: expected 2, got nan"* ]]
}

@test "an expected NaN and an expected infinity pass" {
  verdict 4 0
}

@test "just over the tolerance fails, just within it passes" {
  verdict 5 1
  [[ $output == *"1 of 2 elements are wrong"* ]]
}

@test "a false fact fails with its message" {
  verdict 6 1
  [[ $output == *"wrong: 2 + 2 is 4, expected 5"* ]]
}

@test "a failing call names file, line, call, error, sentence and likely cause" {
  verdict 7 1
  [[ $output == *"verdicts.cu:"*"cudaMemset((void *)16, 0, 1)"* ]]
  [[ $output == *"cudaErrorInvalidValue (1): invalid argument"* ]]
  [[ $output == *"likely: "* ]]
  [[ $output == *"FAIL verdicts: cudaErrorInvalidValue"* ]]
}

@test "a driver's error points at the chapter that explains it" {
  verdict 8 1
  [[ $output == *"multiple of 16 bytes (chapter 02)"* ]]
}

@test "SKIP exits 77, FAIL exits 1" {
  verdict 9 77
  [ "${lines[-1]}" = "SKIP verdicts: the moon is full" ]
  verdict 10 1
  [ "${lines[-1]}" = "FAIL verdicts: no luck" ]
}

@test "half and bfloat16 conversions round to nearest even" {
  verdict 11 0
}

@test "a tile is printed with both rulers, marks and a cut" {
  verdict 12 0
  diff <(sed -n '3,$p' <<<"$output") - <<'END'
a tile at the edge
                -1     0     1     2
               [0]   [1]   [2]   [3]
    14   [0]  -10*    -9    -8    -7
    15   [1]   -2*    -1     0     1
    16   [2]    6*    7*    8*    9*
              * outside the tensor: filled by the copy engine
two states of it
                -1     0     1     2          -1     0     1     2
               [0]   [1]   [2]   [3]         [0]   [1]   [2]   [3]
    14   [0]  -10*    -9    -8    -7         -2*    -1     0     1
    15   [1]   -2*    -1     0     1          6*     7     8     9
    16   [2]    6*    7*    8*    9*         14*   15*   16*   17*
              * outside the tensor: filled by the copy engine
a corner
                0    1    2  ...
              [0]  [1]  [2]  ...
     0   [0]  -10   -9   -8  ...
     1   [1]   -2   -1    0  ...
              ... 6 rows in all
PASS verdicts: case 12
END
}

@test "unknown and bad arguments: usage, exit 2" {
  run -2 common/make/run-program $program --colour
  [[ $output == *"unknown argument '--colour'"*"usage: verdicts [--case N]"* ]]
  run -2 common/make/run-program $program --case
  for value in two 010 01 00 99 -1 0x1 1e0 1.0 ' 1' '1 ' '' 4294967297 18446744073709551617; do
    run -2 common/make/run-program $program --case "$value"
    [[ $output == *"--case is '$value', but must be a whole number from 0 to 12"* ]]
    [[ $output == *"(0 to 12; default 0)"* ]]
    run -2 common/make/run-program $program --case="$value"
    [[ $output == *"--case is '$value', but must be a whole number from 0 to 12"* ]]
  done
  # Not what was given before the mistake.
  run -2 common/make/run-program $program --case 7 --colour
  [[ $output == *"(0 to 12; default 0)"* ]]
  run -2 common/make/run-program $program --full=1
  [[ $output == *"unknown argument '--full=1'"* ]]
  run -2 common/make/run-program $program --cases=1
  [[ $output == *"unknown argument '--cases=1'"* ]]
}

@test "an option that is given twice is refused, in one word or two" {
  for arguments in "--case 1 --case 1" "--case 1 --case=2" "--case=1 --case=2" "--full --full"; do
    run -2 common/make/run-program $program $arguments
    [[ $output == *"${arguments%%[ =]*} is given twice: leave one out"* ]]
  done
}

@test "an option and its value in one word or two; --help counts, whatever is wrong before it" {
  run -0 common/make/run-program $program --case two --help
  for arguments in '--case 12' --case=12; do
    run common/make/run-program $program $arguments
    [[ $output == *"verdicts: case 12" ]]
  done
}

@test "output that cannot be written is no success, whatever the verdict" {
  local case
  for case in 0 9 12; do
    run -1 bash -c "common/make/run-program $program --case $case 2>&1 >/dev/full"
    [[ $output == *"verdicts: its output could not be written"* ]]
    run -1 bash -c "common/make/run-program $program --case $case 2>&1 >&-"
  done
}

@test "a report on standard error comes between the lines of a table, not into one" {
  # A pitfall prints its table with the report behind it; both into one file. One host thread: which
  # block is reported first would else differ from run to run.
  export EMULATOR_THREADS=1
  emulator/emulate build/tests/joined/03_tma_store/pitfalls/exit_before_read >"$BATS_TEST_TMPDIR/both" 2>&1 || true
  emulator/emulate build/tests/joined/03_tma_store/pitfalls/exit_before_read >"$BATS_TEST_TMPDIR/out" \
    2>"$BATS_TEST_TMPDIR/err" || true
  cat "$BATS_TEST_TMPDIR/both"
  diff <(sort "$BATS_TEST_TMPDIR/both") <(sort "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/err")
  head -n 1 "$BATS_TEST_TMPDIR/both" | grep -q '^device: '
}

@test "--bench says at once what it does and how long it takes" {
  common/make/run-program build/06_swizzle_3d/boxes --bench 2>"$BATS_TEST_TMPDIR/err" >/dev/null &
  bench=$!
  for _ in {1..6000}; do
    [ ! -s "$BATS_TEST_TMPDIR/err" ] || break
    sleep 0.1
  done
  kill $bench 2>/dev/null || true
  cat "$BATS_TEST_TMPDIR/err"
  grep -q '^boxes: measuring on .*seconds on a GPU and minutes on an emulated one' "$BATS_TEST_TMPDIR/err"
}

@test "a default outside of an option's bounds is not shown: it means that the option was not given" {
  run common/make/run-program build/07_pipelined_gemm/pipelined_gemm --help
  [[ $output == *"--m          rows of A and C (1 to 32768; default 512)"* ]]
  [[ $output == *"--blocks     most blocks of a persistent kernel (2 to 1024)"* ]]
}
