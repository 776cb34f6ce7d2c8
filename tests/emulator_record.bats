#!/usr/bin/env bats
# Recordings: what --record writes, and that it changes nothing else.

load helpers

setup() {
  bats_require_minimum_version 1.5.0
  begin_test
  recording=$BATS_TEST_TMPDIR/recording.jsonl
  export EMULATOR_THREADS=1 # which block reports first depends on host threads otherwise
}

# A recorded run prints what an unrecorded one prints, and its recording replays to the final memory.
records_faithfully() {
  EMULATOR_SCHEDULE=$schedule run --separate-stderr common/emulator/emulate "build/$1"
  local plain_status=$status plain_output=$output plain_stderr=$stderr
  EMULATOR_SCHEDULE=$schedule EMULATOR_RECORD=$recording EMULATOR_RECORD_BLOCKS=${blocks:-first} \
    run --separate-stderr common/emulator/emulate "build/$1"
  [ "$status" -eq "$plain_status" ]
  [ "$output" = "$plain_output" ]
  [ "$stderr" = "$plain_stderr" ]
  run python3 tests/emulator/check_recording.py "$recording"
  [ "$status" -eq 0 ] || {
    echo "$1: $output"
    return 1
  }
  [[ $output == *" clusters, "*" events, all consistent" ]]
}

@test "recording: every chapter's program, in every order of landing" {
  for schedule in late early random:3; do
    for program in 01_tiledcopy_baseline/tiledcopy_baseline 02_tma_load/tma_load \
      03_tma_store/tma_store 04_store_reduce/store_reduce 05_multicast/multicast \
      06_swizzle_3d/swizzle_3d 07_pipelined_gemm/serial 07_pipelined_gemm/multicast; do
      records_faithfully "$program"
    done
  done
}

@test "recording: every side program of chapters 02 to 06" {
  schedule=late
  for source in 0[2-6]_*/*.cu; do
    case $source in *speed*|*bench*) continue ;; esac
    records_faithfully "${source%.cu}"
  done
}

@test "recording: all blocks, and chosen ones" {
  schedule=late
  blocks=all records_faithfully 03_tma_store/tma_store
  all=$(grep -c '^{"cluster"' "$recording")
  blocks=0,2-3 records_faithfully 03_tma_store/tma_store
  chosen=$(grep -c '^{"cluster"' "$recording")
  [ "$all" -gt "$chosen" ]
  [ "$chosen" -ge 3 ]
}

@test "recording: programs that fail are recorded up to the report" {
  schedule=late
  for pitfall in 03_tma_store/pitfalls/missing_proxy_fence 02_tma_load/pitfalls/read_without_wait; do
    records_faithfully "$pitfall"
    grep -q '^\["finding"' "$recording"
  done
}

@test "recording: a hang is in it, with its rule" {
  schedule=late
  records_faithfully 02_tma_load/pitfalls/too_many_bytes
  grep -q '^\["fault".*"hang-too-many-bytes-expected"' "$recording"
}

@test "recording: its limit is reported on stderr and in the file" {
  EMULATOR_RECORD=$recording EMULATOR_RECORD_LIMIT=1 \
    run --separate-stderr common/emulator/emulate build/07_pipelined_gemm/serial
  [ "$status" -eq 0 ]
  [[ $stderr == *"the recording has reached 1 MB and stops here"* ]]
  grep -q '^{"stopped": ' "$recording"
  [ "$(stat -c %s "$recording")" -lt 3000000 ]
}

@test "recording: bad settings are refused by name" {
  EMULATOR_RECORD=$recording EMULATOR_RECORD_BLOCKS=3-1 \
    run common/emulator/emulate build/02_tma_load/tma_load
  [ "$status" -eq 2 ]
  [[ $output == *"EMULATOR_RECORD_BLOCKS is '3-1', but must be first, all, or numbers"* ]]
  EMULATOR_RECORD=$recording EMULATOR_RECORD_LIMIT=0 \
    run common/emulator/emulate build/02_tma_load/tma_load
  [ "$status" -eq 2 ]
  [[ $output == *"EMULATOR_RECORD_LIMIT is '0', but must be 1 to 1000000"* ]]
  EMULATOR_RECORD=$BATS_TEST_TMPDIR/nowhere/file run common/emulator/emulate build/02_tma_load/tma_load
  [ "$status" -eq 2 ]
  [[ $output == *"nowhere/file cannot be written: No such file or directory"* ]]
}
