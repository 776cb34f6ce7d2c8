#!/usr/bin/env bats
# The checker accuses no correct program: kernels put together at random run silent and right. And
# it sees every race in shared memory: random accesses, compared one by one.
#   COMPOSITIONS=500   how many of the kernels; 40 by default

load helpers
program=build/emulator/tests/correct_pipelines
compositions=${COMPOSITIONS:-40}

# SCHEDULE FIRST COUNT: no line on stderr, exit code 0.
runs_silently() {
  local schedule=$1 first=$2 count=$3 code=0
  EMULATOR_SCHEDULE=$schedule emulator/emulate "$program" --seed "$first" --count "$count" \
    >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || code=$?
  if [ $code -ne 0 ] || [ -s "$BATS_TEST_TMPDIR/err" ]; then
    echo "EMULATOR_SCHEDULE=$schedule $program --seed $first --count $count: exit code $code"
    cat "$BATS_TEST_TMPDIR/err"
    tail -n 6 "$BATS_TEST_TMPDIR/out"
    return 1
  fi
}

@test "correct pipelines run silent when copies land as late as they may" {
  runs_silently late 1 "$compositions"
}

@test "correct pipelines run silent when copies land at once" {
  runs_silently early 1 "$compositions"
}

@test "correct pipelines run silent, each in a different random schedule" {
  for ((seed = 1; seed <= compositions; seed++)); do
    runs_silently "random:$seed" "$seed" 1
  done
}

@test "random accesses: a race is reported where there is one, and nowhere else" {
  for schedule in late early random:7; do
    # Lanes may write different values to one place, a strict finding, which is not counted here.
    echo "$schedule"
    EMULATOR_CHECK=on EMULATOR_SCHEDULE=$schedule run -0 build/emulator/tests/random_accesses --count 1000
    [ "$output" = "1000 programs, 698 of them with races: all seen, nothing else reported" ]
  done
}

@test "more cp.async than are kept in mind: one wait is enough for all" {
  program=build/emulator/tests/many_copies
  for schedule in late early random:1 random:2; do
    echo "$schedule"
    EMULATOR_SCHEDULE=$schedule run -0 --separate-stderr emulator/emulate $program
    [ -z "$stderr" ]
  done
}
