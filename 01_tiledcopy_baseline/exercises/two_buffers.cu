// exercise two_buffers: fetch the next tile while you work on this one
//
// One block of 64 threads reads `tiles` tiles of 256 numbers each from source, with cp.async into shared
// memory, and writes each tile backwards: element i of a tile goes to element 255 - i of the same
// tile of destination, read from shared memory. While the block works on tile t, tile t + 1 must
// already be on its way into the other buffer.
#include <stdint.h>

#include "../tiledcopy.cuh"

enum { TILE = 256, THREADS = 64 };

// What this thread has issued since its last commit becomes one group.
static __device__ void cp_async_commit(void) {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most the newest group of this thread is still pending.
static __device__ void cp_async_wait_all_but_one(void) {
  asm volatile("cp.async.wait_group 1;" ::: "memory");
}

extern "C" __global__ void two_buffers(const int *source, int *destination, int tiles) {
  __shared__ alignas(16) int buffer[2][TILE];
  // Write here. cp_async_16(destination, source) fetches 16 bytes.
}
