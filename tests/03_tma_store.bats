#!/usr/bin/env bats
# Chapter 03: the programs print what an H200 printed, the round trip's four tiles among it.

load helpers
chapter=03_tma_store

@test "the programs print what was recorded" { print_what_was_recorded; }

@test "the lower right tile of the round trip, before and after" {
  run -0 common/make/run-program build/$chapter/tma_store
  values() { # of the tile, from this field to the third after it
    grep -A 6 "^tile (1,1) before and after$" <<<"$output" | tail -n 4 | tr -s ' ' | cut -d ' ' -f "$1-$(($1 + 3))" | tr '\n' ' '
  }
  [ "$(values 4)" = "36 37 38 39 44 45 46 47 52 53 54 55 60 61 62 63 " ]
  [ "$(values 8)" = "36 38 40 42 48 50 52 54 60 62 64 66 72 74 76 78 " ]
}

@test "each pitfall is reported by its rule" { try_pitfalls; }
