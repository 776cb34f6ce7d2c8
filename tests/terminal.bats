#!/usr/bin/env bats
# What a person at a terminal sees: commands that end although nobody types, and progress that fits.

load helpers

setup() {
  begin_test
  # The outer make must not leak its goals and flags into the ones tried here.
  unset MAKEFLAGS MAKELEVEL MAKEOVERRIDES MFLAGS EXERCISE TO STEPS STEPS_TOTAL
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
  [[ $command == "EMULATOR_THREADS=1 $PWD/emulator/emulate --page page.html --at finding $PWD/build/02_tma_load/pitfalls/too_many_bytes" ]]
  cd "$BATS_TEST_TMPDIR"
  run -1 bash -c "$command"
  grep -q '^\["fault",' page.html
}

@test "terminal: make check-02 ends by itself" {
  in_terminal 0 80 make check-02
  [[ $output == *" passed, 0 failed, "* ]]
}

@test "terminal: make take-02 and make take end by themselves" {
  for goal in take-02 take; do
    in_terminal 0 80 make $goal TO="$BATS_TEST_TMPDIR/taken"
    [[ $output == *"wrote "*"/tma_load.cuh"* ]]
  done
  in_terminal 0 80 common/exercises/take 02
}

@test "terminal: the headers of make take, as make check builds them" {
  in_terminal 0 80 make V=1 -W "$PWD/common/exercises/take" build/tests/take/02/example
  [[ $output == *"tests/take/build 02 "* ]]
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
    in_terminal 0 80 env $terminal make -W "$PWD/common/tile.c" build/common/tensor-map build/02_tma_load/first_load
    [[ $output != *$'\e'* ]]
    in_terminal 0 80 env $terminal common/make/run-program build/02_tma_load/tma_load
    [[ $output != *$'\e'* ]]
  done
  in_terminal 0 80 common/make/run-program build/02_tma_load/tma_load
  [[ $output == *$'\e[2m'* ]]
}

# A tree of its own whose steps sleep.
steps_for() { # SECONDS...
  export STEPS=$BATS_TEST_TMPDIR/steps
  mkdir "$STEPS"
  : >"$STEPS/ended"
  : >"$STEPS/shown.0"
  date +%s >"$STEPS/began"
}

@test "step: shows what runs and for how long, in one line that is cut to the width" {
  steps_for
  STEPS_TOTAL=2 in_terminal 0 40 bash -c \
    'common/make/step a/first/step/with/a/long/name sleep 3 & common/make/step b/second true; wait'
  [[ $output == *$'\e[K[1/2] a/first/step/with/a/long/name 2 s'* ]]
  [[ $output == *$'\e[K[2/2] built in '*' s'* ]]
  # Between two beginnings of the line there are never 40 characters, at which a terminal would wrap.
  run bash -c 'tr "\r" "\n" <<<"$1" | sed "s/\x1b\[K//" | grep -c ".\{40\}"' - "$output"
  [ "$output" = 0 ]
}

@test "step: a step that fails says so in a line of its own, and nothing is written over it" {
  steps_for
  STEPS_TOTAL=3 in_terminal 7 80 bash -c \
    'common/make/step slow sleep 4 & common/make/step wrong bash -c "sleep 1; echo because >&2; exit 7"; code=$?; wait; exit $code'
  [[ $output == *$'\r\e[Kbecause'* ]]
  [[ ${output##*because} != *slow* ]]
}

@test "step: two makes at once count their own steps" {
  local own=$BATS_TEST_TMPDIR/build
  tests/in_terminal.py 900 80 make BUILD="$own" "$own/common/libcommon.a" >"$BATS_TEST_TMPDIR/one" 3>&- &
  tests/in_terminal.py 900 80 make BUILD="$own" "$own/common/find-device" >"$BATS_TEST_TMPDIR/two" 3>&- &
  wait
  cat "$BATS_TEST_TMPDIR"/{one,two}
  for name in one two; do
    total=$(sed -n 's|.*\[\([0-9]*\)/\([0-9]*\)\] built in .*|\1 of \2|p' "$BATS_TEST_TMPDIR/$name")
    [[ $total == 2\ of\ 2 ]] || [ $name = one ]
    [[ $total =~ ^([0-9]+)\ of\ ([0-9]+)$ ]]
    [ "${BASH_REMATCH[1]}" -eq "${BASH_REMATCH[2]}" ]
  done
}
