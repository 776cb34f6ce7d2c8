#!/usr/bin/env bats
# GPUs after Hopper: what is built for them, and when the programs run there. There was none to test on: a stub of
# the driver (tests/common/stub/gpu.c) stands for it.
# builds: lessons

load helpers

setup() {
  begin_test
  unset DEVICE
  toolkit=$(common/make/find-toolkit build check)
  # A copy, because it says in build/device what programs find that are started by hand.
  tree=$BATS_TEST_TMPDIR/tree
  mkdir -p "$tree/build/common"
  cp -r common emulator "$tree/"
  cp build/common/find-device "$tree/build/common/"
  ln -s "$PWD/build/emulator" "$tree/build/emulator"
}

# A machine with a GPU of this capability, whose programs find the emulator in place of CUDA's runtime.
insert_gpu() { # CAPABILITY
  ${CC:-cc} -std=c11 -Wall -Wextra -Werror -fPIC -shared -I"$toolkit/include" -o "$BATS_TEST_TMPDIR/libcuda.so.1" \
    tests/common/stub/gpu.c -ldl
  export STUB_CAPABILITY=$1 LD_LIBRARY_PATH=$BATS_TEST_TMPDIR CUDA_LIBRARIES=$PWD/build/emulator
}

run_chapters() { # PROGRAM...
  local program
  for program; do
    mkdir -p "$tree/build/${program%/*}"
    cp "build/$program" "$tree/build/$program"
  done
  run "$tree/common/make/run-chapters" "${@/#/$tree/build/}"
}

built_lessons() { # CHAPTER...
  local source
  # shellcheck disable=SC2068
  for source in ${@/%//*.cu}; do
    if [ -e "build/${source%.cu}" ] && [[ $source != */bench_* ]]; then echo "build/${source%.cu}"; fi
  done
}

@test "a GPU after Hopper: the emulator runs the programs, and the first line says what DEVICE=gpu does" {
  insert_gpu 12.0
  run_chapters 02_tma_load/first_load
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "running on the emulator (Stub 0 has compute capability 12.0: DEVICE=gpu tries that GPU, but we had none to test on)" ]
  [ "${lines[2]}" = "device: Emulated sm_90a, compute capability 9.0" ]
  [ -L "$tree/build/device" ]
}

@test "DEVICE=gpu on a GPU after Hopper: programs run on it, and what needs 9.0 is skipped by name" {
  insert_gpu 12.0
  export DEVICE=gpu LD_PRELOAD=$BATS_TEST_TMPDIR/libcuda.so.1
  run_chapters 02_tma_load/first_load 02_tma_load/replace_in_loop 07_pipelined_gemm/ring
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "running on the GPU (DEVICE=gpu; Stub 0 has compute capability 12.0: we had none to test on, and what needs 9.0 is skipped)" ]
  [[ $output == *"device: Stub 0, compute capability 12.0"*"PASS first_load: "* ]]
  [[ $output == *$'\n'"SKIP replace_in_loop: needs compute capability 9.0 (Hopper), but Stub 0 has 12.0"$'\n'* ]]
  [[ $output == *$'\n'"SKIP ring: needs compute capability 9.0 (Hopper), but Stub 0 has 12.0" ]]
  [ ! -e "$tree/build/device" ]
}

@test "a Hopper GPU is used without being asked for, and an older one never" {
  insert_gpu 9.0
  export LD_PRELOAD=$BATS_TEST_TMPDIR/libcuda.so.1
  run_chapters 02_tma_load/first_load
  [ "${lines[0]}" = "running on the GPU (Stub 0)" ]
  [[ $output == *"PASS first_load: "* ]]
  STUB_CAPABILITY=8.9 run_chapters 02_tma_load/first_load
  [ "${lines[0]}" = "running on the emulator (Stub 0 has compute capability 8.9, and TMA lessons need 9.0)" ]
  DEVICE=gpu STUB_CAPABILITY=8.9 run_chapters 02_tma_load/first_load
  [ "$status" -eq 2 ]
  [ "${lines[0]}" = "DEVICE=gpu, but there is no usable GPU: Stub 0 has compute capability 8.9, and TMA lessons need 9.0" ]
  STUB_CAPABILITY=8.9 LD_LIBRARY_PATH=$BATS_TEST_TMPDIR:$CUDA_LIBRARIES run -77 build/02_tma_load/first_load
  [ "${lines[-1]}" = "SKIP first_load: needs compute capability 9.0 (Hopper) or newer; this GPU has 8.9" ]
}

@test "a driver that ends the process which asks it: the emulator runs the programs, and the first line says why" {
  echo '#include <stdlib.h>
    int cuInit(unsigned flags) { (void)flags; abort(); }
    int cuDeviceGetCount, cuDeviceGetName, cuDeviceGetAttribute;' >"$BATS_TEST_TMPDIR/broken.c"
  ${CC:-cc} -fPIC -shared -o "$BATS_TEST_TMPDIR/libcuda.so.1" "$BATS_TEST_TMPDIR/broken.c"
  LD_LIBRARY_PATH=$BATS_TEST_TMPDIR run_chapters 02_tma_load/first_load
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "running on the emulator (the NVIDIA driver ends with code 134 when it is asked for a GPU)" ]
  [[ $output != *Aborted* ]]
}

@test "bench measures on a Hopper GPU alone" {
  insert_gpu 10.0
  DEVICE=gpu run -0 common/make/bench-chapters 0*_*
  [ "${lines[0]}" = "bench needs a Hopper GPU, but there is none: Stub 0 has compute capability 10.0" ]
}

@test "programs are built for compute_90a where ptxas refuses their PTX for sm_90, and else for compute_90" {
  run -0 python3 -B tests/common/targets.py "$toolkit/bin/ptxas" $(built_lessons 0[1-7]_* 07_pipelined_gemm/{library,attention})
  [ "${lines[-1]}" = "of chapters 02 to 06 for compute_90a: paged_rows replace_in_loop tensormap_replace" ]
}

@test "PTX for compute_90 that has an instruction of sm_90a alone is refused by name, as a driver does" {
  for program in 02_tma_load/replace_in_loop:tensormap.replace 07_pipelined_gemm/first_wgmma:wgmma.fence; do
    sed 's/^\.target sm_90a$/.target sm_90 /' "build/${program%:*}" >"$BATS_TEST_TMPDIR/program"
    chmod +x "$BATS_TEST_TMPDIR/program"
    run -1 emulator/emulate "$BATS_TEST_TMPDIR/program"
    [[ $output == *": ${program#*:}"*$'\n'"  ${program#*:} exists for sm_90a alone, and this module is for another .target."* ]]
  done
}

@test "on a Hopper GPU every lesson of chapters 01 to 06 says the same when the driver compiles its PTX" {
  "$tree/build/common/find-device" >/dev/null || skip "no Hopper GPU"
  export DEVICE=gpu
  for program in $(built_lessons 0[1-6]_*); do
    common/make/run-program "$program" >"$BATS_TEST_TMPDIR/machine_code"
    # The driver leaves all machine code aside.
    CUDA_FORCE_PTX_JIT=1 common/make/run-program "$program" >"$BATS_TEST_TMPDIR/ptx"
    diff "$BATS_TEST_TMPDIR/machine_code" "$BATS_TEST_TMPDIR/ptx"
  done
}
