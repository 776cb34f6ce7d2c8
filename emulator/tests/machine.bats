#!/usr/bin/env bats
# The emulator's front end and machine: PTX as it may be written, what is refused and how, warps and
# blocks as an H200 runs them, and results that do not depend on host threads.

load helpers
run_ptx=build/emulator/tests/run_ptx

# A module on stdin is refused, with the line and the reason.
refused() {
  ptx
  run -1 "$run_ptx" "$module"
  [[ $output == refused:*"$1"* ]]
}

@test "scopes, initialisers, branch tables, prototypes" {
  # Its lanes write different values to one place on purpose: a strict finding.
  EMULATOR_CHECK=errors run -0 "$run_ptx" emulator/tests/ptx/scopes.ptx scopes 1 8:64 buffer:u32:16
  [ "${lines[1]}" = "0: 1010 4017 2011 4017 3012 4017 4013 4017 1014 4017 2015 4017 3016 4017 4017 4017" ]
}

@test "warps, blocks and shared memory as recorded" {
  for threads in 1 2 5; do
    EMULATOR_THREADS=$threads emulator/emulate build/emulator/tests/machine_cases \
      >"$BATS_TEST_TMPDIR/$threads" || true
    diff "$BATS_TEST_TMPDIR/$threads" emulator/tests/recorded/machine_cases.txt
  done
}

@test "no header: refused" {
  echo '.entry kernel() { ret; }' >"$BATS_TEST_TMPDIR/headless.ptx"
  run -1 "$run_ptx" "$BATS_TEST_TMPDIR/headless.ptx"
  [[ $output == refused:*"begins with .version"* ]]
}

@test "an unknown instruction: its line and its text" {
  refused "frobnicate" <<'EOF'
.entry kernel() {
  .reg .b32 %r<3>;
  frobnicate.u32 %r1, %r2;
  ret;
}
EOF
  [[ $output == *"kernel: PTX line 6: frobnicate.u32 %r1, %r2"* ]]
}

@test "errors in PTX give functions and variables their C++ names" {
  ptx <<'EOF'
.entry _ZN5space6kernelIiEEvPT_() {
  .reg .b32 %r<3>;
  frobnicate.u32 %r1, %r2;
  ret;
}
EOF
  run -1 "$run_ptx" "$module" _ZN5space6kernelIiEEvPT_ 1 1
  [[ $output == *"space::kernel<int>: PTX line 6: frobnicate.u32 %r1, %r2"* ]]

  refused "two::kernel: PTX line 5: mov.u32 %r1, 0;"$'\n'"  nothing here is named %r1" <<'EOF'
.entry _ZN3two6kernelEPi() {
  mov.u32 %r1, 0;
}
EOF
  refused "kernel::tile is declared twice" <<'EOF'
.global .b32 _ZZ6kernelPiE4tile;
.global .b64 _ZZ6kernelPiE4tile;
EOF
  refused "the function work::helper has two bodies" <<'EOF'
.func _ZN4work6helperEv() { ret; }
.func _ZN4work6helperEv() { ret; }
EOF
}

@test "an undeclared register, a missing label, a text cut short" {
  refused "nothing here is named %r9" <<'EOF'
.entry kernel() { .reg .b32 %r<3>; mov.u32 %r1, %r9; ret; }
EOF
  refused "nothing here is named NOWHERE" <<'EOF'
.entry kernel() { bra NOWHERE; }
EOF
  refused "the text ends inside a function" <<'EOF'
.entry kernel() { .reg .b32 %r<3>;
EOF
}

@test "a kernel that hangs says who waits and ends" {
  ptx <<'EOF'
.entry hang() {
  .reg .pred %p<2>; .reg .b32 %r<2>;
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 32;
  @!%p1 bar.sync 1, 96;
  bar.sync 0;
  ret;
}
EOF
  run -1 "$run_ptx" "$module" hang 1 64
  [[ $output == *"error 702"* ]]
  [[ $output == *"barrier 1: 32 of 96 threads have arrived"* ]]
  [[ $output == *"barrier 0: 32 of 64 threads have arrived"* ]]
}

@test "a kernel that spins ends after EMULATOR_STEPS" {
  ptx <<'EOF'
.entry spin() {
FOREVER:
  bra FOREVER;
}
EOF
  EMULATOR_STEPS=100000 run -1 "$run_ptx" "$module" spin 4 64
  [[ $output == *"error 702"* ]]
  [[ $output == *"is spinning without making progress"* ]]
}

@test "no text cut off anywhere brings it down" {
  size=$(stat -c %s emulator/tests/ptx/scopes.ptx)
  for ((at = 0; at < size; at += 37)); do
    head -c $at emulator/tests/ptx/scopes.ptx >"$BATS_TEST_TMPDIR/cut"
    run "$run_ptx" "$BATS_TEST_TMPDIR/cut"
    [ "$status" -eq 1 ] || [ "$status" -eq 0 ] || { echo "cut at $at: $status $output"; return 1; }
  done
}

@test "an unknown instruction rejects only the kernel that uses it" {
  ptx <<'EOF'
.func helper() {
  .reg .b32 %r<3>;
  frobnicate.u32 %r1, %r2;
  ret;
}
.func between() { call helper; ret; }
.entry caller() { call between; ret; }
.entry unreadable() { .reg .b32 %r<3>; { mov.u32 %r1, "}"; } ret; }
.entry fine(.param .u64 p) {
  .reg .b64 %a;
  ld.param.u64 %a, [p];
  st.global.u32 [%a], 7;
  ret;
}
EOF
  run -0 "$run_ptx" "$module" fine 1 1 buffer:u32:1
  [ "${lines[1]}" = "0: 7" ]
  run -1 "$run_ptx" "$module" caller 1 1
  [[ $output == *"helper: PTX line 6: frobnicate.u32 %r1, %r2"* ]]
  run -1 "$run_ptx" "$module" unreadable 1 1
  [[ $output == *"PTX line 11: "* ]]
}

@test "setmaxnreg: the warps of a warpgroup must agree" {
  ptx <<'EOF'
.entry by_warp() .maxntid 256 {
  .reg .pred %p;
  .reg .b32 %t;
  mov.u32 %t, %tid.x;
  setp.lt.u32 %p, %t, 32;
  @%p bra FIRST;
  setmaxnreg.dec.sync.aligned.u32 40;
  ret;
FIRST:
  setmaxnreg.dec.sync.aligned.u32 24;
  ret;
}
.entry by_warpgroup() .maxntid 256 {
  .reg .pred %p;
  .reg .b32 %t;
  mov.u32 %t, %tid.x;
  setp.lt.u32 %p, %t, 128;
  @%p bra FIRST;
  setmaxnreg.inc.sync.aligned.u32 232;
  setmaxnreg.dec.sync.aligned.u32 64;
  ret;
FIRST:
  setmaxnreg.dec.sync.aligned.u32 24;
  ret;
}
EOF
  run -3 "$run_ptx" "$module" by_warp 1 256
  [[ $output == *"setmaxnreg-disagrees"*"warps (0 to 3)"* ]]
  run -0 "$run_ptx" "$module" by_warpgroup 1 256
  [ "$output" = "error 0" ]
}

@test "setmaxnreg: by one warp of four, and more registers than the block has" {
  kernel() { # NAME THREADS BEFORE BEHIND
    ptx <<END
.entry $1() .maxntid 384 {
  .reg .pred %p;
  .reg .b32 %t;
  mov.u32 %t, %tid.x;
  setp.lt.u32 %p, %t, $2;
  @%p bra FIRST;
  $4
  bar.sync 0;
  ret;
FIRST:
  $3
  bar.sync 0;
  ret;
}
END
  }
  kernel one_warp 32 "setmaxnreg.dec.sync.aligned.u32 40;" ""
  run "$run_ptx" "$module" one_warp 1 384
  [[ $output == *"setmaxnreg-disagrees"*"warps (0 to 3)"* ]]
  # 384 threads of 168 registers: twice 232 and 40 fit, twice 240 and 40 do not.
  for most in 232 240; do
    kernel three 128 "setmaxnreg.dec.sync.aligned.u32 40;" \
      "setmaxnreg.inc.sync.aligned.u32 $most;"
    run "$run_ptx" "$module" three 1 384
    if [ $most = 232 ]; then
      [ "$output" = "error 0" ]
    else
      [[ $output == *"hang-registers-missing"*"waits for registers: 240"* ]]
    fi
  done
}

@test "setmaxnreg: a warp without registers does not arrive, and its registers are what is missing" {
  ptx <<'EOF'
.entry arrives() .maxntid 384 {
  .shared .align 8 .b64 done;
  .reg .pred %p;
  .reg .b32 %t, %a;
  mov.u32 %t, %tid.x;
  mov.u32 %a, done;
  setp.eq.u32 %p, %t, 0;
  @%p mbarrier.init.shared.b64 [%a], 256;
  bar.sync 0;
  setp.lt.u32 %p, %t, 32;
  @%p bra WAIT;
  setp.lt.u32 %p, %t, 128;
  @%p bra END;
  setmaxnreg.inc.sync.aligned.u32 240;
  mbarrier.arrive.shared.b64 _, [%a];
WAIT: // setmaxnreg.dec is missing in warp 0
  mbarrier.try_wait.parity.shared.b64 %p, [%a], 0;
  @!%p bra WAIT;
END:
  ret;
}
EOF
  run "$run_ptx" "$module" arrives 1 384
  [[ $output == *"emulator: hang-registers-missing: "*"waits for registers: 240"* ]]
}

@test "forms of instructions as public programs write them" {
  run -0 "$run_ptx" emulator/tests/ptx/forms.ptx
}

@test "a wait that gives up by the clock gets there, however long its patience" {
  ptx <<'EOF'
.entry gives_up(.param .u64 out, .param .u64 patience) {
  .shared .align 8 .b64 barrier;
  .reg .pred %p;
  .reg .b64 %a<6>;
  .reg .b32 %r;
  mov.u32 %r, barrier;
  mbarrier.init.shared.b64 [%r], 1;
  mov.u64 %a0, %clock64;
  ld.param.u64 %a1, [patience];
AGAIN:
  mbarrier.try_wait.parity.shared.b64 %p, [%r], 0;
  @%p trap;
  mov.u64 %a2, %clock64;
  sub.u64 %a2, %a2, %a0;
  setp.lt.u64 %p, %a2, %a1;
  @%p bra AGAIN;
  ld.param.u64 %a3, [out];
  st.global.u32 [%a3], 77;
  ret;
}
EOF
  for patience in 100000 200000000000 10000000000000; do
    run "$run_ptx" "$module" gives_up 1 1 buffer:u32:1 8:$patience
    [ "$output" = "error 0"$'\n'"0: 77" ]
  done
}

# $1: what the message says. $2: a declaration that ptxas refuses, too
declaration_refused() {
  refused "$1" <<EOF
$2
.visible .entry kernel(.param .u64 p) { ret; }
EOF
}

# One instruction as a module of its own
instruction_alone() {
  printf '%s\n' '.global .align 16 .b32 in_global[8]; .const .align 16 .b32 in_const[8];' \
    '.shared .align 16 .b32 in_shared[8]; .entry kernel() {' \
    '.reg .pred %p<2>; .reg .b16 %h<4>; .reg .b32 %r<5>; .reg .b64 %a<3>; .reg .f32 %f<3>;' \
    '.reg .u32 %u<2>; .reg .f64 %g<2>; .reg .f16 %hf<2>;' "$1" 'ret; }' >"$BATS_TEST_TMPDIR/body"
  ptx <"$BATS_TEST_TMPDIR/body"
  run "$run_ptx" "$module"
}

@test "modifiers, constants and widths that ptxas 13.0 refuses: refused" {
  while read -r instruction; do
    instruction_alone "$instruction"
    [[ $output == *"refused: "*"${instruction%;}"* ]]
  done <emulator/tests/ptx/refused.txt
}

refused_by_name() { # INSTRUCTION REASON
  instruction_alone "$1"
  [[ $output == *"refused: "*"$2"* ]]
}

@test "products of other kinds, and alloca: refused by name" {
  refused_by_name 'alloca.u64 %a0, %a1, 16;' "alloca is not emulated: declare an array of the largest size"
  refused_by_name 'wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [in_shared], {%r0, %r1, %r2, %r3};' \
    "wmma is not emulated: multiply with mma.sync and load with ldmatrix"
  refused_by_name 'wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f0, %f1, %f2, %f0}, %a0, %a1, %r0, 0, %p0, 1, 1, 0, 0;' \
    "products of sparse matrices are not emulated"
  refused_by_name 'mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%g0, %g1}, {%g0}, {%g1}, {%g0, %g1};' \
    "other types are not emulated"
  refused_by_name 'wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {%r0, %r1, %r2, %r3}, %a0, %a1, 1;' \
    "others are not emulated"
  refused_by_name 'mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc {%r0, %r1, %r2, %r3}, {%r4, %r0}, {%r1}, {%r0, %r1, %r2, %r3};' \
    "other types are not emulated"
  refused_by_name 'mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0, %r1}, {%r2}, {%r3}, {%r0, %r1};' \
    "those of GPUs before Ampere are not emulated"
}

@test "what only Blackwell has: refused by name, with what to write on Hopper" {
  refused_by_name 'tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [in_shared], 32;' \
    "tcgen05 needs Blackwell (sm_100): on Hopper, multiply with wgmma"
  refused_by_name 'clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r0], [%r1];' \
    "cluster launch control needs Blackwell (sm_100): on Hopper, take the next tile from a counter"
  local tensor=cp.async.bulk.tensor loaded=mbarrier::complete_tx::bytes
  for form in "$tensor.2d.shared::cta.global.tile::gather4.$loaded [%r0], [%a0, {%r0, %r1, %r2, %r3, %r4}], [%r1];" \
    "$tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%a0, {%r0, %r1, %r2, %r3, %r4}], [%r1];" \
    "$tensor.3d.shared::cta.global.im2col::w.$loaded [%r0], [%a0, {%r0, %r1, %r2}], [%r1], {%h0, %h1};" \
    "$tensor.2d.shared::cluster.global.tile.$loaded.cta_group::2 [%r0], [%a0, {%r0, %r1}], [%r1];"; do
    refused_by_name "$form" "need Blackwell (sm_100): on Hopper, copy each row, tap or block by itself"
  done
}

@test "parameters and results that no function can have: refused as by ptxas" {
  declaration_refused "at most one result" \
    '.func (.param .b32 a, .param .b32 b) f(.param .b32 x) { ret; }'
  declaration_refused "cannot be a predicate" '.func (.param .pred a) f() { ret; }'
  declaration_refused "cannot be a predicate" '.func f(.param .b32 x, .param .pred a) { ret; }'
  declaration_refused "cannot be a vector" '.func (.param .v4 .b32 a) f() { ret; }'
  declaration_refused "cannot be a vector" '.func f() { .param .v2 .b32 a; ret; }'
  declaration_refused "at most 16 bytes" '.global .v4 .u64 a;'
  declaration_refused "may be open" '.entry f(.param .b8 a[]) { ret; }'
  declaration_refused "may be open" '.func f(.param .b8 a[], .param .b32 x) { ret; }'
}

@test "names declared twice in the same braces, and directives that exclude each other: refused as by ptxas" {
  declaration_refused "x is declared twice" '.entry f(.param .b32 x, .param .b32 x) { ret; }'
  declaration_refused "x is declared twice" '.func f(.param .b32 x) { .reg .b32 x; ret; }'
  declaration_refused "x is declared twice" '.func (.param .b32 x) f(.param .b32 x) { ret; }'
  declaration_refused "a1 is declared twice" '.entry f() { { .reg .b32 a<3>; .reg .b32 a1; } ret; }'
  declaration_refused "a is declared twice" '.entry f() { .reg .b32 a1; .reg .b32 a<3>; ret; }'
  declaration_refused "noreturn is for functions" '.entry f() .noreturn { ret; }'
  declaration_refused "maxntid is for kernels" '.func f() .maxntid 32 { ret; }'
  declaration_refused "maxclusterrank exclude" '.entry f() .reqnctapercluster 2 .maxclusterrank 4 { ret; }'
  declaration_refused "reqntid exclude" '.entry f() .reqntid 32 .maxntid 32 { ret; }'
  declaration_refused "blocksareclusters needs" '.entry f() .blocksareclusters .reqntid 32 { ret; }'
  declaration_refused "a second linkage" '.visible .extern .global .u32 a;'
}

@test "parameters in registers, ranges of vectors, parts of registers: refused by name" {
  declaration_refused "parameters in registers (.reg) are not emulated" '.func f(.reg .b32 x) { ret; }'
  declaration_refused "ranges of vectors of registers are not emulated" '.entry f() { .reg .v2 .f32 v<3>; ret; }'
  declaration_refused "a vector of predicates" '.entry f() { .reg .v2 .pred v; ret; }'
  declaration_refused "at most 16 bytes" '.entry f() { .reg .v4 .b64 v; ret; }'
  declaration_refused "nothing here is named %v.z" '.entry f() { .reg .v2 .f32 %v; mov.f32 %v.z, 0f00000000; ret; }'
  declaration_refused "parts of registers, such as .b0 and .h1" \
    '.entry f() { .reg .b32 r; vabsdiff4.u32.u32.u32 r, r.b3210, r, r; ret; }'
  declaration_refused "registers and numbers are not emulated" \
    '.extern .func g(.param .b32 x); .entry f() { call g, (5); ret; }'
}

@test "vectors of registers, whole and by element" {
  run -0 "$run_ptx" emulator/tests/ptx/vector_registers.ptx kernel 1 1 buffer:u32:8
  [ "${lines[1]}" = "0: 0 10 20 20 $((0x41200000)) $((0x41280000)) 1010 20" ]
}

@test "constant expressions: the values that ptxas computes, as operands and as initial values" {
  local value expression count=0 moves='' initial='' expected=''
  while IFS='=' read -r value expression; do
    if [[ $value == '#'* ]]; then continue; fi
    moves+=" mov.b64 r,$expression; st.global.b64 [a + 16 * $count], r;"
    moves+=" ld.global.b64 r, [x+2*4*$count]; st.global.b64 [a + 16 * $count + (1 ? 8 : 0)], r;"
    initial+="${initial:+, }$expression"
    expected+=$(printf ' %u %u' "${value% }" "${value% }")
    count=$((count + 1))
  done <emulator/tests/ptx/expressions.txt
  [ "$count" -gt 50 ]
  ptx <<<".global .u64 x[$count] = {$initial};
    .entry f(.param .u64 out) { .reg .b64 a, r; ld.param.u64 a, [out]; $moves ret; }"
  run -0 "$run_ptx" "$module" f 1 1 "buffer:u64:$((2 * count))"
  [ "$(sed -n 's/^[0-9]*:\( .*\)/\1/p' <<<"$output" | tr -d '\n')" = "$expected" ]
}

@test "constant expressions that have no value: refused as by ptxas" {
  local head='.entry f() { .reg .b64 r; mov.b64 r,'
  declaration_refused "divides by zero" "$head 1 / (2 - 2); ret; }"
  declaration_refused "divides by zero" "$head 0 && 1 % 0U; ret; }"
  declaration_refused "the operator << needs integers" "$head 1.0 << 2.0; ret; }"
  declaration_refused "two integers or two .f64 numbers" "$head 1.0 + 2; ret; }"
  declaration_refused "needs an integer" "$head ~1.5; ret; }"
  declaration_refused "before ? must be an integer" "$head 1.5 ? 1 : 2; ret; }"
  declaration_refused "a cast is (.s64) or (.u64)" "$head (.s32) 1; ret; }"
  declaration_refused "expected ')'" "$head (1 + 2; ret; }"
}

@test "names that hide those of outer braces, and parameters without names: taken as by ptxas" {
  ptx <<'EOF'
.extern .func outside(.param .b32 _, .param .b32 _);
.func never() .noreturn { exit; }
.entry names(.param .u64 out) {
  .reg .b64 a;
  .reg .b32 r, r<5>;
  ld.param.u64 a, [out];
  mov.b32 r, 10;
  mov.b32 r4, 11;
  { .reg .b32 r, r<3>; mov.b32 r, 20; mov.b32 r2, 21; st.global.b32 [a], r; st.global.b32 [a+4], r2; }
  { .reg .b32 r4; mov.b32 r4, 30; st.global.b32 [a+8], r4; }
  st.global.b32 [a+12], r;
  st.global.b32 [a+16], r4;
  ret;
}
EOF
  run "$run_ptx" "$module" names 1 1 buffer:u32:5
  [ "${lines[1]}" = "0: 20 21 30 10 11" ]
}

@test "what ptxas takes though no document names it: carries into 16 bits, addresses of 32, halves unrounded" {
  run -0 "$run_ptx" emulator/tests/ptx/beyond.ptx kernel 1 2,2 buffer:u32:14
  [ "${lines[1]}" = "0: 0 5 65533 1 0 6 65534 0 0 1 0 $((0x3000410)) 3 $((0x3c003f80))" ]
}

@test "what ptxas takes: halves of special registers, literals of more bits, modifiers without an effect" {
  run -0 "$run_ptx" emulator/tests/ptx/taken.ptx kernel 1 2,2 buffer:u32:14
  [ "${lines[1]}" = "0: 65537 8 0 0 7 232 4660 11 $((0x80000001)) 11 $((0x55555555)) $((0x3fd55555)) 0 0" ]
  run -0 "$run_ptx" emulator/tests/ptx/taken.ptx wgmma 1 128
  run -0 "$run_ptx" emulator/tests/ptx/taken.ptx rows_in_part 1 1 buffer:u32:7
  [ "${lines[1]}" = "0: 1 0 2 3 6 0 7" ]
}

@test "types, initial values and directives that ptxas refuses in declarations: refused" {
  declaration_refused "unknown type" '.entry f() { .reg .bf16 a; ret; }'
  declaration_refused "textures and surfaces are not emulated" '.entry f() { .reg .texref a; ret; }'
  declaration_refused "no .param parameter is of type" '.entry f(.param .f16x2 a) { ret; }'
  declaration_refused "cannot be the name" '.entry f() { .reg .b32 WARP_SZ; ret; }'
  declaration_refused "L is declared twice" '.entry f() { .reg .b32 L; L: ret; }'
  declaration_refused "L is declared twice" '.entry f() { L: ret; .reg .b32 L; }'
  declaration_refused "no number of type .f32" '.global .f32 a[2] = {1.0, 1};'
  declaration_refused "no number of type .u32" '.global .u32 a = 1.0;'
  declaration_refused "has no initial value" '.global .f16 a = 1;'
  declaration_refused "as many braces" '.global .u32 a[2][2] = {1, 2, 3, 4};'
  declaration_refused "too many initial values" '.global .u32 a[2][2] = {{1, 2, 3}, {4}};'
  declaration_refused "not declared yet" '.global .u64 a = b; .global .u32 b;'
  declaration_refused "of type .u64 or .u32" '.global .u32 b; .global .b64 a = b;'
  declaration_refused "array without a size" '.shared .b32 a[];'
  declaration_refused "defined without .visible" '.extern .global .b32 a; .global .b32 a;'
  declaration_refused "with another type" '.extern .global .b32 a; .visible .global .b64 a;'
  declaration_refused "a is declared twice" '.weak .global .b32 a; .weak .global .b32 a;'
  declaration_refused "neither .extern nor defined" '.func f(.param .b32 a);'
  declaration_refused "after its definition" '.func f() { ret; } .func f();'
  declaration_refused "parameters of kernels" '.func f(.param .u64 .ptr a) { ret; }'
  declaration_refused "with 0 threads" '.entry f() .maxntid 32, 0 { ret; }'
  declaration_refused "maxnctapersm" '.entry f() .maxntid 32 .maxnctapersm 2 { ret; }'
  declaration_refused "needs a .callprototype" '.entry f() { .reg .b64 a; call a, (); ret; }'
  declaration_refused "expected a" '.entry f() { ret;; }'
}

@test "textures: an instruction is refused by name, and so is a reference" {
  refused "textures and surfaces are not emulated" <<'EOF'
.entry kernel(.param .u64 t) {
  .reg .f32 %f<6>;
  .reg .b64 %rd1;
  ld.param.u64 %rd1, [t];
  tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd1, {%f4, %f5}];
  ret;
}
EOF
  refused "textures and surfaces are not emulated" <<'EOF'
.global .texref t;
.entry kernel() {
  .reg .f32 %f<6>;
  tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [t, {%f4, %f5}];
  ret;
}
EOF
}

@test "video instructions but for vabsdiff2 and vabsdiff4 are refused by name, with what to write" {
  local instruction
  for instruction in 'vadd.u32.u32.u32 %r0, %r1, %r2.b0' 'vset4.u32.u32.lt %r0, %r1, %r2, %r3' \
    'vmad.s32.s32.s32 %r0, -%r1, %r2, %r3'; do
    declaration_refused "of the video instructions, only vabsdiff2 and vabsdiff4" \
      ".entry f() { .reg .b32 %r<4>; $instruction; ret; }"
  done
}

@test "CUDA's SIMD intrinsics, and vabsdiff2 and vabsdiff4 of every type: as computed on the host" {
  run -0 --separate-stderr emulator/emulate build/emulator/tests/simd_intrinsics
  [ "${lines[-1]}" = "PASS simd_intrinsics: 3456 values of 7 intrinsics and 20 instructions, 0 wrong" ]
  [ -z "$stderr" ]
}

# 64 threads of each of two blocks add to a word of the other by red.async; $1: how they wait.
reduce_across() {
  ptx <<EOF
.entry reduce(.param .u64 out) .maxntid 64 {
  .shared .align 8 .b64 barrier;
  .shared .align 4 .u32 sum;
  .reg .pred %p;
  .reg .b32 %r<9>;
  .reg .b64 %a<3>;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %cluster_ctarank;
  xor.b32 %r2, %r1, 1;
  mov.u32 %r3, sum;
  mov.u32 %r4, barrier;
  setp.ne.u32 %p, %r0, 0;
  @%p bra READY;
  st.shared.u32 [%r3], 0;
  mbarrier.init.shared.b64 [%r4], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 256;
READY:
  barrier.cluster.arrive;
  barrier.cluster.wait;
  mapa.shared::cluster.u32 %r5, %r3, %r2;
  mapa.shared::cluster.u32 %r6, %r4, %r2;
  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r5], %r0, [%r6];
  $1
  ld.shared.u32 %r7, [%r3];
  setp.ne.u32 %p, %r0, 0;
  ld.param.u64 %a0, [out];
  mul.wide.u32 %a1, %r1, 4;
  add.u64 %a1, %a0, %a1;
  @!%p st.global.u32 [%a1], %r7;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  ret;
}
EOF
}

@test "red.async: many into one word do not race, and its reader must have waited" {
  reduce_across "WAIT: mbarrier.try_wait.parity.shared.b64 %p, [%r4], 0; @!%p bra WAIT;"
  for schedule in late early random:1 random:2; do
    echo "$schedule"
    EMULATOR_SCHEDULE=$schedule run -0 "$run_ptx" "$module" reduce 2:2 64 \
      buffer:u32:2
    [ "$output" = "error 0"$'\n'"0: 2016 2016" ]
  done
  reduce_across ""
  for schedule in late early random:1; do
    EMULATOR_SCHEDULE=$schedule run "$run_ptx" "$module" reduce 2:2 64 \
      buffer:u32:2
    echo "$schedule: $output"
    [[ $output == *"read-without-wait"*"the red.async issued by"* ]]
  done
}

@test "the cluster barrier: a warp whose lanes arrive by two instructions hangs" {
  for threads in 1 2; do
    EMULATOR_THREADS=$threads run -1 emulator/emulate \
      build/05_multicast/pitfalls/arrive_in_two_branches
    [[ $output == *"cluster-arrive-split: kernel exchange"*"cudaErrorLaunchTimeout"* ]]
  done
}

# Two blocks; warp 0 of each passes the barrier twice in the way that $1 says, warp 1 arrives as in $2.
cluster_turns() {
  ptx <<EOF
.entry turns(.param .u64 out) {
  .shared .align 4 .b32 word;
  .reg .pred %p;
  .reg .b64 %a<3>;
  .reg .b32 %r<7>;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %cluster_ctarank;
  xor.b32 %r2, %r1, 1;
  setp.gt.u32 %p, %r0, 31;
  @%p bra ARRIVES;
  mov.u32 %r3, word;
  setp.ne.u32 %p, %r0, 0;
  add.u32 %r4, %r1, 5;
  @!%p st.shared.u32 [%r3], %r4;
  $1
  mapa.shared::cluster.u32 %r5, %r3, %r2;
  ld.shared::cluster.u32 %r6, [%r5];
  ld.param.u64 %a0, [out];
  mul.wide.u32 %a1, %r1, 4;
  add.u64 %a1, %a0, %a1;
  @!%p st.global.u32 [%a1], %r6;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  ret;
ARRIVES:
  $2
  ret;
}
EOF
  run "$run_ptx" "$module" turns 2:2 64 buffer:u32:2
  echo "$EMULATOR_SCHEDULE: $output"
}

@test "the cluster barrier: who arrives twice waits in between, who has not arrived does not wait" {
  local turn="barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
  for EMULATOR_SCHEDULE in late early random:1 random:2; do
    export EMULATOR_SCHEDULE
    cluster_turns "$turn" "barrier.cluster.arrive.aligned; barrier.cluster.arrive.aligned;"
    [[ $output == *"error 0"*"0: 6 5"* ]]
    [[ $output == *"cluster-barrier: strict finding"*"threads 32-63"*"a second barrier.cluster.arrive without"* ]]
    [[ $output != *"error in"* ]]
    cluster_turns "barrier.cluster.wait.aligned; $turn" "$turn $turn"
    [[ $output == *"error 0"*"0: 6 5"* ]]
    [[ $output == *"cluster-barrier: strict finding"*"threads 0-31"*"it does not wait"* ]]
    cluster_turns "$turn" "$turn $turn"
    [ "$output" = "error 0"$'\n'"0: 6 5" ]
    cluster_turns "$turn $turn" "barrier.cluster.arrive.aligned; exit;"
    [ "$output" = "error 0"$'\n'"0: 6 5" ]
  done
}

@test "the cluster barrier: what a second arrival without a wait was to see is not ordered" {
  cluster_turns "barrier.cluster.arrive.aligned; barrier.cluster.arrive.aligned;" \
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
  [[ $output == *"shared-race: error in kernel turns"* ]]
}

@test "lanes that work together: every lane's own mask counts, at one place and at several" {
  for schedule in late early random:3; do
    EMULATOR_SCHEDULE=$schedule run -0 build/emulator/tests/warp_meetings 1000
    [ "${lines[0]}" = "1000 programs, 0 wrong" ]
  done
}

@test "masks that differ only in a lane that has exited: an H200 hangs" {
  ptx <<'EOF'
.entry masks() {
  .reg .b32 %r<4>; .reg .pred %p<2>;
  mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 5;
  @%p1 exit;
  and.b32 %r2, %r1, 1; shl.b32 %r2, %r2, 5; or.b32 %r2, %r2, 0xffffffdf;
  bar.warp.sync %r2;
  ret;
}
EOF
  run ! "$run_ptx" "$module" masks 1 32
  [[ $output == *"emulator: hang-threads-missing: kernel masks"*"threads 0-4, 6-31"* ]]
}

@test "lanes of one warp that name different barriers in one instruction" {
  ptx <<'EOF'
.entry lanes(.param .u64 out) {
  .reg .b32 %r<8>; .reg .b64 %rd<4>;
  .shared .align 4 .b32 words[64];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; add.u32 %r2, %r2, 1;
  shl.b32 %r3, %r1, 2; mov.u32 %r4, words; add.u32 %r3, %r3, %r4;
  st.shared.u32 [%r3], %r1;
  barrier.sync %r2, 32;
  xor.b32 %r5, %r1, 34; shl.b32 %r5, %r5, 2; add.u32 %r5, %r5, %r4;
  ld.shared.u32 %r6, [%r5];
  mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd2, %rd1; st.global.u32 [%rd2], %r6;
  ret;
}
EOF
  run ! "$run_ptx" "$module" lanes 1 64 buffer:u32:64
  [[ $output == *"emulator: barrier-number: kernel lanes, block (0,0,0), threads 1, 3, 5"* ]]
  [[ $output == *"thread 0 barrier 1, thread 1"* ]]
}

@test "a wait for an mbarrier sleeps until one changes: 32 warps do not try again for each of 64 copies" {
  ptx <<'EOF'
.entry waits(.param .u64 out, .param .u64 from) {
  .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<6>;
  .shared .align 8 .b64 barrier;
  .shared .align 16 .b8 tile[1024];
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [from];
  mov.u32 %r1, %tid.x; mov.u32 %r2, barrier; mov.u32 %r3, tile;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra READY;
  mbarrier.init.shared.b64 [%r2], 1;
  fence.mbarrier_init.release.cluster;
  fence.proxy.async.shared::cta;
READY:
  bar.sync 0;
  @%p1 bra WAIT;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 1024;
  mov.u32 %r4, 64;
COPY:
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd2], 16, [%r2];
  add.u32 %r3, %r3, 16; sub.u32 %r4, %r4, 1; setp.ne.u32 %p2, %r4, 0;
  @%p2 bra COPY;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;
  @!%p2 bra WAIT;
  mov.u64 %rd3, %clock64;
  @%p1 bra END;
  st.global.u64 [%rd1], %rd3;
END:
  ret;
}
EOF
  run -0 "$run_ptx" "$module" waits 1 1024 buffer:u32:2 buffer:u32:16
  # The clock counts instructions from a million on: it takes 2,716, and 10,780 with a try by each warp
  # for each copy that lands.
  [[ ${lines[1]} =~ ^0:\ ([0-9]+)\ 0$ ]]
  [ "${BASH_REMATCH[1]}" -lt 1005000 ]
}
