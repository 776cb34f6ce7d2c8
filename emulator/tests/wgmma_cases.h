/* wgmma_cases.h: every form of wgmma.mma_async that wgmma_cases.cu tries.
 *
 *   WGMMA(name, shape and types, registers of D, where A is, type of A, of B, of C and D,
 *         A is MN-major, B is MN-major, the operands behind B's descriptor) */
#define WGMMA_HALF_CASES(W, T)                                                                     \
  WGMMA(W##_n8_ss, "m64n8k16.f32." T "." T, 4, SHARED, W, W, F32, 0, 0, ", p, 1, 1, 0, 0")         \
  WGMMA(W##_n16_rs, "m64n16k16.f32." T "." T, 8, REGISTERS, W, W, F32, 0, 0, ", p, 1, 1, 0")       \
  WGMMA(W##_n24_ss_nk, "m64n24k16.f32." T "." T, 12, SHARED, W, W, F32, 0, 1, ", p, -1, 1, 0, 1")  \
  WGMMA(W##_n8_ss_mn, "m64n8k16.f32." T "." T, 4, SHARED, W, W, F32, 1, 1, ", p, 1, 1, 1, 1")      \
  WGMMA(W##_n64_ss_mk, "m64n64k16.f32." T "." T, 32, SHARED, W, W, F32, 1, 0, ", p, 1, -1, 1, 0")  \
  WGMMA(W##_n32_rs_n, "m64n32k16.f32." T "." T, 16, REGISTERS, W, W, F32, 0, 1, ", p, -1, -1, 1")  \
  WGMMA(W##_n128_ss, "m64n128k16.f32." T "." T, 64, SHARED, W, W, F32, 0, 0, ", p, 1, 1, 0, 0")    \
  WGMMA(W##_n192_ss_mn, "m64n192k16.f32." T "." T, 96, SHARED, W, W, F32, 1, 1, ", p, 1, 1, 1, 1") \
  WGMMA(W##_n256_ss, "m64n256k16.f32." T "." T, 128, SHARED, W, W, F32, 0, 0, ", p, 1, 1, 0, 0")

#define WGMMA_CASES                                                                                \
  WGMMA_HALF_CASES(F16, "f16")                                                                     \
  WGMMA_HALF_CASES(BF16, "bf16")                                                                   \
  WGMMA(f16_acc_n8_ss, "m64n8k16.f16.f16.f16", 2, SHARED, F16, F16, F16, 0, 0, ", p, 1, 1, 0, 0")  \
  WGMMA(f16_acc_n16_rs, "m64n16k16.f16.f16.f16", 4, REGISTERS, F16, F16, F16, 0, 1,                \
        ", p, 1, -1, 1")                                                                           \
  WGMMA(f16_acc_n64_ss, "m64n64k16.f16.f16.f16", 16, SHARED, F16, F16, F16, 1, 0,                  \
        ", p, -1, 1, 1, 0")                                                                        \
  WGMMA(f16_acc_n256_ss, "m64n256k16.f16.f16.f16", 64, SHARED, F16, F16, F16, 0, 0,                \
        ", p, 1, 1, 0, 0")                                                                         \
  WGMMA(tf32_n8_ss, "m64n8k8.f32.tf32.tf32", 4, SHARED, TF32, TF32, F32, 0, 0, ", p, 1, 1")        \
  WGMMA(tf32_n16_rs, "m64n16k8.f32.tf32.tf32", 8, REGISTERS, TF32, TF32, F32, 0, 0, ", p, -1, 1")  \
  WGMMA(tf32_n128_ss, "m64n128k8.f32.tf32.tf32", 64, SHARED, TF32, TF32, F32, 0, 0, ", p, 1, -1")  \
  WGMMA(e4m3_n8_ss, "m64n8k32.f32.e4m3.e4m3", 4, SHARED, E4M3, E4M3, F32, 0, 0, ", p, 1, 1")       \
  WGMMA(e4m3_e5m2_n16_rs, "m64n16k32.f32.e4m3.e5m2", 8, REGISTERS, E4M3, E5M2, F32, 0, 0,          \
        ", p, 1, -1")                                                                              \
  WGMMA(e5m2_e4m3_n8_ss, "m64n8k32.f32.e5m2.e4m3", 4, SHARED, E5M2, E4M3, F32, 0, 0, ", p, -1, 1") \
  WGMMA(e5m2_n8_ss, "m64n8k32.f32.e5m2.e5m2", 4, SHARED, E5M2, E5M2, F32, 0, 0, ", p, 1, 1")       \
  WGMMA(e4m3_n128_ss, "m64n128k32.f32.e4m3.e4m3", 64, SHARED, E4M3, E4M3, F32, 0, 0, ", p, 1, 1")  \
  WGMMA(e5m2_n64_ss, "m64n64k32.f32.e5m2.e5m2", 32, SHARED, E5M2, E5M2, F32, 0, 0, ", p, 1, 1")    \
  WGMMA(e4m3_f16_n8_ss, "m64n8k32.f16.e4m3.e4m3", 2, SHARED, E4M3, E4M3, F16, 0, 0, ", p, 1, 1")   \
  WGMMA(e4m3_e5m2_f16_n16_rs, "m64n16k32.f16.e4m3.e5m2", 4, REGISTERS, E4M3, E5M2, F16, 0, 0,      \
        ", p, 1, 1")                                                                               \
  WGMMA(e5m2_e4m3_f16_n64_ss, "m64n64k32.f16.e5m2.e4m3", 16, SHARED, E5M2, E4M3, F16, 0, 0,        \
        ", p, 1, 1")                                                                               \
  WGMMA(e5m2_f16_n8_ss, "m64n8k32.f16.e5m2.e5m2", 2, SHARED, E5M2, E5M2, F16, 0, 0, ", p, 1, 1")   \
  WGMMA(s8_n8_ss, "m64n8k32.s32.s8.s8", 4, SHARED, BITS, BITS, SMALL, 0, 0, ", p")                 \
  WGMMA(u8_s8_n16_rs, "m64n16k32.s32.u8.s8", 8, REGISTERS, BITS, BITS, SMALL, 0, 0, ", p")         \
  WGMMA(s8_u8_n24_ss, "m64n24k32.s32.s8.u8", 12, SHARED, BITS, BITS, SMALL, 0, 0, ", p")           \
  WGMMA(u8_n128_ss, "m64n128k32.s32.u8.u8", 64, SHARED, BITS, BITS, SMALL, 0, 0, ", p")            \
  WGMMA(s8_sat_n64_ss, "m64n64k32.satfinite.s32.s8.s8", 32, SHARED, BITS, BITS, SMALL, 0, 0,       \
        ", p")                                                                                     \
  WGMMA(u8_sat_n16_ss, "m64n16k32.satfinite.s32.u8.u8", 8, SHARED, BITS, BITS, SMALL, 0, 0, ", p")

/* ---- What every block does, on the GPU and in the C test -------------------------------------
 *
 * A block fills shared memory with random numbers of one mode and reads them STEPS times, each
 * time through other descriptors. The tiles overlap: only the addresses matter. */
enum {
  STEPS = 8,
  REGION_A = 0, /* offsets from a 1024-byte boundary */
  REGION_B = 20 * 1024,
  POSITION_A = 1 << 20,
  POSITION_B = 2 << 20,
  POSITION_REGISTERS_A = 3 << 20,
  POSITION_C = 5 << 20
};
/* Bytes that may be read of A, and of B with this many columns. */
#define BYTES_A (20 * 1024)
#define BYTES_B(n) ((n) > 80 ? (n) / 8 * 2048 + 4096 : 24 * 1024)

typedef struct {
  uint32_t start, leading, stride, base; /* bytes; base: the base offset field */
  uint32_t swizzle;                      /* the field: 0 none, 1 128 bytes, 2 64, 3 32 */
} Layout;

INPUTS Layout step_layout(int step, int mn_major) {
  Layout layout = {0, 0, 0, 0, (uint32_t)step & 3u};
  const int second = step >= STEPS / 2;
  const uint32_t span = layout.swizzle == 1 ? 128u : layout.swizzle == 2 ? 64u : 32u;
  if (layout.swizzle == 0) {
    layout.leading = mn_major ? (second ? 144 : 128) : (second ? 4112 : 128);
    layout.stride = mn_major ? (second ? 272 : 256) : (second ? 144 : 256);
    layout.start = second ? 48 : 0;
  } else if (mn_major) {
    layout.stride = 8 * span * (second ? 2 : 1);
    layout.leading = 8 * span * (second ? 5 : 2);
    layout.start = second ? 8 * span : 0;
  } else {
    layout.stride = 8 * span * (second ? 2 : 1);
    layout.leading = second ? 0 : 16;
    if (second) layout.start = span > 32 ? 32 : 8 * span;
  }
  /* A tile may start anywhere in the pattern of the swizzle, and say how far that is displaced. */
  if (layout.swizzle != 0 && step >= STEPS - 2) {
    layout.start += 16u * 11u;
    layout.base = (uint32_t)step - 3u;
  }
  return layout;
}

INPUTS uint64_t step_descriptor(Layout layout, uint32_t shared_address) {
  const uint32_t start = shared_address + layout.start;
  return (uint64_t)((start & 0x3ffffu) >> 4) | (uint64_t)(layout.leading >> 4) << 16 |
         (uint64_t)(layout.stride >> 4) << 32 | (uint64_t)layout.base << 49 |
         (uint64_t)layout.swizzle << 62;
}
