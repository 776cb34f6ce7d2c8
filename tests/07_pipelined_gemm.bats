#!/usr/bin/env bats
# Chapter 07: every rung gives the H200's bits (the recorded output holds checksums of C), takes any
# size that TMA can read, and refuses others with a sentence.

load helpers
chapter=07_pipelined_gemm

refused() {
  run -2 common/make/run-program build/07_pipelined_gemm/pipelined_gemm "$@"
}

@test "the programs print what was recorded; every rung gives the recorded bits" {
  print_what_was_recorded library/layouts swizzle_mismatch # the first in layouts.bats, the second below
}

@test "every rung computes a product of any size that TMA can read" {
  local rung
  for rung in tiled serial ring producer_consumer two_consumers multicast persistent tma_epilogue \
    overlapped_epilogue carried_tile small_shapes; do
    exact "$rung" --m 333 --n 264 --k 136
  done
}

@test "the last rung computes products with few rows, few columns and a short k" {
  exact pipelined_gemm --m 1 --n 8 --k 8
  exact pipelined_gemm --m 777 --n 8 --k 72 --blocks 2
  exact pipelined_gemm --m 3 --n 1000 --k 200
}

@test "--no-check: a rung computes once and compares nothing, so the clock may leave out the arithmetic" {
  EMULATOR_CLOCK=h200 EMULATOR_MATH=skip run -0 --separate-stderr emulator/emulate build/07_pipelined_gemm/ring \
    --m 256 --n 512 --k 256 --no-check
  [ "${lines[1]}" = "PASS ring: computed once, not checked" ]
  [[ $stderr == *" clocks, "* ]]
  EMULATOR_CLOCK=h200 EMULATOR_MATH=skip run -1 emulator/emulate build/07_pipelined_gemm/ring --m 256 --n 512 --k 256
}

@test "sizes that are zero, too large, no numbers or no multiples of 8: exit 2" {
  refused --m 0
  refused --n 99999999999
  refused --k many
  refused --n 77
  [[ $output == *"--n is 77, but must be a multiple of 8"* ]]
  refused --m 512 --k 100
  [[ $output == *"--k is 100, but must be a multiple of 8"* ]]
}

@test "swizzle_mismatch prints what was recorded, and the emulator names the mistake" {
  run common/make/run-program build/$chapter/swizzle_mismatch
  if [[ $output == *"Emulated"* ]]; then
    [ "$status" -eq 3 ]
    [[ $output == *"swizzle-mismatch"* ]]
    run -0 common/make/run-chapters "$PWD/build/$chapter/swizzle_mismatch"
    [[ $output == *"(exit code 3: this program makes its mistake on purpose)"* ]]
  else
    [ "$status" -eq 0 ]
  fi
  common/make/run-program build/$chapter/swizzle_mismatch 2>/dev/null |
    tail -n +2 | diff - tests/recorded/$chapter/swizzle_mismatch.txt
}

@test "each pitfall is reported by its rule" { try_pitfalls; }
