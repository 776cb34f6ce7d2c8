#!/usr/bin/env bats
# Chapter 07's library: which plan it chooses, and how its clusters share a product. make check-all runs this file;
# 07_pipelined_gemm.bats has what the chapter teaches.

load helpers
chapter=07_pipelined_gemm

@test "the last rung shares the tiles that are left over, in any order of the copies" {
  local schedule
  for schedule in late early random:1 random:2; do
    EMULATOR_SCHEDULE=$schedule exact pipelined_gemm --m 768 --n 1024 --k 1000 --blocks 10
    EMULATOR_SCHEDULE=$schedule exact pipelined_gemm --m 600 --n 1000 --k 1096 --blocks 14
  done
}

@test "the pieces of all clusters cover each tile once, whatever the product" {
  run -0 common/make/run-program build/tests/library/tile_shares
}

@test "the library's clusters keep pace in a long product" {
  run -0 common/make/run-program build/tests/library/pace
}

@test "plans by measuring are right, leave C alone, keep the fastest, and free everything when a call fails" {
  run -0 common/make/run-program build/tests/library/measured
  [[ $output == *"the stream is capturing a graph"* ]]
  [[ $output == *"the activation (GEMM_IDENTITY to GEMM_SILU) is -1, but must be 0 to 3"* ]]
  [[ $output == *"the type of C (GEMM_BF16, GEMM_FP16, GEMM_FP32) is 3, but must be 0 to 2"* ]]
}

@test "plans take other pointers, a workspace of the caller's and a stream, and leave captures alone" {
  run -0 common/make/run-program build/tests/library/embedded
}

@test "one plan in two streams at once is reported where its operands are copied, and not behind an event" {
  [ "$DEVICE" != gpu ] || skip "the emulator reports it"
  run -3 --separate-stderr common/make/run-program build/tests/library/embedded --unordered 1
  [[ $stderr == *"emulator: stream-race: error in kernel gemm_"* ]]
}

@test "the library and attention as PyTorch extensions agree with PyTorch; the recipe has at most 150 lines" {
  [ "$(wc -l <07_pipelined_gemm/library/tools/from_pytorch.py)" -le 150 ]
  run -0 07_pipelined_gemm/library/tools/from_pytorch.py
  [[ $output != *"from_pytorch: skipped: "* ]] || skip "${output#*skipped: }"
  [ "${lines[-1]}" = "PASS from_pytorch" ]
}

@test "the choice loses little at products that were measured with every configuration" {
  run -0 common/make/run-program build/tests/library/choice
}
