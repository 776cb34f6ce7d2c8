#!/usr/bin/env bats
# Arithmetic, loads, stores and atomics on the emulator against what a GPU answered in November 2026:
# the forms of instructions of alu_cases.txt (recorded/alu_cases.bin.gz, an H100), each at 4,096 operands, and all 2^32
# arguments of the approximate functions (recorded/approximate_hashes.bin, an H100).

load helpers
built=build/emulator/tests
recorded=emulator/tests/recorded

@test "every arithmetic and memory instruction answers as the H200 did" {
  gzip -dc "$recorded/alu_cases.bin.gz" >"$BATS_TEST_TMPDIR/alu_cases.bin"
  run -0 --separate-stderr emulator/emulate "$built/alu_cases" check "$BATS_TEST_TMPDIR/alu_cases.bin"
  [[ ${lines[-1]} == "PASS alu_cases: "*" instructions, 0 differ" ]]
  [ -z "$stderr" ]
}

@test "a recording of other cases is refused" {
  gzip -dc "$recorded/alu_cases.bin.gz" | head -c 1000 >"$BATS_TEST_TMPDIR/short.bin"
  run -1 emulator/emulate "$built/alu_cases" check "$BATS_TEST_TMPDIR/short.bin"
  [[ $output == *"the recording is not of these cases (at "*": common/make/record emulator/tests/recorded/alu_cases.bin.gz" ]]
  { gzip -dc "$recorded/alu_cases.bin.gz"; echo; } >"$BATS_TEST_TMPDIR/long.bin"
  run -1 emulator/emulate "$built/alu_cases" check "$BATS_TEST_TMPDIR/long.bin"
  [[ ${lines[-1]} == *"the recording is not of these cases (after "* ]]
}

@test "alu_generate names a line without an instruction" {
  printf 'i ii\n' >"$BATS_TEST_TMPDIR/bad.txt"
  run -2 "$built/alu_generate" "$BATS_TEST_TMPDIR/bad.txt"
  [[ $output == *"no instruction in"* ]]
}

@test "cvt.pack into 4 and 2 bits: both values clamped, the third above them" {
  ptx <<'EOF'
.entry pack(.param .u64 out) {
  .reg .b32 %r<9>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  mov.b32 %r1, -100; mov.b32 %r2, 100; mov.b32 %r3, 0x89abcdef;
  cvt.pack.sat.u4.s32.b32 %r4, %r1, %r2, %r3;
  cvt.pack.sat.s4.s32.b32 %r5, %r1, %r2, %r3;
  cvt.pack.sat.u2.s32.b32 %r6, %r1, %r2, %r3;
  cvt.pack.sat.s2.s32.b32 %r7, %r1, %r2, %r3;
  st.global.v4.b32 [%rd1], {%r4, %r5, %r6, %r7};
  ret;
}
EOF
  run -0 $built/run_ptx "$module" pack 1 1 buffer:u32:4
  [ "${lines[1]}" = "0: $((0xabcdef0f)) $((0xabcdef87)) $((0x9abcdef3)) $((0x9abcdef9))" ]
}

@test "approximate functions give the GPU's bits: every value of the binades that decide" {
  run -0 --separate-stderr emulator/emulate "$built/approximate_values" check \
    "$recorded/approximate_hashes.bin"
  [ "${lines[-1]}" = "PASS approximate_values: 39 binades, 0 differ" ]
  [ -z "$stderr" ]
}

@test "GELU, softmax, layer norm and a rotary embedding with fast functions: the GPU's bits" {
  run -0 --separate-stderr emulator/emulate "$built/approximate_kernels"
  [ "$output" = "$(cat "$recorded/approximate_kernels.txt")" ]
  [ -z "$stderr" ]
}

@test "fuzz_arithmetic names the instruction whose result differs" {
  run -0 emulator/tests/long/fuzz_arithmetic make "$BATS_TEST_TMPDIR/fuzz" 1 1
  run -0 emulator/emulate "$built/run_straight" "$BATS_TEST_TMPDIR/fuzz/000.ptx" \
    "$BATS_TEST_TMPDIR/one"
  cp "$BATS_TEST_TMPDIR/one" "$BATS_TEST_TMPDIR/two"
  printf '\x05' | dd of="$BATS_TEST_TMPDIR/two" bs=1 seek=1000000 conv=notrunc
  run -1 emulator/tests/long/fuzz_arithmetic compare "$BATS_TEST_TMPDIR/fuzz" "$BATS_TEST_TMPDIR/one" \
    "$BATS_TEST_TMPDIR/two"
  [[ "${lines[0]}" = "module 0, kernel 39, step 3, thread 8: "* ]]
  [ "${lines[1]}" = "FAIL fuzz_arithmetic: 50 kernels of 50 instructions, 1 differ; 0 NaNs masked" ]
}

@test "approximate_values names the binade whose results are others" {
  cp "$recorded/approximate_hashes.bin" "$BATS_TEST_TMPDIR/other.bin"
  printf 'x' | dd of="$BATS_TEST_TMPDIR/other.bin" bs=1 seek=$((8 * (512 + 127))) conv=notrunc
  run -1 emulator/emulate "$built/approximate_values" check "$BATS_TEST_TMPDIR/other.bin" \
    rcp.approx.ftz.f32 127
  [ "${lines[-2]}" = "rcp.approx.ftz.f32: the results for 0x3f800000 to 0x3fffffff are not those of the GPU" ]
  [ "${lines[-1]}" = "FAIL approximate_values: 5 binades, 1 differ" ]
}

@test "cvt keeps those bits of a NaN's payload that an H100 keeps" {
  run -0 --separate-stderr emulator/emulate "$built/convert_nan"
  [ -z "$stderr" ]
  diff <(gzip -dc "$recorded/convert_nan.txt.gz" | grep -v '^#') - <<<"$output"
}
