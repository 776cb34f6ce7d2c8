#!/usr/bin/env bats
# The exercises: what is given out, what counts as right, and what does not. solutions.bats, in make check-all, judges
# every skeleton and every solution.
# builds: lessons %/exercises/judge

load helpers

setup() {
  begin_test
  use_exercises_of_its_own
}

@test "each exercise to write has a title, a level, three hints and a solution; each chapter has three" {
  local source answer chapter failed=0
  for source in 0*/{,*/}exercises/*.cu; do
    answer=${source%.cu}.solution
    if ! head -n 1 "$source" | grep -q "^// exercise $(basename "$source" .cu): ." ||
      ! head -n 1 "$answer" | grep -qE '^level: (easy|medium|hard)$' ||
      [ "$(grep -c '^hint: ' "$answer")" -ne 3 ] ||
      ! grep -q "{\"$(basename "$source" .cu)\", judge_" "${source%%/*}/exercises/judge.c" ||
      grep -q 'int main' "$source"; then
      echo "wrong: $source"
      failed=1
    fi
  done
  [ $failed -eq 0 ]
  for chapter in 0*_*; do
    ls "$chapter"/exercises/*.cu >"$BATS_TEST_TMPDIR/list"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/list")" -ge 3 ]
  done
}

@test "to write: no kernel, an empty one, one that prints PASS, and one with other parameters" {
  local begin=$'.version 8.0\n.target sm_90a\n.address_size 64\n'
  judged_ptx write_load <<<"$begin"
  [[ $output == *"no kernel named write_load"* ]]
  judged_ptx write_load <<<"$begin .visible .entry write_load() { ret; }"
  [[ $output == *"wrong results for 32x64 matrix"* ]]
  judged_ptx write_load <<<"$begin .visible .entry write_load(.param .align 64 .b8 big[4000]) { ret; }"
  [[ $output == *"the exit code is "[1-9]* ]]
  judged_ptx write_load <<END
$begin
.extern .func (.param .b32 answer) vprintf(.param .b64 format, .param .b64 values);
.global .align 1 .b8 text[42] = {80, 65, 83, 83, 32, 119, 114, 105, 116, 101, 95, 108, 111, 97, 100, 58, 32, 52,
  32, 108, 97, 117, 110, 99, 104, 101, 115, 44, 32, 101, 118, 101, 114, 121, 32, 101, 108, 101, 109, 46, 10, 0};
.visible .entry write_load() {
  .reg .b64 %rd<3>;
  mov.u64 %rd1, text;
  cvta.global.u64 %rd1, %rd1;
  mov.u64 %rd2, 0;
  { .param .b64 a; .param .b64 b; .param .b32 c;
    st.param.b64 [a], %rd1; st.param.b64 [b], %rd2;
    call.uni (c), vprintf, (a, b); }
  ret;
}
END
  [[ $output == *"PASS write_load"* ]]
  [[ $output == *"wrong results"* ]]
}

@test "an exercise to write: given out, hinted at, refused, written, followed by the next" {
  local number
  run make --no-print-directory exercise-02
  [[ $output == *"your exercise: $EXERCISES/02_1.cu (to write, easy): write the load"* ]]
  for number in 1 2 3; do
    exercise hint 02_tma_load
    [[ $output == *"hint $number of 3: "* ]]
  done
  exercise hint 02_tma_load
  [[ $output == *"that was the last hint"* ]]

  # The skeleton as it is: the report names the learner's file and line.
  exercise start 02_tma_load
  [[ $output == *"emulator: uninitialised-read: "*"  at 02_1.cu:18"* ]]
  [[ $output == *"not right yet: $EXERCISES/02_1.cu"* ]]

  # A program with a main of its own, which would print PASS: it is never run.
  echo 'extern "C" int puts(const char *); int main(void) { return puts("PASS write_load: all"); }' \
    >"$EXERCISES/02_1.cu"
  exercise start 02_tma_load
  [[ $output == *"no kernel named write_load"* ]]
  [[ $output == *"not right yet: $EXERCISES/02_1.cu"* ]]
  [ ! -e "$EXERCISES/02_1.solved" ]

  rm "$EXERCISES/02_1.cu"
  exercise start 02_tma_load
  patch --silent "$EXERCISES/02_1.cu" 02_tma_load/exercises/write_load.solution
  exercise start 02_tma_load
  [[ $output == *"The reference solution, 02_tma_load/exercises/write_load.solution, writes:"* ]]
  [[ $output == *"tma_load_2d("* ]]
  [[ $output =~ Instructions\ of\ all\ threads:\ yours\ ([1-9][0-9]+),\ the\ solution\ ([1-9][0-9]+) ]]
  [ "${BASH_REMATCH[1]}" -eq "${BASH_REMATCH[2]}" ]
  [[ $output == *"right! 1 of "*" exercises done. The next one: make exercise-02"* ]]
  exercise start 02_tma_load
  [[ $output == *"your exercise: $EXERCISES/02_2.txt (to predict, easy): what a fresh barrier answers"* ]]
}

@test "results without the copies that they were to come from are not right" {
  source common/exercises/exercise-judge
  printf '%s\n' 'emulator: counted in kernel k, launches 1, clusters 1' \
    '  tensor store      1 copies, 512 bytes' '  shared reads  9 by warps, 512 bytes, 4 passes over the banks' |
    tr -d , >"$BATS_TEST_TMPDIR/right"
  run compare_work "$BATS_TEST_TMPDIR/right" "$BATS_TEST_TMPDIR/right" "passes shared reads"
  [ -z "$output" ]
  sed -e '/tensor store/d' -e 's/4 passes/7 passes/' "$BATS_TEST_TMPDIR/right" >"$BATS_TEST_TMPDIR/mine"
  run compare_work "$BATS_TEST_TMPDIR/right" "$BATS_TEST_TMPDIR/mine" "passes shared reads"
  [[ ${lines[0]} == "it copies 0 bytes by tensor store, and the right program 512" ]]
  [[ ${lines[1]} == "it makes 7 passes shared reads, and the solution 4" ]]
  run compare_work "$BATS_TEST_TMPDIR/right" "$BATS_TEST_TMPDIR/mine" "accesses shared reads"
  [ ${#lines[@]} -eq 1 ]
  : >"$BATS_TEST_TMPDIR/mine"
  run compare_work "$BATS_TEST_TMPDIR/right" "$BATS_TEST_TMPDIR/mine" ""
  [[ ${lines[0]} == "it launches: and the right program: k launches 1"* ]]
}

@test "what the kernel did not write is named as that" {
  EXERCISE=01_1 exercise start 01_tiledcopy_baseline
  EXERCISE=01_1 exercise start 01_tiledcopy_baseline
  [[ $output == *" got -1515870811"* ]]
  [[ $output == *"the kernel did not write there"* ]]
}

@test "at level hard the report shows where, but neither the rule nor the advice" {
  source common/exercises/exercise-judge
  local recorded=tests/recorded/03_tma_store/missing_proxy_fence.report.txt
  run show_report "$recorded" medium
  [ "$output" = "$(cat "$recorded")" ]
  run show_report "$recorded" hard
  [[ ${lines[0]} == "emulator: error in kernel fill, block (0,0,0), thread 0" ]]
  [[ ${lines[1]} == "  at missing_proxy_fence.cu:32"* ]]
  [ ${#lines[@]} -eq 4 ]
  [[ $output != *fence.proxy* ]]
}

@test "make exercises lists them with what is done: each kind by difficulty, the kinds in turn" {
  mkdir -p "$EXERCISES"
  touch "$EXERCISES/04_1.cu" "$EXERCISES/04_1.solved" "$EXERCISES/04_2.txt"
  run -0 make --no-print-directory exercises-04
  [[ ${lines[1]} == "  04_1   easy    write   the maximum instead of the sum "*" done" ]]
  [[ ${lines[2]} == "  04_2   easy    predict four blocks add "*" begun" ]]
  [[ ${lines[-1]} == "1 of "*" exercises done" ]]
  local kind
  for kind in write predict; do
    awk -v kind=$kind '/^  04_/ && $3 == kind { print index("easy medium hard", $2) }' <<<"$output" >"$BATS_TEST_TMPDIR/levels"
    sort -n -c "$BATS_TEST_TMPDIR/levels"
  done
  # Of the pitfalls those whose .fix says why they are exercises.
  grep -l '^exercise: ' 04_store_reduce/pitfalls/*.fix >"$BATS_TEST_TMPDIR/chosen"
  [ "$(grep -c ' repair ' <<<"$output")" -eq "$(wc -l <"$BATS_TEST_TMPDIR/chosen")" ]
}

@test "to predict: each question has three reasons, one of them right, and its program answers it in one line" {
  local question run failed=0
  for question in 0*/{,*/}exercises/*.predict; do
    read -ra run <<<"$(sed -n 's/^run: //p' "$question")"
    common/make/run-program "build/${run[0]}" "${run[@]:1}" | tail -n +2 |
      awk "$(sed -n 's/^answer: //p' "$question")" >"$BATS_TEST_TMPDIR/answer"
    if ! grep -qE '^level: (easy|medium|hard)$' "$question" || ! grep -q '^title: .' "$question" ||
      ! grep -q '^hint: .' "$question" || ! sed '1,/^$/d' "$question" | grep -q '?' ||
      ! grep -q '^because: [abc]$' "$question" ||
      [ "$(grep -oE '^(to )?[abc]: ' "$question" | paste -sd' ')" != "a:  to a:  b:  to b:  c:  to c: " ] ||
      [ "$(wc -l <"$BATS_TEST_TMPDIR/answer")" -ne 1 ] || ! grep -q . "$BATS_TEST_TMPDIR/answer"; then
      echo "wrong: $question: $(cat "$BATS_TEST_TMPDIR/answer")"
      failed=1
    fi
  done
  [ $failed -eq 0 ]
}

@test "to predict: given out, no answer yet, no reason, a wrong one of each, and what is said to it" {
  export EXERCISE=which_byte
  exercise start 06_swizzle_3d
  local copy=$(ls "$EXERCISES"/06_*.txt)
  grep -q "At which byte of the tile" "$copy"
  grep -q "^  c  column 17 is in chunk 2" "$copy"
  ! grep -q "awk\|print\|^to \|because: ." "$copy" || false
  exercise start 06_swizzle_3d
  [[ $output == *"there is no answer yet"*"not right yet: $copy"* ]]
  sed -i 's/^answer: $/answer: 418/' "$copy"
  exercise start 06_swizzle_3d
  [[ $output == *"the reason is '', but must be a, b or c"*"not right yet: $copy"* ]]
  sed -i 's/^because: $/because: a/' "$copy"
  exercise start 06_swizzle_3d
  [[ $output == *"does not print '418' there"*"to a: That is the place without a swizzle."*"not right yet: $copy"* ]]
  sed -i 's/^answer: .*/answer: 402/' "$copy"
  exercise start 06_swizzle_3d
  [[ $output == *"the answer is right, but not because of a"*"to a: That is the place"*"not right yet: $copy"* ]]
  sed -i -e 's/^answer: .*/answer: 34/' -e 's/^because: .*/because: c/' "$copy"
  exercise start 06_swizzle_3d
  [[ $output == *"does not print '34' there"*"the reason is right, and leads to another answer"* ]]
  [[ $output != *"384 + 1 * 16"* ]]
  [ ! -e "${copy%.txt}.solved" ]
  sed -i -e 's/^answer: .*/answer:  402 /' -e 's/^because: .*/because: C/' "$copy"
  exercise start 06_swizzle_3d
  [[ $output == *"prints:"*"402"*"384 + 1 * 16 + 2."*"right! 1 of "* ]]
  [ -e "${copy%.txt}.solved" ]
}

@test "an exercise that does not exist is refused with the list" {
  EXERCISE=99 run -2 common/exercises/exercise start 04_store_reduce
  [[ ${lines[0]} == "EXERCISE is '99', but there is no such exercise; there are:" ]]
  [[ $output == *"04_1   easy    write   the maximum instead of the sum"* ]]
  run -2 build/02_tma_load/exercises/judge nothing x.ptx 1
  [[ $output == "judge: there is no exercise 'nothing' here; there are: write_load"* ]]
  run -2 build/02_tma_load/exercises/judge write_load x.ptx many
  [[ $output == *"the seed is 'many'"* ]]
}

@test "a folder for exercises that make cannot work with: the path and the characters, exit 2" {
  local folder
  for folder in "/tmp/with space" "/tmp/a:b" '/tmp/$x'; do
    EXERCISES=$folder run -2 common/exercises/exercise start 02_tma_load
    [[ $output == "EXERCISES is '$folder', and make cannot work with "* ]]
    [ ! -e "$folder" ]
  done
}
