#!/usr/bin/env bats
# What the launchers of other languages ask and use: Triton, CuTe DSL, Mojo, cuda.core, CuPy. The programs of these
# languages are run by long/languages; this needs none of their packages.

load helpers

setup() {
  begin_test
  toolkit=$(find_toolkit)
  there=$BATS_TEST_TMPDIR
}

answers() { # LINE PART ARGUMENT...
  run emulator/emulate "$(type -P python3)" emulator/tests/launchers.py "${@:2}"
  echo "$output"
  [ "$output" = "$1" ]
}

@test "NVML knows the driver's device, and no other" {
  answers "devices 1, the driver's place True, its name True, elsewhere 6, power 3" management_library
}

@test "driver functions under the names that they had before a second version" {
  answers "a destroyed event: 400" old_names
}

@test "virtual memory, multicast objects and further pools: asked for, they are not supported" {
  answers "801 801 801 801" questions
}

@test "the one memory pool, by the driver's calls" {
  answers "one pool True, threshold 1 TiB, access 3, another device 101, no pool 1" pools
}

@test "several attributes of a pointer at once, also of one that CUDA does not know" {
  answers "[(2, 0, True), (0, -2, False)]" pointers
}

@test "what code compiled by CuTe DSL calls: a library is loaded once, an error is reported" {
  answers "0x1000 ['load', 0, b'out of memory'] -1 None, freed twice: 0 1" cute_dsl
}

@test "the tensor map that code compiled by CuTe DSL makes without the driver" {
  ptx <<'END'
.visible .entry last_of_tile(.param .align 64 .b8 map[128], .param .u64 answer)
{
  .shared .align 128 .b8 tile[64];
  .shared .align 8 .b64 barrier;
  .reg .b64 %rd<3>;
  .reg .b32 %r<4>;
  .reg .pred %p;
  mov.u32 %r1, tile;
  mov.u32 %r2, barrier;
  mov.b64 %rd1, map;
  cvta.param.u64 %rd1, %rd1;
  mbarrier.init.shared.b64 [%r2], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 64;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {4, 4}], [%r2];
wait:
  mbarrier.try_wait.parity.shared.b64 %p, [%r2], 0;
  @!%p bra wait;
  ld.shared.u32 %r3, [%r1+60];
  ld.param.u64 %rd2, [answer];
  st.global.u32 [%rd2], %r3;
  ret;
}
END
  answers "the tile ends with 63" tensor_map "$module"
}

@test "nvJitLink hands one text of PTX through, and says what it does not link" {
  answers "4, True, [4, 4], emulator: only PTX can be linked, and no machine code, library or LTO-IR. Numba hands over PTX with a signature and lto=False: @cuda.jit(SIGNATURE, lto=False)" linker
}

# answer.cubin and what was kept of it: the PTX, and an older one that writes 7
compile_answer() {
  echo 'extern "C" __global__ void answer(int *to) { *to = ANSWER; }' >"$there/answer.cu"
  mkdir "$there/kept"
  "$toolkit/bin/nvcc" -cubin -arch=sm_90a -DANSWER=42 -o "$there/answer.cubin" "$there/answer.cu"
  for value in 7 42; do
    "$toolkit/bin/nvcc" -ptx -arch=sm_90a -DANSWER=$value -o "$there/kept/$value.ptx" "$there/answer.cu"
  done
  touch -d '2 hours ago' "$there/kept/7.ptx"
}

@test "machine code whose compiler has kept the PTX: the newest that defines its functions is run" {
  compile_answer
  sed 's/answer/another/g' "$there/kept/7.ptx" >"$there/kept/another.ptx"
  EMULATOR_PTX=$there/kept answers "answer wrote 42" load_image "$there/answer.cubin" answer
  rm "$there/kept/42.ptx" "$there/kept/7.ptx"
  EMULATOR_PTX=$there/kept run -1 emulator/emulate "$(type -P python3)" emulator/tests/launchers.py load_image \
    "$there/answer.cubin" answer
  [[ $output == *"loads machine code (a cubin), which cannot be emulated"*"name the folder: EMULATOR_PTX=FOLDER"* ]]
  "$toolkit/bin/nvcc" -fatbin -gencode arch=compute_90a,code=sm_90a -DANSWER=42 -o "$there/answer.fatbin" "$there/answer.cu"
  "$toolkit/bin/nvcc" -ptx -arch=sm_90a -DANSWER=43 -o "$there/kept/43.ptx" "$there/answer.cu"
  EMULATOR_PTX=$there/kept answers "answer wrote 43" load_image "$there/answer.fatbin" answer
}

@test "the assembler that hands PTX through, and how emulate names it" {
  echo "// a text" >"$there/in.ptx"
  run -0 emulator/ptxas -lineinfo -v --opt-level 1 --gpu-name=sm_90a "$there/in.ptx" -o "$there/out"
  cmp "$there/in.ptx" "$there/out"
  run -0 emulator/ptxas --version
  [[ $output == *"release 13.0"* ]]
  run -2 emulator/ptxas -o "$there/out"
  [ "$output" = "ptxas of the emulator: name a file of PTX" ]
  script "$there/show" 'echo "$TRITON_PTXAS_PATH $TRITON_PTXAS_BLACKWELL_PATH"'
  TRITON_PTXAS_PATH=mine run -0 emulator/emulate "$there/show"
  [ "$output" = "mine $PWD/emulator/ptxas" ]
}

@test "a copy of CUDA's runtime in a library: the emulator takes its place where the library has symbols" {
  echo '#include <cuda_runtime_api.h>
int count(void) { int devices = -1; return cudaGetDeviceCount(&devices) ? -1 : devices; }' >"$there/count.c"
  "$toolkit/bin/nvcc" -shared -Xcompiler -fPIC -cudart static -o "$there/count.so" "$there/count.c"
  answers "devices 1" library "$there/count.so"
  strip "$there/count.so"
  run -1 emulator/emulate "$(type -P python3)" emulator/tests/launchers.py library "$there/count.so"
  [[ $output == *"the library count.so brings its own copy of CUDA's runtime"* ]]
}

@test "what Python runs first: the emulator's part, and then what the user has there" {
  mkdir "$there/own"
  echo 'print("mine")' >"$there/own/sitecustomize.py"
  PYTHONPATH=$there/own run -0 emulator/emulate "$(type -P python3)" -c \
    'import sys; print(type(sys.meta_path[0]).__name__, any("emulator/python" in path for path in sys.path))'
  [ "${lines[*]}" = "mine Finder False" ]
  # Nothing is left behind, and the exit code is the program's.
  mkdir "$there/tmp"
  TMPDIR=$there/tmp run -7 emulator/emulate "$(type -P python3)" -c 'import os; assert os.path.isdir(os.environ["EMULATOR_PTX"]); exit(7)'
  [ -z "$(ls -A "$there/tmp")" ]
}

# Mojo inlines a kernel's body into a function that has only the line of its head.
@test "a body that is inlined at its kernel's head: the lines are the body's" {
  ptx <<'END'
.visible .entry reads(.param .u64 buffer)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  .loc 1 11 4
  ld.param.u64 %rd1, [buffer];
  .loc 1 10 5
  mov.u32 %r1, 7;
  .loc 1 12 3, function_name $info, inlined_at 1 10 5
  mov.u64 %rd2, 64;
  st.global.u32 [%rd2], %r1;
  .loc 1 10 5
  ret;
}
.file 1 "body.mojo"
END
  run build/emulator/tests/run_ptx "$module" reads 1 1 buffer:u32:4
  [[ $output == *"at body.mojo:12"* ]]
}

# nvcc says once where a call was inlined. In the copies of an unrolled loop, `inlined_at` names a place that both calls
# share: its neighbours tell which call it is.
@test "a wait in a copy of an unrolled loop: the line is that of its own call" {
  ptx <<'END'
.visible .entry rounds(.param .u32 fault)
{
  .reg .pred %p<4>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  .loc 1 30 3
  ld.param.u32 %r1, [fault];
  mov.u64 %rd2, 64;
  .loc 1 44 5
  .loc 2 117 3, function_name $wait, inlined_at 1 44 5
  .loc 2 108 13, function_name $try, inlined_at 2 117 3
  setp.eq.u32 %p1, %r1, 1;
  .loc 1 51 7
  mov.u32 %r2, 7;
  .loc 1 40 7
  .loc 2 117 3, function_name $wait, inlined_at 1 40 7
  .loc 2 108 13, function_name $try, inlined_at 2 117 3
  setp.eq.u32 %p2, %r1, 2;
  .loc 1 43 5
  mov.u32 %r3, 7;
  .loc 2 108 13, function_name $try, inlined_at 2 117 3
  @%p1 st.global.u32 [%rd2], %r2;
  .loc 1 51 7
  mov.u32 %r2, 7;
  .loc 2 108 13, function_name $try, inlined_at 2 117 3
  @%p2 st.global.u32 [%rd2], %r2;
  .loc 2 117 3, function_name $wait, inlined_at 1 40 7
  mov.u32 %r3, 7;
  .loc 1 53 5
  .loc 2 24 3, function_name $other, inlined_at 1 41 7
  mov.u32 %r3, 7;
  .loc 2 54 22, function_name $arrive, inlined_at 1 53 5
  st.global.u32 [%rd2], %r3;
  ret;
}
.file 1 "rounds.cu"
.file 2 "barrier.cuh"
END
  local fault line
  while read -r fault line; do
    run build/emulator/tests/run_ptx "$module" rounds 1 1 "$fault"
    [[ $output == *"at rounds.cu:$line (in barrier.cuh:"* ]] || return 1
  done <<<$'1 44\n2 40\n3 53'
}
