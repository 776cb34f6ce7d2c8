/* lane_cases.cu: what lanes of a warp may and may not do without __syncwarp() (lanes.bats). Plain accesses
 * of lanes in any pattern, with shuffles and barriers between, random_lanes.c draws.
 *
 *   lane_cases CASE */
#include "../../02_tma_load/mbarrier.cuh"
#include "cases.cuh"
#include "device_memory.cuh"

enum { LANES = 32 };

typedef void Kernel(int *out);
#define CASE(name) CASE_OF(Kernel, name, "", __global__ void, (int *out))
#define LANE ((int)threadIdx.x)

/* ---- Shared memory: each lane has stored its number ---- */
#define STORED             \
  __shared__ int s[LANES]; \
  s[LANE] = LANE

CASE(missing) {
  STORED;
  out[LANE] = s[LANE ^ 1];
}
CASE(shuffle) {
  STORED;
  out[LANE] = __shfl_sync(~0u, LANE, 3) + s[LANE ^ 1];
}
CASE(volatile_exchange) { /* as programs for GPUs before Volta do it */
  __shared__ volatile int v[LANES];
  v[LANE] = LANE;
  out[LANE] = v[LANE ^ 16];
}
CASE(volatile_alone) {
  __shared__ volatile int v;
  v = 7;
  out[LANE] = v;
}
CASE(one_place) {
  __shared__ int place;
  place = LANE;
  __syncwarp();
  out[LANE] = place;
}
CASE(same_value) {
  __shared__ int place;
  place = 77;
  if (LANE % 3 == 0) place = 77;
  if (LANE % 3 == 1) place = 77;
  __syncwarp();
  out[LANE] = place;
}
CASE(atomics) {
  STORED;
  __syncwarp();
  atomicAdd(&s[0], LANE);
  __syncwarp();
  out[LANE] = s[0];
}
CASE(read_modify_write) {
  STORED;
  __syncwarp();
  atomicAdd(&s[0], LANE);
  out[LANE] = s[0]; /* other lanes may not have added yet */
}
CASE(tiles) { /* two halves, each in order */
  STORED;
  unsigned half = LANE < 16 ? 0xffff : 0xffff0000;
  __syncwarp(half);
  out[LANE] = s[LANE ^ 1];
  __syncwarp(half);
  s[LANE ^ 2] = 3;
}
/* With more reads in between than the checker writes down. */
static __device__ void read_long_ago(int *out, bool synced) {
  STORED;
  __syncwarp();
  int value = s[0];
  for (int i = 0; i < 100; i++) value += s[1 + (unsigned)(LANE + value) % (LANES - 1)];
  if (synced) __syncwarp();
  if (LANE == 9) s[0] = value;
  out[LANE] = value;
}
CASE(read_long_before) { read_long_ago(out, false); }
CASE(read_long_before_synced) { read_long_ago(out, true); }
CASE(flag) { /* release and acquire */
  __shared__ int data, set;
  if (LANE == 0) set = 0;
  __syncwarp();
  if (LANE == 0) {
    data = 5;
    __threadfence_block();
    atomicExch(&set, 1);
  } else if (LANE == 1) {
    while (atomicAdd(&set, 0) == 0) continue;
    __threadfence_block();
    out[LANE] = data;
  }
}
CASE(reduction) { /* the same barrier in each round */
  STORED;
  __syncwarp();
  for (int half = warpSize / 2; half > 0; half /= 2) {
    if (LANE < half) s[LANE] += s[LANE + half];
    __syncthreads();
  }
  out[LANE] = s[0];
}
CASE(flag_of_block) { /* the other lanes arrive at the barrier before lane 0 has written */
  __shared__ int s;
  int value = 0;
  for (int round = 0; round < 3; round++) {
    if (LANE == 0) s = atomicExch(out, round);
    asm volatile("barrier.sync 0;" ::: "memory");
    value += s;
    asm volatile("barrier.sync 0;" ::: "memory");
  }
  out[LANE] = value;
}

/* ---- Global memory ---- */
CASE(global_missing) {
  out[LANE] = LANE;
  int value = out[LANE ^ 1];
  __syncwarp();
  out[LANE] = value;
}
CASE(global_shuffle) {
  out[LANE] = LANE;
  int value = __shfl_sync(~0u, LANE, 3) + out[LANE ^ 1];
  __syncwarp();
  out[LANE] = value;
}
CASE(global_one_place) { out[LANE / 2] = LANE; }
CASE(global_other_branch) {
  int value = 0;
  if (LANE < 16)
    out[LANE] = LANE;
  else
    value = out[LANE - 16];
  __syncwarp();
  out[LANE] = value;
}
CASE(global_own) { /* each lane its own element, and all one value */
  out[LANE] = LANE;
  out[LANE] += 1;
  __syncwarp();
  out[3] = 7;
}

/* ---- Two rows of 16 lanes, each with a margin; each lane reads its neighbours' values, then changes its own ---- */
enum { ROW = LANES / 2, APART = 48 };
static __device__ void average_rows(int *places, bool synced) {
  int *own = places + LANE / ROW * APART + LANE % ROW + 1;
  *own = LANE;
  if (LANE % ROW == 0) own[-1] = 0;
  if (LANE % ROW == ROW - 1) own[1] = 0;
  __syncwarp();
  int sum = own[-1] + own[0] + own[1];
  if (synced) __syncwarp();
  *own = sum;
}
static __device__ void average_shared_rows(int *out, bool synced) {
  __shared__ int rows[2 * APART];
  average_rows(rows, synced);
  out[LANE] = rows[LANE / ROW * APART + LANE % ROW + 1];
}
CASE(rows) { average_shared_rows(out, true); }
CASE(rows_overwritten) { average_shared_rows(out, false); }
CASE(global_rows) { average_rows(out, true); }
CASE(global_rows_overwritten) { average_rows(out, false); }

/* Some lanes store a member of their structures, and some, of which a few are the same, load another one; the
 * one after the last is the next lane's first. */
enum { MEMBERS = 3 };
static __device__ void use_members(int *out, int loaded) {
  int *own = out + LANES + LANE * MEMBERS, value = 0;
  if (LANE % 3) asm volatile("st.global.u32 [%0], %1;" ::"l"(own), "r"(LANE));
  if (LANE % 2) asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(own + loaded));
  out[LANE] = value;
}
CASE(global_members_by_some) { use_members(out, 1); }
CASE(global_members_too_long) { use_members(out, MEMBERS); }

/* ---- Lane 0 initialises an mbarrier, and the warp waits for it ---- */
typedef enum { NOTHING, SHUFFLE, SYNC_WARP, SYNC_BLOCK } Between;
static __device__ __forceinline__ void use_barrier(Between between, bool all_arrive,
                                                   bool others_wait) {
  __shared__ uint64_t barrier;
  if (LANE == 0) mbarrier_init(&barrier, all_arrive ? LANES : 1);
  if (between == SHUFFLE) __shfl_sync(~0u, LANE, 0);
  if (between == SYNC_WARP) __syncwarp();
  if (between == SYNC_BLOCK) __syncthreads();
  if (all_arrive || LANE == 0) mbarrier_arrive(&barrier);
  if (others_wait || LANE == 0) mbarrier_wait_parity(&barrier, 0);
}
CASE(barrier_init) { use_barrier(NOTHING, false, true); }
CASE(barrier_init_arrivals) { use_barrier(NOTHING, true, true); }
CASE(barrier_init_shuffle) { use_barrier(SHUFFLE, false, true); }
CASE(barrier_init_synced) { use_barrier(SYNC_WARP, true, true); }
CASE(barrier_init_block_barrier) { use_barrier(SYNC_BLOCK, false, true); }
CASE(barrier_own) { use_barrier(NOTHING, false, false); }

/* ---- The sum of what lanes have read, by shuffles, is stored over it (FlashInfer's RMSNorm does so). A sum of
 * all lanes cannot be stored before they have read; one of half of them can, and one of something else. Each
 * case has a kernel of its own, because only a straight line of code is followed. ---- */
template <int FIRST, bool OF_READ>
static __device__ __forceinline__ void store_sum(int *out) {
  STORED;
  __syncthreads();
  int read = LANE % 16 < 8 ? s[LANE % 16] : 0, sum = OF_READ ? read : LANE;
#pragma unroll
  for (int by = FIRST; by > 0; by /= 2) sum += __shfl_xor_sync(~0u, sum, by);
  s[0] = sum;
  __syncthreads();
  out[LANE] = s[0] + read;
}
CASE(sum_of_all) { store_sum<LANES / 2, true>(out); }
CASE(sum_of_half) { store_sum<LANES / 4, true>(out); }
CASE(sum_of_other) { store_sum<LANES / 2, false>(out); }

int main(int argc, char **argv) {
  const Case<Kernel> *chosen = choose_case<Kernel>(argc, argv);
  chosen->run<<<1, LANES>>>(device_filled<int>(LANES + 2 * APART + MEMBERS, 0));
  CUDA_CHECK(cudaDeviceSynchronize());
  return 0;
}
