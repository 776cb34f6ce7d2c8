#!/usr/bin/env bats
# Mistakes in a ring of stages between a producer and consumers: the rule that names one leads to it,
# and not to what follows from it, in every order.

bats_require_minimum_version 1.5.0

load helpers

setup() {
  begin_test
}

report_first() { report_of pipeline_mistakes "$@"; }
report_asked_waits() { report_of asked_waits "$@"; }

# PROGRAM SCHEDULE CASE: sets first, the rule of the first report, and text, the reports in one line.
report_of() {
  EMULATOR_SCHEDULE=$2 run --separate-stderr timeout 600 common/emulator/emulate \
    build/tests/emulator/$1 "$3"
  echo "$2: $output"
  echo "$stderr"
  first=${stderr#emulator: }
  first=${first%%:*}
  text=$(tr -s ' \n' ' ' <<<"$stderr")
}

@test "correct rings are silent" {
  for case in fine_warps fine_threads fine_cluster fine_armed_by_producer fine_freed_in_advance; do
    for schedule in late early random:1 random:2; do
      report_first $schedule $case
      [[ $output == "$case: cudaSuccess, sum "* ]]
      [ -z "$stderr" ]
    done
  done
}

@test "an arrival count that is too low" {
  for schedule in late early random:2; do
    for case in count_too_low count_of_warps_for_threads armed_count_too_low; do
      report_first $schedule $case
      [ "$first" = too-many-arrivals ]
    done
  done
  report_first late count_of_one_block
  [ "$first" = hang-arrival-count-too-low ]
  [[ $text == *"mbarrier.init's count is too low"* ]]
  report_first random:2 count_of_one_block
  [ "$first" = stage-reused-too-early ]
  [[ $text == *"count may be too low"* ]]
}

@test "lanes of a cluster that arrive by one instruction in two phases: the count is too low" {
  for schedule in late early random:2; do
    report_first $schedule count_of_warps_in_a_cluster
    [ "$first" = too-many-arrivals ]
    [[ $text == *"after lower lanes of this warp have arrived by the same instruction in phase 0"* ]]
    [[ $text == *"asks for 4 arrivals a phase"* ]]
  done
}

@test "a thread that announces bytes in a phase that has all its arrivals: who, and why" {
  report_first late freed_and_asks_other
  [ "$first" = too-many-arrivals ]
  [[ $text == *"phase 0 has all its arrivals and still waits for 1024 bytes, but this thread, which announced them,"* ]]
  [[ $text == *"for the wrong parity, or at a barrier whose mbarrier.init counts too few arrivals"* ]]
  for schedule in late random:2; do
    report_first $schedule two_announce
    [ "$first" = too-many-arrivals ]
    [[ $text == *"thread 0 has announced bytes in phase 0 already, and this thread announces bytes as well"* ]]
    [[ $text == *"asks for 1 arrival a phase"* ]]
  done
}

@test "a producer that skips a stage, and copies that leave out a rank" {
  for schedule in late early random:2; do
    report_first $schedule short_ring
    [ "$first" = hang-arrivals-missing ]
    [[ $text == *"no thread has ever arrived here, but phases of the barrier before this one, which the same line waits for, are over"* ]]
    report_first $schedule one_rank_filled
    [ "$first" = hang-bytes-at-another-rank ]
    [[ $text == *"copies leave out this rank: the barrier at the same offset of rank 0 has had all bytes of this phase. Name rank 1"* ]]
    [[ $text == *"If a mask leaves rank 1 out on purpose, another thread must arrive in its place"* ]]
    # Copies have filled it before, so this one may leave it out on purpose.
    report_first $schedule one_rank_filled_later
    [ "$first" = hang-arrivals-missing ]
    [[ $text == *"If a mask leaves rank 1 out on purpose, another thread must arrive in its place"* ]]
  done
}

@test "a barrier of more threads than can come is named, and not the arrivals that are missing because of it" {
  for schedule in late early random:2; do
    report_first $schedule wide_barrier
    [ "$first" = hang-threads-missing ]
    [[ $text == *"barrier 1: 64 of 128 threads have arrived"* ]]
    # The barriers of the full stages are no part of the ring of the empty ones.
    [[ $text != *"which the same line waits for"* ]]
  done
}

@test "an arrival count that is too high" {
  for schedule in late early random:2; do
    for case in count_too_high count_of_threads_for_warps armed_count_too_high; do
      report_first $schedule $case
      [ "$first" = hang-arrivals-missing ]
    done
  done
}

@test "arrivals at the wrong rank" {
  for schedule in late early random:2; do
    for case in arrives_at_own_rank arrives_at_rank_1 arrives_at_the_other_rank; do
      report_first $schedule $case
      [ "$first" = hang-arrivals-at-another-rank ]
      [[ $text == *"offset of rank 1 has had"* ]]
    done
  done
}

@test "stages that overlap are named once, with their places" {
  for schedule in late early random:2; do
    for case in stages_overlap stages_overlap_by_a_row stages_overlap_in_a_cluster \
      armed_stages_overlap; do
      report_first $schedule $case
      [ "$first" = tiles-overlap ]
      [[ $stderr == *"emulator: 1 finding (1 error)"* ]]
    done
  done
  report_first late stages_overlap_by_a_row
  [[ $text == *"has 1024 bytes, and the next one begins 1008 bytes behind it"* ]]
}

@test "a thread that has not tested the barrier is not told that the phase is complete" {
  for seed in 1 2 3 4 5 6 8 9; do
    report_first random:$seed one_lane_waits
    [ "$first" = read-without-wait ]
    # not of the lane that waits
    [[ $stderr != "emulator: "*", thread "@(32|64)$'\n'* ]]
  done
  EMULATOR_SCHEDULE=random:12 EMULATOR_THREADS=1 run --separate-stderr common/emulator/emulate \
    build/02_tma_load/pitfalls/one_thread_waits
  [[ $stderr == "emulator: read-without-wait: error in kernel load, block (0,0,0), thread 1"$'\n'* ]]
}

@test "a wait with a time limit that nobody repeats gives up in some random orders" {
  named=0
  for seed in 1 2 3 4 5 6; do
    report_asked_waits random:$seed once_within_time
    if [ "$first" = wait-not-repeated ]; then named=$((named + 1)); fi
  done
  [ "$named" -ge 1 ]
  [ "$named" -le 5 ]
  for case in fine_once_within_time fine_three_times_within_time fine_until_it_comes_within_time; do
    for schedule in late early random:1 random:2 random:3; do
      report_asked_waits $schedule $case
      [ -z "$stderr" ]
    done
  done
}

@test "a loop of three attempts that goes on without the tile is named in some random orders" {
  for case in three_times three_times_within_time; do
    named=0
    for seed in {1..30}; do
      report_asked_waits random:$seed $case
      if [ "$first" = wait-not-repeated ]; then named=$((named + 1)); fi
    done
    [ "$named" -ge 1 ]
    [ "$named" -le 20 ]
    for schedule in late early; do
      report_asked_waits $schedule $case
      [ -z "$stderr" ]
    done
  done
  for case in fine_three_times fine_until_it_comes; do
    for schedule in late early random:1 random:2 random:3; do
      report_asked_waits $schedule $case
      [ -z "$stderr" ]
    done
  done
}

@test "a warp that comes too late, because the others do not wait for it, is told so and not that arrivals are missing" {
  for schedule in late early random:1 random:2; do
    report_first $schedule one_warp_frees
    [ "$first" = phase-missed ]
    [[ $text == *"warp 2, threads 64-95 wait"*"2 phases passed that it has not waited for"* ]]
  done
}

@test "hangs of a ring: a missing arrival, a loop that is too long, bytes without an arrival or a copy" {
  for schedule in late early random:2; do
    report_first $schedule freed_but_once
    [ "$first" = hang-arrivals-missing ]
    [[ $text == *"1 of 2 arrivals pending"* ]]
    for case in consumers_go_on producer_goes_on; do
      report_first $schedule $case
      [ "$first" = hang-arrivals-missing ]
      [[ $text == *"3 phases are over, and the threads that arrived in them have left their loop"* ]]
    done
    report_first $schedule full_without_arrival
    [ "$first" = hang-arrivals-missing ]
    [[ $text == *"the bytes of this phase have come, but no thread has arrived: mbarrier.expect_tx only"* ]]
    report_first $schedule expected_without_copy
    [ "$first" = hang-too-many-bytes-expected ]
  done
}

@test "a wrong parity, bytes that nobody expects, a wait that is left out" {
  for schedule in late early random:1 random:2; do
    report_first $schedule consumer_asks_other
    [ "$first" = waited-for-wrong-phase ]
    report_first $schedule producer_asks_other
    [ "$first" = stage-reused-too-early ]
    report_first $schedule nothing_expected
    [ "$first" = too-few-bytes-expected ]
    report_first $schedule wait_skipped
    [[ $first == read-without-wait || $first == too-many-arrivals ]]
  done
}

@test "a hang that follows from something else may be explained by another order" {
  report_first late count_too_high
  [[ $text == *"set EMULATOR_SCHEDULE=random:1"* ]]
  report_first random:1 count_too_high
  [[ $text != *"set EMULATOR_SCHEDULE"* ]]
  # A finding before the hang, and a rule that says what is wrong, need no other order.
  report_first late count_too_low
  [[ $text != *"set EMULATOR_SCHEDULE"* ]]
  report_first late arrives_at_rank_1
  [[ $text != *"set EMULATOR_SCHEDULE"* ]]
  # Without copies there is nothing that could land in another order.
  run --separate-stderr common/emulator/emulate build/tests/emulator/endless_polls library_barrier
  [[ $stderr == *hang-arrivals-missing* ]]
  [[ $stderr != *"EMULATOR_SCHEDULE"* ]]
}

@test "words stored in the memory of a peer, and an arrival of scope .cta at its barrier: reported" {
  run --separate-stderr timeout 600 common/emulator/emulate build/tests/emulator/peer_order 1
  echo "$stderr"
  [ "$status" -eq 3 ]
  [ "$(grep -c ': 0 old' <<<"$output")" -eq 4 ]
  [[ $stderr == "emulator: scope-too-narrow: error in kernel publish"* ]]
  [[ $stderr == *"emulator: 1 finding (1 error)"* ]]
}

# CASE SAYS [SCHEDULES]: the report of store_async's CASE, in these orders.
store_async_says() {
  for schedule in ${3:-late early random:2}; do
    EMULATOR_SCHEDULE=$schedule run --separate-stderr timeout 600 common/emulator/emulate \
      build/tests/emulator/store_async "$1"
    echo "$1, $schedule: $output $stderr"
    text=$(tr -s ' \n' ' ' <<<"$stderr")
    if [ -z "$2" ]; then [ -z "$stderr" ]; else [[ $text == "emulator: "*"$2"* ]]; fi
  done
}

@test "st.async and red.async: each report has their name and their fix" {
  for case in fine fine_reduced fine_dropped; do store_async_says $case ""; done
  store_async_says not_waited "while this st.async was still in flight" late
  store_async_says twice "the st.async issued by thread "
}

@test "st.async of a value that nothing has written: reported where its reader uses it" {
  line=$(grep -n "here it matters" tests/emulator/store_async.cu | cut -d: -f1)
  store_async_says nothing_written "the value matters: at store_async.cu:$line it goes to global"
}

# SCHEDULE CASE: sets output and text, the reports in one line.
barrier_again_says() {
  EMULATOR_CHECK=strict EMULATOR_SCHEDULE=$1 run --separate-stderr timeout 600 \
    common/emulator/emulate build/tests/emulator/barrier_again "$2"
  echo "$1: $output"
  echo "$stderr"
  text=$(tr -s ' \n' ' ' <<<"$stderr")
}

@test "a barrier that is initialised again: what was waited for before remains known" {
  for schedule in late early random:1 random:2; do
    for case in fine_one_phase fine_two_phases fine_three_phases fine_alone fine_two_alone; do
      barrier_again_says $schedule $case
      [[ $output == "$case: cudaSuccess, sum "* ]]
      [ -z "$stderr" ]
    done
  done
}

@test "a barrier that is initialised again: waits before the init do not count" {
  for schedule in late early random:1; do
    for case in no_wait no_wait_alone; do
      barrier_again_says $schedule $case
      [[ $text == "emulator: read-without-wait: "* ]]
    done
    barrier_again_says $schedule other_parity
    [[ $text == "emulator: waited-for-wrong-phase: "* ]]
    [[ $text == *"its bytes count in phase 0 of the barrier"* ]]
    [[ $text == *"because the phase before the first is over"* ]]
  done
}

@test "the source of a store is written again: the report says that the store must have read it" {
  for schedule in late random:1; do
    EMULATOR_SCHEDULE=$schedule run --separate-stderr timeout 600 common/emulator/emulate \
      build/tests/emulator/source_again fine
    [ "$output" = "fine: cudaSuccess, right" ]
    [ -z "$stderr" ]
    EMULATOR_SCHEDULE=$schedule run --separate-stderr timeout 600 common/emulator/emulate \
      build/tests/emulator/source_again reused
    echo "$schedule: $output $stderr"
    text=$(tr -s ' \n' ' ' <<<"$stderr")
    [[ $text == *"from where the bulk store issued by thread 0"*"copies, and nothing orders the two"* ]]
    [[ $text == *"this one has read its source: that thread waits ("*"wait_group.read) and then signals"* ]]
  done
}

@test "a release in a cluster that goes to the wrong rank: the first report says so, in every order" {
  for schedule in late early random:1 random:3; do
    for case in fine_to_both fine_own_tiles; do
      report_of cluster_ring $schedule $case
      [ "$output" = "$case: cudaSuccess, 0 wrong" ]
      [ -z "$stderr" ]
    done
    for case in both_to_own both_to_other one_warp_to_own one_warp_to_other once_to_own; do
      report_of cluster_ring $schedule $case
      [ "$first" = arrival-at-another-rank ]
      [[ $text == *"to the wrong rank"* ]]
    done
    for case in both_to_first own_tiles_to_other; do
      report_of cluster_ring $schedule $case
      [[ $first == arrival-at-another-rank || $first == hang-arrivals-at-another-rank ]]
      [[ $text == *"to the wrong rank"* || $text == *"arrivals leave out this rank"* ]]
    done
  done
}

@test "the twins of what follows are silent" {
  for schedule in late early random:1 random:2; do
    for case in fine_phase_known_through_barrier fine_prologue_by_another_thread fine_cp_async_second_sync \
      fine_barrier_initialised_again; do
      report_of heading_cases $schedule $case
      [ "$output" = "$case: cudaSuccess" ]
      [ -z "$stderr" ]
    done
  done
}

@test "a hang with warps that learnt of a phase through a barrier: these have not waited for a wrong parity" {
  for schedule in late early random:1 random:2; do
    report_of heading_cases $schedule phase_known_through_barrier
    [ "$first" = hang-arrivals-missing ]
    [[ $text != *parity,* ]]
    [[ $text != *"wrong parity"* ]]
  done
}

@test "a stage that another thread filled first, refilled without a wait: too early, and not by two threads a round" {
  for schedule in late early random:1 random:2; do
    report_of heading_cases $schedule prologue_by_another_thread
    [[ $first == too-many-arrivals || $first == stage-reused-too-early ]]
    [[ $text == *"Before a stage is filled again, wait"* || $text == *"Wait before the next copy is issued"* ]]
    [[ $text != *"Let one thread announce"* ]]
  done
}

@test "a buffer of cp.async that is refilled too early: that is the only rule" {
  for schedule in late early random:1 random:2; do
    EMULATOR_CHECK=strict report_of heading_cases $schedule cp_async_missing_second_sync
    [ "$first" = stage-reused-too-early ]
    [[ $text == *"this warp has waited for the copy that filled it, but meanwhile the cp.async"* ]]
    [[ $text == *"Put __syncthreads() after the reads"* ]]
    [[ $text != *read-without-wait* ]]
    report_of heading_cases $schedule cp_async_missing_first_sync
    [ "$first" = read-without-wait ]
  done
}

@test "a barrier that is initialised again while others use it: each report names the second init" {
  for schedule in late early random:1; do
    EMULATOR_CHECK=strict report_of heading_cases $schedule barrier_initialised_again
    [ "$first" = mbarrier-init-again ]
    [[ $text == *"was initialised again by another warp (line"*"after this warp had used it"* ]]
    [[ $text != *"Put __syncthreads() after the init."* ]]
    if [[ $output == *cudaErrorLaunchTimeout ]]; then
      [[ $text == *"likely cause: the barrier was initialised again while this thread was still to wait"* ]]
      [[ $text == *"emulator: mbarrier-init-again: kernel barrier_initialised_again"* ]]
    fi
  done
}

@test "pipelines: st.async and red.async into the neighbour's memory: what was sent arrives, and no finding" {
  for schedule in late early random:7; do
    EMULATOR_SCHEDULE=$schedule run common/emulator/emulate build/tests/emulator/send_async
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$output" = "PASS send_async: 0 wrong" ]
  done
}
