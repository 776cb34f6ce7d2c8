/* gemm_parts.cuh: how clusters of gemm_persistent communicate through global memory. They exchange
 * parts of tiles that several of them compute (tile_shares.cuh), and they keep pace with each other.
 *
 * In `parts` each CTA has space for one tile of sums. A thread leaves its sums where the same thread
 * of the CTA that adds them up looks for them. Each warp has a flag that says that they are there; or, if TMA
 * is to load them, its CTA has a counter of such warps. */
#ifndef PIPELINED_GEMM_GEMM_PARTS_CUH
#define PIPELINED_GEMM_GEMM_PARTS_CUH

#include "gemm_types.cuh"

/* PTX ISA: st.release and ld.acquire. A reader that sees the value stored here also sees what had
 * been written before it. */
static __device__ __forceinline__ void gemm_st_release(uint32_t *global, uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(global), "r"(value) : "memory");
}

static __device__ __forceinline__ uint32_t gemm_ld_acquire(const uint32_t *global) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(global) : "memory");
  return value;
}

/* The space of one thread of a CTA for COLUMNS columns, beginning with `first_column`. Its next four
 * values are THREADS further. */
template <int THREADS, int TILE_N>
static __device__ __forceinline__ float4 *gemm_part(const GemmWork &work, uint32_t block,
                                                    int first_column, uint32_t thread) {
  return work.parts + (size_t)(block * (TILE_N / 8) + first_column / 8) * THREADS + thread;
}

template <int THREADS, int COLUMNS>
static __device__ __forceinline__ void gemm_give(float4 *to, const float *d) {
#pragma unroll
  for (int i = 0; i < COLUMNS / 8; i++) {
    to[i * THREADS] = make_float4(d[4 * i], d[4 * i + 1], d[4 * i + 2], d[4 * i + 3]);
  }
}

template <int THREADS, int COLUMNS>
static __device__ __forceinline__ void gemm_take(const float4 *from, float *d) {
  float4 part[COLUMNS / 8];
#pragma unroll
  for (int i = 0; i < COLUMNS / 8; i++) part[i] = __ldcg(&from[i * THREADS]);
#pragma unroll
  for (int i = 0; i < COLUMNS / 8; i++) {
    d[4 * i] += part[i].x, d[4 * i + 1] += part[i].y;
    d[4 * i + 2] += part[i].z, d[4 * i + 3] += part[i].w;
  }
}

/* Reports that a warp's part is there, or waits for it, once. */
static __device__ __forceinline__ void gemm_raise_flag(uint32_t *flag) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) gemm_st_release(flag, 1);
}

static __device__ __forceinline__ void gemm_wait_for_flag(uint32_t *flag) {
  if (threadIdx.x % 32 == 0) {
    while (gemm_ld_acquire(flag) == 0) {
    }
    *flag = 0; /* for the next launch */
  }
  __syncwarp();
}

/* The same for a part that TMA loads: the warps of a CTA count themselves, and the thread that will load the
 * part waits for all of them. */
static __device__ __forceinline__ void gemm_count_warp(uint32_t *counter) {
  fence_proxy_async();
  __syncwarp();
  if (threadIdx.x % 32 == 0) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
  }
}

static __device__ __forceinline__ void gemm_wait_for_warps(uint32_t *counter, uint32_t warps) {
  while (gemm_ld_acquire(counter) != warps) {
  }
  *counter = 0; /* for the next launch */
  fence_proxy_async();
}

/* Called by each cluster every GEMM_PACE steps: waits until all others have reached the place
 * where it was at the previous call. Otherwise, over thousands of steps, the clusters drift so far apart
 * that L2 loses what the first clusters have read before the last ones need it. Only the speed depends
 * on this wait: a cluster that has given up waiting once never waits again. */
constexpr int GEMM_PACE = 16, GEMM_PATIENCE = 100;

static __device__ __forceinline__ void gemm_keep_pace(const GemmWork &work, int tile, int step,
                                                      int *patience) {
  uint32_t times_a_tile = (work.shares.steps + GEMM_PACE - 1) / GEMM_PACE;
  uint32_t time = tile * times_a_tile + step / GEMM_PACE, workers = work.shares.workers;
  if (time + 1 < work.shares.whole * times_a_tile) {
    atomicAdd(work.pace, 1);
    int looks = 0;
    while (looks < *patience && *(volatile uint32_t *)work.pace < time * workers) looks++;
    if (looks == GEMM_PATIENCE) *patience = 0;
  } else if (atomicAdd(work.pace, 1) == (time + 1) * workers - 1) {
    *(volatile uint32_t *)work.pace = 0; /* the last cluster resets it for the next launch */
  }
}

#endif
