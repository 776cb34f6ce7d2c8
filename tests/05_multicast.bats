#!/usr/bin/env bats
# Chapter 05: the programs print what an H200 printed, and refuse bad arguments.

load helpers

setup() {
  begin_test
  chapter=05_multicast
}

@test "first_multicast prints what was recorded" { prints_what_was_recorded first_multicast; }
@test "multicast prints what was recorded" { prints_what_was_recorded multicast; }
@test "masks prints what was recorded" { prints_what_was_recorded masks; }
@test "own_barrier prints what was recorded" { prints_what_was_recorded own_barrier; }
@test "dsmem prints what was recorded" { prints_what_was_recorded dsmem; }
@test "st_async prints what was recorded" { prints_what_was_recorded st_async; }
@test "shared_stream prints what was recorded" { prints_what_was_recorded shared_stream; }

@test "every multicast wrapper, by number of dimensions, and a release at cluster scope" {
  common/run-program build/tests/05_multicast/dimensions
}

@test "an unknown option: usage, exit 2" {
  for name in multicast masks own_barrier dsmem shared_stream; do
    run common/run-program build/05_multicast/$name --no-such-option
    echo "$name: $output"
    [ "$status" -eq 2 ]
    [[ $output == *"usage: $name"* ]]
  done
}

@test "each pitfall is reported by its rule, and with its fix it is silent" { try_pitfalls; }
