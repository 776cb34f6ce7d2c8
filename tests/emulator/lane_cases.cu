/* lane_cases.cu: what lanes of a warp may and may not do without __syncwarp() (emulator_lanes.bats).
 *
 *   lane_cases CASE */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 32 };
static const char *const names[] = {"missing",
                                    "synced",
                                    "shuffle",
                                    "volatile",
                                    "one-place",
                                    "same-value",
                                    "atomics",
                                    "tiles",
                                    "read-first",
                                    "read-long-before",
                                    "read-long-before-synced",
                                    "flag",
                                    "volatile-alone",
                                    "read-modify-write",
                                    "block-barrier",
                                    "reduction",
                                    "flag-of-block",
                                    "global-missing",
                                    "global-synced",
                                    "global-shuffle",
                                    "global-one-place",
                                    "global-other-branch",
                                    "global-own",
                                    "rows",
                                    "rows-overwritten",
                                    "global-rows",
                                    "global-rows-overwritten",
                                    "global-members-by-some",
                                    "global-members-too-long",
                                    "barrier-init",
                                    "barrier-init-arrivals",
                                    "barrier-init-shuffle",
                                    "barrier-init-synced",
                                    "barrier-init-block-barrier",
                                    "barrier-own"};
enum Case {
  MISSING,
  SYNCED,
  SHUFFLE,
  VOLATILE,
  ONE_PLACE,
  SAME_VALUE,
  ATOMICS,
  TILES,
  READ_FIRST,
  READ_LONG_BEFORE,
  READ_LONG_BEFORE_SYNCED,
  FLAG,
  VOLATILE_ALONE,
  READ_MODIFY_WRITE,
  BLOCK_BARRIER,
  REDUCTION,
  FLAG_OF_BLOCK,
  GLOBAL_MISSING,
  GLOBAL_SYNCED,
  GLOBAL_SHUFFLE,
  GLOBAL_ONE_PLACE,
  GLOBAL_OTHER_BRANCH,
  GLOBAL_OWN,
  ROWS,
  ROWS_OVERWRITTEN,
  GLOBAL_ROWS,
  GLOBAL_ROWS_OVERWRITTEN,
  GLOBAL_MEMBERS_BY_SOME,
  GLOBAL_MEMBERS_TOO_LONG,
  BARRIER_INIT,
  BARRIER_INIT_ARRIVALS,
  BARRIER_INIT_SHUFFLE,
  BARRIER_INIT_SYNCED,
  BARRIER_INIT_BLOCK_BARRIER,
  BARRIER_OWN,
  CASES
};

static __device__ void wait_for(unsigned barrier) {
  asm volatile(
      "{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n\t"
      "@!p bra again; }" ::"r"(barrier)
      : "memory");
}

/* Some lanes store a member of their structures, and some, of which a few are the same, load another one; the
 * one after the last is the next lane's first. */
enum { MEMBERS = 3 };
static __device__ int use_members(int *all, int lane, int loaded) {
  int *own = all + lane * MEMBERS, value = 0;
  if (lane % 3) asm volatile("st.global.u32 [%0], %1;" ::"l"(own), "r"(lane));
  if (lane % 2) asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(own + loaded));
  return value;
}

/* Lane 0 initialises an mbarrier, and the warp waits for it. */
static __device__ void use_barrier(int lane, enum Case which) {
  __shared__ unsigned long long word;
  unsigned barrier = (unsigned)__cvta_generic_to_shared(&word);
  bool all_arrive = which == BARRIER_INIT_ARRIVALS || which == BARRIER_INIT_SYNCED;
  if (lane == 0)
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(all_arrive ? LANES : 1)
                 : "memory");
  if (which == BARRIER_INIT_SHUFFLE) __shfl_sync(0xffffffff, lane, 0);
  if (which == BARRIER_INIT_SYNCED) __syncwarp();
  if (which == BARRIER_INIT_BLOCK_BARRIER) __syncthreads();
  if (all_arrive || lane == 0)
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
  if (which != BARRIER_OWN || lane == 0) wait_for(barrier);
}

/* Two rows of 16 lanes, each with a margin; each lane reads its neighbours' values, then changes its
 * own. */
enum { ROW = LANES / 2, APART = 48 };
__device__ int average_rows(int *places, int lane, bool synced) {
  int *own = places + lane / ROW * APART + lane % ROW + 1;
  *own = lane;
  if (lane % ROW == 0) own[-1] = 0;
  if (lane % ROW == ROW - 1) own[1] = 0;
  __syncwarp();
  int sum = own[-1] + own[0] + own[1];
  if (synced) __syncwarp();
  *own = sum;
  __syncwarp();
  return sum;
}

__global__ void lanes(int *out, enum Case which) {
  __shared__ int s[LANES];
  __shared__ volatile int v[LANES];
  __shared__ int flag, rows[2 * APART];
  int lane = threadIdx.x, value = 0;
  if (lane == 0) flag = 0;
  s[lane] = lane;
  if (which != MISSING && which != SHUFFLE && which != BLOCK_BARRIER && which != TILES)
    __syncwarp();
  switch (which) {
    case SHUFFLE:
      value = __shfl_sync(~0u, lane, 3);
      /* fall through */
    case MISSING:
    case SYNCED:
      value += s[lane ^ 1];
      break;
    case BLOCK_BARRIER:
      __syncthreads();
      value = s[lane ^ 1];
      break;
    case REDUCTION: /* the same barrier in each round */
      for (int half = warpSize / 2; half > 0; half /= 2) {
        if (lane < half) s[lane] += s[lane + half];
        __syncthreads();
      }
      value = s[0];
      break;
    case FLAG_OF_BLOCK: /* the other lanes arrive at the barrier before lane 0 has written */
      for (int round = 0; round < 3; round++) {
        if (lane == 0) s[0] = atomicExch(out, round);
        asm volatile("barrier.sync 0;" ::: "memory");
        value += s[0];
        asm volatile("barrier.sync 0;" ::: "memory");
      }
      break;
    case GLOBAL_MISSING:
      out[lane] = lane;
      value = out[lane ^ 1];
      __syncwarp();
      break;
    case GLOBAL_SYNCED:
      out[lane] = lane;
      __syncwarp();
      value = out[lane ^ 1];
      __syncwarp();
      break;
    case GLOBAL_SHUFFLE:
      out[lane] = lane;
      value = __shfl_sync(~0u, lane, 3);
      value += out[lane ^ 1];
      __syncwarp();
      break;
    case GLOBAL_ONE_PLACE:
      out[lane / 2] = lane;
      __syncwarp();
      break;
    case GLOBAL_OTHER_BRANCH:
      if (lane < 16)
        out[lane] = lane;
      else
        value = out[lane - 16];
      __syncwarp();
      break;
    case GLOBAL_OWN: /* each lane its own element, and all one value */
      out[lane] = lane;
      out[lane] += value;
      __syncwarp();
      out[3] = 7;
      __syncwarp();
      break;
    case ROWS:
      value = average_rows(rows, lane, true);
      break;
    case ROWS_OVERWRITTEN:
      value = average_rows(rows, lane, false);
      break;
    case GLOBAL_ROWS:
      value = average_rows(out + LANES, lane, true);
      break;
    case GLOBAL_ROWS_OVERWRITTEN:
      value = average_rows(out + LANES, lane, false);
      break;
    case GLOBAL_MEMBERS_BY_SOME:
      value = use_members(out + LANES, lane, 1);
      break;
    case GLOBAL_MEMBERS_TOO_LONG:
      value = use_members(out + LANES, lane, MEMBERS);
      break;
    case BARRIER_INIT:
    case BARRIER_INIT_ARRIVALS:
    case BARRIER_INIT_SHUFFLE:
    case BARRIER_INIT_SYNCED:
    case BARRIER_INIT_BLOCK_BARRIER:
    case BARRIER_OWN:
      use_barrier(lane, which);
      break;
    case VOLATILE: /* as programs for GPUs before Volta do it */
      v[lane] = lane;
      value = v[lane ^ 16];
      break;
    case VOLATILE_ALONE:
      v[0] = 7;
      value = v[0];
      break;
    case ONE_PLACE:
      s[0] = lane;
      __syncwarp();
      value = s[0];
      break;
    case SAME_VALUE:
      if (lane % 3 == 0) s[5] = 77;
      if (lane % 3 == 1) s[5] = 77;
      break;
    case ATOMICS:
      atomicAdd(&s[0], lane);
      __syncwarp();
      value = s[0];
      break;
    case READ_MODIFY_WRITE:
      atomicAdd(&s[0], lane);
      value = s[0]; /* other lanes may not have added yet */
      break;
    case TILES: { /* two halves, each in order */
      unsigned half = lane < 16 ? 0xffff : 0xffff0000;
      __syncwarp(half);
      value = s[lane ^ 1];
      __syncwarp(half);
      s[lane ^ 2] = 3;
      break;
    }
    case READ_FIRST:
      value = s[0];
      if (lane == 9) s[0] = 1;
      break;
    case READ_LONG_BEFORE: /* with more reads in between than the checker writes down */
    case READ_LONG_BEFORE_SYNCED:
      value = s[0];
      for (int i = 0; i < 100; i++) value += s[1 + (unsigned)(lane + value) % (LANES - 1)];
      if (which == READ_LONG_BEFORE_SYNCED) __syncwarp();
      if (lane == 9) s[0] = value;
      break;
    case FLAG: /* release and acquire */
      if (lane == 0) {
        s[3] = 5;
        __threadfence_block();
        atomicExch(&flag, 1);
      } else if (lane == 1) {
        while (atomicAdd(&flag, 0) == 0) continue;
        __threadfence_block();
        value = s[3];
      }
      break;
    default:
      break;
  }
  out[lane] = value;
}

int main(int argc, char **argv) {
  int which = 0;
  while (which < CASES && (argc != 2 || strcmp(argv[1], names[which]))) which++;
  if (which == CASES) return fprintf(stderr, "usage: lane_cases CASE\n"), 2;
  int *out;
  enum { BYTES = (LANES + 2 * APART + MEMBERS) * sizeof(int) };
  if (cudaMalloc(&out, BYTES) != cudaSuccess) return 1;
  if (cudaMemset(out, 0, BYTES) != cudaSuccess) return 1;
  lanes<<<1, LANES>>>(out, (enum Case)which);
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
