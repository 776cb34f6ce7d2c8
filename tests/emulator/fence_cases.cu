/* fence_cases.cu: proxy fences for the memory that a copy uses, and for another one.
 *
 *   fence_cases          runs all, and prints for each its name and the rule that it breaks ("-": none)
 *   fence_cases NAME     runs one
 *
 * Each kernel is named after its case; `out` has 512 words. The test compares the list with what the
 * checker reports (tests/emulator_global.bats). */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

enum { THREADS = 128, BYTES = THREADS * 4, BLOCKS = 2 };

#define FENCE(text) asm volatile(text ";" ::: "memory")
#define NONE "fence.acq_rel.cta"  // none of a proxy
#define SHARED(pointer) ((uint32_t)__cvta_generic_to_shared(pointer))

static __device__ void store_tile(int *out, const void *tile) {
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
      "cp.async.bulk.commit_group;\n"
      "cp.async.bulk.wait_group 0;"
      :
      : "l"(out), "r"(SHARED(tile)), "n"((int)BYTES)
      : "memory");
}

static __device__ void init_barrier(uint64_t *barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(SHARED(barrier)), "r"(count)
               : "memory");
}

static __device__ void load_tile(void *tile, const int *in, uint64_t *barrier) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %3;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%1], [%2], %3, [%0];"
      :
      : "r"(SHARED(barrier)), "r"(SHARED(tile)), "l"(in), "n"((int)BYTES)
      : "memory");
}

static __device__ void wait_barrier(uint64_t *barrier) {
  asm volatile(
      "{ .reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
      "@!done bra again; }" ::"r"(SHARED(barrier))
      : "memory");
}

static __device__ void meet_cluster(void) {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

/* ---- A tile in shared memory, written by threads and copied to global memory ---- */
#define STORES(name, ...)                        \
  __global__ void name(int *out) {               \
    __shared__ __align__(128) int tile[THREADS]; \
    tile[threadIdx.x] = (int)threadIdx.x;        \
    __VA_ARGS__;                                 \
    __syncthreads();                             \
    if (threadIdx.x == 0) store_tile(out, tile); \
  }
STORES(store_unfenced, FENCE(NONE))
STORES(store_fence_of_all, FENCE("fence.proxy.async"))
STORES(store_fence_of_cta, FENCE("fence.proxy.async.shared::cta"))
STORES(store_fence_of_cluster, FENCE("fence.proxy.async.shared::cluster"))
STORES(store_fence_of_global, FENCE("fence.proxy.async.global"))
STORES(store_fence_of_maps, FENCE("fence.proxy.tensormap::generic.release.gpu"))
STORES(store_fence_of_aliases, FENCE("fence.proxy.alias"))
STORES(store_fences_of_both, FENCE("fence.proxy.async.global");
       FENCE("fence.proxy.async.shared::cta"))

/* The thread that issues the copy has the fence. */
__global__ void store_issuer_fence_of_cta(int *out) {
  __shared__ __align__(128) int tile[THREADS];
  tile[threadIdx.x] = (int)threadIdx.x;
  __syncthreads();
  if (threadIdx.x != 0) return;
  FENCE("fence.proxy.async.shared::cta");
  store_tile(out, tile);
}
__global__ void store_issuer_fence_of_global(int *out) {
  __shared__ __align__(128) int tile[THREADS];
  tile[threadIdx.x] = (int)threadIdx.x;
  __syncthreads();
  if (threadIdx.x != 0) return;
  FENCE("fence.proxy.async.global");
  store_tile(out, tile);
}

/* Another warp learns of the tile through a flag in global memory. */
static __device__ void hand_on(int *out, int *tile) {
  if (threadIdx.x == 0) {
    asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(out + 256) : "memory");
  } else if (threadIdx.x == 32) {
    int seen;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(out + 256) : "memory");
    while (!seen);
    store_tile(out, tile);
  }
}
__global__ void store_by_flag_fence_of_cta(int *out) {
  __shared__ __align__(128) int tile[THREADS];
  if (threadIdx.x == 0)
    for (int i = 0; i < THREADS; i++) tile[i] = i;
  FENCE("fence.proxy.async.shared::cta");
  hand_on(out, tile);
}
__global__ void store_by_flag_fence_of_global(int *out) {
  __shared__ __align__(128) int tile[THREADS];
  if (threadIdx.x == 0)
    for (int i = 0; i < THREADS; i++) tile[i] = i;
  FENCE("fence.proxy.async.global");
  hand_on(out, tile);
}

/* ---- A copy over what threads have written ---- */
#define LOADS_OVER(name, fence)                        \
  __global__ void name(int *out) {                     \
    __shared__ __align__(128) int tile[THREADS];       \
    __shared__ uint64_t full;                          \
    if (threadIdx.x == 0) {                            \
      init_barrier(&full, 1);                          \
      FENCE("fence.mbarrier_init.release.cluster");    \
    }                                                  \
    tile[threadIdx.x] = (int)threadIdx.x;              \
    FENCE(fence);                                      \
    __syncthreads();                                   \
    if (threadIdx.x == 0) load_tile(tile, out, &full); \
    wait_barrier(&full);                               \
    out[THREADS + threadIdx.x] = tile[threadIdx.x];    \
  }
LOADS_OVER(over_fence_of_cta, "fence.proxy.async.shared::cta")
LOADS_OVER(over_fence_of_global, "fence.proxy.async.global")

/* ---- Words of global memory, written by threads and copied to shared memory ---- */
#define LOADS(name, fence)                             \
  __global__ void name(int *out) {                     \
    __shared__ __align__(128) int tile[THREADS];       \
    __shared__ uint64_t full;                          \
    if (threadIdx.x == 0) {                            \
      init_barrier(&full, 1);                          \
      FENCE("fence.mbarrier_init.release.cluster");    \
    }                                                  \
    out[threadIdx.x] = (int)threadIdx.x;               \
    FENCE(fence);                                      \
    __syncthreads();                                   \
    if (threadIdx.x == 0) load_tile(tile, out, &full); \
    wait_barrier(&full);                               \
    out[THREADS + threadIdx.x] = tile[threadIdx.x];    \
  }
LOADS(load_unfenced, NONE)
LOADS(load_fence_of_all, "fence.proxy.async")
LOADS(load_fence_of_global, "fence.proxy.async.global")
LOADS(load_fence_of_cta, "fence.proxy.async.shared::cta")
LOADS(load_fence_of_cluster, "fence.proxy.async.shared::cluster")

/* The same, written by another cluster. */
#define LOADS_OF_OTHERS(name, fence)                                                    \
  __global__ void name(int *out) {                                                      \
    __shared__ __align__(128) int tile[THREADS];                                        \
    __shared__ uint64_t full;                                                           \
    if (blockIdx.x < BLOCKS) {                                                          \
      if (blockIdx.x == 1) return;                                                      \
      out[threadIdx.x] = (int)threadIdx.x;                                              \
      FENCE(fence);                                                                     \
      __syncthreads();                                                                  \
      if (threadIdx.x == 0)                                                             \
        asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(out + 256) : "memory"); \
      return;                                                                           \
    }                                                                                   \
    if (blockIdx.x > BLOCKS || threadIdx.x != 0) return;                                \
    init_barrier(&full, 1);                                                             \
    FENCE("fence.mbarrier_init.release.cluster");                                       \
    int seen;                                                                           \
    do                                                                                  \
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"                                \
                   : "=r"(seen)                                                         \
                   : "l"(out + 256)                                                     \
                   : "memory");                                                         \
    while (!seen);                                                                      \
    load_tile(tile, out, &full);                                                        \
    wait_barrier(&full);                                                                \
    out[THREADS] = tile[5];                                                             \
  }
LOADS_OF_OTHERS(load_of_others_fence_of_global, "fence.proxy.async.global")
LOADS_OF_OTHERS(load_of_others_fence_of_cta, "fence.proxy.async.shared::cta")

/* ---- A tile in the memory of another block of the cluster ---- */
static __device__ void write_to_peer(int *tile) {
  asm volatile(
      "{ .reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, 1;\n"
      "st.shared::cluster.u32 [there], %1; }" ::"r"(SHARED(tile + threadIdx.x)),
      "r"(threadIdx.x)
      : "memory");
}
#define STORES_OF_PEERS(name, fence, fence_of_owner)        \
  __global__ void name(int *out) {                          \
    __shared__ __align__(128) int tile[THREADS];            \
    bool owner = blockIdx.x % BLOCKS == 1;                  \
    if (!owner) write_to_peer(tile);                        \
    if (!owner) FENCE(fence);                               \
    meet_cluster();                                         \
    if (owner && blockIdx.x < BLOCKS && threadIdx.x == 0) { \
      FENCE(fence_of_owner);                                \
      store_tile(out, tile);                                \
    }                                                       \
  }
STORES_OF_PEERS(peer_unfenced, NONE, NONE)
STORES_OF_PEERS(peer_fence_of_all, "fence.proxy.async", NONE)
STORES_OF_PEERS(peer_fence_of_cluster, "fence.proxy.async.shared::cluster", NONE)
STORES_OF_PEERS(peer_fence_of_cta, "fence.proxy.async.shared::cta", NONE)
STORES_OF_PEERS(peer_fence_of_global, "fence.proxy.async.global", NONE)
STORES_OF_PEERS(peer_fence_of_cta_by_the_owner, NONE, "fence.proxy.async.shared::cta")
STORES_OF_PEERS(peer_fence_of_global_by_the_owner, NONE, "fence.proxy.async.global")

/* ---- The init of a barrier ---- */
#define INITS(name, fence)                          \
  __global__ void name(int *out) {                  \
    __shared__ __align__(128) int tile[THREADS];    \
    __shared__ uint64_t full;                       \
    if (threadIdx.x == 0) {                         \
      init_barrier(&full, 1);                       \
      FENCE(fence);                                 \
      load_tile(tile, out, &full);                  \
    }                                               \
    __syncthreads();                                \
    wait_barrier(&full);                            \
    out[THREADS + threadIdx.x] = tile[threadIdx.x]; \
  }
INITS(init_fence_of_cta, "fence.proxy.async.shared::cta")
INITS(init_fence_of_global, "fence.proxy.async.global")

typedef struct {
  const char *name, *rule;
  void (*kernel)(int *);
} Case;
#define CASE(name, rule) \
  { #name, rule, name }
static const Case CASES[] = {
    CASE(store_unfenced, "missing-proxy-fence"),
    CASE(store_fence_of_all, "-"),
    CASE(store_fence_of_cta, "-"),
    CASE(store_fence_of_cluster, "-"),
    CASE(store_fence_of_global, "missing-proxy-fence"),
    CASE(store_fence_of_maps, "missing-proxy-fence"),
    CASE(store_fence_of_aliases, "missing-proxy-fence"),
    CASE(store_fences_of_both, "-"),
    CASE(store_issuer_fence_of_cta, "-"),
    CASE(store_issuer_fence_of_global, "missing-proxy-fence"),
    CASE(store_by_flag_fence_of_cta, "-"),
    CASE(store_by_flag_fence_of_global, "missing-proxy-fence"),
    CASE(over_fence_of_cta, "-"),
    CASE(over_fence_of_global, "missing-proxy-fence"),
    CASE(load_unfenced, "missing-proxy-fence"),
    CASE(load_fence_of_all, "-"),
    CASE(load_fence_of_global, "-"),
    CASE(load_fence_of_cta, "missing-proxy-fence"),
    CASE(load_fence_of_cluster, "missing-proxy-fence"),
    CASE(load_of_others_fence_of_global, "-"),
    CASE(load_of_others_fence_of_cta, "missing-proxy-fence"),
    CASE(peer_unfenced, "missing-proxy-fence"),
    CASE(peer_fence_of_all, "-"),
    CASE(peer_fence_of_cluster, "-"),
    CASE(peer_fence_of_cta, "missing-proxy-fence"),
    CASE(peer_fence_of_global, "missing-proxy-fence"),
    CASE(peer_fence_of_cta_by_the_owner, "-"),
    CASE(peer_fence_of_global_by_the_owner, "missing-proxy-fence"),
    CASE(init_fence_of_cta, "-"),
    CASE(init_fence_of_global, "mbarrier-init-not-fenced"),
};

static void run_case(const Case *test, int *out) {
  bool cluster = strncmp(test->name, "peer_", 5) == 0;
  bool others = strncmp(test->name, "load_of_others", 14) == 0;
  CUDA_CHECK(cudaMemset(out, 0, 512 * sizeof *out));
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {BLOCKS, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = cluster ? BLOCKS : others ? 2 * BLOCKS : 1;
  config.blockDim = THREADS;
  config.attrs = &attribute;
  config.numAttrs = cluster;
  CUDA_CHECK(cudaLaunchKernelEx(&config, test->kernel, out));
  CUDA_CHECK(cudaDeviceSynchronize());
  printf("%s %s\n", test->name, test->rule);
}

int main(int argc, char **argv) {
  int *out, ran = 0;
  CUDA_CHECK(cudaMalloc(&out, 512 * sizeof *out));
  for (const Case &test : CASES) {
    if (argc > 1 && strcmp(argv[1], test.name) != 0) continue;
    run_case(&test, out);
    ran++;
  }
  if (ran == 0) {
    fprintf(stderr, "fence_cases: there is no case %s\n", argv[1]);
    return 2;
  }
  return 0;
}
