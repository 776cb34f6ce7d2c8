// lane_fences.cu: proxy fences that some lanes of a warp execute, between what its lanes have written and a bulk store of it.
//
//   lane_fences CASE
//
// Cases that begin with fine_ are right: each write has a fence on its path to the copy. Without CASE: their names.
#include "cases.cuh"
#include "copies.cuh"
#include "device_memory.cuh"

enum { THREADS = 64, TILE_WORDS = THREADS, TILE_BYTES = TILE_WORDS * 4 };

typedef enum {
  LEFT_OUT,            // every thread fences, but not thread 7
  LEFT_OUT_ELSEWHERE,  // the same with thread 39, and thread 0 copies
  ONE_LANE,            // one lane of each warp fences, which no other one has met
  WRITES_LATER,        // all fence; then thread 7 writes once more, and thread 8 fences again
  LEFT_OUT_LOAD,       // thread 7 does not fence, and a load overwrites the tile
  FINE_ALL,
  FINE_LOAD,            // a load that overwrites the tile, behind all fences
  FINE_ONE_LANE,        // the same as ONE_LANE behind __syncwarp()
  FINE_ISSUER,          // thread 0 fences behind the barrier
  FINE_OTHER_ISSUER,    // thread 7 does not fence, but thread 32, which copies
  FINE_WRITERS,         // the lanes that write nothing do not fence
  FINE_TURNS,           // the halves of each warp, one after the other
  FINE_LATER,           // thread 7 fences after the others
  FINE_HALVES,          // each half meets, then its first lane fences
  FINE_THROUGH_BARRIER  // all arrive at an mbarrier; thread 0 waits, fences and copies
} Fences;
static const char *const NAMES[] = {
    "left_out",     "left_out_elsewhere", "one_lane",      "writes_later", "left_out_load",
    "fine_all",     "fine_load",          "fine_one_lane", "fine_issuer",  "fine_other_issuer",
    "fine_writers", "fine_turns",         "fine_later",    "fine_halves",  "fine_through_barrier"};

static __device__ void fence(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// The fences between the writes and the block's barrier.
static __device__ void fence_in(Fences which, uint32_t *tile) {
  const uint32_t thread = threadIdx.x, lane = thread % 32;
  if (which == LEFT_OUT || which == LEFT_OUT_LOAD || which == FINE_OTHER_ISSUER ||
      which == FINE_LATER) {
    if (thread != 7) fence();
    if (which == FINE_LATER && thread == 7) fence();
  } else if (which == LEFT_OUT_ELSEWHERE) {
    if (thread != 39) fence();
  } else if (which == ONE_LANE) {
    if (lane == 0) fence();
  } else if (which == FINE_ONE_LANE) {
    __syncwarp();
    if (lane == 0) fence();
  } else if (which == FINE_HALVES) {
    __syncwarp(0xffffu << (lane & 16));
    if (lane % 16 == 0) fence();
  } else if (which == FINE_ALL || which == FINE_LOAD || which == WRITES_LATER) {
    fence();
    if (which == WRITES_LATER && thread == 7) tile[7] = 8;
    if (which == WRITES_LATER && thread == 8) fence();
  } else if (which == FINE_WRITERS) {
    if (lane < 16) fence();
  }
}

static __device__ void meet(Fences which, uint64_t *barrier) {
  if (which != FINE_THROUGH_BARRIER) {
    __syncthreads();
    return;
  }
  mbarrier_arrive(barrier);
  if (threadIdx.x == 0) mbarrier_wait_parity(barrier, 0);
}

static __device__ void load_tile(uint32_t *tile, const uint32_t *from, uint64_t *barrier) {
  fence_mbarrier_init();
  expect_and_load(tile, from, TILE_BYTES, barrier);
  mbarrier_wait_parity(barrier, 0);
}

__global__ void copy_tile(Fences which, uint32_t *out) {
  __shared__ alignas(128) uint32_t tile[TILE_WORDS];
  __shared__ uint64_t barrier;
  const uint32_t thread = threadIdx.x, issuer = which == FINE_OTHER_ISSUER ? 32 : 0;
  const bool loads = which == LEFT_OUT_LOAD || which == FINE_LOAD;
  if (thread == 0) mbarrier_init(&barrier, loads ? 1 : THREADS);
  __syncthreads();
  if (which == FINE_WRITERS) {
    if (thread % 32 < 16) tile[thread] = thread, tile[thread + 16] = thread + 16;
  } else if (which == FINE_TURNS) {
    if (thread % 32 < 16) {
      tile[thread] = thread;
      fence();
    } else {
      tile[thread] = thread;
      fence();
    }
  } else {
    tile[thread] = thread;
  }
  fence_in(which, tile);
  meet(which, &barrier);
  if (loads) {
    if (thread == 0) load_tile(tile, out + TILE_WORDS, &barrier);
    out[thread] = thread;
  } else if (thread == issuer) {
    if (which == FINE_ISSUER || which == FINE_OTHER_ISSUER || which == FINE_THROUGH_BARRIER)
      fence();
    store_and_wait(out, tile, TILE_BYTES);
  }
}

int main(int argc, char **argv) {
  uint32_t host[TILE_WORDS] = {0}, sum = 0;
  const int which = choose_of(NAMES, argc, argv);
  uint32_t *out = device_filled<uint32_t>(2 * TILE_WORDS, 0);
  copy_tile<<<1, THREADS>>>((Fences)which, out);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  for (int i = 0; i < TILE_WORDS; i++) sum += host[i];
  printf("%s: sum %u\n", NAMES[which], sum);
  return 0;
}
