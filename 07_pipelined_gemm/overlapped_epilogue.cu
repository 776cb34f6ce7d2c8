// overlapped_epilogue: a GEMM that stores half a tile while it multiplies the other half.
//
//   tiled | serial | ring | producer_consumer | two_consumers | multicast | persistent |
//   tma_epilogue | [overlapped_epilogue] | carried_tile | pipelined_gemm
//
// The accumulator has two halves, left and right, each with its own wgmma. At the end of a tile, the left
// half is stored while the last step of the right half is still running. The right half is stored while
// the first step of the next tile runs on the left half:
//
//       wgmma   ... left right | left  right | left'  right' | left' right' ...
//       store                          ==left==   ==right==
//
// This needs at least two steps, so that a k of up to 64 has a second step of zeros.
#include <cuda.h>
#include <stdint.h>

#include "../02_tma_load/mbarrier.cuh"
#include "../02_tma_load/tma_load.cuh"
#include "../03_tma_store/tma_store.cuh"
#include "../05_multicast/cluster.cuh"
#include "../05_multicast/tma_multicast.cuh"
#include "../06_swizzle_3d/swizzle.h"
#include "accumulator.cuh"
#include "gemm_program.cuh"
#include "tile_order.cuh"
#include "wgmma.cuh"

enum {
  TILE_M = 128,
  TILE_N = 256,
  STEP_K = 64,  // a row of 64 bf16 is 128 bytes: one swizzle span, one line of a WGMMA tile
  CONSUMERS = 2,
  CONSUMER_WARPS = CONSUMERS * 4,
  THREADS = 384,  // the consumers' two warpgroups, then the producer's
  STAGES = 4,
  CLUSTER = 2,
  SLICE = TILE_N / CLUSTER,  // columns of B that a block loads for both
  BAND = 2048 / TILE_N,      // of columns: tile_order.cuh
  HALF_N = TILE_N / 2,
  BOX_N = 64,  // of a store: 16 rows of 128 bytes
  BOXES = HALF_N / BOX_N,
  LOAD_BYTES = (TILE_M + TILE_N) * STEP_K * 2,
};

// Tiles first: each is a multiple of 1024 bytes, as the 128-byte swizzle requires.
typedef struct {
  uint16_t a[STAGES][TILE_M * STEP_K];
  uint16_t b[STAGES][TILE_N * STEP_K];
  uint16_t out[CONSUMERS * 4][BOXES][16 * BOX_N];  // each warp's
  uint64_t full[STAGES];
  uint64_t empty[STAGES];
} Shared;
enum { SHARED_BYTES = sizeof(Shared) + 1024 };  // space to align in

// The descriptors of a stage's tiles; the right half of B begins RIGHT units of 16 bytes later.
enum { RIGHT = HALF_N * STEP_K * 2 / 16 };
static __device__ __forceinline__ uint64_t stage_a(Shared *shared, int stage, int warpgroup) {
  return wgmma_descriptor_k_major(shared->a[stage] + warpgroup * 64 * STEP_K);
}
static __device__ __forceinline__ uint64_t stage_b(Shared *shared, int stage) {
  return wgmma_descriptor_k_major(shared->b[stage]);
}

// Tells both blocks' producers that the stage of the step `count` may be filled again.
static __device__ __forceinline__ void free_stage(uint32_t peer_empty, uint32_t count) {
  if (threadIdx.x % 32 < CLUSTER) {
    mbarrier_arrive_cluster(peer_empty + count % STAGES * sizeof(uint64_t));
  }
}

// One step of 64 k on one half of the accumulator.
static __device__ __forceinline__ void multiply_step(float d[HALF_N / 2], uint64_t a, uint64_t b,
                                                     bool accumulate) {
  wgmma_fence();
  for (int i = 0; i < STEP_K / 16; i++) {
    wgmma_m64n128k16(d, a + i * WGMMA_K_STEP, b + i * WGMMA_K_STEP, accumulate || i > 0);
  }
}

// A warp writes its 16 rows of one half. `out` is free again once the previous stores have read it.
static __device__ __forceinline__ void store_half(uint16_t out[BOXES][16 * BOX_N],
                                                  const float d[HALF_N / 2],
                                                  const CUtensorMap *map_c, int row, int column) {
  int lane = threadIdx.x % 32;
  if (lane == 0) bulk_wait_group_read<0>();
  __syncwarp();
#pragma unroll
  for (int at = 0; at < HALF_N; at += 16) {
    // stmatrix: this lane's row of 16 bytes, at the place where the swizzle has it.
    uint32_t offset = lane % 16 * (BOX_N * 2) + (at % BOX_N + lane / 16 * 8) * 2;
    offset = swizzle_128b(offset);  // the tile is aligned to 1,024 bytes
    const float *v = d + at / 2;
    stmatrix_x4(shared_address(out[at / BOX_N]) + offset, pack_bf16(v[0], v[1]),
                pack_bf16(v[2], v[3]), pack_bf16(v[4], v[5]), pack_bf16(v[6], v[7]));
  }
  fence_proxy_async();
  __syncwarp();
  if (lane == 0) {
    for (int box = 0; box < BOXES; box++) {
      tma_store_2d(map_c, out[box], column + box * BOX_N, row);
    }
    bulk_commit_group();
  }
}

static __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    overlapped_kernel(const __grid_constant__ CUtensorMap map_a,
                      const __grid_constant__ CUtensorMap map_b,
                      const __grid_constant__ CUtensorMap map_c, TileOrder order, int k) {
  extern __shared__ uint8_t dynamic_shared[];
  Shared *shared = (Shared *)align_1024(dynamic_shared);
  uint32_t rank = cluster_rank();
  int tiles = order.rows * order.columns, clusters = gridDim.x / CLUSTER;
  // What reaches past the edge arrives as zeros, so there can be a step too many.
  int steps = max(divide_up(k, STEP_K), 2);

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; stage++) {
      mbarrier_init(&shared->full[stage], 1);
      mbarrier_init(&shared->empty[stage], CLUSTER * CONSUMER_WARPS);
    }
    fence_mbarrier_init();
  }
  cluster_sync();  // the peer's barriers must be there before anything is sent to them

  int warpgroup = threadIdx.x / 128, thread = threadIdx.x % 128;
  if (warpgroup == CONSUMERS) {
    setmaxnreg_producer();
    if (thread == 0) {
      uint32_t count = 0;  // of steps, over all tiles
      for (int tile = blockIdx.x / CLUSTER; tile < tiles; tile += clusters) {
        TilePlace place = tile_place(order, tile);
        int row = (place.row * CLUSTER + rank) * TILE_M, column = place.column * TILE_N;
        for (int step = 0; step < steps; step++, count++) {
          uint32_t stage = count % STAGES;
          mbarrier_wait_parity(&shared->empty[stage], (count / STAGES % 2) ^ 1);
          mbarrier_arrive_expect_tx(&shared->full[stage], LOAD_BYTES);
          tma_load_2d(shared->a[stage], &map_a, step * STEP_K, row, &shared->full[stage]);
          tma_load_2d_multicast(shared->b[stage] + rank * SLICE * STEP_K, &map_b, step * STEP_K,
                                column + rank * SLICE, &shared->full[stage],
                                cluster_mask_all(CLUSTER));
        }
      }
      // A block must not end while a peer may still report a stage as free to it: wait for all reports.
      for (int i = 0; i < STAGES; i++, count++) {
        mbarrier_wait_parity(&shared->empty[count % STAGES], (count / STAGES % 2) ^ 1);
      }
    }
  } else {
    setmaxnreg_consumer();
    // Lane i of each warp tells the block of rank i that a stage is free.
    uint32_t lane = thread % 32;
    uint32_t peer_empty = lane < CLUSTER ? mapa_shared(shared->empty, lane) : 0;
    uint16_t(*out)[16 * BOX_N] = shared->out[warpgroup * 4 + thread / 32];
    float left[HALF_N / 2], right[HALF_N / 2];  // 64 x 128 values each in 128 threads
    uint32_t count = 0;                         // of steps, over all tiles

    int tile = blockIdx.x / CLUSTER;
    uint64_t a = stage_a(shared, 0, warpgroup), b = stage_b(shared, 0);
    mbarrier_wait_parity(&shared->full[0], 0);
    multiply_step(left, a, b, false);
    wgmma_commit();
    multiply_step(right, a, b + RIGHT, false);
    wgmma_commit();
    count++;
    while (true) {
      TilePlace place = tile_place(order, tile);
      int row = (place.row * CLUSTER + rank) * TILE_M + warpgroup * 64 + thread / 32 * 16;
      int column = place.column * TILE_N;
      for (int step = 1; step < steps - 1; step++, count++) {
        uint32_t stage = count % STAGES;
        mbarrier_wait_parity(&shared->full[stage], count / STAGES % 2);
        a = stage_a(shared, stage, warpgroup), b = stage_b(shared, stage);
        multiply_step(left, a, b, true);
        multiply_step(right, a, b + RIGHT, true);
        wgmma_commit();
        wgmma_wait_all_but_one();
        free_stage(peer_empty, count - 1);
      }
      uint32_t last = count % STAGES;
      mbarrier_wait_parity(&shared->full[last], count / STAGES % 2);
      a = stage_a(shared, last, warpgroup), b = stage_b(shared, last);
      multiply_step(left, a, b, true);
      wgmma_commit();
      multiply_step(right, a, b + RIGHT, true);
      wgmma_commit();
      wgmma_wait_all_but_one();  // all but the last step's right half
      free_stage(peer_empty, count - 1);
      store_half(out, left, &map_c, row, column);
      wgmma_wait_all();
      free_stage(peer_empty, count);
      count++;

      tile += clusters;
      if (tile >= tiles) {
        store_half(out, right, &map_c, row, column + HALF_N);
        break;
      }
      uint32_t stage = count % STAGES;
      mbarrier_wait_parity(&shared->full[stage], count / STAGES % 2);
      a = stage_a(shared, stage, warpgroup), b = stage_b(shared, stage);
      multiply_step(left, a, b, false);
      wgmma_commit();
      store_half(out, right, &map_c, row, column + HALF_N);
      multiply_step(right, a, b + RIGHT, false);
      wgmma_commit();
      count++;
    }
    if (lane == 0) bulk_wait_group_read<0>();  // shared memory must outlive the last stores
  }
}

static TileOrder tile_order(const LadderProblem *p) {
  TileOrder order;
  order.rows = divide_up(p->m, TILE_M * CLUSTER);
  order.columns = divide_up(p->n, TILE_N);
  order.band = BAND;
  order.by_columns = 1;
  return order;
}

static void gemm_prepare(GemmPlan *plan) {
  LadderProblem *p = &plan->problem;
  plan->a = gemm_map("A", p->a, p->m, p->k, TILE_M, STEP_K);
  plan->b = gemm_map("B", p->b, p->n, p->k, SLICE, STEP_K);
  plan->c = gemm_map("C", p->c, p->m, p->n, 16, BOX_N);
  CUDA_CHECK(cudaFuncSetAttribute(overlapped_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  SHARED_BYTES));
  TileOrder order = tile_order(p);
  plan->blocks = persistent_blocks((const void *)overlapped_kernel, CLUSTER, THREADS, SHARED_BYTES,
                                   order.rows * order.columns, p->most_blocks);
}

static void gemm_launch(const GemmPlan *plan) {
  const LadderProblem *p = &plan->problem;
  overlapped_kernel<<<plan->blocks, THREADS, SHARED_BYTES>>>(plan->a, plan->b, plan->c,
                                                             tile_order(p), p->k);
}

int main(int argc, char **argv) {
  return gemm_program("overlapped_epilogue", argc, argv, gemm_prepare, gemm_launch, 2);
}
