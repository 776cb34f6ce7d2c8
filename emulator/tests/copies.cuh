/* copies.cuh: mbarriers that begin, bulk loads with what their mbarrier must be told before them, and stores to their end. */
#pragma once

#include "../../02_tma_load/tma_load.cuh"
#include "../../03_tma_store/tma_store.cuh"

/* By the thread that then issues a copy. */
static __device__ __forceinline__ void begin_barrier(uint64_t *barrier, uint32_t count) {
  mbarrier_init(barrier, count);
  fence_mbarrier_init();
}
/* By thread 0. The others may use the barrier after a __syncthreads() or a cluster_sync(). */
static __device__ __forceinline__ void begin_by_first(uint64_t *barrier, uint32_t count) {
  if (threadIdx.x == 0) begin_barrier(barrier, count);
}

static __device__ __forceinline__ void expect_and_load(void *tile, const void *from, uint32_t bytes,
                                                       uint64_t *barrier) {
  mbarrier_arrive_expect_tx(barrier, bytes);
  bulk_load(tile, from, bytes, barrier);
}

/* The first one, by one thread. The others may ask the barrier after a __syncthreads(). */
static __device__ __forceinline__ void init_and_load(void *tile, const void *from, uint32_t bytes,
                                                     uint64_t *barrier) {
  begin_barrier(barrier, 1);
  expect_and_load(tile, from, bytes, barrier);
}

/* Returns when what this thread has stored is in global memory. */
static __device__ __forceinline__ void finish_stores(void) {
  bulk_commit_group();
  bulk_wait_group<0>();
}
static __device__ __forceinline__ void store_and_wait(void *to, const void *tile, uint32_t bytes) {
  bulk_store(to, tile, bytes);
  finish_stores();
}
