// lane_order: does a lane see what another lane of its warp has stored in a branch? Counts the reads
// that found the old value.
//   lane_order in-the-other-branch|after-the-branch|after-a-shuffle|after-syncwarp
// An NVIDIA H200 printed 16000, 14000, 14000 and 0 of 16000 on 22 November 2026: a shuffle brings
// lanes together, but what they stored before it may come later.

#include "cases.cuh"
#include "device_memory.cuh"

enum { ROUNDS = 1000, LANES = 32 };
typedef enum { IN_THE_OTHER_BRANCH, AFTER_THE_BRANCH, AFTER_A_SHUFFLE, AFTER_SYNCWARP } Place;
static const char *const PLACES[] = {"in-the-other-branch", "after-the-branch", "after-a-shuffle",
                                     "after-syncwarp"};

// The lower half of the warp stores, some rounds late; the upper half reads.
__global__ void exchange(int *old_reads, int rounds, Place place) {
  __shared__ int stored[LANES];
  int lane = threadIdx.x, old = 0;
  bool reads = lane >= LANES / 2;
  for (int round = 1; round <= rounds; round++) {
    stored[lane] = 0;
    __syncwarp();
    if (!reads) {
      for (int i = 0; i < (round & 7) * 20; i++) asm volatile("nanosleep.u32 10;");
      stored[lane] = round;
    } else if (place == IN_THE_OTHER_BRANCH) {
      old += stored[lane - LANES / 2] != round;
    }
    int expected = round;
    if (place == AFTER_A_SHUFFLE) expected = __shfl_sync(~0u, round, 0);
    if (place == AFTER_SYNCWARP) __syncwarp();
    if (place != IN_THE_OTHER_BRANCH && reads) old += stored[lane - LANES / 2] != expected;
    __syncwarp();
  }
  atomicAdd(old_reads, old);
}

int main(int argc, char **argv) {
  const int place = choose_of(PLACES, argc, argv);
  int rounds = argc > 2 ? atoi(argv[2]) : ROUNDS, found;
  if (rounds < 1 || rounds > ROUNDS) {
    fprintf(stderr, "lane_order: ROUNDS is '%s', but must be 1 to %d\n", argv[2], ROUNDS);
    return 2;
  }
  int *old_reads = device_filled<int>(1, 0);
  exchange<<<1, LANES>>>(old_reads, rounds, (Place)place);
  CUDA_CHECK(cudaMemcpy(&found, old_reads, sizeof found, cudaMemcpyDeviceToHost));
  printf("%d of %d reads old\n", found, rounds * LANES / 2);
  return 0;
}
