#!/usr/bin/env bats
# Chapter 07: every rung gives the H200's bits (the recorded output holds checksums of C), takes any
# size that TMA can read, and refuses others with a sentence.

load helpers

setup() {
  begin_test
  chapter=07_pipelined_gemm
}

refused() {
  run -2 common/make/run-program build/07_pipelined_gemm/pipelined_gemm "$@"
}

@test "the programs print what was recorded; every rung gives the recorded bits" {
  print_what_was_recorded library/layouts swizzle_mismatch # the first in layouts.bats, the second below
}

# "C7510 c7510" and so on: what ptxas says of which kernel of serialised_wgmma.
said_of_wgmma() { # OPTIONS OF NVCC...
  "$NVCC" -std=c++14 -O3 -gencode arch=compute_90a,code=sm_90a -Icommon "$@" -cubin \
    -o "$BATS_TEST_TMPDIR/cubin" 07_pipelined_gemm/serialised_wgmma.cu 2>&1 |
    sed -nE "s/.*\((C75[0-9]{2})\).*'_Z[0-9]+(c[0-9]+)P.*/\1 \2/p" | sort -u
}

@test "serialised_wgmma: each mistake brings the message that its kernel is named after, and its repair none" {
  local kernel message found release
  release=$("$NVCC" --version | sed -n 's/.*, V//p')
  found=$(said_of_wgmma -DMISTAKES; said_of_wgmma -DMISTAKES -rdc=true)
  echo "$release: $found"
  for kernel in $(grep -oE '\{"c75[0-9]{2}"' 07_pipelined_gemm/serialised_wgmma.cu | tr -d '{"'); do
    message="${kernel^} $kernel"
    # After CUDA 13.0, C7519 is what was C7520 there, and nothing is said of the fence that is inserted.
    case $release:$kernel in
      13.0.*) ;;
      *:c7519) [[ $found != *c7519* ]] || return 1; continue ;;
      *:c7520) message="C7519 c7520" ;;
    esac
    grep -qx "$message" <<<"$found"
  done
  found=$(said_of_wgmma)
  [ -z "$found" ]
}

@test "every rung computes a product of any size that TMA can read" {
  local rung
  for rung in tiled serial ring producer_consumer two_consumers multicast persistent tma_epilogue \
    overlapped_epilogue carried_tile small_shapes; do
    exact "$rung" --m 333 --n 264 --k 136
  done
}

@test "the last rung computes products with few rows, few columns and a short k" {
  exact pipelined_gemm --m 1 --n 8 --k 8
  exact pipelined_gemm --m 777 --n 8 --k 72 --blocks 2
  exact pipelined_gemm --m 3 --n 1000 --k 200
}

@test "--no-check: a rung computes once and compares nothing, so the clock may leave out the arithmetic" {
  EMULATOR_CLOCK=h200 EMULATOR_MATH=skip run -0 --separate-stderr emulator/emulate build/07_pipelined_gemm/ring \
    --m 256 --n 512 --k 256 --no-check
  [ "${lines[1]}" = "PASS ring: computed once, not checked" ]
  [[ $stderr == *" clocks, "* ]]
  EMULATOR_CLOCK=h200 EMULATOR_MATH=skip run -1 emulator/emulate build/07_pipelined_gemm/ring --m 256 --n 512 --k 256
}

@test "sizes that are zero, too large, no numbers or no multiples of 8: exit 2" {
  refused --m 0
  refused --n 99999999999
  refused --k many
  refused --n 77
  [[ $output == *"--n is 77, but must be a multiple of 8"* ]]
  refused --m 512 --k 100
  [[ $output == *"--k is 100, but must be a multiple of 8"* ]]
}

@test "swizzle_mismatch prints what was recorded, and the emulator names the mistake" {
  run common/make/run-program build/$chapter/swizzle_mismatch
  if [[ $output == *"Emulated"* ]]; then
    [ "$status" -eq 3 ]
    [[ $output == *"swizzle-mismatch"* ]]
    run -0 common/make/run-chapters "$PWD/build/$chapter/swizzle_mismatch"
    [[ $output == *"(exit code 3: this program makes its mistake on purpose)"* ]]
  else
    [ "$status" -eq 0 ]
  fi
  common/make/run-program build/$chapter/swizzle_mismatch 2>/dev/null |
    tail -n +2 | diff - tests/recorded/$chapter/swizzle_mismatch.txt
}

# PROGRAM ARGUMENTS...: in bounds and silent, even by the strict rules.
attends() {
  EMULATOR_CHECK=strict run -0 --separate-stderr common/make/run-program build/07_pipelined_gemm/attention/"$@"
  [ -z "$stderr" ]
  [[ $output == *"in bounds"*"PASS $1: one case against a reference in fp64"* ]]
}

@test "attention of short and long sequences, of shared heads, of large and rising scores" {
  local program
  for program in attention_serial attention_overlap attention; do
    attends $program --length 1 --causal
    attends $program --length 63 --dim 64 --scores 1
    attends $program --length 64 --batch 3
    attends $program --length 65 --heads 6 --kv-heads 2 --dim 64 --causal
    attends $program --length 1000 --causal --scores 2
  done
  attends attention --length 4096 --dim 64 --causal
}

@test "attention in any order of the copies" {
  local program schedule
  for program in attention_serial attention_overlap attention; do
    for schedule in early random:1 random:2 random:3 random:4 random:5; do
      EMULATOR_SCHEDULE=$schedule attends $program --length 600 --heads 2 --causal
    done
  done
}

@test "attention: queries that see no key become zeros" {
  attends attention --length 300 --keys 100 --causal
  [[ $output == *"all in bounds, 200 rows of zeros"* ]]
}

@test "attention: head dimensions and heads that cannot be: exit 2" {
  run -2 common/make/run-program build/$chapter/attention/attention --dim 96
  [[ $output == *"--dim must be 64 or 128: it is 96. Fill the rows up with zeros."* ]]
  run -2 common/make/run-program build/$chapter/attention/attention --heads 6 --kv-heads 4
  [[ $output == *"--kv-heads must divide --heads: it is 4."* ]]
  run -2 common/make/run-program build/$chapter/attention/attention --heads 1024 --length 16384
  [[ $output == *"batch * heads * length * dim must be at most 2^30"* ]]
}

@test "each pitfall is reported by its rule, and with its fix it is silent" { try_pitfalls; }
