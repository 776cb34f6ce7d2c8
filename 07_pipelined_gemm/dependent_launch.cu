// 07 dependent_launch: a kernel that begins before the one that it needs has ended.
//
//   beside library/, whose kernels are launched this way
//
// Two kernels in a stream run one after the other: the second starts when the first is done with
// everything. But what a TMA kernel does first (initialise barriers, fetch its tensor map) needs
// nothing of the first one. Programmatic dependent launch overlaps the two:
//
//   first kernel                              second kernel, launched with the attribute
//     compute                                   (may start once all blocks of the first have
//     griddepcontrol.launch_dependents ------->  executed launch_dependents, or have ended)
//     ...                                       initialise barriers, prefetch the map
//     store the results                         griddepcontrol.wait
//     end  ----------------------------------->   (returns when the first kernel has ended and
//                                                  what it wrote can be seen)
//                                               load with TMA what the first has stored
//
// launch_dependents is only a hint about when to start, and promises nothing about data: only
// griddepcontrol.wait does. Put it before the first access to anything that the first kernel
// writes, and also before you overwrite what the first kernel reads. Without the attribute both do
// nothing.
//
// The first kernel writes a matrix, the second adds up its tiles, five times in one stream.
#include <stdio.h>

#include "../02_tma_load/tma_load.cuh"
#include "check.h"
#include "tensor_map.h"

enum {
  ROWS = 16,
  COLUMNS = 32,
  TILES = 24,
  THREADS = 64,
  ROUNDS = 5,
  TILE_BYTES = ROWS * COLUMNS * 4
};

// PTX ISA: griddepcontrol.
static __device__ __forceinline__ void launch_dependents(void) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
static __device__ __forceinline__ void wait_for_prerequisites(void) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

__global__ void write_tiles(int *tiles, int round) {
  launch_dependents();       // the second kernel may set up its barriers now
  wait_for_prerequisites();  // the kernel before this one has read the tiles: we may overwrite them
  for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS) {
    tiles[blockIdx.x * ROWS * COLUMNS + i] = 1000 * round + 10 * blockIdx.x + i % 7;
  }
}

__global__ void sum_tiles(const __grid_constant__ CUtensorMap map, int *sums) {
  __shared__ alignas(128) int tile[ROWS * COLUMNS];
  __shared__ uint64_t barrier;
  launch_dependents();
  if (threadIdx.x == 0) {
    prefetch_tensor_map(&map);
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  wait_for_prerequisites();  // the tiles are written, and the sums of the round before as well
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(&barrier, TILE_BYTES);
    tma_load_2d(tile, &map, 0, blockIdx.x * ROWS, &barrier);
  }
  mbarrier_wait_parity(&barrier, 0);
  int sum = 0;
  for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS) sum += tile[i];
  atomicAdd(&sums[blockIdx.x], sum);
}

// What <<<TILES, THREADS>>> does, with the attribute.
static cudaLaunchConfig_t dependent(cudaLaunchAttribute *attribute) {
  attribute->id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute->val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(TILES);
  config.blockDim = dim3(THREADS);
  config.attrs = attribute;
  config.numAttrs = 1;
  return config;
}

int main(int argc, char **argv) {
  program_begin("dependent_launch", argc, argv, NULL, 0);
  static int sums[TILES], expected[TILES];
  for (int tile = 0; tile < TILES; tile++) {
    for (int round = 0; round < ROUNDS; round++) {
      for (int i = 0; i < ROWS * COLUMNS; i++) expected[tile] += 1000 * round + 10 * tile + i % 7;
    }
  }
  int *tiles, *device_sums;
  CUDA_CHECK(cudaMalloc(&tiles, TILES * TILE_BYTES));
  CUDA_CHECK(cudaMalloc(&device_sums, sizeof sums));
  CUDA_CHECK(cudaMemset(device_sums, 0, sizeof sums));
  TensorMap fields = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                      .dimensions = 2,
                      .address = tiles,
                      .size = {COLUMNS, TILES * ROWS},
                      .box = {COLUMNS, ROWS}};
  CUtensorMap map = tensor_map_encode("tiles", &fields);
  cudaLaunchAttribute attribute;
  cudaLaunchConfig_t config = dependent(&attribute);
  for (int round = 0; round < ROUNDS; round++) {
    CUDA_CHECK(cudaLaunchKernelEx(&config, write_tiles, tiles, round));
    CUDA_CHECK(cudaLaunchKernelEx(&config, sum_tiles, map, device_sums));
  }
  CUDA_CHECK(cudaMemcpy(sums, device_sums, sizeof sums, cudaMemcpyDeviceToHost));
  printf("sums of tiles 0, 1 and %d after %d rounds: %d %d %d\n", TILES - 1, ROUNDS, sums[0],
         sums[1], sums[TILES - 1]);
  check_tile("the sums", ELEMENT_S32, sums, expected, 1, TILES, 0);
  CUDA_CHECK(cudaFree(tiles));
  CUDA_CHECK(cudaFree(device_sums));
  return program_end("%d rounds of two dependent kernels, %d sums", ROUNDS, TILES);
}
