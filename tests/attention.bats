#!/usr/bin/env bats
# 07_pipelined_gemm/attention: lengths, heads and scores of all kinds. 07_pipelined_gemm.bats has what the programs print.

load helpers

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
  run -2 common/make/run-program build/07_pipelined_gemm/attention/attention --dim 96
  [[ $output == *"--dim must be 64 or 128: it is 96. Fill the rows up with zeros."* ]]
  run -2 common/make/run-program build/07_pipelined_gemm/attention/attention --heads 6 --kv-heads 4
  [[ $output == *"--kv-heads must divide --heads: it is 4."* ]]
  run -2 common/make/run-program build/07_pipelined_gemm/attention/attention --heads 1024 --length 16384
  [[ $output == *"batch * heads * length * dim must be at most 2^30"* ]]
}
