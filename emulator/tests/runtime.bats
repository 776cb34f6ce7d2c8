#!/usr/bin/env bats
# The runtime's answers to right and wrong calls, as an H200 gave them (driver 580.159,
# CUDA 13.0, November 2026); the emulator's switches; relocatable device code.

load helpers
program=build/emulator/tests/runtime_calls
recorded=emulator/tests/recorded

emulate() { emulator/emulate "$@"; }

@test "calls, properties, attributes and error names answer as recorded" {
  common/make/run-program $program >"$BATS_TEST_TMPDIR/calls" 2>/dev/null || true
  same_calls "$BATS_TEST_TMPDIR/calls" $recorded/runtime_calls.txt
}

# What a program printed is the recording; on another GPU than an H200 apart from what differs between
# the chips of compute capability 9.0: how many SMs, the size of L2 and the width of the memory's bus. Attribute
# 132, multicast between GPUs, depends on how many the machine has.
same_calls() { # PRINTED RECORDED
  local of_the_chip='^ *[0-9]+ (multiProcessorCount|l2CacheSize|memoryBusWidth) |^attribute (16|37|38|108|109|132):'
  if head -n 1 "$1" | grep -q H200; then of_the_chip='^attribute 132:'; fi
  if head -n 1 "$1" | grep -q Emulated; then of_the_chip='^$'; fi
  diff <(sed 1d "$1" | grep -vE "$of_the_chip") <(grep -vE "$of_the_chip" "$2")
}

@test "on an H100 the size of L2 and the width of the bus may differ, on an H200 not" {
  local chip
  for chip in H100 H200; do
    { echo "device: NVIDIA $chip, compute capability 9.0"
      sed -e 's/ 62914560$/ 52428800/' -e 's/ 6016$/ 5120/' $recorded/runtime_calls.txt
    } >"$BATS_TEST_TMPDIR/$chip"
  done
  same_calls "$BATS_TEST_TMPDIR/H100" $recorded/runtime_calls.txt
  run -1 same_calls "$BATS_TEST_TMPDIR/H200" $recorded/runtime_calls.txt
  [ "$(grep -c '^<' <<<"$output")" -eq 4 ]
  sed -i 's/warpSize  /warpsize  /' "$BATS_TEST_TMPDIR/H100"
  run -1 same_calls "$BATS_TEST_TMPDIR/H100" $recorded/runtime_calls.txt
}

@test "streams, graphs, pools and copies answer as recorded" {
  diff <(common/make/run-program build/emulator/tests/runtime_work 2>/dev/null | sed 1d) \
    $recorded/runtime_work.txt
}

# On the emulator alone: the sizes that an H200 answers are those of its memory.
@test "misuse of calls is answered as recorded" {
  local misuse=build/emulator/tests/misuse_calls name
  for name in $(emulate $misuse); do
    echo "=== $name"
    emulate $misuse "$name" 2>/dev/null || true # a kernel that faults
  done >"$BATS_TEST_TMPDIR/misuse"
  diff "$BATS_TEST_TMPDIR/misuse" $recorded/misuse_calls.txt
}

@test "limits: what they are, and what becomes of what is asked for" {
  diff <(emulate build/emulator/tests/limits) $recorded/limits.txt
}

@test "relocatable device code, and the device's malloc" {
  run -0 common/make/run-program build/emulator/tests/linked/linked
  [[ $output == *"PASS linked"* ]]
}

@test "faults are reported at the next synchronisation and stick" {
  for fault in 0 1 2 3 4; do
    echo "fault $fault"
    common/make/run-program $program --fault $fault 2>/dev/null | sed 1d
  done | diff - $recorded/runtime_faults.txt
}

@test "a failing assertion of the device names file, line, block, thread and text" {
  run emulate $program --fault 1
  [[ $output == *"emulator: assert: kernel faulting, block (0,0,0), threads 0-31"* ]]
  [[ $output == *"runtime_calls.cu:"*"Assertion"*"failed"* ]]
}

@test "a fault is explained: rule, kernel, block, threads, source line, PTX line" {
  run emulate $program --fault 3
  [[ $output == *"kernel faulting, block (0,0,0), thread"* ]]
  [[ $output == *"at runtime_calls.cu:"* ]]
  [[ $output == *"PTX line "* ]]
}

@test "the same bytes with one host thread and with two, late and in random orders" {
  for program in 04_store_reduce/split_k 05_multicast/multicast; do
    emulate build/$program >"$BATS_TEST_TMPDIR/expected"
    for threads in 1 2; do
      for schedule in late early random:1 random:2; do
        EMULATOR_THREADS=$threads EMULATOR_SCHEDULE=$schedule emulate build/$program |
          diff "$BATS_TEST_TMPDIR/expected" -
      done
    done
  done
}

@test "wrong settings: the value, the choices, exit 2" {
  for setting in EMULATOR_SCHEDULE=soon EMULATOR_SCHEDULE=random:x EMULATOR_CHECK=maybe \
    EMULATOR_MATH=sloppy EMULATOR_STEPS=-1 EMULATOR_STEPS=0 EMULATOR_THREADS=0 EMULATOR_PATIENCE=long \
    EMULATOR_FINDINGS=; do
    run -2 env "$setting" emulator/emulate build/02_tma_load/tma_load
    [[ $output == *"emulator: ${setting%%=*} is '${setting#*=}', but must be "* ]]
  done
}

@test "a setting with a typing error is refused, with the nearest name there is" {
  for pair in EMULATOR_CHECKS:EMULATOR_CHECK EMULATOR_SCHEDUEL:EMULATOR_SCHEDULE \
    EMULATOR_RECORD_BLOCK:EMULATOR_RECORD_BLOCKS EMULATOR_THREAD:EMULATOR_THREADS; do
    run -2 env "${pair%:*}=x" emulator/emulate build/02_tma_load/tma_load
    [ "${lines[-1]}" = "emulator: unknown setting ${pair%:*}; did you mean ${pair#*:}?" ]
  done
}

@test "every setting that the README names is known" {
  for name in $(grep -oh 'EMULATOR_[A-Z_]*[A-Z]' README.md emulator/{README,SETTINGS,CHECKS}.md | sort -u); do
    run env "$name=$BATS_TEST_TMPDIR/no such value" emulator/emulate build/02_tma_load/tma_load
    echo "$name: $output"
    [[ $output != *"unknown setting"* ]]
  done
}

@test "eight host threads use the runtime at once, each with its own last error" {
  for threads in 1 4; do
    EMULATOR_THREADS=$threads run -0 --separate-stderr emulator/emulate build/emulator/tests/host_threads
    [ "$output" = "PASS host_threads: 8 threads, 48 launches" ]
  done
}

# Eight runs, and how many different texts they print. Which block an error is reported for first is left out.
texts_of_runs() { # THREADS WHAT
  for run in {1..8}; do
    EMULATOR_CHECK=strict EMULATOR_THREADS=$1 emulate build/emulator/tests/threads_vary "$2" \
      >"$BATS_TEST_TMPDIR/text" 2>&1 || [ $? -eq 3 ] || return 1
    sed "s/block ([0-9]*,0,0), thread/block, thread/" "$BATS_TEST_TMPDIR/text" | md5sum
    cp "$BATS_TEST_TMPDIR/text" "$BATS_TEST_TMPDIR/$2.$1.$run"
  done | sort -u | wc -l
}

@test "EMULATOR_THREADS: races within blocks are the same with one or four; with races between blocks one has always the same" {
  [ "$(texts_of_runs 1 block)" -eq 1 ]
  [ "$(texts_of_runs 1 grid)" -eq 1 ]
  cmp "$BATS_TEST_TMPDIR/block.1.1" "$BATS_TEST_TMPDIR/block.1.8"
  cmp "$BATS_TEST_TMPDIR/grid.1.1" "$BATS_TEST_TMPDIR/grid.1.8"
  grep -q "shared-race" "$BATS_TEST_TMPDIR/block.1.1"
  [ "$(texts_of_runs 4 block)" -eq 1 ]
  diff <(tail -n +2 "$BATS_TEST_TMPDIR/block.1.1") <(tail -n +2 "$BATS_TEST_TMPDIR/block.4.1")
  texts_of_runs 4 grid
  for run in {1..8}; do
    grep -q '^emulator: global-race: error in kernel race_in_grid' "$BATS_TEST_TMPDIR/grid.4.$run"
  done
}

@test "what is kept for later launches does not grow with the number of their shapes" {
  [ -z "${SANITIZE:-}" ] || skip "a sanitizer keeps memory of its own"
  run -0 emulator/emulate build/emulator/tests/many_shapes
  [ "$output" = "PASS many_shapes: 1000 launches" ]
}

@test "what is kept about readers of memory does not grow with the number of their loads" {
  [ -z "${SANITIZE:-}" ] || skip "a sanitizer keeps memory of its own"
  run -0 emulator/emulate build/emulator/tests/many_readers
  [ "$output" = "PASS many_readers: 192 x 192" ]
}

@test "what is kept about freed memory does not grow with the number of rounds" {
  [ -z "${SANITIZE:-}" ] || skip "a sanitizer keeps memory of its own"
  for rounds in "200 16384" "2000 1024"; do
    run emulator/emulate build/emulator/tests/memory_rounds $rounds
    echo "$output"
    [ "$output" = "PASS memory_rounds: ${rounds% *} rounds" ]
  done
}

@test "what the checker keeps for a copy is used again" {
  [ -z "${SANITIZE:-}" ] || skip "a sanitizer has an allocator of its own"
  for schedule in late early random:3; do
    EMULATOR_THREADS=1 EMULATOR_SCHEDULE=$schedule \
      run emulator/emulate build/emulator/tests/copies_allocate
    echo "$schedule: $output"
    [ "$status" -eq 0 ]
    [ "$output" = "PASS copies_allocate: at most 10000 allocations for 40960 copies" ]
  done
}

@test "an address space of 3 GB is enough for a small program" {
  [ -z "${SANITIZE:-}" ] || skip "a sanitizer needs more address space"
  ulimit -v 3000000
  run -0 emulator/emulate build/02_tma_load/tma_load
}
