#!/usr/bin/env bats
# The example in each header of make take, compiled as C++20 with all warnings as errors. take.bats, in
# make check-all, compiles each header by itself, and with C++14 and C++17.
# builds: tests/take/examples/%

load helpers

setup() {
  begin_test
  built=build/tests/take/examples
}

runs() { # NAME LAST_LINE
  run -0 common/make/run-program "$built/$1_example"
  [ "${lines[-1]}" = "$2" ]
}

@test "the example in tma_load.cuh runs" { runs tma_load "12 tiles summed, 0 wrong"; }
@test "the example in tma_store.cuh runs" { runs tma_store "8800 elements stored, 0 wrong"; }
@test "the example in tma_reduce.cuh runs" { runs tma_reduce "6144 sums of 4 parts, 0 wrong"; }
@test "the example in tma_multicast.cuh runs" { runs tma_multicast "2048 elements in each of 2 blocks, 0 wrong"; }
@test "the example in swizzle.h runs" { runs swizzle "512 elements, 0 wrong"; }
@test "the example in pipelined_gemm.cuh runs" { runs pipelined_gemm "100 x 72 sums of 136 products, 0 wrong"; }

@test "no header is without an example that runs here" {
  headers=$(ls "$built" | grep -E '[.](cuh|h)$' | paste -sd' ')
  [ "$headers" = "pipelined_gemm.cuh swizzle.h tma_load.cuh tma_multicast.cuh tma_reduce.cuh tma_store.cuh" ]
}
