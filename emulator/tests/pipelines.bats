#!/usr/bin/env bats
# Mistakes in a ring of stages between a producer and consumers: the rule that names one leads to it,
# and not to what follows from it, in every order.

load helpers
orders="late early random:2"
program=pipeline_mistakes

# Runs a case of $program in an order; sets first, the rule of the first report, and text, the reports in one line.
report_of() { # ORDER CASE
  EMULATOR_SCHEDULE=$1 run --separate-stderr timeout 600 emulator/emulate "build/emulator/tests/$program" "$2"
  echo "$2, $1"
  first=${stderr#emulator: }
  first=${first%%:*}
  text=$(tr -s ' \n' ' ' <<<"$stderr")
}

# In each of the orders the first report of the case is by this rule, or by one of RULE|RULE, and the reports have each
# TEXT; they do not have what stands behind "not:".
reports() { # CASE RULE TEXT...
  local order each
  for order in $orders; do
    report_of $order "$1"
    [[ "|$2|" == *"|$first|"* ]]
    for each in "${@:3}"; do
      case $each in
        not:*) [[ $text != *"${each#not:}"* ]] ;;
        *) [[ $text == *"$each"* ]] ;;
      esac
    done
  done
}

silent() { # CASE...
  local order each
  for each; do
    for order in $orders; do
      report_of $order "$each"
      [[ $output == "$each: cudaSuccess"* ]]
      [ -z "$stderr" ]
    done
  done
}

@test "correct rings are silent" {
  orders+=" random:1"
  silent fine_warps fine_threads fine_cluster fine_armed_by_producer fine_freed_in_advance
}

@test "an arrival count that is too low" {
  for case in count_too_low count_of_warps_for_threads armed_count_too_low count_one_too_low_in_a_cluster; do
    reports $case too-many-arrivals
  done
  orders=random:2 reports count_of_one_block stage-reused-too-early "count all of them (it asks for 2)?" \
    "not:too-few-bytes-expected" # the bytes that come too early are expected: a phase later
  orders=late reports count_of_one_block too-many-arrivals "likely cause: mbarrier.init's count is too low"
}

@test "lanes of a cluster that arrive by one instruction in two phases: the count is too low" {
  reports count_of_warps_in_a_cluster too-many-arrivals \
    "after lower lanes of this warp have arrived by the same instruction in phase 0" "asks for 4 arrivals a phase"
}

@test "a thread that announces bytes in a phase that has all its arrivals: who, and why" {
  orders=late reports freed_and_asks_other too-many-arrivals \
    "phase 0 has all its arrivals and still waits for 1024 bytes, which thread 0 announced before" \
    "for the wrong parity, or at a barrier whose mbarrier.init counts too few arrivals"
  orders="late random:2" reports two_announce too-many-arrivals "asks for 1 arrival a phase" \
    "thread 0 has announced bytes in phase 0 already, and this thread announces bytes as well"
}

@test "a producer that skips a stage, and copies that leave out a rank" {
  local on_purpose="If a mask leaves rank 1 out on purpose, another thread must arrive in its place"
  reports short_ring hang-arrivals-missing \
    "no thread has ever arrived here, but phases of the barrier before this one are over"
  reports one_rank_filled hang-bytes-at-another-rank "$on_purpose" \
    "copies leave out this rank: the barrier at the same offset of rank 0 has had all bytes of this phase. The copy" \
    "by rank 0, has the mask 0x1: rank 0 got its bytes, and rank 1 waits for as many. Name rank 1"
  # Copies have filled it before, so this one may leave it out on purpose.
  reports one_rank_filled_later hang-bytes-at-another-rank "$on_purpose"
}

@test "a barrier of more threads than can come is named, and not the arrivals that are missing because of it" {
  # The barriers of the full stages are no part of the ring of the empty ones.
  reports wide_barrier hang-threads-missing "barrier 1: 64 of 128 threads have arrived" "not:phases of the barrier before this one"
}

@test "an arrival count that is too high" {
  for case in count_too_high count_of_threads_for_warps armed_count_too_high; do reports $case hang-arrivals-missing; done
}

@test "arrivals at the wrong rank" {
  for case in arrives_at_own_rank arrives_at_rank_1 arrives_at_the_other_rank; do
    reports $case hang-arrivals-at-another-rank "come to the barrier at the same offset of rank 1, where no thread waits, and rank 0 lacks them"
  done
}

@test "stages that overlap are named once, with their places" {
  for case in stages_overlap stages_overlap_by_a_row stages_overlap_in_a_cluster armed_stages_overlap; do
    reports $case tiles-overlap "emulator: 1 finding (1 error)"
  done
  orders=late reports stages_overlap_by_a_row tiles-overlap \
    "has 1024 bytes, and the next one begins 1008 bytes behind it"
}

@test "a thread that has not tested the barrier is not told that the phase is complete" {
  for seed in 1 2 3 4 5 6 8 9; do
    report_of random:$seed one_lane_waits
    [ "$first" = read-without-wait ]
    # not of the lane that waits
    [[ $stderr != "emulator: "*", thread "@(32|64)$'\n'* ]]
  done
  EMULATOR_SCHEDULE=random:12 EMULATOR_THREADS=1 run --separate-stderr emulator/emulate \
    build/02_tma_load/pitfalls/one_thread_waits
  [[ $stderr == "emulator: read-without-wait: error in kernel load, block (0,0,0), thread 1"$'\n'* ]]
}

# Of that many random orders, at least one and at most so many name the wait that nobody repeats.
named_in_some() { # CASE ORDERS MOST
  local seed named=0
  for ((seed = 1; seed <= $2; seed++)); do
    report_of random:$seed "$1"
    if [ "$first" = wait-not-repeated ]; then named=$((named + 1)); fi
  done
  [ "$named" -ge 1 ]
  [ "$named" -le "$3" ]
}

@test "a wait with a time limit that nobody repeats gives up in some random orders" {
  program=asked_waits
  named_in_some once_within_time 6 5
  orders="late early random:1 random:2 random:3"
  silent fine_once_within_time fine_three_times_within_time fine_until_it_comes_within_time
}

@test "a loop of three attempts that goes on without the tile is named in some random orders" {
  program=asked_waits
  for case in three_times three_times_within_time; do named_in_some $case 30 20; done
  orders="late early" silent three_times three_times_within_time
  orders="late early random:1 random:2 random:3" silent fine_three_times fine_until_it_comes
}

@test "a warp that comes too late, because the others do not wait for it, is told so and not that arrivals are missing" {
  orders+=" random:1"
  reports one_warp_frees phase-missed "warp 2, threads 64-95 wait" "2 phases passed that it has not waited for"
}

@test "hangs of a ring: a missing arrival, a loop that is too long, bytes without an arrival or a copy" {
  reports freed_but_once hang-arrivals-missing "1 of 2 arrivals pending"
  for case in consumers_go_on producer_goes_on; do
    reports $case hang-arrivals-missing "3 phases are over, and the threads that arrived in them have left their loop"
  done
  reports full_without_arrival hang-arrivals-missing \
    "the bytes of this phase have come, but no thread has arrived: mbarrier.expect_tx only"
  reports expected_without_copy hang-too-many-bytes-expected
}

@test "a wrong parity, bytes that nobody expects, a wait that is left out" {
  orders+=" random:1"
  reports consumer_asks_other waited-for-wrong-phase
  reports producer_asks_other stage-reused-too-early
  reports nothing_expected too-few-bytes-expected
  reports nothing_expected_count_too_low too-few-bytes-expected "too-many-arrivals: error" "asks for 1 arrival a phase"
  reports wait_skipped "read-without-wait|too-many-arrivals"
}

@test "a hang that follows from something else may be explained by another order" {
  orders=late reports count_too_high hang-arrivals-missing "set EMULATOR_SCHEDULE=random:1"
  orders=random:1 reports count_too_high hang-arrivals-missing "not:set EMULATOR_SCHEDULE"
  # A finding before the hang, and a rule that says what is wrong, need no other order.
  orders=late reports count_too_low too-many-arrivals "not:set EMULATOR_SCHEDULE"
  orders=late reports arrives_at_rank_1 hang-arrivals-at-another-rank "not:set EMULATOR_SCHEDULE"
  # Without copies there is nothing that could land in another order.
  program=endless_polls orders=late reports library_barrier hang-arrivals-missing "not:set EMULATOR_SCHEDULE"
}

@test "words stored in the memory of a peer, and an arrival of scope .cta at its barrier: reported" {
  run -3 --separate-stderr timeout 600 emulator/emulate build/emulator/tests/peer_order 1
  [ "$(grep -c ': 0 old' <<<"$output")" -eq 4 ]
  [[ $stderr == "emulator: scope-too-narrow: error in kernel publish"* ]]
  [[ $stderr == *"emulator: 1 finding (1 error)"* ]]
}

@test "st.async and red.async: each report has their name and their fix" {
  program=store_async
  silent fine fine_reduced fine_dropped
  orders=late reports not_waited exit-with-copy-in-flight "while this st.async was still in flight"
  reports twice stage-reused-too-early "the st.async issued by thread "
}

@test "st.async of a value that nothing has written: reported where its reader uses it" {
  line=$(grep -n "here it matters" emulator/tests/store_async.cu | cut -d: -f1)
  program=store_async reports nothing_written uninitialised-read "the value matters: at store_async.cu:$line it goes to global"
}

@test "the bytes of a copy, st.async or red.async hand on what their thread had done before it issued them" {
  program=ping_pong
  silent store vector reduce bulk
  for case in store vector reduce bulk; do
    report_of late $case
    [ "$output" = "$case: cudaSuccess, 21" ]
  done
  reports unanswered stage-reused-too-early "starts a copy into" "the st.async issued by thread 0 of rank 0"
}

@test "a barrier that is initialised again: what was waited for before remains known" {
  export EMULATOR_CHECK=strict
  program=barrier_again orders+=" random:1"
  silent fine_one_phase fine_two_phases fine_three_phases fine_alone fine_two_alone
}

@test "a barrier that is initialised again: waits before the init do not count" {
  export EMULATOR_CHECK=strict
  program=barrier_again orders="late early random:1"
  reports no_wait read-without-wait
  reports no_wait_alone read-without-wait
  reports other_parity waited-for-wrong-phase "its bytes count in phase 0 of the barrier" \
    "because the phase before the first is over"
}

@test "the source of a store is written again: the report says that the store must have read it" {
  program=source_again orders="late random:1"
  silent fine
  for order in $orders; do
    report_of $order reused
    [[ $text == *"from where the bulk store issued by thread 0"*"copies, and nothing orders the two"* ]]
    [[ $text == *"this one has read its source: that thread waits ("*"wait_group.read) and then signals"* ]]
  done
}

@test "a release in a cluster that goes to the wrong rank: the first report says so, in every order" {
  program=cluster_ring orders="late early random:1 random:3"
  silent fine_to_both fine_own_tiles
  for case in both_to_own both_to_other one_warp_to_own one_warp_to_other once_to_own; do
    reports $case arrival-at-another-rank "to the wrong rank"
  done
  for case in both_to_first own_tiles_to_other; do
    for order in $orders; do
      report_of $order $case
      [[ $first == arrival-at-another-rank || $first == hang-arrivals-at-another-rank ]]
      [[ $text == *"to the wrong rank"* || $text == *"arrivals leave out this rank"* ]]
    done
  done
}

@test "the twins of what follows are silent" {
  program=heading_cases orders+=" random:1"
  silent fine_phase_known_through_barrier fine_prologue_by_another_thread fine_cp_async_second_sync \
    fine_barrier_initialised_again
}

@test "a hang with warps that learnt of a phase through a barrier: these have not waited for a wrong parity" {
  program=heading_cases orders+=" random:1"
  reports phase_known_through_barrier hang-arrivals-missing "not:parity," "not:wrong parity"
}

@test "a stage that another thread filled first, refilled without a wait: too early, and not by two threads a round" {
  program=heading_cases orders+=" random:1"
  reports prologue_by_another_thread "too-many-arrivals|stage-reused-too-early" "not:Let one thread announce"
  for order in $orders; do
    report_of $order prologue_by_another_thread
    [[ $text == *"asked for parity 1 of the mbarrier"*"ask for parity 0"* || $text == *"Wait before the next copy is issued"* ]]
  done
}

@test "a buffer of cp.async that is refilled too early: that is the only rule" {
  program=heading_cases orders+=" random:1"
  EMULATOR_CHECK=strict reports cp_async_missing_second_sync stage-reused-too-early "not:read-without-wait" \
    "this warp has waited for the copy that filled it, but meanwhile the cp.async" "Put __syncthreads() after the reads"
  reports cp_async_missing_first_sync read-without-wait
}

@test "a barrier that is initialised again while others use it: each report names the second init" {
  program=heading_cases
  for order in late early random:1; do
    EMULATOR_CHECK=strict report_of $order barrier_initialised_again
    [ "$first" = mbarrier-init-again ]
    [[ $text == *"was initialised again by another warp (line"*"after this warp had used it"* ]]
    [[ $text != *"Put __syncthreads() after the init."* ]]
    if [[ $output == *cudaErrorLaunchTimeout ]]; then
      [[ $text == *"likely cause: the barrier was initialised again while this thread was still to wait"* ]]
      [[ $text == *"emulator: mbarrier-init-again: kernel barrier_initialised_again"* ]]
    fi
  done
}
