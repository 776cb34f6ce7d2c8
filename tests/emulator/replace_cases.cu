/* replace_cases.cu: what tensormap.replace writes for each field. The map is 128 bytes of zeros, or
 * of ones; the words that change are printed. */
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLACE32(field)                                                                     \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024.b32 [%0], %1;" ::"r"(at), \
               "r"((uint32_t)value)                                                          \
               : "memory")
#define REPLACE32_AT(field, ordinal)                                                    \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024.b32 [%0], " #ordinal \
               ", %1;" ::"r"(at),                                                       \
               "r"((uint32_t)value)                                                     \
               : "memory")
#define REPLACE64_AT(field, ordinal)                                                    \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024.b64 [%0], " #ordinal \
               ", %1;" ::"r"(at),                                                       \
               "l"(value)                                                               \
               : "memory")
#define REPLACE64(field)                                                                     \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024.b64 [%0], %1;" ::"r"(at), \
               "l"(value)                                                                    \
               : "memory")
#define REPLACE_LITERAL(field, literal)                                                 \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024.b32 [%0], " #literal \
               ";" ::"r"(at)                                                            \
               : "memory")

enum { FIELDS = 21, LITERALS = 22 };
static const char *const field_names[FIELDS] = {"global_address",   "rank",
                                                "box_dim 0",        "box_dim 1",
                                                "box_dim 2",        "box_dim 3",
                                                "box_dim 4",        "global_dim 0",
                                                "global_dim 1",     "global_dim 2",
                                                "global_dim 3",     "global_dim 4",
                                                "global_stride 0",  "global_stride 1",
                                                "global_stride 2",  "global_stride 3",
                                                "element_stride 0", "element_stride 1",
                                                "element_stride 2", "element_stride 3",
                                                "element_stride 4"};
static const char *const literal_names[LITERALS] = {
    "elemtype 0",     "elemtype 1",          "elemtype 2",          "elemtype 3",
    "elemtype 4",     "elemtype 5",          "elemtype 6",          "elemtype 7",
    "elemtype 8",     "elemtype 9",          "elemtype 10",         "elemtype 11",
    "elemtype 12",    "interleave_layout 0", "interleave_layout 1", "interleave_layout 2",
    "swizzle_mode 0", "swizzle_mode 1",      "swizzle_mode 2",      "swizzle_mode 3",
    "fill_mode 0",    "fill_mode 1"};

#define CASE(number, what) \
  case number:             \
    what;                  \
    break

static __device__ void replace(unsigned at, int which, uint64_t value) {
  switch (which) {
    CASE(0, REPLACE64("global_address"));
    CASE(1, REPLACE32("rank"));
    CASE(2, REPLACE32_AT("box_dim", 0));
    CASE(3, REPLACE32_AT("box_dim", 1));
    CASE(4, REPLACE32_AT("box_dim", 2));
    CASE(5, REPLACE32_AT("box_dim", 3));
    CASE(6, REPLACE32_AT("box_dim", 4));
    CASE(7, REPLACE32_AT("global_dim", 0));
    CASE(8, REPLACE32_AT("global_dim", 1));
    CASE(9, REPLACE32_AT("global_dim", 2));
    CASE(10, REPLACE32_AT("global_dim", 3));
    CASE(11, REPLACE32_AT("global_dim", 4));
    CASE(12, REPLACE64_AT("global_stride", 0));
    CASE(13, REPLACE64_AT("global_stride", 1));
    CASE(14, REPLACE64_AT("global_stride", 2));
    CASE(15, REPLACE64_AT("global_stride", 3));
    CASE(16, REPLACE32_AT("element_stride", 0));
    CASE(17, REPLACE32_AT("element_stride", 1));
    CASE(18, REPLACE32_AT("element_stride", 2));
    CASE(19, REPLACE32_AT("element_stride", 3));
    CASE(20, REPLACE32_AT("element_stride", 4));
    CASE(21, REPLACE_LITERAL("elemtype", 0));
    CASE(22, REPLACE_LITERAL("elemtype", 1));
    CASE(23, REPLACE_LITERAL("elemtype", 2));
    CASE(24, REPLACE_LITERAL("elemtype", 3));
    CASE(25, REPLACE_LITERAL("elemtype", 4));
    CASE(26, REPLACE_LITERAL("elemtype", 5));
    CASE(27, REPLACE_LITERAL("elemtype", 6));
    CASE(28, REPLACE_LITERAL("elemtype", 7));
    CASE(29, REPLACE_LITERAL("elemtype", 8));
    CASE(30, REPLACE_LITERAL("elemtype", 9));
    CASE(31, REPLACE_LITERAL("elemtype", 10));
    CASE(32, REPLACE_LITERAL("elemtype", 11));
    CASE(33, REPLACE_LITERAL("elemtype", 12));
    CASE(34, REPLACE_LITERAL("interleave_layout", 0));
    CASE(35, REPLACE_LITERAL("interleave_layout", 1));
    CASE(36, REPLACE_LITERAL("interleave_layout", 2));
    CASE(37, REPLACE_LITERAL("swizzle_mode", 0));
    CASE(38, REPLACE_LITERAL("swizzle_mode", 1));
    CASE(39, REPLACE_LITERAL("swizzle_mode", 2));
    CASE(40, REPLACE_LITERAL("swizzle_mode", 3));
    CASE(41, REPLACE_LITERAL("fill_mode", 0));
    CASE(42, REPLACE_LITERAL("fill_mode", 1));
  }
}

extern "C" __global__ void run(int which, uint64_t value, uint64_t before, uint64_t *words) {
  __shared__ __align__(128) uint64_t map[16];
  for (int i = 0; i < 16; i++) map[i] = before;
  asm volatile("" ::: "memory");
  replace((unsigned)__cvta_generic_to_shared(map), which, value);
  for (int i = 0; i < 16; i++) words[i] = ((volatile uint64_t *)map)[i];
}

static void need(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "replace_cases: %s: %s\n", what, cudaGetErrorString(error));
  exit(2);
}

static void one(uint64_t *words, int which, uint64_t value, const char *name) {
  for (int ones = 0; ones < 2; ones++) {
    uint64_t host[16], before = ones ? ~0ull : 0;
    run<<<1, 1>>>(which, value, before, words);
    need(cudaDeviceSynchronize(), name);
    need(cudaMemcpy(host, words, sizeof host, cudaMemcpyDeviceToHost), "cudaMemcpy");
    printf("%s = 0x%llx over %s:", name, (unsigned long long)value, ones ? "ones" : "zeros");
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
  for (int i = 0; i < FIELDS; i++)
    for (size_t j = 0; j < sizeof values / sizeof values[0]; j++)
      if (i == 0 || (i >= 12 && i < 16) || values[j] <= 0xffffffffu)
        one(words, i, values[j], field_names[i]);
  for (int i = 0; i < LITERALS; i++) one(words, FIELDS + i, 0, literal_names[i]);
  return 0;
}
