#!/usr/bin/env bats
# Launches that would only repeat an earlier one do not run. Nothing else may differ.

load helpers

setup() {
  begin_test
  export EMULATOR_THREADS=1
}

# Sets $skipped to the number of launches that did not run, and $unchecked to that of launches that were not checked. What the case prints, its exit code and its reports are
# the same as if all launches ran.
skips() { # CASE
  local mode folder=$BATS_TEST_TMPDIR
  for mode in run count; do
    status=0
    EMULATOR_REPEAT=$mode common/emulator/emulate build/tests/emulator/repeat_cases "$1" \
      >"$folder/$mode.out" 2>"$folder/$mode.err" || status=$?
    echo "exit code $status" >>"$folder/$mode.out"
  done
  unchecked=$(sed -n 's/^emulator: \([0-9]*\) kernel launches ran without being checked, .*/\1/p' "$folder/count.err")
  skipped=$(sed -n 's/^emulator: \([0-9]*\) of [0-9]* kernel launches did not run, .*/\1/p' "$folder/count.err")
  echo "$1: $skipped, unchecked $unchecked"
  diff "$folder/run.out" "$folder/count.out"
  # Addresses differ from process to process.
  diff <(sed 's/0x[0-9a-f]*/ADDRESS/g' "$folder/run.err") \
    <(sed '/^emulator: [0-9]* .*kernel launches \(did not run\|ran without being checked\), /d; s/0x[0-9a-f]*/ADDRESS/g' "$folder/count.err")
}

reports() { # RULE
  grep -q "^emulator: $1: " "$BATS_TEST_TMPDIR/count.err"
}

@test "repeated launches: what comes later must wait for a launch that did not run" {
  for name in copied-without-waiting input-overwritten read-by-other-stream; do
    skips "$name"
    [ "$skipped" -eq 4 ]
    reports stream-race
  done
  skips freed-in-other-stream
  [ "$skipped" -eq 4 ]
  reports freed-while-in-use
}

@test "repeated launches: one that does not wait for what came before runs, and is reported" {
  for name in input-copied-without-waiting output-read-without-waiting; do
    skips "$name"
    [ "$skipped" -eq 3 ]
    reports stream-race
  done
}

@test "repeated launches: results that were overwritten are put in place again" {
  skips results-overwritten
  [ "$skipped" -eq 3 ]
  skips results-in-turns
  [ "$skipped" -eq 7 ]
  skips input-changed-back
  [ "$skipped" -eq 2 ]
  skips other-input # the second time its input is still the same
  [ "$skipped" -eq 1 ]
  skips allocated-again
  [ "$skipped" -eq 0 ]
  skips results-freed
  [ "$skipped" -eq 3 ]
  reports use-after-free
}

@test "repeated launches: results that were put in place are checked like those of a launch that ran" {
  skips results-copied-without-waiting
  [ "$skipped" -eq 4 ]
  reports stream-race
  skips overwritten-without-waiting
  [ "$skipped" -eq 3 ]
  reports stream-race
}

@test "repeated launches: threads that access the members of structures one by one" {
  skips members-apart
  [ "$skipped" -eq 3 ]
  reports stream-race
}

@test "repeated launches: memory that the host can touch itself" {
  for name in managed-read-without-waiting pinned-written-without-waiting; do
    skips "$name"
    [ "$skipped" -eq 0 ]
    reports host-race
  done
  skips managed-changed
  [ "$skipped" -eq 0 ]
}

@test "repeated launches: one that does more than write the same again always runs" {
  for name in in-place prints reads-clock allocates races-each-time; do
    skips "$name"
    [ "$skipped" -eq 0 ]
  done
  skips fails-at-last
  [ "$skipped" -eq 3 ]
  reports trap
}

@test "repeated launches: findings about shared memory come again without the launch, and are counted" {
  skips mistakes-in-shared-memory
  [ "$skipped" -eq 3 ] # those of the kernel whose mistake is in global memory run
  reports read-without-wait
  reports global-race
}

@test "repeated launches: memory that is freed, allocated again or overwritten by unwritten bytes" {
  skips unwritten-again
  skips unwritten-copied
  [ "$skipped" -eq 3 ]
  reports unwritten-memory-read
  skips freed
  [ "$skipped" -eq 3 ]
  reports use-after-free
}

@test "repeated launches: addresses come again in a loop, those freed last do not" {
  skips allocated-in-turns
  [ "$skipped" -eq 8 ]
  skips freed-in-a-loop
  [ "$skipped" -eq 4 ]
  reports use-after-free
}

@test "repeated launches: in order by events, and in several streams" {
  skips in-order
  [ "$skipped" -eq 10 ]
  skips in-several-streams
  [ "$skipped" -eq 7 ]
}

@test "repeated launches: random programs have the same results as if all launches ran" {
  for schedule in late early; do
    export EMULATOR_SCHEDULE=$schedule
    EMULATOR_REPEAT=run common/emulator/emulate build/tests/emulator/random_repeats 60 >"$BATS_TEST_TMPDIR/run"
    EMULATOR_REPEAT=count common/emulator/emulate build/tests/emulator/random_repeats 60 >"$BATS_TEST_TMPDIR/skip" \
      2>"$BATS_TEST_TMPDIR/count"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/run")" -eq 60 ]
    diff "$BATS_TEST_TMPDIR/run" "$BATS_TEST_TMPDIR/skip"
    skipped=$(sed -n 's/^emulator: \([0-9]*\) of .*/\1/p' "$BATS_TEST_TMPDIR/count")
    [ "$skipped" -ge 200 ]
  done
}

@test "blocks: of those that only compute and read the clock, one is enough" {
  EMULATOR_REPEAT=skip run timeout 600 common/emulator/emulate build/tests/emulator/repeat_cases blocks-alike
  [ "$output" = "all blocks have ended" ]
  for name in blocks-differ processors-differ; do
    skips "$name"
    grep -q cudaErrorLaunchFailure "$BATS_TEST_TMPDIR/count.out"
    reports trap
  done
}

@test "repeated launches: if only the values in memory differ, the accesses are not checked again" {
  skips same-accesses
  [ "$skipped" -eq 0 ]
  [ "$unchecked" -eq 6 ]
  skips same-accesses-copied-without-waiting
  [ "$unchecked" -eq 7 ]
  reports stream-race
}

@test "repeated launches: accesses to what others use, or to memory that nothing has written, are checked again" {
  skips same-accesses-before-others-wait
  [ "$unchecked" -eq 6 ]
  reports stream-race
  skips same-accesses-to-unwritten-memory
  [ "$unchecked" -eq 6 ]
  reports unwritten-memory-read
}

@test "repeated launches: where memory decides what a kernel does, all its accesses are checked" {
  for name in place waiting branch value shared-value undefined-bits by-carry; do
    skips "memory-decides-$name"
    [ -z "$unchecked" ]
  done
}

@test "repeated launches: all run in a random order, without checks and with EMULATOR_REPEAT=run" {
  for setting in EMULATOR_SCHEDULE=random:1 EMULATOR_CHECK=off EMULATOR_CHECK=shared; do
    EMULATOR_REPEAT=count run env "$setting" common/emulator/emulate build/tests/emulator/repeat_cases in-order
    echo "$setting: $output"
    [ "$status" -eq 0 ]
    [[ "$output" = *"emulator: 0 of 12 kernel launches did not run, "* ]]
  done
  EMULATOR_REPEAT=run run common/emulator/emulate build/tests/emulator/repeat_cases in-order
  [ "$output" = "0 9 18 27" ]
}
