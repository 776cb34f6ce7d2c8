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
// The classic mistake is to let both blocks issue the same slice. A second kernel makes it on purpose:
// with slice 0 twice the lower half of both tiles stays zero, with slice 1 twice the upper half. It
// also swaps the slices, which is no mistake: the masks name both blocks.
//
// Prints the first tile in rank 0 for the first three cases, side by side, and whether rank 1 holds
// the same. --full prints all columns.
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

// FOR EXPERIMENTS, not to be copied: the host chooses the slice that each rank fetches. If both fetch
// the same one, the other half is never written, and the zeros that it held before show that. Two
// loads to one place would also be a race, so here rank 1 lets the load of rank 0 land first, and
// there is one mistake only.
typedef struct {
  int of_rank[CLUSTER_SIZE];
} Slices;

__global__ void __cluster_dims__(CLUSTER_SIZE, 1, 1)
    chosen_slices(const __grid_constant__ CUtensorMap tensor, Slices slices, int32_t *result) {
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
      int row = slices.of_rank[sender] * SLICE_ROWS;
      tma_load_2d_multicast(&tile[row][0], &tensor, x, y + row, &full[sender],
                            cluster_mask_all(CLUSTER_SIZE));
    }
    mbarrier_wait_parity(&full[sender], 0);
    cluster_sync();
  }

  for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
    result[(tile_index * CLUSTER_SIZE + rank) * TILE * TILE + i] = tile[i / TILE][i % TILE];
  }
}

typedef int32_t Tile[TILE][TILE];

// The cases in the order in which they are printed; the first is run by multicast_kernel.
static const Slices cases[] = {{{0, 1}}, {{0, 0}}, {{1, 1}}, {{1, 0}}};
enum { CASES = 4, SWAPPED = 3 };

static Tile results[CASES][TILES][CLUSTER_SIZE];
static int32_t *result_on_device;

// Checks every tile in both blocks: zeros in the slice that nobody fetched.
static bool check_case(int number) {
  static Tile expected;
  const Slices *slices = &cases[number];
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(results[number], result_on_device, sizeof results[number],
                        cudaMemcpyDeviceToHost));
  bool right = true;
  for (int tile = 0; tile < TILES; tile++) {
    for (int row = 0; row < TILE; row++) {
      int slice = row / SLICE_ROWS;
      bool fetched = slices->of_rank[0] == slice || slices->of_rank[1] == slice;
      for (int column = 0; column < TILE; column++) {
        expected[row][column] = fetched ? tile * TILE * TILE + row * TILE + column : 0;
      }
    }
    for (int rank = 0; rank < CLUSTER_SIZE; rank++) {
      char what[80];
      snprintf(what, sizeof what, "slices %d and %d: tile %d in rank %d", slices->of_rank[0],
               slices->of_rank[1], tile, rank);
      right &= check_tile(what, ELEMENT_S32, results[number][tile][rank], expected, TILE, TILE, 0);
    }
  }
  return right;
}

// Rank 0's first tile in all cases but the last, side by side: the first three columns and the last.
static void print_side_by_side(void) {
  printf("\ntile 0 in shared memory of rank 0: columns 0, 1, 2 .. %d\n", TILE - 1);
  for (int rank = 0; rank < CLUSTER_SIZE; rank++) {
    printf("rank %d fetches", rank);
    for (int i = 0; i < SWAPPED; i++) {
      printf("%*s slice %d", i == 0 ? 2 : 12, "", cases[i].of_rank[rank]);
    }
    printf("\n");
  }
  for (int row = 0; row < TILE; row++) {
    printf("row %2d        ", row);
    for (int i = 0; i < SWAPPED; i++) {
      const int32_t *cells = results[i][0][0][row];
      printf("   %3d %3d %3d .. %3d", cells[0], cells[1], cells[2], cells[TILE - 1]);
    }
    printf("\n");
  }
  printf("rank 1 holds  ");
  for (int i = 0; i < SWAPPED; i++) {
    bool same = memcmp(results[i][0][0], results[i][0][1], sizeof(Tile)) == 0;
    printf("%*s %s", i == 0 ? 2 : 12, "", same ? "the same" : "another tile");
  }
  printf("\n");
}

static void print_whole_tiles(void) {
  for (int i = 0; i < SWAPPED; i++) {
    printf("\nrank 0 fetches slice %d, rank 1 slice %d: ", cases[i].of_rank[0],
           cases[i].of_rank[1]);
    TilePicture picture = {.title = "shared memory of rank 0",
                           .type = ELEMENT_S32,
                           .data = results[i][0][0],
                           .rows = TILE,
                           .columns = TILE};
    tile_print(&picture);
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
  CUDA_CHECK(cudaMalloc(&result_on_device, sizeof results[0]));
  CUDA_CHECK(cudaMemcpy(tensor, host, sizeof host, cudaMemcpyHostToDevice));
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = tensor,
                   .size = {TENSOR, TENSOR},
                   .box = {TILE, SLICE_ROWS}};
  CUtensorMap encoded = tensor_map_encode("the tensor", &map);

  bool right = false;  // of the last case
  for (int i = 0; i < CASES; i++) {
    CUDA_CHECK(cudaMemset(result_on_device, 0xFF, sizeof results[i]));
    if (i == 0) {
      multicast_kernel<<<TILES * CLUSTER_SIZE, THREADS>>>(encoded, result_on_device);
    } else {
      chosen_slices<<<TILES * CLUSTER_SIZE, THREADS>>>(encoded, cases[i], result_on_device);
    }
    right = check_case(i);
  }
  print_side_by_side();
  printf("\nswapped, rank 0 fetches slice %d and rank 1 slice %d: %s\n", cases[SWAPPED].of_rank[0],
         cases[SWAPPED].of_rank[1], right ? "all rows in both, as on the left" : "wrong");
  detail_begin();
  print_whole_tiles();
  detail_end();

  CUDA_CHECK(cudaFree(tensor));
  CUDA_CHECK(cudaFree(result_on_device));
  printf("\n");
  return program_end(
      "own slices, the same slice twice, swapped: %d tiles in both blocks, all elements", TILES);
}
