#!/usr/bin/env bats
# Findings that a trial decides: the launch runs again with other values, and what changes nothing is
# not reported.

load helpers
program=build/emulator/tests/trial_cases
unset EMULATOR_CHECK EMULATOR_SCHEDULE

emulate() { emulator/emulate "$@"; }

# Each case must be reported by the rule that the program lists for it, or by none.
cases_are_as_listed() { # PROGRAM SCHEDULE...
  local names name rule schedule program=$1
  shift
  names=$(LD_LIBRARY_PATH=build/emulator "$program" --list)
  [ "$(grep -c ' none$' <<<"$names")" -gt 5 ]
  while read -r name rule; do
    for schedule; do
      EMULATOR_SCHEDULE=$schedule run --separate-stderr emulate "$program" "$name"
      echo "$name, $schedule: $status $stderr"
      if [ "$rule" = none ]; then
        [ "$status" -eq 0 ]
        [ -z "$stderr" ]
      else
        [[ $stderr == *"emulator: $rule: "* ]]
      fi
    done
  done <<<"$names"
}

@test "values without a meaning: silent if nothing depends on them, and reported if something does" {
  cases_are_as_listed "$program" late early random:1
}

@test "values without a meaning in temporary memory: reported if somebody looks at them" {
  cases_are_as_listed build/emulator/tests/pending_cases late random:1
}

@test "random sequences of kernels and copies: reported if the host copies a value without a meaning" {
  local seed reported=0
  for seed in {1..40} {160..175}; do
    run --separate-stderr emulate build/emulator/tests/random_pending "$seed"
    echo "seed $seed: $output $stderr"
    if [ "$output" = reported ]; then
      [[ $stderr == *"emulator: uninitialised-read: "* ]]
      reported=$((reported + 1))
    else
      [ "$status" -eq 0 ]
      [ "$output" = silent ]
      [ -z "$stderr" ]
    fi
  done
  [ "$reported" -gt 8 ]
}

@test "a trial leaves the program's results, and its threads do not matter" {
  local names name without
  names=$(LD_LIBRARY_PATH=build/emulator "$program" --list | cut -d' ' -f1)
  for name in $names; do
    without=$(EMULATOR_CHECK=off emulate "$program" "$name")
    [ -n "$without" ]
    EMULATOR_THREADS=1 run --separate-stderr emulate "$program" "$name"
    [ "$output" = "$without" ]
    EMULATOR_THREADS=4 run --separate-stderr emulate "$program" "$name"
    [ "$output" = "$without" ]
  done
}

@test "what was held back is said in strict, as a strict finding: it did not change this run's results" {
  for name in next_matrix_not_used votes_masked; do
    EMULATOR_CHECK=strict run -3 --separate-stderr emulate "$program" "$name"
    [[ $stderr == "emulator: held-back: strict finding in kernel $name,"* ]]
    [[ $(tr -s '\n ' '  ' <<<"$stderr") == *"This would be reported as"*"did not change the results of this run"* ]]
    run -0 --separate-stderr emulate "$program" "$name"
    [ -z "$stderr" ]
  done
}

@test "without a trial the finding is reported: exploration, a recording, no check of global memory" {
  run -0 emulate "$program" votes_masked
  EMULATOR_CHECK=shared run -3 emulate "$program" votes_masked
  EMULATOR_RECORD=$BATS_TEST_TMPDIR/record.jsonl run -3 emulate "$program" votes_masked
}
