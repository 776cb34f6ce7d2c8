/* global_race_copies.cuh: the kernels of global_races.cu in which copies go to or from global memory, or all blocks
 * read the same. */
#pragma once

/* ---- The copy engine ---- */
static __device__ unsigned shared_address(const void *at) {
  return (unsigned)__cvta_generic_to_shared(at);
}
static __device__ void fence_proxy_async(void) { asm volatile("fence.proxy.async;" ::: "memory"); }
static __device__ void bulk_store(int *to, const int *from, int bytes) {
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n\t"
      "cp.async.bulk.commit_group;" ::"l"(to),
      "r"(shared_address(from)), "r"(bytes)
      : "memory");
}
static __device__ void bulk_add(int *to, const int *from, int bytes) {
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;\n\t"
      "cp.async.bulk.commit_group;" ::"l"(to),
      "r"(shared_address(from)), "r"(bytes)
      : "memory");
}
static __device__ void bulk_wait(void) { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
static __device__ void bulk_wait_read(void) {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
static __device__ void barrier_init(unsigned long long *barrier) {
  asm volatile("mbarrier.init.shared.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(
                   shared_address(barrier))
               : "memory");
}
static __device__ void bulk_load(int *to, const int *from, int bytes, unsigned long long *barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];" ::"r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}
static __device__ void barrier_wait(unsigned long long *barrier) {
  asm volatile(
      "{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n\t"
      "@!p bra again; }" ::"r"(shared_address(barrier))
      : "memory");
}
#define TILE __shared__ __align__(128) int tile[THREADS]
#define BARRIER __shared__ unsigned long long barrier
#define FILL_TILE              \
  tile[threadIdx.x] = (int)ME; \
  fence_proxy_async();         \
  __syncthreads()

KERNEL(bulk_store_awaited) {
  TILE;
  FILL_TILE;
  if (threadIdx.x == 0) {
    bulk_store(&data[blockIdx.x * THREADS], tile, sizeof tile);
    bulk_wait();
  }
  __syncthreads();
  flags[ME] = data[ME];
}
KERNEL(bulk_store_read_elsewhere) {
  TILE;
  FILL_TILE;
  if (threadIdx.x == 0) {
    bulk_store(&data[blockIdx.x * THREADS], tile, sizeof tile);
    bulk_wait_read();
  }
  __syncthreads();
  if (threadIdx.x >= 32) flags[ME] = data[ME];
}
KERNEL(bulk_stores_to_one_place) {
  TILE;
  FILL_TILE;
  if (threadIdx.x == 0) {
    bulk_store(data, tile, sizeof tile);
    bulk_wait();
  }
}
/* All store the same bytes. Equal plain stores are let pass; of copies one would be enough. */
KERNEL(equal_bulk_stores_to_one_place) {
  TILE;
  tile[threadIdx.x] = 1;
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    bulk_store(data, tile, sizeof tile);
    bulk_wait();
  }
}
KERNEL(bulk_adds_to_one_place) {
  TILE;
  FILL_TILE;
  if (threadIdx.x == 0) {
    bulk_add(data, tile, sizeof tile);
    bulk_wait();
  }
}
KERNEL(bulk_adds_and_a_store) {
  TILE;
  FILL_TILE;
  if (threadIdx.x == 0) {
    bulk_add(data, tile, sizeof tile);
    bulk_wait();
    if (blockIdx.x == 2) data[3] = 1;
  }
}
KERNEL(bulk_load_of_own_store) {
  TILE;
  BARRIER;
  data[ME] = (int)ME;
  if (threadIdx.x == 0) barrier_init(&barrier);
  __syncthreads();
  if (threadIdx.x == 0) bulk_load(tile, &data[blockIdx.x * THREADS], sizeof tile, &barrier);
  barrier_wait(&barrier);
  flags[ME] = tile[threadIdx.x];
}
KERNEL(bulk_load_of_fenced_store) {
  TILE;
  BARRIER;
  data[ME] = (int)ME;
  fence_proxy_async();
  if (threadIdx.x == 0) barrier_init(&barrier);
  __syncthreads();
  if (threadIdx.x == 0) bulk_load(tile, &data[blockIdx.x * THREADS], sizeof tile, &barrier);
  barrier_wait(&barrier);
  flags[ME] = tile[threadIdx.x];
}
KERNEL(bulk_load_overwritten) {
  TILE;
  BARRIER;
  if (threadIdx.x == 0) {
    barrier_init(&barrier);
    bulk_load(tile, &data[blockIdx.x * THREADS], sizeof tile, &barrier);
  }
  __syncthreads();
  if (threadIdx.x >= 32) data[ME] = 5;
  barrier_wait(&barrier);
}
KERNEL(bulk_load_awaited_and_overwritten) {
  TILE;
  BARRIER;
  if (threadIdx.x == 0) {
    barrier_init(&barrier);
    bulk_load(tile, &data[blockIdx.x * THREADS], sizeof tile, &barrier);
  }
  __syncthreads();
  barrier_wait(&barrier);
  data[ME] = tile[threadIdx.x] + 5;
}
KERNEL(bulk_load_of_other_block) {
  TILE;
  BARRIER;
  data[ME] = (int)ME;
  if (threadIdx.x == 0) {
    barrier_init(&barrier);
    bulk_load(tile, &data[(blockIdx.x + 1) % BLOCKS * THREADS], sizeof tile, &barrier);
  }
  __syncthreads();
  barrier_wait(&barrier);
}

/* ---- What all blocks read, in several ways, and one of them writes at last ---- */
static __device__ void copied_by_all(const int *data, int *flags) {
  TILE;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.wait_all;" ::"r"(
                   shared_address(&tile[threadIdx.x])),
               "l"(&data[threadIdx.x])
               : "memory");
  flags[ME] = tile[threadIdx.x];
}
static __device__ void last_block_writes(int *data) {
  if (blockIdx.x == BLOCKS - 1 && threadIdx.x == 5) data[5] = 7;
}
KERNEL(copied_by_all_blocks) { copied_by_all(data, flags); }
KERNEL(copied_by_all_blocks_and_written) {
  copied_by_all(data, flags);
  last_block_writes(data);
}
static __device__ void bulk_load_by_all(const int *data, int *flags) {
  TILE;
  BARRIER;
  if (threadIdx.x == 0) {
    barrier_init(&barrier);
    bulk_load(tile, data, sizeof tile, &barrier);
  }
  __syncthreads();
  barrier_wait(&barrier);
  flags[ME] = tile[threadIdx.x];
}
KERNEL(bulk_load_by_all_blocks) { bulk_load_by_all(data, flags); }
KERNEL(bulk_load_by_all_blocks_and_written) {
  bulk_load_by_all(data, flags);
  last_block_writes(data);
}
KERNEL(scattered_reads_by_all_blocks) { flags[ME] = data[threadIdx.x * 5 % THREADS]; }
KERNEL(scattered_reads_by_all_blocks_and_written) {
  flags[ME] = data[threadIdx.x * 5 % THREADS];
  last_block_writes(data);
}
/* Who reads it after the write races, too, whether or not others have read it before. */
KERNEL(written_by_first_and_read_by_all) {
  if (blockIdx.x == 0 && threadIdx.x == 5) data[5] = 7;
  flags[ME] = data[5] + data[threadIdx.x * 5 % THREADS];
}
