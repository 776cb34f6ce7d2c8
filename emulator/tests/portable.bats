#!/usr/bin/env bats
# The portable library is made of the lines that a processor without SSE and AVX compiles, such as ARM's: they give the
# bits that an H200 gave, as those for this processor do (alu, matrices, tensor_core, tma).
# builds: emulator/portable/%

load helpers

setup() {
  begin_test
  export LD_LIBRARY_PATH=build/emulator/portable EMULATOR_CHECK=off
  built=build/emulator/tests
  recorded=emulator/tests/recorded
}

@test "portable: every arithmetic and memory instruction, and what NaNs become" {
  gzip -dc $recorded/alu_cases.bin.gz >"$BATS_TEST_TMPDIR/alu_cases.bin"
  run -0 $built/alu_cases check "$BATS_TEST_TMPDIR/alu_cases.bin"
  [[ ${lines[-1]} == "PASS alu_cases: "*" instructions, 0 differ" ]]
  diff <(gzip -dc $recorded/convert_nan.txt.gz | grep -v '^#') <($built/convert_nan)
  run -0 $built/approximate_values check $recorded/approximate_hashes.bin
  [ "${lines[-1]}" = "PASS approximate_values: 39 binades, 0 differ" ]
}

@test "portable: mma.sync, ldmatrix, stmatrix, movmatrix and every eleventh result of wgmma" {
  diff <(tail -n +2 $recorded/mma_cases.txt) <($built/mma_cases | tail -n +2)
  run -0 $built/wgmma_cases --every 4
  digests=$(grep ' results ' <<<"$output")
  [ "$(wc -l <<<"$digests")" -eq 11 ]
  run -1 grep -v -x -F -f $recorded/wgmma_cases.txt <<<"$digests"
}

@test "portable: copies, reduces and im2col columns; a large tensor's stores" {
  diff <(gzip -dc $recorded/tma_cases.txt.gz) <($built/tma_cases 2>/dev/null)
  run -0 build/07_pipelined_gemm/pipelined_gemm --m 2048 --n 1024 --k 64 # C has the 4 MiB of STREAMED_BYTES
  [[ ${lines[-1]} == PASS* ]]
}
