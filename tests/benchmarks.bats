#!/usr/bin/env bats
# What measures, compiled without optimisation as one program: its usage, and the choice of a configuration,
# which measured times judge. They take long to compile, so these tests belong to make check-all.

load helpers

setup() {
  begin_test
}

@test "every tile once, the choice fits the shape, and loses little on what an H200 measured" {
  run common/run-program build/tests/joined/unoptimised/choices
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "every benchmark: -h prints the usage, exit 0; where it cannot be written, exit 1" {
  print_their_usage $(find build/tests/joined/unoptimised -type l)
}
