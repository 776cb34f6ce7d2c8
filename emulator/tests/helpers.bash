# helpers.bash: what every test file loads, those of the lessons by way of tests/helpers.bash.

# Before each test. A file with more to do in the test's folder has a setup() of its own.
setup() { begin_test; }

# The first thing in every setup(): into the repository's folder, with a folder for the test. A bats
# before 1.8 sets no BATS_TEST_TMPDIR, and tests would write to and delete from "/" and "".
begin_test() {
  if [ ! -d "${BATS_TEST_TMPDIR:-}" ]; then
    echo "BATS_TEST_TMPDIR is '${BATS_TEST_TMPDIR:-}', which is no folder: these tests need bats 1.8 or" \
      "newer. make check finds one or fetches it." >&2
    exit 1
  fi
  bats_require_minimum_version 1.5.0 # for run -N, which also says which exit code it expects
  cd "${BASH_SOURCE[0]%/*}/../.." || exit 1
  [ -z "${WITHOUT_NVCC:-}" ] || skip_without_nvcc
  needs_built_programs
  # No test may depend on how busy the host is: what a long run says on stderr is off but where it is the subject.
  export EMULATOR_PATIENCE=0
  # Two files of tests run at a time: what Python keeps beside its modules would come and go while another copies them.
  export PYTHONDONTWRITEBYTECODE=1
  # What a program printed tells more than its exit code, also where somebody starts bats without the option for it.
  BATS_PRINT_OUTPUT_ON_FAILURE=1
}

# make check has built what a file of tests needs. Somebody who starts it by hand is told what to type, also where a program
# is older than its sources: it lacks what was just added, and a test would fail as if that were wrong.
needs_built_programs() {
  local name=${BATS_TEST_FILENAME##*/} programs program missing=''
  if [ -n "${TESTS_ARE_BUILT:-}" ] || [[ $BATS_TEST_FILENAME == */long/* ]] || [ -e "$BATS_FILE_TMPDIR/built" ]; then return; fi
  programs=$(env -u MAKEFLAGS -u MAKELEVEL make -s programs-of-tests TESTS="${name%.bats}")
  for program in $programs; do
    [ -e "$program" ] || missing+=" ${program#"$PWD/"}"
  done
  if [ -n "$missing" ]; then
    missing="not built:$missing"
  else
    # shellcheck disable=SC2086
    env -u MAKEFLAGS -u MAKELEVEL make -q $programs >/dev/null 2>&1 || [ $? -ne 1 ] || missing="a program is older than its sources"
  fi
  if [ -n "$missing" ]; then
    echo "$missing: type make check-programs TESTS=${name%.bats} (TESTS_ARE_BUILT=yes runs what is there)" >&2
    exit 1
  fi
  : >"$BATS_FILE_TMPDIR/built"
}

# Without nvcc (emulator/Makefile) a test that needs it is skipped, and says for what.
skip_without_nvcc() {
  local needed
  needed=$(awk -v test="$BATS_TEST_DESCRIPTION" -v programs="$WITHOUT_NVCC" \
    -f emulator/tests/without_nvcc.awk "$BATS_TEST_FILENAME")
  [ -z "$needed" ] || skip "needs $needed, and is skipped without nvcc"
}

# Where the toolkit is, or its headers alone: what only needs those must not fetch a compiler.
find_toolkit() {
  if [ -z "${WITHOUT_NVCC:-}" ]; then common/make/find-toolkit "$PWD/build"; else emulator/find-headers "$PWD/build"; fi
}

# A program of these lines of sh.
script() { # FILE LINE...
  mkdir -p "$(dirname "$1")"
  printf '%s\n' '#!/bin/sh' "${@:2}" >"$1"
  chmod +x "$1"
}

# emulate answers with this message alone, exit code 2.
emulate_refuses() { # MESSAGE ARGUMENT...
  run -2 "${emulate:-emulator/emulate}" "${@:2}"
  [ "$output" = "emulate: $1" ]
}

# Writes the PTX on standard input as a module, behind the head that all modules have; its file is $module.
ptx() {
  module=$BATS_TEST_TMPDIR/module.ptx
  { printf '%s\n' '.version 9.0' '.target sm_90a' '.address_size 64'; cat; } >"$module"
}

# ---- Results of tensor cores that an H200 gave ----

# TENSOR_CASES=all: a million results of each form instead of some tens of thousands.
choose_tensor_cases() {
  if [ "${TENSOR_CASES:-}" = all ]; then option=--all suffix=_all; else option='' suffix=''; fi
}

# Everything but the first line, which names the device; and nothing on stderr: no findings.
gives_the_recorded_bits() { # NAME
  emulator/emulate "build/emulator/tests/$1" $option \
    >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || return 1
  diff <(tail -n +2 "$BATS_TEST_TMPDIR/out") \
    <(tail -n +2 "emulator/tests/recorded/$1$suffix.txt") || return 1
  diff /dev/null "$BATS_TEST_TMPDIR/err"
}
