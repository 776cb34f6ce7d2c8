#!/usr/bin/env bats
# Textures, surfaces and arrays: what they return, and what is refused.

load helpers

setup() {
  begin_test
  cases=build/tests/emulator/texture_cases
}

@test "arrays, textures and surfaces by both APIs, compared with the guide's formulas" {
  for schedule in late early random:1; do
    EMULATOR_SCHEDULE=$schedule run common/run-program build/tests/emulator/textures
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"PASS textures: "* ]]
  done
}

# What an H200 does there is not known to the last bit: ties of 8-bit signed integers, sums of very
# different sizes, normalised coordinates of sizes that are no power of two, directions to the edges
# of cubes; and which of several threads has stored last.
unsettled='^(weights from 8160|.* s8x2 linear|3d .* normalised|3d .* linear border|cube |surface 9 holds|device)'

@test "what textures and surfaces return, bit for bit as an H200 has recorded it" {
  run common/run-program $cases
  [ "$status" -eq 0 ]
  grep -vE "$unsettled" <<<"$output" >"$BATS_TEST_TMPDIR/got"
  grep -vE "$unsettled" tests/emulator/recorded/texture_cases.txt >"$BATS_TEST_TMPDIR/recorded"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/recorded")" -gt 900 ]
  run diff "$BATS_TEST_TMPDIR/got" "$BATS_TEST_TMPDIR/recorded"
  echo "$output" | head -n 5 | cut -c1-200
  [ "$status" -eq 0 ]
}

# $1: the number of the fault, $2: its rule, $3: what the explanation says, $4: the error, as on an
# H200 (which goes on reading through a handle that was destroyed)
fault_is_named() {
  run common/emulator/emulate $cases --fault "$1"
  echo "$output"
  [[ $output == *"emulator: $2: kernel "* ]]
  [[ ${output//$'\n'  / } == *"$3"* ]]
  [[ $output == *"${4:-cudaErrorIllegalAddress}"* ]]
}

@test "a surface read and a write outside: the byte, the row, the surface's size" {
  fault_is_named 0 surface-out-of-bounds "byte 128 of row 0"
  fault_is_named 1 surface-out-of-bounds "byte 0 of row 4"
}

@test "a texture that was destroyed, an invalid handle, a surface's handle for a texture" {
  fault_is_named 2 texture-object "it was destroyed, or never made by this program"
  fault_is_named 3 texture-object "no texture object has the handle 0x123456789"
  fault_is_named 4 texture-object "is that of a surface object"
}

@test "linear memory read like an array, an array that was freed" {
  fault_is_named 6 texture-object "is of linear memory, but the instruction reads two dimensions"
  fault_is_named 7 texture-object "the array or the memory behind this texture object has been freed"
}

@test "a surface read at an odd byte: x counts bytes" {
  fault_is_named 5 surface-misaligned "the x of a surface counts bytes, not elements" \
    cudaErrorMisalignedAddress
}
