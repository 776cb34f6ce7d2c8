#!/usr/bin/env bats
# Arithmetic, loads, stores and atomics on the emulator against what one NVIDIA H200 answered in
# November 2026: 1,356 forms of instructions (recorded/alu_cases.bin) and 634 of video instructions
# (recorded/video_cases.bin), each at 4,096 operands. To record anew: alu_cases record
# tests/emulator/recorded/alu_cases.bin on an H200; the same with video_cases.

# Thousands of kernels take half a minute to compile: only when the cases have changed.
build_cases() { # NAME OPTIONS: alu_cases of NAME.txt
  local name=$1
  shift
  "$BUILT/alu_generate" "$ROOT/tests/emulator/$name.txt" >"$BATS_FILE_TMPDIR/$name.cu"
  if ! cmp -s "$BATS_FILE_TMPDIR/$name.cu" "$BUILT/$name.cu" ||
    [ "$ROOT/tests/emulator/alu_main.cuh" -nt "$BUILT/$name" ]; then
    rm -f "$BUILT/$name"
    cp "$BATS_FILE_TMPDIR/$name.cu" "$BUILT/$name.cu"
  fi
  [ -x "$BUILT/$name" ] ||
    "${NVCC:-nvcc}" "$@" -I"$ROOT/tests/emulator" -gencode arch=compute_90a,code=compute_90a \
      -cudart shared --no-compress -O3 ${SANITIZE:+-lasan} -o "$BUILT/$name" "$BUILT/$name.cu"
}

setup_file() {
  ROOT=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
  export ROOT BUILT=$ROOT/build/tests/emulator
  mkdir -p "$BUILT"
  make --no-print-directory -C "$ROOT" emulator >&2
  ${CC:-cc} -std=c11 -O1 -Wall -Wextra -Werror -o "$BUILT/alu_generate" \
    "$ROOT/tests/emulator/alu_generate.c"
  build_cases alu_cases
  build_cases video_cases -DKEPT_ANSWERS=64
  export EMULATE=$ROOT/common/emulator/emulate
}

bats_require_minimum_version 1.5.0

@test "every arithmetic and memory instruction answers as the H200 did" {
  run --separate-stderr "$EMULATE" "$BUILT/alu_cases" check \
    "$ROOT/tests/emulator/recorded/alu_cases.bin"
  echo "$output"
  echo "$stderr"
  [ "$status" -eq 0 ]
  [ "${lines[-1]}" = "PASS alu_cases: 1356 instructions, 0 differ" ]
  [ -z "$stderr" ]
}

@test "every video instruction answers as the H200 did" {
  run --separate-stderr "$EMULATE" "$BUILT/video_cases" check \
    "$ROOT/tests/emulator/recorded/video_cases.bin"
  echo "$output"
  echo "$stderr"
  [ "$status" -eq 0 ]
  [ "${lines[-1]}" = "PASS alu_cases: 634 instructions, 0 differ" ]
  [ -z "$stderr" ]
}

@test "a recording of other cases is refused" {
  head -c 1000 "$ROOT/tests/emulator/recorded/alu_cases.bin" >"$BATS_TEST_TMPDIR/short.bin"
  run "$EMULATE" "$BUILT/alu_cases" check "$BATS_TEST_TMPDIR/short.bin"
  [ "$status" -eq 1 ]
  [[ $output == *"the recording is not of these cases"* ]]
}

@test "alu_generate names a line without an instruction" {
  printf 'i ii\n' >"$BATS_TEST_TMPDIR/bad.txt"
  run "$BUILT/alu_generate" "$BATS_TEST_TMPDIR/bad.txt"
  [ "$status" -eq 2 ]
  [[ $output == *"no instruction in"* ]]
}
