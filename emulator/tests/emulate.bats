#!/usr/bin/env bats
# The command line of emulator/emulate.

load helpers

setup() {
  begin_test
  emulate=$PWD/emulator/emulate
}

@test "where emulate was before, a script says where it is now, exit 2" {
  run -2 common/emulator/emulate --help
  [ "$output" = "common/emulator/emulate has moved: type emulator/emulate" ]
}

@test "emulate: --help is answered on stdout, no argument on stderr" {
  run -0 --separate-stderr "$emulate" --help
  [[ $output == *"--page FILE"* ]]
  [ "$stderr" = "" ]
  run -1 bash -c "'$emulate' --help 2>/dev/null >/dev/full"
  run -2 --separate-stderr "$emulate"
  [[ $stderr == "usage: emulate "* ]]
}

@test "emulate: wrong options and programs are named" {
  emulate_refuses "there is no option --pages; see emulate --help" --pages x build/02_tma_load/tma_load
  emulate_refuses "--record needs a value; see emulate --help" --record
  emulate_refuses "there is no program ./nothing" ./nothing
  emulate_refuses "there is no program build/02_tma_load/nothing: make run-02 PROGRAM=nothing builds and runs it, make all builds every program" build/02_tma_load/nothing
  emulate_refuses "there is no program nothing-of-this-name, neither here nor on the PATH" nothing-of-this-name
  emulate_refuses "./tests is not a file" ./tests
  for folder in tests . ..; do
    emulate_refuses "./$folder is not a file" "$folder"
  done
  for builtin in cd '[[' :; do
    emulate_refuses "there is no program $builtin, neither here nor on the PATH" "$builtin"
  done
  emulate_refuses "./README.md is not executable" ./README.md
  emulate_refuses "common/tile.c is source text, but not a .cu file: build it first" common/tile.c
  for name in part.ptx part.cubin part.fatbin part.o; do
    : >"$BATS_TEST_TMPDIR/$name"
    run -2 "$emulate" "$BATS_TEST_TMPDIR/$name"
    [[ $output == "emulate: "*"/$name is part of a program: let nvcc make an executable, with"* ]]
  done
  for name in library.so library.so.13 library.so.13.0.96; do
    cp /bin/true "$BATS_TEST_TMPDIR/$name"
    run -2 "$emulate" "$BATS_TEST_TMPDIR/$name"
    [[ $output == "emulate: "*"/$name is a library: run the program that loads it" ]]
  done
}

@test "emulate: device functions across files; options that it does not know go to nvcc, those that cannot be have a reason" {
  cd "$BATS_TEST_TMPDIR"
  cat >one.cu <<'EOF'
#include <stdio.h>
#include <math.h>
extern __device__ float scale_of(int);
constexpr int seven(void) { return 7; }
__global__ void k(float *y) { *y = scale_of(seven()); }
int main(void) {
  float *y, h;
  cudaMalloc(&y, 4); k<<<1, 1>>>(y); cudaMemcpy(&h, y, 4, cudaMemcpyDeviceToHost);
  printf("%g %g\n", h, floor(h));
}
EOF
  echo '__device__ float scale_of(int i) { return 2.f * i; }' >two.cu
  run -0 --separate-stderr "$emulate" --expt-relaxed-constexpr -O1 -lm -Xcompiler -Wall --with two.cu one.cu
  [ "$output" = "14 14" ]
  run -1 "$emulate" --expt-relaxed-constexpr -rdc=false --with two.cu one.cu
  [[ ${output//$'\n '/} == *"scale_of has no body in this module. If another file defines it, compile and link both with nvcc -rdc=true"* ]]
  run -2 "$emulate" --pages one.cu
  [[ $output == *"Unknown option '--pages'"*"one.cu could not be compiled: see above" ]]
  emulate_refuses "emulate compiles for sm_90a, with the runtime that it takes the place of: leave -arch=sm_80 out, here" -arch=sm_80 one.cu
  emulate_refuses "emulate makes a program and runs it: leave -c out, or build with nvcc and run emulate with the program" -c one.cu
  emulate_refuses "-O is given twice: leave one out" -O1 -O2 one.cu
}

@test "emulate: a file that this machine cannot run is named, and a script runs" {
  cd "$BATS_TEST_TMPDIR"
  printf 'echo wrong\n' >text
  : >empty
  printf '#!/bin/sh\necho right\n' >script
  # A program for 64-bit RISC-V, one of 32 bits, and one of the other byte order.
  cp /bin/true risc
  printf '\363' | dd of=risc bs=1 seek=18 conv=notrunc status=none
  cp /bin/true small
  printf '\001' | dd of=small bs=1 seek=4 conv=notrunc status=none
  cp /bin/true turned
  printf '\002' | dd of=turned bs=1 seek=5 conv=notrunc status=none
  chmod +x text empty script
  case $(uname -m) in aarch64) own=ARM other='>' ;; *) own=x86 other='\267' ;; esac
  cp /bin/true other
  printf "$other" | dd of=other bs=1 seek=18 conv=notrunc status=none
  for name in text empty; do
    emulate_refuses "./$name is neither an executable for Linux nor a script that begins with #!" ./$name
  done
  for name in risc other small turned; do
    emulate_refuses "./$name is an executable for another kind of processor: build it for 64-bit $own" ./$name
  done
  run -0 "$emulate" ./script
  [ "$output" = right ]
}

@test "emulate: options of a recording that mean nothing are refused" {
  local program=build/02_tma_load/tma_load file=$BATS_TEST_TMPDIR/file
  for option in --page --trace --record; do
    emulate_refuses "$option is '', but must be the name of a file to write" $option "" $program
    emulate_refuses "$option is given twice: leave one out" $option "$file" $option=x $program
  done
  for options in "--explore --explore" "--explore --limit 1 --limit=2" "--explore --seconds 1 --seconds 1" \
    "--explore --all --all" "--explore --schedule a --schedule=b" "--blocks all --blocks=first"; do
    run -2 "$emulate" $options $program
    [[ $output == "emulate: --"*" is given twice: leave one out" ]]
  done
  run -2 "$emulate" --page "$file" --record "$BATS_TEST_TMPDIR/../${BATS_TEST_TMPDIR##*/}/file" $program
  [[ $output == "emulate: --page, --trace, --record and --findings need a file each, but two of them write "* ]]
  [ ! -e "$file" ]
  emulate_refuses "--blocks says what to record: add --page, --trace, --record or --handoffs, or leave it out" --blocks all $program
  run -2 "$emulate" --blocks "" --page "$file" $program
  [[ $output == "emulate: --blocks is '', but must be first, all, or numbers and ranges"* ]]
  EMULATOR_RECORD=$file run -0 "$emulate" --blocks all $program
  [ -s "$file" ]
}

@test "emulate --handoffs: who fills, reads and frees each buffer of a ring, on one screen" {
  run -0 "$emulate" --handoffs build/07_pipelined_gemm/ring
  [ "${#lines[@]}" -le 50 ]
  line() { grep -n "$1" 07_pipelined_gemm/ring.cu | sed -n "${2:-1}s/:.*//p"; }
  fill="lines $(line ' load_stage(' 2), $(line ' load_stage(' 3)"
  [[ $output == *$'\n'"ring_kernel: 3 blocks of 3 launches, 128 threads a block; lines of ring.cu"$'\n'* ]]
  [[ $output == *$'\n'"a[0-3]: 8,192 bytes"$'\n'* ]]
  [[ $output == *$'\n'"  filled  warp 0 lane 0   19 x  $fill  tensor load of B, 32,768 bytes, to full"$'\n'* ]]
  [[ $output == *$'\n'"  read    warps 0-3      304 x  line $(line wgmma_m64n256k16)       wgmma"$'\n'* ]]
  [[ $output == *$'\n'"  freed   warps 0-3       32 x  line $(line 'all four warps')       bar 0"$'\n'* ]]
  [[ $output == *$'\n'"full[0-3]: mbarrier, 1 arrival a phase (init: line $(line mbarrier_init)), 19 phases completed"$'\n'* ]]
  [[ $output == *$'\n'"  arrives warp 0 lane 0  19 x  $fill  arrive.expect_tx, 40,960 bytes (1 a phase)"$'\n'* ]]
  [[ $output == *$'\n'"  bytes   copies         19 x  $fill  tensor load of A, 8,192 bytes (1 a phase)"$'\n'* ]]
  [[ $output == *$'\n'"  waits   warps 0-3      76 x  line $(line mbarrier_wait_parity)       76 had to wait" ]]
}

@test "emulate --handoffs: a cluster, buffers and mbarriers without names, stores of the threads" {
  run -0 "$emulate" --handoffs build/emulator/tests/foreign_gemm
  [[ $output == *$'\n'"gemm: 1 cluster of 2 blocks of 1 launch, 384 threads a block; "* ]]
  [[ $output == *$'\n'"3 x 16,384 bytes at +1,024, +17,408, +33,792"$'\n'* ]]
  [[ $output == *"  tensor load, 8,192 bytes to 2 blocks, to mbarriers 0-2"$'\n'* ]]
  [[ $output == *"  freed   warps 4, 8 lanes 0-1  "*"  mbarriers 3-5: arrive"$'\n'* ]]
  [[ $output == *"  filled  warps 4-11  "*"  stores of the threads"$'\n'"  ready   warps 4-11 "*"  bar 1"$'\n'* ]]
  [[ $output == *"  bulk wait_group.read 0"$'\n'* ]]
  [[ $output == *$'\n'"mbarriers 3-5 at 0x"*": 4 arrivals a phase (init: line "*"), 30 phases completed"$'\n'* ]]
  [[ $output == *"  arrive (2 a phase)"$'\n'*"  arrive from another block (2 a phase)"$'\n'* ]]
}

@test "emulate --handoffs: pieces of one stage are one buffer; arrivals and bytes of other blocks; who is stuck in every block" {
  program=build/emulator/tests/handoff_cases
  line() { grep -n "$1" emulator/tests/handoff_cases.cu | sed -n "${2:-1}s/:.*//p"; }
  run -0 "$emulate" --handoffs $program direct
  [[ $output == *$'\n'"direct: 1 cluster of 2 blocks of 1 launch, 64 threads a block; lines of handoff_cases.cu"$'\n'* ]]
  produce=$(line 'pipeline.produce(')
  consume=$(line 'pipeline.consume(')
  [[ $output == *$'\n'"3 x 512 bytes at +1,024, +1,536, +2,048"$'\n'* ]]
  [[ $output == *$'\n'"  filled  warp 0 lane 0  64 x  line $produce  bulk load, 128 bytes to 2 blocks, to mbarriers 0-2"$'\n'* ]]
  [[ $output == *$'\n'"  freed   warp 1 lane "[01]"  10 x  line $consume  mbarriers 3-5: arrive"$'\n'* ]]
  [[ $output == *$'\n'"  bytes   copies         32 x  line $produce  bulk load, 128 bytes (2 a phase)"$'\n'* ]]
  [[ $output == *$'\n'"  bytes   copies         32 x  line $produce  bulk load, 128 bytes from another block (2 a phase)"$'\n'* ]]
  [[ $output == *$'\n'"mbarriers 3-5 at 0xa18: 2 arrivals a phase (init: line $(line 'pipeline.prepare(')), 16 phases completed"$'\n'* ]]
  [[ $output == *$'\n'"  arrives warp 1 lanes 0-1  16 x  line $consume  arrive (1 a phase)"$'\n'* ]]
  [[ $output == *$'\n'"  arrives warp 1 lanes 0-1  16 x  line $consume  arrive from another block (1 a phase)"$'\n'* ]]
  # Two buffers that one mbarrier counts in turn stay two.
  run "$emulate" --handoffs $program alternates
  [[ $output == *$'\n'"2 x 128 bytes at +1,024, +1,152"$'\n'* ]]
  run -1 --separate-stderr "$emulate" --handoffs $program hangs
  # Nobody has arrived at mbarriers 3-5, so only their count tells them from the others.
  [[ $output == *$'\n'"mbarriers 0-2 at 0xa00: 1 arrival a phase "*$'\n'"mbarriers 3-5 at 0xa18: 2 arrivals a phase "* ]]
  [[ $output == *$'\n'"  STUCK   warp 1 at [1]:$(line ' consume(' 2), waiting for parity 0 of mbarrier 0; phase 0 lacks 16 bytes"$'\n'* ]]
  [[ $output == *$'\n'"  STUCK   warp 0 lane 0 at [1]:$(line ' produce(' 2), waiting for parity 0 of mbarrier 3; phase 0 lacks 2 of 2 arrivals" ]]
}

@test "--handoffs: the members of a struct in a __shared__ variable, and a kernel in a namespace without a name" {
  run -0 "$emulate" --handoffs build/emulator/tests/handoff_names
  [[ $output == *$'\n'"of_a_variable: 1 block"*$'\n'"row[0-1]: 128 bytes"$'\n'*", to full"$'\n'* ]]
  [[ $output == *$'\n'"full[0-1]: mbarrier, 1 arrival a phase"*"(anonymous namespace)::of_dynamic_memory: 1 block"* ]]
  # Of a kernel that only calls a function, the lines are that function's.
  line=$(grep -n ' = s.row' emulator/tests/handoff_names.cu | cut -d: -f1)
  local dynamic=${output#*of_dynamic_memory}
  [[ $dynamic == *$'\n'"row[0-1]: 128 bytes"*$'\n'"  read    warp 0         2 x  line $line  "*$'\n'"full[0-1]: mbarrier"*without* ]]
  [[ $output == *$'\n'"(anonymous namespace)::without_a_namespace: 1 block of 1 launch"* ]]
}

@test "emulate --handoffs: the lines that a library's kernel calls, and files with long names numbered in the head" {
  run -0 "$emulate" --handoffs build/emulator/tests/handoff_cases
  [[ $output == *$'\n'"call<Pipeline>: 1 cluster of 2 blocks of 1 launch, 64 threads a block"$'\n'* ]]
  [[ $output == *$'\n'"lines of [1] handoff_cases.cu, [2] handoff_of_a_library.cuh"$'\n'* ]]
  line() { grep -n "$1" emulator/tests/$2 | cut -d: -f1; }
  load=$(line ' deep_load<BYTES' handoff_of_a_library.cuh)
  [[ $output == *$'\n'"  filled  warp 0 lane 0  64 x  [2]:$load  bulk load, 128 bytes to 2 blocks, to mbarriers 0-2"$'\n'* ]]
  [[ $output == *"  [1]:$(line '0) produce(' handoff_cases.cu)  arrive.expect_tx, 512 bytes (1 a phase)"$'\n'* ]]
}

@test "emulate --handoffs: cp.async, and who is stuck where for want of what" {
  run "$emulate" --handoffs build/01_tiledcopy_baseline/tiledcopy_baseline
  [[ $output == *"  filled  warps 0-3   32 x  "*"  cp.async, 16 bytes a thread"$'\n'"  ready   warps 0-3    4 x  "*"  cp.async wait_group 0"* ]]
  run -1 --separate-stderr "$emulate" --handoffs build/02_tma_load/pitfalls/arrival_count_too_high
  [[ $output == *"barrier: mbarrier, 128 arrivals a phase (init: line "*"), 0 phases completed"* ]]
  [[ $output == *"  STUCK   warps 0-3 at line "*", waiting for parity 0 of barrier; phase 0 lacks 127 of 128 arrivals" ]]
  run --separate-stderr "$emulate" --handoffs build/02_tma_load/pitfalls/too_many_bytes
  [[ $output == *"; phase 0 lacks 2,048 bytes" ]]
}

@test "emulate --handoffs: what does not go with it, no kernel, output that cannot be written" {
  run -2 "$emulate" --handoffs --explore build/02_tma_load/tma_load
  [[ $output == "emulate: --handoffs is for one order: leave it out here"* ]]
  run -2 "$emulate" --handoffs --handoffs build/02_tma_load/tma_load
  emulate_refuses "--handoffs reads the recording, but --record is '/dev/null', which is not a file: name a file, or leave one out" --handoffs --record /dev/null build/02_tma_load/tma_load
  run -1 "$emulate" --handoffs /bin/true
  [ "$output" = "emulate: there is nothing to show: the program launched no kernel" ]
  run -2 "$emulate" --handoffs build/02_tma_load/tma_load --no-such-option
  run --separate-stderr bash -c "'$emulate' --handoffs --record '$BATS_TEST_TMPDIR/kept' build/02_tma_load/first_load | head -n 1"
  [ "$output" = "device: Emulated sm_90a, compute capability 9.0" ]
  [[ $stderr != *Traceback* ]]
}

# Runs the command in the last line, but for the name of the page, and prints which rules are among the page's moments.
see_it() { # STDERR
  local command
  command=$(tail -n 1 <<<"$1")
  [[ $command == "See it: "*" --page page.html "* ]] || return 1
  command=${command#See it: }
  (eval "${command/page.html/$BATS_TEST_TMPDIR/page.html}" >/dev/null 2>"$BATS_TEST_TMPDIR/reports" </dev/null) || true
  ! grep 'See it' "$BATS_TEST_TMPDIR/reports" || return 1
  grep -oE '^\["(finding|fault)",[0-9.]+,[0-9]+,[0-9]+,[0-9]+,"[a-z-]+"' "$BATS_TEST_TMPDIR/page.html" | cut -d'"' -f4
}

@test "emulate: the last line of the reports is the command that shows them in a page" {
  local pitfall=$PWD/build/03_tma_store/pitfalls/missing_proxy_fence
  run -3 --separate-stderr "$emulate" $pitfall
  [ "$(see_it "$stderr" | sort -u)" = missing-proxy-fence ]
  # A hang, with an argument that must be quoted, in an order of its own.
  script "$BATS_TEST_TMPDIR/a program" '[ "$1" = "two  words" ] || exit 9' "exec '$PWD/build/02_tma_load/pitfalls/too_many_bytes'"
  EMULATOR_SCHEDULE=random:3 run -1 --separate-stderr "$emulate" "$BATS_TEST_TMPDIR/a program" "two  words"
  [[ ${stderr_lines[-1]} == "See it: EMULATOR_THREADS=1 EMULATOR_SCHEDULE=random:3 "*'/a\ program two\ \ words' ]]
  [ "$(see_it "$stderr")" = hang-too-many-bytes-expected ]
}

@test "emulate: that command is as it was typed, with what must be recorded beside the first cluster" {
  local pitfall=build/03_tma_store/pitfalls/missing_proxy_fence kernel=$BATS_TEST_TMPDIR/kernel.cu last
  run "$emulate" $pitfall
  [ "${lines[-1]}" = "See it: emulator/emulate --page page.html $pitfall" ]
  PATH=$PWD/emulator:$PATH EMULATOR_CHECK=layout run emulate ./$pitfall
  [ "${lines[-1]}" = "See it: EMULATOR_CHECK=layout emulate --page page.html ./$pitfall" ]
  DEVICE=emulator run common/make/run-program $PWD/$pitfall
  [ "${lines[-1]}" = "See it: emulator/emulate --page page.html $pitfall" ]
  cd common
  run ../emulator/emulate ../$pitfall
  [ "${lines[-1]}" = "See it: ../emulator/emulate --page page.html ../$pitfall" ]
  cd ../emulator
  run "$emulate" ../$pitfall
  [ "${lines[-1]}" = "See it: ./emulate --page page.html ../$pitfall" ]
  cat >"$kernel" <<'CU'
__global__ void late(int *out) {
  __shared__ int part[32 * SCALE];
  if (blockIdx.x == 2 && blockIdx.y == 1) out[threadIdx.x] = part[threadIdx.x];
}
int main() {
  int *out;
  cudaMalloc(&out, 128);
  late<<<dim3(3, 2), 32>>>(out);
  return cudaDeviceSynchronize();
}
CU
  cd "$BATS_TEST_TMPDIR"
  run -3 --separate-stderr "$emulate" -D "SCALE=(1 + 1)" kernel.cu
  [ "${stderr_lines[-1]}" = "See it: $emulate --page page.html -DSCALE=\(1\ +\ 1\) --blocks 5 ./kernel.cu" ]
  [ "$(see_it "$stderr")" = uninitialised-read ]
  # A block that fails: one of those before it may be the first.
  sed -i 's/out.threadIdx.x. = part/*(int *)8 = part/' kernel.cu
  run --separate-stderr "$emulate" -DSCALE=1 kernel.cu
  [[ ${stderr_lines[-1]} == "See it: EMULATOR_THREADS=1 "*" --blocks 0-5 ./kernel.cu" ]]
  see_it "$stderr" | grep -qx global-out-of-bounds
}

@test "emulate: no such line without a report, without a kernel, by hand, and while something is recorded" {
  local pitfall=build/03_tma_store/pitfalls/missing_proxy_fence page=$BATS_TEST_TMPDIR/page.html
  run "$emulate" build/02_tma_load/tma_load
  [[ $output != *"See it"* ]]
  run -3 "$emulate" build/01_tiledcopy_baseline/pitfalls/freed_while_in_use
  [[ $output != *"See it"* ]]
  LD_LIBRARY_PATH=build/emulator run -3 $pitfall
  [[ $output != *"See it"* ]]
  run "$emulate" --page "$page" $pitfall
  [[ $output != *"See it"* ]]
  run "$emulate" --handoffs $pitfall
  [[ $output != *"See it"* ]]
  EMULATOR_RECORD=$page.recording run "$emulate" $pitfall
  [[ $output != *"See it"* ]]
  EMULATOR_PAGE_COMMAND='' run -3 "$emulate" $pitfall
  [[ $output != *"See it"* ]]
  run "$emulate" --findings "$page.json" $pitfall
  [[ $output == *"See it: emulator/emulate --page page.html $pitfall" ]]
  run grep -c "See it" "$page.json"
  [ "$output" = 0 ]
}

@test "emulate: a name without a slash is looked for here first" {
  cd build/02_tma_load
  run -0 "$emulate" tma_load
  [[ $output == *"PASS tma_load"* ]]
}

@test "emulate: --page keeps the program's exit code and writes no page without a kernel" {
  run -2 "$emulate" --page "$BATS_TEST_TMPDIR/page.html" build/02_tma_load/tma_load --no-such-option
  [[ $output == *"nothing is written: the program ended with 2 before a launch was recorded"* ]]
  [ ! -e "$BATS_TEST_TMPDIR/page.html" ]
  run -3 "$emulate" --page="$BATS_TEST_TMPDIR/page.html" build/03_tma_store/pitfalls/missing_proxy_fence
  [ -s "$BATS_TEST_TMPDIR/page.html" ]
  run -2 "$emulate" --page "$BATS_TEST_TMPDIR/none/page.html" build/02_tma_load/tma_load
}

# The program does not launch a kernel: each way to fail is tried with each kind of output.
@test "emulate: no output destroys what is run, another file, or an older output of a run that writes nothing" {
  local program=$BATS_TEST_TMPDIR/program option
  cp build/emulator/tests/ends_early "$program"
  cp "$program" "$BATS_TEST_TMPDIR/original"
  echo "int x;" >"$BATS_TEST_TMPDIR/mine.cu"
  ln -s program "$BATS_TEST_TMPDIR/link"
  cd "$BATS_TEST_TMPDIR"
  for option in --page --trace --record; do
    for output_file in program link ./program; do
      run -2 "$emulate" $option $output_file ./program
      [[ $output == "emulate: $option is '$PWD/"*"', but that file is part of what is run: name another one" ]]
    done
    run -2 "$emulate" $option mine.cu ./program none mine.cu
    [[ $output == *"/mine.cu', but that file is part of what is run: name another one" ]]
    run -2 "$emulate" $option mine.cu ./program
    [[ $output == "emulate: $option is '$PWD/mine.cu', but that file exists and was not written by $option: "* ]]
    # An older one stays as it was, whatever goes wrong, and is replaced by a run that has something to show.
    run -0 "$emulate" $option ./out ./program
    echo >>out
    cp out older
    for arguments in none "none --blocks 4000"; do
      run ! "$emulate" ${arguments#none} $option ./out ./program ${arguments%% *}
      cmp out older
    done
    run -2 "$emulate" $option ./out ./nothing
    cmp out older
    run -139 "$emulate" $option ./out ./program crash
    ! cmp -s out older || false
    rm out older
  done
  run -2 "$emulate" --explore --schedule mine.cu ./program
  [[ $output == "emulate: --schedule is '$PWD/mine.cu', but that file exists and was not written by --schedule: "* ]]
  EMULATOR_RECORD=mine.cu run -2 "$emulate" ./program
  [[ $output == *"emulator: EMULATOR_RECORD is 'mine.cu', but that file exists and is not a recording: "* ]]
  [ "$(cat mine.cu)" = "int x;" ]
  cmp program original
  run bash -c 'ls -A | grep -v "^\(program\|original\|mine.cu\|link\)$"'
  [ "$output" = "" ]
}

@test "emulate: through a link the file behind it is written, and the link stays" {
  cd "$BATS_TEST_TMPDIR"
  ln -s file link
  run -0 "$emulate" --record link "$OLDPWD/build/emulator/tests/ends_early"
  [ -L link ]
  [[ $(head -c 13 file) == '{"recording":' ]]
}

@test "emulate: a recorded program that crashes: one line, without the script's own" {
  ASAN_OPTIONS+=:handle_segv=0 TSAN_OPTIONS+=:handle_segv=0 \
    run -139 "$emulate" --record "$BATS_TEST_TMPDIR/recording" build/emulator/tests/ends_early crash
  [ "$output" = "emulate: signal 11 (SIGSEGV) ended the program; what it did until then was recorded" ]
}
