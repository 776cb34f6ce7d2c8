#!/usr/bin/env bats
# 07_pipelined_gemm/library/layouts, whole: kernels for both types and all layouts of A and B. They take minutes to
# compile and to run, so these tests belong to make check-all.
# builds: %/library/layouts

load helpers
chapter=07_pipelined_gemm

@test "layouts prints what was recorded" { prints_what_was_recorded library/layouts; }

@test "random types, layouts, strides and epilogues, in random order" {
  EMULATOR_SCHEDULE=random:7 run -0 common/make/run-program build/$chapter/library/layouts --runs 30 --seed 287
  [[ $output == *"30 of 30 random products within bounds"* ]]
}

@test "the old C of rows that are not aligned, chunk after chunk, with swapped operands" {
  run -0 common/make/run-program build/$chapter/library/layouts --runs 1 --seed 8511
}
