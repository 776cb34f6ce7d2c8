/* simd_intrinsics.cu: vabsdiff2 and vabsdiff4, to which nvcc compiles seven of CUDA's SIMD intrinsics for
 * sm_90a, in every combination of their types, with .sat and with .add. Bytes and halves that decide come
 * first. The host computes the same from the PTX ISA's definition. */

#include "device_memory.cuh"

enum { THREADS = 128, INTRINSICS = 7, TYPES = 8 };
/* For two sizes: without a suffix for each combination of types; .sat and .add for two of them. */
enum { INSTRUCTIONS = 2 * (TYPES + 2), RESULTS = INTRINSICS + INSTRUCTIONS };

#define FORM(name, types) \
  asm("vabsdiff" name "." types " %0, %1, %2, %3;" : "=r"(*out++) : "r"(a), "r"(b), "r"(c))
#define FORMS_OF_SIZE(size)      \
  FORM(size, "u32.u32.u32");     \
  FORM(size, "u32.u32.s32");     \
  FORM(size, "u32.s32.u32");     \
  FORM(size, "u32.s32.s32");     \
  FORM(size, "s32.u32.u32.sat"); \
  FORM(size, "s32.u32.s32.sat"); \
  FORM(size, "s32.s32.u32.sat"); \
  FORM(size, "u32.s32.u32.sat"); \
  FORM(size, "u32.u32.u32.add"); \
  FORM(size, "s32.s32.s32.add")

__global__ void compute(const uint32_t *values, uint32_t *results) {
  const uint32_t a = values[threadIdx.x], b = values[threadIdx.x + THREADS];
  const uint32_t c = values[threadIdx.x + 2 * THREADS];
  uint32_t *out = results + threadIdx.x * RESULTS;
  *out++ = __vabs4(a);
  *out++ = __vabsss4(a);
  *out++ = __vabsdiffs4(a, b);
  *out++ = __vabsdiffu4(a, b);
  *out++ = __vsads4(a, b);
  *out++ = __vsadu4(a, b);
  *out++ = __vsadu2(a, b);
  FORMS_OF_SIZE("2");
  FORMS_OF_SIZE("4");
}

typedef struct {
  int parts, signed_a, signed_b;
  uint32_t most; /* to which a difference is clamped; 0: it is not */
  int add;
} Form;

static int32_t part_of(uint32_t value, int part, int bits, int is_signed) {
  const int32_t field = (int32_t)(value >> part * bits & ((1u << bits) - 1u));
  return is_signed && field >> (bits - 1) ? field - (1 << bits) : field;
}

static uint32_t expected(Form form, uint32_t a, uint32_t b, uint32_t c) {
  const int bits = 32 / form.parts;
  uint32_t sum = c, joined = 0;
  for (int part = 0; part < form.parts; part++) {
    uint32_t one = (uint32_t)abs(part_of(a, part, bits, form.signed_a) -
                                 part_of(b, part, bits, form.signed_b));
    sum += one;
    if (form.most && one > form.most) one = form.most;
    joined |= (one & ((1u << bits) - 1u)) << part * bits;
  }
  return form.add ? sum : joined;
}

int main(void) {
  static const uint32_t edges[] = {0,          0x80808080, 0x7f7f7f7f, 0xffffffff, 0x80008000,
                                   0x7fff7fff, 0x00ff00ff, 0x01800001, 0xff017f80, 0x02030180};
  enum { EDGES = sizeof edges / sizeof *edges };
  static uint32_t values[3 * THREADS], results[THREADS * RESULTS];
  for (int i = 0; i < 3 * THREADS; i++) values[i] = (uint32_t)i * 2654435761u ^ (uint32_t)i << 7;
  for (int i = 0; i < EDGES * EDGES; i++) { /* every pair */
    values[i] = edges[i / EDGES];
    values[i + THREADS] = edges[i % EDGES];
  }
  uint32_t *device_results = device_memory<uint32_t>(THREADS * RESULTS);
  compute<<<1, THREADS>>>(device_copy(values), device_results);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(results, device_results, sizeof results, cudaMemcpyDeviceToHost));

  Form forms[RESULTS] = {{4, 1, 1},       {4, 1, 1, 127},  {4, 1, 1},      {4},
                         {4, 1, 1, 0, 1}, {4, 0, 0, 0, 1}, {2, 0, 0, 0, 1}};
  for (int i = 0; i < 2; i++) {
    const int parts = i ? 4 : 2;
    const uint32_t most = i ? 255 : 65535;
    const Form of_size[] = {{parts},
                            {parts, 0, 1},
                            {parts, 1, 0},
                            {parts, 1, 1},
                            {parts, 0, 0, most / 2},
                            {parts, 0, 1, most / 2},
                            {parts, 1, 0, most / 2},
                            {parts, 1, 0, most},
                            {parts, 0, 0, 0, 1},
                            {parts, 1, 1, 0, 1}};
    for (int k = 0; k < TYPES + 2; k++) forms[INTRINSICS + i * (TYPES + 2) + k] = of_size[k];
  }
  int wrong = 0;
  for (int i = 0; i < THREADS * RESULTS; i++) {
    const int thread = i / RESULTS, form = i % RESULTS, unary = form < 2;
    const int adds_c = form >= INTRINSICS;
    const uint32_t should =
        expected(forms[form], values[thread], unary ? 0 : values[thread + THREADS],
                 adds_c ? values[thread + 2 * THREADS] : 0);
    if (results[i] == should) continue;
    if (wrong++ < 8)
      printf("form %d of %08x and %08x: %08x instead of %08x\n", form, values[thread],
             values[thread + THREADS], results[i], should);
  }
  printf("%s simd_intrinsics: %d values of %d intrinsics and %d instructions, %d wrong\n",
         wrong ? "FAIL" : "PASS", THREADS * RESULTS, INTRINSICS, INSTRUCTIONS, wrong);
  return wrong != 0;
}
