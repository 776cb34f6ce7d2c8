#!/usr/bin/env bats
# Mistakes that give right results by luck: named, in the default order, and their twins are silent in every order.

load helpers
program=build/emulator/tests/luck_cases

@test "what is right by luck is named in the default order" {
  "$program" --list | grep -v '^fine_' | while read -r name rules; do
    EMULATOR_CHECK=strict run -3 --separate-stderr emulator/emulate "$program" "$name"
    first=${stderr#emulator: }
    echo "$name: $stderr"
    [[ "|$rules|" == *"|${first%%:*}|"* ]] || exit 1
  done
}

# The advice names what is missing from what is there.
advises() { # CASE TEXT...
  run -3 --separate-stderr emulator/emulate "$program" "$1"
  text=$(tr -s ' \n' ' ' <<<"$stderr")
  for each in "${@:2}"; do
    echo "$1: $each: $text"
    [[ $text == *"$each"* ]] || return 1
  done
}

@test "an arrival or a wait with .relaxed, a missing commit, a wait that is not repeated: the advice names its line" {
  advises asked_once "has asked an mbarrier for that at luck_cases.cu:" "repeat mbarrier.try_wait"
  advises copy_awaited_relaxed "has waited for that at luck_cases.cu:" "a wait with .relaxed"
  advises writes_awaited_relaxed "has waited for that at luck_cases.cu:" "a wait with .relaxed"
  advises writes_told_relaxed "has arrived at a barrier since, at luck_cases.cu:" "arrive with .release"
  advises copies_not_committed "No cp.async.commit_group stands between it and the wait for groups at luck_cases.cu:"
  advises store_not_committed "No cp.async.bulk.commit_group stands between it and the wait for groups at luck_cases.cu:"
  advises map_of_running_store "Wait for its group first"
  advises map_of_uncommitted_store "First commit it and wait for its group"
  advises map_of_running_load "Wait at the copy's mbarrier first"
  advises sent_tile_overwritten "Wait first for the mbarrier that this copy reports to"
  advises store_committed_late "No cp.async.bulk.commit_group stands between it and the wait for groups at luck_cases.cu:"
  advises store_joins_next "stands between it and the bulk store issued next, at luck_cases.cu:" "so both are in one group"
  advises store_behind_uncommitted "stands between the bulk store issued later, at luck_cases.cu:" "so this one is still among them"
  EMULATOR_CHECK=strict advises read_uncommitted "No cp.async.bulk.commit_group has followed it in this thread"
  advises load_shifted "This is 128 bytes before the tile that the load at luck_cases.cu:"
  advises load_shifted_into_next "Only the last 128 bytes of the copy reach there"
  advises store_shifted "They are the end of what it takes"
  advises store_shifted_into_next "and only its last 128 bytes reach here"
  advises writes_shifted "They are the beginning of what it takes"
  advises read_shifted_into_next "it is just behind the end of the tile"
  advises arrives_twice_at_one "never at the barrier at offset"
  advises store_left_pending "lets the newest 1 go on, and this one is among them"
  advises stored_by_two_threads "Several threads issue one copy"
  advises waits_beside "The last wait of this warp, at luck_cases.cu:" "that is the wrong one, or a wait is missing"
  advises arrives_beside "Is the address or index wrong here? The nearest barrier"
  advises waits_for_other_parity "asked for parity 1 of the mbarrier" "ask for parity 0"
  EMULATOR_CHECK=strict advises each_thread_initialises "Another thread has done so by this same instruction"
  advises peer_read_without_wait "This warp has arrived at the cluster barrier" "put barrier.cluster.wait before this"
  advises peer_read_before_it_writes "The other warp has arrived at the cluster barrier"
  program=build/emulator/tests/operands_reused
  advises left_pending "wgmma.wait_group 1 at operands_reused.cu:" "lets the newest 1 go on"
  advises committed_late "No wgmma.commit_group stands between it and the wait for groups at operands_reused.cu:"
  advises joins_next "stands between it and the wgmma issued next, at line"
  advises behind_uncommitted "stands between the wgmma issued later, at line"
  advises not_committed "No wgmma.commit_group stands between it and the wait for groups at operands_reused.cu:"
}

@test "its right twins are silent" {
  for order in late early random:1 random:2; do
    "$program" --list | grep '^fine_' | while read -r name rules; do
      EMULATOR_CHECK=strict EMULATOR_SCHEDULE=$order run -0 --separate-stderr emulator/emulate "$program" "$name"
      echo "$name, $order: $stderr"
      if [ "$output" != "$name: cudaSuccess" ] || [ -n "$stderr" ]; then exit 1; fi
    done
  done
}
