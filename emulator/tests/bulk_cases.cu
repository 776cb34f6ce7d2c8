/* bulk_cases.cu: the asynchronous copies without a tensor map, every form once or more: cp.async,
 * its groups and its arrival at an mbarrier, cp.async.bulk in all directions, cp.reduce.async.bulk
 * with every pair of operation and type. Prints a digest of the memory after each. */
#include "recorded_cases.cuh"

enum { BYTES = 4096, THREADS = 128 };

#define PLAIN_CASES(X)                                \
  X(CA_4, "cp.async.ca 4")                            \
  X(CA_8, "cp.async.ca 8")                            \
  X(CA_16, "cp.async.ca 16")                          \
  X(CG_16, "cp.async.cg 16")                          \
  X(CA_SOURCE_BYTES, "cp.async.ca 16 of fewer bytes") \
  X(CG_SOURCE_BYTES, "cp.async.cg 16 of fewer bytes") \
  X(CG_IGNORE, "cp.async.cg ignore-src")              \
  X(GROUPS, "cp.async groups")                        \
  X(ARRIVE, "cp.async.mbarrier.arrive")               \
  X(ARRIVE_NOINC, "cp.async.mbarrier.arrive.noinc")   \
  X(BULK_LOAD, "bulk load")                           \
  X(BULK_LOAD_CLUSTER, "bulk load in a cluster")      \
  X(BULK_MULTICAST, "bulk multicast")                 \
  X(BULK_STORE, "bulk store")                         \
  X(BULK_STORE_READ, "bulk store, source reused")     \
  X(BULK_TO_PEER, "bulk copy to a peer")              \
  X(PREFETCH, "bulk prefetch")                        \
  X(FENCES, "fences")
#define NUMBER(kind, name) kind,
#define NAME_OF(kind, name) name,
enum { PLAIN_CASES(NUMBER) PLAIN_KINDS };
static const char *const plain_names[] = {PLAIN_CASES(NAME_OF)};

// clang-format off
#define TO_GLOBAL(X)                                                                         \
  X("add.u32") X("add.s32") X("add.u64") X("add.f32") X("add.f64")                           \
  X("add.noftz.f16") X("add.noftz.bf16") X("inc.u32") X("dec.u32")                           \
  X("min.u32") X("min.s32") X("min.u64") X("min.s64") X("min.f16") X("min.bf16")             \
  X("max.u32") X("max.s32") X("max.u64") X("max.s64") X("max.f16") X("max.bf16")             \
  X("and.b32") X("and.b64") X("or.b32") X("or.b64") X("xor.b32") X("xor.b64")
#define TO_PEER(X)                                                                           \
  X("add.u32") X("add.s32") X("add.u64") X("inc.u32") X("dec.u32") X("min.u32") X("min.s32") \
  X("max.u32") X("max.s32") X("and.b32") X("or.b32") X("xor.b32")
// clang-format on
#define NAME(form) form,
static const char *const global_names[] = {TO_GLOBAL(NAME)};
static const char *const peer_names[] = {TO_PEER(NAME)};
enum {
  GLOBAL_REDUCES = sizeof global_names / sizeof global_names[0],
  PEER_REDUCES = sizeof peer_names / sizeof peer_names[0],
  CASES = PLAIN_KINDS + GLOBAL_REDUCES + PEER_REDUCES
};

static __device__ void reduce_to_global(int which, uint8_t *to, unsigned from, unsigned bytes) {
  int i = 0;
#define REDUCE(form)                                                                            \
  if (which == i++)                                                                             \
    PTX("cp.reduce.async.bulk.global.shared::cta.bulk_group." form " [%0], [%1], %2;", "l"(to), \
        "r"(from), "r"(bytes));
  TO_GLOBAL(REDUCE)
#undef REDUCE
}

static __device__ void reduce_to_peer(int which, unsigned to, unsigned from, unsigned bytes,
                                      unsigned barrier) {
  int i = 0;
#define REDUCE(form)                                                                          \
  if (which == i++)                                                                           \
    PTX("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." form \
        " [%0], [%1], %2, [%3];",                                                             \
        "r"(to), "r"(from), "r"(bytes), "r"(barrier));
  TO_PEER(REDUCE)
#undef REDUCE
}

#define LOADS(space)                                                                       \
  do {                                                                                     \
    PTX("cp.async.bulk.shared::" space                                                     \
        ".global.mbarrier::complete_tx::bytes [%0], [%1], 16, [%2];",                      \
        "r"(at + 48), "l"(source + 16), "r"(bar));                                         \
    PTX("cp.async.bulk.shared::" space                                                     \
        ".global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], 2048, [%2], %3;", \
        "r"(at + 1040), "l"(source + 4000), "r"(bar), "l"(policy));                        \
  } while (0)

extern "C" __global__ void __cluster_dims__(2, 1, 1)
    run(int which, const uint8_t *source, const uint32_t *tile_words, uint8_t *global,
        uint32_t *out) {
  __shared__ __align__(128) uint8_t tile[BYTES];
  __shared__ __align__(8) uint64_t barrier;
  unsigned rank = cluster_rank(), at = shared_address(tile), bar = shared_address(&barrier);
  unsigned t = threadIdx.x;
  for (unsigned i = t; i < BYTES / 4; i += THREADS) ((uint32_t *)tile)[i] = tile_words[i];
  bool counted = which == ARRIVE_NOINC || which == ARRIVE;
  if (t == 0) {
    mbarrier_init(&barrier, counted ? THREADS : 1);
    fence_mbarrier_init();
  }
  fence_proxy_async();
  __syncthreads();
  cluster_sync();
  unsigned peer = mapa_shared(tile, rank ^ 1), peer_bar = mapa_shared(&barrier, rank ^ 1);
  unsigned expected = 0;
  unsigned long long policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  bool mine = rank == 0;
  if (mine || which >= PLAIN_KINDS) switch (which) {
      case CA_4:
        PTX("cp.async.ca.shared.global [%0], [%1], 4;", "r"(at + t * 8), "l"(source + t * 12));
        break;
      case CA_8:
        PTX("cp.async.ca.shared::cta.global.L2::64B [%0], [%1], 8;", "r"(at + t * 16),
            "l"(source + t * 8));
        break;
      case CA_16:
        PTX("cp.async.ca.shared.global.L2::128B [%0], [%1], 16;", "r"(at + t * 32),
            "l"(source + t * 16));
        break;
      case CG_16:
        PTX("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;", "r"(at + t * 16),
            "l"(source + t * 48 % 8192));
        break;
      case CA_SOURCE_BYTES:
        PTX("cp.async.ca.shared.global [%0], [%1], 16, %2;", "r"(at + t * 16), "l"(source + t * 16),
            "r"(t % 17));
        break;
      case CG_SOURCE_BYTES:
        PTX("cp.async.cg.shared.global [%0], [%1], 16, %2;", "r"(at + t * 32), "l"(source + t * 16),
            "r"(t % 5 * 4));
        break;
      case CG_IGNORE:
        PTX("{\n .reg .pred p;\n setp.ne.u32 p, %2, 0;\n cp.async.cg.shared.global [%0], [%1], 16, "
            "p;\n}",
            "r"(at + t * 32), "l"(source + t * 16), "r"(t % 3));
        break;
      case GROUPS:
        for (unsigned i = 0; i < 4; i++) {
          PTX("cp.async.ca.shared.global [%0], [%1], 4;", "r"(at + i * 512 + t * 4),
              "l"(source + (i * 131 + t) * 4));
          PTX("cp.async.commit_group;");
        }
        PTX("cp.async.wait_group 2;");
        ((uint32_t *)tile)[512 + t] = ((uint32_t *)tile)[t] ^ ((uint32_t *)tile)[128 + t];
        PTX("cp.async.wait_group 0;");
        ((uint32_t *)tile)[640 + t] = ((uint32_t *)tile)[256 + t] + ((uint32_t *)tile)[384 + t];
        break;
      case ARRIVE:
      case ARRIVE_NOINC:
        PTX("cp.async.cg.shared.global [%0], [%1], 16;", "r"(at + t * 16), "l"(source + t * 32));
        PTX("cp.async.ca.shared.global [%0], [%1], 4;", "r"(at + 2048 + t * 4),
            "l"(source + t * 4));
        if (which == ARRIVE) {
          PTX("cp.async.mbarrier.arrive.shared.b64 [%0];", "r"(bar));
          PTX("mbarrier.arrive.shared.b64 _, [%0];", "r"(bar));
        } else {
          PTX("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];", "r"(bar));
        }
        mbarrier_wait_parity(&barrier, 0);
        break;
      case BULK_LOAD:
      case BULK_LOAD_CLUSTER:
        expected = 16 + 2048;
        if (t == 0) {
          mbarrier_arrive_expect_tx(&barrier, expected);
          if (which == BULK_LOAD)
            LOADS("cta");
          else
            LOADS("cluster");
        }
        mbarrier_wait_parity(&barrier, 0);
        break;
      case BULK_STORE:
        if (t < 4) {
          PTX("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;", "l"(global + t * 1024),
              "r"(at + t * 512), "r"(512 - 16 * t));
          PTX("cp.async.bulk.commit_group;");
          PTX("cp.async.bulk.wait_group 0;");
        }
        break;
      case BULK_STORE_READ:
        if (t == 0) {
          for (unsigned i = 0; i < 3; i++) {
            PTX("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], 256, %2;",
                "l"(global + i * 256), "r"(at), "l"(policy));
            PTX("cp.async.bulk.commit_group;");
            PTX("cp.async.bulk.wait_group.read 0;");
            for (unsigned j = 0; j < 64; j++) ((uint32_t *)tile)[j] += 1;
            PTX("fence.proxy.async.shared::cta;");
          }
          PTX("cp.async.bulk.wait_group 0;");
        }
        break;
      case PREFETCH:
        PTX("cp.async.bulk.prefetch.L2.global [%0], 512;", "l"(source));
        PTX("cp.async.bulk.prefetch.L2.global.L2::cache_hint [%0], 512, %1;", "l"(source),
            "l"(policy));
        break;
      case FENCES:
        PTX("fence.sc.cta; fence.acq_rel.cluster; fence.acq_rel.gpu; fence.sc.sys; membar.cta; "
            "membar.gl; membar.sys;");
        PTX("fence.proxy.alias; fence.proxy.async; fence.proxy.async.global; "
            "fence.proxy.async.shared::cta; fence.proxy.async.shared::cluster;");
        PTX("fence.proxy.tensormap::generic.release.gpu; "
            "fence.proxy.tensormap::generic.acquire.gpu [%0], 128;",
            "l"(global));
        PTX("fence.acquire.sync_restrict::shared::cluster.cluster; "
            "fence.release.sync_restrict::shared::cta.cluster;");
        PTX("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster; "
            "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;");
        PTX("fence.acquire.cta; fence.release.gpu;");
        break;
      default:
        break;
    }
  if (which <= CG_IGNORE) PTX("cp.async.wait_all;");
  if (which == BULK_MULTICAST && t == 0) {
    mbarrier_arrive_expect_tx(&barrier, 1024);
    if (mine)
      PTX("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
          "[%0], [%1], 1024, [%2], %3;",
          "r"(at + 256), "l"(source + 32), "r"(bar), "h"((unsigned short)3));
  }
  if (which == BULK_TO_PEER && t == 0) {
    mbarrier_arrive_expect_tx(&barrier, 512);
    PTX("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 512, "
        "[%2];",
        "r"(peer + 2048 + 512 * rank), "r"(at + 128 * rank), "r"(peer_bar));
  }
  if (which >= PLAIN_KINDS && which < PLAIN_KINDS + GLOBAL_REDUCES && mine && t == 0) {
    reduce_to_global(which - PLAIN_KINDS, global + 64, at, 2048);
    PTX("cp.async.bulk.commit_group;");
    PTX("cp.async.bulk.wait_group 0;");
  }
  bool to_peer = which >= PLAIN_KINDS + GLOBAL_REDUCES;
  if (to_peer && t == 0) {
    mbarrier_arrive_expect_tx(&barrier, 1024);
    reduce_to_peer(which - PLAIN_KINDS - GLOBAL_REDUCES, peer + 2048, at + 256 * rank, 1024,
                   peer_bar);
  }
  if (which == BULK_MULTICAST || which == BULK_TO_PEER || to_peer)
    mbarrier_wait_parity(&barrier, 0);
  __syncthreads();
  cluster_sync();
  for (unsigned i = t; i < BYTES / 4; i += THREADS)
    out[rank * BYTES / 4 + i] = ((uint32_t *)tile)[i];
}

static void run_one(int i) {
  static uint32_t words[2 * BYTES], host_out[BYTES / 2], host_global[BYTES];
  uint8_t *source, *global;
  uint32_t *tile_words, *out;
  need(cudaMalloc((void **)&source, sizeof words), "cudaMalloc");
  need(cudaMalloc((void **)&global, sizeof host_global), "cudaMalloc");
  need(cudaMalloc((void **)&tile_words, BYTES), "cudaMalloc");
  need(cudaMalloc((void **)&out, sizeof host_out), "cudaMalloc");
  int reduce = i - (int)PLAIN_KINDS, to_peer = reduce - (int)GLOBAL_REDUCES;
  char name[80];
  snprintf(name, sizeof name, "%s%s",
           to_peer >= 0  ? "bulk reduce to a peer "
           : reduce >= 0 ? "bulk reduce to global "
                         : "",
           to_peer >= 0  ? peer_names[to_peer]
           : reduce >= 0 ? global_names[reduce]
                         : plain_names[i]);
  uint64_t hash = 0;
  /* Four kinds of numbers: any bits, neighbouring exponents, subnormal ones, infinities and NaN. */
  for (int values = 0; values < 4; values++) {
    static const uint32_t masks[4] = {0xffffffffu, 0xc7ffc7ffu, 0x83ff83ffu, 0xffffffffu};
    static const uint32_t bits[4] = {0, 0, 0, 0x7f807c00u};
    for (unsigned j = 0; j < 2 * BYTES; j++)
      words[j] = ((uint32_t)mix(j + 77777u * (unsigned)values) & masks[values]) | bits[values];
    need(cudaMemcpy(source, words, sizeof words, cudaMemcpyHostToDevice), "cudaMemcpy");
    need(cudaMemcpy(tile_words, words + 3000, BYTES, cudaMemcpyHostToDevice), "cudaMemcpy");
    need(cudaMemcpy(global, words + 1000, sizeof host_global, cudaMemcpyHostToDevice),
         "cudaMemcpy");
    run<<<2, THREADS>>>(i, source, tile_words, global, out);
    need(cudaGetLastError(), "launch");
    cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) {
      printf("%s: %s\n", name, cudaGetErrorName(error));
      return;
    }
    need(cudaMemcpy(host_out, out, sizeof host_out, cudaMemcpyDeviceToHost), "cudaMemcpy");
    need(cudaMemcpy(host_global, global, sizeof host_global, cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (unsigned j = 0; j < sizeof host_out / 4; j++) hash = mix(hash ^ host_out[j]) + 1;
    for (unsigned j = 0; j < BYTES; j++) hash = mix(hash ^ host_global[j]) + 1;
    printf("%s, numbers %d: %016llx\n", name, values, (unsigned long long)hash);
  }
}

int main(void) {
  for (int i = 0; i < CASES; i++) run_in_child(run_one, i);
  return 0;
}
