// lane_copies: a warp reads a tile, tells the producer's mbarrier, and the producer loads the next
// tile over it. Are the reads of all lanes ordered before that?
//   lane_copies CASE
#include "cases.cuh"
#include "copies.cuh"
#include "device_memory.cuh"

enum { LANES = 32, TILES = 4, TILE_WORDS = 32 };
enum Way { MISSING, SYNCED, ALL_ARRIVE, MET, HALF };
static const char *const names[] = {"missing", "synced", "all-arrive", "met", "half"};

__global__ void stream(const int *in, int *out, enum Way which) {
  __shared__ alignas(128) int tile[TILE_WORDS];
  __shared__ uint64_t full, empty;
  int lane = threadIdx.x % LANES, sum = 0;
  begin_by_first(&full, 1);
  begin_by_first(&empty, which == ALL_ARRIVE ? LANES : 1);
  __syncthreads();
  if (threadIdx.x == LANES) {
    for (int i = 0; i < TILES; i++) {
      if (i > 0) mbarrier_wait_parity(&empty, (i - 1) % 2);
      expect_and_load(tile, in + i * TILE_WORDS, sizeof tile, &full);
    }
  } else if (threadIdx.x < LANES) {
    for (int i = 0; i < TILES; i++) {
      mbarrier_wait_parity(&full, i % 2);
      sum += tile[lane ^ 1];
      if (which == SYNCED) __syncwarp();
      if (which == HALF) __syncwarp(lane < 16 ? 0xffffu : 0xffff0000u);
      if (which == MET) sum += __shfl_xor_sync(~0u, sum, 1);
      if (which == ALL_ARRIVE || lane == 0) mbarrier_arrive(&empty);
    }
    out[lane] = sum;
  }
}

int main(int argc, char **argv) {
  const int which = choose_of(names, argc, argv);
  int *in = device_filled<int>(TILES * TILE_WORDS, 1), *out = device_memory<int>(LANES);
  stream<<<1, 2 * LANES>>>(in, out, (enum Way)which);
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
