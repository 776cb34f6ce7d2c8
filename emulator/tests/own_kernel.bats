#!/usr/bin/env bats
# A kernel of the reader's own: one file, several files, a Makefile, CMake; with the shared runtime and with the
# static one; and emulate where make install has put it.
# builds: emulator/portable/%

load helpers

setup() {
  begin_test
  unset MAKEFLAGS MAKELEVEL MAKEOVERRIDES MFLAGS DESTDIR
  emulate=$PWD/emulator/emulate
  toolkit=$(find_toolkit)
  cp -r emulator/tests/own_kernel "$BATS_TEST_TMPDIR/own"
  cd "$BATS_TEST_TMPDIR/own"
  export PATH=$toolkit/bin:$PATH
}

@test "own kernel: several files, options of nvcc, arguments" {
  run -0 --separate-stderr "$emulate" -I include -DSTEP=4 -std=c++17 --with host.cpp add.cu a b
  [ "$output" = "cudaSuccess, 0 wrong, step 4, 2 arguments" ]
  [ "$stderr" = "" ]
  run "$emulate" -Iinclude -D STEP=5 --with=host.cpp ./add.cu
  [ "$output" = "cudaSuccess, 0 wrong, step 5, 0 arguments" ]
}

@test "own kernel: functions of the driver are linked without an option" {
  run -0 --separate-stderr "$emulate" driver.cu
  [ "$output" = "encoded with result 0" ]
}

@test "own kernel: a report names the line of the file that was compiled, and a page shows it" {
  run ! "$emulate" -I include -D WITHOUT_BARRIER --with host.cpp --page page.html add.cu
  [[ $output == *"emulator: shared-race: error in kernel add"*"at add.cu:8"* ]]
  grep -q '<title>add</title>' page.html
}

@test "own kernel: what does not compile, options without a value, and for a program, are refused, and nothing stays" {
  export TMPDIR=$BATS_TEST_TMPDIR/tmp
  mkdir "$TMPDIR"
  run -2 "$emulate" add.cu
  [[ $output == *"step.h"*"emulate: ./add.cu could not be compiled: see above" ]]
  emulate_refuses "--with is 'nothing.cpp', but there is no such file" -I include --with nothing.cpp add.cu
  for option in -I -D --with; do
    emulate_refuses "$option needs a value; see emulate --help" $option
  done
  emulate_refuses "-std is given twice: leave one out" -std=c++17 -std=c++14 add.cu
  run -2 "$emulate" -DSTEP=3 /bin/true
  [[ $output == "emulate: -I, -D, -std and --with are for a .cu file that is compiled first, but /bin/true is a program" ]]
  emulate_refuses "./host.cpp is source text, but not a .cu file: build it first" host.cpp
  [ -z "$(ls -A "$TMPDIR")" ]
}

@test "own kernel: one that crashes: the signal, and nothing stays" {
  export TMPDIR=$BATS_TEST_TMPDIR/tmp
  mkdir "$TMPDIR"
  echo 'int main() { *(volatile int *)0 = 1; }' >crash.cu
  ASAN_OPTIONS+=:handle_segv=0 TSAN_OPTIONS+=:handle_segv=0 run -139 "$emulate" crash.cu
  [[ $output == *"emulate: signal 11 (SIGSEGV) ended the program" ]]
  [ -z "$(ls -A "$TMPDIR")" ]
  echo 'int main() { return 700; }' >returns.cu
  run -188 "$emulate" returns.cu
  [ "$output" = "" ]
}

@test "own kernel: a Makefile, with the static runtime that nvcc links by default" {
  make add
  run ldd add
  [[ $output != *libcudart* ]]
  run -0 --separate-stderr "$emulate" ./add x
  [ "$output" = "cudaSuccess, 0 wrong, step 1, 1 arguments" ]
  [ "$stderr" = "" ]
  # A mistake is reported as with the shared runtime.
  nvcc -arch=sm_90a -lineinfo -Iinclude -DWITHOUT_BARRIER -o wrong add.cu host.cpp
  run "$emulate" ./wrong
  [[ $output == *"emulator: shared-race: error in kernel add"*"at add.cu:8"* ]]
  strip -o stripped add
  run ! "$emulate" ./stripped
  [[ $output == *"stripped has a copy of CUDA's runtime linked into it"*"keep its symbols, or build it with: nvcc -cudart shared"* ]]
}

@test "own kernel: a static runtime of CUDA 12 is refused" {
  cat >old.cu <<'END'
extern "C" int cudaLaunchCooperativeKernelMultiDevice() { return 0; }
__global__ void nothing() {}
int main() {
  nothing<<<1, 1>>>();
  return cudaLaunchCooperativeKernelMultiDevice();
}
END
  nvcc -arch=sm_90a -o old old.cu
  run -2 "$emulate" ./old
  [[ $output == *"carries its own copy of CUDA's runtime, that of CUDA 12 or older: build it with CUDA 13"* ]]
}

# Every option of nvcc that a document, a header to take along, or a message names for Hopper is typed as it stands there.
@test "own kernel: every build line that is named anywhere builds a program with wgmma that emulate runs" {
  echo '__global__ void fenced() { asm volatile("wgmma.fence.sync.aligned;"); }
    int main() { fenced<<<1, 128>>>(); return cudaDeviceSynchronize(); }' >wgmma.cu
  local options option
  options=$(
    (cd "$OLDPWD"; cat ./*.md */*.md */*/*.md emulator/emulate emulator/*/*.[ch] */take/*.cu* */library/*.cuh) |
      tr '\n' ' ' | sed 's/"  *"//g' | grep -oE -- "-gencode[ =]('[^']*'|arch=[^ '\`\")]+)|-arch=[^ \`\"),;|]+" | sort -u)
  [[ $options == *"-gencode 'arch=compute_90a,code=[sm_90a,compute_90a]'"* ]]
  while IFS= read -r option; do
    echo "$option"
    case $option in
      -arch=sm_90) ;; # for a program without WGMMA
      -arch=compute_90a) nvcc -ptx "$option" -o typed.ptx wgmma.cu ;;
      *)
        # Some shells refuse a pattern that no file matches.
        bash -O failglob -c "nvcc $option -o typed wgmma.cu"
        run -0 --separate-stderr "$emulate" ./typed
        [ "$stderr" = "" ]
        ;;
    esac
  done <<<"$options"
}

@test "own kernel: CMake, whose tests start by emulate" {
  command -v cmake >/dev/null || skip "no cmake (on Debian: apt-get install cmake)"
  # As YOUR_KERNEL.md has it.
  recipe=$(sed -n '/^## CMake/,/^## /p' "${emulate%/*}/YOUR_KERNEL.md" | sed -n '/^```$/,/^```$/p' | grep -v '^```')
  mkdir bin
  ln -s "$emulate" bin/emulate
  export PATH=$PWD/bin:$PATH
  unset EMULATOR_CHECK
  run -0 bash -e -c "$recipe"
  [[ $output == *"100% tests passed"* ]]
  # A strict finding fails, too.
  echo '__global__ void all_lanes(int *a) { *a = threadIdx.x; }
    int main() { int *a; cudaMalloc(&a, 4); all_lanes<<<1, 32>>>(a); return cudaDeviceSynchronize(); }' >add.cu
  run ! bash -e -c "$recipe"
  [[ $output == *"lanes-write-one-place: strict"* ]]
}

@test "install: into an empty folder that is moved; it runs and compiles with the repository gone, and is removed" {
  cd "$OLDPWD"
  # A copy stands for the repository: it goes away.
  local copy=$BATS_TEST_TMPDIR/copy
  mkdir -p "$copy/build/emulator/portable"
  cp -r Makefile LICENSE common emulator [0-9][0-9]_* "$copy/"
  cp build/emulator/libcudart.so.13 build/emulator/processor "$copy/build/emulator/"
  cp build/emulator/portable/{libcudart.so.13,processor} "$copy/build/emulator/portable/"
  DESTDIR=$BATS_TEST_TMPDIR/stage "$copy/emulator/install" put /usr
  (umask 077; DESTDIR=$BATS_TEST_TMPDIR/stage run -0 "$copy/emulator/install" put /usr)
  [ -z "$(find "$BATS_TEST_TMPDIR/stage" -type d ! -perm 755)$(find "$BATS_TEST_TMPDIR/stage" -type f ! -perm -444)" ]
  rm -r "$copy"
  mv "$BATS_TEST_TMPDIR/stage/usr" "$BATS_TEST_TMPDIR/moved"
  cd "$BATS_TEST_TMPDIR/own"
  export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
  run -0 "$BATS_TEST_TMPDIR/moved/bin/emulate" -I include --with host.cpp --page page.html --trace trace.json add.cu
  [ "$output" = "cudaSuccess, 0 wrong, step 1, 0 arguments" ]
  [ -s page.html ]
  [ -s trace.json ]
  run -0 "$BATS_TEST_TMPDIR/moved/bin/emulate" -I include --with host.cpp --handoffs add.cu
  [[ $output == *$'\n'"add: "*"  ready   "*"  bar 0"* ]]
  [[ $("$BATS_TEST_TMPDIR/moved/bin/emulate" --version) == "emulate 1.0"* ]]
  # What only runs programs needs no HOME, and what compiles looks for its toolkit before it keeps one there.
  run -0 env -u HOME -u XDG_CACHE_HOME "$BATS_TEST_TMPDIR/moved/bin/emulate" "$OLDPWD/build/01_tiledcopy_baseline/first_copy"
  run -0 env -u HOME -u XDG_CACHE_HOME "$BATS_TEST_TMPDIR/moved/bin/emulate" -I include --with host.cpp add.cu
  # Without an nvcc: where it would be fetched to, and nothing about make and the repository.
  script "$BATS_TEST_TMPDIR/no_pip/python3" 'case "$*" in *--version*) exit 0 ;; esac' 'exit 1'
  CUDA_HOME=fetch PATH=$BATS_TEST_TMPDIR/no_pip:$PATH run -2 "$BATS_TEST_TMPDIR/moved/bin/emulate" -I include add.cu
  [[ $output == *"fetching into $XDG_CACHE_HOME/emulate/cuda (once)"*"CUDA Toolkit (13.0 or newer)"*"CUDA_HOME=/path/to/cuda emulate ..." ]]
  [[ $output != *build/cuda* ]]
  [[ $output != *make* ]]
  [ -s "$BATS_TEST_TMPDIR/moved/include/tma/tma_load.cuh" ]
  # The page of the manual has every option of --help under a head of its own, and every exit code.
  local page=$BATS_TEST_TMPDIR/moved/share/man/man1/emulate.1
  diff <("$BATS_TEST_TMPDIR/moved/bin/emulate" --help | sed -nE 's/^  (--[a-z]+).*/\1/p') \
    <(sed -nE '/^\.TP/ { n; s/\\//g; s/^\.B (--[a-z]+).*/\1/p }' "$page")
  for code in "after a fault" "; 3 if" "; 2 if" "; 1 if" "128 and"; do grep -qF -- "$code" "$page"; done
  cd "$BATS_TEST_DIRNAME/../.."
  touch "$BATS_TEST_TMPDIR/moved/bin/mine"
  run -0 emulator/install remove "$BATS_TEST_TMPDIR/moved"
  [ "$(find "$BATS_TEST_TMPDIR/moved" -mindepth 1 | sort | paste -sd' ')" = "$BATS_TEST_TMPDIR/moved/bin $BATS_TEST_TMPDIR/moved/bin/mine" ]
}

@test "install: a PREFIX that is no path, cannot be written, or holds a file of somebody else" {
  cd "$OLDPWD"
  run -2 env -u HOME emulator/install put here
  [[ $output == "install: PREFIX is 'here', but must be a path that begins with /"* ]]
  run -2 emulator/install put /proc/nothing
  [[ $output == "install: PREFIX is '/proc/nothing', but /proc/nothing cannot be written: "* ]]
  mkdir -p "$BATS_TEST_TMPDIR/taken/bin"
  echo mine >"$BATS_TEST_TMPDIR/taken/bin/emulate"
  run -2 emulator/install put "$BATS_TEST_TMPDIR/taken"
  [[ $output == *"/taken/bin/emulate exists and was not put there by make install: move it away" ]]
  [ "$(cat "$BATS_TEST_TMPDIR/taken/bin/emulate")" = mine ]
  run -2 emulator/install remove "$BATS_TEST_TMPDIR/taken"
  [[ $output == *"but nothing was put there"* ]]
}

@test "install: / is a PREFIX like any other" {
  cd "$OLDPWD"
  DESTDIR=$BATS_TEST_TMPDIR/stage run -0 emulator/install put /
  [[ $output == "installed in $BATS_TEST_TMPDIR/stage/: bin/emulate, "* ]]
  DESTDIR=$BATS_TEST_TMPDIR/stage run -0 emulator/install remove /
  [ "$output" = "removed from $BATS_TEST_TMPDIR/stage/" ]
}

@test "make install says that it compiles the emulator, where it does" {
  cd "$OLDPWD"
  mkdir "$BATS_TEST_TMPDIR/build"
  run -0 make -n install BUILD="$BATS_TEST_TMPDIR/build"
  [ "${lines[0]}" = "make install compiles the emulator first, for this processor and for all: a few minutes on two cores" ]
  run -0 make -n install BUILD="$PWD/build"
  [[ $output != *"compiles the emulator"* ]]
}

@test "emulator/Makefile: a copy of emulator/ and common/ needs no nvcc; a wrong ARCH is named; what VERSION says" {
  cd "$OLDPWD"
  local copy=$BATS_TEST_TMPDIR/copy
  mkdir -p "$copy/build/emulator/portable"
  cp -r emulator common "$copy/"
  run -0 make -n V=1 -C "$copy/emulator" ARCH=x86-64-v3 CFLAGS=-DOF_A_PACKAGE LDFLAGS=-Wl,--as-needed
  [[ $output == *" -mavx2 "*"/emulator/base/settings.c"* ]]
  [[ $output == *" -DOF_A_PACKAGE "* ]]
  [[ $output == *" -Wl,--as-needed "* ]]
  [[ $output != *nvcc* ]]
  run -2 make -n -C "$copy/emulator" ARCH=avx2
  [[ $output == *"ARCH is 'avx2', but must be among x86-64-v2 x86-64-v3 x86-64-v4"* ]]
  run -2 "$copy/emulator/find-headers" "$copy/build" /nowhere
  [[ $output == "CUDA_HOME is '/nowhere', but its include/cuda.h is not CUDA 13's: "* ]]
  cp build/emulator/libcudart.so.13 build/emulator/processor "$copy/build/emulator/"
  cp build/emulator/portable/{libcudart.so.13,processor} "$copy/build/emulator/portable/"
  VERSION=2.7 DESTDIR=$BATS_TEST_TMPDIR/stage run -0 "$copy/emulator/install" put /usr
  [[ $("$BATS_TEST_TMPDIR/stage/usr/bin/emulate" --version) == "emulate 2.7: "* ]]
  [ ! -e "$BATS_TEST_TMPDIR/stage/usr/include" ]
}

@test "without nvcc a test that needs it is skipped, and says for what; what PTX and C are enough for is not" {
  needs() { # FILE TEST
    awk -v test="$2" -v programs="one_program lane_cases" -f emulator/tests/without_nvcc.awk "$1"
  }
  cd "$OLDPWD"
  printf '%s\n' 'setup() {' '  begin_test' '  program=build/one_program' '}' 'runs() {' '  run "$program"' '}' \
    '@'"test \"by a function\" {" '  runs' '}' '@'"test \"PTX\" {" '  ptx <<<x' '}' \
    '@'"test \"a chapter\" {" '  run build/02_tma_load/first_load' '}' >"$BATS_TEST_TMPDIR/some.bats"
  [ "$(needs "$BATS_TEST_TMPDIR/some.bats" "by a function")" = one_program ]
  [ "$(needs "$BATS_TEST_TMPDIR/some.bats" "PTX")" = "" ]
  [ "$(needs "$BATS_TEST_TMPDIR/some.bats" "a chapter")" = "the chapters" ]
}
