#!/usr/bin/env bats
# make take-NN: what the headers are when a reader takes them along, and what make take refuses.
# build/tests/take/ holds the headers of each chapter in a folder of its own with their examples, compiled with C++17 and all
# warnings as errors, from two files, and with C++14 and C++20; and all of them in one (tests/take/build). taken.bats runs
# the examples as one program.
# builds: tests/take/%

load helpers
built=build/tests/take
# The outer make must not leak its goals and flags into the ones tried here.
unset MAKEFLAGS MAKELEVEL MAKEOVERRIDES MFLAGS TO

# A small tree with the tool and one chapter, whose header includes a file with the given lines.
chapter_with() { # LINE...
  tree=$BATS_TEST_TMPDIR/tree
  mkdir -p "$tree/common/exercises" "$tree/02_tma_load/take"
  cp common/exercises/take "$tree/common/exercises/"
  cp LICENSE "$tree/"
  printf '/* tma_load.cuh: a header. */\n#include "../own.cuh"\n' >"$tree/02_tma_load/take/tma_load.cuh"
  echo 'int main(void) { return 0; }' >"$tree/02_tma_load/take/tma_load_example.cu"
  printf '%s\n' "#ifndef OWN_CUH" "#define OWN_CUH" "$@" "#endif" >"$tree/02_tma_load/own.cuh"
}

refuses() { # MESSAGE LINE...
  local message=$1
  shift
  chapter_with "$@"
  run -2 "$tree/common/exercises/take" 02
  [[ $output == *"$message"* ]]
  [ ! -e "$tree/build/take/tma_load.cuh" ]
}

@test "all headers in one program, in two files: the wrappers that no example runs do what they say" {
  run -0 common/make/run-program "$built/all/example"
  [[ ${lines[-1]} == "15 results, 0 wrong; the other file returns 7; a stride of 260: cudaErrorInvalidValue" ]]
}

@test "all headers in one file: each first, and each after every other one" {
  for order in {0..6} {10..16}; do
    [ "$(grep -c include "$built/all/order_$order.cu")" -eq 7 ]
    [ -s "$built/all/order_$order.ptx" ]
  done
}

@test "the headers have the names that TRANSLATIONS.md promises, with its instructions" {
  grep -qx 'using tma::wgmma_m64n256k16;' "$built/all/rows.h"
  [ "$(grep -c '^using ' "$built/all/rows.h")" -ge 36 ] # wrappers compiles them
  mkdir "$BATS_TEST_TMPDIR/headers"
  cp "$built/all/"*.*h "$BATS_TEST_TMPDIR/headers/"
  sed -i 's/"mbarrier.init.shared/"mbarrier.inval.shared/' "$BATS_TEST_TMPDIR/headers/"*.cuh
  run -1 python3 -B tests/take/rows.py "$BATS_TEST_TMPDIR/headers"
  [[ $output == *"TRANSLATIONS.md: mbarrier_init is not mbarrier.init"* ]]
}

@test "each header says which functions are in it" {
  grep -qF ' tma_load_1d..5d tma_load_3d_im2col ' "$built/02/tma_load.cuh"
  grep -qF ' bulk_reduce_max_s32_to_cluster ' "$built/05/tma_multicast.cuh"
  grep -qE '^ .*pipelined_gemm_rebind' "$built/07/pipelined_gemm.cuh"
  grep -qF ' tma_swizzle_address' "$built/06/swizzle.h"
  for header in "$built/all/"tma_*.cuh "$built/all/wgmma.cuh"; do # a user of one finds them there
    grep -qF ' named_barrier_sync ' "$header"
    grep -qF ' fence_proxy_tensormap_acquire' "$header"
  done
  run -1 grep -E '^ \*  .* gemm_[a-oq-z][a-z_]*( |$)' "$built/07/pipelined_gemm.cuh"
}

@test "what an earlier build of a header left is gone" {
  local own=$BATS_TEST_TMPDIR/root
  mkdir -p "$own/tests" "$own/build/tests/take/06"
  cp -r common LICENSE [0-9][0-9]_* "$own/"
  cp -r tests/take tests/join.py "$own/tests/"
  touch "$own/build/tests/take/06/c++98.o"
  NVCC=$(command -v true) run -1 "$own/tests/take/build" 06 ""
  [ -s "$own/build/tests/take/06/swizzle.h" ]
  [ ! -e "$own/build/tests/take/06/c++98.o" ]
}

@test "every example runs by itself and finds nothing wrong" {
  for example in [0-9][0-9]_*/{,*/}take/*_example.cu; do
    name=${example##*/}
    echo "$name"
    run -0 common/make/run-program "$built/${example%%_*}/${name%.cu}"
    [[ ${lines[-1]} =~ ', 0 '(sums )?wrong$ ]]
  done
}

@test "each example was compiled as C++14, 17 and 20, and each header as a host's file" {
  for example in [0-9][0-9]_*/{,*/}take/*_example.cu; do
    name=${example##*/} chapter=${example%%_*}
    [ "$name" = pipelined_gemm_example.cu ] || [ -s "$built/$chapter/${name%.cu}.c++14.o" ]
    [ "$name" = pipelined_gemm_example.cu ] || [ -s "$built/$chapter/${name%.cu}.c++20.o" ]
    [ -s "$built/$chapter/${name%.cu}.named.o" ]
  done
  for header in [0-9][0-9]_*/{,*/}take/*.cuh; do
    name=${header##*/}
    [ -s "$built/${header%%_*}/${name%.cuh}.c++14.host.o" ]
    [ -s "$built/${header%%_*}/${name%.cuh}.c++20.host.o" ]
    [ -s "$built/${header%%_*}/${name%.cuh}.c11.host.o" ]
  done
}

@test "pipelined_gemm.cuh was compiled for e4m3 as C++14, 17 and 20; MN-major operands are refused with a sentence" {
  for standard in c++14 c++17 c++20; do
    grep -q 'wgmma.*k32.f32.e4m3.e4m3' "$built/07/e4m3.$standard.ptx"
  done
  grep -q 'the tensor cores read e4m3 operands only if they are K-major' "$built/07/mn_major.txt"
}

@test "clang compiles all headers as CUDA, host and device, without a warning" {
  local options=(--cuda-path="$(dirname "$(dirname "$(command -v nvcc)")")" --cuda-gpu-arch=sm_90a -x cuda -std=c++17 -fsyntax-only)
  local clang message=
  echo '__global__ void empty(void) {}' >"$BATS_TEST_TMPDIR/empty.cu"
  for clang in clang-{25..19} clang none; do
    if ! command -v $clang >/dev/null; then continue; fi
    if message=$($clang "${options[@]}" "$BATS_TEST_TMPDIR/empty.cu" 2>&1); then break; fi
  done
  if [ $clang = none ]; then skip "no clang takes this toolkit: ${message:-none is installed}"; fi
  printf '#include "%s"\n' "$PWD/$built/all/"*.cuh "$PWD/$built/all/swizzle.h" "$PWD/tests/take/e4m3.cu" >"$BATS_TEST_TMPDIR/all.cu"
  run -0 $clang "${options[@]}" -Wno-unknown-cuda-version -Wall -Wextra -Werror -I "$built/all" -DPIPELINED_GEMM_FEW_KERNELS \
    "$BATS_TEST_TMPDIR/all.cu"
}

@test "for no GPU of compute capability 9.0, a sentence says what is wrong; beside one, older ones get traps" {
  for header in [0-9][0-9]_*/{,*/}take/*.cuh; do
    name=${header##*/}
    echo "$name"
    grep -q "$name needs .*: compile with nvcc -.*90a" "$built/${header%%_*}/${name%.cuh}.sm_80.txt"
  done
  object=$built/02/gather_example.named.o
  [ "$(grep -ac 'target sm_80' "$object")" -ge 1 ]
  [ "$(grep -aoE '^[[:space:]]*trap;' "$object" | wc -l)" -ge 5 ]
}

@test "no header names a file of ours, prints, ends the program or defines a lower-case macro" {
  for header in [0-9][0-9]_*/{,*/}take/*.cuh [0-9][0-9]_*/take/*.h; do
    header=$built/all/${header##*/}
    echo "$header"
    [ -s "$header" ]
    run -1 grep -nE '^#include "|^#define [a-z]|^ *(printf|fprintf|exit)' "$header"
  done
}

@test "the folder is made, spaces in its name or not, and a second take replaces the header" {
  run -0 make take-02 TO="$BATS_TEST_TMPDIR/a new/folder"
  run -0 make take-02 TO="$BATS_TEST_TMPDIR/a new/folder"
  cmp "$BATS_TEST_TMPDIR/a new/folder/tma_load.cuh" "$built/02/tma_load.cuh"
  cmp "$BATS_TEST_TMPDIR/a new/folder/gather_example.cu" "$built/02/gather_example.cu"
  run -0 make --no-print-directory -C 03_tma_store take TO="$BATS_TEST_TMPDIR/in"
  cmp "$BATS_TEST_TMPDIR/in/tma_store.cuh" "$built/03/tma_store.cuh"
}

@test "a TO that is a file, or cannot be made or written: the name, the reason, exit 2" {
  run -2 make take-02 TO=README.md
  [[ $output == *"TO is 'README.md', but that is not a folder"* ]]
  run -2 make take-02 TO=/proc/nothing
  [[ $output == *"TO is '/proc/nothing', but this folder cannot be created: "* ]]
  run -2 make take-02 TO=/proc
  [[ $output == *"TO is '/proc', but tma_load.cuh cannot be written there: "* ]]
}

@test "a file of the reader's own is not overwritten" {
  echo "mine" >"$BATS_TEST_TMPDIR/tma_load.cuh"
  run -2 make take-02 TO="$BATS_TEST_TMPDIR"
  [[ $output == *"tma_load.cuh already exists and was not written by make take"* ]]
  [ "$(cat "$BATS_TEST_TMPDIR/tma_load.cuh")" = mine ]
  mv "$BATS_TEST_TMPDIR/tma_load.cuh" "$BATS_TEST_TMPDIR/gather_example.cu"
  run -2 make take-02 TO="$BATS_TEST_TMPDIR"
  [ "$(cat "$BATS_TEST_TMPDIR/gather_example.cu")" = mine ]
}

@test "a chapter that offers nothing, or does not exist: those that do, exit 2" {
  run -2 make take-01
  [[ $output == *"chapter '01' offers no header to take along; these do:"* ]]
  [[ $output == *"make take-02  writes tma_load.cuh"* ]]
  for chapter in 09 x; do
    run -2 make "take-$chapter"
    [[ $output == *"there is no chapter '$chapter'; the chapters are: 01_tiledcopy_baseline "* ]]
  done
}

@test "two versions of one file in one program: a sentence, not a list of redefinitions" {
  mkdir "$BATS_TEST_TMPDIR/old"
  sed -E 's/^(#define TMA_TAKEN_06_SWIZZLE_3D_SWIZZLE_H|#elif .*!=) [0-9]+/\1 12345/' \
    "$built/06/swizzle.h" >"$BATS_TEST_TMPDIR/old/swizzle.h"
  printf '#include "old/swizzle.h"\n#include "%s"\n' "$PWD/$built/06/swizzle.h" >"$BATS_TEST_TMPDIR/both.c"
  run ! "${CC:-cc}" -fsyntax-only "$BATS_TEST_TMPDIR/both.c"
  [[ $output == *"two versions of 06_swizzle_3d/swizzle.h meet here"* ]]
}

@test "refused: a file of the harness, and the chain that leads to it" {
  mkdir -p "$BATS_TEST_TMPDIR/tree/common"
  printf '#ifndef C\n#define C\n#endif\n' >"$BATS_TEST_TMPDIR/tree/common/check.h"
  refuses "02_tma_load/own.cuh includes common/check.h, which belongs to the lessons' harness" \
    '#include "check.h"'
}

@test "refused: what is not there" {
  refuses '02_tma_load/own.cuh includes common/missing.cuh, which does not exist' '#include "missing.cuh"'
}

@test "refused: stdio, printing, ending the program" {
  refuses '02_tma_load/own.cuh:3: a header to take along must not print' '#include <stdio.h>'
  refuses 'own.cuh:4: a header to take along must neither print nor end' '' '  if (x) printf("x");'
  refuses 'own.cuh:3: a header to take along must neither print nor end' '  exit(1);'
}

@test "refused: static buffers, lower-case macros, conditional includes, code before an include" {
  refuses 'own.cuh:3: a static buffer in a header' '  static char text[256];'
  refuses 'own.cuh:3: the macro wait_group has a lower-case name' '#define wait_group(n) n'
  refuses 'own.cuh:4: an #include within #if cannot be moved' '#if 1' '#include <stdint.h>' '#endif'
  refuses 'own.cuh:3: code before the last #include' 'int x;' '#include <stdint.h>'
}

@test "refused: a file without an include guard" {
  chapter_with ''
  echo 'int x;' >"$BATS_TEST_TMPDIR/tree/02_tma_load/own.cuh"
  run -2 "$tree/common/exercises/take" 02
  [[ $output == *"02_tma_load/own.cuh has no include guard"* ]]
}

@test "a macro that outlives its file gets a prefix, everywhere, and a file is written once" {
  chapter_with '#include "second.cuh"' '#define STEP 64 /* elements */' 'enum { TWICE = 2 * STEP };' \
    '#define HELP 1' '#undef HELP'
  printf '%s\n' '#ifndef SECOND' '#define SECOND' '#include <stdint.h>' 'struct Second {' '  int x;' '};' \
    '#endif' >"$tree/02_tma_load/second.cuh"
  sed -i 's/own.cuh"/second.cuh"\n#include "..\/own.cuh"/' "$tree/02_tma_load/take/tma_load.cuh"
  run -0 "$tree/common/exercises/take" 02
  header=$tree/build/take/tma_load.cuh
  [ "$(grep -c 'struct Second' "$header")" -eq 1 ]
  grep -q '^#define TMA_STEP 64' "$header"
  grep -q '2 \* TMA_STEP' "$header"
  grep -q '^#define HELP 1' "$header"
}

@test "PTX becomes a trap for GPUs that lack it, and host code gets no wrapper" {
  chapter_with '#define ASK "elect.sync _|p, %1;"' 'static __device__ int own(int x) {' \
    '  asm volatile("a (: \" b" ASK' '      : "+r"(x) : "n"(1));' '  return x;' '}'
  run -0 "$tree/common/exercises/take" 02
  header=$tree/build/take/tma_load.cuh
  grep -qF 'asm volatile(TMA_PTX("a (: \" b" TMA_ASK)' "$header"
  grep -qx ' \*   own.cuh: own' "$header"
  "${CXX:-g++}" -Wall -Werror -fsyntax-only -x c++ "$header"
}
