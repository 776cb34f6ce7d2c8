// source_again.cu: warps write a tile for a bulk store, meet at a named barrier, and write the next
// one over it. pipelines.bats looks at what the emulator says.
//
//   source_again fine      the thread that stores waits before the barrier that comes first
//   source_again reused    every thread waits, but only one of them has stored something
#include <stdio.h>
#include <string.h>

#include "../../03_tma_store/tma_store.cuh"

enum { THREADS = 128, ROUNDS = 3, TILE_WORDS = THREADS * 4, TILE_BYTES = TILE_WORDS * 4 };

static __device__ void meet(void) { asm volatile("bar.sync 2, 128;" ::: "memory"); }
static __global__ void kernel(uint32_t *out, bool barrier_first) {
  __shared__ alignas(128) uint32_t tile[TILE_WORDS];
  for (uint32_t round = 0; round < ROUNDS; round++) {
    bulk_wait_group<0>();
    if (barrier_first) meet();
    for (uint32_t i = 0; i < 4; i++) tile[threadIdx.x * 4 + i] = round + 1;
    fence_proxy_async();
    meet();
    if (threadIdx.x == 0) {
      bulk_store(out + round * TILE_WORDS, tile, TILE_BYTES);
      bulk_commit_group();
    }
  }
  bulk_wait_group<0>();
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  static uint32_t back[ROUNDS * TILE_WORDS];
  uint32_t *out, wrong = 0;
  cudaMalloc(&out, sizeof back);
  kernel<<<1, THREADS>>>(out, !strcmp(argv[1], "fine"));
  cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost);
  for (uint32_t i = 0; i < ROUNDS * TILE_WORDS; i++) wrong += back[i] != i / TILE_WORDS + 1;
  printf("%s: %s, %s\n", argv[1], cudaGetErrorName(cudaGetLastError()), wrong ? "wrong" : "right");
  return 0;
}
