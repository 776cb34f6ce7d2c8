#!/usr/bin/env bats
# Chapter 02: the programs print what an H200 printed, take other sizes, refuse what TMA refuses, and
# the bounded wait ends a hang.

load helpers
chapter=02_tma_load

@test "the programs print what was recorded" { print_what_was_recorded; }

@test "tma_load takes any m and n, multiples of the tile or not" {
  for size in "1 8" "128 64" "129 72" "500 1000"; do
    set -- $size
    echo "$size"
    run -0 common/make/run-program build/$chapter/tma_load --rows "$1" --columns "$2"
    [[ ${lines[1]} == "matrix ${1}x$2, "* ]]
  done
}

@test "tma_load refuses rows that are not a multiple of 16 bytes: the field, the rule, exit 2" {
  run -2 common/make/run-program build/$chapter/tma_load --columns 100
  [[ $output == *"200 is not a multiple of 16"* ]]
}

@test "coordinates prints any block, the first and the last among them" {
  run -0 common/make/run-program build/$chapter/coordinates --block 0
  [[ ${lines[2]} == "  (0,0) (1,0) (2,0) "*" (15,0)" ]]
  run -0 common/make/run-program build/$chapter/coordinates --block 4095
  [[ ${lines[2]} == "  (1008,1008) (1009,1008) "*" (1023,1008)" ]]
}

@test "bounded_wait --trap says who waited for what, and fails" {
  run -1 common/make/run-program build/$chapter/bounded_wait --trap
  [[ $output == *"thread 0 of block (0,0,0) waited 1000000 clocks for parity 0 and gives up"* ]]
  [[ $output == *"barrier 'full': phase of parity 0, 0 of 1 arrivals pending, 16 bytes pending"* ]]
  [[ $output == *"FAIL bounded_wait: cudaErrorLaunchFailure"* ]]
}

@test "README.md introduces at most 12 programs and MORE.md the others, in the order of the Makefile" {
  local page order
  for page in README MORE; do
    order=$(sed -n "s/^PROGRAMS_OF_$page := //p" $chapter/Makefile)
    [ "$(grep -oE '\]\([a-z0-9_]+[.]cu\)' $chapter/$page.md | sed 's/](\(.*\)[.]cu)/\1/' | awk '!seen[$0]++' | paste -sd' ')" = "$order" ]
    [ "$page" = MORE ] || [ "$(wc -w <<<"$order")" -le 12 ]
  done
  run -2 make --no-print-directory run-02 PROGRAM=none
  order=$(sed -n 's/^PROGRAMS_OF_[A-Z]* := //p' $chapter/Makefile | paste -sd' ')
  [[ $output == *"$chapter: $order"* ]]
  [ "$(wc -w <<<"$order")" -eq "$(ls $chapter/*.cu | wc -l)" ]
}

@test "bad arguments: what was given, which values there are, exit 2" {
  run -2 common/make/run-program build/$chapter/tma_load --rows 0
  [[ $output == *"--rows is '0', but must be a whole number from 1 to 65536"* ]]
  run -2 common/make/run-program build/$chapter/coordinates --block 4096
}

@test "each pitfall is reported by its rule" { try_pitfalls; }
