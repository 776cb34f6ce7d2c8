#!/usr/bin/env bats
# What a warp multiplies on the emulator: mma.sync, ldmatrix, stmatrix and movmatrix give the bits that an
# H200 gave. tensor_core.bats has all forms of wgmma. TENSOR_CASES=all: see there.

load helpers
choose_tensor_cases

@test "mma.sync, ldmatrix, stmatrix, movmatrix" { gives_the_recorded_bits mma_cases; }

@test "products that need no rounding are those that the tensor cores compute" {
  run -0 build/emulator/tests/exact_products
  [[ "$output" = "exact_products: "*" products, "*" of them without rounding, all alike" ]]
}
