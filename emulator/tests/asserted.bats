#!/usr/bin/env bats
# What "holds always" in the heads of files, executed: an emulator with -DEMULATOR_ASSERT, and programs that use all of it.

load helpers

@test "what holds always holds: programs of every kind on an emulator with all assertions" {
  local library=build/emulator/asserted program order cases case count=0
  env -u MAKEFLAGS -u MAKELEVEL make -s ASSERTED="$(grep -rl --include='*.c' HOLDS_DEARLY emulator | tr '\n' ' ')" \
    "$PWD/$library/libcudart.so.13"
  strings "$library/libcudart.so.13" | grep -q 'marks_hold(table)' # nothing else puts it there
  for program in build/emulator/tests/{undefined_cases,lane_cases,machine_cases,fence_cases,async_faults,trial_cases} \
    build/emulator/tests/{correct_pipelines,divided_warps,foreign_cub,global_races,hostile,wgmma_cases,unwritten_cases} \
    build/tests/joined/0*/{pitfalls,fixed}/*; do
    if [ ! -x "$program" ] || [ -d "$program" ]; then continue; fi
    case ${program##*/} in
      undefined_cases | lane_cases | trial_cases | unwritten_cases) cases=$("$program" --list | cut -d' ' -f1) ;;
      wgmma_cases) cases="--every 16" ;;
      *) cases="" ;;
    esac
    for order in late random:1; do
      while read -r case; do
        LD_LIBRARY_PATH=$library EMULATOR_SCHEDULE=$order run timeout 60 "$program" $case
        echo "$program $case $order: $output"
        [[ $output != *"mistake of the emulator"* ]]
        count=$((count + 1))
      done <<<"$cases"
    done
  done
  [ "$count" -gt 100 ]
}
