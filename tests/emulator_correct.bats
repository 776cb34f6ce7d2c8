#!/usr/bin/env bats
# The checker accuses no correct program: kernels put together at random run silent and right.
#   EMULATOR_COMPOSITIONS=500   how many of them; 40 unless told

setup() {
  cd "$BATS_TEST_DIRNAME/.." || return 1
  program=build/tests/emulator/correct_pipelines
  compositions=${EMULATOR_COMPOSITIONS:-40}
}

# SCHEDULE FIRST COUNT: no line on stderr, exit code 0.
runs_silently() {
  local schedule=$1 first=$2 count=$3 code=0
  EMULATOR_SCHEDULE=$schedule common/emulator/emulate "$program" --seed "$first" --count "$count" \
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

@test "correct pipelines run silent, each in a random schedule of its own" {
  for ((seed = 1; seed <= compositions; seed++)); do
    runs_silently "random:$seed" "$seed" 1
  done
}

@test "correct pipelines: bad options are refused" {
  run common/emulator/emulate "$program" --seed -1
  echo "$output"
  [ "$status" -eq 2 ]
  run common/emulator/emulate "$program" --count 0
  [ "$status" -eq 2 ]
}
