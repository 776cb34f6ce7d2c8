// 07 grouped: a group of products of different sizes, in one launch, with replaced tensor maps.
//
//   beside tiled; replace_in_loop in chapter 02 shows the replacing alone
//
// In a mixture of experts each expert multiplies its own weights B with its own rows of A, and how
// many rows it has is known on the device only. One tensor map for each expert made by the host
// will not do. Here every block walks over the tiles of all groups. When it comes to another group,
// its first warp changes two maps, A's address and number of rows, and B's address:
//
//   the group changes:   replace fields in shared memory    one thread
//                        publish to global memory           the whole warp (release)
//                        acquire                            the thread that issues the loads
//   each tile:           load, multiply, store              as in tiled
//
// Each block has maps of its own in global memory, so no other block can be reading them. Its own
// copies have all landed before the next group begins, because every load was waited for.
//
// The number of rows is one of the replaced fields, so what lies past the end of a group's A
// arrives as zeros and not as the next group's rows. At the end of C, the store compares row numbers.
#include <cuda_bf16.h>
#include <stdio.h>

#include "../02_tma_load/tensormap.cuh"
#include "../02_tma_load/tma_load.cuh"
#include "accumulator.cuh"
#include "check.h"
#include "tensor_map.h"
#include "wgmma.cuh"

enum {
  GROUPS = 5,
  N = 128,
  K = 192,
  TILE = 64,  // of m, n and k alike
  BLOCKS = 4,
  THREADS = 128,
  LOAD_BYTES = 2 * TILE * TILE * 2,
};
typedef struct {
  int rows[GROUPS], first_row[GROUPS];  // of A and C, which lie one group after the other
} Groups;

// The group and the place of the tile-th tile, or GROUPS if there is none.
static __device__ int find_tile(const Groups *groups, int tile, int *row, int *column) {
  for (int group = 0; group < GROUPS; group++) {
    int tiles = (groups->rows[group] + TILE - 1) / TILE * (N / TILE);
    if (tile < tiles) {
      *row = tile / (N / TILE) * TILE;
      *column = tile % (N / TILE) * TILE;
      return group;
    }
    tile -= tiles;
  }
  return GROUPS;
}

__global__ void __launch_bounds__(THREADS)
    grouped_kernel(const __grid_constant__ CUtensorMap template_a,
                   const __grid_constant__ CUtensorMap template_b,
                   const __grid_constant__ Groups groups, const uint16_t *a, const uint16_t *b,
                   CUtensorMap *maps, uint16_t *c) {
  __shared__ alignas(1024) uint16_t tile_a[TILE * TILE], tile_b[TILE * TILE];
  __shared__ alignas(128) CUtensorMap shared_a, shared_b;
  __shared__ uint64_t full;
  CUtensorMap *map_a = &maps[2 * blockIdx.x], *map_b = map_a + 1;
  if (threadIdx.x < 32) {
    ((uint32_t *)&shared_a)[threadIdx.x] = ((const uint32_t *)&template_a)[threadIdx.x];
    ((uint32_t *)&shared_b)[threadIdx.x] = ((const uint32_t *)&template_b)[threadIdx.x];
  }
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  int group_before = -1, row, column, phase = 0;
  for (int tile = blockIdx.x;; tile += gridDim.x) {
    int group = find_tile(&groups, tile, &row, &column);
    if (group == GROUPS) break;
    if (group != group_before && threadIdx.x < 32) {
      if (threadIdx.x == 0) {
        tensormap_replace_address(&shared_a, a + (size_t)groups.first_row[group] * K);
        tensormap_replace_size<1>(&shared_a, groups.rows[group]);
        tensormap_replace_address(&shared_b, b + (size_t)group * N * K);
      }
      __syncwarp();
      tensormap_publish(map_a, &shared_a);
      tensormap_publish(map_b, &shared_b);
      if (threadIdx.x == 0) {
        fence_proxy_tensormap_acquire(map_a);
        fence_proxy_tensormap_acquire(map_b);
      }
      __syncwarp();
    }
    group_before = group;

    float d[TILE / 2];
    uint64_t a_tile = wgmma_descriptor_k_major(tile_a), b_tile = wgmma_descriptor_k_major(tile_b);
    for (int k = 0; k < K; k += TILE) {
      if (threadIdx.x == 0) {
        mbarrier_arrive_expect_tx(&full, LOAD_BYTES);
        tma_load_2d(tile_a, map_a, k, row, &full);
        tma_load_2d(tile_b, map_b, k, column, &full);
      }
      mbarrier_wait_parity(&full, phase++ % 2);
      wgmma_fence();
      for (int i = 0; i < TILE / 16; i++) {
        wgmma_m64n64k16(d, a_tile + i * WGMMA_K_STEP, b_tile + i * WGMMA_K_STEP, k > 0 || i > 0);
      }
      wgmma_commit();
      wgmma_wait_all();
      __syncthreads();  // all four warps are done with the tiles: the next load may overwrite them
    }
    store_accumulator(c + (size_t)groups.first_row[group] * N, d, TILE / 8,
                      row + threadIdx.x / 32 * 16, column, groups.rows[group], N);
  }
}

static CUtensorMap map_of(const char *name, void *address, uint64_t rows) {
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                   .dimensions = 2,
                   .address = address,
                   .size = {K, rows},
                   .box = {TILE, TILE}};
  map.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  return tensor_map_encode(name, &map);
}

int main(int argc, char **argv) {
  program_begin("grouped", argc, argv, NULL, 0);
  Groups groups = {.rows = {40, 130, 0, 64, 97}};  // one expert has nothing to do
  int all_rows = 0;
  for (int g = 0; g < GROUPS; g++) {
    groups.first_row[g] = all_rows;
    all_rows += groups.rows[g];
  }
  enum { MOST_ROWS = 512 };
  static __nv_bfloat16 a[MOST_ROWS][K], b[GROUPS][N][K], c[MOST_ROWS][N], expected[MOST_ROWS][N];
  for (int i = 0; i < all_rows * K; i++) a[i / K][i % K] = __float2bfloat16((float)(i * 7 % 9 - 4));
  for (int i = 0; i < GROUPS * N * K; i++) {
    (&b[0][0][0])[i] = __float2bfloat16((float)(i * 5 % 7 - 3));
  }
  for (int g = 0; g < GROUPS; g++) {
    for (int row = groups.first_row[g]; row < groups.first_row[g] + groups.rows[g]; row++) {
      for (int n = 0; n < N; n++) {
        float sum = 0;
        for (int k = 0; k < K; k++) sum += (float)a[row][k] * (float)b[g][n][k];
        expected[row][n] = __float2bfloat16(sum);
      }
    }
  }
  uint16_t *device_a, *device_b, *device_c;
  CUtensorMap *maps;
  CUDA_CHECK(cudaMalloc(&device_a, sizeof a));
  CUDA_CHECK(cudaMalloc(&device_b, sizeof b));
  CUDA_CHECK(cudaMalloc(&device_c, sizeof c));
  CUDA_CHECK(cudaMalloc(&maps, 2 * BLOCKS * sizeof *maps));
  CUDA_CHECK(cudaMemcpy(device_a, a, sizeof a, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(device_b, b, sizeof b, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(device_c, 0xFF, sizeof c));
  grouped_kernel<<<BLOCKS, THREADS>>>(map_of("A", device_a, (uint64_t)all_rows),
                                      map_of("B", device_b, N), groups, device_a, device_b, maps,
                                      device_c);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(c, device_c, sizeof c, cudaMemcpyDeviceToHost));
  for (int g = 0; g < GROUPS; g++) {
    printf("group %d: %3d rows x %d x %d\n", g, groups.rows[g], N, K);
  }
  check_tile("C of all groups", ELEMENT_BF16, c, expected, all_rows, N, 0);
  CUDA_CHECK(cudaFree(device_a));
  CUDA_CHECK(cudaFree(device_b));
  CUDA_CHECK(cudaFree(device_c));
  CUDA_CHECK(cudaFree(maps));
  return program_end("%d products of %d rows in all, every element", GROUPS, all_rows);
}
