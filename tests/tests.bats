#!/usr/bin/env bats
# The tests themselves: each assertion can fail, and none runs without a folder of its own.

load helpers

# Not as a here-document: bats would take its lines for tests of this file.
write_test() { # LINES...
  printf '%s\n' 'load helpers' 'setup() {' '  begin_test' '}' "@test \"one\" {" "$@" '}' \
    >"$BATS_TEST_TMPDIR/one.bats"
}

@test "every assertion of every test can fail" {
  run -0 tests/lint_tests tests/*.bats emulator/tests/*.bats
}

@test "assertions that cannot fail are refused, with file and line" {
  local line
  for line in '[ "$status" -eq 0 ] && [ "$output" = 7 ]' '[ 1 -eq 1 ] && [[ $output == *x* ]]' \
    '! grep -q x file' 'diff a b && diff c d' '[ "$status" -eq 0 ] || true' 'grep -q x file || :'; do
    write_test "  $line" "  true"
    run -1 tests/lint_tests "$BATS_TEST_TMPDIR/one.bats"
    [[ $output == *"one.bats:6: "*"never fails the test"* ]]
  done
}

@test "a run whose result nothing looks at is refused" {
  write_test '  run one' '  run two' '  [ "$status" -eq 0 ]' '  X=1 run three' '  true'
  run -1 tests/lint_tests "$BATS_TEST_TMPDIR/one.bats"
  [[ ${lines[0]} == *"one.bats:6: nothing looks at what this run returned or printed:   run one" ]]
  [[ ${lines[1]} == *"one.bats:9: nothing looks at what this run returned or printed:   X=1 run three" ]]
  [ "${#lines[@]}" -eq 2 ]
}

@test "conditions, here-documents and quoted text are no assertions" {
  write_test '  if [ a ] && [ b ]; then true; fi' '  [[ $output == "a && b" ]]' '  ! false || false' \
    "  cat <<'END'" 'a && b' 'END' "  awk '" '    a && b { print }' "  '" '  x=$(cd / && pwd)'
  run -0 tests/lint_tests "$BATS_TEST_TMPDIR/one.bats"
}

@test "a file without helpers, or a setup() that does not call begin_test, is refused" {
  local head
  for head in $'setup() {\n  cd ..\n}' $'load helpers\nsetup() {\n  cd ..\n}' 'chapter=one'; do
    printf '%s\n' "$head" >"$BATS_TEST_TMPDIR/one.bats"
    run -1 tests/lint_tests "$BATS_TEST_TMPDIR/one.bats"
    [[ $output == *"no setup() that calls begin_test"* ]]
  done
  echo 'load helpers' >"$BATS_TEST_TMPDIR/one.bats"
  run -0 tests/lint_tests "$BATS_TEST_TMPDIR/one.bats"
}

@test "with a bats that sets no BATS_TEST_TMPDIR a test stops before it does anything" {
  run -1 bash -c 'BATS_TEST_TMPDIR=; source tests/helpers.bash; begin_test; touch "$1"' - "$BATS_TEST_TMPDIR/went_on"
  [[ $output == *"these tests need bats 1.8 or newer"* ]]
  [ ! -e "$BATS_TEST_TMPDIR/went_on" ]
}

@test "what a test runs in Python writes nothing beside its modules" {
  mkdir "$BATS_TEST_TMPDIR/modules"
  touch "$BATS_TEST_TMPDIR/modules/one.py"
  unset PYTHONDONTWRITEBYTECODE
  begin_test
  PYTHONPATH=$BATS_TEST_TMPDIR/modules python3 -c 'import one'
  [ "$(ls "$BATS_TEST_TMPDIR/modules")" = one.py ]
}
