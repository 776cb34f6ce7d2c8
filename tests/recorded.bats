#!/usr/bin/env bats
# Where recordings come from: common/make/record writes manifest.csv, and finds what no GPU printed.

load helpers

setup() {
  begin_test
  # A machine with an H200, whose one lesson is a script.
  tree=$BATS_TEST_TMPDIR/tree
  mkdir -p "$tree"/{common/make,cuda/lib64,build/emulator,tests/recorded}
  cp common/make/record "$tree/common/make/"
  touch "$tree"/{cuda/lib64,build/emulator}/libcudart.so.13
  script "$tree/common/make/find-toolkit" "echo '$tree/cuda'"
  script "$tree/cuda/bin/nvcc" 'echo "release 13.0, V13.0.88"'
  script "$tree/build/common/find-device" 'echo "${FOUND:-gpu NVIDIA H200}"'
  script "$tree/bin/nvidia-smi" 'echo "NVIDIA H200, 580.159.04"'
  script "$tree/build/02_tma_load/new" 'echo "device: ${ON:-NVIDIA H200}, compute capability 9.0"' \
    '[ "$1" != --full ] || echo "a row"' 'echo "PASS new: in $LD_LIBRARY_PATH"'
  head -n 1 tests/recorded/manifest.csv >"$tree/tests/recorded/manifest.csv"
  unset CUDA_LIBRARIES DEVICE
  new=tests/recorded/02_tma_load/new.txt
}

record() { # EXIT_CODE ARGUMENT...
  cd "$tree" || return 1
  PATH=$tree/bin:$PATH run "-$1" common/make/record "${@:2}"
}

@test "every recording is what a GPU printed, byte for byte" {
  run -0 common/make/record --check tests/recorded emulator/tests/recorded
}

@test "a lesson is recorded without its first line, and with --full where that is more" {
  record 0 $new
  [ "$output" = "$new: new"$'\n'"${new%.txt}.full.txt: new" ]
  [ "$(<$new)" = "PASS new: in $tree/cuda/lib64" ]
  [ "$(head -n 1 ${new%.txt}.full.txt)" = "a row" ]
  [[ $(sed -n 3p tests/recorded/manifest.csv) == "02_tma_load/new.txt,NVIDIA H200,580.159.04,13.0,$(date +%F),"*",build/02_tma_load/new" ]]
  record 0 --check tests/recorded
  record 0 tests/recorded
  [ "$output" = "$new: equal"$'\n'"${new%.txt}.full.txt: equal" ]
}

@test "what did not run on a GPU is not recorded as if it had" {
  FOUND="emulator no NVIDIA driver" record 2 $new
  [[ $output == *"there is none: emulator no NVIDIA driver. --emulator writes the file"* ]]
  ON="Emulated sm_90a" record 2 $new
  [[ $output == *"build/02_tma_load/new ran elsewhere than on the NVIDIA H200: device: Emulated sm_90a, compute capability 9.0" ]]
  rm cuda/lib64/*
  record 2 $new
  [[ $output == *"there is no libcudart.so in $tree/cuda/lib64"* ]]
  [ ! -e $new ]
  record 0 --emulator $new
  [ "$(<$new)" = "PASS new: in $tree/build/emulator" ]
  record 1 --check tests/recorded
  [ "${lines[1]}" = "$new is what the emulator printed: on a GPU, type common/make/record $new; without one, send it so: this stays red until somebody has" ]
}

@test "a recording that was changed, added, removed or given a GPU by hand is found" {
  record 0 $new
  echo "another line" >>$new
  record 1 --check tests/recorded
  [ "$output" = "$new is not what the NVIDIA H200 printed on $(date +%F): on a GPU, type common/make/record $new" ]
  sed -i '$d' $new
  cp $new tests/recorded/02_tma_load/copied.txt
  record 1 --check tests/recorded
  [[ $output == "tests/recorded/02_tma_load/copied.txt is not in manifest.csv: "* ]]
  mv tests/recorded/02_tma_load/{copied.txt,copied.report.txt}
  record 0 --check tests/recorded
  sed -i '2s/NVIDIA H200/Emulated sm_90a/' tests/recorded/manifest.csv
  record 1 --check tests/recorded
  [[ $output == "${new%.txt}.full.txt: the GPU, driver, CUDA version, date or command in manifest.csv is none: "* ]]
  sed -i 2d tests/recorded/manifest.csv
  sed -n 2p tests/recorded/manifest.csv >>tests/recorded/manifest.csv
  rm ${new%.txt}.full.txt
  record 1 --check tests/recorded
  [ "$output" = "$new is in manifest.csv twice" ]
  rm $new
  record 1 --check tests/recorded
  [[ $output == "$new is in manifest.csv, but there is no such file"* ]]
}

@test "a program that fails or writes its file itself, a path that is no recording, and no arguments" {
  echo 'exit 1' >>"$tree/build/02_tma_load/new"
  record 2 $new
  [[ $output == *"$new: build/02_tma_load/new ends with code 1 and prints "*" bytes"* ]]
  mkdir -p emulator/tests/recorded
  cp tests/recorded/manifest.csv emulator/tests/recorded/
  record 2 emulator/tests/recorded/bits.bin
  [[ $output == *"bits.bin is new: name its COMMAND, too"* ]]
  record 0 emulator/tests/recorded/bits.bin 'echo told; echo 1001 >$FILE'
  [ "$(<emulator/tests/recorded/bits.bin)" = 1001 ]
  record 2 --emulator emulator/tests/recorded/bits.bin
  [[ $output == *"bits.bin is what a GPU answered, which the emulator is compared with. Without a GPU, write a test"* ]]
  record 2 elsewhere.txt
  [[ $output == *"elsewhere.txt is not below tests/recorded or emulator/tests/recorded"* ]]
  record 2
  [[ $output == "record: puts what programs print on this machine's GPU into files"* ]]
  record 0 --help
  record 2 --check nowhere
  [[ $output == *"there is no nowhere/manifest.csv"* ]]
}
