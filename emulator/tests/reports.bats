#!/usr/bin/env bats
# How the emulator reports: grades and exit codes, one report for one mistake, names of kernels.

load helpers
programs=build/emulator/tests
# With several host threads another block may come first.
export EMULATOR_THREADS=1
unset EMULATOR_CHECK EMULATOR_SCHEDULE

emulate() { emulator/emulate "$@"; }

# How many reports were printed in full.
reports_in() { grep -cE '^emulator: [a-z-]+: (error|strict finding) in kernel ' <<<"$1"; }

@test "a strict finding is printed and leaves the exit code alone; strict makes it 3" {
  program=build/02_tma_load/pitfalls/init_not_fenced
  run -0 emulate $program
  [[ $output == *"emulator: mbarrier-init-not-fenced: strict finding in kernel "* ]]
  [[ $output == *"emulator: 1 finding (1 strict)"* ]]
  EMULATOR_CHECK=strict run -3 emulate $program
  [[ $output == *"emulator: mbarrier-init-not-fenced: strict finding in kernel "* ]]
  EMULATOR_CHECK=errors run -0 emulate $program
  [[ $output != *emulator:* ]]
}

@test "an error makes the exit code 3 in every mode but off" {
  program=build/03_tma_store/pitfalls/missing_proxy_fence
  for mode in on errors strict layout; do
    EMULATOR_CHECK=$mode run -3 emulate $program
    [[ $output == *"emulator: missing-proxy-fence: error in kernel fill, "* ]]
  done
  EMULATOR_CHECK=off run -0 emulate $program
}

@test "both grades: errors and strict findings are counted apart" {
  run emulate build/02_tma_load/pitfalls/parity_not_flipped
  [[ $output == *"emulator: 2 findings (1 error, 1 strict)"* ]]
}

# Lines "HEADING|PLACE|RULE|GRADE" for each bug of FOUND.md; what is missing is empty. What the hardware reports, too, has
# the grade "fault".
bugs_found() { # FILE
  awk -F '`' '
    function finish() { if (heading) print heading "|" place "|" rule "|" grade; heading = "" }
    /^##/ { finish() }
    /^### / { heading = substr($0, 5); place = rule = grade = ""; getline; place = $0; getline; place = place " " $0 }
    heading && /^Reported: `/ { rule = $2; split($3, words, "[ ,]+"); grade = words[2] }
    END { finish() }' "$1"
}

misformed_bugs() { # FILE
  local heading place rule grade rules
  rules=$(emulator/write-checks --rules | sed 's/ layout$/ strict/; s/ hang$/ fault/')
  while IFS='|' read -r heading place rule grade; do
    grep -qE '^[A-Za-z0-9.+_-]+,? .*: .' <<<"$heading" || echo "no project and what is wrong: $heading"
    grep -qE '^`[A-Za-z0-9_./-]+\.[a-z]+`' <<<"$place" || echo "no file: $heading"
    grep -qE 'lines? [0-9]|[^,] `[^`]+`|, `' <<<"$place" || echo "neither a line nor a statement: $heading"
    expected=$(sed -n "s/^$rule //p" <<<"$rules")
    [ -n "$expected" ] || echo "no report by a rule of CHECKS.md: $heading"
    [ "$grade" = $expected ] || echo "the grade of $rule is $expected: $heading"
  done < <(bugs_found "$1")
}

@test "FOUND.md: each bug has its project, file and place, what is wrong, and the rule that reports it, with its grade" {
  found=emulator/FOUND.md
  [ "$(bugs_found $found | wc -l)" -ge 13 ]
  run misformed_bugs $found
  [ -z "$output" ]
  sed '0,/`read-without-wait`, error/s//`read-without-wait`, strict finding/; /matmul_11.cuh` (/d
    s/`global-out-of-bounds`, fault/`global-out-of-sight`, fault/' $found >"$BATS_TEST_TMPDIR/changed"
  run misformed_bugs "$BATS_TEST_TMPDIR/changed"
  [ "${#lines[@]}" -ge 3 ]
  [[ ${lines[0]} == "the grade of read-without-wait is error: CUTLASS 4.2, "* ]]
  [[ ${lines[1]} == "no file: fast.cu, kernel 11: "* ]]
  [[ $output == *"no report by a rule of CHECKS.md: Numba 0.61.2, "* ]]
}

@test "an unrolled loop: one report, and how often and where at the end" {
  run -3 emulate $programs/report_cases unrolled
  [ "$(reports_in "$output")" -eq 1 ]
  [[ $output == *"emulator: 1 finding (1 error)"* ]]
  repeated='shared-race at report_cases.cu:[0-9]+: [0-9]+ times, in several blocks, by 32'
  repeated+=' instructions \(PTX lines [0-9]+ to [0-9]+\), at offsets 0x[0-9a-f]+ to 0x[0-9a-f]+'
  grep -qE "^  $repeated of shared memory$" <<<"$output"
}

@test "threads that have exited after another number of barriers: where the warps met" {
  run emulate $programs/report_cases passed_apart
  text=$(tr -s ' \n' ' ' <<<"$output")
  inside=$(grep -n '// in the loop' emulator/tests/report_cases.cu | cut -d: -f1)
  behind=$(grep -n '// behind it' emulator/tests/report_cases.cu | cut -d: -f1)
  [[ $text == *"emulator: exited-before-barrier: strict finding in kernel passed_apart, "* ]]
  [[ $text =~ "Before, some warps have passed a __syncthreads() at report_cases.cu:"([0-9]+)" while others passed one at report_cases.cu:"([0-9]+)": all must" ]]
  met=$(printf '%s\n' "${BASH_REMATCH[@]:1}" | sort -n | tr '\n' ' ')
  [ "$met" = "$inside $behind " ]
  # One instruction that the compiler has unrolled is one place.
  run emulate $programs/report_cases exited
  [[ $output != *"while others passed"* ]]
}

@test "stores that are not waited for: a wait before the first one was not meant for them" {
  run emulate $programs/report_cases stored_in_halves
  [ "$(reports_in "$output")" -eq 1 ]
  [[ $output == *"emulator: exit-before-store-read: strict finding in kernel stored_in_halves, "* ]]
}

@test "a store whose own thread waits for too few: other threads at the same wait do not matter" {
  run emulate $programs/report_cases waited_for_too_few
  [ "$(reports_in "$output")" -eq 1 ]
  [[ $output == *"emulator: exit-before-store-read: strict finding in kernel waited_for_too_few, "* ]]
}

@test "two mistakes in one kernel are two reports" {
  run emulate $programs/report_cases two_mistakes
  [ "$(reports_in "$output")" -eq 2 ]
}

@test "threads that have exited before a barrier: who and where" {
  run -0 emulate $programs/report_cases exited
  line=$(grep -n '// here they leave' emulator/tests/report_cases.cu | cut -d: -f1)
  [[ $output == *"emulator: exited-before-barrier: strict finding in kernel exited, "* ]]
  [[ $output == *"exited at report_cases.cu:$line, before the barrier"* ]]
  [[ $output != *"Put __syncthreads()"* ]]
}

@test "a warp that writes after the barrier and exits races" {
  run -3 emulate $programs/report_cases arrived_before_writing
  [[ $output == *"emulator: shared-race: error in kernel arrived_before_writing, "* ]]
}

@test "a plain access beside an atomic one: where both are, and both ways to fix it" {
  run -3 emulate $programs/report_cases asked_beside_atomic
  asks=$(grep -n '// here it asks' emulator/tests/report_cases.cu | cut -d: -f1)
  takes=$(grep -n '// here it takes' emulator/tests/report_cases.cu | cut -d: -f1)
  [[ $output == *"  at report_cases.cu:$asks"* ]]
  [[ $(tr -s '\n ' ' ' <<<"$output") == *"at report_cases.cu:$takes, and nothing orders the two"* ]]
  [[ $output == *"Only one of them is atomic or volatile."* ]]
  run -0 emulate $programs/report_cases asked_atomically
  [[ $output != *"emulator:"* ]]
}

@test "kernels in templates and namespaces have readable names" {
  run emulate $programs/report_cases template
  [[ $output == *"error in kernel outer::(anonymous namespace)::multiply<int, 4>, block"* ]]
  run emulate $programs/report_cases argument
  [[ $output == *"error in kernel outer::first_of<int>, block"* ]]
}

@test "a static kernel's name without what nvcc puts before it" {
  for name in __nv_static_38__0b9c7b04_9_report_cu_2f6c8d3e_1234567_race \
    __nv_static_38__0b9c7b04_9_report_cu_2f6c8d3e_1234567__Z4racePj; do
    ptx <<PTX
.visible .entry $name(.param .u64 out) {
.reg .b32 %r<4>; .reg .b64 %rd<2>;
.shared .align 4 .b8 tile[256];
mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, tile; add.u32 %r1, %r1, %r2;
st.shared.u32 [%r1], %r0;
xor.b32 %r1, %r1, 128;
ld.shared.u32 %r3, [%r1];
ld.param.u64 %rd0, [out];
st.global.u32 [%rd0], %r3;
ret;
}
PTX
    run $programs/run_ptx "$module" "$name" 1 64 buffer:u32:1
    [[ $output == *"error in kernel race, block"* ]]
  done
}

# The value is read from uninitialised shared memory.
undefined_cases_that() { $programs/undefined_cases --list | sed -n "s/ $1$//p"; }

@test "uninitialised values that never matter are not reported" {
  cases=$(LD_LIBRARY_PATH=build/emulator undefined_cases_that dropped)
  [ -n "$cases" ]
  for name in $cases; do
    for schedule in late early random:1; do
      echo "$name, $schedule"
      EMULATOR_SCHEDULE=$schedule run -0 emulate $programs/undefined_cases "$name"
      [ -z "$output" ]
    done
  done
}

# undefined_cases_report KIND MEMORY: each case of that kind has one report, of what it does to that memory.
undefined_cases_report() {
  local words
  cases=$(LD_LIBRARY_PATH=build/emulator undefined_cases_that "$1")
  [ -n "$cases" ]
  for name in $cases; do
    line=$(sed -n "/^CASE($name,/,/^}/{/here it matters/=}" \
      emulator/tests/undefined_cases.cu)
    case $name in
      *branches) words="it decides a branch" ;;
      addresses) words="it is an address" ;;
      *printed) words="it is printed" ;;
      *) words="it goes to global memory" ;;
    esac
    for schedule in late early random:1; do
      echo "$name, $schedule"
      EMULATOR_SCHEDULE=$schedule run -3 emulate $programs/undefined_cases "$name"
      [ "$(reports_in "$output")" -eq 1 ]
      text=$(tr -s ' \n' ' ' <<<"$output") # messages are broken between words
      [[ $text == *"uninitialised-read: error in kernel $name,"* ]]
      [[ $text == *$2", and the value matters: at undefined_cases.cu:$line $words "* ]]
    done
  done
}

@test "uninitialised values that matter: where they come from and where they matter" {
  undefined_cases_report matters 'reads shared memory at offset 0x*, which nothing has written'
}

@test "undefined bits: what each form makes of them is what brute force finds" {
  run -0 $programs/undefined_forms emulator/tests/alu_cases.txt
  [[ ${lines[-1]} =~ ^1[0-9]{3}\ forms,\ 0\ with\ mistakes$ ]]
}

# What undefined_forms would not see, it could not test.
@test "undefined bits: a wrong column of opcodes.def is found by brute force" {
  local wrong objects name flow
  mkdir -p "$BATS_TEST_TMPDIR/ptx"
  objects=$(find build/objects/emulator build/objects/common -name '*.o' ! -path '*/ptx/opcodes.o')
  while read -r name flow; do
    wrong=$BATS_TEST_TMPDIR/ptx/opcodes.def
    sed "/^OP(\"$name\",/{$flow}" emulator/ptx/opcodes.def >"$wrong"
    run ! cmp "$wrong" emulator/ptx/opcodes.def
    # shellcheck disable=SC2086
    cc -std=c11 -D_GNU_SOURCE -I"$BATS_TEST_TMPDIR" -Iemulator -Icommon emulator/tests/undefined_forms.c \
      emulator/ptx/opcodes.c $objects -o "$BATS_TEST_TMPDIR/forms" ${SANITIZE:-} -pthread -ldl -lm
    run -1 "$BATS_TEST_TMPDIR/forms" emulator/tests/alu_cases.txt "$name"
    echo "$name: $output"
    [[ $output == *"a bit depends on undefined bits and is not marked"* ]]
  done <<'EOF'
setp s/WRITES_PAIR,/WRITES,/
add s/FLOW_UPWARD/FLOW_SHIFT_TWO/
xor s/FLOW_BITWISE/FLOW_COPY/
min s/0)/FLOW_BITWISE)/
popc s/0)/FLOW_UPWARD)/
EOF
}

# The predicate of d|p: reported where it matters, and defined where it is, whether the steps are recorded or not.
@test "undefined bits: the predicate of lop3" {
  local watched tile
  for watched in EMULATOR_THREADS=1 "EMULATOR_RECORD=$BATS_TEST_TMPDIR/recording"; do
    for tile in %r1 %r4; do
      ptx <<EOF
.entry branches(.param .u64 out) {
  .shared .align 4 .b8 tile[128];
  .reg .b32 %r<9>; .reg .pred %p<6>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  ld.shared.u32 %r1, [tile];
  setp.eq.u32 %p1, %r1, 0;
  selp.b32 %r2, 1, 2, %p1;
  ld.global.u32 %r4, [%rd1+8];
  setp.eq.u32 %p2, %r4, 9;
  lop3.or.b32 %r5|%p1, $tile, -1, %r4, 0xc0, %p2;
  mov.u32 %r6, 1;
  @%p1 mov.u32 %r6, 2;
  st.global.u32 [%rd1], %r6;
  ret;
}
EOF
      run env $watched $programs/run_ptx "$module" branches 1 1 buffer:u32:16
      if [ $tile = %r1 ]; then
        [ "$(reports_in "$output")" -eq 1 ]
        [[ $(tr -s ' \n' ' ' <<<"$output") == *"at PTX line 15 it decides whether this is executed"* ]]
      else
        [[ $output != *emulator:* ]]
      fi
    done
  done
}

@test "atomics on shared memory that nothing has written" {
  undefined_cases_report counted 'atomically changes shared memory at offset 0x*, which nothing has written'
}

# The C library fills what it allocates: as a width of a printf that would be a second finding.
@test "unwritten local memory holds nothing that the host left there" {
  MALLOC_PERTURB_=85 run -3 emulate $programs/undefined_cases local_printed
  [ "$(reports_in "$output")" -eq 1 ]
}

@test "values from local memory that the thread has never written" {
  undefined_cases_report local 'reads local memory that this thread has never written (*)'
}

# Each line of the list: a case, and what its report says or "dropped".
undefined_tiles_try() {
  local schedule=$1 name says text
  while read -r name says; do
    EMULATOR_SCHEDULE=$schedule run emulate $programs/undefined_tiles "$name"
    echo "$name, $schedule: $output"
    if [ "$says" = dropped ]; then
      [ "$status" -eq 0 ]
      [ -z "$output" ]
      continue
    fi
    [ "$status" -eq 3 ]
    [ "$(reports_in "$output")" -eq 1 ]
    text=$(sed 's/: error in kernel.*/:/' <<<"$output" | grep -v '^  \(at\|PTX\)' | tr -s ' \n' ' ')
    [[ $text == *"$says"* ]]
  done < <(LD_LIBRARY_PATH=build/emulator $programs/undefined_tiles --list)
}

@test "tiles that are not filled: copied to global memory, multiplied, or never used" {
  [ "$(LD_LIBRARY_PATH=build/emulator $programs/undefined_tiles --list | wc -l)" -ge 18 ]
  for schedule in late early random:1; do undefined_tiles_try $schedule; done
}

@test "a product of 16 rows multiplies the buffers behind it: a finding when their products are used" {
  for schedule in late early random:1; do
    for steps in 1 4; do
      EMULATOR_CHECK=strict EMULATOR_SCHEDULE=$schedule run -0 emulate $programs/dropped_rows --k $steps
      [[ $output != *"emulator:"* ]]
      EMULATOR_SCHEDULE=$schedule run -3 emulate $programs/dropped_rows --k $steps --rows 64
      [ "$(reports_in "$output")" -eq 1 ]
      [[ $output == *"emulator: read-without-wait: error in kernel multiply, block (0,0,0), thread "* ]]
      [[ $output == *"multiplies from shared memory at offset 0x"*", where the tensor load issued by thread 0"* ]]
    done
  done
}

@test "registers of A that are written behind the last wgmma.fence" {
  EMULATOR_CHECK=strict run -0 emulate $programs/operands_reused fenced
  [ "$output" = 32 ]
  for kind in unfenced fenced_too_early; do
    EMULATOR_CHECK=strict run -3 emulate $programs/operands_reused $kind
    [ "$(reports_in "$output")" -eq 1 ]
    [[ $output == *"emulator: missing-wgmma-fence: strict finding in kernel $kind, "* ]]
    [[ $output == *"registers that have been written since the last wgmma.fence"* ]]
  done
}

# $1: EMULATOR_CHECK, $2: the stride, $3: the rule, or nothing
descriptor_says() {
  EMULATOR_CHECK=$1 run emulate $programs/descriptor_cases --stride "$2"
  echo "$1, $2: $output"
  if [ -z "$3" ]; then
    [ "$status" -eq 0 ]
    [[ $output != *"emulator:"* ]]
    return
  fi
  [ "$status" -eq 3 ]
  [ "$(reports_in "$output")" -eq 1 ]
  [[ $output == *"emulator: $3: "*"in kernel multiply"* ]]
  [[ $(tr -s ' \n' ' ' <<<"$output") == *"wrote rows of 128 bytes there"*"groups of 8"*"1024 bytes apart"* ]]
}

@test "a matrix descriptor that does not fit the tile: both distances are named" {
  descriptor_says on 1024
  descriptor_says layout 1024
  descriptor_says on 512 matrix-descriptor-overlap
  descriptor_says layout 2048 matrix-descriptor-stride
}

@test "what may be meant is reported with EMULATOR_CHECK=layout only: a matrix descriptor, a store without the swizzle" {
  descriptor_says on 2048
  descriptor_says strict 2048
  descriptor_says on 0
  EMULATOR_CHECK=strict run -0 emulate $programs/advice_cases stored_without_swizzle
  [[ $output != *"emulator:"* ]]
}

@test "a matrix descriptor that leads into the next tile: said beside the wait that is missing there" {
  run -0 emulate $programs/descriptor_cases --stride 1024 --halves 1
  [[ $output != *"emulator:"* ]]
  run -3 emulate $programs/descriptor_cases --stride 2048 --halves 1
  [[ $output == *"emulator: read-without-wait: "*"in kernel multiply"* ]]
  text=$(tr -s ' \n' ' ' <<<"$output")
  [[ $text == *"The operand begins in another tile, 0x"*" to 0x"*", loaded at descriptor_cases.cu:"* ]]
  [[ $text == *"the stride or leading offset of its matrix descriptor is wrong"* ]]
  # Found when A is loaded, after B was looked at, which begins in the other half.
  run -3 emulate $programs/descriptor_cases --stride 1024 --halves 2
  [[ $output == *"in kernel multiply"* ]]
  [[ $output != *"operand begins"* ]]
}

# CASE: what operands_reused prints and reports.
operands() {
  run emulator/emulate build/emulator/tests/operands_reused "$1"
  echo "$1: $output"
  text=$(tr -s ' \n' ' ' <<<"$output")
}

@test "threads that write over a wgmma's operand: the advice goes to who must wait, and for whom" {
  operands waited
  [ "$output" = 16 ]
  operands by_own_warpgroup
  [[ $text == *"stage-released-before-wgmma: error"*"Wait for that wgmma first (wgmma.wait_group)"* ]]
  operands by_another
  [[ $text == *"stage-released-before-wgmma: error"*"must wait for it (wgmma.wait_group) and then signal this thread"* ]]
}

@test "an mbarrier outside of shared memory is no atomic operation; without any, the launch's third parameter is named" {
  ptx <<'EOF'
.extern .shared .align 8 .b64 full[];
.entry begins() { mbarrier.init.shared.b64 [full], 1; ret; }
EOF
  run build/emulator/tests/run_ptx "$module" begins 1 1
  [[ $output == *"shared-out-of-bounds: "*"an mbarrier of 8 bytes at shared address 0x400"* ]]
  [[ ${output//$'\n '/} == *"third parameter, <<<grid, block, bytes>>>"* ]]
}
