/* bulk_loads.cuh: a bulk load, and what its mbarrier must be told before it. */
#ifndef TESTS_BULK_LOADS_CUH
#define TESTS_BULK_LOADS_CUH

#include "../../02_tma_load/tma_load.cuh"

static __device__ __forceinline__ void expect_and_load(void *tile, const void *from, uint32_t bytes,
                                                       uint64_t *barrier) {
  mbarrier_arrive_expect_tx(barrier, bytes);
  bulk_load(tile, from, bytes, barrier);
}

/* The first one, by one thread. The others may ask the barrier after a __syncthreads(). */
static __device__ __forceinline__ void init_and_load(void *tile, const void *from, uint32_t bytes,
                                                     uint64_t *barrier) {
  mbarrier_init(barrier, 1);
  fence_mbarrier_init();
  expect_and_load(tile, from, bytes, barrier);
}

#endif
