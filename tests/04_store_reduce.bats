#!/usr/bin/env bats
# Chapter 04: the programs print what an H200 printed, refuse bad arguments, and the pairs of
# operation and type that the hardware refuses are refused.

load helpers
chapter=04_store_reduce

@test "the programs print what was recorded" { print_what_was_recorded; }

@test "every reduce wrapper, by operation and number of dimensions" {
  common/make/run-program build/tests/04_store_reduce/dimensions
}

@test "pairs that the hardware refuses end in illegal instruction, as recorded" {
  for pair in "add u8" "add u16" "add s64" "max f32" "min f64" "min u8" "inc u64" "dec s32" \
      "and s64" "or s64" "xor s64" "or f16" "inc tf32" "max f32_ftz"; do
    echo "$pair"
    run -0 common/make/run-program build/04_store_reduce/operations --try $pair
    [[ $output == *"PASS operations: $pair is refused, as recorded"* ]]
  done
}

@test "a pair that the hardware carries out, tried alone" {
  run -0 common/make/run-program build/04_store_reduce/operations --try max bf16
  [ "${lines[-1]}" = "PASS operations: max bf16 does what was recorded" ]
}

@test "an unknown operation or type: the choices, exit 2" {
  run -2 common/make/run-program build/04_store_reduce/operations --try sub u32
  [[ $output == *"'sub' is not an operation"* ]]
  [[ $output == *"operations: add min max inc dec and or xor"* ]]
  run -2 common/make/run-program build/04_store_reduce/operations --try add fp8
  [[ $output == *"'fp8' is not an element type"* ]]
  [[ $output == *"types: u8 u16 u32 s32 u64 s64 f16 bf16 f32 f32_ftz tf32 tf32_ftz f64"* ]]
  run -2 common/make/run-program build/04_store_reduce/operations --try
  run -2 common/make/run-program build/04_store_reduce/operations --try add
  [[ $output == *"'--try' needs an operation and an element type"* ]]
  run -2 common/make/run-program build/04_store_reduce/operations --try add u32 u32
}

@test "each pitfall is reported by its rule" { try_pitfalls; }
