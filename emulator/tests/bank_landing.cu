// bank_landing: the kernel of 02_tma_load/coordinates with parts left out: why does ncu count more passes
// over the banks there than the accesses need? RECORDING.md has the answer: because copies of other
// blocks land at the same time.
//
// Each block of one warp gets a tile of 16 x 16 words and reads it, 32 words at a time: one pass each.

#include "copies.cuh"
#include "device_memory.cuh"

enum {
  MATRIX = 1024,  // rows, and columns
  TILE = 16,
  TILE_ELEMENTS = TILE * TILE,
  TILES = MATRIX / TILE,  // across, and down
  THREADS = 32,
  PAUSE = 20000  // clocks
};

// copied: the tile comes by TMA; else the warp writes it. stored: the warp stores what it has read.
// paused: it waits between the two, until all copies of its multiprocessor have landed.
static __device__ __forceinline__ void take_tile(const CUtensorMap *map, int32_t *out, bool copied,
                                                 bool stored, bool paused) {
  __shared__ alignas(128) int32_t tile[TILE_ELEMENTS];
  __shared__ uint64_t barrier;
  uint32_t block = blockIdx.y * gridDim.x + blockIdx.x;
  if (copied) {
    if (threadIdx.x == 0) {
      begin_barrier(&barrier, 1);
      mbarrier_arrive_expect_tx(&barrier, sizeof tile);
      tma_load_2d(tile, map, (int32_t)blockIdx.y * TILE, (int32_t)blockIdx.x * TILE, &barrier);
    }
    __syncthreads();
    mbarrier_wait_parity(&barrier, 0);
  } else {
    for (uint32_t i = threadIdx.x; i < TILE_ELEMENTS; i += THREADS) tile[i] = (int32_t)block;
    __syncthreads();
  }
  int64_t from = clock64();
  while (paused && clock64() - from < PAUSE) {
  }
  int32_t sum = 0;
  for (uint32_t i = threadIdx.x; i < TILE_ELEMENTS; i += THREADS) {
    int32_t value = ((volatile int32_t *)tile)[i];
    sum += value;
    if (stored) out[block * TILE_ELEMENTS + i] = value;
  }
  if (sum == 12345678) out[0] = sum;  // so that the reads are not left out
}

#define KERNEL(name, copied, stored, paused)                                           \
  static __global__ void name(const __grid_constant__ CUtensorMap map, int32_t *out) { \
    take_tile(&map, out, copied, stored, paused);                                      \
  }
#define KERNELS(CASE)                      \
  CASE(whole, true, true, false)           \
  CASE(nothing_stored, true, false, false) \
  CASE(nothing_copied, false, true, false) \
  CASE(paused, true, true, true)           \
  CASE(paused_not_stored, true, false, true)
KERNELS(KERNEL)
KERNEL(one_on_each, true, true, false)  // multiprocessor

int main(int argc, char **argv) {
  program_begin("bank_landing", argc, argv, NULL, 0);
  int32_t *matrix = device_filled<int32_t>(MATRIX * MATRIX, 0);
  int32_t *out = device_memory<int32_t>(MATRIX * MATRIX);
  CUtensorMap map =
      map_of_matrix(CU_TENSOR_MAP_DATA_TYPE_INT32, matrix, MATRIX, MATRIX, TILE, TILE);
#define RUN(name, ...)                             \
  name<<<dim3(TILES, TILES), THREADS>>>(map, out); \
  CUDA_CHECK(cudaDeviceSynchronize());
  KERNELS(RUN)
  one_on_each<<<TILES, THREADS>>>(map, out);
  CUDA_CHECK(cudaDeviceSynchronize());
  return program_end("launched, not checked: the counters tell");
}
