// 02 tma_load, side program two_ways_to_wait: tokens or parity, and the life of a barrier.
//
//   01 tiledcopy | [02 load] | 03 store | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// A barrier is used again for tile after tile. A thread that waits must say which phase it means,
// and there are two ways to say it:
//
//   tokens    every thread arrives (mbarrier_init with the number of threads), one of them with the
//             announced bytes, and each waits with the token that its arrive returned;
//   parity    one thread arrives (mbarrier_init with 1), and everybody waits for the parity of the
//             phase: 0 for the first use, 1 for the second, 0 for the third, ...
//
//   phase      0         1         2         3
//   parity     0         1         0         1          parity = phase & 1
//             |---------|---------|---------|--->
//             tile 0    tile 1    tile 2    tile 3      one phase per tile, one init for all
//
// Parity needs one arrival instead of 128 and lets threads wait that never arrive: everything after
// this program uses it. Its price: a thread must not fall two phases behind, or it mistakes phase 2
// for phase 0. Tokens have the same limit.
//
// The announcement may also come after the copy. Pending bytes then go below zero for a while, and
// the phase stays open because its arrival is missing:
//
//   expect, then copy      pending bytes   0 -> +2048 -> ... -> 0
//   copy, then expect      pending bytes   0 -> ... -> -2048 -> 0     (or anything between)
//
// What must not happen is that the last arrival comes without its bytes announced: then the phase
// is over before the tile is there. That is why arrive and expect_tx are one instruction.
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "tensor_map.h"
#include "tma_load.cuh"

enum {
  TILE_ROWS = 16,
  TILE_COLUMNS = 32,
  TILE_ELEMENTS = TILE_ROWS * TILE_COLUMNS,
  TILE_BYTES = TILE_ELEMENTS * 4,
  TILES = 5,  // one below the other; odd, so that a parity which never flips is found out
  THREADS = 128,
};

typedef enum { TOKENS, PARITY, EXPECT_AFTER_COPY, EXPECT_IN_PARTS, TWO_LIVES, WAYS } Way;
static const char *const way_names[WAYS] = {
    "tokens: all arrive, each waits with its token",
    "parity: one arrives, all wait for phase & 1",
    "parity, announced after the copy",
    "parity, two copies announced one by one",
    "parity, barrier invalidated and made anew for each tile",
};

static __device__ void write_out(const int32_t *tile, int32_t *landed) {
  for (int i = threadIdx.x; i < TILE_ELEMENTS; i += THREADS) landed[i] = tile[i];
  __syncthreads();  // no thread may still read the tile when the next copy overwrites it
}

__global__ void load_with_tokens(const __grid_constant__ CUtensorMap map, int32_t *landed) {
  __shared__ alignas(128) int32_t tile[TILE_ELEMENTS];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, THREADS);
    fence_mbarrier_init();
  }
  __syncthreads();
  for (int phase = 0; phase < TILES; phase++) {
    uint64_t token;
    if (threadIdx.x == 0) {
      token = mbarrier_arrive_expect_tx(&barrier, TILE_BYTES);
      tma_load_2d(tile, &map, 0, phase * TILE_ROWS, &barrier);
    } else {
      token = mbarrier_arrive(&barrier);
    }
    mbarrier_wait(&barrier, token);
    write_out(tile, landed + phase * TILE_ELEMENTS);
  }
}

__global__ void load_with_parity(const __grid_constant__ CUtensorMap map, int32_t *landed) {
  __shared__ alignas(128) int32_t tile[TILE_ELEMENTS];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  for (int phase = 0; phase < TILES; phase++) {
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&barrier, TILE_BYTES);
      tma_load_2d(tile, &map, 0, phase * TILE_ROWS, &barrier);
    }
    mbarrier_wait_parity(&barrier, phase & 1);
    write_out(tile, landed + phase * TILE_ELEMENTS);
  }
}

__global__ void expect_after_copy(const __grid_constant__ CUtensorMap map, int32_t *landed) {
  __shared__ alignas(128) int32_t tile[TILE_ELEMENTS];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  for (int phase = 0; phase < TILES; phase++) {
    if (threadIdx.x == 0) {
      tma_load_2d(tile, &map, 0, phase * TILE_ROWS, &barrier);
      mbarrier_arrive_expect_tx(&barrier, TILE_BYTES);
    }
    mbarrier_wait_parity(&barrier, phase & 1);
    write_out(tile, landed + phase * TILE_ELEMENTS);
  }
}

// Two copies on one barrier, the upper and the lower half of the tile through a map whose box is
// half a tile. Each is announced for itself; the arrival, which ends the announcements, comes last.
__global__ void expect_in_parts(const __grid_constant__ CUtensorMap half_map, int32_t *landed) {
  __shared__ alignas(128) int32_t tile[TILE_ELEMENTS];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  for (int phase = 0; phase < TILES; phase++) {
    if (threadIdx.x == 0) {
      int y = phase * TILE_ROWS;
      mbarrier_expect_tx(&barrier, TILE_BYTES / 2);
      tma_load_2d(tile, &half_map, 0, y, &barrier);
      mbarrier_expect_tx(&barrier, TILE_BYTES / 2);
      tma_load_2d(tile + TILE_ELEMENTS / 2, &half_map, 0, y + TILE_ROWS / 2, &barrier);
      mbarrier_arrive(&barrier);
    }
    mbarrier_wait_parity(&barrier, phase & 1);
    write_out(tile, landed + phase * TILE_ELEMENTS);
  }
}

// The whole life, for each tile again: init, fence, arrive and wait, inval. A barrier made anew is
// in phase 0, so every wait is for parity 0. Between inval and init its 8 bytes are plain memory.
__global__ void live_twice(const __grid_constant__ CUtensorMap map, int32_t *landed) {
  __shared__ alignas(128) int32_t tile[TILE_ELEMENTS];
  __shared__ uint64_t barrier;
  for (int number = 0; number < TILES; number++) {
    if (threadIdx.x == 0) {
      mbarrier_init(&barrier, 1);
      fence_mbarrier_init();
    }
    __syncthreads();  // no thread waits before the barrier exists
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&barrier, TILE_BYTES);
      tma_load_2d(tile, &map, 0, number * TILE_ROWS, &barrier);
    }
    mbarrier_wait_parity(&barrier, 0);
    write_out(tile, landed + number * TILE_ELEMENTS);  // ends in __syncthreads():
    if (threadIdx.x == 0) mbarrier_inval(&barrier);    // no thread waits on it any longer
  }
}

int main(int argc, char **argv) {
  program_begin("two_ways_to_wait", argc, argv, NULL, 0);

  enum { ELEMENTS = TILES * TILE_ELEMENTS, BYTES = ELEMENTS * 4 };
  int32_t *matrix = (int32_t *)malloc(BYTES), *landed = (int32_t *)malloc(BYTES);
  for (int i = 0; i < ELEMENTS; i++) matrix[i] = i + 1;
  int32_t *device_matrix, *device_landed;
  CUDA_CHECK(cudaMalloc(&device_matrix, BYTES));
  CUDA_CHECK(cudaMalloc(&device_landed, BYTES));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, BYTES, cudaMemcpyHostToDevice));

  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = device_matrix,
                   .size = {TILE_COLUMNS, TILES * TILE_ROWS},
                   .box = {TILE_COLUMNS, TILE_ROWS}};
  TensorMap half_map = map;
  half_map.box[1] = TILE_ROWS / 2;
  CUtensorMap whole = tensor_map_encode("matrix, whole tiles", &map);
  CUtensorMap half = tensor_map_encode("matrix, half tiles", &half_map);

  for (int way = 0; way < WAYS; way++) {
    CUDA_CHECK(cudaMemset(device_landed, 0, BYTES));
    switch ((Way)way) {
      case TOKENS:
        load_with_tokens<<<1, THREADS>>>(whole, device_landed);
        break;
      case PARITY:
        load_with_parity<<<1, THREADS>>>(whole, device_landed);
        break;
      case EXPECT_AFTER_COPY:
        expect_after_copy<<<1, THREADS>>>(whole, device_landed);
        break;
      case EXPECT_IN_PARTS:
        expect_in_parts<<<1, THREADS>>>(half, device_landed);
        break;
      default:
        live_twice<<<1, THREADS>>>(whole, device_landed);
        break;
    }
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaMemcpy(landed, device_landed, BYTES, cudaMemcpyDeviceToHost));
    bool right =
        check_tile(way_names[way], ELEMENT_S32, landed, matrix, TILES * TILE_ROWS, TILE_COLUMNS, 0);
    printf("%-56s %d tiles, first elements", way_names[way], TILES);
    for (int tile = 0; tile < TILES; tile++) printf(" %d", landed[tile * TILE_ELEMENTS]);
    printf("%s\n", right ? "" : "   WRONG");
  }
  return program_end("%d ways, %d phases each, every element", WAYS, TILES);
}
