#!/usr/bin/env bats
# The order among the lanes of a warp.

load helpers

setup() {
  begin_test
  export LD_LIBRARY_PATH="build/emulator"
}

# reports CASE RULE: that is all that is reported
reports() {
  run build/emulator/tests/lane_cases "$1"
  echo "$1: $output"
  [[ "$output" = "emulator: $2"[:\ ]* ]]
  [ "$(grep -c "^emulator: [a-z-]*: [a-z]* .*in kernel" <<<"$output")" -eq 1 ]
}

@test "lanes: a missing __syncwarp() is an error" {
  reports missing lane-race
  reports read_long_before lane-race
  reports read_modify_write lane-race
  reports global_missing lane-race
  reports global_other_branch lane-race
  reports rows_overwritten lane-race
  reports global_rows_overwritten lane-race
  reports global_members_too_long lane-race
}

@test "lanes: a shuffle orders no memory: an error" {
  reports shuffle "lanes-met-without-order: error"
  reports global_shuffle "lanes-met-without-order: error"
  run -3 build/emulator/tests/lane_order after-a-shuffle 5
  [[ "$output" = "emulator: lanes-met-without-order: error in kernel exchange,"* ]]
  run -0 build/emulator/tests/lane_order after-syncwarp 5
  [ "$output" = "0 of 80 reads old" ]
}

@test "lanes: other lanes use an mbarrier only after its init" {
  reports barrier_init "mbarrier-init-other-lanes: strict"
  reports barrier_init_arrivals "mbarrier-init-other-lanes: strict"
  reports barrier_init_shuffle "mbarrier-init-other-lanes: strict"
  [[ "$(tr -s '\n ' '  ' <<<"$output")" = *"was initialised by thread 0 of the same warp"* ]]
}

@test "lanes: lock step orders no memory: strict" {
  reports volatile_exchange warp-synchronous
  reports one_place lanes-write-one-place
  reports global_one_place lanes-write-one-place
}

@test "lanes: what is in order is not reported" {
  for name in read_long_before_synced same_value atomics tiles flag volatile_alone reduction flag_of_block \
    global_own rows global_rows global_members_by_some barrier_init_synced barrier_init_block_barrier \
    barrier_own; do
    echo "$name"
    run -0 build/emulator/tests/lane_cases "$name"
    [ -z "$output" ]
  done
}

@test "random lanes: a race is reported where there is one, and nowhere else" {
  for schedule in late random:7; do
    echo "$schedule"
    EMULATOR_SCHEDULE=$schedule run -0 build/emulator/tests/random_lanes --count 300
    [[ "$output" = "300 programs, "*" of them with races: all seen, nothing else reported" ]]
  done
}

@test "lanes: one lane arrives for its warp, and the others' reads are not ordered before that" {
  for case in missing half; do
    run -3 emulator/emulate build/emulator/tests/lane_copies "$case"
    [[ "$output" == *"lane-race: error in kernel stream"*"starts a copy into"*"has not arrived at a barrier since"* ]]
  done
  for case in synced all-arrive met; do
    run -0 emulator/emulate build/emulator/tests/lane_copies "$case"
    [ -z "$output" ]
  done
}

@test "lanes: a proxy fence that one lane leaves out, and those that some lanes may leave out" {
  fences=build/emulator/tests/lane_fences
  [ "$(emulator/emulate $fences | wc -l)" -eq 15 ]
  for schedule in late early random:3; do
    for case in left_out left_out_elsewhere one_lane writes_later left_out_load; do
      echo "$schedule $case"
      EMULATOR_SCHEDULE=$schedule run -3 emulator/emulate $fences $case
      text=${output//$'\n  '/ }
      [[ $text == *"missing-proxy-fence: error in kernel copy_tile, block (0,0,0), thread 0 "* ]]
      [[ $text == *"Other lanes of its warp have executed fence.proxy.async since, but neither this one nor one that it had met"* ]]
    done
    for case in $(emulator/emulate $fences | grep '^fine_'); do
      echo "$schedule $case"
      EMULATOR_SCHEDULE=$schedule run -0 emulator/emulate $fences "$case"
      [ "$output" = "$case: sum 2016" ]
    done
  done
  for case in left_out left_out_elsewhere writes_later; do
    run emulator/emulate $fences $case
    if [ $case = left_out_elsewhere ]; then thread=39; else thread=7; fi
    [[ ${output//$'\n  '/ } == *"written by thread $thread at lane_fences.cu:"* ]]
  done
}

@test "lanes: EMULATOR_CHECK=shared does not look" {
  for name in missing shuffle volatile_exchange one_place; do
    echo "$name"
    EMULATOR_CHECK=shared run -0 build/emulator/tests/lane_cases "$name"
    [ -z "$(grep '^emulator:' <<<"$output")" ]
  done
}

@test "lanes: a value that comes from what was read, by shuffles, cannot be stored before the read" {
  run -0 build/emulator/tests/lane_cases sum_of_all
  [ -z "$output" ]
  reports sum_of_half lanes-met-without-order
  reports sum_of_other lanes-met-without-order
}

@test "lanes: volatile accesses side by side are checked as lane by lane" {
  local seed way schedule
  for schedule in late random:5; do
    for seed in 1 2 3 4 5 6 7 8 9; do
      for way in run swapped; do
        EMULATOR_SCHEDULE=$schedule emulator/emulate build/emulator/tests/volatile_runs "$seed" "$way" 2>&1 |
          sed -n 's/^emulator: \([a-z-]*\): \(error\|strict\) .*/\1/p' | sort | uniq -c >"$BATS_TEST_TMPDIR/$way"
      done
      diff "$BATS_TEST_TMPDIR/run" "$BATS_TEST_TMPDIR/swapped"
      grep -q shared-race "$BATS_TEST_TMPDIR/run"
    done
  done
}

# What a report of a case must name first; "none": no mistake in what is recorded, or none that can be proved.
rule_of_divided() { # CASE OUTCOME
  case $1:$2 in
    bar_sync_both_arms:*) rule=hang-warp-divided ;;
    registers_*:hangs) rule=hang-registers-missing ;;
    *_spin:hangs) rule=hang-nobody-writes ;;
    *:hangs) rule=hang-warp-divided ;;
    barrier_sync_aligned_if:* | barrier_sync_aligned_guarded:*) rule=aligned-divergence ;;
    barrier_sync_* | barrier_red_* | cluster_unaligned_* | registers_*) rule=none ;;
    *_next:* | *_loop_end:*) rule=none ;;
    ldmatrix_return:* | stmatrix_return:* | movmatrix_return:* | mma_return:*) rule=aligned-divergence ;;
    *_return:*) rule=none ;;
    *) rule=aligned-divergence ;;
  esac
}

# is_as_recorded CASE OUTCOME: on an H100 this case hangs or ends
is_as_recorded() {
  local rule outcome=$2
  run --separate-stderr timeout 60 build/emulator/tests/divided_warps "$1"
  rule_of_divided "$1" "$2"
  if [[ $rule == hang-* ]]; then outcome=hangs; fi
  echo "$1: recorded $2, expected $rule: $output"
  echo "$stderr"
  [[ $output = "$1: $outcome"* ]]
  [[ $stderr == *"$1: with all lanes: cudaSuccess"* ]]
  if [ "$rule" = none ]; then
    [[ $stderr != *"aligned-divergence"* ]]
  else
    [[ $stderr == *"emulator: $rule: "*"kernel $1,"* ]]
  fi
}

@test "part of a warp leaves out an .aligned instruction: hangs where an H100 does, and is named" {
  while read -r case outcome _; do
    is_as_recorded "${case%:}" "${outcome%,}"
  done < <(tail -n +2 emulator/tests/recorded/divided_warps.txt)
}

@test "the same in other orders" {
  for order in early random:1 random:2; do
    while read -r case outcome _; do
      EMULATOR_SCHEDULE=$order is_as_recorded "${case%:}" "${outcome%,}"
    done < <(grep -E '^(bar_sync|mma|cluster_aligned|registers)_' emulator/tests/recorded/divided_warps.txt)
  done
}

@test "a divided warp: the report has both lines" {
  run build/emulator/tests/divided_warps bar_sync_else
  [[ $output == *"threads 48-63 wait at divided_warps.cu:"*"as every .aligned instruction does; elsewhere are"*"threads 32-47 at divided_warps.cu:"* ]]
  run build/emulator/tests/divided_warps bar_sync_if
  [[ $output == *"16 threads of this warp, thread 48 first, went around this instruction: they parted at"*"divided_warps.cu:"*"exited at divided_warps.cu:"* ]]
}
