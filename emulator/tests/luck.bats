#!/usr/bin/env bats
# Mistakes that give right results by luck: named, in the default order, and their twins are silent in every order.

load helpers

setup() {
  begin_test
  program=build/emulator/tests/luck_cases
}

@test "what is right by luck is named in the default order" {
  "$program" --list | grep -v '^fine_' | while read -r name rules; do
    run -3 --separate-stderr emulator/emulate "$program" "$name"
    first=${stderr#emulator: }
    echo "$name: $stderr"
    [[ "|$rules|" == *"|${first%%:*}|"* ]] || exit 1
  done
}

@test "its right twins are silent" {
  for order in late early random:1 random:2; do
    "$program" --list | grep '^fine_' | while read -r name rules; do
      EMULATOR_CHECK=strict EMULATOR_SCHEDULE=$order run -0 --separate-stderr emulator/emulate "$program" "$name"
      echo "$name, $order: $stderr"
      [ "$output" = "$name: cudaSuccess" ] && [ -z "$stderr" ] || exit 1
    done
  done
}
