#!/usr/bin/env bats
# The examples beside the headers of make take, compiled as C++20 with all warnings as errors. take.bats, in
# make check-all, compiles each header by itself, and with C++14 and C++17.
# builds: tests/take/examples/%

load helpers
built=build/tests/take/examples

runs() { # NAME LAST_LINE
  run -0 common/make/run-program "$built/$1_example"
  [ "${lines[-1]}" = "$2" ]
}

@test "convolution_example runs" { runs convolution "150 x 200 pixels filtered, 0 wrong"; }
@test "gather_example runs" { runs gather "663 rows in 40 bags, 0 sums wrong"; }
@test "softmax_example runs" { runs softmax "100 rows of 1000, 0 wrong"; }
@test "tma_reduce_example runs" { runs tma_reduce "6144 sums of 4 parts, 0 wrong"; }
@test "layer_norm_example runs" { runs layer_norm "24 rows of 16384 by 4 blocks each, 0 wrong"; }
@test "transpose_example runs" { runs transpose "180 x 300 elements transposed, 0 wrong"; }
@test "wgmma_example runs" { runs wgmma "128 x 256 sums of 320 products, 0 wrong"; }
@test "pipelined_gemm_example runs" { runs pipelined_gemm "100 x 72 sums of 136 products, 0 wrong"; }

@test "no header is without an example, and no example has more than 120 lines" {
  headers=$(cd "$built" && cat ./*_example.cu | sed -n 's/^#include "\(.*\)"/\1/p' | sort -u | paste -sd' ')
  [ "$headers" = "$(cd "$built" && ls | grep -E '[.](cuh|h)$' | sort | paste -sd' ')" ]
  [ "$headers" = "pipelined_gemm.cuh swizzle.h tma_load.cuh tma_multicast.cuh tma_reduce.cuh tma_store.cuh wgmma.cuh" ]
  for example in "$built"/*_example.cu; do
    [ "$(wc -l <"$example")" -le 120 ]
  done
}
