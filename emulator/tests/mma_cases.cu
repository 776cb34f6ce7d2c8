// mma_cases.cu: mma.sync of every shape and type, ldmatrix, stmatrix and movmatrix on random
// operands; a digest of each case's results.
//
// What it prints is the same on every machine that multiplies as a Hopper GPU does. The digests of
// an H200 are in recorded/; the emulator's must equal them.

#include "device_memory.cuh"
#include "mma_cases.h"
#include "tensor_inputs.h"

enum { THREADS = 128, RESULTS_EACH = 1 << 20, SHARE = 32 };

typedef struct {
  uint32_t test;  // makes the cases' random numbers differ
  unsigned long long *digest;
} Run;

// Each warp runs MODES iterations, one of each mode.
#define ITERATION(mode) \
  ((blockIdx.x * (THREADS / 32) + threadIdx.x / 32) * MODES + (uint32_t)(mode))
#define INPUT(operand, i) \
  input_hash(run.test, iteration, (operand)*1024u + (threadIdx.x % 32u) * 16u + (uint32_t)(i))

// A call, not inlined a dozen times in each kernel: that would be a minute of compiling.
__device__ __noinline__ static uint32_t random_register(InputType type, uint32_t hash, int mode) {
  return input_register(type, hash, mode);
}

__device__ static void add_result(Run run, uint32_t iteration, int i, uint64_t bits,
                                  unsigned long long *sum) {
  const uint32_t position = (threadIdx.x % 32u) * 8u + (uint32_t)i;
  *sum += result_mark(bits, iteration, position);
}

// The statement always names 4 registers of D (which hold C before), 4 of A and 2 of B; these lists pick those that the
// case's form has.
#define LIST_D_2 "{%0,%1}"
#define LIST_D_4 "{%0,%1,%2,%3}"
#define LIST_A_2 "{%4,%5}"
#define LIST_A_4 "{%4,%5,%6,%7}"
#define LIST_B_1 "{%8}"
#define LIST_B_2 "{%8,%9}"
#define LISTS(D, A, B) " " LIST_D_##D ", " LIST_A_##A ", " LIST_B_##B ", " LIST_D_##D
#define REGISTER(type, operand) random_register(INPUT_##type, INPUT(operand, i), mode)
#define MMA(NAME, OPCODE, A, B, C, D, AN, BN)                                           \
  __global__ void __launch_bounds__(THREADS) run_##NAME(Run run) {                      \
    unsigned long long sum = 0;                                                         \
    _Pragma("unroll 1") for (int mode = 0; mode < MODES; mode++) {                      \
      const uint32_t iteration = ITERATION(mode);                                       \
      uint32_t d[4], a[4], b[2];                                                        \
      for (int i = 0; i < 4; i++) a[i] = REGISTER(A, 0u);                               \
      for (int i = 0; i < 2; i++) b[i] = REGISTER(B, 1u);                               \
      for (int i = 0; i < 4; i++) d[i] = REGISTER(C, 2u);                               \
      asm volatile("mma.sync.aligned." OPCODE LISTS(D, AN, BN) ";"                      \
                   : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                     \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
      for (int i = 0; i < D; i++) add_result(run, iteration, i, d[i], &sum);            \
    }                                                                                   \
    atomicAdd(run.digest, sum);                                                         \
  }
MMA_CASES
#undef MMA

// ldmatrix reads rows of 16 bytes at the addresses that the lanes name; stmatrix writes them.
enum { WARP_BYTES = 1024 };
__device__ static uint32_t row_address(uint8_t *memory, Run run, uint32_t iteration, int distinct) {
  const uint32_t lane = threadIdx.x % 32u;
  const uint32_t row = distinct ? (lane * 5u + 2u * iteration) % (WARP_BYTES / 16)
                                : INPUT(4u, 0) % (WARP_BYTES / 16);
  return (uint32_t)__cvta_generic_to_shared(memory) + 16u * row;
}
#define LDMATRIX(NAME, FORM, LIST)                                                  \
  __global__ void __launch_bounds__(THREADS) run_##NAME(Run run) {                  \
    __shared__ __align__(16) uint8_t memory[THREADS / 32 * WARP_BYTES];             \
    uint8_t *mine = memory + threadIdx.x / 32 * WARP_BYTES;                         \
    unsigned long long sum = 0;                                                     \
    _Pragma("unroll 1") for (int mode = 0; mode < MODES; mode++) {                  \
      const uint32_t iteration = ITERATION(mode);                                   \
      for (int i = 0; i < WARP_BYTES / 128; i++)                                    \
        ((uint32_t *)mine)[32 * i + threadIdx.x % 32] = INPUT(5u, i);               \
      __syncwarp();                                                                 \
      uint32_t d[4] = {0, 0, 0, 0};                                                 \
      asm volatile("ldmatrix.sync.aligned.m8n8." FORM ".shared.b16 " LIST ", [%4];" \
                   : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                 \
                   : "r"(row_address(mine, run, iteration, 0))                      \
                   : "memory");                                                     \
      for (int i = 0; i < 4; i++) add_result(run, iteration, i, d[i], &sum);        \
      __syncwarp();                                                                 \
    }                                                                               \
    atomicAdd(run.digest, sum);                                                     \
  }
#define STMATRIX(NAME, FORM, LIST)                                                               \
  __global__ void __launch_bounds__(THREADS) run_##NAME(Run run) {                               \
    __shared__ __align__(16) uint8_t memory[THREADS / 32 * WARP_BYTES];                          \
    uint8_t *mine = memory + threadIdx.x / 32 * WARP_BYTES;                                      \
    unsigned long long sum = 0;                                                                  \
    _Pragma("unroll 1") for (int mode = 0; mode < MODES; mode++) {                               \
      const uint32_t iteration = ITERATION(mode);                                                \
      uint32_t d[4];                                                                             \
      for (int i = 0; i < 4; i++) d[i] = INPUT(5u, i);                                           \
      for (int i = 0; i < WARP_BYTES / 128; i++)                                                 \
        ((uint32_t *)mine)[32 * i + threadIdx.x % 32] = 0;                                       \
      __syncwarp();                                                                              \
      asm volatile("stmatrix.sync.aligned.m8n8." FORM ".shared.b16 [%4], " LIST ";" ::"r"(d[0]), \
                   "r"(d[1]), "r"(d[2]), "r"(d[3]), "r"(row_address(mine, run, iteration, 1))    \
                   : "memory");                                                                  \
      __syncwarp();                                                                              \
      for (int i = 0; i < WARP_BYTES / 128; i++)                                                 \
        add_result(run, iteration, i, ((uint32_t *)mine)[32 * i + threadIdx.x % 32], &sum);      \
      __syncwarp();                                                                              \
    }                                                                                            \
    atomicAdd(run.digest, sum);                                                                  \
  }
#define MATRIX_CASES                                       \
  LDMATRIX(ldmatrix_x1, "x1", "{%0}")                      \
  LDMATRIX(ldmatrix_x2, "x2", "{%0,%1}")                   \
  LDMATRIX(ldmatrix_x4, "x4", "{%0,%1,%2,%3}")             \
  LDMATRIX(ldmatrix_x1_trans, "x1.trans", "{%0}")          \
  LDMATRIX(ldmatrix_x2_trans, "x2.trans", "{%0,%1}")       \
  LDMATRIX(ldmatrix_x4_trans, "x4.trans", "{%0,%1,%2,%3}") \
  STMATRIX(stmatrix_x1, "x1", "{%0}")                      \
  STMATRIX(stmatrix_x2, "x2", "{%0,%1}")                   \
  STMATRIX(stmatrix_x4, "x4", "{%0,%1,%2,%3}")             \
  STMATRIX(stmatrix_x1_trans, "x1.trans", "{%0}")          \
  STMATRIX(stmatrix_x2_trans, "x2.trans", "{%0,%1}")       \
  STMATRIX(stmatrix_x4_trans, "x4.trans", "{%0,%1,%2,%3}")
MATRIX_CASES
#undef LDMATRIX
#undef STMATRIX

__global__ void __launch_bounds__(THREADS) run_movmatrix(Run run) {
  unsigned long long sum = 0;
  for (int mode = 0; mode < MODES; mode++) {
    const uint32_t iteration = ITERATION(mode);
    uint32_t d;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(INPUT(5u, 0)));
    add_result(run, iteration, 0, d, &sum);
  }
  atomicAdd(run.digest, sum);
}

typedef struct {
  const char *name;
  void (*kernel)(Run run);
  uint32_t results;  // of one warp's statement
} Case;

static const Case cases[] = {
#define MMA(NAME, OPCODE, A, B, C, D, AN, BN) \
  {#NAME, run_##NAME, 32u * D * (INPUT_##C == INPUT_F16 ? 2u : 1u)},
#define LDMATRIX(NAME, FORM, LIST) {#NAME, run_##NAME, 128u},
#define STMATRIX(NAME, FORM, LIST) {#NAME, run_##NAME, 256u},
    MMA_CASES MATRIX_CASES{"movmatrix", run_movmatrix, 32u}};

static void run_case(const Case *test, uint32_t results) {
  const uint32_t each = test->results * MODES * (THREADS / 32);
  const uint32_t blocks = results / each > 4 ? results / each : 4;
  unsigned long long digest = 0;
  Run run = {name_hash(test->name), device_filled<unsigned long long>(1, 0)};
  test->kernel<<<blocks, THREADS>>>(run);
  CHECK_LAUNCH();
  CUDA_CHECK(cudaMemcpy(&digest, run.digest, sizeof digest, cudaMemcpyDeviceToHost));
  printf("%-24s %8u results %016llx\n", test->name, blocks * each, digest);
}

int main(int argc, char **argv) {
  long all = 0;
  const Option options[] = {
      {"--all", "a million results of each case, not a thirty-second of it", &all, 0, 0}};
  program_begin("mma_cases", argc, argv, options, 1);
  const int count = (int)(sizeof cases / sizeof cases[0]);
  for (int i = 0; i < count; i++) run_case(&cases[i], all ? RESULTS_EACH : RESULTS_EACH / SHARE);
  return program_end("%d forms of mma, ldmatrix, stmatrix and movmatrix ran; digests above", count);
}
