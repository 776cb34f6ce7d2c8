/* fence_cases.cu: proxy fences for the memory that a copy uses, and for another one.
 *
 *   fence_cases          runs all, and prints for each its name and the rule that it breaks ("-": none)
 *   fence_cases NAME     runs one
 *
 * Each kernel is named after its case; `out` has 512 words. The test compares the list with what the
 * checker reports (emulator/tests/global.bats). */
#include "../../05_multicast/cluster.cuh"
#include "../../05_multicast/tma_multicast.cuh"
#include "cases.cuh"
#include "copies.cuh"
#include "device_memory.cuh"
#include "launch_clusters.cuh"

enum { THREADS = 128, BYTES = THREADS * 4, BLOCKS = 2 };

typedef void Kernel(int *out);
#define CASE(name, rule) CASE_OF(Kernel, name, rule, __global__ void, (int *out))

#define FENCE(text) asm volatile(text ";" ::: "memory")
#define NONE "fence.acq_rel.cta"  // none of a proxy

/* ---- A tile in shared memory, written by threads and copied to global memory ---- */
#define STORES(name, rule, ...)                             \
  CASE(name, rule) {                                        \
    __shared__ __align__(128) int tile[THREADS];            \
    tile[threadIdx.x] = (int)threadIdx.x;                   \
    __VA_ARGS__;                                            \
    __syncthreads();                                        \
    if (threadIdx.x == 0) store_and_wait(out, tile, BYTES); \
  }
STORES(store_unfenced, "missing-proxy-fence", FENCE(NONE))
STORES(store_fence_of_all, "-", FENCE("fence.proxy.async"))
STORES(store_fence_of_cta, "-", FENCE("fence.proxy.async.shared::cta"))
STORES(store_fence_of_cluster, "-", FENCE("fence.proxy.async.shared::cluster"))
STORES(store_fence_of_global, "missing-proxy-fence", FENCE("fence.proxy.async.global"))
STORES(store_fence_of_maps, "missing-proxy-fence",
       FENCE("fence.proxy.tensormap::generic.release.gpu"))
STORES(store_fence_of_aliases, "missing-proxy-fence", FENCE("fence.proxy.alias"))
STORES(store_fences_of_both, "-", FENCE("fence.proxy.async.global");
       FENCE("fence.proxy.async.shared::cta"))

/* The thread that issues the copy has the fence. */
#define STORES_BY_ISSUER(name, rule, fence)      \
  CASE(name, rule) {                             \
    __shared__ __align__(128) int tile[THREADS]; \
    tile[threadIdx.x] = (int)threadIdx.x;        \
    __syncthreads();                             \
    if (threadIdx.x != 0) return;                \
    FENCE(fence);                                \
    store_and_wait(out, tile, BYTES);            \
  }
STORES_BY_ISSUER(store_issuer_fence_of_cta, "-", "fence.proxy.async.shared::cta")
STORES_BY_ISSUER(store_issuer_fence_of_global, "missing-proxy-fence", "fence.proxy.async.global")

/* Another warp learns of the tile through a flag in global memory. */
static __device__ void set_flag(int *flag) {
  asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
}
static __device__ void wait_for_flag(const int *flag) {
  int seen;
  do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
  while (!seen);
}
#define STORES_BY_FLAG(name, rule, fence)            \
  CASE(name, rule) {                                 \
    __shared__ __align__(128) int tile[THREADS];     \
    if (threadIdx.x == 0)                            \
      for (int i = 0; i < THREADS; i++) tile[i] = i; \
    FENCE(fence);                                    \
    if (threadIdx.x == 0) set_flag(out + 256);       \
    if (threadIdx.x != 32) return;                   \
    wait_for_flag(out + 256);                        \
    store_and_wait(out, tile, BYTES);                \
  }
STORES_BY_FLAG(store_by_flag_fence_of_cta, "-", "fence.proxy.async.shared::cta")
STORES_BY_FLAG(store_by_flag_fence_of_global, "missing-proxy-fence", "fence.proxy.async.global")

/* ---- A copy over what threads have written ---- */
/* written: what they have written before, tile or out. */
#define LOADS_OF(name, rule, written, fence)                        \
  CASE(name, rule) {                                                \
    __shared__ __align__(128) int tile[THREADS];                    \
    __shared__ uint64_t full;                                       \
    begin_by_first(&full, 1);                                       \
    written[threadIdx.x] = (int)threadIdx.x;                        \
    FENCE(fence);                                                   \
    __syncthreads();                                                \
    if (threadIdx.x == 0) expect_and_load(tile, out, BYTES, &full); \
    mbarrier_wait_parity(&full, 0);                                 \
    out[THREADS + threadIdx.x] = tile[threadIdx.x];                 \
  }
#define LOADS_OVER(name, rule, fence) LOADS_OF(name, rule, tile, fence)
LOADS_OVER(over_fence_of_cta, "-", "fence.proxy.async.shared::cta")
LOADS_OVER(over_fence_of_global, "missing-proxy-fence", "fence.proxy.async.global")

/* ---- Words of global memory, written by threads and copied to shared memory ---- */
#define LOADS(name, rule, fence) LOADS_OF(name, rule, out, fence)
LOADS(load_unfenced, "missing-proxy-fence", NONE)
LOADS(load_fence_of_all, "-", "fence.proxy.async")
LOADS(load_fence_of_global, "-", "fence.proxy.async.global")
LOADS(load_fence_of_cta, "missing-proxy-fence", "fence.proxy.async.shared::cta")
LOADS(load_fence_of_cluster, "missing-proxy-fence", "fence.proxy.async.shared::cluster")

/* The same, written by another cluster. */
#define LOADS_OF_OTHERS(name, rule, fence)                 \
  CASE(name, rule) {                                       \
    __shared__ __align__(128) int tile[THREADS];           \
    __shared__ uint64_t full;                              \
    if (blockIdx.x == 0) {                                 \
      out[threadIdx.x] = (int)threadIdx.x;                 \
      FENCE(fence);                                        \
      __syncthreads();                                     \
      if (threadIdx.x == 0) set_flag(out + 256);           \
    } else if (blockIdx.x == BLOCKS && threadIdx.x == 0) { \
      begin_barrier(&full, 1);                             \
      wait_for_flag(out + 256);                            \
      expect_and_load(tile, out, BYTES, &full);            \
      mbarrier_wait_parity(&full, 0);                      \
      out[THREADS] = tile[5];                              \
    }                                                      \
  }
LOADS_OF_OTHERS(load_of_others_fence_of_global, "-", "fence.proxy.async.global")
LOADS_OF_OTHERS(load_of_others_fence_of_cta, "missing-proxy-fence", "fence.proxy.async.shared::cta")

/* ---- A tile in the memory of another block of the cluster ---- */
#define STORES_OF_PEERS(name, rule, fence, fence_of_owner)                                       \
  CASE(name, rule) {                                                                             \
    __shared__ __align__(128) int tile[THREADS];                                                 \
    bool owner = blockIdx.x % BLOCKS == 1;                                                       \
    cluster_sync(); /* all have begun */                                                         \
    if (!owner) {                                                                                \
      asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(mapa_shared(tile + threadIdx.x, 1)), \
                   "r"(threadIdx.x)                                                              \
                   : "memory");                                                                  \
      FENCE(fence);                                                                              \
    }                                                                                            \
    cluster_sync();                                                                              \
    if (owner && threadIdx.x == 0) {                                                             \
      FENCE(fence_of_owner);                                                                     \
      store_and_wait(out, tile, BYTES);                                                          \
    }                                                                                            \
  }
STORES_OF_PEERS(peer_unfenced, "missing-proxy-fence", NONE, NONE)
STORES_OF_PEERS(peer_fence_of_all, "-", "fence.proxy.async", NONE)
STORES_OF_PEERS(peer_fence_of_cluster, "-", "fence.proxy.async.shared::cluster", NONE)
STORES_OF_PEERS(peer_fence_of_cta, "missing-proxy-fence", "fence.proxy.async.shared::cta", NONE)
STORES_OF_PEERS(peer_fence_of_global, "missing-proxy-fence", "fence.proxy.async.global", NONE)
STORES_OF_PEERS(peer_fence_of_cta_by_the_owner, "-", NONE, "fence.proxy.async.shared::cta")
STORES_OF_PEERS(peer_fence_of_global_by_the_owner, "missing-proxy-fence", NONE,
                "fence.proxy.async.global")

/* ---- The init of a barrier ---- */
#define INITS(name, rule, fence)                    \
  CASE(name, rule) {                                \
    __shared__ __align__(128) int tile[THREADS];    \
    __shared__ uint64_t full;                       \
    if (threadIdx.x == 0) {                         \
      mbarrier_init(&full, 1);                      \
      FENCE(fence);                                 \
      expect_and_load(tile, out, BYTES, &full);     \
    }                                               \
    __syncthreads();                                \
    mbarrier_wait_parity(&full, 0);                 \
    out[THREADS + threadIdx.x] = tile[threadIdx.x]; \
  }
INITS(init_fence_of_cta, "-", "fence.proxy.async.shared::cta")
INITS(init_fence_of_global, "mbarrier-init-not-fenced", "fence.proxy.async.global")

/* A fence after the cluster barrier orders the init before what its own thread issues, not before what a peer sends to
 * this barrier: nothing orders the peer's copy after the fence. */
#define INITS_OF_PEERS(name, rule, before, after, mask)                                 \
  CASE(name, rule) {                                                                    \
    __shared__ __align__(128) int tile[THREADS];                                        \
    __shared__ uint64_t full;                                                           \
    uint32_t rank = blockIdx.x % BLOCKS, half = THREADS / 2 * rank;                     \
    if (threadIdx.x == 0) {                                                             \
      mbarrier_init(&full, 1);                                                          \
      FENCE(before);                                                                    \
    }                                                                                   \
    cluster_sync();                                                                     \
    if (threadIdx.x == 0) {                                                             \
      FENCE(after);                                                                     \
      uint32_t bytes = (mask) == 3 ? BYTES : BYTES / 2;                                 \
      mbarrier_arrive_expect_tx(&full, bytes);                                          \
      bulk_load_multicast(tile + half, out + half, BYTES / 2, &full, (uint16_t)(mask)); \
    }                                                                                   \
    mbarrier_wait_parity(&full, 0);                                                     \
    out[THREADS * (1 + rank) + threadIdx.x] = tile[(mask) == 3 ? threadIdx.x : half];   \
    cluster_sync();                                                                     \
  }
#define INIT_FENCE "fence.mbarrier_init.release.cluster"
INITS_OF_PEERS(peer_init_fence_first, "-", INIT_FENCE, NONE, 3)
INITS_OF_PEERS(peer_init_fence_after_cluster_sync, "mbarrier-init-not-fenced", NONE, INIT_FENCE, 3)
INITS_OF_PEERS(peer_init_fence_after_cluster_sync_own_copy, "-", NONE, INIT_FENCE, 1 << rank)
INITS_OF_PEERS(peer_init_no_fence_own_copy, "mbarrier-init-not-fenced", NONE, NONE, 1 << rank)

static void run_case(const Case<Kernel> *test, int *out) {
  bool cluster = strncmp(test->name, "peer_", 5) == 0;
  bool others = strncmp(test->name, "load_of_others", 14) == 0;
  CUDA_CHECK(cudaMemset(out, 0, 512 * sizeof *out));
  void *arguments[] = {&out};
  int blocks = cluster ? BLOCKS : others ? 2 * BLOCKS : 1;
  CUDA_CHECK(launch_clusters((const void *)test->run, blocks, cluster ? BLOCKS : 1, THREADS, 0,
                             arguments));
  CUDA_CHECK(cudaDeviceSynchronize());
  printf("%s %s\n", test->name, test->says);
}

int main(int argc, char **argv) {
  const Case<Kernel> *chosen = choose_case<Kernel>(argc, argv, true);
  int *out = device_memory<int>(512);
  if (chosen) run_case(chosen, out);
  for (const Case<Kernel> *test = Case<Kernel>::first; test && !chosen; test = test->next)
    run_case(test, out);
  return 0;
}
