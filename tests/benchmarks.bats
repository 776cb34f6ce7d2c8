#!/usr/bin/env bats
# What measures, compiled without optimisation as one program: its usage. They take long to compile, so this test
# belongs to make check-all.
# builds: tests/joined/unoptimised/%

load helpers

@test "every benchmark: -h prints the usage, exit 0; an unknown option does, exit 2; where it cannot be written, exit 1" {
  print_their_usage $(find build/tests/joined/unoptimised -type l)
}
