/* replace_cases.cu: what tensormap.replace writes for each field. The map is 128 bytes of zeros, or
 * of ones; the words that change are printed. */
#include "recorded_cases.cuh"

/* Each field by its form: with a value of 32 or 64 bits, for a dimension, or with a literal. */
// clang-format off
#define FIELDS(F64, F32, F32_AT, F64_AT, LITERAL)                                             \
  F64(global_address) F32(rank)                                                               \
  F32_AT(box_dim, 0) F32_AT(box_dim, 1) F32_AT(box_dim, 2) F32_AT(box_dim, 3)                 \
  F32_AT(box_dim, 4) F32_AT(global_dim, 0) F32_AT(global_dim, 1) F32_AT(global_dim, 2)        \
  F32_AT(global_dim, 3) F32_AT(global_dim, 4) F64_AT(global_stride, 0)                        \
  F64_AT(global_stride, 1) F64_AT(global_stride, 2) F64_AT(global_stride, 3)                  \
  F32_AT(element_stride, 0) F32_AT(element_stride, 1) F32_AT(element_stride, 2)               \
  F32_AT(element_stride, 3) F32_AT(element_stride, 4)                                         \
  LITERAL(elemtype, 0) LITERAL(elemtype, 1) LITERAL(elemtype, 2) LITERAL(elemtype, 3)         \
  LITERAL(elemtype, 4) LITERAL(elemtype, 5) LITERAL(elemtype, 6) LITERAL(elemtype, 7)         \
  LITERAL(elemtype, 8) LITERAL(elemtype, 9) LITERAL(elemtype, 10) LITERAL(elemtype, 11)       \
  LITERAL(elemtype, 12) LITERAL(interleave_layout, 0) LITERAL(interleave_layout, 1)           \
  LITERAL(interleave_layout, 2) LITERAL(swizzle_mode, 0) LITERAL(swizzle_mode, 1)             \
  LITERAL(swizzle_mode, 2) LITERAL(swizzle_mode, 3) LITERAL(fill_mode, 0) LITERAL(fill_mode, 1)
// clang-format on
#define NAME(field) #field,
#define NAME_AT(field, number) #field " " #number,
static const char *const names[] = {FIELDS(NAME, NAME, NAME_AT, NAME_AT, NAME_AT)};
enum { CASES = sizeof names / sizeof *names, FIRST_LITERAL = 21 };

#define REPLACE(field, bits, operands, constraint, type)                                          \
  if (which == i++)                                                                               \
    asm volatile("tensormap.replace.tile." #field ".shared::cta.b1024.b" #bits " [%0], " operands \
                 ";" ::"r"(at),                                                                   \
                 constraint((type)value)                                                          \
                 : "memory");
#define REPLACE_64(field) REPLACE(field, 64, "%1", "l", uint64_t)
#define REPLACE_32(field) REPLACE(field, 32, "%1", "r", uint32_t)
#define REPLACE_32_AT(field, number) REPLACE(field, 32, #number ", %1", "r", uint32_t)
#define REPLACE_64_AT(field, number) REPLACE(field, 64, #number ", %1", "l", uint64_t)
#define REPLACE_LITERAL(field, number) REPLACE(field, 32, #number, "r", uint32_t)

static __device__ void replace(unsigned at, int which, uint64_t value) {
  int i = 0;
  FIELDS(REPLACE_64, REPLACE_32, REPLACE_32_AT, REPLACE_64_AT, REPLACE_LITERAL)
}

extern "C" __global__ void run(int which, uint64_t value, uint64_t before, uint64_t *words) {
  __shared__ __align__(128) uint64_t map[16];
  for (int i = 0; i < 16; i++) map[i] = before;
  asm volatile("" ::: "memory");
  replace(shared_address(map), which, value);
  for (int i = 0; i < 16; i++) words[i] = ((volatile uint64_t *)map)[i];
}

static void show(uint64_t *words, int which, uint64_t value) {
  for (int ones = 0; ones < 2; ones++) {
    uint64_t host[16], before = ones ? ~0ull : 0;
    run<<<1, 1>>>(which, value, before, words);
    need(cudaDeviceSynchronize(), names[which]);
    need(cudaMemcpy(host, words, sizeof host, cudaMemcpyDeviceToHost), "cudaMemcpy");
    printf("%s = 0x%llx over %s:", names[which], (unsigned long long)value,
           ones ? "ones" : "zeros");
    for (int i = 0; i < 16; i++)
      if (host[i] != before) printf(" [%d] %016llx", i, (unsigned long long)host[i]);
    printf("\n");
  }
}

int main(void) {
  static const uint64_t values[] = {0,
                                    1,
                                    2,
                                    3,
                                    5,
                                    16,
                                    48,
                                    256,
                                    257,
                                    0x12345670u,
                                    0xffffffffu,
                                    0x123456789a0ull,
                                    0xfedcba9876543210ull};
  uint64_t *words;
  need(cudaMalloc((void **)&words, 128), "cudaMalloc");
  for (int i = 0; i < CASES; i++) {
    bool wide =
        strncmp(names[i], "global_address", 14) == 0 || strncmp(names[i], "global_stride", 13) == 0;
    for (uint64_t value : values)
      if (i < FIRST_LITERAL ? wide || value <= 0xffffffffu : value == 0) show(words, i, value);
  }
  return 0;
}
