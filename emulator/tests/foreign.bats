#!/usr/bin/env bats
# Programs in the style of others (libcu++, public GEMMs) in every schedule: right results and an
# empty stderr, for correct programs must not be accused.

load helpers
programs=build/emulator/tests

passes_in_every_schedule() {
  for schedule in late early random:1 random:2 random:3; do
    echo "$schedule"
    EMULATOR_SCHEDULE=$schedule run -0 emulator/emulate $programs/"$1"
    [[ $output == "PASS $1: "* ]]
  done
}

@test "libcu++: barriers, bulk and tensor copies, cuda::ptx, a pipeline of two roles" {
  passes_in_every_schedule foreign_barriers
}

silent_in_every_schedule() { # PROGRAM [EMULATOR_CHECK]
  for schedule in late early random:1 random:2; do
    echo "$schedule"
    EMULATOR_CHECK=${2:-strict} EMULATOR_SCHEDULE=$schedule run -0 emulator/emulate $programs/"$1"
    [[ $output != *emulator:* ]]
    [[ $output == *"PASS $1: "* ]]
  done
}

@test "CUB on partial tiles: what it reads and drops is not reported, but in strict as held-back" {
  silent_in_every_schedule foreign_cub on
  EMULATOR_CHECK=strict run -3 emulator/emulate $programs/foreign_cub
  [ "$(grep -c '^emulator: [a-z-]*: ' <<<"$output")" -eq "$(grep -c '^emulator: held-back: ' <<<"$output")" ]
}

@test "lanes that repeat a copy, atomics of 1 and 2 bytes at the end of memory, turns of blocks: silent" {
  silent_in_every_schedule foreign_groups
}

@test "bulk loads of what atomics of another block have changed in the same launch: silent" {
  silent_in_every_schedule copied_atomics
}

@test "a public GEMM's ways: multicast, setmaxnreg, a relaxed cluster barrier after the init fence" {
  passes_in_every_schedule foreign_gemm
}

@test "fp8 with scales by block: one struct of parameters, tiles from a counter, a graph of dependent launches" {
  passes_in_every_schedule foreign_fp8
}

@test "the driver API with PTX of its own: library, module, cluster, graph, user object" {
  passes_in_every_schedule foreign_driver
}

# What the fuzzers found, 213 files whose damage no person reads: the head of long/fuzz says how to add one.
unpack_damaged() {
  mkdir "$BATS_TEST_TMPDIR/damaged"
  gzip -dc emulator/tests/damaged.tar.gz | tar -x -C "$BATS_TEST_TMPDIR/damaged"
}

@test "damaged PTX, as a fuzzer made it: refused with a reason, or run to an end" {
  unpack_damaged
  for schedule in late early random:1; do
    EMULATOR_SCHEDULE=$schedule run -0 $programs/fuzz_ptx "$BATS_TEST_TMPDIR"/damaged/ptx/*
    [[ $output == *"154 files replayed"* ]]
  done
}

@test "damaged fat binaries, as a fuzzer made them: refused with a reason, or text" {
  unpack_damaged
  run -0 $programs/fuzz_fatbin "$BATS_TEST_TMPDIR"/damaged/fatbin/*
  [[ $output == *"59 files replayed"* ]]
}
