#!/usr/bin/env bats
# Chapter 06: the programs print what an H200 printed, swizzle.h is plain C and does what it says,
# and `where` answers and refuses.

load helpers

setup() {
  begin_test
  chapter=06_swizzle_3d
}

where() { run common/run-program build/06_swizzle_3d/where "$@"; }

@test "first_swizzle prints what was recorded" { prints_what_was_recorded first_swizzle; }
@test "swizzle_3d prints what was recorded" { prints_what_was_recorded swizzle_3d; }
@test "where prints what was recorded" { prints_what_was_recorded where; }
@test "bank_conflicts prints what was recorded" { prints_what_was_recorded bank_conflicts; }
@test "groups_16x8 prints what was recorded" { prints_what_was_recorded groups_16x8; }
@test "base_offset prints what was recorded" { prints_what_was_recorded base_offset; }
@test "boxes prints what was recorded" { prints_what_was_recorded boxes; }

@test "swizzle.h: plain C, its own inverse, one place for each byte, the stated period" {
  build/tests/06_swizzle_3d/swizzle_in_c
}

@test "where: every mode, first and last cell" {
  for cell in "none 0 0" "none 7 63" "32B 31 15" "64B 15 31" "128B 7 63"; do
    read -r mode row column <<<"$cell"
    where --mode $mode --row $row --column $column
    echo "$output"
    [ "$status" -eq 0 ]
    [[ ${lines[-1]} == "PASS where: "* ]]
  done
}

@test "where --ask answers lines, and says what is no cell" {
  lines_asked=$'128B 3 17\n64B 3 20\n\n96B 1 1\n32B 32 0'
  run common/run-program build/06_swizzle_3d/where --ask <<<"$lines_asked"
  [ "$status" -eq 0 ]
  [ "${lines[1]}" = "128B row 3 column 17: byte 402, line 3, chunk 1, bank 4" ]
  [ "${lines[2]}" = "64B row 3 column 20: byte 248, line 1, chunk 7, bank 30" ]
  [ "${lines[3]}" = "not a cell: write MODE ROW COLUMN, as in 128B 3 17" ]
  [ "${lines[4]}" = "not a cell: write MODE ROW COLUMN, as in 128B 3 17" ]
  [ "${lines[5]}" = "PASS where: 2 cells found where swizzle.h says" ]
}

@test "where: bad arguments name the value and the rule, exit 2" {
  where --mode 96B
  [ "$status" -eq 2 ]
  [[ $output == *"'96B' is not a swizzle mode"* ]]
  where --row -1
  [ "$status" -eq 2 ]
  [[ $output == *"'-1' is not a row: rows count from 0"* ]]
  where --mode 64B --row 16
  [ "$status" -eq 2 ]
  [[ $output == *"in mode 64B rows go to 15, columns to 31"* ]]
  for value in 010 +1 ' 1' ''; do
    where --row "$value"
    [ "$status" -eq 2 ]
    [[ $output == *"'$value' is not a row: rows count from 0"* ]]
  done
  for options in "--row 1 --row 2" "--ask --ask"; do
    where $options
    [ "$status" -eq 2 ]
    [[ $output == *" is given twice: leave one out"* ]]
  done
  where --column
  [ "$status" -eq 2 ]
  where --no-such-option
  [ "$status" -eq 2 ]
  where --help
  [ "$status" -eq 0 ]
  [[ ${lines[0]} == "usage: where "* ]]
}

@test "an unknown option: usage, exit 2" {
  for name in swizzle_3d bank_conflicts groups_16x8 base_offset boxes; do
    run common/run-program build/06_swizzle_3d/$name --no-such-option
    echo "$name: $output"
    [ "$status" -eq 2 ]
    [[ $output == *"usage: $name"* ]]
  done
}

@test "EMULATOR_CHECK=layout: silent where the swizzle is undone, reported where it is not" {
  EMULATOR_CHECK=layout run common/emulator/emulate build/$chapter/bank_conflicts
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output != *emulator:* ]]
  for name in swizzle_3d base_offset; do
    EMULATOR_CHECK=layout run common/emulator/emulate build/$chapter/$name
    [ "$status" -eq 3 ]
    [[ $output == *"emulator: swizzle-ignored: "* ]]
  done
}

@test "each pitfall is reported by its rule, and with its fix it is silent" { try_pitfalls; }
