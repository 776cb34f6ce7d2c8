#!/usr/bin/env bats
# The recording of every lesson, rung and pitfall: it changes no output, and its last state of shared
# memory is the emulator's, byte for byte. make check-all has a part of them.

load ../helpers
load ../record_helpers

setup() {
  begin_test
  recording=$BATS_TEST_TMPDIR/recording.jsonl
  schedule=late
  export EMULATOR_RECORD_LIMIT=4000
  export EMULATOR_THREADS=1 # which block reports first depends on host threads otherwise
}

# Each in turn.
all_record_faithfully() { # [mistaken] SOURCE...
  local mistaken=() source count=0
  if [ "$1" = mistaken ]; then
    mistaken=("$1")
    shift
  fi
  for source; do
    case $source in
      *speed* | *bench*) continue ;;                                              # no lesson: it only measures
      */encode_by_hand.* | */refused_map.* | */box_wider_* | */host_buffer_*) continue ;; # they launch no kernel
    esac
    rm -f "$recording"
    records_faithfully "${source%.cu}" "${mistaken[@]}" || {
      echo "$source"
      return 1
    }
    count=$((count + 1))
  done
  echo "# $count programs" >&3
}

@test "recording: every lesson" {
  all_record_faithfully [0-9][0-9]_*/*.cu 07_pipelined_gemm/{library,attention}/*.cu
}

@test "recording: every pitfall" {
  all_record_faithfully mistaken [0-9][0-9]_*/{,*/}pitfalls/*.cu
}
