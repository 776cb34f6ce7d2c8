#!/usr/bin/env bats
# The emulator's asynchrony against what one NVIDIA H200 answered in November 2026 (recorded/): the
# same programs, in every schedule. common/make/record says how to record anew.

load helpers
programs=build/emulator/tests
recorded=emulator/tests/recorded

# What PROGRAM printed: digests that nobody reads are packed.
printed() { # PROGRAM
  if [ -e "$recorded/$1.txt" ]; then cat "$recorded/$1.txt"; else gzip -dc "$recorded/$1.txt.gz"; fi
}

# replays PROGRAM: each must give the recorded lines, whatever lands when. The programs do
# on purpose what the checker speaks about: it is switched off.
replays() {
  local schedule
  for schedule in late early random:1 random:20261121; do
    echo "schedule $schedule"
    EMULATOR_CHECK=off EMULATOR_SCHEDULE=$schedule timeout 600 emulator/emulate "$programs/$1" \
      2>/dev/null | diff <(printed "$1") - | head -20 | tee "$BATS_TEST_TMPDIR/difference"
    [ ! -s "$BATS_TEST_TMPDIR/difference" ]
  done
}

@test "2,560 random tensor copies, reduces and im2col columns leave the recorded memory" {
  [ "$(printed tma_cases | wc -l)" -eq 2560 ]
  replays tma_cases
}

@test "600 random lives of an mbarrier give the recorded answers" {
  replays mbarrier_cases
}

@test "every copy and reduce without a tensor map leaves the recorded memory" {
  replays bulk_cases
}

@test "the checker has nothing to say about correct copies" {
  local schedule
  for schedule in late early random:2; do
    run -0 env EMULATOR_SCHEDULE=$schedule emulator/emulate "$programs/bulk_cases"
    diff <(printed bulk_cases) - <<<"$output"
  done
}

@test "what faults on the chip faults here, and what does not does not" {
  replays async_faults
}

@test "tensormap.replace writes the recorded bits" {
  replays replace_cases
}

@test "a fault names the value, the rule and the fix" {
  EMULATOR_CHECK=off run emulator/emulate "$programs/async_faults" 17
  [[ $output == *"innermost coordinate 1 of elements of 1 bytes"*"multiple of 16 bytes"* ]]
  [[ $output == *"start the box at 0"* ]]
}

@test "a copy through a tensor map that is not aligned: its address, and what a map needs" {
  run emulator/emulate "$programs/async_faults" 6
  [[ $output == *"emulator: misaligned-address: "* ]]
  text=${output//$'\n  '/ }
  [[ $text =~ "a read of 128 bytes at global address 0x"[0-9a-f]+", which is not a multiple of 64: it is 32 past one; a tensor map begins at a multiple of 64" ]]
}

@test "random maps through its encoder" {
  [ "$DEVICE" != gpu ] || skip "is for the emulator; the GPU has a test of its own"
  run -0 bash -c "common/make/run-program $programs/random_maps --maps 20000 --im2col 5000 --copies 0 2>/dev/null"
}

@test "copies through packed maps" {
  [ "$DEVICE" != gpu ] || skip "is for the emulator; the GPU has a test of its own"
  # Enough of them to have boxes that end within a span of the swizzle, and boxes of which a small part arrives.
  for seed in 1 5; do
    run -0 common/make/run-program $programs/random_maps --maps 0 --im2col 0 --copies 6000 --seed $seed
  done
}

@test "H200: a million random maps and 3000 copies, nothing differs" {
  [ "$DEVICE" = gpu ] || skip "needs a GPU"
  run -0 common/make/run-program $programs/random_maps --seed $((1 + RANDOM))
  [[ $output == *"tiled maps: 1000000, "*"rules: 0 differ; bytes: 0 differ"* ]]
}
