// handoff_cases.cu: a pipeline in the way of C++ libraries, for the sheet of `emulate --handoffs`: shared memory without
// names, a kernel in a header, which calls everything, and functions inlined in each other many times.
//
//   handoff_cases [CASE]    prints "handoff_cases: cudaError..., N wrong"
//
// A cluster of two blocks. The producer of each loads one half of every stage, in two pieces, into both blocks. The
// consumer of each releases the stage in both. hangs: more bytes are expected than come. direct: a kernel of this file.
// alternates: one barrier for two buffers; the sums are wrong.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "handoff_of_a_library.cuh"

enum {
  BLOCKS = 2,
  STAGES = 3,
  ROUNDS = 8,
  PIECE_WORDS = 32,
  PIECES = 4,
  STAGE_WORDS = PIECES * PIECE_WORDS
};
enum { STAGE_BYTES = STAGE_WORDS * 4, SHARED_BYTES = STAGES * (STAGE_BYTES + 16) };

static __device__ void wait_parity(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{ .reg .pred done;\n"
      "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again; }" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

static __device__ void cluster_sync(void) {
  asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

struct Pipeline {
  const uint32_t *source;
  uint32_t *sums;
  uint32_t expected;

  __device__ void prepare(uint32_t full) const {
    for (uint32_t i = 0; i < 2 * STAGES; i++)
      asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(full + 8 * i),
                   "r"(i < STAGES ? 1 : BLOCKS)
                   : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __device__ void produce(uint32_t stages, uint32_t full, uint32_t rank) const {
    for (uint32_t round = 0; round < ROUNDS; round++) {
      uint32_t stage = round % STAGES, barrier = full + 8 * stage;
      if (round >= STAGES) wait_parity(barrier + 8 * STAGES, (round / STAGES + 1) % 2);
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(expected)
                   : "memory");
      for (uint32_t piece = 2 * rank; piece < 2 * rank + 2; piece++)
        deep_load<PIECE_WORDS * 4>(stages + stage * STAGE_BYTES + piece * PIECE_WORDS * 4,
                                   source + round * STAGE_WORDS + piece * PIECE_WORDS, barrier);
    }
  }
  __device__ void consume(const uint32_t *words, uint32_t full, uint32_t rank) const {
    uint32_t mine = 0, lane = threadIdx.x % 32;
    for (uint32_t round = 0; round < ROUNDS; round++) {
      uint32_t stage = round % STAGES, barrier = full + 8 * stage;
      wait_parity(barrier, round / STAGES % 2);
      for (uint32_t i = lane; i < STAGE_WORDS; i += 32) mine += words[stage * STAGE_WORDS + i];
      __syncwarp();
      if (lane < BLOCKS) deep_arrive(barrier + 8 * STAGES, lane);
    }
    sums[rank * 32 + lane] = mine;
  }
  __device__ void operator()(unsigned char *bytes) const {
    uint32_t rank, stages = (uint32_t)__cvta_generic_to_shared(bytes),
                   full = stages + STAGES * STAGE_BYTES;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) prepare(full);
    cluster_sync();
    if (threadIdx.x == 0) produce(stages, full, rank);
    if (threadIdx.x >= 32) consume((const uint32_t *)bytes, full, rank);
    cluster_sync();
  }
};

__global__ void direct(const Pipeline pipeline) {
  extern __shared__ unsigned char bytes[];
  uint32_t stages = (uint32_t)__cvta_generic_to_shared(bytes), full = stages + STAGES * STAGE_BYTES;
  if (threadIdx.x == 0) pipeline.prepare(full);
  cluster_sync();
  if (threadIdx.x == 0) pipeline.produce(stages, full, blockIdx.x);
  if (threadIdx.x >= 32) pipeline.consume((const uint32_t *)bytes, full, blockIdx.x);
  cluster_sync();
}

// One barrier, and two buffers side by side that take turns.
__global__ void alternates(const Pipeline pipeline) {
  extern __shared__ unsigned char bytes[];
  uint32_t stages = (uint32_t)__cvta_generic_to_shared(bytes), full = stages + STAGES * STAGE_BYTES;
  if (threadIdx.x == 0) pipeline.prepare(full);
  cluster_sync();
  for (uint32_t round = 0; round < ROUNDS; round++) {
    uint32_t offset = round % 2 * PIECE_WORDS * 4;
    if (threadIdx.x == 0 && blockIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(full),
                   "r"(PIECE_WORDS * 4)
                   : "memory");
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
          "[%3];" ::"r"(stages + offset),
          "l"(pipeline.source), "r"(PIECE_WORDS * 4), "r"(full)
          : "memory");
      wait_parity(full, round % 2);
    }
    __syncthreads();
    if (blockIdx.x == 0) pipeline.sums[threadIdx.x] = bytes[offset];
    __syncthreads();
  }
}

int main(int argc, char **argv) {
  bool hangs = argc > 1 && strcmp(argv[1], "hangs") == 0;
  uint32_t *source, *sums;
  cudaMallocManaged((void **)&source, ROUNDS * STAGE_WORDS * 4);
  cudaMallocManaged((void **)&sums, BLOCKS * 32 * 4);
  for (int i = 0; i < ROUNDS * STAGE_WORDS; i++) source[i] = (uint32_t)i;
  cudaLaunchAttribute cluster = {.id = cudaLaunchAttributeClusterDimension};
  cluster.val.clusterDim = {BLOCKS, 1, 1};
  cudaLaunchConfig_t launch = {.gridDim = BLOCKS, .blockDim = 64, .dynamicSmemBytes = SHARED_BYTES};
  launch.attrs = &cluster;
  launch.numAttrs = 1;
  void (*kernel)(Pipeline) = call<Pipeline>;
  if (argc > 1 && strcmp(argv[1], "direct") == 0) kernel = direct;
  if (argc > 1 && strcmp(argv[1], "alternates") == 0) kernel = alternates;
  cudaLaunchKernelEx(&launch, kernel, Pipeline{source, sums, STAGE_BYTES + (hangs ? 16u : 0u)});
  cudaError_t error = cudaDeviceSynchronize();
  int wrong = 0;
  for (uint32_t i = 0; i < BLOCKS * 32 && !error; i++) {
    uint32_t right = 0;
    for (uint32_t k = i % 32; k < ROUNDS * STAGE_WORDS; k += 32) right += k;
    wrong += sums[i] != right;
  }
  printf("handoff_cases: %s, %d wrong\n", cudaGetErrorName(error), wrong);
  return error || wrong;
}
