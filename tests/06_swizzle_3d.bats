#!/usr/bin/env bats
# Chapter 06: the programs print what an H200 printed, swizzle.h is plain C and does what it says,
# and `where` answers and refuses.

load helpers
chapter=06_swizzle_3d

where() { run "-$1" common/make/run-program build/06_swizzle_3d/where "${@:2}"; } # EXIT_CODE OPTION...

@test "the programs print what was recorded" { print_what_was_recorded; }

@test "swizzle.h: plain C, its own inverse, one place for each byte, the stated period" {
  build/tests/06_swizzle_3d/swizzle_in_c
}

@test "where: every mode, first and last cell" {
  for cell in "none 0 0" "none 7 63" "32B 31 15" "64B 15 31" "128B 7 63"; do
    read -r mode row column <<<"$cell"
    where 0 --mode $mode --row $row --column $column
    [[ ${lines[-1]} == "PASS where: "* ]]
  done
}

@test "where --ask answers lines, and says what is no cell" {
  lines_asked=$'128B 3 17\n64B 3 20\n\n96B 1 1\n32B 32 0'
  run -0 common/make/run-program build/06_swizzle_3d/where --ask <<<"$lines_asked"
  [ "${lines[1]}" = "128B row 3 column 17: byte 402, line 3, chunk 1, bank 4" ]
  [ "${lines[2]}" = "64B row 3 column 20: byte 248, line 1, chunk 7, bank 30" ]
  [ "${lines[3]}" = "not a cell: write MODE ROW COLUMN, as in 128B 3 17" ]
  [ "${lines[4]}" = "not a cell: write MODE ROW COLUMN, as in 128B 3 17" ]
  [ "${lines[5]}" = "PASS where: 2 cells found where swizzle.h says" ]
}

@test "where: bad arguments name the value and the rule, exit 2" {
  where 2 --mode 96B
  [[ $output == *"'96B' is not a swizzle mode"* ]]
  where 2 --row -1
  [[ $output == *"'-1' is not a row: rows count from 0"* ]]
  where 2 --mode 64B --row 16
  [[ $output == *"in mode 64B rows go to 15, columns to 31"* ]]
  for value in 010 +1 ' 1' ''; do
    where 2 --row "$value"
    [[ $output == *"'$value' is not a row: rows count from 0"* ]]
  done
  for options in "--row 1 --row 2" "--ask --ask"; do
    where 2 $options
    [[ $output == *" is given twice: leave one out"* ]]
  done
  where 2 --column
  where 0 --full --mode 64B
}

@test "EMULATOR_CHECK=layout: silent where the swizzle is undone, reported where it is not" {
  EMULATOR_CHECK=layout run -0 emulator/emulate build/$chapter/bank_conflicts
  [[ $output != *emulator:* ]]
  for name in swizzle_3d base_offset; do
    EMULATOR_CHECK=layout run -3 emulator/emulate build/$chapter/$name
    [[ $output == *"emulator: swizzle-ignored: "* ]]
  done
}

@test "each pitfall is reported by its rule" { try_pitfalls; }
