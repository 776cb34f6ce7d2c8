// 05 multicast: one load, the same tile in the shared memory of several CTAs.
//
//   01 tiledcopy | 02 load | 03 store | 04 store reduce | [05 multicast] | 06 swizzle | 07 gemm
//
// In chapter 02 every CTA fetched its own tile. Two CTAs that need the same one fetched it twice.
// If they form a cluster, each can fetch half of it and have the half written to both:
//
//        tensor                    CTA of rank 0            CTA of rank 1
//     +-----------+  slice 0   +-----------+  copy of   +-----------+
//     |  slice 0  | ---------> |  slice 0  | ---------> |  slice 0  |     issued by rank 0,
//     +-----------+  slice 1   +-----------+            +-----------+     mask 0b11
//     |  slice 1  | ---------> |  slice 1  | <--------- |  slice 1  |     issued by rank 1,
//     +-----------+            +-----------+  copy of   +-----------+     mask 0b11
//
// The kernel decides which slice a CTA issues, and the classic mistake is to give both CTAs the
// same one. This program makes it on purpose. If both fetch slice 0, the lower half of both tiles
// stays empty; if both fetch slice 1, the upper half does. One slice each fills both tiles.
// The tensor is 32x32, four clusters take one 16x16 tile each, and the first one's are printed: the
// upper left tile holds 0 to 255 in rows of 16.
//
// Prints, for slices 0 and 0, twice (rank 0 and rank 1):
//
//                    0     1     2     3 ...
//                  [0]   [1]   [2]   [3] ...
//        0   [0]     0     1     2     3 ...
//        ...
//        7   [7]   112   113   114   115 ...
//        8   [8]     0     0     0     0 ...
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

// Both CTAs of a cluster take the same tile; result[tile][rank] is what each of them received.
// slices[rank]: which slice that CTA fetches for both.
__global__ void __cluster_dims__(CLUSTER_SIZE, 1, 1)
    multicast_kernel(const __grid_constant__ CUtensorMap tensor, int2 slices, int32_t *result) {
  __shared__ __align__(128) int32_t tile[TILE][TILE];
  __shared__ uint64_t full[CLUSTER_SIZE];  // full[r] counts what rank r sends to this CTA

  uint32_t rank = cluster_rank();
  int tile_index = blockIdx.x / CLUSTER_SIZE;
  int x = tile_index % TILES_ACROSS * TILE;
  int y = tile_index / TILES_ACROSS * TILE;

  // 1. Zeros, so that what does not arrive can be seen. They are written through the generic
  //    proxy, the tile through the async one: the fence keeps the zeros from coming last.
  for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) tile[i / TILE][i % TILE] = 0;
  fence_proxy_async();

  // 2. Each CTA prepares its own barriers and expects both slices, its own and its peer's. No
  //    other CTA can do that. (One barrier for the whole tile would do as well.)
  if (threadIdx.x == 0) {
    for (int sender = 0; sender < CLUSTER_SIZE; sender++) mbarrier_init(&full[sender], 1);
    fence_mbarrier_init();
    for (int sender = 0; sender < CLUSTER_SIZE; sender++) {
      mbarrier_arrive_expect_tx(&full[sender], SLICE_BYTES);
    }
  }

  // 3. No CTA may send before its peer's barrier is initialised and its zeros are written. A
  //    __syncthreads() is not enough, because it covers this CTA only.
  cluster_sync();

  // 4. One thread of each CTA fetches a slice for both. The destination is an address in its own
  //    shared memory; in the peer the slice lands at the same offset. If both send the same slice,
  //    they write to the same place: a race, even with equal bytes. So rank 1 lets rank 0's copies
  //    land first, in both CTAs. A kernel in which each CTA fetches its own slice need not do that.
  bool same_place = slices.x == slices.y;
  int slice = rank == 0 ? slices.x : slices.y;
  if (same_place && rank == 1) {
    mbarrier_wait_parity(&full[0], 0);
    cluster_sync();
  }
  if (threadIdx.x == 0) {
    uint16_t mask = cluster_mask_all(CLUSTER_SIZE);  // 0b11: bit r selects the CTA of rank r
    tma_load_2d_multicast(&tile[slice * SLICE_ROWS][0], &tensor, x, y + slice * SLICE_ROWS,
                          &full[rank], mask);
  }
  if (same_place && rank == 0) {
    mbarrier_wait_parity(&full[0], 0);
    cluster_sync();
  }
  for (int sender = 0; sender < CLUSTER_SIZE; sender++) mbarrier_wait_parity(&full[sender], 0);

  for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
    result[(tile_index * CLUSTER_SIZE + rank) * TILE * TILE + i] = tile[i / TILE][i % TILE];
  }

  // 5. No CTA may end while a peer's load may still be writing to it. Here each has waited for all
  //    bytes that it can receive; a kernel that skips a wait needs this line, so it stays.
  cluster_sync();
}

static int32_t result[TILES][CLUSTER_SIZE][TILE][TILE];

static void show_tile_of(int rank) {
  char title[64];
  snprintf(title, sizeof title, "shared memory of rank %d", rank);
  TilePicture picture = {
      .title = title, .type = ELEMENT_S32, .data = result[0][rank], .rows = TILE, .columns = TILE};
  tile_print(&picture);
}

static void multicast(const CUtensorMap *tensor_map, int32_t *result_on_device, int2 slices) {
  static int32_t expected[TILE][TILE];
  CUDA_CHECK(cudaMemset(result_on_device, 0xFF, sizeof result));
  multicast_kernel<<<TILES * CLUSTER_SIZE, THREADS>>>(*tensor_map, slices, result_on_device);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(result, result_on_device, sizeof result, cudaMemcpyDeviceToHost));
  for (int tile = 0; tile < TILES; tile++) {
    for (int row = 0; row < TILE; row++) {
      bool fetched = row / SLICE_ROWS == slices.x || row / SLICE_ROWS == slices.y;
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
  printf("\nrank 0 fetches slice %d, rank 1 slice %d:\n", slices.x, slices.y);
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
  int32_t *tensor, *device_result;
  CUDA_CHECK(cudaMalloc(&tensor, sizeof host));
  CUDA_CHECK(cudaMalloc(&device_result, TILES * CLUSTER_SIZE * TILE_BYTES));
  CUDA_CHECK(cudaMemcpy(tensor, host, sizeof host, cudaMemcpyHostToDevice));
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .rank = 2,
                   .address = tensor,
                   .size = {TENSOR, TENSOR},
                   .box = {TILE, SLICE_ROWS}};
  CUtensorMap encoded = tensor_map_encode("the tensor", &map);

  const int2 both_0 = {0, 0}, both_1 = {1, 1}, own_rank = {0, 1}, crosswise = {1, 0};
  multicast(&encoded, device_result, both_0);  // the mistake
  show_tile_of(0);
  detail_begin();
  show_tile_of(1);                             // the same picture again
  multicast(&encoded, device_result, both_1);  // its mirror image
  show_tile_of(0);
  show_tile_of(1);
  multicast(&encoded, device_result, own_rank);  // what was meant
  show_tile_of(0);
  show_tile_of(1);
  multicast(&encoded, device_result, crosswise);  // just as good
  printf("the whole tile in both, as before\n");
  detail_end();

  CUDA_CHECK(cudaFree(tensor));
  CUDA_CHECK(cudaFree(device_result));
  printf("\n");
  return program_end("4 ways to share out the slices, %d tiles in both CTAs, every element", TILES);
}
