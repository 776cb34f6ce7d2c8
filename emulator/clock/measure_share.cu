// measure_share: how long after one SM another of its cluster can ask L2 for a line and still share the
// answer. ncu counts the sectors that L2 served, launch by launch; measure.sh runs it and parameters.py
// finds the delay beyond which both SMs are served.
//
//   ncu --metrics lts__t_sectors_op_read.sum build/emulator_clock/measure_share
#include <stdint.h>
#include <stdio.h>

#include "../../02_tma_load/mbarrier.cuh"
#include "../../02_tma_load/tma_load.cuh"
#include "../../05_multicast/cluster.cuh"
#include "check.h"

enum { COPIES = 1024, COPY_BYTES = 1024, MOST_DELAY = 800, DELAY_STEP = 40 };

// Both SMs copy the same lines, one `delay` clocks after the other; below zero: the first one waits.
static __global__ void __cluster_dims__(2, 1, 1) share_kernel(const uint8_t *lines, int delay) {
  __shared__ __align__(128) uint8_t tile[COPY_BYTES];
  __shared__ uint64_t barrier;
  mbarrier_init(&barrier, 1);
  fence_mbarrier_init();
  int mine = cluster_rank() == 0 ? -delay : delay;
  for (int i = 0; i < COPIES; i++) {
    cluster_sync();
    int64_t begin = clock64();
    while (clock64() - begin < mine) {
    }
    mbarrier_arrive_expect_tx(&barrier, COPY_BYTES);
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(tile)),
        "l"(lines + (size_t)i * COPY_BYTES), "r"(COPY_BYTES), "r"(shared_address(&barrier))
        : "memory");
    mbarrier_wait_parity(&barrier, (uint32_t)i & 1);
  }
  cluster_sync();
}

int main(int argc, char **argv) {
  program_begin("measure_share", argc, argv, NULL, 0);
  uint8_t *lines;
  CUDA_CHECK(cudaMalloc(&lines, (size_t)COPIES * COPY_BYTES));
  CUDA_CHECK(cudaMemset(lines, 1, (size_t)COPIES * COPY_BYTES));
  share_kernel<<<2, 1>>>(lines, 0);  // parameters.py leaves out the first: its lines come into L2
  for (int delay = -MOST_DELAY; delay <= MOST_DELAY; delay += DELAY_STEP)
    share_kernel<<<2, 1>>>(lines, delay);
  CUDA_CHECK(cudaDeviceSynchronize());
  printf("delays -%d to %d clocks in steps of %d\n", MOST_DELAY, MOST_DELAY, DELAY_STEP);
  return program_end("measured, not checked");
}
