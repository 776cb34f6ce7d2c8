// pipelined_gemm: stores a tile during the next one, and shares the last tiles among all clusters.
//
//   tiled | serial | ring | producer_consumer | two_consumers | multicast | persistent |
//   tma_epilogue | overlapped_epilogue | carried_tile | [pipelined_gemm]
//
// The tiles of the last full round and those left over are cut into equal shares (tile_shares.cuh), so two
// clusters may compute parts of one tile. The first leaves its sums in global memory, and raises a flag one step
// later, when they have had time to get there. The second adds them to its own and stores the tile. It
// has computed its other tiles first, so that it hardly ever waits for the flag. Parts are summed
// separately, so a shared tile may differ from carried_tile's in the last bit.
//
// library/gemm_carry.cuh has two more ideas: its clusters wait for each other now and then, so that they
// find more in L2, and the next launch may begin while this one ends.
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
#include "tile_shares.cuh"
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
  BOX_N = 64,                // of a store: 16 rows of 128 bytes
  QUARTERS = TILE_N / BOX_N,
  BOXES = 2,             // for each warp: one is filled while TMA reads the other
  CARRIED = TILE_N / 4,  // registers of a thread: 64 x 256 values of 16 bits in 128 threads
  CARRIED_OF_QUARTER = CARRIED / QUARTERS,
  LOAD_BYTES = (TILE_M + TILE_N) * STEP_K * 2,
  SUMS_OF_THREAD = TILE_N / 2,
  SUMS_STRIDE = CONSUMERS * 128,  // between two groups of four that a thread leaves
  SUMS_OF_BLOCK = SUMS_OF_THREAD / 4 * SUMS_STRIDE,
};

// Tiles first: each is a multiple of 1024 bytes, as the 128-byte swizzle requires.
typedef struct {
  uint16_t a[STAGES][TILE_M * STEP_K];
  uint16_t b[STAGES][TILE_N * STEP_K];
  uint16_t out[CONSUMER_WARPS][BOXES][16 * BOX_N];
  uint64_t full[STAGES];
  uint64_t empty[STAGES];
} Shared;
enum { SHARED_BYTES = sizeof(Shared) + 1024 };  // space to align in

// Leaves a thread's sums in global memory, where the same thread of the next cluster looks for them.
static __device__ __forceinline__ void give(float4 *sums, const float d[SUMS_OF_THREAD]) {
#pragma unroll
  for (int i = 0; i < SUMS_OF_THREAD / 4; i++) {
    sums[i * SUMS_STRIDE] = make_float4(d[4 * i], d[4 * i + 1], d[4 * i + 2], d[4 * i + 3]);
  }
}

static __device__ __forceinline__ void take(const float4 *sums, float d[SUMS_OF_THREAD]) {
#pragma unroll
  for (int i = 0; i < SUMS_OF_THREAD / 4; i++) {
    float4 four = __ldcg(&sums[i * SUMS_STRIDE]);
    d[4 * i] += four.x, d[4 * i + 1] += four.y, d[4 * i + 2] += four.z, d[4 * i + 3] += four.w;
  }
}

// A warp reports that its sums are there, or waits for those of the same warp in another block.
static __device__ __forceinline__ void raise_flag(uint32_t *flag) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) {
    asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
  }
}

static __device__ __forceinline__ void wait_for_flag(uint32_t *flag) {
  if (threadIdx.x % 32 == 0) {
    uint32_t raised = 0;
    while (!raised) {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(raised) : "l"(flag) : "memory");
    }
    *flag = 0;  // for the next launch
  }
  __syncwarp();
}

// Tells both blocks' producers that the stage of the step `count` may be filled again.
static __device__ __forceinline__ void free_stage(uint32_t peer_empty, uint32_t count) {
  if (threadIdx.x % 32 < CLUSTER) {
    mbarrier_arrive_cluster(peer_empty + count % STAGES * sizeof(uint64_t));
  }
}

// Waits for the stage of the step `count` and starts to multiply its 64 k.
static __device__ __forceinline__ void multiply_step(float d[SUMS_OF_THREAD], Shared *shared,
                                                     uint32_t count, uint32_t warpgroup,
                                                     bool accumulate) {
  uint32_t stage = count % STAGES;
  mbarrier_wait_parity(&shared->full[stage], count / STAGES % 2);
  uint64_t a = wgmma_descriptor_k_major(shared->a[stage] + warpgroup * 64 * STEP_K);
  uint64_t b = wgmma_descriptor_k_major(shared->b[stage]);
  wgmma_fence();
  for (int i = 0; i < STEP_K / 16; i++) {
    wgmma_m64n256k16(d, a + i * WGMMA_K_STEP, b + i * WGMMA_K_STEP, accumulate || i > 0);
  }
  wgmma_commit();
}

// A warp writes a quarter of its 16 rows: 64 columns, which begin at `column` of C.
static __device__ __forceinline__ void store_quarter(uint16_t box[16 * BOX_N],
                                                     const uint32_t carried[CARRIED_OF_QUARTER],
                                                     const CUtensorMap *map_c, int row,
                                                     int column) {
  int lane = threadIdx.x % 32;
  if (lane == 0) bulk_wait_group_read<BOXES - 1>();  // the store before last has read this box
  __syncwarp();
#pragma unroll
  for (int at = 0; at < BOX_N; at += 16) {
    // stmatrix: this lane's row of 16 bytes, at the place where the swizzle has it.
    uint32_t offset = lane % 16 * (BOX_N * 2) + (at + lane / 16 * 8) * 2;
    offset = swizzle_128b(offset);  // the box is aligned to 1,024 bytes
    const uint32_t *v = carried + at / 4;
    stmatrix_x4(shared_address(box) + offset, v[0], v[1], v[2], v[3]);
  }
  fence_proxy_async();
  __syncwarp();
  if (lane == 0) {
    tma_store_2d(map_c, box, column, row);
    bulk_commit_group();
  }
}

static __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    pipelined_kernel(const __grid_constant__ CUtensorMap map_a,
                     const __grid_constant__ CUtensorMap map_b,
                     const __grid_constant__ CUtensorMap map_c, TileOrder order, TileShares shares,
                     float4 *sums, uint32_t *flags) {
  extern __shared__ uint8_t dynamic_shared[];
  Shared *shared = (Shared *)align_1024(dynamic_shared);
  uint32_t rank = cluster_rank();
  int cluster = blockIdx.x / CLUSTER;
  TilePiece piece;

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; stage++) {
      mbarrier_init(&shared->full[stage], 1);
      mbarrier_init(&shared->empty[stage], CLUSTER * CONSUMER_WARPS);
    }
    fence_mbarrier_init();
  }
  cluster_sync();  // the peer's barriers must be there before anything is sent to them

  uint32_t warpgroup = threadIdx.x / 128, thread = threadIdx.x % 128;
  if (warpgroup == CONSUMERS) {
    setmaxnreg_producer();
    if (thread == 0) {
      uint32_t count = 0;  // of steps, over all tiles
      for (int i = 0; tile_piece(shares, cluster, i, &piece); i++) {
        TilePlace place = tile_place(order, piece.tile);
        int row = (place.row * CLUSTER + rank) * TILE_M, column = place.column * TILE_N;
        for (int step = piece.first; step < piece.end; step++, count++) {
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
    uint32_t lane = thread % 32, warp = threadIdx.x / 32;
    uint32_t peer_empty = lane < CLUSTER ? mapa_shared(shared->empty, lane) : 0;
    sums += (size_t)blockIdx.x * SUMS_OF_BLOCK + threadIdx.x;
    flags += blockIdx.x * CONSUMER_WARPS + warp;
    float d[SUMS_OF_THREAD];    // 64 x 256 sums in 128 threads
    uint32_t carried[CARRIED];  // those of the tile before, rounded
    bool carrying = false, given = false;
    int row = 0, column = 0;  // of the carried tile: this warp's first
    uint32_t count = 0;       // of steps, over all tiles
    for (int i = 0; tile_piece(shares, cluster, i, &piece); i++) {
#pragma unroll
      for (int step = 0; step < QUARTERS; step++, count++) {
        multiply_step(d, shared, count, warpgroup, step > 0);
        if (carrying) {  // while the tensor cores multiply
          store_quarter(shared->out[warp][step % BOXES], carried + step * CARRIED_OF_QUARTER,
                        &map_c, row, column + step * BOX_N);
        }
        if (step == 0 && given) raise_flag(flags);  // the sums have had time to get there
        if (step == 0) continue;
        wgmma_wait_all_but_one();
        free_stage(peer_empty, count - 1);
      }
      for (int step = piece.first + QUARTERS; step < piece.end; step++, count++) {
        multiply_step(d, shared, count, warpgroup, true);
        wgmma_wait_all_but_one();
        free_stage(peer_empty, count - 1);
      }
      TilePlace place = tile_place(order, piece.tile);
      row = (place.row * CLUSTER + rank) * TILE_M + warp * 16;
      column = place.column * TILE_N;
      wgmma_wait_all();
      free_stage(peer_empty, count - 1);
      given = piece.end < shares.steps;
      carrying = !given;
      if (given) give(sums, d);
      if (piece.first > 0) {
        wait_for_flag(flags - CLUSTER * CONSUMER_WARPS);
        take(sums - CLUSTER * SUMS_OF_BLOCK, d);
      }
#pragma unroll
      for (int j = 0; j < CARRIED; j++) carried[j] = pack_bf16(d[2 * j], d[2 * j + 1]);
    }
    // The last tile: no cluster ends with one that it gives.
#pragma unroll
    for (int i = 0; i < QUARTERS; i++) {
      store_quarter(shared->out[warp][i % BOXES], carried + i * CARRIED_OF_QUARTER, &map_c, row,
                    column + i * BOX_N);
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
  CUDA_CHECK(cudaFuncSetAttribute(pipelined_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  SHARED_BYTES));
  TileOrder order = tile_order(p);
  plan->blocks = persistent_blocks((const void *)pipelined_kernel, CLUSTER, THREADS, SHARED_BYTES,
                                   order.rows * order.columns, p->most_blocks);
  // Sums, and a flag for each consumer warp, which must be 0 before the first launch.
  size_t bytes =
      plan->blocks * (SUMS_OF_BLOCK * sizeof(float4) + CONSUMER_WARPS * sizeof(uint32_t));
  CUDA_CHECK(cudaMalloc(&plan->workspace, bytes));
  CUDA_CHECK(cudaMemset(plan->workspace, 0, bytes));
}

static void gemm_launch(const GemmPlan *plan) {
  TileOrder order = tile_order(&plan->problem);
  int steps = divide_up(plan->problem.k, STEP_K);
  if (steps < QUARTERS) steps = QUARTERS;  // what is loaded past the end of a row is 0
  TileShares shares =
      tile_shares(order.rows * order.columns, steps, plan->blocks / CLUSTER, share_cost(steps));
  float4 *sums = (float4 *)plan->workspace;
  uint32_t *flags = (uint32_t *)(sums + (size_t)plan->blocks * SUMS_OF_BLOCK);
  pipelined_kernel<<<plan->blocks, THREADS, SHARED_BYTES>>>(plan->a, plan->b, plan->c, order,
                                                            shares, sums, flags);
}

int main(int argc, char **argv) {
  return gemm_program("pipelined_gemm", argc, argv, gemm_prepare, gemm_launch, 2);
}
