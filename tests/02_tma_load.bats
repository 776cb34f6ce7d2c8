#!/usr/bin/env bats
# Chapter 02: the programs print what an H200 printed, take other sizes, refuse what TMA refuses, and
# the bounded wait ends a hang.

load helpers

setup() {
  begin_test
  chapter=02_tma_load
}

@test "first_load prints what was recorded" { prints_what_was_recorded first_load; }
@test "encode_by_hand prints what was recorded" { prints_what_was_recorded encode_by_hand; }
@test "tma_load prints what was recorded" { prints_what_was_recorded tma_load; }
@test "coordinates prints what was recorded" { prints_what_was_recorded coordinates; }
@test "remainder prints what was recorded" { prints_what_was_recorded remainder; }
@test "dimensions prints what was recorded" { prints_what_was_recorded dimensions; }
@test "two_ways_to_wait prints what was recorded" { prints_what_was_recorded two_ways_to_wait; }
@test "descriptor prints what was recorded" { prints_what_was_recorded descriptor; }
@test "tensormap_replace prints what was recorded" { prints_what_was_recorded tensormap_replace; }
@test "bounded_wait prints what was recorded" { prints_what_was_recorded bounded_wait; }
@test "price prints what was recorded" { prints_what_was_recorded price; }
@test "load_speed prints what was recorded" { prints_what_was_recorded load_speed; }
@test "l2_hints prints what was recorded" { prints_what_was_recorded l2_hints; }
@test "overlap prints what was recorded" { prints_what_was_recorded overlap; }
@test "replace_in_loop prints what was recorded" { prints_what_was_recorded replace_in_loop; }
@test "skip_copy prints what was recorded" { prints_what_was_recorded skip_copy; }
@test "elect_one prints what was recorded" { prints_what_was_recorded elect_one; }
@test "im2col prints what was recorded" { prints_what_was_recorded im2col; }

@test "tma_load takes any m and n, multiples of the tile or not" {
  for size in "1 8" "128 64" "129 72" "500 1000"; do
    set -- $size
    run common/run-program build/$chapter/tma_load --rows "$1" --columns "$2"
    echo "$size: $output"
    [ "$status" -eq 0 ]
    [[ ${lines[1]} == "matrix ${1}x$2, "* ]]
  done
}

@test "tma_load refuses rows that are not a multiple of 16 bytes: the field, the rule, exit 2" {
  run common/run-program build/$chapter/tma_load --columns 100
  echo "$output"
  [ "$status" -eq 2 ]
  [[ $output == *"200 is not a multiple of 16"* ]]
}

@test "coordinates prints any block, the first and the last among them" {
  run common/run-program build/$chapter/coordinates --block 0
  [ "$status" -eq 0 ]
  [[ ${lines[2]} == "  (0,0) (1,0) (2,0) "*" (15,0)" ]]
  run common/run-program build/$chapter/coordinates --block 4095
  [ "$status" -eq 0 ]
  [[ ${lines[2]} == "  (1008,1008) (1009,1008) "*" (1023,1008)" ]]
}

@test "bounded_wait --trap says who waited for what, and fails" {
  run common/run-program build/$chapter/bounded_wait --trap
  echo "$output"
  [ "$status" -eq 1 ]
  [[ $output == *"thread 0 of block (0,0,0) waited 1000000 clocks for parity 0 and gives up"* ]]
  [[ $output == *"barrier 'full': phase of parity 0, 0 of 1 arrivals pending, 16 bytes pending"* ]]
  [[ $output == *"FAIL bounded_wait: cudaErrorLaunchFailure"* ]]
}

@test "price.sh prints a row for each way, measured or committed" {
  skip_if_sanitized build/02_tma_load/price
  run 02_tma_load/price.sh
  echo "$output"
  [ "$status" -eq 0 ]
  for way in scalar vectors cp_async tma; do
    [ "$(grep -cE "^$way +[0-9]+ +[0-9]+ +[0-9.]+\$|^$way,[0-9]+,[0-9]+,[0-9.]+\$" <<<"$output")" -eq 1 ]
  done
}

@test "bad arguments: what was given, which values there are, exit 2" {
  run common/run-program build/$chapter/tma_load --rows 0
  [ "$status" -eq 2 ]
  [[ $output == *"--rows is '0', but must be a whole number from 1 to 65536"* ]]
  run common/run-program build/$chapter/tma_load --rows many
  [ "$status" -eq 2 ]
  [[ $output == *"--rows is 'many', but must be a whole number from 1 to 65536"* ]]
  run common/run-program build/$chapter/coordinates --block 4096
  [ "$status" -eq 2 ]
  for name in tma_load coordinates remainder dimensions two_ways_to_wait descriptor tensormap_replace \
      bounded_wait price load_speed; do
    run common/run-program build/$chapter/$name --no-such-option
    echo "$name: $output"
    [ "$status" -eq 2 ]
    [[ $output == *"usage: $name"* ]]
  done
}

@test "each pitfall is reported by its rule, and with its fix it is silent" { try_pitfalls; }
