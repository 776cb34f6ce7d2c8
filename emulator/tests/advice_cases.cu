// advice_cases: mistakes whose reports no pitfall and no other test shows, each with a twin that does literally
// what the report advises. The twins run silent (emulator/tests/advice.bats).
//   advice_cases CASE [followed]        advice_cases --list
#include "../../02_tma_load/mbarrier_counts.cuh"
#include "../../02_tma_load/tensormap.cuh"
#include "../../04_store_reduce/tma_reduce.cuh"
#include "../../05_multicast/cluster.cuh"
#include "../../05_multicast/tma_multicast.cuh"
#include "../../07_pipelined_gemm/wgmma.cuh"
#include "cases.cuh"
#include "copies.cuh"
#include "device_memory.cuh"
#include "ptx.cuh"

enum { THREADS = 128, WARP = 32, SIDE = 32, WORDS = 256, BYTES = WORDS * 4, STEPS = 2000 };

typedef struct {
  int *in, *out, *fresh;               // fresh: nothing has written it
  CUtensorMap swizzled, plain, hosts;  // hosts: of memory that only the host has
  bool followed;
} Given;

typedef void Kernel(Given given);
#define CASE(name, rule) \
  CASE_OF(Kernel, name, rule, __global__ void, (__grid_constant__ const Given given))
// Of two blocks, a cluster.
#define CASE_OF_PEERS(name, rule)                                  \
  CASE_OF(Kernel, name, rule, __global__ __cluster_dims__(2) void, \
          (__grid_constant__ const Given given))

// Steps that nobody waits for: the others come first.
__device__ void take_long(int *out) {
  for (int i = 0; i < STEPS; i++) atomicAdd(out, 0);
}

// ---- Copies ----

// A tile for the blocks of the mask, of which this one is the first. All threads wait for it.
static __device__ int *load_and_wait(const CUtensorMap *map, uint16_t mask) {
  __shared__ alignas(1024) int tile[SIDE * SIDE];
  __shared__ alignas(8) uint64_t full;
  if (threadIdx.x == 0) {
    begin_barrier(&full, 1);
    mbarrier_arrive_expect_tx(&full, sizeof tile);
    tma_load_2d_multicast(tile, map, 0, 0, &full, mask);
  }
  __syncthreads();
  mbarrier_wait_parity(&full, 0);
  return tile;
}
CASE(stored_without_swizzle, "swizzle-ignored") {
  int *tile = load_and_wait(&given.swizzled, 1);
  if (threadIdx.x) return;
  tma_store_2d(given.followed ? &given.swizzled : &given.plain, tile, 0, 0);
  finish_stores();
}
CASE(multicast_without_clusters, "multicast-mask") {
  load_and_wait(&given.swizzled, given.followed ? 1 : 3);
}
CASE(map_of_host_memory, "global-out-of-bounds") {
  load_and_wait(given.followed ? &given.swizzled : &given.hosts, 1);
}
CASE(map_acquired_by_another_lane, "tensormap-not-fenced") {
  __shared__ alignas(128) CUtensorMap map;
  if (threadIdx.x >= WARP) return;
  ((int *)&map)[threadIdx.x] = ((const int *)&given.swizzled)[threadIdx.x];
  __syncwarp();
  CUtensorMap *published = (CUtensorMap *)given.fresh;
  tensormap_publish(published, &map);
  if (threadIdx.x == 1) fence_proxy_tensormap_acquire(published);
  if (given.followed) __syncwarp();
  load_and_wait(published, 1);
}

// Two blocks, not of one cluster.
CASE(peers_publish_in_one_place, "global-race") {
  __shared__ alignas(128) CUtensorMap map;
  if (threadIdx.x >= WARP) return;
  ((int *)&map)[threadIdx.x] = ((const int *)&given.swizzled)[threadIdx.x];
  __syncwarp();
  if (threadIdx.x == 0) tensormap_replace_size<1>(&map, 1 + blockIdx.x);
  __syncwarp();
  CUtensorMap *published = (CUtensorMap *)given.fresh + (given.followed ? blockIdx.x : 0);
  tensormap_publish(published, &map);
  if (threadIdx.x == 0) fence_proxy_tensormap_acquire(published);
  load_and_wait(published, 1);
}

// The tile that the copy engine has swizzled is overwritten in plain rows, and stored before all are done.
CASE(stored_while_others_write, "copy-not-ordered") {
  int *tile = load_and_wait(&given.swizzled, 1);
  __syncthreads();
  for (int i = 0; i < SIDE * SIDE / THREADS; i++)
    tile[threadIdx.x / WARP * SIDE * SIDE / 4 + i * WARP + threadIdx.x % WARP] = i;
  fence_proxy_async();
  if (given.followed) __syncthreads();
  if (threadIdx.x) return;
  tma_store_2d(&given.plain, tile, 0, 0);
  finish_stores();
}

CASE(expected_by_luck, "stage-reused-too-early") {
  __shared__ alignas(16) int tile[WORDS];
  __shared__ alignas(8) uint64_t full;
  if (threadIdx.x) return;
  begin_barrier(&full, 1);
  for (int i = 0; i < 2; i++) {
    expect_and_load(tile, given.in, BYTES, &full);
    take_long(given.out);
    if (given.followed || i == 1) mbarrier_wait_parity(&full, i);
  }
  given.out[0] = tile[0];
}

CASE(refilled_too_early, "stage-reused-too-early") {
  __shared__ alignas(16) int tile[WORDS];
  __shared__ alignas(8) uint64_t full;
  begin_by_first(&full, 1);
  __syncthreads();
  for (int i = 0; i < 2; i++) {
    if (threadIdx.x == 0) expect_and_load(tile, given.in, BYTES, &full);
    mbarrier_wait_parity(&full, i);
    if (threadIdx.x > WARP) given.out[threadIdx.x] = tile[threadIdx.x];
    if (threadIdx.x == 0) take_long(given.out);
    if (given.followed) __syncthreads();
  }
}

CASE(reduced_into_fresh, "unwritten-memory-read") {
  __shared__ alignas(16) float tile[WORDS];
  for (int i = threadIdx.x; i < WORDS; i += THREADS) tile[i] = 1;
  if (given.followed)
    for (int i = threadIdx.x; i < WORDS; i += THREADS) given.fresh[i] = 0;
  fence_proxy_async();
  PTX("fence.proxy.async.global;");
  __syncthreads();
  if (threadIdx.x) return;
  bulk_reduce_add_f32((float *)given.fresh, tile, sizeof tile);
  finish_stores();
}

// The consumers announce the bytes themselves, so the producer arrives only to say that it has asked for
// a free tile. The order of two of its phases comes from the bytes of the copy between them.
CASE(announced_by_consumers, "too-many-arrivals") {
  enum { CONSUMERS = THREADS / 2 };
  __shared__ alignas(16) int tile[WORDS];
  __shared__ alignas(8) uint64_t produced, consumed;
  begin_by_first(&produced, CONSUMERS);
  begin_by_first(&consumed, CONSUMERS + (given.followed ? 1 : 0));
  __syncthreads();
  if (threadIdx.x >= CONSUMERS) mbarrier_arrive(&consumed);
  for (int round = 0; round < 3; round++) {
    if (threadIdx.x >= CONSUMERS) {
      mbarrier_arrive_expect_tx(&produced, BYTES / CONSUMERS);
      mbarrier_wait_parity(&produced, round & 1);
      given.out[threadIdx.x] = tile[threadIdx.x];
      mbarrier_arrive(&consumed);
    } else if (threadIdx.x == 0) {
      mbarrier_arrive(&consumed);
      mbarrier_wait_parity(&consumed, round & 1);
      bulk_load(tile, given.in, BYTES, &produced);
    }
  }
}

// ---- Waits and arrivals at a wrong barrier, or for a wrong parity ----

// The barriers of a ring of two, initialised by one line.
static __device__ void init_two(uint64_t *barriers, uint32_t count) {
  for (int i = 0; i < 2 && threadIdx.x == 0; i++) mbarrier_init(&barriers[i], count);
  fence_mbarrier_init();
  __syncthreads();
}

CASE(expects_at_the_next, "stage-reused-too-early") {
  __shared__ alignas(16) int tiles[2][WORDS];
  __shared__ alignas(8) uint64_t full[2];
  init_two(full, 1);
  for (int i = 0; i < 2 && threadIdx.x == 0; i++) {
    mbarrier_arrive_expect_tx(&full[given.followed ? i : 1], BYTES);
    bulk_load(tiles[i], given.in, BYTES, &full[i]);
  }
  for (int i = 0; i < 2; i++) mbarrier_wait_parity(&full[i], 0);
}

CASE(arrives_at_the_last, "too-many-arrivals") {
  __shared__ alignas(8) uint64_t full[2];
  init_two(full, 1);
  if (threadIdx.x) return;
  mbarrier_expect_tx(&full[0], BYTES);
  mbarrier_arrive(&full[0]);
  mbarrier_arrive(&full[given.followed ? 1 : 0]);
  mbarrier_complete_tx(&full[0], BYTES);
}

CASE(arrives_behind_the_last, "shared-out-of-bounds") {
  __shared__ alignas(8) uint64_t full[2];
  init_two(full, 1);
  if (threadIdx.x == 0) mbarrier_arrive(full + (given.followed ? 1 : 2));
}

CASE(waits_at_the_next, "hang-arrivals-missing") {
  __shared__ alignas(8) uint64_t full[2];
  init_two(full, 1);
  if (threadIdx.x == 0) mbarrier_arrive(&full[0]);
  mbarrier_wait_parity(&full[given.followed ? 0 : 1], 0);
}

// Thread 0 hands a word on to thread 32, which leaves when it reads the first value, and frees the word otherwise.
CASE(both_pass_at_once, "hang-arrivals-missing") {
  __shared__ volatile int leaves;
  __shared__ alignas(8) uint64_t full, empty;
  if (threadIdx.x == 0) {
    leaves = 1;
    mbarrier_init(&full, 1);
    mbarrier_init(&empty, 1);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_wait_parity(&empty, 1);
    take_long(given.out);
    leaves = 0;
    mbarrier_arrive_expect_tx(&full, 0);
    mbarrier_wait_parity(&empty, 0);
  } else if (threadIdx.x == WARP) {
    mbarrier_wait_parity(&full, given.followed ? 0 : 1);
    if (!leaves) mbarrier_arrive(&empty);
  }
}

// Thread 32 fills the tile, unless thread 0 has read it.
CASE(asks_before_the_copy, "uninitialised-read") {
  __shared__ alignas(16) int tile[WORDS];
  __shared__ alignas(8) uint64_t full[2];
  __shared__ volatile int done;
  if (threadIdx.x == 0) done = 0;
  init_two(full, 1);
  if (threadIdx.x == 0) {
    mbarrier_wait_parity(&full[0], given.followed ? 0 : 1);
    given.out[0] = tile[0];
    done = 1;
  } else if (threadIdx.x == WARP) {
    take_long(given.out + 1);
    if (done) return;
    expect_and_load(tile, given.in, BYTES, &full[0]);
  }
}

// Thread 0 fills the tile again when threads 32 and 64 have read it: so says the second barrier.
CASE(asks_for_the_bytes_again, "stage-reused-too-early") {
  __shared__ alignas(16) int tile[WORDS];
  __shared__ alignas(8) uint64_t full, read;
  begin_by_first(&full, 1);
  begin_by_first(&read, 2);
  __syncthreads();
  if (threadIdx.x % WARP) return;
  if (threadIdx.x == 0) expect_and_load(tile, given.in, BYTES, &full);
  mbarrier_wait_parity(&full, 0);
  if (threadIdx.x == 0) {
    take_long(given.out);
    mbarrier_wait_parity(given.followed ? &read : &full, 0);
    expect_and_load(tile, given.in, BYTES, &full);
    mbarrier_wait_parity(&full, 1);
  } else if (threadIdx.x <= 2 * WARP) {
    given.out[threadIdx.x] = tile[threadIdx.x];
    for (int i = 0; i < 3 && threadIdx.x == WARP; i++) take_long(given.out);
    mbarrier_arrive(&read);
  }
}

// ---- Peers of a cluster ----

__device__ void store_to_peer(const int *own, uint32_t rank, int value) {
  PTX("st.shared::cluster.u32 [%0], %1;", "r"(mapa_shared(own, rank)), "r"(value));
}

CASE_OF_PEERS(peer_written_last, "peer-exited") {
  __shared__ int word;
  cluster_sync();
  if (cluster_rank() == 0 && threadIdx.x == 0) store_to_peer(&word, 1, 7);
  if (given.followed) cluster_sync();
}

CASE_OF_PEERS(peer_written_later, "peer-exited") {
  __shared__ int word;
  cluster_sync();
  if (cluster_rank() == 0 && threadIdx.x == 0) {
    take_long(given.out);
    store_to_peer(&word, 1, 7);
  }
  if (given.followed) cluster_sync();
}

__device__ void wait_relaxed(uint64_t *barrier) {
  uint32_t complete;
  do {
    asm volatile(
        "{\n"
        "  .reg .pred complete;\n"
        "  mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 complete, [%1], 0;\n"
        "  selp.u32 %0, 1, 0, complete;\n"
        "}"
        : "=r"(complete)
        : "r"(shared_address(barrier))
        : "memory");
  } while (!complete);
}

__device__ void signal_peer(const Given *given, bool later) {
  __shared__ alignas(8) uint64_t barrier;
  begin_by_first(&barrier, 1);
  cluster_sync();
  if (cluster_rank() == 0 && threadIdx.x == 0) {
    if (later) take_long(given->out);
    mbarrier_arrive_cluster(mapa_shared(&barrier, 1));
  }
  if (given->followed) cluster_sync();
}
CASE_OF_PEERS(peer_signalled_last, "peer-exited") { signal_peer(&given, false); }
CASE_OF_PEERS(peer_signalled_later, "peer-exited") { signal_peer(&given, true); }

// waits: the block that the bytes go to waits for them. stays: so does the other one, in the end.
__device__ void pass_to_peer(const Given *given, bool waits, bool stays) {
  __shared__ alignas(16) int from[WORDS], to[WORDS];
  __shared__ alignas(8) uint64_t full;
  for (int i = threadIdx.x; i < WORDS; i += THREADS) from[i] = i;
  fence_proxy_async();
  if (threadIdx.x == 0) {
    begin_barrier(&full, 1);
    if (cluster_rank() == 1) mbarrier_arrive_expect_tx(&full, BYTES);
  }
  cluster_sync();
  if (cluster_rank() == 0 && threadIdx.x == 0)
    bulk_copy_to_cluster(mapa_shared(to, 1), from, BYTES, mapa_shared(&full, 1));
  if (cluster_rank() == 1 && waits) mbarrier_wait_parity(&full, 0);
  if (cluster_rank() == 1) given->out[threadIdx.x] = to[threadIdx.x];
  if (cluster_rank() == 1 && !waits) mbarrier_wait_parity(&full, 0);
  if (stays) cluster_sync();
}
// A word for each thread of the peer, and an arrival at its barrier: the peer may read the word.
__device__ void tell_peer(const Given *given, bool relaxed) {
  __shared__ alignas(8) uint64_t told;
  __shared__ int words[THREADS];
  uint32_t peer = cluster_rank() ^ 1, barrier = mapa_shared(&told, peer);
  begin_by_first(&told, THREADS);
  cluster_sync();
  store_to_peer(&words[threadIdx.x], peer, (int)threadIdx.x);
  if (relaxed && given->followed) PTX("fence.acq_rel.cluster;");
  if (relaxed)
    PTX("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];", "r"(barrier));
  else if (given->followed)
    mbarrier_arrive_release_cluster(barrier);
  else
    mbarrier_arrive_cluster(barrier);
  if (relaxed) {
    wait_relaxed(&told);
    if (given->followed) PTX("fence.acq_rel.cluster;");
  } else {
    mbarrier_wait_parity_cluster(&told, 0);
  }
  given->out[threadIdx.x] = words[threadIdx.x ^ 1];
  cluster_sync();
}
CASE_OF_PEERS(peer_told_narrowly, "scope-too-narrow") { tell_peer(&given, false); }
CASE_OF_PEERS(peer_told_relaxed, "shared-race") { tell_peer(&given, true); }

CASE_OF_PEERS(peer_copied_from, "peer-exited") { pass_to_peer(&given, true, given.followed); }
CASE_OF_PEERS(peer_not_waited_for, "read-without-wait") {
  pass_to_peer(&given, given.followed, true);
}

CASE_OF_PEERS(peer_not_ready, "peer-barrier-not-ready") {
  __shared__ alignas(8) uint64_t barrier;
  if (cluster_rank() == 1 && !given.followed) take_long(given.out);
  begin_by_first(&barrier, 1);
  if (given.followed) cluster_sync();
  if (cluster_rank() == 0 && threadIdx.x == 0) mbarrier_arrive_cluster(mapa_shared(&barrier, 1));
  cluster_sync();
}

CASE_OF_PEERS(own_not_ready, "mbarrier-not-initialised") {
  __shared__ alignas(8) uint64_t barrier;
  if (threadIdx.x == 0 && given.followed) begin_barrier(&barrier, 1);
  cluster_sync();
  if (threadIdx.x == 0) mbarrier_arrive(&barrier);
  cluster_sync();
}

CASE_OF_PEERS(scope_of_block, "scope-too-narrow") {
  if (threadIdx.x) return;
  if (given.followed)
    PTX("red.relaxed.cluster.global.add.u32 [%0], 1;", "l"(given.out));
  else
    PTX("red.relaxed.cta.global.add.u32 [%0], 1;", "l"(given.out));
}

// ---- Lanes, registers ----

CASE(lane_asks_beside_atomic, "lane-race") {
  __shared__ int word;
  word = 5;
  __syncthreads();
  int seen = 0;
  if (threadIdx.x == 1) seen = *(volatile int *)&given.in[0] + word;
  if (given.followed) __syncwarp();
  if (threadIdx.x == 0) atomicAdd(&word, 1);
  given.out[threadIdx.x] = seen;
}

CASE(guarded_by_nothing, "uninitialised-read") {
  __shared__ int word;
  if (given.followed) word = given.in[0];
  __syncthreads();
  if (threadIdx.x == 0)
    PTX("{\n.reg .pred p;\nsetp.eq.s32 p, %0, 1;\n@p st.global.u32 [%1], %0;\n}", "r"(word),
        "l"(given.out));
}

__device__ void multiply(float d[4], const uint32_t a[4], uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, "
      "1, 1, 1, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
CASE(based_on_another_row, "swizzle-mismatch") {
  int *tile = load_and_wait(&given.swizzled, 1);
  const WgmmaTile fields = {shared_address(tile), 16, 8 * 128, given.followed ? 0u : 1u,
                            WGMMA_SWIZZLE_128B};
  float d[4] = {0};
  const uint32_t a[4] = {0};
  wgmma_fence();
  multiply(d, a, wgmma_descriptor(fields));
  wgmma_commit();
  wgmma_wait_all();
  given.out[threadIdx.x] = (int)d[0];
}

template <bool fenced>
__device__ void multiply_twice(const Given *given) {
  __shared__ alignas(1024) uint16_t b[8 * 64];
  for (int i = threadIdx.x; i < 8 * 64; i += THREADS) b[i] = 0x3f80;
  fence_proxy_async();
  __syncthreads();
  float d[4] = {0};
  const uint32_t one = 0x3f803f80u, a[4] = {one, one, one, one};
  wgmma_fence();
  multiply(d, a, wgmma_descriptor_k_major(b));
  wgmma_commit();
  wgmma_wait_all();
  for (int i = 0; i < 4; i++) asm volatile("mul.f32 %0, %0, 0f40000000;" : "+f"(d[i]));
  if (fenced) wgmma_fence();
  multiply(d, a, wgmma_descriptor_k_major(b));
  wgmma_commit();
  wgmma_wait_all();
  given->out[threadIdx.x] = (int)d[0];
}
CASE(accumulators_touched, "missing-wgmma-fence") {
  if (given.followed)
    multiply_twice<true>(&given);
  else
    multiply_twice<false>(&given);
}

// The threads that take part initialise the barrier; then a tile is loaded and read. Returns the barrier.
static __device__ uint64_t *load_by_new_barrier(const Given *given, bool takes_part) {
  __shared__ alignas(16) int tile[WORDS];
  __shared__ alignas(8) uint64_t full;
  if (takes_part) begin_barrier(&full, 1);
  __syncthreads();
  if (threadIdx.x == 0) expect_and_load(tile, given->in, BYTES, &full);
  mbarrier_wait_parity(&full, 0);
  given->out[threadIdx.x] = tile[threadIdx.x];
  return &full;
}
CASE(initialised_by_all, "mbarrier-init-again") {
  load_by_new_barrier(&given, !given.followed || threadIdx.x == 0);
}
// Each round begins with a new barrier, so its parity is always 0.
CASE(initialised_in_a_loop, "mbarrier-init-again") {
  for (int round = 0; round < 2; round++) {
    uint64_t *full = load_by_new_barrier(&given, threadIdx.x == 0);
    __syncthreads();
    if (given.followed && threadIdx.x == 0) mbarrier_inval(full);
  }
}

// Two warps of the group multiply, and the others have exited or wait at a barrier.
static __device__ void multiply_in_part(const Given *given, bool exit) {
  __shared__ alignas(1024) uint16_t tile[64 * 64];
  float d[32] = {0};
  for (int i = (int)threadIdx.x; i < 64 * 64; i += THREADS) tile[i] = 0;
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x < (given->followed ? THREADS : THREADS / 2)) {
    wgmma_fence();
    wgmma_m64n64k16(d, wgmma_descriptor_k_major(tile), wgmma_descriptor_k_major(tile), 0);
    wgmma_commit();
    wgmma_wait_all();
  }
  if (!exit) __syncthreads();
  given->out[threadIdx.x] = (int)d[0];
}
CASE(multiplied_by_two_warps, "wgmma-by-part-of-a-warpgroup") { multiply_in_part(&given, true); }
CASE(multiplied_before_a_barrier, "hang-threads-missing") { multiply_in_part(&given, false); }

static CUtensorMap map_of(int *matrix, CUtensorMapSwizzle swizzle) {
  return map_of_matrix(CU_TENSOR_MAP_DATA_TYPE_INT32, matrix, SIDE, SIDE, SIDE, SIDE, swizzle);
}

int main(int argc, char **argv) {
  const Case<Kernel> *chosen = choose_case<Kernel>(argc, argv);
  bool peers = strncmp(chosen->name, "peer", 4) == 0 || chosen->run == own_not_ready ||
               chosen->run == scope_of_block;
  static int host[SIDE * SIDE];
  Given given = {.followed = argc == 3 && strcmp(argv[2], "followed") == 0};
  given.in = device_copy(host);
  given.out = device_filled<int>(SIDE * SIDE, 0);
  given.fresh = device_memory<int>(SIDE * SIDE);
  given.swizzled = map_of(given.in, CU_TENSOR_MAP_SWIZZLE_128B);
  given.plain = map_of(given.out, CU_TENSOR_MAP_SWIZZLE_NONE);
  given.hosts = map_of(host, CU_TENSOR_MAP_SWIZZLE_NONE);
  chosen->run<<<peers ? 2 : 1, THREADS>>>(given);
  CHECK_LAUNCH();
  CUDA_CHECK(cudaMemcpy(host, given.out, sizeof host, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(host, given.fresh, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
