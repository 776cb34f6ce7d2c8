#!/usr/bin/env bats
# Chapter 01: the programs print what an H200 printed, and the price of a tile can be read anywhere.

load helpers
chapter=01_tiledcopy_baseline

@test "the programs print what was recorded" { print_what_was_recorded; }

@test "price.sh without the tools says what is needed and prints the committed figures of either chapter" {
  # A folder that lacks cuobjdump, ncu and column, whatever this machine has.
  local chapter tool
  mkdir "$BATS_TEST_TMPDIR/bin"
  for tool in bash dirname grep; do ln -s "$(command -v "$tool")" "$BATS_TEST_TMPDIR/bin/$tool"; done
  for chapter in 01_tiledcopy_baseline 02_tma_load; do
    CUDA_HOME=/nonexistent PATH=$BATS_TEST_TMPDIR/bin run -0 bash $chapter/price.sh
    [ "$output" = "cuobjdump, ncu and a GPU are needed to measure this; the committed figures instead:"$'\n'"$(<$chapter/price.csv)" ]
  done
}

@test "price.sh fails when ncu counts nothing, and shows what ncu said" {
  # Tools that answer as the real ones do, of a program with two kernels.
  local bin=$BATS_TEST_TMPDIR/bin
  mkdir "$bin"
  cat >"$bin/cuobjdump" <<'END'
#!/bin/sh
for kernel in _Z6scalarPKtmPt _Z7nothingv; do
  printf ' Function %s:\n  REG:40\n\t\tFunction : %s\n        /*0000*/ EXIT ;\n' $kernel $kernel
done
END
  cat >"$bin/ncu" <<'END'
#!/bin/sh
echo "==PROF== profiling"
rm "$0.busy" 2>/dev/null && SCALAR=nan
for row in scalar:$SCALAR nothing:768; do
  printf '"0","1","p","h","%s(int)","1","smsp__thread_inst_executed.sum","inst","%s"\n' \
    "${row%%:*}" "${row#*:}"
done
exit $NCU_EXIT
END
  printf '#!/bin/sh\necho "NVIDIA H200, 1.2"\n' >"$bin/nvidia-smi"
  printf '#!/bin/sh\necho "release 13.0, V"\n' >"$bin/nvcc"
  chmod +x "$bin"/*
  cp "$bin/nvcc" "$BATS_TEST_TMPDIR/program"
  price() { # exit code of ncu, count of scalar
    NCU_EXIT=$1 SCALAR=$2 PATH=$bin:$PATH \
      run 01_tiledcopy_baseline/price.sh "$BATS_TEST_TMPDIR/program"
    echo "$output"
  }
  price 0 1536
  [ "$status" -eq 0 ]
  [[ $output =~ scalar[\ ,]+40[\ ,]+0[\ ,]+1\.0 ]]
  # Where it is installed, a locale with a decimal comma.
  LC_ALL=de_DE.UTF-8 price 0 1536
  [[ $output =~ scalar[\ ,]+40[\ ,]+0[\ ,]+1\.0 ]]
  # Where another process uses the GPU, ncu may count nothing: it is asked again.
  touch "$bin/ncu.busy"
  price 0 1536
  [ "$status" -eq 0 ]
  [ ! -e "$bin/ncu.busy" ]
  for failure in "0 nan" "1 1536" "0 n/a" "0 0"; do
    price $failure
    [ "$status" -eq 1 ]
    [[ $output == *"==PROF== profiling"*"price.sh: ncu could not count the instructions"* ]]
    [[ $output != *way,registers* ]]
  done
}

@test "each pitfall is reported by its rule" { try_pitfalls; }
