#!/usr/bin/env bats
# The round trip of chapter 03 in other languages (emulator/tests/languages), each as it should be and with a mistake. Their
# packages are fetched into build/languages, pinned by hash (2.5 GB). Where that is not possible, the test is skipped. What
# their launchers need has small tests without packages in launchers.bats.

load ../helpers

setup() {
  begin_test
  toolkit=$(common/make/find-toolkit "$PWD/build")
  export PATH=$PATH:$toolkit/bin HOME=$BATS_TEST_TMPDIR # caches of what was compiled elsewhere
}

# Sets `folder`, in which the packages are; skips where they cannot be fetched.
packages() { # NAME
  local log=$BATS_TEST_TMPDIR/log
  folder=$PWD/build/languages/$1
  if [ -e "$folder/fetched" ]; then return; fi
  [ "$(python3 -c 'import platform, sys; print(*sys.version_info[:2], platform.machine())')" = "3 11 x86_64" ] ||
    skip "$1: its packages are pinned for CPython 3.11 on x86-64"
  rm -rf "$folder"
  python3 -m venv "$folder"
  if ! "$folder/bin/python3" -m pip install -q --no-cache-dir --require-hashes --no-deps --only-binary=:all: \
    -r "emulator/tests/languages/$1.txt" >"$log" 2>&1; then
    cat "$log"
    rm -rf "$folder"
    ! grep -q 'DO NOT MATCH' "$log" || return 1
    skip "$1: its packages could not be fetched"
  fi
  touch "$folder/fetched"
}

expected=$'36 38 40 42\n48 50 52 54\n60 62 64 66\n72 74 76 78'

# prints_the_tile COMMAND...: without a finding of grade error
prints_the_tile() {
  run -0 --separate-stderr emulator/emulate "$@"
  echo "$stderr"
  [ "$(sed 's/ *$//' <<<"$output")" = "$expected" ]
  [[ $stderr != *": error in kernel"* ]]
}

# line TEXT FILE: where it stands in a program
line() { grep -nF -- "$1" "emulator/tests/languages/$2" | head -n 1 | cut -d: -f1; }

# names RULE PLACE OTHER_PLACE COMMAND...
names() {
  run -3 emulator/emulate "${@:4}"
  echo "$output"
  [[ $output == *"emulator: $1: error in kernel "*"  at $2"* ]]
  [[ $(tr -s '\n ' '  ' <<<"$output") == *"$3"* ]]
}

@test "Triton: the round trip; tiles that overlap are a race, with the lines of the load and the store" {
  packages triton
  local file=round_trip_triton.py
  prints_the_tile "$folder/bin/python3" emulator/tests/languages/$file
  # On several host threads it depends on their pace which of the accesses is reported.
  EMULATOR_THREADS=1 names global-race "$file:$(line matrix.load $file)" "wrote at $file:$(line matrix.store $file)" \
    "$folder/bin/python3" emulator/tests/languages/$file overlapping
}

# unfenced FILE LINE_OF_STORE LINE_OF_WRITE: both without their files where the reports name generated text
unfenced() {
  local file=$1
  names missing-proxy-fence "$2" "$3 through the generic proxy" \
    "$folder/bin/python3" "emulator/tests/languages/$file" unfenced
}

@test "CuTe DSL: the round trip, and without its fence" {
  packages cute_dsl
  local file=round_trip_cute_dsl.py
  prints_the_tile "$folder/bin/python3" -W ignore emulator/tests/languages/$file
  unfenced $file "$file:$(line 'cute.copy(store' $file)" "$file:$(line '] += thread' $file)"
}

@test "TIRx: the round trip, and without its fence" {
  packages tirx
  prints_the_tile "$folder/bin/python3" emulator/tests/languages/round_trip_tirx.py
  unfenced round_trip_tirx.py tvm_kernels.cu: ""
}

@test "Mojo: the round trip, and without its fence" {
  packages mojo
  local mojo=("$folder/bin/mojo" run --target-accelerator=sm_90a --debug-level=line-tables) file=round_trip.mojo
  prints_the_tile "${mojo[@]}" emulator/tests/languages/$file
  names missing-proxy-fence "$file:$(line global_shared_cta\(tile $file)" \
    "$file:$(line '] += ' $file) through the generic proxy" "${mojo[@]}" emulator/tests/languages/$file unfenced
}

@test "cuda.core: the round trip, and without its fence" {
  packages cuda_python
  prints_the_tile "$folder/bin/python3" emulator/tests/languages/round_trip_cuda_core.py
  unfenced round_trip_cuda_core.py "round_trip.cuh:$(line global.shared::cta round_trip.cuh)" \
    "round_trip.cuh:$(line '] += ' round_trip.cuh)"
}

@test "CuPy: the round trip, and without its fence" {
  packages cuda_python
  prints_the_tile "$folder/bin/python3" emulator/tests/languages/round_trip_cupy.py
  unfenced round_trip_cupy.py "" ".cu:$(line '] += ' round_trip.cuh)"
}

@test "Numba: the round trip by its threads, and without its barrier" {
  packages cuda_python
  local file=round_trip_numba.py
  export NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS=0
  prints_the_tile "$folder/bin/python3" emulator/tests/languages/$file
  names lane-race "$file:$(line '= tile[other]' $file)" "wrote at $file:$(line 'tile[thread] = ' $file)" \
    "$folder/bin/python3" emulator/tests/languages/$file unsynchronised
}

@test "Numba with LTO, its default: refused with the setting to change" {
  packages cuda_python
  sed 's/"void(float32\[:, ::1\])", lto=False, //' emulator/tests/languages/round_trip_numba.py >"$BATS_TEST_TMPDIR/lto.py"
  run -1 emulator/emulate "$folder/bin/python3" "$BATS_TEST_TMPDIR/lto.py"
  [[ $output == *"Numba hands over PTX with a signature and lto=False: @cuda.jit(SIGNATURE, lto=False)"* ]]
}
