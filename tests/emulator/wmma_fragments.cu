// wmma_fragments.cu: wmma.load, wmma.mma and wmma.store in every shape, type and layout: digests of
// the registers of each fragment and of what is stored.
//
// The PTX ISA leaves open which element a lane holds in which register; programs that look into
// fragments rely on it all the same. The digests of an H200 are in recorded/; the emulator's must
// equal them. mma_cases.cu tells how they are made.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/check.h"
#include "tensor_inputs.h"

enum { BLOCKS = 8, MATRIX_BYTES = 4096, PARTS = 5, RAW_ITERATIONS = MODES };

typedef struct {
  uint32_t test;                // makes the cases' random numbers differ
  unsigned long long *digests;  // of A, B, C, D and of the matrix that D was stored to
  uint8_t *stored;              // MATRIX_BYTES for each block
  uint64_t *raw;                // the registers of the first iterations, or NULL
} Run;

// Calls, not inlined a dozen times in each kernel: that would take long to compile.
__device__ __noinline__ static void note(Run run, int part, uint32_t iteration, uint32_t position,
                                         uint64_t bits) {
  atomicAdd(&run.digests[part], (unsigned long long)result_mark(bits, iteration, position));
  if (run.raw != NULL && iteration < RAW_ITERATIONS && part < PARTS - 1) {
    run.raw[(iteration * (PARTS - 1) + (uint32_t)part) * 256u + position] = bits;
  }
}

__device__ __noinline__ static void fill(uint8_t *matrix, Run run, uint32_t iteration,
                                         uint32_t part, InputType type, int mode) {
  for (uint32_t i = threadIdx.x; i < MATRIX_BYTES / 8; i += 32) {
    uint32_t hash = input_hash(run.test, iteration, part * 4096u + i);
    uint32_t low = input_register(type, hash, mode);
    uint32_t high = input_register(type, mixed(hash + 99u), mode);
    uint64_t both = (uint64_t)high << 32 | low;
    ((uint64_t *)matrix)[i] = type == INPUT_F64 ? input_double(hash, mode) : both;
  }
}

// Rows (or columns) are 16 bytes or more apart, and every other time 32 bytes further.
__device__ static uint32_t pitch(uint32_t elements, uint32_t bits, uint32_t iteration) {
  uint32_t least = elements < 128u / bits ? 128u / bits : elements;
  return least + (iteration & 1 ? 256u / bits : 0u);
}

// The registers %0 to %7 for all that a statement writes, %8 to %15 and so on for what it reads.
#define WRITTEN_1 "{%0}"
#define WRITTEN_2 "{%0,%1}"
#define WRITTEN_4 "{%0,%1,%2,%3}"
#define WRITTEN_8 "{%0,%1,%2,%3,%4,%5,%6,%7}"
#define READ_A_1 "{%8}"
#define READ_A_2 "{%8,%9}"
#define READ_A_4 "{%8,%9,%10,%11}"
#define READ_A_8 "{%8,%9,%10,%11,%12,%13,%14,%15}"
#define READ_B_1 "{%16}"
#define READ_B_2 "{%16,%17}"
#define READ_B_4 "{%16,%17,%18,%19}"
#define READ_B_8 "{%16,%17,%18,%19,%20,%21,%22,%23}"
#define READ_C_2 "{%24,%25}"
#define READ_C_4 "{%24,%25,%26,%27}"
#define READ_C_8 "{%24,%25,%26,%27,%28,%29,%30,%31}"
#define ALL(T, r) T(r[0]), T(r[1]), T(r[2]), T(r[3]), T(r[4]), T(r[5]), T(r[6]), T(r[7])

#define ELEMENTS_row(rows, columns) (columns)
#define ELEMENTS_col(rows, columns) (rows)

// NAME; m, n, k; layouts of A, B, C, D; what follows "wmma.mma" (.xor.popc) and the shape (types,
// .satfinite); PTX's types of A (and B), C, D; their inputs and bits; registers of A, B, C, D.
#define WMMA_KERNEL(NAME, TYPE, T, BITS_OF, M, N, K, LA, LB, LC, LD, OPERATION, TAIL, PA, PC, PD, \
                    IA, IC, BA, BC, BD, RA, RB, RC, RD)                                           \
  __global__ void __launch_bounds__(32) run_##NAME(Run run) {                                     \
    __shared__ __align__(128) uint8_t matrix[MATRIX_BYTES];                                       \
    uint8_t *stored = run.stored + blockIdx.x * MATRIX_BYTES;                                     \
    const uint32_t shared = (uint32_t)__cvta_generic_to_shared(matrix), lane = threadIdx.x;       \
    _Pragma("unroll 1") for (int mode = 0; mode < MODES; mode++) {                                \
      const uint32_t iteration = blockIdx.x * MODES + (uint32_t)mode;                             \
      TYPE a[8] = {0}, b[8] = {0}, c[8] = {0}, d[8] = {0};                                        \
      fill(matrix, run, iteration, 0, INPUT_##IA, mode);                                          \
      __syncwarp();                                                                               \
      asm volatile("wmma.load.a.sync.aligned." #LA ".m" #M "n" #N "k" #K ".shared." PA            \
                   " " WRITTEN_##RA ", [%8], %9;"                                                 \
                   : ALL("+" T, a)                                                                \
                   : "r"(shared), "r"(pitch(ELEMENTS_##LA(M, K), BA, iteration))                  \
                   : "memory");                                                                   \
      __syncwarp();                                                                               \
      fill(matrix, run, iteration, 1, INPUT_##IA, mode);                                          \
      __syncwarp();                                                                               \
      asm volatile("wmma.load.b.sync.aligned." #LB ".m" #M "n" #N "k" #K "." PA " " WRITTEN_##RB  \
                   ", [%8], %9;"                                                                  \
                   : ALL("+" T, b)                                                                \
                   : "l"(matrix), "r"(pitch(ELEMENTS_##LB(K, N), BA, iteration))                  \
                   : "memory");                                                                   \
      __syncwarp();                                                                               \
      fill(matrix, run, iteration, 2, INPUT_##IC, mode);                                          \
      __syncwarp();                                                                               \
      asm volatile("wmma.load.c.sync.aligned." #LC ".m" #M "n" #N "k" #K ".shared." PC            \
                   " " WRITTEN_##RC ", [%8], %9;"                                                 \
                   : ALL("+" T, c)                                                                \
                   : "r"(shared), "r"(pitch(ELEMENTS_##LC(M, N), BC, iteration))                  \
                   : "memory");                                                                   \
      asm volatile("wmma.mma" OPERATION ".sync.aligned." #LA "." #LB ".m" #M "n" #N "k" #K TAIL   \
                   " " WRITTEN_##RD ", " READ_A_##RA ", " READ_B_##RB ", " READ_C_##RC ";"        \
                   : ALL("+" T, d)                                                                \
                   : ALL(T, a), ALL(T, b), ALL(T, c));                                            \
      for (uint32_t i = lane; i < MATRIX_BYTES / 4; i += 32) ((uint32_t *)stored)[i] = 0;         \
      __syncwarp();                                                                               \
      asm volatile("wmma.store.d.sync.aligned." #LD ".m" #M "n" #N "k" #K ".global." PD           \
                   " [%8], " WRITTEN_##RD ", %9;"                                                 \
                   : ALL("+" T, d)                                                                \
                   : "l"(stored), "r"(pitch(ELEMENTS_##LD(M, N), BD, iteration))                  \
                   : "memory");                                                                   \
      __syncwarp();                                                                               \
      for (uint32_t i = 0; i < RA; i++) note(run, 0, iteration, lane * 8u + i, BITS_OF(a[i]));    \
      for (uint32_t i = 0; i < RB; i++) note(run, 1, iteration, lane * 8u + i, BITS_OF(b[i]));    \
      for (uint32_t i = 0; i < RC; i++) note(run, 2, iteration, lane * 8u + i, BITS_OF(c[i]));    \
      for (uint32_t i = 0; i < RD; i++) note(run, 3, iteration, lane * 8u + i, BITS_OF(d[i]));    \
      for (uint32_t i = lane; i < MATRIX_BYTES / 4; i += 32)                                      \
        note(run, 4, iteration, i, ((uint32_t *)stored)[i]);                                      \
      __syncwarp();                                                                               \
    }                                                                                             \
  }

#define BITS_OF_WORD(value) (value)
#define BITS_OF_DOUBLE(value) ((uint64_t)__double_as_longlong(value))
#define WMMA(NAME, ...) WMMA_KERNEL(NAME, uint32_t, "r", BITS_OF_WORD, __VA_ARGS__)
#define WMMA_DOUBLE(NAME, ...) WMMA_KERNEL(NAME, double, "d", BITS_OF_DOUBLE, __VA_ARGS__)

// Each shape, each pair of layouts of A and B, and with them both layouts of C and D.
#define LAYOUTS(DO, NAME, M, N, K, ...)                   \
  DO(NAME##_rr, M, N, K, row, row, row, col, __VA_ARGS__) \
  DO(NAME##_rc, M, N, K, row, col, col, row, __VA_ARGS__) \
  DO(NAME##_cr, M, N, K, col, row, row, row, __VA_ARGS__) \
  DO(NAME##_cc, M, N, K, col, col, col, col, __VA_ARGS__)

// Registers of fragments of f16 are eight whatever the shape.
#define CASES(DO)                                                                                  \
  LAYOUTS(DO, f32_f16_16, 16, 16, 16, "", ".f32.f32", "f16", "f32", "f32", F16, F32, 16, 32, 32,   \
          8, 8, 8, 8)                                                                              \
  LAYOUTS(DO, f32_f16_32, 32, 8, 16, "", ".f32.f32", "f16", "f32", "f32", F16, F32, 16, 32, 32, 8, \
          8, 8, 8)                                                                                 \
  LAYOUTS(DO, f32_f16_8, 8, 32, 16, "", ".f32.f32", "f16", "f32", "f32", F16, F32, 16, 32, 32, 8,  \
          8, 8, 8)                                                                                 \
  LAYOUTS(DO, f16_f16_16, 16, 16, 16, "", ".f16.f16", "f16", "f16", "f16", F16, F16, 16, 16, 16,   \
          8, 8, 4, 4)                                                                              \
  LAYOUTS(DO, f16_f16_32, 32, 8, 16, "", ".f16.f16", "f16", "f16", "f16", F16, F16, 16, 16, 16, 8, \
          8, 4, 4)                                                                                 \
  LAYOUTS(DO, f16_f16_8, 8, 32, 16, "", ".f16.f16", "f16", "f16", "f16", F16, F16, 16, 16, 16, 8,  \
          8, 4, 4)                                                                                 \
  LAYOUTS(DO, f32_bf16_16, 16, 16, 16, "", ".f32.bf16.bf16.f32", "bf16", "f32", "f32", BF16, F32,  \
          16, 32, 32, 4, 4, 8, 8)                                                                  \
  LAYOUTS(DO, f32_bf16_32, 32, 8, 16, "", ".f32.bf16.bf16.f32", "bf16", "f32", "f32", BF16, F32,   \
          16, 32, 32, 8, 2, 8, 8)                                                                  \
  LAYOUTS(DO, f32_bf16_8, 8, 32, 16, "", ".f32.bf16.bf16.f32", "bf16", "f32", "f32", BF16, F32,    \
          16, 32, 32, 2, 8, 8, 8)                                                                  \
  LAYOUTS(DO, f32_tf32_16, 16, 16, 8, "", ".f32.tf32.tf32.f32", "tf32", "f32", "f32", TF32, F32,   \
          32, 32, 32, 4, 4, 8, 8)                                                                  \
  LAYOUTS(DO, s32_s8_16, 16, 16, 16, "", ".s32.s8.s8.s32", "s8", "s32", "s32", BITS, SMALL, 8, 32, \
          32, 2, 2, 8, 8)                                                                          \
  LAYOUTS(DO, s32_s8_32, 32, 8, 16, "", ".s32.s8.s8.s32.satfinite", "s8", "s32", "s32", BITS,      \
          SMALL, 8, 32, 32, 4, 1, 8, 8)                                                            \
  LAYOUTS(DO, s32_s8_8, 8, 32, 16, "", ".s32.s8.s8.s32", "s8", "s32", "s32", BITS, SMALL, 8, 32,   \
          32, 1, 4, 8, 8)                                                                          \
  LAYOUTS(DO, s32_u8_16, 16, 16, 16, "", ".s32.u8.u8.s32.satfinite", "u8", "s32", "s32", BITS,     \
          SMALL, 8, 32, 32, 2, 2, 8, 8)                                                            \
  LAYOUTS(DO, s32_u8_32, 32, 8, 16, "", ".s32.u8.u8.s32", "u8", "s32", "s32", BITS, SMALL, 8, 32,  \
          32, 4, 1, 8, 8)                                                                          \
  LAYOUTS(DO, s32_u8_8, 8, 32, 16, "", ".s32.u8.u8.s32.satfinite", "u8", "s32", "s32", BITS,       \
          SMALL, 8, 32, 32, 1, 4, 8, 8)                                                            \
  DO(f32_f16_c_16, 16, 16, 16, row, col, row, row, "", ".f32.f16", "f16", "f16", "f32", F16, F16,  \
     16, 16, 32, 8, 8, 4, 8)                                                                       \
  DO(f32_f16_c_32, 32, 8, 16, row, row, col, row, "", ".f32.f16", "f16", "f16", "f32", F16, F16,   \
     16, 16, 32, 8, 8, 4, 8)                                                                       \
  DO(f32_f16_c_8, 8, 32, 16, col, col, row, col, "", ".f32.f16", "f16", "f16", "f32", F16, F16,    \
     16, 16, 32, 8, 8, 4, 8)                                                                       \
  DO(f16_f32_c_16, 16, 16, 16, row, col, row, row, "", ".f16.f32", "f16", "f32", "f16", F16, F32,  \
     16, 32, 16, 8, 8, 8, 4)                                                                       \
  DO(f16_f32_c_32, 32, 8, 16, col, row, col, row, "", ".f16.f32", "f16", "f32", "f16", F16, F32,   \
     16, 32, 16, 8, 8, 8, 4)                                                                       \
  DO(f16_f32_c_8, 8, 32, 16, row, row, row, col, "", ".f16.f32", "f16", "f32", "f16", F16, F32,    \
     16, 32, 16, 8, 8, 8, 4)                                                                       \
  DO(s32_s4, 8, 8, 32, row, col, row, col, "", ".s32.s4.s4.s32", "s4", "s32", "s32", BITS, SMALL,  \
     4, 32, 32, 1, 1, 2, 2)                                                                        \
  DO(s32_u4, 8, 8, 32, row, col, col, row, "", ".s32.u4.u4.s32.satfinite", "u4", "s32", "s32",     \
     BITS, SMALL, 4, 32, 32, 1, 1, 2, 2)                                                           \
  DO(s32_b1_xor, 8, 8, 128, row, col, row, row, ".xor.popc", ".s32.b1.b1.s32", "b1", "s32", "s32", \
     BITS, SMALL, 1, 32, 32, 1, 1, 2, 2)                                                           \
  DO(s32_b1_and, 8, 8, 128, row, col, col, col, ".and.popc", ".s32.b1.b1.s32", "b1", "s32", "s32", \
     BITS, SMALL, 1, 32, 32, 1, 1, 2, 2)
#define DOUBLE_CASES(DO)                                                                          \
  LAYOUTS(DO, f64, 8, 8, 4, "", ".f64.f64.f64.f64", "f64", "f64", "f64", F64, F64, 64, 64, 64, 1, \
          1, 2, 2)
CASES(WMMA)
DOUBLE_CASES(WMMA_DOUBLE)

typedef struct {
  const char *name;
  void (*kernel)(Run run);
} Case;
#define NAMED(NAME, ...) {#NAME, run_##NAME},
static const Case cases[] = {CASES(NAMED) DOUBLE_CASES(NAMED)};

static void run_case(const Case *test, FILE *raw) {
  const size_t raw_bytes = (size_t)RAW_ITERATIONS * (PARTS - 1) * 256 * sizeof(uint64_t);
  unsigned long long digests[PARTS];
  Run run = {name_hash(test->name), NULL, NULL, NULL};
  CUDA_CHECK(cudaMalloc((void **)&run.digests, sizeof digests));
  CUDA_CHECK(cudaMemset(run.digests, 0, sizeof digests));
  CUDA_CHECK(cudaMalloc((void **)&run.stored, BLOCKS * MATRIX_BYTES));
  if (raw != NULL) {
    CUDA_CHECK(cudaMalloc((void **)&run.raw, raw_bytes));
    CUDA_CHECK(cudaMemset(run.raw, 0, raw_bytes));
  }
  test->kernel<<<BLOCKS, 32>>>(run);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(digests, run.digests, sizeof digests, cudaMemcpyDeviceToHost));
  printf("%-16s", test->name);
  for (int part = 0; part < PARTS; part++) printf(" %c %016llx", "ABCDm"[part], digests[part]);
  printf("\n");
  if (raw != NULL) {
    void *bytes = malloc(raw_bytes);
    if (bytes == NULL) program_fail("no memory for %zu bytes of results", raw_bytes);
    CUDA_CHECK(cudaMemcpy(bytes, run.raw, raw_bytes, cudaMemcpyDeviceToHost));
    fprintf(raw, "%s %zu\n", test->name, raw_bytes);
    if (fwrite(bytes, 1, raw_bytes, raw) != raw_bytes) program_fail("cannot write the registers");
    free(bytes);
    CUDA_CHECK(cudaFree(run.raw));
  }
  CUDA_CHECK(cudaFree(run.stored));
  CUDA_CHECK(cudaFree(run.digests));
}

int main(int argc, char **argv) {
  long raw = 0;
  const Option options[] = {
      {"--raw", "the first iterations' registers, to wmma_fragments.raw", &raw, 0, 0}};
  program_begin("wmma_fragments", argc, argv, options, 1);
  FILE *raw_file = raw ? fopen("wmma_fragments.raw", "wb") : NULL;
  if (raw && raw_file == NULL) program_fail("cannot write wmma_fragments.raw");
  const int count = (int)(sizeof cases / sizeof cases[0]);
  for (int i = 0; i < count; i++) run_case(&cases[i], raw_file);
  if (raw_file != NULL && fclose(raw_file) != 0) program_fail("cannot write wmma_fragments.raw");
  return program_end("%d forms of wmma ran; digests above", count);
}
