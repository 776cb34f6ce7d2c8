#!/usr/bin/env bats
# What a warp multiplies on the emulator: mma.sync, ldmatrix, stmatrix and movmatrix give the bits that an
# H200 gave, and one wmma the product. emulator_tensor_core.bats has all forms of wmma and wgmma. TENSOR_CASES=all: see there.

load helpers

setup() {
  begin_test
  choose_tensor_cases
}

@test "mma.sync, ldmatrix, stmatrix, movmatrix" { gives_the_recorded_bits mma_cases; }

@test "wmma: the identity times numbers, plus a half" {
  run build/tests/emulator/run_ptx tests/emulator/ptx/wmma.ptx product 1 32 buffer:f32:256
  echo "$output"
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "error 0" ]
  [ "$(tail -n +2 <<<"$output" | sed 's/^[0-9]*: //' | xargs)" = "$(seq 0.5 255.5 | xargs)" ]
}

@test "wmma: rows at addresses that are no multiples of four" {
  run build/tests/emulator/run_ptx tests/emulator/ptx/wmma.ptx odd_product 1 32 buffer:f32:256
  echo "$output"
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "error 0" ]
  [ "$(tail -n +2 <<<"$output" | sed 's/^[0-9]*: //' | xargs)" = "$(seq 0.5 255.5 | xargs)" ]
}
