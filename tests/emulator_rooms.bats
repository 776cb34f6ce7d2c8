#!/usr/bin/env bats
# The folders of the emulator: calls go in one direction.

setup() {
  cd "$BATS_TEST_DIRNAME/.." || return 1
  rooms=common/emulator/rooms
  sources=$BATS_TEST_TMPDIR/sources
  objects=$BATS_TEST_TMPDIR/objects
}

# A file of a small emulator, from stdin, compiled.
write_file() {
  mkdir -p "$sources/${1%/*}" "$objects/${1%/*}"
  cat >"$sources/$1"
  case $1 in *.c) cc -c -I"$sources" -o "$objects/${1%.c}.o" "$sources/$1" ;; esac
}

@test "no folder uses one that stands above it" {
  run "$rooms" check
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"base ptx state"*"machine runtime"* ]]
}

@test "a call of a folder above is refused: both functions and both objects are named" {
  write_file machine/run.c <<<'int run(void) { return 1; }'
  write_file base/memory.c <<<'int run(void); int allocate(void) { return run() + 1; }'
  run "$rooms" check "$objects" "$sources"
  echo "$output"
  [ "$status" -eq 1 ]
  [[ $output == *"base/memory.o (allocate) uses run of machine/run.o, but base stands below machine"* ]]
}

@test "a table of a folder above is refused, and a function that a table names" {
  write_file runtime/names.c <<<'int names[3]; int name(void) { return 0; }'
  write_file checker/look.c <<<'extern int names[]; int *look(void) { return &names[1]; }'
  write_file flow/table.c <<<'int name(void); int (*const table[])(void) = {name};'
  run "$rooms" check "$objects" "$sources"
  echo "$output"
  [ "$status" -eq 1 ]
  [[ $output == *"checker/look.o (look) uses names of runtime/names.o"* ]]
  [[ $output == *"flow/table.o (table) uses name of runtime/names.o"* ]]
}

@test "a header of a folder above is refused" {
  write_file load/module.h <<<'typedef int Module;'
  write_file ptx/parse.c <<<$'#include "load/module.h"\nModule parse(void) { return 0; }'
  run "$rooms" check "$objects" "$sources"
  echo "$output"
  [ "$status" -eq 1 ]
  [[ $output == *"ptx/parse.c includes load/module.h, but ptx stands below load"* ]]
}

@test "calls of folders below are fine, and objects whose source is gone do not count" {
  write_file base/memory.c <<<'int allocate(void) { return 1; }'
  write_file machine/run.c <<<'int allocate(void); int run(void) { return allocate(); }'
  write_file base/old.c <<<'int run(void); int old(void) { return run(); }'
  rm "$sources/base/old.c"
  run "$rooms" check "$objects" "$sources"
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "a folder that the list does not have is refused" {
  write_file base/memory.c <<<'int allocate(void) { return 1; }'
  write_file attic/run.c <<<'int allocate(void); int run(void) { return allocate(); }'
  run "$rooms" check "$objects" "$sources"
  echo "$output"
  [ "$status" -eq 1 ]
  [[ $output == *"attic is not in the list of folders"* ]]
}

@test "wrong arguments print the usage, exit code 2" {
  run "$rooms" climb
  [ "$status" -eq 2 ]
  [[ $output == *"usage: rooms check"* ]]
}
