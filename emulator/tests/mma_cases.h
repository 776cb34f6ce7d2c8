/* mma_cases.h: every form of mma.sync that mma_cases.cu tries.
 *
 *   MMA(name, opcode, type of A, of B, of C and D, registers of D, of A, of B) */
#define MMA_CASES                                                                                 \
  MMA(m16n8k8_f32_f16, "m16n8k8.row.col.f32.f16.f16.f32", F16, F16, F32, 4, 2, 1)                 \
  MMA(m16n8k16_f32_f16, "m16n8k16.row.col.f32.f16.f16.f32", F16, F16, F32, 4, 4, 2)               \
  MMA(m16n8k8_f16_f16, "m16n8k8.row.col.f16.f16.f16.f16", F16, F16, F16, 2, 2, 1)                 \
  MMA(m16n8k16_f16_f16, "m16n8k16.row.col.f16.f16.f16.f16", F16, F16, F16, 2, 4, 2)               \
  MMA(m16n8k8_f32_bf16, "m16n8k8.row.col.f32.bf16.bf16.f32", BF16, BF16, F32, 4, 2, 1)            \
  MMA(m16n8k16_f32_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", BF16, BF16, F32, 4, 4, 2)          \
  MMA(m16n8k4_f32_tf32, "m16n8k4.row.col.f32.tf32.tf32.f32", TF32, TF32, F32, 4, 2, 1)            \
  MMA(m16n8k8_f32_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32", TF32, TF32, F32, 4, 4, 2)            \
  MMA(m16n8k32_f32_e4m3_e4m3, "m16n8k32.row.col.f32.e4m3.e4m3.f32", E4M3, E4M3, F32, 4, 4, 2)     \
  MMA(m16n8k32_f32_e4m3_e5m2, "m16n8k32.row.col.f32.e4m3.e5m2.f32", E4M3, E5M2, F32, 4, 4, 2)     \
  MMA(m16n8k32_f32_e5m2_e4m3, "m16n8k32.row.col.f32.e5m2.e4m3.f32", E5M2, E4M3, F32, 4, 4, 2)     \
  MMA(m16n8k32_f32_e5m2_e5m2, "m16n8k32.row.col.f32.e5m2.e5m2.f32", E5M2, E5M2, F32, 4, 4, 2)     \
  MMA(m16n8k32_f16_e4m3_e4m3, "m16n8k32.row.col.f16.e4m3.e4m3.f16", E4M3, E4M3, F16, 2, 4, 2)     \
  MMA(m16n8k32_f16_e5m2_e5m2, "m16n8k32.row.col.f16.e5m2.e5m2.f16", E5M2, E5M2, F16, 2, 4, 2)     \
  MMA(m16n8k16_f32_e4m3_e4m3, "m16n8k16.row.col.f32.e4m3.e4m3.f32", E4M3, E4M3, F32, 4, 2, 1)     \
  MMA(m16n8k16_f32_e5m2_e4m3, "m16n8k16.row.col.f32.e5m2.e4m3.f32", E5M2, E4M3, F32, 4, 2, 1)     \
  MMA(m16n8k16_f16_e4m3_e5m2, "m16n8k16.row.col.f16.e4m3.e5m2.f16", E4M3, E5M2, F16, 2, 2, 1)     \
  MMA(m16n8k16_s8_u8, "m16n8k16.row.col.s32.s8.u8.s32", BITS, BITS, SMALL, 4, 2, 1)               \
  MMA(m16n8k16_s8_s8_sat, "m16n8k16.row.col.satfinite.s32.s8.s8.s32", BITS, BITS, SMALL, 4, 2, 1) \
  MMA(m16n8k32_s8_s8, "m16n8k32.row.col.s32.s8.s8.s32", BITS, BITS, SMALL, 4, 4, 2)               \
  MMA(m16n8k32_u8_u8, "m16n8k32.row.col.s32.u8.u8.s32", BITS, BITS, SMALL, 4, 4, 2)               \
  MMA(m16n8k32_u8_u8_sat, "m16n8k32.row.col.satfinite.s32.u8.u8.s32", BITS, BITS, SMALL, 4, 4, 2) \
  MMA(m16n8k32_s8_u8_sat, "m16n8k32.row.col.satfinite.s32.s8.u8.s32", BITS, BITS, SMALL, 4, 4, 2)
