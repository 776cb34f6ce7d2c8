#!/usr/bin/env bats
# What a person at a terminal sees: commands that end although nobody types.

load helpers

setup() {
  begin_test
  # The outer make must not leak its goals and flags into the ones tried here.
  unset MAKEFLAGS MAKELEVEL MAKEOVERRIDES MFLAGS EXERCISE TO
  export EXERCISES=$BATS_TEST_TMPDIR/exercises TERM=xterm
  python3 -c 'import pty; pty.openpty()' 2>/dev/null || skip "no terminal can be made here (/dev/pts)"
}

in_terminal() { # EXIT_CODE COLUMNS COMMAND...
  run "-$1" tests/in_terminal.py 900 "${@:2}"
}

@test "terminal: make run-02 ends by itself" {
  in_terminal 0 80 make run-02
  [[ $output == *"PASS tma_load: "* ]]
}

@test "terminal: make run ends with the command that shows a report, and it can be copied" {
  # On a GPU this program hangs.
  in_terminal 0 80 env DEVICE=emulator make run-02 PROGRAM=pitfalls/too_many_bytes
  local command=${output##*See it: }
  [ "$command" != "$output" ]
  command=${command%%$'\r\n'*}
  [[ $command == "EMULATOR_THREADS=1 emulator/emulate --page page.html build/02_tma_load/pitfalls/too_many_bytes" ]]
  run -1 bash -c "${command/page.html/"$BATS_TEST_TMPDIR/page.html"}"
  grep -q '^\["fault",' "$BATS_TEST_TMPDIR/page.html"
}

@test "terminal: make check-05 ends by itself" {
  in_terminal 0 80 env -u PITFALL_ORDERS make check-05
  [[ $output == *" passed, 0 failed, "* ]]
}

@test "terminal: make take-02 and make take end by themselves" {
  for goal in take-02 take; do
    in_terminal 0 80 make $goal TO="$BATS_TEST_TMPDIR/taken"
    [[ $output == *"wrote "*"/tma_load.cuh"* ]]
  done
  in_terminal 0 80 common/exercises/take 02
}

@test "terminal: an exercise is started, judged and hinted at" {
  for goal in exercise-02 exercise-02 hint-02 exercises-02; do
    in_terminal 0 80 make $goal
  done
}

@test "terminal: whatever a rule starts has an empty input" {
  printf 'include %s/common/make/lesson.mk\nreads:\n\t@cat\n\t@echo "then $$(wc -c)"\n' "$PWD" >"$BATS_TEST_TMPDIR/Makefile"
  in_terminal 0 80 make --no-print-directory -C "$BATS_TEST_TMPDIR" reads
  [[ $output == *"then 0"* ]]
}

@test "terminal: TERM=dumb, an empty one and none get no escape sequences" {
  for terminal in TERM=dumb TERM= -uTERM; do
    in_terminal 0 80 env $terminal common/make/run-program build/02_tma_load/tma_load
    [[ $output != *$'\e'* ]]
  done
  in_terminal 0 80 common/make/run-program build/02_tma_load/tma_load
  [[ $output == *$'\e[2m'* ]]
}
