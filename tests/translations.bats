#!/usr/bin/env bats
# TRANSLATIONS.md: the wrappers and libcu++'s functions give the compiler the same instructions. CuTe's and the names of
# the Python packages need wheels: tests/translations/check.

load helpers

setup() {
  begin_test
  nvcc=$(common/find-toolkit build)/bin/nvcc
}

@test "translations: each pair of a wrapper and a libcu++ function is the same instruction" {
  header=$(find "$(dirname "$nvcc")/../" -path '*cuda/ptx' 2>/dev/null | head -n 1)
  [ -n "$header" ] || skip "this toolkit has no cuda/ptx"
  "$nvcc" -std=c++17 -arch=compute_90a -ptx -o "$BATS_TEST_TMPDIR/pairs.ptx" tests/translations/libcudacxx.cu
  run python3 tests/translations/pairs.py "$BATS_TEST_TMPDIR/pairs.ptx"
  echo "$output"
  [ "$status" -eq 0 ]
  [[ ${lines[-1]} == *" pairs, 0 differ" ]]
}

@test "translations: two different instructions are found" {
  printf '.entry ours_a(\n// begin inline asm\nfence.proxy.async;\n// end inline asm\n.entry theirs_a(\n// begin inline asm\nfence.proxy.alias;\n// end inline asm\n' \
    >"$BATS_TEST_TMPDIR/pairs.ptx"
  run python3 tests/translations/pairs.py "$BATS_TEST_TMPDIR/pairs.ptx"
  [ "$status" -eq 1 ]
  [[ $output == *"DIFFERENT  a: "* ]]
}
