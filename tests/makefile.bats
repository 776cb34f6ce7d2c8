#!/usr/bin/env bats
# The Makefile's behaviour, as a person at the shell sees it.
# builds: lessons emulator/portable/%

load helpers
# The outer make must not leak its goals and flags into the ones tried here.
unset MAKEFLAGS MAKELEVEL MAKEOVERRIDES MFLAGS

@test "help names every goal in one line" {
  run -0 make help
  for goal in run check check-all bench figures format clean help emulator pitfalls exercise exercises hint take; do
    [ "$(grep -c "make $goal " <<<"$output")" -eq 1 ]
  done
  [[ $output == *"DEVICE=gpu|emulator"* ]]
  [ "$(make -C 02_tma_load --no-print-directory help)" = "$output" ]
}

@test "what is typed wrongly is named, with what may stand there, exit code 2" {
  local typed message
  while IFS='|' read -r typed message; do
    echo "$typed"
    run -2 bash -c "$typed"
    [[ $output == *"$message"* ]]
    [[ $output != *"==== "* ]] # no program runs
  done <<'END'
make DEVICE=tpu run|DEVICE is 'tpu', but must be gpu or emulator
make DEVICE='gpu emulator' run|DEVICE is 'gpu emulator', but must be gpu or emulator
DEVICE=tpu common/make/run-program build/02_tma_load/tma_load|DEVICE is 'tpu', but must be gpu or emulator
make V=3 help|V is '3', but must be 0 or 1
make V='0 1' help|V is '0 1', but must be 0 or 1
make WERROR=yes all|WERROR is 'yes', but must be 0 or 1
make CUDA_HOME=/nonexistent all|CUDA_HOME is '/nonexistent', but there is no bin/nvcc in it
make CC=nonexistent emulator|CC is 'nonexistent', but there is no command 'nonexistent' on this machine.
make run-09|there is no chapter '09'; the chapters are: 01_tiledcopy_baseline 02_tma_load
make run-002|there is no chapter '002'
make run PROGRAM=nope|PROGRAM is 'nope', but there is no such program; there are:
make run-02 PROGRAM='dimensions nope'|PROGRAM is 'nope', but there is no such program; there are:
make run-02 PROGRAM=%|PROGRAM is '%', but there is no such program; there are:
make run-02 PROGRAM=../tma_load|02_tma_load: first_load tma_load
make -n check TESTS='tensor_map nope'|TESTS is 'nope', but must be among:
make -n check-02 TESTS=tma|TESTS is 'tma', but must be among:
common/make/show-pitfalls nope|there is no chapter 'nope'; the chapters are: 01_
common/make/bench-chapters nope|there is no chapter 'nope'; the chapters are: 01_
common/make/watch-chapter x nope|there is no chapter 'nope'; the chapters are: 01_
common/exercises/exercise list nope|there is no chapter 'nope'; the chapters are: 01_
common/exercises/exercise solve 02_tma_load|exercise start|hint|list CHAPTER
END
}

@test "bash is looked for on PATH, and named where it is missing" {
  only_tools nproc
  PATH=$BATS_TEST_TMPDIR/bin run -2 "$(command -v make)" help
  [[ $output == *"bash is needed, and is not on PATH: install it"* ]]
  mkdir "$BATS_TEST_TMPDIR/of_another_system"
  script "$BATS_TEST_TMPDIR/of_another_system/bash" "echo 'found here' >&2" "exec $(command -v bash) \"\$@\""
  PATH=$BATS_TEST_TMPDIR/of_another_system:$PATH run -0 make help
  [[ $output == *"found here"* ]]
}

@test "an nvcc that is too old is refused with its version" {
  script "$BATS_TEST_TMPDIR/old/bin/nvcc" 'echo "Cuda compilation tools, release 12.4, V12.4.131"'
  run -2 make CUDA_HOME="$BATS_TEST_TMPDIR/old" all
  [[ $output == *"nvcc 12.4, but the lessons need 12.5 or newer"* ]]
}

@test "an nvcc of CUDA 12 will do on a machine with a driver; the emulator needs 13" {
  script "$BATS_TEST_TMPDIR/old/bin/nvcc" 'echo "Cuda compilation tools, release 12.8, V12.8.93"'
  export CUDA_HOME=$BATS_TEST_TMPDIR/old
  NVIDIA_DRIVER=/nonexistent run -2 common/make/find-toolkit "$BATS_TEST_TMPDIR/build" run
  [[ $output == *"/old holds nvcc 12.8. What it builds runs on a GPU alone"* ]]
  [[ $output == *"the toolkit must be"?"13.0 or newer"*"make CUDA_HOME=fetch"* ]]
  NVIDIA_DRIVER="/nonexistent /" run -0 common/make/find-toolkit "$BATS_TEST_TMPDIR/build" run
  [ "$output" = "$CUDA_HOME" ]
  # emulate asks for no driver, and nobody types make to run it.
  NVIDIA_DRIVER=/ run -2 common/make/find-toolkit "$BATS_TEST_TMPDIR/cache" emulate
  [[ $output == *"the toolkit must be"?"13.0 or newer"*"into $BATS_TEST_TMPDIR/cache/cuda: CUDA_HOME=fetch emulate ..." ]]
  [[ $output != *make* ]]
}

@test "CUDA_HOME=fetch takes the fetched toolkit, whatever is installed" {
  fetched=$BATS_TEST_TMPDIR/build/cuda/nvidia/cu13
  script "$fetched/bin/nvcc" 'echo "release 13.0, V13.0.88"'
  cp common/make/toolkit-requirements.txt "$BATS_TEST_TMPDIR/build/cuda/complete"
  CUDA_HOME=fetch run -0 common/make/find-toolkit "$BATS_TEST_TMPDIR/build" run
  [ "$output" = "$fetched" ]
}

# A folder of links to these tools alone.
only_tools() { # TOOL...
  local tool
  mkdir -p "$BATS_TEST_TMPDIR/bin"
  for tool in "$@"; do
    ln -s "$(command -v "$tool")" "$BATS_TEST_TMPDIR/bin/$tool"
  done
}

@test "everything that is missing is named in one message, with what to type" {
  # A toolkit, so that the message is the same on a machine that has none.
  script "$BATS_TEST_TMPDIR/cuda/bin/nvcc" 'echo "release 13.0, V13.0.88"'
  only_tools bash dirname sed sort head gcc ar awk find diff cmp gzip
  export CUDA_HOME=$BATS_TEST_TMPDIR/cuda
  PATH=$BATS_TEST_TMPDIR/bin run -2 common/make/find-toolkit "$BATS_TEST_TMPDIR/build" check
  [[ $output == "These are needed and not installed: g++, patch, python3, python3 with pip, to fetch bats 1.8."* ]]
  [[ $output == *"sudo apt-get install g++ patch python3 python3-pip"* ]]
  PATH=$BATS_TEST_TMPDIR/bin run -2 common/make/find-toolkit "$BATS_TEST_TMPDIR/build" run
  [[ $output == "These are needed and not installed: g++."* ]]
  # Where only cmp is missing, nothing else is named.
  rm "$BATS_TEST_TMPDIR/bin/cmp"
  only_tools g++
  PATH=$BATS_TEST_TMPDIR/bin CUDA_HOME= run -2 common/make/find-toolkit "$BATS_TEST_TMPDIR/build" run
  [[ $output == "These are needed and not installed: cmp."* ]]
}

@test "a compiler that CC names: its package if there is one, else that there is no such command" {
  ln -s /bin/true "$BATS_TEST_TMPDIR/g++"
  PATH=$BATS_TEST_TMPDIR:$PATH CC="clang-99 -m64" run -2 common/make/find-toolkit "$BATS_TEST_TMPDIR/build" run
  [[ $output == "These are needed and not installed: clang-99."*"sudo apt-get install clang-99" ]]
  run -2 make CC=nonexistent emulator
  [[ $output != *apt-get* ]]
}

@test "an nvcc in the home folder: the toolkit that it belongs to, or that there is none around it" {
  export PATH=$BATS_TEST_TMPDIR/home:$PATH CUDA_HOME=
  real=$(CUDA_HOME= common/make/find-toolkit "$BATS_TEST_TMPDIR/build" run)
  mkdir -p "$BATS_TEST_TMPDIR/home/bin"
  script "$BATS_TEST_TMPDIR/home/nvcc" "exec $real/bin/nvcc \"\$@\""
  cp "$BATS_TEST_TMPDIR/home/nvcc" "$BATS_TEST_TMPDIR/home/bin/"
  for place in home home/bin; do
    PATH=$BATS_TEST_TMPDIR/$place:$PATH run -0 common/make/find-toolkit "$BATS_TEST_TMPDIR/build" run
    [ "$(realpath "$output")" = "$(realpath "$real")" ]
  done
  # A folder of links beside a script, as some packages have in /usr/local.
  ln -s "$real/include" "$BATS_TEST_TMPDIR/home/include"
  PATH=$BATS_TEST_TMPDIR/home/bin:$PATH run -0 common/make/find-toolkit "$BATS_TEST_TMPDIR/build" run
  [ "$(realpath "$output")" = "$(realpath "$real")" ]
  mkdir "$BATS_TEST_TMPDIR/links"
  ln -s "$real/bin/nvcc" "$BATS_TEST_TMPDIR/links/nvcc"
  PATH=$BATS_TEST_TMPDIR/links:$PATH run -0 common/make/find-toolkit "$BATS_TEST_TMPDIR/build" run
  [ "$(realpath "$output")" = "$(realpath "$real")" ]
  printf '#!/bin/sh\necho release 13.0\n' >"$BATS_TEST_TMPDIR/home/nvcc"
  run -2 common/make/find-toolkit "$BATS_TEST_TMPDIR/build" run
  [[ $output == "The nvcc on PATH is '$BATS_TEST_TMPDIR/home/nvcc', but there is no CUDA Toolkit around it."* ]]
}

@test "goals and variables do not reach a shell" {
  for goal in "run-02;touch $BATS_TEST_TMPDIR/reached" "run-02';touch $BATS_TEST_TMPDIR/reached'"; do
    run -2 make "$goal"
    [[ $output == *"but there is no goal with "*" in its name: make help lists them"* ]]
    [ ! -e "$BATS_TEST_TMPDIR/reached" ]
  done
  run -0 make "FREE=1;touch $BATS_TEST_TMPDIR/reached" emulator
  [ ! -e "$BATS_TEST_TMPDIR/reached" ]
}

@test "a tree that cannot be written: one sentence that says which folder, and what to do" {
  run -2 make BUILD=/proc/nothing emulator
  [[ $output == *"programs are built in /proc/nothing, but that folder cannot be written: make it writable for "* ]]
  [ "$(wc -l <<<"$output")" -eq 1 ]
  mkdir -p "$BATS_TEST_TMPDIR/tree"
  cp -r common LICENSE 02_tma_load "$BATS_TEST_TMPDIR/tree/"
  ln -s /proc/nothing "$BATS_TEST_TMPDIR/tree/build"
  EXERCISES='' run -2 "$BATS_TEST_TMPDIR/tree/common/exercises/exercise" start 02_tma_load
  [[ $output == "exercises are kept in "*", but that folder cannot be written"* ]]
  EXERCISES='' run -0 "$BATS_TEST_TMPDIR/tree/common/exercises/exercise" list 02_tma_load
  run -2 "$BATS_TEST_TMPDIR/tree/common/exercises/take" 02
  [[ $output == "take: headers go to "*" unless TO names another folder, but this folder cannot be created: "* ]]
  TO=$BATS_TEST_TMPDIR/taken run -0 "$BATS_TEST_TMPDIR/tree/common/exercises/take" 02
  source common/make/script-usage
  run -2 make_folder_within /proc/nothing
  [[ $output == *" needs a folder in /proc/nothing, but cannot make one: make it writable for "* ]]
}

@test "a toolkit in a path that make cannot work with is refused" {
  script "$BATS_TEST_TMPDIR/my cuda/bin/nvcc" 'echo "release 13.0, V13.0.88"'
  run -2 make CUDA_HOME="$BATS_TEST_TMPDIR/my cuda" all
  [[ $output == *"/my cuda', and make cannot work with that path"* ]]
}

@test "a folder whose path make cannot work with: the path and the characters, for every goal" {
  local name goal
  for name in 'with space' "quo'te" 'double"quote' 'paren(thesis' 'co:lon' 'per%cent' 'ha#sh' 'dol$lar' \
    'semi;colon' 'equals=' 'comma,' 'star*' 'ampersand&' 'back\slash'; do
    mkdir -p "$BATS_TEST_TMPDIR/$name/common" "$BATS_TEST_TMPDIR/$name/02_tma_load"
    cp Makefile "$BATS_TEST_TMPDIR/$name/"
    cp -r common/make "$BATS_TEST_TMPDIR/$name/common/"
    cp 02_tma_load/Makefile "$BATS_TEST_TMPDIR/$name/02_tma_load/"
    for goal in run check help clean run-02 format; do
      run -2 make -C "$BATS_TEST_TMPDIR/$name" $goal
      [[ $output == *"this folder is '"*"make and the linker cannot work with "* ]]
    done
    run -2 make -C "$BATS_TEST_TMPDIR/$name/02_tma_load" run
    [[ $output == *"make and the linker cannot work with "* ]]
    [ "$(grep -c '\*\*\*' <<<"$output")" -eq 1 ]
  done
}

@test "BUILD: a path that make cannot work with, and one that is not a path" {
  local folder
  for folder in '/tmp/with space' '/tmp/co:lon' "/tmp/quo'te" relative ''; do
    run -2 make BUILD="$folder" help
    [[ $output == *"BUILD is '$folder', but must be a path that begins with /"* ]]
  done
  run -0 make BUILD="$BATS_TEST_TMPDIR/elsewhere" help
  # What runs programs looks for them in build/.
  for goal in run run-02 check bench pitfalls exercise; do
    run -2 make BUILD="$BATS_TEST_TMPDIR/elsewhere" $goal
    [[ $output == *"but \"make $goal\" needs its programs in $PWD/build: leave BUILD out"* ]]
  done
}

@test "a folder of letters, digits, accents and . _ + - @ is fine" {
  local copy="$BATS_TEST_TMPDIR/a.b_c+d-e@f~1^2/übung"
  mkdir -p "$copy/common" "$copy/emulator"
  cp Makefile "$copy/"
  cp -r common/make "$copy/common/"
  cp emulator/emulator.mk "$copy/emulator/"
  run -0 make -C "$copy" help
}

# What a check has built: making everything here would compile what no test runs, for minutes.
@test "a second make does nothing" {
  make check-programs >/dev/null
  run -0 make -q check-programs
}

@test "other flags or another toolkit rebuild what they touch; asking with -n and -q writes nothing" {
  make check-programs >/dev/null
  before=$(cat build/flags/*)
  run -1 make -q SANITIZE=-fsanitize=address check-programs
  run make -n SANITIZE=-fsanitize=address check-programs
  [[ $output == *"echo '  common/check.o' "* ]]
  [[ $output == *"echo '  02_tma_load/tma_load' "* ]]
  # A toolkit in another folder, with the real compiler behind it.
  toolkit=$(make -n all V=1 CUDA_FOUND='' -p 2>/dev/null | sed -n 's/^CUDA := //p' | head -n 1)
  mkdir "$BATS_TEST_TMPDIR/cuda"
  ln -s "$(realpath "$toolkit")"/* "$BATS_TEST_TMPDIR/cuda/"
  run -0 make -n CUDA_HOME="$BATS_TEST_TMPDIR/cuda" check-programs
  [[ $output == *"echo '  02_tma_load/tma_load' "* ]]
  [[ $output == *"echo '  objects/emulator/base/settings.o' "* ]]
  [ "$(cat build/flags/*)" = "$before" ]
  run -0 make -q check-programs
}

@test "every lesson holds machine code and PTX for a GPU, the tests PTX alone" {
  export NVIDIA_DRIVER=/
  for program in 07_pipelined_gemm/library/layouts:90a 07_pipelined_gemm/pipelined_gemm:90a 02_tma_load/tma_load:90; do
    architecture=${program#*:}
    program=${program%:*}
    run make -n V=1 -W "$PWD/$program.cu" "build/$program"
    [[ $output == *"nvcc "*"code=sm_$architecture "*"code=compute_$architecture "*"$program.cu"* ]]
  done
  run make -n V=1 -W "$PWD/emulator/tests/lane_order.cu" build/emulator/tests/lane_order
  [[ $output == *"nvcc "*"code=compute_90a "*"lane_order.cu"* ]]
  [[ $output != *code=sm_90a* ]]
}

@test "warnings are errors with WERROR=1 only" {
  run env -u MAKEFLAGS -u MAKEOVERRIDES -u WERROR make -n -W "$PWD/common/check.c" all
  [[ $output != *-Werror* ]]
  run make -n WERROR=1 -W "$PWD/common/check.c" all
  [[ $output == *"gcc "*"-Werror"* ]]
  [[ $output == *"-Werror all-warnings"* ]]
}

@test "the portable library has the oldest instructions alone" {
  [ "$(<build/emulator/portable/processor)" = "" ]
  ! objdump -d build/emulator/portable/libcudart.so.13 2>/dev/null | grep -qE '%[yz]mm' || false
}

@test "emulate takes the portable library where the other needs what this processor has not" {
  mkdir -p "$BATS_TEST_TMPDIR/tree/build/emulator/portable"
  cp -r emulator "$BATS_TEST_TMPDIR/tree/"
  echo "not the library" >"$BATS_TEST_TMPDIR/tree/build/emulator/libcudart.so.13"
  cp build/emulator/portable/libcudart.so.13 "$BATS_TEST_TMPDIR/tree/build/emulator/portable/"
  echo "fpu avx9000" >"$BATS_TEST_TMPDIR/tree/build/emulator/processor"
  run -0 "$BATS_TEST_TMPDIR/tree/emulator/emulate" build/02_tma_load/first_load
  [[ $output == *"PASS first_load: "* ]]
  grep -qE '^flags.* fpu ' /proc/cpuinfo
  echo fpu >"$BATS_TEST_TMPDIR/tree/build/emulator/processor"
  ! "$BATS_TEST_TMPDIR/tree/emulator/emulate" build/02_tma_load/first_load || false
}

@test "without a GPU make run compiles lessons to PTX alone, and builds one library; check-all builds everything" {
  export NVIDIA_DRIVER=/nonexistent
  unset DEVICE
  own=$BATS_TEST_TMPDIR/build
  run -0 make -n V=1 BUILD="$own" "$own/02_tma_load/tma_load" "$own/emulator/libcudart.so.13"
  [[ $output == *"nvcc "*"code=compute_90 "*"tma_load.cu"* ]]
  [[ $output != *code=sm_90* ]]
  [[ $output != *emulator/portable/* ]]
  DEVICE=gpu run make -n V=1 BUILD="$own" "$own/02_tma_load/tma_load"
  [[ $output == *"code=sm_90 "*"code=compute_90 "*"tma_load.cu"* ]]
  NVIDIA_DRIVER=/ run make -n V=1 BUILD="$own" "$own/02_tma_load/tma_load"
  [[ $output == *"code=sm_90 "*"code=compute_90 "*"tma_load.cu"* ]]
  # Once there is machine code it stays.
  mkdir -p "$own/flags"
  touch "$own/flags/machine_code"
  run make -n V=1 BUILD="$own" "$own/02_tma_load/tma_load"
  [[ $output == *"code=sm_90 "* ]]
  run make -n -B V=1 check-all-programs
  [[ $output == *"code=sm_90 "*"tma_load.cu"* ]]
  [[ $output == *emulator/portable/libcudart.so.13* ]]
}

@test "lists of headers name each object as the Makefile does, whatever a compiler cache does to paths" {
  run -0 make -n V=1 -W "$PWD/common/check.c" -W "$PWD/emulator/ptx/types.c" all emulator
  [[ $output == *"-MT $PWD/build/common/check.o "* ]]
  [[ $output == *"-MT $PWD/build/objects/emulator/ptx/types.o "* ]]
  [ "$(grep -c 'MMD.* -c ' <<<"$output")" -eq "$(grep -c 'MMD.* -MT .* -c ' <<<"$output")" ]
}

@test "changing one header rebuilds what includes it, and nothing else" {
  run -0 make -n -W "$PWD/05_multicast/tma_multicast.cuh" check-programs
  [[ $output == *build/05_multicast/multicast* ]]
  [[ $output != *build/03_tma_store/* ]]
}

@test "a chapter builds and checks by itself" {
  run -0 make -C 03_tma_store -n all
  run -0 make -n check-03
  [[ $output == *tests/03_tma_store.bats* ]]
  [[ $output != *tests/02_tma_load.bats* ]]
  run make -C 03_tma_store -n check
  [[ $output == *tests/03_tma_store.bats* ]]
  run make -n -B check-07
  [[ $output == *"echo '  tests/library/pace' "*/tests/library.bats* ]]
  run -0 make -n figures-03
  [[ ${lines[-1]} == *"/draw.py $PWD/03_tma_store" ]]
}

@test "TESTS=name runs these files of tests/ alone" {
  run -0 make -n check TESTS="tensor_map tma"
  [[ ${lines[-1]} == *"/check-chapters "*"/tests/tensor_map.bats "*"/emulator/tests/tma.bats" ]]
}

@test "every file of tests runs in check-all, which CI runs, and check leaves out those that are listed" {
  test_files() { make -n "$1" | tail -n 1 | tr ' ' '\n' | sed -n "s|^$PWD/\(.*\.bats\)$|\1|p" | sort; }
  test_files check >"$BATS_TEST_TMPDIR/check"
  test_files check-all >"$BATS_TEST_TMPDIR/all"
  diff "$BATS_TEST_TMPDIR/all" <(ls tests/*.bats emulator/tests/*.bats | sort)
  run comm -23 "$BATS_TEST_TMPDIR/check" "$BATS_TEST_TMPDIR/all"
  [ "$output" = "" ]
  run comm -13 "$BATS_TEST_TMPDIR/check" "$BATS_TEST_TMPDIR/all"
  [ "$(grep '^tests/' <<<"$output" | xargs basename -s .bats | paste -sd' ')" = "attention benchmarks book drawings fetching figures later_gpus layouts library makefile readmes recorded repairs solutions take taken terminal tests translations" ]
  ! grep '^emulator/' "$BATS_TEST_TMPDIR/check" || false
  grep -q '^make check-all WERROR=1$' .ci/run
}

@test "README, the container file and the workflow name the same packages, and the workflow runs .ci/run and make check" {
  packages=$(sed -n 's/^`sudo apt-get install \([^`]*\)`.*/\1/p' README.md)
  [ -n "$packages" ]
  for file in .devcontainer/Dockerfile .github/workflows/check.yml; do
    grep -oE 'apt-get update .*install -y --no-install-recommends [a-z0-9+ -]*' $file >"$BATS_TEST_TMPDIR/installed"
    [ -s "$BATS_TEST_TMPDIR/installed" ]
    ! grep -vF -- "--no-install-recommends $packages" "$BATS_TEST_TMPDIR/installed" || false
  done
  grep -qx ' *- run: .ci/run' .github/workflows/check.yml
  # Each compiler of the table of machines has a job, and so has ARM.
  grep -qx ' *runs-on: ubuntu-24.04-arm' .github/workflows/check.yml
  while IFS='|' read -r machine compiler _; do
    [[ $machine == *-arm64 ]] || grep -qF "{ image: \"${machine/debian/debian:}\", compiler: $compiler }" .github/workflows/check.yml
  done < <(tests/long/machines --list pinned)
}

@test "continuous integration fails where it cannot install what the page's tests need" {
  only_tools bash dirname id
  script "$BATS_TEST_TMPDIR/bin/apt-get" 'echo "apt-get $*: no network"' 'exit 100'
  script "$BATS_TEST_TMPDIR/bin/sudo" 'exec "$@"'
  script "$BATS_TEST_TMPDIR/bin/make" 'echo made "$@"'
  PATH=$BATS_TEST_TMPDIR/bin run -1 .ci/run
  [[ $output == *"apt-get update: no network"* ]]
  [[ $output == *"the tests of the emulator's page need chromium eslint nodejs, and apt-get could not install that"* ]]
  [[ $output != *made* ]]
  # With all of them it goes on.
  for tool in chromium eslint node; do ln -s /bin/true "$BATS_TEST_TMPDIR/bin/$tool"; done
  PATH=$BATS_TEST_TMPDIR/bin run -0 .ci/run
  [ "$output" = "made check-all WERROR=1" ]
}

@test "check builds the programs that its tests name, and for TESTS=name those of that file, too" {
  in_check_all=global"_"races # in two parts, because this file must not name it
  run make -n -B check-programs
  [[ $output == *"echo '  tests/tensor_map/rules' "* ]]
  [[ $output != *"echo '  emulator/tests/$in_check_all' "* ]]
  [[ $output != *"echo '  07_pipelined_gemm/library/layouts' "* ]]
  # Not what happens to have the name of a word, and nothing that only check-all runs.
  [[ $output != *"echo '  emulator/tests/bench' "* ]]
  [[ $output != *"echo '  tests/library/measured' "* ]]
  [[ $output != *"/fixed/joined' "* ]]
  run make -n -B check-programs TESTS="global layouts"
  [[ $output == *"echo '  emulator/tests/$in_check_all' "* ]]
  [[ $output == *"echo '  07_pipelined_gemm/library/layouts' "* ]]
  run make -n -B check-all-programs
  [[ $output == *"echo '  emulator/tests/$in_check_all' "* ]]
  [[ $output == *"echo '  07_pipelined_gemm/library/layouts' "* ]]
}

@test "PROGRAM=name is built before it runs" {
  run -0 make --no-print-directory -C 02_tma_load -n -W "$PWD/02_tma_load/dimensions.cu" run PROGRAM=dimensions
  [[ $output == *"nvcc "*"02_tma_load/dimensions.cu"*"run-chapters "*"02_tma_load/dimensions" ]]
  run -0 make --no-print-directory run-02 PROGRAM=coordinates
  [[ $output == *"==== 02_tma_load/coordinates"* ]]
  [[ $output == *"PASS coordinates"* ]]
  [[ $output != *"==== 02_tma_load/tma_load"* ]]
  # Without it the main program; at the root a name stands for all chapters' programs of that name.
  run -0 make run-2
  [[ $output == *"running on the "*"==== 02_tma_load/tma_load"*"PASS tma_load"* ]]
  [[ $output != *"==== 03_"* ]]
  run -0 make run PROGRAM=dimensions
  [[ $output == *"==== 02_tma_load/dimensions"*"==== 03_tma_store/dimensions"* ]]
  run -0 make run PROGRAM=03_tma_store/dimensions
  [[ $output != *"==== 02_tma_load/dimensions"* ]]
}

@test "bench without a GPU says so and exits 0" {
  ! build/common/find-device >/dev/null || skip "this machine has a GPU"
  # What make bench runs at the end.
  run -0 common/make/bench-chapters 0*_*
  [[ $output == *"bench needs a Hopper GPU, but there is none"* ]]
  # Before that nothing is built but what looks for the GPU.
  run make -n -B bench
  [[ $output == *"common/find-device"* ]]
  [[ $output != *"bench_shapes"* ]]
  run make -n bench
  [[ ${lines[-1]} == *"/common/make/bench-chapters 01_"* ]]
}

@test "DEVICE=gpu without a GPU is refused with the reason" {
  ! build/common/find-device >/dev/null || skip "this machine has a GPU"
  run -2 make DEVICE=gpu run-02
  [[ $output == *"there is no usable GPU"* ]]
}

@test "no empty entry comes into LD_LIBRARY_PATH: it would be the current folder" {
  script "$BATS_TEST_TMPDIR/program" 'echo "<$LD_LIBRARY_PATH>"'
  for device in gpu emulator; do
    for path in '' : ::: ::/mine:; do
      DEVICE=$device LD_LIBRARY_PATH=$path run common/make/run-program "$BATS_TEST_TMPDIR/program"
      [[ $output != *::* ]]
      [[ $output != *:\> ]]
    done
    [[ $output == *:/mine\> ]]
    DEVICE=$device LD_LIBRARY_PATH=/mine::/other: run common/make/run-program "$BATS_TEST_TMPDIR/program"
    [[ $output == *:/mine:/other\> ]]
    DEVICE=$device LD_LIBRARY_PATH=/mine run common/make/run-program "$BATS_TEST_TMPDIR/program"
    [[ $output == *:/mine\> ]]
  done
}

@test "a step names what it makes on stderr, with V=1 it shows its command, with -s nothing" {
  local own=$BATS_TEST_TMPDIR/build
  run -0 --separate-stderr make BUILD="$own" "$own/common/find-device"
  [ "$output" = "" ]
  [ "$stderr" = "common/make/find_device.o"$'\n'"  common/find-device" ] # bats leaves out what it begins with
  touch "$own/common/make/find_device.o"
  run -0 make -s BUILD="$own" "$own/common/find-device"
  [ "$output" = "" ]
  touch "$own/common/make/find_device.o"
  run -0 make V=1 BUILD="$own" "$own/common/find-device"
  [[ $output == *" -o $own/common/find-device "* ]]
  [[ $output != *"  common/find-device"* ]]
}

@test "when all is built, make run-02 starts at most 60 programs" {
  command -v strace >/dev/null || skip "strace is not installed"
  make run-02 PROGRAM=first_load >/dev/null
  strace -f -qq -e trace=execve -o "$BATS_TEST_TMPDIR/started" make run-02 PROGRAM=first_load >/dev/null
  [ "$(grep -c ' = 0$' "$BATS_TEST_TMPDIR/started")" -le 60 ]
}

@test "TESTS=name builds what that file names, and little else; started by hand on unbuilt or old programs, it says what to type" {
  run -0 make -s programs-of-tests TESTS=drawings
  [[ $output == */05_multicast/masks$'\n'* ]]
  [ "${#lines[@]}" -le 25 ]
  local copy=$BATS_TEST_TMPDIR/copy
  mkdir "$copy"
  cp -r Makefile common emulator tests 02_tma_load "$copy/"
  run -1 env -u TESTS_ARE_BUILT "$(common/make/find-bats build)" "$copy/tests/02_tma_load.bats"
  [[ $output == *"not built: build/02_tma_load/"*": type make check-programs TESTS=02_tma_load"* ]]
  # A make that names what is there, and says that it is not up to date.
  script "$BATS_TEST_TMPDIR/bin/make" '[ "$2" = programs-of-tests ] && echo Makefile'
  PATH=$BATS_TEST_TMPDIR/bin:$PATH run -1 env -u TESTS_ARE_BUILT "$(common/make/find-bats build)" "$copy/tests/02_tma_load.bats"
  [[ $output == *"older than its sources: type make check-programs TESTS=02_tma_load"* ]]
}

@test "watch takes a chapter, builds and runs what was saved, and nothing before" {
  run -2 timeout 600 make watch
  [[ $output == *"watch takes one chapter, such as: make watch-02"* ]]
  # A tree of its own, and a make that says what it is asked for.
  local root=$BATS_TEST_TMPDIR/root
  mkdir -p "$root/common/make" "$root/09_new" "$BATS_TEST_TMPDIR/bin"
  cp common/make/watch-chapter common/make/script-usage "$root/common/make/"
  touch "$root/09_new/new.cu" "$root/09_new/side.cu" "$root/common/check.h"
  script "$BATS_TEST_TMPDIR/bin/make" 'echo "make $*"'
  PATH=$BATS_TEST_TMPDIR/bin:$PATH timeout 600 "$root/common/make/watch-chapter" "" 09_new \
    >"$BATS_TEST_TMPDIR/log" 2>&1 3>&- &
  watching=$!
  wait_for() { # COUNT of runs
    for _ in {1..1500}; do
      [ "$(grep -c '^make ' "$BATS_TEST_TMPDIR/log")" -lt "$1" ] || return 0
      sleep 0.1
    done
    cat "$BATS_TEST_TMPDIR/log"
    return 1
  }
  wait_for 1
  touch -d '+1 second' "$root/09_new/side.cu"
  wait_for 2
  touch -d '+2 seconds' "$root/common/check.h"
  wait_for 3
  kill $watching
  cat "$BATS_TEST_TMPDIR/log"
  diff <(grep -o '^make .*\|[^ ]* was saved' "$BATS_TEST_TMPDIR/log") - <<END
make --no-print-directory -C $root/09_new run
09_new/side.cu was saved
make --no-print-directory -C $root/09_new run PROGRAM=side
common/check.h was saved
make --no-print-directory -C $root/09_new run PROGRAM=side
END
}

@test "a make within a make finds the job server, or needs none" {
  export EXERCISES=$BATS_TEST_TMPDIR/exercises
  for goal in "run-02 PROGRAM=first_load" exercise-02 exercise-02 hint-02 exercises-02 take-02 "-n check-02" "-n bench-02"; do
    run make -j2 $goal TO="$BATS_TEST_TMPDIR/taken"
    echo "$goal: $output"
    [[ $output != *jobserver* ]]
    [[ $output != *"-j"*"forced"* ]]
  done
  # watch never ends by itself.
  timeout 600 make -j2 watch-02 PROGRAM=first_load >"$BATS_TEST_TMPDIR/log" 2>&1 3>&- &
  for _ in {1..1500}; do
    if grep -q '^---- watching' "$BATS_TEST_TMPDIR/log"; then break; fi
    sleep 0.1
  done
  kill $!
  cat "$BATS_TEST_TMPDIR/log"
  grep -q '^PASS first_load' "$BATS_TEST_TMPDIR/log"
  ! grep -q jobserver "$BATS_TEST_TMPDIR/log" || false
}

@test "check-02 runs the chapter's pitfalls, and repairs their fixed twins" {
  run make -n check-02
  [[ $output == *"tests/02_tma_load.bats"* ]]
  run make -n check-07
  [[ ${lines[-1]} == *"/tests/07_pipelined_gemm.bats "*"/tests/library.bats"* ]]
  run make -n -W "$PWD/02_tma_load/pitfalls/read_without_wait.fix" check TESTS=repairs
  [[ $output == *"echo '  tests/joined/02_tma_load/fixed/joined' "* ]]
  run make -n -W "$PWD/02_tma_load/pitfalls/too_many_bytes.cu" -C 02_tma_load check
  [[ $output == *"echo '  tests/joined/02_tma_load/pitfalls/joined' "* ]]
  grep -q try_pitfalls tests/02_tma_load.bats
}

@test "make format changes nothing" {
  command -v clang-format >/dev/null || skip "clang-format is not installed"
  run bash -c "git ls-files '*.c' '*.h' '*.cu' '*.cuh' | xargs clang-format --dry-run 2>&1 | grep -o '^[^:]*:' | sort -u"
  [ "$output" = "" ]
}

@test "every program: -h prints the usage, exit 0; an unknown option does, exit 2; where it cannot be written, exit 1" {
  print_their_usage $(find build/0[0-9]_* -maxdepth 1 -type f -executable)
}

@test "every script of common/: --help prints its usage, exit 0; too few arguments print it, exit 2" {
  local script
  for script in common/make/{bench-chapters,check-chapters,fetch-wheels,find-bats,find-toolkit,run-chapters} \
    common/make/{show-pitfalls,watch-chapter} common/exercises/{exercise,take} emulator/install; do
    for help in -h --help; do
      run -0 $script $help
      [[ $output == "${script##*/} "* ]]
      run -1 bash -c "$script $help 2>/dev/null >/dev/full"
    done
    case $script in */check-chapters | */take) continue ;; esac
    run -2 $script
    [[ $output == "${script##*/} "* ]]
  done
}

@test "output that cannot be written is no success" {
  printf '@%s { %s; }\n' 'test "right"' true >"$BATS_TEST_TMPDIR/one.bats"
  for command in "exercises/exercise list 02_tma_load" "make/bench-chapters 02_tma_load" \
    "make/check-chapters '$BATS_TEST_TMPDIR/one.bats'" "make/run-chapters build/02_tma_load/tma_load"; do
    run ! bash -c "DEVICE=emulator common/$command 2>/dev/null >/dev/full"
  done
}

@test "each test is printed when it has ended, a failed one with what it printed, and counted" {
  printf '@%s {\n %s\n}\n' 'test "right"' true 'test "wrong"' \
    'echo because; false' 'test "left out"' 'skip "why"' >"$BATS_TEST_TMPDIR/one.bats"
  run -1 common/make/check-chapters "$BATS_TEST_TMPDIR/one.bats"
  [ "${lines[1]}" = "[1/3] one: ok right" ]
  [ "${lines[2]}" = "[2/3] one: not ok wrong" ]
  [[ $output == *$'\n    # because\n[3/3] one: ok left out # skip why\nFailed:\none: not ok wrong\n'*$'\n    # because\n1 passed, 1 failed, 1 skipped' ]]
}

@test "a test file that breaks off is a failure" {
  printf '@%s { %s; }\n' 'test "first"' true 'test "second"' 'kill -9 $PPID' \
    >"$BATS_TEST_TMPDIR/broken.bats"
  mkdir -p "$BATS_TEST_TMPDIR/copy/build/common"
  cp -r common "$BATS_TEST_TMPDIR/copy/"
  cp build/common/find-device "$BATS_TEST_TMPDIR/copy/build/common/"
  run ! "$BATS_TEST_TMPDIR/copy/common/make/check-chapters" "$BATS_TEST_TMPDIR/broken.bats"
  [[ $output == *$'\nFailed:\nbroken: not ok: '* ]]
}
