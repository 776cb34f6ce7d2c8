// 05 multicast: one load, the same tile in the shared memory of several blocks.
//
//   01 tiledcopy | 02 load | 03 store | 04 store reduce | [05 multicast] | 06 swizzle | 07 gemm
//
// In chapter 02 every block fetched its own tile. Two blocks that need the same one fetched it
// twice. If they form a cluster, each can fetch half of it and have the half written to both:
//
//        tensor                   block of rank 0          block of rank 1
//     +-----------+  slice 0   +-----------+  copy of   +-----------+
//     |  slice 0  | ---------> |  slice 0  | ---------> |  slice 0  |     issued by rank 0,
//     +-----------+  slice 1   +-----------+            +-----------+     mask 0b11
//     |  slice 1  | ---------> |  slice 1  | <--------- |  slice 1  |     issued by rank 1,
//     +-----------+            +-----------+  copy of   +-----------+     mask 0b11
//
// The kernel decides which slice a block issues. The tensor is 32x32, four clusters take one 16x16
// tile each, and the first one's are printed: the upper left tile holds 0 to 255 in rows of 16.
//
// The classic mistake is to let both blocks issue the same slice. A second kernel makes it on
// purpose: with slice 0 twice the lower half of both tiles stays empty, with slice 1 the upper half.
//
// Prints the tile in rank 0 and rank 1, then what the mistake leaves of it:
//
//                    0     1     2     3 ...
//                  [0]   [1]   [2]   [3] ...
//        0   [0]     0     1     2     3 ...
//        ...
//        7   [7]   112   113   114   115 ...
//        8   [8]   128   129   130   131 ...     (the mistake: 0 0 0 0 ...)
#include <stdio.h>
#include <string.h>

#include "../02_tma_load/tma_load.cuh"
#include "check.h"
#include "cluster.cuh"
#include "tensor_map.h"
#include "tile.h"
#include "tma_multicast.cuh"

enum {
  CLUSTER_SIZE = 2,
  TILE = 16,                         // rows and columns
  SLICE_ROWS = TILE / CLUSTER_SIZE,  // the box of the tensor map is a slice, not a tile
  TILE_BYTES = TILE * TILE * 4,
  SLICE_BYTES = SLICE_ROWS * TILE * 4,
  TENSOR = 32,
  TILES_ACROSS = TENSOR / TILE,
  TILES = TILES_ACROSS * TILES_ACROSS,
  THREADS = 64,
};

// Both blocks of a cluster take the same tile; result[tile][rank] is what each of them received.
// The block of rank r fetches slice r for both.
__global__ void __cluster_dims__(CLUSTER_SIZE, 1, 1)
    multicast_kernel(const __grid_constant__ CUtensorMap tensor, int32_t *result) {
  __shared__ __align__(128) int32_t tile[TILE][TILE];
  __shared__ uint64_t full;

  uint32_t rank = cluster_rank();
  int tile_index = blockIdx.x / CLUSTER_SIZE;
  int x = tile_index % TILES_ACROSS * TILE;
  int y = tile_index / TILES_ACROSS * TILE;

  // 1. Each block prepares its own barrier and expects both slices, its own and its peer's. No
  //    other block can do that.
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&full, TILE_BYTES);
  }

  // 2. No block may send before its peer's barrier is initialised. A __syncthreads() is not enough,
  //    because it covers this block only.
  cluster_sync();

  // 3. One thread of each block fetches a slice for both. The destination is an address in its own
  //    shared memory; in the peer the slice lands at the same offset.
  if (threadIdx.x == 0) {
    uint16_t mask = cluster_mask_all(CLUSTER_SIZE);  // 0b11: bit r selects the block of rank r
    tma_load_2d_multicast(&tile[rank * SLICE_ROWS][0], &tensor, x, y + rank * SLICE_ROWS, &full,
                          mask);
  }
  mbarrier_wait_parity(&full, 0);

  for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
    result[(tile_index * CLUSTER_SIZE + rank) * TILE * TILE + i] = tile[i / TILE][i % TILE];
  }

  // 4. No block may end while a peer's load may still be writing to it. Here each has waited for all
  //    bytes that it can receive; a kernel that skips a wait needs this line, so it stays.
  cluster_sync();
}

// THE MISTAKE, not to be copied: both blocks fetch the same slice. The other half is never written;
// the zeros that it held before show that. Two loads to one place would also be a race, so here
// rank 1 lets the load of rank 0 land first, and the program has one mistake only.
__global__ void __cluster_dims__(CLUSTER_SIZE, 1, 1)
    same_slice_twice(const __grid_constant__ CUtensorMap tensor, int slice, int32_t *result) {
  __shared__ __align__(128) int32_t tile[TILE][TILE];
  __shared__ uint64_t full[CLUSTER_SIZE];  // full[r] counts what rank r sends to this block

  uint32_t rank = cluster_rank();
  int tile_index = blockIdx.x / CLUSTER_SIZE;
  int x = tile_index % TILES_ACROSS * TILE;
  int y = tile_index / TILES_ACROSS * TILE;

  // The zeros are written through the generic proxy, the tile through the async one: the fence keeps
  // the zeros from coming last.
  for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) tile[i / TILE][i % TILE] = 0;
  fence_proxy_async();
  if (threadIdx.x == 0) {
    for (int sender = 0; sender < CLUSTER_SIZE; sender++) mbarrier_init(&full[sender], 1);
    fence_mbarrier_init();
    for (int sender = 0; sender < CLUSTER_SIZE; sender++) {
      mbarrier_arrive_expect_tx(&full[sender], SLICE_BYTES);
    }
  }
  cluster_sync();

  for (uint32_t sender = 0; sender < CLUSTER_SIZE; sender++) {
    if (rank == sender && threadIdx.x == 0) {
      tma_load_2d_multicast(&tile[slice * SLICE_ROWS][0], &tensor, x, y + slice * SLICE_ROWS,
                            &full[sender], cluster_mask_all(CLUSTER_SIZE));
    }
    mbarrier_wait_parity(&full[sender], 0);
    cluster_sync();
  }

  for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
    result[(tile_index * CLUSTER_SIZE + rank) * TILE * TILE + i] = tile[i / TILE][i % TILE];
  }
}

static int32_t result[TILES][CLUSTER_SIZE][TILE][TILE];
static int32_t *result_on_device;

static void show_tile_of(int rank) {
  char title[64];
  snprintf(title, sizeof title, "shared memory of rank %d", rank);
  TilePicture picture = {
      .title = title, .type = ELEMENT_S32, .data = result[0][rank], .rows = TILE, .columns = TILE};
  tile_print(&picture);
}

// Fetches what `slices` says, as bits, and checks every tile in both blocks: zeros in the slice that
// nobody fetched.
static void check_tiles(int slices) {
  static int32_t expected[TILE][TILE];
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(result, result_on_device, sizeof result, cudaMemcpyDeviceToHost));
  for (int tile = 0; tile < TILES; tile++) {
    for (int row = 0; row < TILE; row++) {
      bool fetched = slices >> row / SLICE_ROWS & 1;
      for (int column = 0; column < TILE; column++) {
        expected[row][column] = fetched ? tile * TILE * TILE + row * TILE + column : 0;
      }
    }
    for (int rank = 0; rank < CLUSTER_SIZE; rank++) {
      char what[64];
      snprintf(what, sizeof what, "tile %d in rank %d", tile, rank);
      check_tile(what, ELEMENT_S32, result[tile][rank], expected, TILE, TILE, 0);
    }
  }
}

int main(int argc, char **argv) {
  program_begin("multicast", argc, argv, NULL, 0);

  // Element (row, column) is numbered within its tile, tile after tile.
  static int32_t host[TENSOR][TENSOR];
  for (int row = 0; row < TENSOR; row++) {
    for (int column = 0; column < TENSOR; column++) {
      int tile = row / TILE * TILES_ACROSS + column / TILE;
      host[row][column] = tile * TILE * TILE + row % TILE * TILE + column % TILE;
    }
  }
  int32_t *tensor;
  CUDA_CHECK(cudaMalloc(&tensor, sizeof host));
  CUDA_CHECK(cudaMalloc(&result_on_device, sizeof result));
  CUDA_CHECK(cudaMemcpy(tensor, host, sizeof host, cudaMemcpyHostToDevice));
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = tensor,
                   .size = {TENSOR, TENSOR},
                   .box = {TILE, SLICE_ROWS}};
  CUtensorMap encoded = tensor_map_encode("the tensor", &map);

  CUDA_CHECK(cudaMemset(result_on_device, 0xFF, sizeof result));
  multicast_kernel<<<TILES * CLUSTER_SIZE, THREADS>>>(encoded, result_on_device);
  check_tiles(0b11);
  printf("\nrank 0 fetches slice 0, rank 1 slice 1:\n");
  show_tile_of(0);
  detail_begin();
  show_tile_of(1);  // the same picture again
  for (int slice = 0; slice < CLUSTER_SIZE; slice++) {
    CUDA_CHECK(cudaMemset(result_on_device, 0xFF, sizeof result));
    same_slice_twice<<<TILES * CLUSTER_SIZE, THREADS>>>(encoded, slice, result_on_device);
    check_tiles(1 << slice);
    printf("\nTHE MISTAKE: both fetch slice %d:\n", slice);
    show_tile_of(0);
    show_tile_of(1);
  }
  detail_end();

  CUDA_CHECK(cudaFree(tensor));
  CUDA_CHECK(cudaFree(result_on_device));
  printf("\n");
  return program_end(
      "one slice each and the same slice twice, %d tiles in both blocks, every element", TILES);
}
