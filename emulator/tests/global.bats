#!/usr/bin/env bats
# Races in global memory: what the checker reports, and that it is silent about correct kernels.

load helpers

# Prints "KERNEL RULE" for each finding in $BATS_TEST_TMPDIR/err.
findings_by_kernel() {
  sed -n 's/^emulator: \([a-z-]*\): \(error\|strict\).* in kernel \([a-zA-Z0-9_]*\).*/\3 \1/p' \
    "$BATS_TEST_TMPDIR/err" | sort -u
}

@test "global memory: every kernel with a race is reported by its rule, and no other one" {
  # One host thread: in which order blocks meet must not depend on the machine.
  for schedule in late random:3; do
    EMULATOR_THREADS=1 EMULATOR_SCHEDULE=$schedule emulator/emulate build/emulator/tests/global_races \
      >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || [ $? -eq 3 ]
    [ "$(wc -l <"$BATS_TEST_TMPDIR/out")" -gt 50 ]
    diff <(awk '$2 != "-"' "$BATS_TEST_TMPDIR/out" | sort) <(findings_by_kernel)
  done
}

@test "proxy fences: one for another space counts like none, in every order" {
  for schedule in late early random:1 random:2; do
    EMULATOR_CHECK=strict EMULATOR_THREADS=1 EMULATOR_SCHEDULE=$schedule emulator/emulate \
      build/emulator/tests/fence_cases >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || [ $? -eq 3 ]
    [ "$(wc -l <"$BATS_TEST_TMPDIR/out")" -eq 34 ]
    diff <(awk '$2 != "-"' "$BATS_TEST_TMPDIR/out" | sort) <(findings_by_kernel)
  done
}

@test "proxy fences: the report names the fence that is there, and the one that is missing" {
  report() { emulator/emulate build/emulator/tests/fence_cases "$1" 2>&1 >/dev/null | tr -s ' \n' ' '; }
  text=$(report store_fence_of_global)
  [[ $text == *"there is only fence.proxy.async.global, which does not include shared memory, between"* ]]
  text=$(report peer_fence_of_cta)
  [[ $text == *"there is only fence.proxy.async.shared::cta, which does not include the memory of another block,"* ]]
  [[ $text == *"Put fence.proxy.async.shared::cluster after the writes"* ]]
  text=$(report load_fence_of_cta)
  [[ $text == *"there is only a fence.proxy.async for shared memory between that and this"* ]]
}

@test "global memory: in every order a fence that is too narrow counts like none, and a barrier hands a flag on" {
  local name rule schedule
  while read -r name rule; do
    for schedule in late early random:1 random:2; do
      EMULATOR_CHECK=strict EMULATOR_SCHEDULE=$schedule emulator/emulate build/emulator/tests/global_races \
        "$name" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || [ $? -eq 3 ]
      diff <(grep -v ' -$' <<<"$name $rule") <(findings_by_kernel)
    done
  done <<'EOF'
fence_of_all_threads_after_barrier -
fence_of_system_after_barrier -
weaker_fence_of_all_threads_after_barrier flag-without-fence
block_fence_of_all_threads_after_barrier scope-too-narrow
no_fence_after_barrier flag-without-fence
one_fence_after_barrier flag-without-fence
lock_with_block_fence_of_first scope-too-narrow
lock_with_block_fence_of_second scope-too-narrow
lock_with_both_fences -
flag_with_block_fence_in_reader scope-too-narrow
EOF
}

@test "global memory: a race names the thread whose element it is, although others follow" {
  run -3 emulator/emulate build/emulator/tests/global_races one_of_every_second
  [[ "$output" == *"global-race: error in kernel one_of_every_second"*", thread 3"$'\n'* ]]
}

@test "global memory: in a random order other blocks run between two accesses of one" {
  reported=0
  for seed in 1 2 3 4 5; do
    EMULATOR_SCHEDULE=random:$seed run emulator/emulate build/emulator/tests/global_races waits_for_one_fewer
    [ "$status" -ne 3 ] || reported=$((reported + 1))
  done
  [ "$reported" -ge 2 ]
}

@test "global memory: EMULATOR_CHECK=shared reports nothing about it" {
  EMULATOR_CHECK=shared run -0 emulator/emulate build/emulator/tests/global_races
  [[ "$output" != *emulator:* ]]
}

@test "global memory: random programs are reported if and only if they have a race" {
  for schedule in late random:7; do
    EMULATOR_SCHEDULE=$schedule run -0 build/emulator/tests/random_global --count 200
    [[ "$output" == *"200 programs, "*"with races: all seen, nothing else reported"* ]]
  done
}

@test "global memory: random_global refuses bad options" {
  run -2 build/emulator/tests/random_global --seed 0
}

@test "global memory: cp.async uses its source until it has been waited for" {
  local name rule seen schedule
  for schedule in late early random:3; do
    EMULATOR_SCHEDULE=$schedule emulator/emulate build/emulator/tests/copy_windows >"$BATS_TEST_TMPDIR/all" 2>&1 || true
    [ "$(grep -c ' -$\| global-race$' "$BATS_TEST_TMPDIR/all")" -eq 16 ]
  done
  while read -r name rule; do
    seen=$(emulator/emulate build/emulator/tests/copy_windows "$name" 2>&1 >/dev/null |
      sed -n 's/^emulator: \([a-z-]*\): .* in kernel .*/\1/p' | sort -u | tr '\n' ' ')
    echo "$name: $rule, seen: $seen"
    [ "${seen:-- }" = "$rule " ]
  done < <(grep ' -$\| global-race$' "$BATS_TEST_TMPDIR/all")
}

# What whole_warps prints, findings and results, on one host thread, with the given variables.
whole_warps() { # SEED DISTANCE [VARIABLE=VALUE...]
  local seed=$1 distance=$2
  shift 2
  env EMULATOR_THREADS=1 "$@" emulator/emulate build/emulator/tests/whole_warps "$seed" "$distance" 2>&1 || [ $? -eq 3 ]
}

@test "global memory: accesses of whole warps are checked in short as in full" {
  # A recorded cluster takes no short cut.
  local seed distance
  for seed in 1 2 3 4 5 6; do
    for distance in 0 320 600; do
      whole_warps "$seed" "$distance" >"$BATS_TEST_TMPDIR/short"
      whole_warps "$seed" "$distance" EMULATOR_RECORD="$BATS_TEST_TMPDIR/recording" EMULATOR_RECORD_BLOCKS=all \
        >"$BATS_TEST_TMPDIR/full"
      grep -q 'emulator: [a-z-]*: error' "$BATS_TEST_TMPDIR/short"
      diff <(grep -v '^See it: ' "$BATS_TEST_TMPDIR/short") <(grep -v recording "$BATS_TEST_TMPDIR/full")
    done
  done
}

@test "global memory: accesses of whole warps have the same results unchecked, early and on two host threads" {
  # Warps that use 600 words each do not meet.
  local seed variable
  for seed in 1 2 3; do
    for variable in EMULATOR_CHECK=on EMULATOR_CHECK=off EMULATOR_CHECK=shared EMULATOR_SCHEDULE=early EMULATOR_SCHEDULE=random:3 EMULATOR_THREADS=2; do
      whole_warps "$seed" 600 "$variable" | grep -x '[0-9a-f]\{16\}'
    done >"$BATS_TEST_TMPDIR/results"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/results")" -eq 6 ]
    [ "$(sort -u "$BATS_TEST_TMPDIR/results" | wc -l)" -eq 1 ]
  done
}
