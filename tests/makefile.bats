#!/usr/bin/env bats
# The Makefile's behaviour, as a person at the shell sees it.

load helpers

setup() {
  begin_test
  # The outer make must not leak its goals and flags into the ones tried here.
  unset MAKEFLAGS MAKELEVEL MAKEOVERRIDES MFLAGS
}

@test "help names every goal in one line" {
  run make help
  [ "$status" -eq 0 ]
  for goal in run check bench figures format clean help emulator pitfalls exercise hint take; do
    [ "$(grep -c "make $goal " <<<"$output")" -eq 1 ]
  done
  [[ $output == *"DEVICE=gpu|emulator"* ]]
}

@test "help inside a chapter is the same list" {
  [ "$(make -C 02_tma_load --no-print-directory help)" = "$(make help)" ]
}

@test "a wrong DEVICE is named, with the choices, exit code 2" {
  run make DEVICE=tpu run
  [ "$status" -eq 2 ]
  [[ $output == *"DEVICE is 'tpu', but must be gpu or emulator"* ]]
}

@test "a wrong V is named, exit code 2" {
  run make V=3 help
  [ "$status" -eq 2 ]
  [[ $output == *"V is '3', but must be 0 or 1"* ]]
}

@test "a chapter that does not exist is named, with those that do" {
  run make run-09
  [ "$status" -eq 2 ]
  [[ $output == *"there is no chapter '09'"* ]]
  [[ $output == *02_tma_load* ]]
}

@test "a CUDA_HOME without nvcc is refused, exit code 2" {
  run make CUDA_HOME=/nonexistent all
  [ "$status" -eq 2 ]
  [[ $output == *"CUDA_HOME is '/nonexistent', but there is no bin/nvcc in it"* ]]
}

@test "an nvcc that is too old is refused with its version" {
  mkdir -p "$BATS_TEST_TMPDIR/old/bin"
  printf '#!/bin/sh\necho "Cuda compilation tools, release 12.4, V12.4.131"\n' \
    >"$BATS_TEST_TMPDIR/old/bin/nvcc"
  chmod +x "$BATS_TEST_TMPDIR/old/bin/nvcc"
  run make CUDA_HOME="$BATS_TEST_TMPDIR/old" all
  [ "$status" -eq 2 ]
  [[ $output == *"nvcc 12.4, but the lessons need 12.5 or newer"* ]]
}

@test "without nvcc and python3 the message says what to type" {
  [ ! -e /usr/local/cuda/bin/nvcc ] || skip "this machine has a toolkit in /usr/local/cuda"
  mkdir -p "$BATS_TEST_TMPDIR/bin"
  for tool in bash dirname sed sort head g++ cat; do
    ln -s "$(command -v $tool)" "$BATS_TEST_TMPDIR/bin/$tool"
  done
  PATH=$BATS_TEST_TMPDIR/bin CUDA_HOME='' run common/find-toolkit "$BATS_TEST_TMPDIR/build"
  [ "$status" -eq 2 ]
  [[ $output == *"apt-get install python3-pip"* ]]
}

@test "a second make does nothing" {
  make all >/dev/null
  run make -q all
  [ "$status" -eq 0 ]
}

@test "changing one header rebuilds what includes it, and nothing else" {
  run make -n -W "$PWD/05_multicast/tma_multicast.cuh" all
  [ "$status" -eq 0 ]
  [[ $output == *build/05_multicast/multicast* ]]
  [[ $output != *build/03_tma_store/* ]]
}

@test "a chapter builds and checks by itself" {
  run make -C 03_tma_store -n all
  [ "$status" -eq 0 ]
  run make -n check-03
  [ "$status" -eq 0 ]
  [[ $output == *tests/03_tma_store.bats* ]]
  [[ $output != *tests/02_tma_load.bats* ]]
  run make -C 03_tma_store -n check
  [[ $output == *tests/03_tma_store.bats* ]]
}

@test "a chapter may be named by one digit, but not by a part of its number" {
  run make -n run-2
  [ "$status" -eq 0 ]
  [[ $output == *"run-chapters "*"/02_tma_load/tma_load"* ]]
  for name in 0 x 002; do
    run make "run-$name"
    [ "$status" -eq 2 ]
    [[ $output == *"there is no chapter '$name'"* ]]
  done
}

@test "PROGRAM=name is built before it runs" {
  run make --no-print-directory -C 02_tma_load -n -W "$PWD/02_tma_load/ranks.cu" run PROGRAM=ranks
  [ "$status" -eq 0 ]
  [[ $output == *"nvcc "*"02_tma_load/ranks.cu"*"run-chapters "*"02_tma_load/ranks" ]]
  run make --no-print-directory run-02 PROGRAM=coordinates
  [ "$status" -eq 0 ]
  [[ $output == *"==== 02_tma_load/coordinates"* ]]
  [[ $output == *"PASS coordinates"* ]]
  [[ $output != *"==== 02_tma_load/tma_load"* ]]
}

@test "make run PROGRAM=name runs the programs of that name in all chapters" {
  run make run PROGRAM=ranks
  [ "$status" -eq 0 ]
  [[ $output == *"==== 02_tma_load/ranks"* ]]
  [[ $output == *"==== 03_tma_store/ranks"* ]]
  run make run PROGRAM=03_tma_store/ranks
  [ "$status" -eq 0 ]
  [[ $output != *"==== 02_tma_load/ranks"* ]]
}

@test "a PROGRAM that does not exist: what was asked for, which there are, exit 2" {
  for goal in "run" "run-02"; do
    for name in nope % ../tma_load "ranks nope"; do
      run make $goal PROGRAM="$name"
      echo "$output"
      [ "$status" -eq 2 ]
      [[ $output == *"PROGRAM is '${name#ranks }', but there is no such program; there are:"* ]]
      [[ $output == *"02_tma_load: "*" ranks "* ]]
      [[ $output != *"==== "* ]]
    done
  done
}

@test "run-02 runs that chapter's main program" {
  run make run-02
  [ "$status" -eq 0 ]
  [[ $output == *"==== 02_tma_load/tma_load"* ]]
  [[ $output == *"running on the "* ]]
  [[ $output == *"PASS tma_load"* ]]
  [[ $output != *"==== 03_"* ]]
}

@test "a program runs by hand" {
  make build/02_tma_load/tma_load >/dev/null
  run ./build/02_tma_load/tma_load
  [ "$status" -eq 0 ]
  [[ $output == device:* ]]
}

@test "bench without a GPU says so and exits 0" {
  ! build/common/find-device >/dev/null || skip "this machine has a GPU"
  run make bench
  [ "$status" -eq 0 ]
  [[ $output == *"there is none to measure"* ]]
}

@test "DEVICE=gpu without a GPU is refused with the reason" {
  ! build/common/find-device >/dev/null || skip "this machine has a GPU"
  run make DEVICE=gpu run-02
  [ "$status" -eq 2 ]
  [[ $output == *"there is no usable GPU"* ]]
}

@test "run-program refuses a wrong DEVICE" {
  DEVICE=tpu run common/run-program build/02_tma_load/tma_load
  [ "$status" -eq 2 ]
  [[ $output == *"DEVICE is 'tpu'"* ]]
}

@test "no empty entry comes into LD_LIBRARY_PATH: it would be the current folder" {
  printf '#!/bin/sh\necho "<$LD_LIBRARY_PATH>"\n' >"$BATS_TEST_TMPDIR/program"
  chmod +x "$BATS_TEST_TMPDIR/program"
  for device in gpu emulator; do
    DEVICE=$device LD_LIBRARY_PATH='' run common/run-program "$BATS_TEST_TMPDIR/program"
    echo "$output"
    [[ $output != *::* ]]
    [[ $output != *:\> ]]
    DEVICE=$device LD_LIBRARY_PATH=/mine run common/run-program "$BATS_TEST_TMPDIR/program"
    [[ $output == *:/mine\> ]]
  done
}

@test "a test that fails makes the check fail and is counted" {
  # Not a here-document: bats would take its lines for tests of this file.
  printf '@%s { %s; }\n' 'test "right"' true 'test "wrong"' false \
    'test "left out"' 'skip "for a reason"' >"$BATS_TEST_TMPDIR/one.bats"
  mkdir -p "$BATS_TEST_TMPDIR/copy/build/common"
  cp -r common "$BATS_TEST_TMPDIR/copy/"
  cp build/common/find-device "$BATS_TEST_TMPDIR/copy/build/common/"
  run "$BATS_TEST_TMPDIR/copy/common/check-chapters" "$BATS_TEST_TMPDIR/one.bats"
  [ "$status" -ne 0 ]
  [ "${lines[-1]}" = "1 passed, 1 failed, 1 skipped" ]
}

@test "a test file that breaks off is a failure" {
  printf '@%s { %s; }\n' 'test "first"' true 'test "second"' 'kill -9 $PPID' \
    >"$BATS_TEST_TMPDIR/broken.bats"
  mkdir -p "$BATS_TEST_TMPDIR/copy/build/common"
  cp -r common "$BATS_TEST_TMPDIR/copy/"
  cp build/common/find-device "$BATS_TEST_TMPDIR/copy/build/common/"
  run "$BATS_TEST_TMPDIR/copy/common/check-chapters" "$BATS_TEST_TMPDIR/broken.bats"
  [ "$status" -ne 0 ]
}
