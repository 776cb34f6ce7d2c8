#!/usr/bin/env bats
# Mistakes that give right results by luck: named, in the default order, and their twins are silent in every order.

load helpers

setup() {
  begin_test
  program=build/emulator/tests/luck_cases
}

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
  advises copy_awaited_relaxed "has waited for it at luck_cases.cu:" "a wait with .relaxed"
  advises writes_awaited_relaxed "has waited for that at luck_cases.cu:" "a wait with .relaxed"
  advises writes_told_relaxed "has arrived at a barrier since, at luck_cases.cu:" "arrive with .release"
  advises copies_not_committed "No cp.async.commit_group has followed it"
  advises store_not_committed "No cp.async.bulk.commit_group has followed it"
  advises map_of_running_store "Wait for its group first"
  advises map_of_uncommitted_store "First commit it and wait for its group"
  advises map_of_running_load "Wait at the copy's mbarrier first"
  advises sent_tile_overwritten "Wait first for the mbarrier that this copy reports to"
  program=build/emulator/tests/operands_reused
  advises not_committed "No wgmma.commit_group has followed it" "No wgmma.commit_group has followed that wgmma"
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
