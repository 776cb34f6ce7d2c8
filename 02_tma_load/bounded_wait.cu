// 02 tma_load, side program bounded_wait: a wait that gives up instead of hanging.
//
//   01 tiledcopy | [02 load] | 03 store | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// The most frequent mistake with TMA is a barrier that never completes: the kernel announces a wrong
// number of bytes, or one thread too few arrives. The kernel then hangs and says nothing. While you
// look for it, replace mbarrier_wait_parity by mbarrier_wait_parity_or_trap: after a set number of
// clocks it prints the barrier's phase and counts, and traps.
//
// Here one barrier works and three go wrong on purpose. A wait that gives up without a trap shows
// the state of each:
//
//   as it should be       over
//   too many bytes        gave up: phase 0, arrivals pending 0 of 1, bytes pending 16
//   too many arrivals     gave up: phase 0, arrivals pending 1 of 2, bytes pending 0
//   nothing announced     gave up: phase 0, arrivals pending 1 of 1, bytes pending -512
//
// With --trap the wait for the second one traps. That is an error of the whole process, and the
// exit code is 1:
//
//   thread 0 of block (0,0,0) waited 1000000 clocks for parity 0 and gives up
//   barrier 'full': phase of parity 0, 0 of 1 arrivals pending, 16 bytes pending
//     bytes pending: more was announced than the copies bring, or no copy was issued
#include <stdio.h>

#include "check.h"
#include "mbarrier_debug.cuh"
#include "tma_load.cuh"

enum { COPY_BYTES = 512, MOST_CLOCKS = 1000000 };

typedef struct {
  const char *name;
  uint32_t arrivals;  // given to mbarrier_init; one thread arrives, once, or never
  uint32_t announced_bytes;
  bool arrives;
  // what must be found:
  bool over;
  uint32_t pending_arrivals;
  int32_t pending_bytes;
} Mistake;

static const Mistake mistakes[] = {
    {"as it should be", 1, COPY_BYTES, true, true, 1, 0},
    {"too many bytes", 1, COPY_BYTES + 16, true, false, 0, 16},
    {"too many arrivals", 2, COPY_BYTES, true, false, 1, 0},
    {"nothing announced", 1, 0, false, false, 1, -COPY_BYTES},
};
enum { MISTAKES = sizeof mistakes / sizeof mistakes[0] };

typedef struct {
  bool over;
  MbarrierState state;
} Outcome;

__global__ void try_mistake(const uint8_t *source, Mistake mistake, bool trap, Outcome *outcome) {
  __shared__ alignas(128) uint8_t bytes[COPY_BYTES];
  __shared__ uint64_t full;

  mbarrier_init(&full, mistake.arrivals);
  fence_mbarrier_init();
  if (mistake.arrives) mbarrier_arrive_expect_tx(&full, mistake.announced_bytes);
  bulk_load(bytes, source, COPY_BYTES, &full);

  if (trap) mbarrier_wait_parity_or_trap(&full, 0, MOST_CLOCKS, "full");
  outcome->over = mbarrier_wait_parity_for(&full, 0, MOST_CLOCKS);
  outcome->state = mbarrier_last_state(&full);
}

int main(int argc, char **argv) {
  long trap = 0;
  Option options[] = {{"--trap", "wait with the variant that traps", &trap, 0, 0}};
  program_begin("bounded_wait", argc, argv, options, 1);

  uint8_t *source;
  Outcome *device_outcome;
  CUDA_CHECK(cudaMalloc(&source, COPY_BYTES));
  CUDA_CHECK(cudaMemset(source, 7, COPY_BYTES));
  CUDA_CHECK(cudaMalloc(&device_outcome, sizeof *device_outcome));

  for (int i = 0; i < MISTAKES; i++) {
    const Mistake *mistake = &mistakes[i];
    bool trap_now = trap && !mistake->over;
    try_mistake<<<1, 1>>>(source, *mistake, trap_now, device_outcome);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());  // after a trap this is where the error shows
    Outcome outcome;
    CUDA_CHECK(cudaMemcpy(&outcome, device_outcome, sizeof outcome, cudaMemcpyDeviceToHost));
    if (outcome.over) {
      printf("%-20s  over\n", mistake->name);
    } else {
      printf("%-20s  gave up: phase %u, arrivals pending %u of %u, bytes pending %d\n",
             mistake->name, outcome.state.phase_parity, outcome.state.pending_arrivals,
             outcome.state.phase_arrivals, outcome.state.pending_bytes);
    }
    check_that(outcome.over == mistake->over &&
                   outcome.state.pending_arrivals == mistake->pending_arrivals &&
                   outcome.state.pending_bytes == mistake->pending_bytes &&
                   outcome.state.phase_arrivals == mistake->arrivals,
               "%s: expected %s with %u arrivals and %d bytes pending", mistake->name,
               mistake->over ? "over" : "giving up", mistake->pending_arrivals,
               mistake->pending_bytes);
  }
  return program_end("%d barriers, their phase and counts when the wait ended", MISTAKES);
}
