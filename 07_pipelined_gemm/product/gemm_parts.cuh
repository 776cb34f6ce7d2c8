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

/* ---- Clusters of gemm_single that share the k range of a tile ----
 *
 * They share the sums too: each owns chunks of the tile's columns, gives away its sums of all other chunks, and
 * adds up its own. The flag of the first cluster's warp counts, in fields, the warps of all these clusters that
 *     have given their sums away | are done with the flag | gave up waiting, as one bit for each cluster.
 *
 * A cluster whose others do not even run yet must not wait for them: it could be in their place. So an
 * owner's patience ends. It then leaves its sums of its own chunks, too, and whoever is last sums them. */
constexpr uint32_t GEMM_GAVE = 1, GEMM_DONE = 1 << 8, GEMM_GAVE_UP = 1 << 16;
#ifndef PIPELINED_GEMM_LOOKS
#define PIPELINED_GEMM_LOOKS \
  4096 /* an owner's patience: so many looks at the flag, of about 0.5 us each */
#endif

/* PTX ISA: atom.add. Returns what was there. */
static __device__ __forceinline__ uint32_t gemm_add_acq_rel(uint32_t *global, uint32_t value) {
  uint32_t before;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(global), "r"(value)
               : "memory");
  return before;
}

static __device__ __forceinline__ bool gemm_all_gave(uint32_t flag, int groups) {
  return flag % GEMM_DONE == (uint32_t)groups;
}

/* A warp reports that it has given its sums away, and waits for the others if it owns chunks. Returns whose chunks
 * it must sum, as one bit for each cluster; 0 if its patience has ended, or if it owns none. */
static __device__ __forceinline__ uint32_t gemm_give_and_wait(uint32_t *flag, int group, int groups,
                                                              bool owns) {
  uint32_t takes = 0;
  __syncwarp(); /* all lanes have given */
  if (threadIdx.x % 32 == 0) {
    uint32_t now = gemm_add_acq_rel(flag, GEMM_GAVE) + GEMM_GAVE;
    if (gemm_all_gave(now, groups)) takes = now / GEMM_GAVE_UP; /* this warp is the last */
    for (int looks = 0; owns && looks < PIPELINED_GEMM_LOOKS && !gemm_all_gave(now, groups);
         looks++) {
      now = gemm_ld_acquire(flag);
    }
    if (owns && gemm_all_gave(now, groups)) takes |= 1u << group;
  }
  return __shfl_sync(0xFFFFFFFF, takes, 0);
}

/* A warp whose patience has ended has left the sums of its own chunks, too. Returns what it must sum after
 * all, if the others have come meanwhile. */
static __device__ __forceinline__ uint32_t gemm_give_up(uint32_t *flag, int group, int groups) {
  uint32_t takes = 0;
  __syncwarp(); /* all lanes have given */
  if (threadIdx.x % 32 == 0) {
    uint32_t before = gemm_add_acq_rel(flag, GEMM_GAVE_UP << group);
    if (gemm_all_gave(before, groups)) takes = 1u << group;
  }
  return __shfl_sync(0xFFFFFFFF, takes, 0);
}

/* A warp looks at its flag no more. Returns what gemm_clear_flag() needs. */
static __device__ __forceinline__ uint32_t gemm_be_done(uint32_t *flag) {
  uint32_t before = 0;
  if (threadIdx.x % 32 == 0) {
    asm volatile("atom.add.relaxed.gpu.global.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(flag), "r"(GEMM_DONE)
                 : "memory");
  }
  return before;
}

/* The last warp that is done with a flag clears it for the next launch. */
static __device__ __forceinline__ void gemm_clear_flag(uint32_t *flag, uint32_t before,
                                                       int groups) {
  uint32_t done = before / GEMM_DONE % (GEMM_GAVE_UP / GEMM_DONE) + 1;
  if (threadIdx.x % 32 == 0 && done == (uint32_t)groups) *flag = 0;
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
