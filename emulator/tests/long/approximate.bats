#!/usr/bin/env bats
# The tables of the approximate functions, and every result of every function: an hour on one core.

load ../helpers

@test "the tables are those that the recorded samples give" {
  emulator/tests/long/approximate_tables "$BATS_TEST_TMPDIR/tables.h"
  diff "$BATS_TEST_TMPDIR/tables.h" emulator/arithmetic/approximate_tables.h
}

@test "every result of every approximate function is the GPU's" {
  run -0 emulator/emulate build/emulator/tests/approximate_values check \
    emulator/tests/recorded/approximate_hashes.bin all
  [ "${lines[-1]}" = "PASS approximate_values: 15360 binades, 0 differ" ]
}
