// wgmma_cases.cu: wgmma.mma_async of every type on random tiles; a digest of each case's results.
//
// What it prints is the same on every machine that multiplies as a Hopper GPU does. The digests of
// an H200 are in recorded/; the emulator's must equal them.

#include "device_memory.cuh"
#include "tensor_inputs.h"
#include "wgmma_cases.h"
#include "wgmma_operands.h"

enum { THREADS = 128, RESULTS_EACH = 1 << 20, SHARE = 8 };

typedef struct {
  uint32_t test;  // makes the cases' random numbers differ
  unsigned long long *digest;
} Run;

// A call, not inlined a hundred times in each kernel: that would be minutes of compiling.
__device__ __noinline__ static uint32_t random_register(InputType type, uint32_t hash, int mode) {
  return input_register(type, hash, mode);
}

__device__ static uint32_t tile_memory(uint8_t *memory, Run run, InputType type_a, InputType type_b,
                                       uint32_t bytes_b) {
  const int mode = (int)(blockIdx.x % MODES);
  for (uint32_t word = threadIdx.x; word < BYTES_A / 4; word += THREADS)
    *(uint32_t *)(memory + REGION_A + 4 * word) =
        random_register(type_a, input_hash(run.test, blockIdx.x, POSITION_A + word), mode);
  for (uint32_t word = threadIdx.x; word < bytes_b / 4; word += THREADS)
    *(uint32_t *)(memory + REGION_B + 4 * word) =
        random_register(type_b, input_hash(run.test, blockIdx.x, POSITION_B + word), mode);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  return (uint32_t)__cvta_generic_to_shared(memory);
}

__device__ static uint8_t *aligned_memory(uint8_t *memory) {
  const uint32_t address = (uint32_t)__cvta_generic_to_shared(memory);
  return memory + ((1024u - (address & 1023u)) & 1023u);
}

__device__ static void add_results(Run run, int step, const uint32_t *d, int registers) {
  const uint32_t iteration = blockIdx.x * STEPS + (uint32_t)step;
  unsigned long long sum = 0;
#pragma unroll
  for (int i = 0; i < registers; i++)
    sum += result_mark(d[i], iteration, threadIdx.x * 128u + (uint32_t)i);
  atomicAdd(run.digest, sum);
}

#define INPUT_HASH(position) input_hash(run.test, blockIdx.x *STEPS + (uint32_t)step, (position))

#define BEGIN(R, A, B, C, TRANS_A, TRANS_B)                                                     \
  extern __shared__ uint8_t dynamic_memory[];                                                   \
  uint8_t *memory = aligned_memory(dynamic_memory);                                             \
  const int mode = (int)(blockIdx.x % MODES);                                                   \
  const uint32_t base = tile_memory(memory, run, INPUT_##A, INPUT_##B,                          \
                                    BYTES_B((R) * (INPUT_##C == INPUT_F16 ? 4 : 2)));           \
  _Pragma("unroll 1") for (int step = 0; step < STEPS; step++) {                                \
    uint32_t d[R];                                                                              \
    const uint64_t descriptor_b = step_descriptor(step_layout(step, TRANS_B), base + REGION_B); \
    const uint32_t scale_d = step != 3;                                                         \
    _Pragma("unroll") for (uint32_t i = 0; i < R; i++) d[i] =                                   \
        random_register(INPUT_##C, INPUT_HASH(POSITION_C + threadIdx.x * 128u + i), mode);

#define END(R)                  \
  add_results(run, step, d, R); \
  }

// Where A is: in shared memory, given by a descriptor, or in four registers of each thread.
#define PREPARE_SHARED(A, TRANS_A) \
  const uint64_t descriptor_a = step_descriptor(step_layout(step, TRANS_A), base + REGION_A);
#define PREPARE_REGISTERS(A, TRANS_A) \
  uint32_t a[4];                      \
  for (uint32_t i = 0; i < 4; i++)    \
    a[i] = input_register(INPUT_##A, INPUT_HASH(POSITION_REGISTERS_A + threadIdx.x * 4u + i), mode);

// One statement from fence to wait, so that ptxas has nothing to move in between.
#define CLOSE ";\n\twgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;\n\t}"
#define OPEN "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, "
#define BEHIND ", 0;\n\twgmma.fence.sync.aligned;\n\twgmma.mma_async."
#define FOUR(R) "{" NEXT_##R(1) "," NEXT_##R(2) "," NEXT_##R(3) "," NEXT_##R(4) "}"
#define ISSUE_SHARED(R, OPCODE, TAIL)                                      \
  asm volatile(OPEN NEXT_##R(0) BEHIND "sync.aligned." OPCODE " " LIST_##R \
               ", " NEXT_##R(1) ", " NEXT_##R(2) TAIL CLOSE                \
               : TIED_##R(d)                                               \
               : "r"(scale_d), "l"(descriptor_a), "l"(descriptor_b)        \
               : "memory")
#define ISSUE_REGISTERS(R, OPCODE, TAIL)                                                     \
  asm volatile(OPEN NEXT_##R(0) BEHIND "sync.aligned." OPCODE " " LIST_##R                   \
               ", " FOUR(R) ", " NEXT_##R(5) TAIL CLOSE                                      \
               : TIED_##R(d)                                                                 \
               : "r"(scale_d), "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descriptor_b) \
               : "memory")
// A kernel for each case. What a case does not use (A's registers or A's descriptor) costs nothing.
#define WGMMA(NAME, OPCODE, R, SOURCE, A, B, C, TRANS_A, TRANS_B, TAIL) \
  __global__ void __launch_bounds__(THREADS) run_##NAME(Run run) {      \
    BEGIN(R, A, B, C, TRANS_A, TRANS_B)                                 \
    PREPARE_##SOURCE(A, TRANS_A) ISSUE_##SOURCE(R, OPCODE, TAIL);       \
    END(R)                                                              \
  }
WGMMA_CASES
#undef WGMMA

typedef struct {
  const char *name;
  void (*kernel)(Run run);
  uint32_t columns;
} Case;

static const Case cases[] = {
#define WGMMA(NAME, OPCODE, R, SOURCE, A, B, C, TRANS_A, TRANS_B, TAIL) \
  {#NAME, run_##NAME, (R) * (INPUT_##C == INPUT_F16 ? 4 : 2)},
    WGMMA_CASES};

static void run_case(const Case *test, uint32_t results) {
  const uint32_t each = STEPS * 64 * test->columns;
  const uint32_t blocks = (results / each + MODES - 1) / MODES * MODES;
  const size_t shared_bytes = 1024 + REGION_B + BYTES_B(test->columns);
  unsigned long long digest = 0;
  Run run = {name_hash(test->name), device_filled<unsigned long long>(1, 0)};
  CUDA_CHECK(cudaFuncSetAttribute((const void *)test->kernel,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes));
  test->kernel<<<blocks, THREADS, shared_bytes>>>(run);
  CHECK_LAUNCH();
  CUDA_CHECK(cudaMemcpy(&digest, run.digest, sizeof digest, cudaMemcpyDeviceToHost));
  printf("%-24s %8u results %016llx\n", test->name, blocks * each, digest);
}

int main(int argc, char **argv) {
  const int count = (int)(sizeof cases / sizeof cases[0]);
  long all = 0, every = 1;
  const Option options[] = {
      {"--all", "a million results of each case, not an eighth of it", &all, 0, 0},
      {"--every", "each n-th case alone, from the first on", &every, 1, count}};
  program_begin("wgmma_cases", argc, argv, options, 2);
  for (int i = 0; i < count; i += (int)every)
    run_case(&cases[i], all ? RESULTS_EACH : RESULTS_EACH / SHARE);
  return program_end("%d forms of wgmma ran; their digests are above",
                     (count + (int)every - 1) / (int)every);
}
