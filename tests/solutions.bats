#!/usr/bin/env bats
# What the judges of the exercises take for right: the solutions, and nothing else. make check-all runs this file;
# exercises.bats has what make check tries.
# builds: %.ptx %/exercises/judge tests/joined/03_%

load helpers

setup() {
  begin_test
  use_exercises_of_its_own
}

# Prints what is wrong with one exercise to write; nothing when all is as it should be.
try_written() { # SOURCE
  local chapter=${1%%/*} room=${1%/exercises/*} name text
  name=$(basename "$1" .cu)
  export EXERCISE=$name
  text=$(PTX=build/$room/exercises/$name.ptx common/exercises/exercise judge-ptx "$chapter")
  [ -n "$text" ] || echo "$name: the skeleton counts as right"
  text=$(PTX=build/$room/exercises/$name.solved.ptx common/exercises/exercise judge-ptx "$chapter")
  [ -z "$text" ] || echo "$name: the solution counts as wrong: $text"
}

@test "every skeleton is not right yet, and every solution is right, in all orders" {
  export -f try_written
  run -0 xargs -P 2 -I SOURCE bash -c 'try_written SOURCE' < <(ls 0*/{,*/}exercises/*.cu)
  [ -z "$output" ]
}

@test "to write: right results by luck are not right: a barrier's init that nothing orders" {
  local solved=build/06_swizzle_3d/exercises/column_without_conflicts.solved.ptx
  grep -q 'bar\(rier\)\?\.sync' $solved
  judged_ptx column_without_conflicts < <(sed '/bar\(rier\)\?\.sync/d' $solved)
  [[ $output == *"in kernel column_without_conflicts, block (0,0,0), threads 1-31"* ]]
  [[ $output == *"the exit code is 3"* ]]
}

# What is said to a solution in which sed changes something.
changed_solution() { # NAME CHAPTER SED
  export EXERCISE=$1
  exercise start "$2"
  local copy
  copy=$(ls "$EXERCISES"/*.cu)
  patch --silent "$copy" "$2/exercises/$1.solution"
  sed -i "$3" "$copy"
  exercise start "$2"
  rm "$copy"
  [[ $output == *"not right yet"* ]]
}

@test "to write: swapped coordinates are named, and right but slow is not right" {
  changed_solution write_store 03_tma_store 's/tile, x, y)/tile, y, x)/'
  [[ $output == *"your tile lies at row 16, column 8: a coordinate pair is {column, row}"* ]]
  changed_solution write_load 02_tma_load 's/&map, x, y,/\&map, y, x,/'
  [[ $output == *"your tile comes from row 16, column 8: "* ]]
  changed_solution producer_warp 02_tma_load 's/BUFFERS = 4/BUFFERS = 3/'
  [[ $output == *"there are at most 3, with the solution 4"* ]]
  changed_solution double_ring 03_tma_store 's/BUFFERS - 1/1/; s/t + BUFFERS - 1/t + 1/'
  [[ $output == *"there are at most 2, with the solution 4"* ]]
  changed_solution multicast_ring 05_multicast 's/BUFFERS = 2/BUFFERS = 1/'
  [[ $output == *"there are at most 1, with the solution 2"* ]]
  run env EXERCISE=sum_first PTX=build/04_store_reduce/exercises/sum_first.ptx common/exercises/exercise judge-ptx 04_store_reduce
  [ "$output" = "it copies 12800 bytes by tensor reduce, and the solution 3072" ]
}

@test "to repair: neither a main that prints, nor one that no longer checks, but the fix is right" {
  local right=build/tests/joined/03_tma_store/fixed/fence_in_the_wrong_thread fix=03_tma_store/pitfalls/fence_in_the_wrong_thread.fix
  export EXERCISE=03_5
  exercise start 03_tma_store
  [[ $output == *"your exercise: $EXERCISES/03_5.cu (to repair, hard): a fence that covers"* ]]
  ! grep -q "^// pitfall\|^//   report\|fence_in_the_wrong_thread" "$EXERCISES/03_5.cu" || false
  cp "$EXERCISES/03_5.cu" "$BATS_TEST_TMPDIR/given.cu"

  {
    echo '#include <stdio.h>'
    echo 'int main(void) {'
    echo '  puts("device: mine");'
    LD_LIBRARY_PATH=build/emulator $right | tail -n +2 | sed 's/fence_in_the_wrong_thread/exercise_03_5/; s/.*/  puts("&");/'
    echo '}'
  } >"$EXERCISES/03_5.cu"
  exercise start 03_tma_store
  [[ $output == *"it launches: and the right program: "* ]]
  [[ $output == *"not right yet"* ]]

  # Silent, the right output, the right copies, and the wrong numbers.
  cp "$BATS_TEST_TMPDIR/given.cu" "$EXERCISES/03_5.cu"
  patch --silent "$EXERCISES/03_5.cu" $fix
  cp "$EXERCISES/03_5.cu" "$BATS_TEST_TMPDIR/fixed.cu"
  sed -i -e 's/^  check_tile(.*/  got[0] += 0 * expected[0];/' -e 's/first_column + i % TILE;/first_column;/' "$EXERCISES/03_5.cu"
  exercise start 03_tma_store
  [[ $output == *"its kernel is not with that of the exercise"* ]]
  [[ $output == *"not right yet"* ]]

  cp "$BATS_TEST_TMPDIR/fixed.cu" "$EXERCISES/03_5.cu"
  exercise start 03_tma_store
  [[ $output == *"right! 1 of "* ]]
}
