#!/usr/bin/env bats
# Kernels that only poll memory that no thread will change end as hangs, however they poll;
# those that end by themselves run to their end.

load helpers
program=build/emulator/tests/endless_polls

hangs() { # RULE CASE [BLOCKS]
  local rule=$1
  shift
  EMULATOR_SCHEDULE=${schedule:-late} run --separate-stderr timeout 600 \
    emulator/emulate "$program" "$@"
  [ "$output" = "$1: cudaErrorLaunchTimeout, result 0" ]
  [[ $stderr == "emulator: $rule: kernel "* ]]
}

ends() { # CASE [BLOCKS]
  EMULATOR_SCHEDULE=${schedule:-late} run --separate-stderr timeout 600 \
    emulator/emulate "$program" "$@"
  [ "$output" = "$1: cudaSuccess, result 1" ]
  [ -z "$stderr" ]
}

@test "waits at mbarriers that never complete, in every form, name the missing arrivals" {
  for schedule in late random:3; do
    for case in library_barrier test_wait test_wait_backoff; do
      hangs hang-arrivals-missing "$case"
      [[ $stderr != *"no thread has arrived here yet"* ]]
    done
  done
}

@test "a ring whose producer first waits for parity 0: the report names parity 1" {
  hangs hang-arrivals-missing ring_never_begins
  [[ $(tr -s '\n ' ' ' <<<"$stderr") == *"this wait asks for parity 0, the end of the first phase, and no thread has arrived here yet"* ]]
  [[ $(tr -s '\n ' ' ' <<<"$stderr") == *"ask for parity 1 then"* ]]
  [[ $stderr == *"block (0,0,0), thread 32"$'\n'*"(empty)"*"(full)"*"what is missing would come from thread 32, which waits at"* ]]
}

@test "a ring whose buffer nobody frees: the wait for that comes first, and mbarrier.init has its line" {
  hangs hang-arrivals-missing ring_is_not_freed
  [[ $(tr -s '\n ' ' ' <<<"$stderr") == *"block (0,0,0), thread 32 at "*"(empty)"*"let those who use the buffer arrive"*"(full)"* ]]
  hangs hang-arrivals-missing counts_differ
  [[ $(tr -s '\n ' ' ' <<<"$stderr") == *"count is too high: it is 2, at endless_polls.cu:"*", where another barrier gets 1"* ]]
}

@test "an mbarrier in an array is called by its index, one among other things by its distance" {
  ptx <<'EOF'
.entry waits() {
  .shared .align 8 .b64 full[4]; .shared .align 8 .b8 stage[1024];
  .reg .pred %p; .reg .b32 %r;
  mov.u32 %r, %tid.x; setp.eq.u32 %p, %r, 0;
  mbarrier.init.shared.b64 [full+16], 1; mbarrier.init.shared.b64 [stage+520], 1;
  @%p bra STAGE;
L1: mbarrier.try_wait.parity.shared.b64 %p, [full+16], 0; @!%p bra L1; ret;
STAGE:
L2: mbarrier.try_wait.parity.shared.b64 %p, [stage+520], 0; @!%p bra L2; ret;
}
EOF
  run build/emulator/tests/run_ptx "$module" waits 1 2
  [[ $output == *"mbarrier at shared address 0x"*" (full[2])"$'\n'* ]]
  [[ $output == *"mbarrier at shared address 0x"*" (stage+520)"$'\n'* ]]
}

@test "an mbarrier is called as in its mbarrier.init, where the source and all addresses of that line agree" {
  names=build/emulator/tests/barrier_names
  "$names" --list >"$BATS_TEST_TMPDIR/list"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/list")" -eq 21 ]
  while read -r case name; do
    run --separate-stderr emulator/emulate "$names" "$case"
    echo "$case ($name): $output $stderr"
    [ "$output" = "$case: cudaErrorLaunchTimeout" ]
    [[ $(tr -s '\n ' ' ' <<<"$stderr") =~ " shared address 0x"[0-9a-f]+(" ("[^ ]*")")?" phase 0 (parity 0)" ]]
    [ "${BASH_REMATCH[1]}" = "${name:+ ($name)}" ]
  done <"$BATS_TEST_TMPDIR/list"
}

@test "a wait for a phase that is over, while the next but one is running: the wrong parity" {
  for schedule in late random:3; do
    hangs waited-for-wrong-phase asks_for_the_last_phase
    [[ $stderr == *"likely cause: the wait asks for the wrong parity"* ]]
  done
}

@test "arrivals that leave out one rank of a cluster" {
  for schedule in late random:3; do
    hangs hang-arrivals-at-another-rank one_rank_is_left_out 2
    [[ $stderr == *"likely cause: arrivals leave out this rank: the barriers"*"Arrive at rank 1 as well"* ]]
  done
}

@test "lanes of one warp that wait at different mbarriers: each barrier is listed once, up to eight" {
  for schedule in late random:3; do
    hangs hang-arrivals-missing lanes_at_four_barriers
    [ "$(grep -c "waits for the phase of parity 0 at the mbarrier" <<<"$stderr")" -eq 3 ]
    [ "$(grep -c ", threads [1-3], .* wait at endless_polls.cu" <<<"$stderr")" -eq 3 ]
    [ "$(grep -oE "at the mbarrier at shared address 0x[0-9a-f]+" <<<"$stderr" | sort -u | wc -l)" -eq 3 ]
    [ "$(grep -c "2 of 2 arrivals pending" <<<"$stderr")" -eq 2 ]
    [ "$(grep -c "1 of 2 arrivals pending" <<<"$stderr")" -eq 1 ]
    hangs hang-arrivals-missing lanes_at_32_barriers
    [ "$(grep -c "waits for the phase of parity 0 at the mbarrier" <<<"$stderr")" -eq 8 ]
    [[ $stderr == *"and 23 more groups of threads that wait"* ]]
  done
}

@test "warps that wait at a wgmma do not keep a hang from being seen" {
  hangs hang-arrivals-missing asks_beside_wgmma
  [[ $stderr == *" kernel asks_beside_wgmma, block (0,0,0), thread 0"* ]]
}

@test "a list of waits that is too long says how many are left out" {
  hangs hang-arrivals-missing each_waits_elsewhere
  [[ $stderr == *"... and 4 more groups of threads that wait"* ]]
}

@test "polls of flags that no thread writes are named" {
  for schedule in late random:3; do
    for case in volatile_flag plain_flag_and_barrier atomic_wait failing_swap counting \
      shared_flag one_thread_for_the_block under_a_lock flag_and_mbarrier host_flag; do
      hangs hang-nobody-writes "$case"
    done
  done
  [[ $stderr == *"global address 0x"*" again and again"* ]]
}

@test "loops that do nothing, or only sleep, are hangs too" {
  hangs hang sleeping_by_the_clock
  hangs hang for_ever
  hangs hang for_ever_beside_a_copy
}

@test "a barrier of the whole grid ends if the blocks fit on the chip, and hangs if not" {
  ends grid_barrier 132
  hangs hang-nobody-writes grid_barrier 5000
  [[ $stderr == *"4224 clusters or blocks that fit on the chip"*"776 others"* ]]
}

@test "polls that are bounded by a count or by time run to their bound" {
  for schedule in late random:3; do
    for case in ends_by_count ends_by_attempts ends_by_clock ends_by_short_clock ends_by_timer; do
      ends "$case"
    done
    ends ends_by_two_clocks 2
  done
}

@test "polls for what others will yet write go on" {
  for schedule in late random:3; do
    for case in ends_when_others_are_done ends_with_few_attempts ends_by_exchange; do
      ends "$case"
    done
    ends ends_by_the_grid 8
  done
}

@test "a kernel that polls waits for other streams, the host and its threads" {
  ends ends_by_another_stream
  ends ends_by_the_host
  ends ends_by_a_host_thread
}

# runs_on CASE: the note appears once, and says where the warps are; then the program is ended.
runs_on() {
  : >"$BATS_TEST_TMPDIR/err" # not that of the case before
  EMULATOR_PATIENCE=1 emulator/emulate build/emulator/tests/endless_loops "$1" \
    >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" &
  local pid=$! waited=0
  while ! grep -q 'EMULATOR_PATIENCE is' "$BATS_TEST_TMPDIR/err" && [ $waited -lt 1200 ]; do
    sleep 0.1
    waited=$((waited + 1))
  done
  sleep 1.5
  kill -s KILL $pid || return 1 # it is still running
  wait $pid || true
  cat "$BATS_TEST_TMPDIR/err"
  [ "$(grep -c "^emulator: kernel $1 has been running for [0-9]* s; 0 of 1 blocks have ended" \
    "$BATS_TEST_TMPDIR/err")" -eq 1 ]
  grep -q '^  Block (0,0,0) has executed [0-9]* instructions of whole warps' "$BATS_TEST_TMPDIR/err"
  grep -q '^    warp [01], threads .* at endless_loops.cu:[0-9]* (PTX line ' "$BATS_TEST_TMPDIR/err"
  grep -q 'Ctrl-C or `kill [0-9]*` stops it' "$BATS_TEST_TMPDIR/err"
  [ ! -s "$BATS_TEST_TMPDIR/out" ]
}

@test "loops with effects that never end: after a while a note says where the warps are, once" {
  for case in counts adds fills_shared prints_on completes_phases draws; do
    runs_on "$case"
  done
}

@test "printf keeps the newest text, as much as cudaLimitPrintfFifoSize, in whole lines" {
  loops=build/emulator/tests/endless_loops
  run --separate-stderr emulator/emulate "$loops" prints 100000
  [ "${#lines[@]}" -eq 100000 ]
  [ "${lines[0]}" = "this is line 000000" ]
  [ -z "$stderr" ]
  run --separate-stderr emulator/emulate "$loops" prints 100000 600000
  echo "${lines[0]} ... ${lines[-1]}"
  echo "$stderr"
  [ "${#lines[@]}" -eq 30003 ] # of 20 bytes: 600,064 bytes, a multiple of 256
  [ "${lines[0]}" = "this is line 069997" ]
  [ "${lines[-1]}" = "this is line 099999" ]
  [ "$stderr" = "emulator: printf in kernel prints: the buffer (cudaLimitPrintfFifoSize) is full, and the oldest 1399940 bytes of text are lost" ]
}
