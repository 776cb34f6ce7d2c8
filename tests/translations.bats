#!/usr/bin/env bats
# TRANSLATIONS.md: the wrappers and libcu++'s functions give the compiler the same instructions. CuTe's and the names of
# the Python packages need wheels: tests/translations/check.

load helpers

@test "translations: each pair of a wrapper and a libcu++ function is the same instruction" {
  [ -e build/tests/translations/pairs.ptx ] || skip "this toolkit has no cuda/ptx"
  run -0 python3 tests/translations/pairs.py build/tests/translations/pairs.ptx
  [[ ${lines[-1]} == *" pairs, 0 differ" ]]
}

@test "translations: two different instructions are found" {
  printf '.entry ours_a(\n// begin inline asm\nfence.proxy.async;\n// end inline asm\n.entry theirs_a(\n// begin inline asm\nfence.proxy.alias;\n// end inline asm\n' \
    >"$BATS_TEST_TMPDIR/pairs.ptx"
  run -1 python3 tests/translations/pairs.py "$BATS_TEST_TMPDIR/pairs.ptx"
  [[ $output == *"DIFFERENT  a: "* ]]
}
