#!/usr/bin/env bats
# Chapter 06: the programs print what an H200 printed, swizzle.h is plain C and does what it says,
# and `where` answers and refuses.

setup() {
  cd "$BATS_TEST_DIRNAME/.." || return 1
  chapter=06_swizzle_3d
}

# Everything but the first line, which names the device, is equal to what was recorded on an H200.
prints_what_was_recorded() {
  local name=$1
  common/run-program "build/$chapter/$name" >"$BATS_TEST_TMPDIR/$name" || return 1
  head -n 1 "$BATS_TEST_TMPDIR/$name" | grep -q '^device: ' || return 1
  diff <(tail -n +2 "$BATS_TEST_TMPDIR/$name") "tests/recorded/$chapter/$name.txt"
}

where() { run common/run-program build/06_swizzle_3d/where "$@"; }

@test "swizzle_3d prints what was recorded" { prints_what_was_recorded swizzle_3d; }
@test "where prints what was recorded" { prints_what_was_recorded where; }
@test "bank_conflicts prints what was recorded" { prints_what_was_recorded bank_conflicts; }
@test "groups_16x8 prints what was recorded" { prints_what_was_recorded groups_16x8; }
@test "base_offset prints what was recorded" { prints_what_was_recorded base_offset; }
@test "boxes prints what was recorded" { prints_what_was_recorded boxes; }

@test "swizzle.h: plain C, its own inverse, one place for each byte, the stated period" {
  cat >"$BATS_TEST_TMPDIR/swizzle.c" <<'C'
#include <stdio.h>
#include "06_swizzle_3d/swizzle.h"
int main(void) {
  for (int mode = SWIZZLE_NONE; mode <= SWIZZLE_128B; mode++) {
    static unsigned char taken[8192];
    for (int i = 0; i < 8192; i++) taken[i] = 0;
    uint32_t period = swizzle_alignment((SwizzleMode)mode);
    for (uint32_t address = 0; address < 8192; address++) {
      uint32_t place = swizzle_address((SwizzleMode)mode, address);
      if (place >= 8192 || taken[place]++) return printf("mode %d: %u twice\n", mode, place), 1;
      if (swizzle_address((SwizzleMode)mode, place) != address) return printf("no inverse\n"), 1;
      if (place / 128 != address / 128 || place % 16 != address % 16) return printf("moved\n"), 1;
      if (swizzle_address((SwizzleMode)mode, address + period) != place + period)
        return printf("mode %d: period\n", mode), 1;
    }
  }
  return swizzle_tile_address(SWIZZLE_128B, 1024, 3, 34, 128) == 1024 + 402 ? 0 : 1;
}
C
  for compiler in cc clang; do
    command -v $compiler >/dev/null || continue
    $compiler -std=c11 -Wall -Wextra -Werror -I. -o "$BATS_TEST_TMPDIR/swizzle" \
      "$BATS_TEST_TMPDIR/swizzle.c"
    "$BATS_TEST_TMPDIR/swizzle"
  done
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
  [[ $output == *"'96B' is no swizzle mode"* ]]
  where --row -1
  [ "$status" -eq 2 ]
  [[ $output == *"'-1' is no row: rows count from 0"* ]]
  where --mode 64B --row 16
  [ "$status" -eq 2 ]
  [[ $output == *"in mode 64B rows go to 15, columns to 31"* ]]
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

@test "EMULATOR_CHECK=layout: silent where the swizzle is undone, told where it is not" {
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
