#!/usr/bin/env bats
# Chapter 05: the programs print what an H200 printed, and refuse bad arguments.

load helpers
chapter=05_multicast

@test "the programs print what was recorded" { print_what_was_recorded; }

@test "every multicast wrapper, by number of dimensions, and a release at cluster scope" {
  common/make/run-program build/tests/05_multicast/dimensions
}

@test "reduces of several blocks into the same words of a peer are no race" {
  for order in late early random:1 random:2; do
    EMULATOR_CHECK=strict EMULATOR_SCHEDULE=$order run -0 --separate-stderr common/make/run-program build/$chapter/peer_reduce
    [ -z "$stderr" ]
  done
}

@test "each pitfall is reported by its rule" { try_pitfalls; }
