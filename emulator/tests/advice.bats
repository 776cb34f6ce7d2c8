#!/usr/bin/env bats
# What the reports of the checker say, and what comes of following it.
# builds: tests/joined/%

load helpers

setup() {
  begin_test
  program=build/emulator/tests/advice_cases
  unset EMULATOR_CHECK EMULATOR_SCHEDULE
  export LD_LIBRARY_PATH=$PWD/build/emulator
}

# Besides the pitfalls, programs that show every text of a finding.
showing_programs() {
  ls -d build/tests/joined/*/pitfalls/*
  sed 's|^|build/emulator/tests/|' <<'END'
cluster_ring both_to_other
cluster_ring both_to_own
cluster_ring one_warp_to_own
copy_windows
descriptor_cases --stride 2048 --halves 1
fence_cases
fuzz_hostile 1 100
global_races
heading_cases barrier_initialised_again
heading_cases cp_async_missing_second_sync
hostile null-shared
lane_cases global_one_place
lane_copies missing
lane_fences left_out
lane_fences left_out_load
operands_reused behind_uncommitted
operands_reused by_another
operands_reused by_own_warpgroup
operands_reused committed_late
operands_reused joins_next
operands_reused left_pending
operands_reused not_committed
operands_reused unfenced
pipeline_mistakes count_of_warps_in_a_cluster
pipeline_mistakes count_too_low
pipeline_mistakes stages_overlap
report_cases asked_beside_atomic
report_cases passed_apart
run_ptx emulator/tests/ptx/faults.ptx arrives_again 2:2 32
run_ptx emulator/tests/ptx/faults.ptx exchanged_offsets 1 128
run_ptx emulator/tests/ptx/faults.ptx waits_first 2:2 32
undefined_cases local_printed
undefined_tiles short_bulk_store
unwritten_cases decides
unwritten_operands bad_field
unwritten_operands bad_free
unwritten_operands bad_gap
unwritten_operands bad_lane_mask
unwritten_operands bad_malloc
unwritten_operands bad_map_half_copied
unwritten_operands bad_map_of_registers
unwritten_operands bad_short_buffer
END
  build/emulator/tests/advice_cases --list | sed 's|\(.*\) .*|build/emulator/tests/advice_cases \1|'
  build/emulator/tests/luck_cases --list | sed 's|\(.*\) .*|build/emulator/tests/luck_cases \1|'
}

# Into a file of its own: what two programs print at the same time into one file tears each other's lines.
show_reports() { # COMMAND
  local text all="" EMULATOR_CHECK EMULATOR_SCHEDULE
  export EMULATOR_CHECK EMULATOR_SCHEDULE
  while read -r EMULATOR_CHECK EMULATOR_SCHEDULE; do
    text=$(EMULATOR_THREADS=1 timeout -s KILL 600 $1 2>&1 >/dev/null </dev/null)
    all+=$'\n'$text
  done <<<$'strict late\nstrict early\nlayout late\nlayout early'
  echo "== $1$all" >"$BATS_FILE_TMPDIR/reports/${1//[\/ ]/,}"
}

# What all of them print: they run once for the tests of this file.
all_reports() {
  if [ ! -d "$BATS_FILE_TMPDIR/reports" ]; then
    mkdir "$BATS_FILE_TMPDIR/reports"
    export -f show_reports
    export BATS_FILE_TMPDIR
    showing_programs | xargs -d '\n' -P 2 -I COMMAND bash -c 'show_reports "COMMAND"'
  fi
  cat "$BATS_FILE_TMPDIR"/reports/*
}

@test "each text of a finding is shown by some program" {
  {
    all_reports
    EMULATOR_SCHEDULE=random:1 show_once build/emulator/tests/cluster_ring own_tiles_to_other
  } >"$BATS_TEST_TMPDIR/reports"
  run -0 emulator/tests/finding_texts.py emulator/checker/{,*/}*.c <"$BATS_TEST_TMPDIR/reports"
  [ -z "$output" ]
}

# Kernels of faults.ptx, with their grids and blocks.
wrong_kernels() {
  cat <<'END'
arrives_again 2:2 32
barrier_under_a_guard 1 32
barriers_of_lanes 1 32
calls_unknown 1 1
exchanged_offsets 1 128
frees_twice 1 1
map_in_local 1 1
matrix_in_global 1 32
other_block 2:2 1
registers_disagree 1 128
registers_left_out 1 128
registers_missing 1 256
wide_number 1 1
wild_format 1 1
without_end 1 1
wrong_prototype 1 1
END
}

show_once() { # COMMAND...
  echo "== $*"
  EMULATOR_THREADS=1 EMULATOR_CHECK=layout timeout -s KILL 600 "$@" 2>&1 >/dev/null || true
}

@test "each text of a fault, and of a finding in the folders above the checker, is shown by some program" {
  local folder=emulator tests=build/emulator/tests kernel program
  {
    wrong_kernels | while read -r kernel; do
      # shellcheck disable=SC2086
      show_once $tests/run_ptx emulator/tests/ptx/faults.ptx $kernel </dev/null
    done
    for program in async_faults tma_cases "descriptor_cases --stride 2048" "fuzz_hostile 1 700" \
      "pipeline_mistakes freed_and_asks_other" "pipeline_mistakes two_announce" "divided_warps bar_sync_if" \
      "divided_warps mma_return" "divided_warps registers_none_stays" "cluster_ring own_tiles_to_other" \
      "heading_cases prologue_by_another_thread" "luck_cases next_phase_before_wait" \
      "luck_cases count_of_another_barrier"; do
      # shellcheck disable=SC2086
      show_once $tests/$program
    done
    all_reports
  } >"$BATS_TEST_TMPDIR/reports"
  run -0 emulator/tests/finding_texts.py --of fault,finding,finding_of $folder/async/*.c $folder/flow/*.c $folder/tensor_core/*.c \
    $folder/machine/[!e]*.c <"$BATS_TEST_TMPDIR/reports"
  [ -z "$output" ]
  run -0 emulator/tests/finding_texts.py --of fprintf $folder/flow/*.c <"$BATS_TEST_TMPDIR/reports"
}

# Cases of endless_polls and pipeline_mistakes that hang, one a line, with their numbers of blocks.
hanging_cases() {
  sed -n 's/^ *CASE(\([a-z_]*\)).*/endless_polls \1/p' emulator/tests/endless_polls.cu |
    grep -vE ' (ends_|host_|grid_barrier|loops_beside_turns|one_rank_is_)'
  sed -n 's/^ *{"\([a-z_]*\)", [0-9].*/pipeline_mistakes \1/p' emulator/tests/pipeline_mistakes.cu | grep -v fine
  echo "endless_polls grid_barrier 5000"
  echo "endless_polls loops_beside_turns 4"
  echo "endless_polls one_rank_is_left_out 2"
  echo "endless_polls one_rank_is_not_freed 2"
}

# Passes on a note of a kernel that never ends, and does what the note says.
ended_as_told() {
  local line
  while IFS= read -r line; do
    echo "$line"
    if [[ $line =~ \`kill\ ([0-9]+)\` ]]; then kill "${BASH_REMATCH[1]}"; fi
  done
}

@test "each text of a hang, and of a fault in arithmetic, is shown by some program" {
  local folder=emulator tests=build/emulator/tests program number
  {
    hanging_cases | while read -r program; do
      # shellcheck disable=SC2086
      EMULATOR_STEPS=1000000 show_once $tests/$program </dev/null
    done
    for program in barriers_of_lanes registers_missing without_end; do
      show_once $tests/run_ptx emulator/tests/ptx/faults.ptx $program 1 256 </dev/null
    done
    for program in $($tests/advice_cases --list | sed -n 's/ hang-.*//p'); do show_once $tests/advice_cases $program; done
    show_once $tests/heading_cases barrier_initialised_again
    show_once $tests/divided_warps bar_sync_unrolled
    EMULATOR_PATIENCE=1 show_once $tests/endless_loops fills_shared | ended_as_told
    EMULATOR_PATIENCE=1 show_once $tests/endless_loops counts_in_a_cluster | ended_as_told
    all_reports
  } >"$BATS_TEST_TMPDIR/reports"
  run -0 emulator/tests/finding_texts.py $folder/async/mbarrier_hang.c $folder/machine/hang.c <"$BATS_TEST_TMPDIR/reports"
  run -0 emulator/tests/finding_texts.py --of fprintf $folder/async/async.c <"$BATS_TEST_TMPDIR/reports"
  run -0 emulator/tests/finding_texts.py --of fault,finding,finding_of $folder/arithmetic/*.c <"$BATS_TEST_TMPDIR/reports"
}

@test "a text that no program shows is named with its line; comments, names and short words are no texts" {
  local source=$BATS_TEST_TMPDIR/check.c
  cat >"$source" <<'END'
#include "this is not a text.h"
/* "nor is this, in a comment" */
_Static_assert(1, "and this is for the compiler");
REPORT(now, "a-rule", "reads %u bytes of that tile, which "
       "nobody wrote.\nWrite the whole tile before.", bytes);
END
  run -1 emulator/tests/finding_texts.py "$source" <<<"== program"
  [ "${#lines[@]}" -eq 2 ]
  [ "${lines[0]}" = "$source:4: bytes of that tile, which nobody wrote. Write the whole tile before." ]
  run -0 emulator/tests/finding_texts.py "$source" \
    <<<$'== program\n  reads 7 bytes of that tile, which\n  nobody wrote.\n  Write the whole tile before.'
  [ -z "$output" ]
  run -0 emulator/tests/finding_texts.py --of SOME,OTHER "$source" <<<"== program"
  run -1 emulator/tests/finding_texts.py --of OTHER,REPORT "$source" <<<"== program"
  [ "${#lines[@]}" -eq 2 ]
}

@test "mistakes that nothing else shows: reported by their rule, and silent once the advice is followed" {
  local name rule schedule
  export EMULATOR_CHECK=layout EMULATOR_SCHEDULE
  [ "$("$program" --list | wc -l)" -gt 10 ]
  while read -r name rule; do
    for EMULATOR_SCHEDULE in late early random:1; do
      run "$program" "$name"
      [[ $output == "emulator: $rule: "* ]] || { echo "$name, $EMULATOR_SCHEDULE: $rule must be reported first, not this"; return 1; }
      run "$program" "$name" followed
      [ "$status$output" = 0 ] || { echo "$name followed, $EMULATOR_SCHEDULE: must be silent, exit code 0"; return 1; }
    done
  done < <("$program" --list)
}
