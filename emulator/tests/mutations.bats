#!/usr/bin/env bats
# emulator/tests/long/mutations.py: changes of one statement of a correct program are named.
# builds: lessons %/fixed/joined tests/take/examples/joined

load helpers
mutations=emulator/tests/long/mutations.py

# KIND CHANGE OUTCOME: of the mutants of the kernel that is only there for this.
mutant_is() {
  grep -q "^build/emulator/tests/mutated"$'\t'"$1"$'\t'"[^ ]*"$'\t'"$2"$'\t'"0"$'\t'"[0-9]*"$'\t'"$3" <<<"$output" ||
    { echo "$output"; return 1; }
}

@test "mutants with known answers: what breaks the kernel is named, what does not is not, and what never runs is neither" {
  run -0 $mutations build/emulator/tests/mutated
  mutant_is "barrier deleted" deleted "named"$'\t'"shared-race"
  mutant_is "store deleted" deleted "named"$'\t'"uninitialised-read"
  mutant_is "fence deleted" deleted "not executed"
  mutant_is "neighbours swapped" "with bar.sync" "missed"$'\t'"passes" # right: the fence orders nothing here
  [[ ${lines[-1]} =~ ^all$'\t'[0-9]+$'\t'[1-9] ]]                      # the deleted store of the result: wrong values
}

@test "a reader gets the change and the report" {
  $mutations --reports --kind "barrier deleted" build/emulator/tests/mutated >"$BATS_TEST_TMPDIR/read"
  grep -A 1 -xF -- "- bar.sync 0;" "$BATS_TEST_TMPDIR/read" | grep -qxF -- "+ (nothing)"
  grep -q "^emulator: shared-race: error in kernel" "$BATS_TEST_TMPDIR/read"
}

@test "every mutant is the same for a seed; parts and counts divide them" {
  local program=build/emulator/tests/mutated
  $mutations $program | sort >"$BATS_TEST_TMPDIR/all"
  for part in 1/3 2/3 3/3; do $mutations --part $part $program | grep ^build; done | sort >"$BATS_TEST_TMPDIR/parts"
  diff <(grep ^build "$BATS_TEST_TMPDIR/all") "$BATS_TEST_TMPDIR/parts"
  [ "$($mutations --count 4 --jobs 3 $program | grep -c ^build)" -eq 4 ]
}

@test "recorded mutants are still named, by the rule that was recorded" {
  [ "$(grep -cE '^build/(tests/joined/)?0[1-7]_[a-z]' emulator/tests/mutants/named.csv)" -gt 200 ]
  run -0 $mutations --replay emulator/tests/mutants/named.csv
  [[ ${lines[-1]} =~ ^([0-9]+)\ of\ ([0-9]+)\ mutants\ are\ named ]]
  [ "${BASH_REMATCH[1]}" -gt 200 ]
}

@test "a recorded mutant that is no longer named, or gone, is said" {
  grep -m 1 "/02_tma_load/.*,barrier deleted," emulator/tests/mutants/named.csv | sed 's/[a-z-]*\( [a-z -]*\)*$/no-such-rule/' \
    >"$BATS_TEST_TMPDIR/wrong.csv"
  run -1 $mutations --replay "$BATS_TEST_TMPDIR/wrong.csv"
  [[ $output == *": no-such-rule is recorded, but it is named "* ]]
  sed 's/,barrier deleted,/,barrier added,/' "$BATS_TEST_TMPDIR/wrong.csv" >"$BATS_TEST_TMPDIR/gone.csv"
  run -1 $mutations --replay "$BATS_TEST_TMPDIR/gone.csv"
  [[ $output == *"gone: record again"* ]]
}

# The first report of a named mutant, on one line.
says_first() { # PROGRAM KIND SOURCE_LINE TEXT
  $mutations --reports --kind "$2" "build/$1" | grep -A 14 -P "\t$3\tnamed" | tr -s ' \n' ' ' >"$BATS_TEST_TMPDIR/first"
  grep -qF "$4" "$BATS_TEST_TMPDIR/first" || { cat "$BATS_TEST_TMPDIR/first"; return 1; }
}

@test "the first advice names a wait or an arrival with .relaxed, or what the change has broken" {
  local fixed=tests/joined/07_pipelined_gemm/fixed
  says_first $fixed/no_wait_for_a_free_stage "acquire relaxed" 40 "but by a wait with .relaxed"
  says_first 07_pipelined_gemm/tile_counter "release relaxed" 78 "has arrived at a barrier since, at tile_counter.cu:78, but with .relaxed"
  says_first tests/joined/03_tma_store/fixed/load_over_generic_writes "barrier deleted" 37 "If this write is meant to come before the copy"
}
