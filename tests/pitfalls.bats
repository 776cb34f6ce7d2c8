#!/usr/bin/env bats
# Every pitfall is reported first by the rule that its header names, whatever the order in which
# copies land; mended, it runs in silence. And the exercises that are made of them work.
#
# All on the emulator: what the H200 does with them, DEVICE=gpu make pitfalls compares.

setup() {
  cd "$BATS_TEST_DIRNAME/.." || return 1
}

teardown() {
  if [ -n "${saved_exercises:-}" ]; then
    rm -rf build/exercises
    [ ! -e "$saved_exercises" ] || mv "$saved_exercises" build/exercises
  fi
}

# The rule that a run reports first, or "none", into `first`. One host thread: CTAs that run at the
# same time would report in any order. Some 1,700 runs: no process more than each needs.
first_report() { # PROGRAM SCHEDULE
  local text
  text=$(EMULATOR_SCHEDULE=$2 EMULATOR_THREADS=1 timeout -s KILL 60 "$1" 2>&1 >/dev/null)
  first=none
  if [[ $'\n'$text =~ $'\n'"emulator: "([a-z0-9-]+)": " ]]; then first=${BASH_REMATCH[1]}; fi
}

# Prints what is amiss with one pitfall; nothing when all is as it should be.
try_pitfall() { # SOURCE
  local chapter name program fixed rule schedule first code text
  chapter=${1%%/*} name=$(basename "$1" .cu)
  program=build/$chapter/pitfalls/$name fixed=build/$chapter/fixed/$name
  rule=$(pitfall_field "$1" report)
  export EMULATOR_CHECK
  EMULATOR_CHECK=$(check_for "$1")
  for schedule in late random:{1..20}; do
    first_report "$program" "$schedule"
    [ "$first" = "$rule" ] || echo "$name, $schedule: $first first, but the header says $rule"
  done
  for schedule in late random:{1..5}; do
    text=$(EMULATOR_SCHEDULE=$schedule timeout -s KILL 60 "$fixed" 2>&1)
    code=$?
    if [ $code -ne 0 ] || [[ $text == *emulator:* ]] || [[ $text != *$'\n'"PASS $name: "* ]]; then
      echo "$name mended, $schedule: exit code $code"$'\n'"$text"
    fi
  done
}

try_chapter() { # CHAPTER
  local sources=("$1"/pitfalls/*.cu)
  [ -e "${sources[0]}" ] || skip "no pitfalls"
  source common/pitfall-fields
  export -f first_report try_pitfall pitfall_field check_for
  export LD_LIBRARY_PATH=$PWD/build/emulator
  run xargs -P 2 -I SOURCE bash -c 'try_pitfall SOURCE' < <(printf '%s\n' "${sources[@]}")
  echo "$output"
  [ "$status" -eq 0 ]
  [ -z "$output" ]
}

@test "01: each pitfall is reported by its rule, and mended it is silent" {
  try_chapter 01_tiledcopy_baseline
}
@test "02: each pitfall is reported by its rule, and mended it is silent" {
  try_chapter 02_tma_load
}
@test "03: each pitfall is reported by its rule, and mended it is silent" {
  try_chapter 03_tma_store
}
@test "04: each pitfall is reported by its rule, and mended it is silent" {
  try_chapter 04_store_reduce
}
@test "05: each pitfall is reported by its rule, and mended it is silent" {
  try_chapter 05_multicast
}
@test "06: each pitfall is reported by its rule, and mended it is silent" {
  try_chapter 06_swizzle_3d
}
@test "07: each pitfall is reported by its rule, and mended it is silent" {
  try_chapter 07_pipelined_gemm
}

@test "each pitfall has a header with an outcome, three hints and a diff" {
  local source amiss=0
  for source in 0*/pitfalls/*.cu; do
    local name=$(basename "$source" .cu)
    if ! grep -q "^// pitfall $name: ." "$source" ||
      ! grep -qE '^//   H200: (hangs|(right|wrong) results|cudaError|CUDA_ERROR|not run yet$)' "$source" ||
      ! grep -q '^//   report: .' "$source" ||
      [ "$(grep -c '^hint: ' "${source%.cu}.fix")" -ne 3 ] ||
      ! grep -q '^@@ ' "${source%.cu}.fix"; then
      echo "amiss: $source"
      amiss=1
    fi
  done
  [ $amiss -eq 0 ]
}

@test "what counts as reproduced on the GPU: the recorded outcome, three times" {
  source common/pitfall-fields
  three() { printf '%s\n' "$@"; }
  reproduced hangs "$(three hangs hangs hangs)"
  ! reproduced hangs "$(three hangs hangs "right results")" || false
  ! reproduced "right results" "$(three "right results" "wrong results" "right results")" || false
  reproduced "hangs or right results" "$(three "right results" hangs "right results")"
  reproduced "hangs or right results" "$(three hangs hangs hangs)"
  ! reproduced "hangs or right results" "$(three hangs "right results" "wrong results")" || false
  ! reproduced "hangs or right results" "$(three hangs results hangs)" || false
  # The driver's name and the runtime's name of one answer.
  local name=cudaErrorInvalidValue
  reproduced CUDA_ERROR_INVALID_VALUE "$(three $name $name $name)"
  name=cudaErrorIllegalAddress
  ! reproduced CUDA_ERROR_INVALID_VALUE "$(three $name $name $name)" || false
  ! reproduced "not run yet" "$(three hangs hangs hangs)" || false
}

@test "each rule that a pitfall names is in CHECKS.md, with the pitfall" {
  local source amiss=0
  for source in 0*/pitfalls/*.cu; do
    local rule=$(sed -n 's|^//   report: ||p' "$source")
    [ "$rule" != none ] || continue
    local shown="${source%%_*}/$(basename "$source" .cu)"
    if ! grep "^| \`$rule\` " common/emulator/CHECKS.md | grep -q "$shown\b"; then
      echo "amiss: $source with $rule"
      amiss=1
    fi
  done
  [ $amiss -eq 0 ]
}

# To record a report anew: what this test shows as "+" belongs into tests/recorded.
@test "the reports that READMEs quote are what the emulator prints first" {
  local recorded chapter name shown=0 amiss=0
  without_numbers() { sed '/^  PTX line/s/[0-9][0-9]*/N/g' "$1"; }
  for recorded in tests/recorded/0*/*.report.txt; do
    chapter=$(basename "$(dirname "$recorded")") name=$(basename "$recorded" .report.txt)
    grep -q "begin: $name.report.txt" "$chapter/README.md"
    LD_LIBRARY_PATH=build/emulator EMULATOR_THREADS=1 \
      "build/$chapter/pitfalls/$name" 2>"$BATS_TEST_TMPDIR/all" >/dev/null || true
    # The registers and lines of PTX are the compiler's business.
    awk '(/^emulator: / && ++reports > 1) || !/^(emulator:|  )/ { exit } { print }' \
      "$BATS_TEST_TMPDIR/all" >"$BATS_TEST_TMPDIR/first"
    diff -u <(without_numbers "$recorded") <(without_numbers "$BATS_TEST_TMPDIR/first") || amiss=1
    shown=$((shown + 1))
  done
  [ $amiss -eq 0 ]
  [ $shown -ge 7 ] # one of each chapter
}

@test "an exercise: given out, hinted at, refused, mended, followed by the next" {
  saved_exercises=$BATS_TEST_TMPDIR/exercises
  [ ! -e build/exercises ] || mv build/exercises "$saved_exercises"
  local fix
  fix=$(ls 03_tma_store/pitfalls/*.fix | head -n 1)

  run make --no-print-directory exercise-03
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"your exercise: build/exercises/03_1.cu"* ]]
  ! grep -q "^// pitfall\|^//   report" build/exercises/03_1.cu || false

  for number in 1 2 3; do
    run make --no-print-directory hint-03
    [[ $output == *"hint $number of 3: "* ]]
  done
  run make --no-print-directory hint-03
  [[ $output == *"that was the last hint"* ]]

  run make --no-print-directory exercise-03
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"not right yet: build/exercises/03_1.cu"* ]]

  patch --silent build/exercises/03_1.cu "$fix"
  run make --no-print-directory exercise-03
  echo "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"right! The next one: make exercise-03"* ]]

  run make --no-print-directory exercise-03
  echo "$output"
  [[ $output == *"your exercise: build/exercises/03_2.cu"* ]]
}
