#!/usr/bin/env bats
# What all lessons and all pitfalls have in common (what they print is tested with their chapter).
# builds: tests/joined/%/pitfalls/joined

load helpers

@test "a lesson without a README, a recording or ncu's counters: what to type (print_what_was_recorded asks for each)" {
  run lacking tests/04_store_reduce/dimensions.cu
  [ "${lines[0]}" = "tests/04_store_reduce/dimensions.cu: no README of its folder names it" ]
  [[ ${lines[1]} == *": type common/make/record tests/recorded/tests/04_store_reduce/dimensions.txt" ]]
  [[ ${lines[2]} == *" counters tests/04_dimensions; without one, add the row tests/04_dimensions,KERNEL,LAUNCHES,,,,,,,,, for each kernel" ]]
}

@test "each pitfall has a header with an outcome, and a diff; an exercise has its reason, a level, a title and three hints" {
  local source head wanted failed=0
  for source in 0*/{,*/}pitfalls/*.cu; do
    local name=$(basename "$source" .cu)
    for wanted in "// pitfall $name: ." '//   H200: (hangs|(right|wrong) results|cudaError|CUDA_ERROR|not run yet$)' \
      '//   report: .'; do
      grep -qE "^$wanted" "$source" || { echo "$source: no line that begins with: $wanted"; failed=1; }
    done
    grep -qs '^@@ ' "${source%.cu}.fix" || { echo "$source: no ${source%.cu}.fix with a diff that repairs it"; failed=1; }
    head=$(sed -n '/^--- /q; s/: .*//p' "${source%.cu}.fix" | paste -sd' ')
    wanted="exercise level title hint hint hint"
    if [[ -n $head && $head != aside && $head != "$wanted" ]] ||
      { [[ $head == "$wanted" ]] && ! grep -qE '^level: (easy|medium|hard)$' "${source%.cu}.fix"; }; then
      echo "${source%.cu}.fix: above the diff of an exercise stand: $wanted"
      failed=1
    fi
  done
  [ $failed -eq 0 ]
}

@test "what counts as reproduced on the GPU: the recorded outcome, three times" {
  source common/make/pitfall-fields
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
  local source failed=0
  for source in 0*/{,*/}pitfalls/*.cu; do
    local rule=$(sed -n 's|^//   report: ||p' "$source")
    [ "$rule" != none ] || continue
    local shown="${source%%_*}/$(basename "$source" .cu)"
    if ! grep "^- \`$rule\`: " emulator/CHECKS.md | grep -q "$shown\b"; then
      echo "$source: emulator/CHECKS.md does not name it with $rule: type emulator/write-checks"
      failed=1
    fi
  done
  [ $failed -eq 0 ]
}

# To record a report anew: copy what this test shows as "+" to tests/recorded.
@test "the reports that READMEs quote are what the emulator prints first" {
  local recorded chapter name shown=0 failed=0
  # Joined with the others, a pitfall is in a namespace of its name, and its shared memory may be aligned otherwise.
  without_numbers() {
    sed -E -e "s/\<$name:://g" -e '/^  PTX line/s/[0-9]+/N/g' -e 's/(\(in [^:]*):[0-9]+\)/\1:N)/' \
      -e 's/^  [0-9]+( bytes \(static)/  N\1/' "$1"
  }
  for recorded in tests/recorded/0*/*.report.txt; do
    chapter=$(basename "$(dirname "$recorded")") name=$(basename "$recorded" .report.txt)
    grep -q "begin: $name.report.txt" "$chapter/README.md"
    LD_LIBRARY_PATH=build/emulator EMULATOR_THREADS=1 \
      "build/tests/joined/$chapter/pitfalls/$name" 2>"$BATS_TEST_TMPDIR/all" >/dev/null || true
    # The registers and lines of PTX are the compiler's business, and so is which line of a statement in
    # a header has its instruction.
    awk '(/^emulator: / && ++reports > 1) || !/^(emulator:|  )/ { exit } { print }' \
      "$BATS_TEST_TMPDIR/all" >"$BATS_TEST_TMPDIR/first"
    diff -u <(without_numbers "$recorded") <(without_numbers "$BATS_TEST_TMPDIR/first") || failed=1
    shown=$((shown + 1))
  done
  [ $failed -eq 0 ]
  [ $shown -ge 7 ] # one of each chapter
}

@test "a pitfall that leaves an #include to the others is refused: alone it would not compile" {
  local pitfalls=02_tma_load/pitfalls folder=$BATS_TEST_TMPDIR/02_tma_load header
  mkdir -p "$folder/pitfalls"
  cp 02_tma_load/*.cuh "$folder/"
  cp $pitfalls/too_many_bytes.cu $pitfalls/read_without_wait.cu "$folder/pitfalls/"
  run -0 python3 -B tests/join.py "$folder"/pitfalls/*.cu
  for header in tma_load.cuh check.h tensor_map.h; do
    sed "/^#include .*$header/d" $pitfalls/too_many_bytes.cu >"$folder/pitfalls/too_many_bytes.cu"
    run -1 python3 -B tests/join.py "$folder"/pitfalls/*.cu
    [[ $output == *"too_many_bytes.cu uses "*" and does not include $header"* ]]
  done
}

@test "show-pitfalls shows the report of each pitfall, and the lines that fix it" {
  local root=$BATS_TEST_TMPDIR/root pitfalls=02_tma_load/pitfalls
  mkdir -p "$root"/{common,$pitfalls,build/{common,02_tma_load}}
  cp -r common/make "$root/common/"
  cp $pitfalls/{too_many_bytes,every_thread_issues}.{cu,fix} "$root/$pitfalls/"
  ln -s "$PWD/emulator" "$root/"
  ln -s "$PWD/build/common/find-device" "$root/build/common/"
  ln -s "$PWD/build/tests/joined/$pitfalls" "$root/build/02_tma_load/"
  DEVICE=emulator run -0 "$root/common/make/show-pitfalls" 02_tma_load
  [[ $output == *"FAIL too_many_bytes: cudaErrorLaunchTimeout
the fix, in lines of $pitfalls/too_many_bytes.cu:
   24 -  TILE_BYTES = TILE_ELEMENTS * sizeof(float),
   24 +  TILE_BYTES = TILE_ELEMENTS * sizeof(uint16_t),
"* ]]
  # What is taken away has its number in the pitfall, and what is added has its number in the fixed program.
  [[ $output == *"
   35 -  tma_load_2d(tile, &map, first_column, first_row, &barrier);
   34 +  if (threadIdx.x == 0) {
"*"
   37 +  }
"* ]]
}
