// bank_rivals: four warps read or write shared memory, each access one pass over the banks, while
// nothing else happens, or copies land beside them, or are stored from there, or the tensor cores
// read. RECORDING.md has what ncu counted on an H200: whether a rival adds to the passes.

#include "../../07_pipelined_gemm/wgmma.cuh"
#include "copies.cuh"
#include "device_memory.cuh"

enum { WARPS = 4, ACCESSES = 1024, ROUNDS = 256, OWN_WORDS = 1024, TILE_BYTES = 32768 };

typedef struct {
  uint8_t tile[2][TILE_BYTES];  // the rival's
  uint32_t own[WARPS][OWN_WORDS];
  uint64_t barrier;
} Shared;

typedef enum { ALONE, LOADS, STORES, TENSOR_CORES } Rival;

// Of the other warpgroup, threadIdx.x from 0.
static __device__ void be_rival(Rival rival, Shared *shared, uint8_t *data, uint32_t *sink) {
  uint32_t thread = threadIdx.x - WARPS * 32;
  if (rival == LOADS && thread == 0) {
    for (int round = 0; round < ROUNDS; round++) {
      expect_and_load(shared->tile[0], data, TILE_BYTES, &shared->barrier);
      mbarrier_wait_parity(&shared->barrier, (uint32_t)round & 1);
    }
  }
  if (rival == STORES && thread == 0) {
    for (int round = 0; round < ROUNDS; round++) {
      store_and_wait(data, shared->tile[0], TILE_BYTES);
    }
  }
  if (rival == TENSOR_CORES) {
    float d[128];
    for (int i = 0; i < 128; i++) d[i] = 0;
    uint64_t a = wgmma_descriptor_k_major(shared->tile[0]);
    uint64_t b = wgmma_descriptor_k_major(shared->tile[1]);
    for (int round = 0; round < ROUNDS; round++) {
      wgmma_fence();
      wgmma_m64n256k16(d, a, b, 1);
      wgmma_commit();
      wgmma_wait_all();
    }
    for (int i = 0; i < 128; i++) sink[thread] += (uint32_t)d[i];
  }
}

static __device__ __forceinline__ void access_memory(bool writes, Rival rival, uint8_t *data,
                                                     uint32_t *sink) {
  extern __shared__ __align__(1024) uint8_t memory[];
  Shared *shared = (Shared *)memory;
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (uint32_t i = threadIdx.x; i < 2 * TILE_BYTES / 4; i += blockDim.x)
    ((volatile uint32_t *)shared->tile)[i] = 0;
  begin_by_first(&shared->barrier, 1);
  if (!writes && warp < WARPS)
    for (int i = 0; i < OWN_WORDS; i += 32) ((volatile uint32_t *)shared->own[warp])[i + lane] = 1;
  fence_proxy_async();
  __syncthreads();
  if (warp >= WARPS) {
    be_rival(rival, shared, data, sink);
    return;
  }
  volatile uint32_t *own = shared->own[warp];
  uint32_t sum = 0;
  for (uint32_t i = 0; i < ACCESSES; i++) {
    uint32_t at = (i * 32 + lane) % OWN_WORDS;
    if (writes)
      own[at] = i;
    else
      sum += own[at];
  }
  sink[128 + threadIdx.x] = sum;
}

#define KERNEL(name, writes, rival)                                                                \
  static __global__ void __launch_bounds__(WARPS * 32 + 128) name(uint8_t *data, uint32_t *sink) { \
    access_memory(writes, rival, data, sink);                                                      \
  }
#define KERNELS(CASE)                    \
  CASE(reads_alone, false, ALONE)        \
  CASE(reads_loads, false, LOADS)        \
  CASE(reads_stores, false, STORES)      \
  CASE(reads_wgmma, false, TENSOR_CORES) \
  CASE(writes_alone, true, ALONE)        \
  CASE(writes_loads, true, LOADS)        \
  CASE(writes_stores, true, STORES)      \
  CASE(writes_wgmma, true, TENSOR_CORES)
KERNELS(KERNEL)

int main(int argc, char **argv) {
  program_begin("bank_rivals", argc, argv, NULL, 0);
  uint8_t *data = device_filled<uint8_t>(TILE_BYTES, 0);
  uint32_t *sink = device_filled<uint32_t>(128 + WARPS * 32, 0);
#define RUN(name, ...)                                                                          \
  CUDA_CHECK(                                                                                   \
      cudaFuncSetAttribute(name, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared))); \
  name<<<1, WARPS * 32 + 128, sizeof(Shared)>>>(data, sink);                                    \
  CUDA_CHECK(cudaDeviceSynchronize());
  KERNELS(RUN)
  return program_end("launched, not checked: the counters tell");
}
