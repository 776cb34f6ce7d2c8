#!/usr/bin/env bats
# emulate --explore: every order of a launch that could make a difference.
#   PROGRAMS=5000   how many random programs are compared with brute force; 60 by default

load helpers

setup() {
  begin_test
  emulate=$PWD/emulator/emulate
  schedule=$BATS_TEST_TMPDIR/failing.schedule
  # A slow machine, or a sanitizer, must not end it early.
  explore=("$emulate" --explore --seconds 3600 --schedule "$schedule")
}

# PROGRAM PATTERN: without the checker, exploration finds the failure, and a replay shows it again.
finds() {
  EMULATOR_CHECK=off run "${explore[@]}" "$1"
  [[ $output =~ $2 ]] || return 1
  [[ $output == *"EMULATOR_SCHEDULE=replay:$schedule"* ]] || return 1
  [ "$(head -n 1 "$schedule")" = "emulator schedule 1" ]
}

@test "explore: the results of random programs are those of all interleavings" {
  run -0 build/emulator/tests/explore_random --count "${PROGRAMS:-60}"
  [[ $output == *" results found, no other, in "* ]]
}

@test "explore: without reduction there are the same results" {
  run -0 build/emulator/tests/explore_random --count 10 --all-orders
  [[ $output == *" results found, no other, in "* ]]
}

@test "explore: a correct program has one result in all orders" {
  run -0 --separate-stderr "${explore[@]}" build/02_tma_load/two_ways_to_wait
  [[ $stderr =~ "all "[0-9]+" orders of 5 launches: no hang, no finding, one result each" ]]
  [ ! -e "$schedule" ]
}

# Lane 0 waits for its stores and comes to __syncthreads() later than the other lanes of its warp.
@test "explore: lanes that come to a barrier at different times do not race" {
  run -0 --separate-stderr "${explore[@]}" build/03_tma_store/reuse
  [[ $stderr == *"no hang, no finding, one result"* ]]
}

@test "explore: the program's own output is printed once" {
  run --separate-stderr "${explore[@]}" build/02_tma_load/tma_load
  explored=$output
  run --separate-stderr "$emulate" build/02_tma_load/tma_load
  [ "$explored" = "$output" ]
}

@test "explore: a missing __syncthreads is a second result" {
  finds build/01_tiledcopy_baseline/pitfalls/missing_syncthreads "has another result than the first"
}

@test "explore: a stage that is refilled too early is a second result" {
  finds build/02_tma_load/pitfalls/stage_reused "has another result than the first order"
  [[ $output == *"PASS stage_reused"* ]] # in the default order it is right
}

@test "explore: a barrier that is used before its initialisation is a fault in some order" {
  finds build/02_tma_load/pitfalls/init_not_synced "order 2 ends with a fault"
}

@test "explore: a parity that is not flipped is a second result" {
  finds build/02_tma_load/pitfalls/parity_not_flipped "has another result than the first order"
}

@test "explore: a hang is reported with what each thread waits for" {
  finds build/02_tma_load/pitfalls/too_many_bytes "order 1 hangs"
  [[ $output == *"hang-too-many-bytes-expected"* ]]
}

@test "explore: a finding is reported with its order" {
  run -3 "${explore[@]}" build/02_tma_load/pitfalls/stage_reused
  [[ $output == *"order 1 has a finding"* ]]
}

@test "explore: a replay shows the failure of the schedule" {
  EMULATOR_CHECK=off run -3 "${explore[@]}" build/02_tma_load/pitfalls/init_not_synced
  EMULATOR_CHECK=off run -0 "$emulate" build/02_tma_load/pitfalls/init_not_synced
  EMULATOR_CHECK=off EMULATOR_SCHEDULE=replay:$schedule run -1 "$emulate" build/02_tma_load/pitfalls/init_not_synced
  [[ $output == *"mbarrier-unusable"* ]]
}

@test "explore: a replay can be recorded" {
  EMULATOR_CHECK=off run ! "${explore[@]}" build/02_tma_load/pitfalls/stage_reused
  [ -s "$schedule" ]
  EMULATOR_CHECK=off EMULATOR_SCHEDULE=replay:$schedule run -1 "$emulate" \
    --record "$BATS_TEST_TMPDIR/recording" build/02_tma_load/pitfalls/stage_reused
  [[ $output == *"FAIL stage_reused"* ]]
  [[ $(head -n 1 "$BATS_TEST_TMPDIR/recording") == *'"schedule": "replay"'* ]]
}

@test "explore: --limit stops and says so" {
  EMULATOR_CHECK=off run "${explore[@]}" --limit 3 build/02_tma_load/pitfalls/every_thread_issues
  [[ $output == *"stopped after 3 orders (the limit of orders): no hang, no finding, one result"* ]]
  [[ $output == *"3 orders of 1 launch, 1 stopped before the end"* ]]
}

@test "explore: --all counts every outcome" {
  EMULATOR_CHECK=off run "${explore[@]}" --all --limit 20 build/02_tma_load/pitfalls/stage_reused
  [[ $output =~ "stopped after 20 orders (the limit of orders): no hang, no finding, "[0-9]+" results" ]]
}

# What the loop changes are two predicates: a move between them reads one, and a skipped jump reads the other.
@test "explore: a loop that counts in predicates is not taken for one that waits" {
  ptx <<'EOF'
.global .u32 flag = 7;
.entry rounds(.param .u64 out) {
  .reg .b32 %r<9>; .reg .pred %p<6>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r2, %ctaid.x;
  setp.ne.u32 %p3, %r2, 0;
  @%p3 bra OTHER;
  setp.ne.u32 %p1, 0, 0;
  setp.ne.u32 %p2, 0, 0;
LOOP:
  ld.relaxed.gpu.global.u32 %r1, [flag];
  @%p1 bra DONE;
  mov.pred %p1, %p2;
  setp.eq.u32 %p2, 0, 0;
  bra LOOP;
DONE:
  st.global.u32 [%rd1], %r1;
  ret;
OTHER:
  st.relaxed.gpu.global.u32 [flag], 9;
  ret;
}
EOF
  EMULATOR_EXPLORE=orders:100 run build/emulator/tests/run_ptx "$module" rounds 2 1 buffer:u32:1
  [[ $output == *" are 0x00000007 in the first order and 0x00000009 in this one"* ]]
}

@test "explore: bad options are named" {
  emulate_refuses "--limit is '0', but must be a whole number from 1 on" --explore --limit 0 build/02_tma_load/pitfalls/stage_reused
  emulate_refuses "--limit is for --explore: add --explore, or leave it out" --limit 5 build/02_tma_load/pitfalls/stage_reused
  emulate_refuses "--schedule is 'a,b', but must be the name of a file, without commas" --explore --schedule a,b build/02_tma_load/pitfalls/stage_reused
  EMULATOR_SCHEDULE=early emulate_refuses "EMULATOR_SCHEDULE is 'early', but --explore runs all orders: unset it" --explore build/02_tma_load/pitfalls/stage_reused
  EMULATOR_EXPLORE=orders:x run -2 "$emulate" build/02_tma_load/pitfalls/stage_reused
  [[ $output == *"emulator: EMULATOR_EXPLORE is 'orders:x', but must be orders:N, "* ]]
}

# TEXT MESSAGE: replaying a file with this text ends with exit code 2 and a message.
replay_is_refused() {
  printf '%s' "$1" >"$schedule"
  EMULATOR_SCHEDULE=replay:$schedule run "$emulate" build/02_tma_load/pitfalls/stage_reused
  [ "$status" -eq 2 ] || return 1
  [[ $output == *"emulator: EMULATOR_SCHEDULE is 'replay:$schedule', but $2"* ]]
}

@test "explore: damaged and foreign schedules are refused" {
  launch=$'emulator schedule 1\nlaunch 1 grid 2 1 1 block 128 1 1 kernel _Z4load14CUtensorMap_stPi\n'
  replay_is_refused "" "line 1 of the file is not 'emulator schedule 1'"
  replay_is_refused $'emulator schedule 1\nlaunch x\n' "line 2 of the file does not name the launch"
  replay_is_refused "$launch" "line 2 of the file is the last, and it is not 'end'"
  replay_is_refused "${launch}lanes 0 0 0"$'\n' "line 3 of the file is not a step of a schedule"
  replay_is_refused "${launch}lanes 0 99 0 1"$'\nend\n' "line 3 of the file names a step that cannot"
  replay_is_refused "${launch/grid 2/grid 3}"$'end\n' "line 2 of the file names another launch"
  EMULATOR_SCHEDULE=replay:$BATS_TEST_TMPDIR/none run -2 "$emulate" build/02_tma_load/pitfalls/stage_reused
  [[ $output == *"this file cannot be read"* ]]
}

@test "explore: the limit of time stops within an order, and the program goes on" {
  run -0 --separate-stderr "$emulate" --explore --seconds 1 build/02_tma_load/coordinates
  [[ "$stderr" == *"stopped before an order had ended (the limit of time)"* ]]
  [[ "$stderr" == *"explore: 0 orders of 1 launch, 1 stopped before the end"* ]]
  [[ "$output" == *"PASS"* ]]
}
