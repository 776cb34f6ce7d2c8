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
  [ "$(tail -n +2 <<<"$output" | sed 's/^[0-9]*: //' | xargs)" = "$(LC_ALL=C seq 0.5 255.5 | xargs)" ]
}

@test "wmma: rows at addresses that are no multiples of four" {
  run build/tests/emulator/run_ptx tests/emulator/ptx/wmma.ptx odd_product 1 32 buffer:f32:256
  echo "$output"
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "error 0" ]
  [ "$(tail -n +2 <<<"$output" | sed 's/^[0-9]*: //' | xargs)" = "$(LC_ALL=C seq 0.5 255.5 | xargs)" ]
}

# Sets $output to what a case of matrix_reads prints. It is the same when accesses are recorded, because
# each word of a matrix is then looked at by itself.
matrix_reads() { # CASE
  run common/emulator/emulate --record "$BATS_TEST_TMPDIR/recording" build/tests/emulator/matrix_reads "$1"
  local each_word=$output status_of_each=$status
  run common/emulator/emulate build/tests/emulator/matrix_reads "$1"
  echo "$1: $output"
  diff <(grep -v recording <<<"$each_word") <(grep -v '^See it: ' <<<"$output")
  [ "$status" -eq "$status_of_each" ]
}

@test "matrices in shared memory: mistakes are named as when each word is looked at by itself" {
  local name
  for name in stored-without-barrier overwritten; do
    matrix_reads "$name"
    [[ "$output" = *"emulator: shared-race: error"* ]]
  done
  for name in copied-without-wait copied-without-barrier; do
    matrix_reads "$name"
    [[ "$output" = *"emulator: read-without-wait: error"* ]]
  done
  matrix_reads never-written
  [[ "$output" = *"uninitialised-read"* ]]
  matrix_reads overwritten-by-lane
  [[ "$output" = *"emulator: lanes-met-without-order: error"* ]]
}

@test "matrices in shared memory: what is in order is silent" {
  local name
  for name in stored copied partly-copied; do
    matrix_reads "$name"
    [ "$status" -eq 0 ]
    [ "$output" = $'130320\n130320' ]
  done
  matrix_reads overwritten-by-lane-synced
  [ "$status" -eq 0 ]
  [ -z "$output" ]
}

@test "products that need no rounding are those that the tensor cores compute" {
  run build/tests/emulator/exact_products
  echo "$output"
  [ "$status" -eq 0 ]
  [[ "$output" = "exact_products: "*" products, "*" of them without rounding, all alike" ]]
}
