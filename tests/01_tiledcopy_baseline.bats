#!/usr/bin/env bats
# Chapter 01: the programs print what an H200 printed, and the price of a tile can be read anywhere.

setup() {
  cd "$BATS_TEST_DIRNAME/.." || return 1
  chapter=01_tiledcopy_baseline
}

# Everything but the first line, which names the device, is equal to what was recorded on an H200.
prints_what_was_recorded() {
  local name=$1
  common/run-program "build/$chapter/$name" >"$BATS_TEST_TMPDIR/$name" || return 1
  head -n 1 "$BATS_TEST_TMPDIR/$name" | grep -q '^device: ' || return 1
  diff <(tail -n +2 "$BATS_TEST_TMPDIR/$name") "tests/recorded/$chapter/$name.txt"
}

@test "tiledcopy_baseline prints what was recorded" { prints_what_was_recorded tiledcopy_baseline; }
@test "copy_speed prints what was recorded" { prints_what_was_recorded copy_speed; }

@test "price.sh prints a row for each way, measured or committed" {
  run 01_tiledcopy_baseline/price.sh
  echo "$output"
  [ "$status" -eq 0 ]
  for way in scalar vectors cp_async; do
    [ "$(grep -cE "^$way +[0-9]+ +[0-9]+ +[0-9.]+\$|^$way,[0-9]+,[0-9]+,[0-9.]+\$" <<<"$output")" -eq 1 ]
  done
  [[ $output == *"# NVIDIA H"*", driver "*", nvcc "* ]]
}

@test "price.sh without the tools says what is needed and prints the committed figures" {
  # A folder that lacks cuobjdump and ncu, whatever this machine has.
  mkdir "$BATS_TEST_TMPDIR/bin"
  for tool in bash dirname column grep; do
    path=$(command -v "$tool") && ln -s "$path" "$BATS_TEST_TMPDIR/bin/$tool"
  done
  CUDA_HOME=/nonexistent PATH=$BATS_TEST_TMPDIR/bin run bash 01_tiledcopy_baseline/price.sh
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"cuobjdump, ncu and a GPU are needed to measure this; the committed figures"* ]]
  [[ $output == *scalar* ]]
}

@test "an unknown option: usage, exit 2" {
  for name in tiledcopy_baseline copy_speed; do
    run common/run-program build/$chapter/$name --no-such-option
    echo "$name: $output"
    [ "$status" -eq 2 ]
    [[ $output == *"unknown argument '--no-such-option'"* ]]
    [[ $output == *"usage: $name"* ]]
  done
}
