// luck_cases.cu: mistakes that give right results by luck in most runs, on the emulator and on an H200. Those whose
// name begins with "fine_" are correct; luck.bats looks at the reports.
//
//   luck_cases CASE    prints "CASE: cudaError..."
#include "../../02_tma_load/tensormap.cuh"
#include "../../05_multicast/cluster.cuh"
#include "cases.cuh"
#include "copies.cuh"
#include "device_memory.cuh"
#include "ptx.cuh"

enum { BLOCKS = 2, THREADS = 64, WORDS = 256, BYTES = WORDS * 4 };
enum { ROW = 16, IN_BYTES = 4096, OUT_BYTES = 65536, MAPS_AT = OUT_BYTES / 2 };

typedef void Kernel(const uint32_t *in, uint32_t *out);
#define CASE(name, says)                                                      \
  CASE_OF(Kernel, name, says, __global__ void __cluster_dims__(BLOCKS, 1, 1), \
          (const uint32_t *in, uint32_t *out))

/* Each block sends a tile to the other, and names a barrier of this rank. */
static __device__ void send_tile(uint32_t *out, uint32_t barrier_rank) {
  __shared__ alignas(128) uint32_t outbox[WORDS], inbox[WORDS];
  __shared__ uint64_t full;
  uint32_t rank = cluster_rank();
  for (int i = threadIdx.x; i < WORDS; i += THREADS) outbox[i] = rank + i;
  begin_by_first(&full, 1);
  if (threadIdx.x == 0) mbarrier_arrive_expect_tx(&full, BYTES);
  fence_proxy_async();
  cluster_sync();
  if (threadIdx.x == 0)
    bulk_copy_to_cluster(mapa_shared(inbox, rank ^ 1), outbox, BYTES,
                         mapa_shared(&full, barrier_rank));
  mbarrier_wait_parity(&full, 0);
  out[rank * THREADS + threadIdx.x] = inbox[threadIdx.x];
  cluster_sync();
}
CASE(fine_barrier_beside_tile, "") { send_tile(out, cluster_rank() ^ 1); }
CASE(barrier_in_another_block, "barrier-elsewhere") { send_tile(out, 0); }

/* red.async adds to a word of the other block. */
static __device__ void add_to_peer(uint32_t *out, bool cleared) {
  __shared__ uint32_t counter;
  __shared__ uint64_t full;
  uint32_t rank = cluster_rank();
  if (threadIdx.x == 0 && cleared) counter = 0;
  begin_by_first(&full, 1);
  if (threadIdx.x == 0) mbarrier_arrive_expect_tx(&full, 4 * THREADS);
  cluster_sync();
  PTX("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], 1, "
      "[%1];",
      "r"(mapa_shared(&counter, rank ^ 1)), "r"(mapa_shared(&full, rank ^ 1)));
  mbarrier_wait_parity_cluster(&full, 0);
  if (threadIdx.x == 0) out[rank] = counter;
  cluster_sync();
}
CASE(fine_counter_cleared, "") { add_to_peer(out, true); }
CASE(counter_not_cleared, "uninitialised-read") { add_to_peer(out, false); }

/* A thread copies a row of a tile, 16 bytes at a time. A row of 16 bytes may be the padding of a struct. */
static __device__ void copy_rows(uint32_t *out, int vectors) {
  __shared__ uint4 tile[16][16];
  if (threadIdx.x >= 16) return;
#pragma unroll
  for (int i = 0; i < vectors; i++) ((uint4 *)out)[threadIdx.x * 16 + i] = tile[threadIdx.x][i];
}
CASE(fine_padding_copied, "") { copy_rows(out, 1); }
CASE(rows_not_filled, "uninitialised-read") { copy_rows(out, 16); }

/* The bytes of an mbarrier are used for something else. */
static __device__ void reuse_barrier(uint32_t *out, bool synced, uint32_t writer, bool writes) {
  __shared__ union {
    uint64_t barrier;
    uint32_t words[2];
  } both;
  begin_by_first(&both.barrier, THREADS);
  __syncthreads();
  mbarrier_arrive(&both.barrier);
  mbarrier_wait_parity(&both.barrier, 0);
  __syncthreads();
  if (threadIdx.x == 0) mbarrier_inval(&both.barrier);
  if (synced) __syncthreads();
  if (writes && threadIdx.x == writer) both.words[1] = 7;
  __syncthreads();
  if (threadIdx.x == 0) out[cluster_rank()] = both.words[1] * 3;
}
CASE(fine_barrier_reused, "") { reuse_barrier(out, true, 33, true); }
CASE(reused_by_another_lane, "lane-race") { reuse_barrier(out, false, 1, true); }
CASE(reused_by_another_warp, "shared-race|barrier-overwritten") {
  reuse_barrier(out, false, 33, true);
}
CASE(read_after_inval, "uninitialised-read") { reuse_barrier(out, true, 0, false); }

/* Lane 0 changes a tensor map, and its warp publishes it. */
static __device__ void publish(const uint32_t *in, uint32_t *out, bool synced) {
  __shared__ alignas(128) CUtensorMap map;
  if (threadIdx.x >= 32 || cluster_rank()) return;
  ((uint32_t *)&map)[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  if (threadIdx.x == 0) tensormap_replace_size<1>(&map, 5);
  if (synced) __syncwarp();
  tensormap_publish((CUtensorMap *)out, &map);
}
CASE(fine_map_published, "") { publish(in, out, true); }
CASE(map_published_too_early, "lane-race") { publish(in, out, false); }

/* Rank 0 raises a flag before and after it writes a value, for which rank 1 waits. */
static __device__ void raise_twice(uint32_t *out, uint32_t second) {
  if (threadIdx.x) return;
  uint32_t *flag = out + WORDS, raised = 0;
  if (cluster_rank()) {
    while (raised != second)
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(raised) : "l"(flag) : "memory");
    out[2 * WORDS] = out[0];
    return;
  }
  PTX("st.release.gpu.global.u32 [%0], 1;", "l"(flag));
  out[0] = 7;
  PTX("st.release.gpu.global.u32 [%0], %1;", "l"(flag), "r"(second));
}
CASE(fine_flag_counts, "") { raise_twice(out, 2); }
CASE(flag_raised_before, "global-race") { raise_twice(out, 1); }

typedef enum { NOTHING, COMMIT, READS_AWAITED, AWAITED, IN_ANOTHER_PLACE } Between;
/* Two copies by one map, whose address changes between them. */
static __device__ void use_twice(const uint32_t *in, uint32_t *out, bool loads, Between between) {
  __shared__ alignas(128) uint32_t tile[2][WORDS];
  __shared__ alignas(128) CUtensorMap map;
  __shared__ uint64_t full[2];
  if (threadIdx.x >= 32 || cluster_rank()) return;
  ((uint32_t *)&map)[threadIdx.x] = in[IN_BYTES / 4 + threadIdx.x];
  for (int i = threadIdx.x; i < 2 * WORDS; i += 32) tile[i / WORDS][i % WORDS] = i;
  for (int i = 0; i < 2; i++) begin_by_first(&full[i], 1);
  fence_proxy_async();
  __syncwarp();
  for (int i = 0; i < 2; i++) {
    CUtensorMap *place = (CUtensorMap *)(out + MAPS_AT / 4) + (between == IN_ANOTHER_PLACE ? i : 0);
    if (threadIdx.x == 0) tensormap_replace_address(&map, out + i * WORDS);
    __syncwarp();
    tensormap_publish(place, &map);
    if (threadIdx.x == 0) {
      fence_proxy_tensormap_acquire(place);
      if (loads) {
        mbarrier_arrive_expect_tx(&full[i], BYTES);
        tma_load_2d(tile[i], place, 0, 0, &full[i]);
      } else {
        tma_store_2d(place, tile[i], 0, 0);
      }
      if (between != NOTHING) bulk_commit_group();
      if (between == READS_AWAITED) bulk_wait_group_read<0>();
      if (between == AWAITED) bulk_wait_group<0>();
    }
    if (loads && between == AWAITED) mbarrier_wait_parity(&full[i], 0);
    __syncwarp();
  }
  finish_stores();
  for (int i = 0; i < 2 && loads; i++) mbarrier_wait_parity(&full[i], 0);
}
CASE(fine_map_of_read_store, "") { use_twice(in, out, false, READS_AWAITED); }
CASE(fine_map_of_awaited_store, "") { use_twice(in, out, false, AWAITED); }
CASE(fine_map_of_awaited_load, "") { use_twice(in, out, true, AWAITED); }
CASE(fine_map_in_another_place, "") { use_twice(in, out, false, IN_ANOTHER_PLACE); }
CASE(map_of_running_store, "tensormap-in-use") { use_twice(in, out, false, COMMIT); }
CASE(map_of_uncommitted_store, "tensormap-in-use") { use_twice(in, out, false, NOTHING); }
CASE(map_of_running_load, "tensormap-in-use") { use_twice(in, out, true, NOTHING); }

/* Thread 0 fills two tiles through one barrier, one after the other. */
static __device__ void two_phases(const uint32_t *in, uint32_t *out, bool met) {
  __shared__ alignas(128) uint32_t tile[2][WORDS];
  __shared__ uint64_t full;
  begin_by_first(&full, 1);
  __syncthreads();
  for (uint32_t i = 0; i < 2; i++) {
    if (threadIdx.x == 0) {
      if (i && !met) mbarrier_wait_parity(&full, 0);
      expect_and_load(tile[i], in + i * WORDS, BYTES, &full);
    }
    if (i == 0 && met) {
      mbarrier_wait_parity(&full, 0);
      __syncthreads();
    }
  }
  __syncwarp();
  if (threadIdx.x >= 32 && !met) mbarrier_wait_parity(&full, 0);  // phase 1 may be over
  mbarrier_wait_parity(&full, 1);
  out[threadIdx.x] = tile[0][threadIdx.x] + tile[1][threadIdx.x];
}
CASE(fine_next_phase_after_wait, "") { two_phases(in, out, true); }
CASE(next_phase_before_wait, "phase-may-be-missed|phase-missed") { two_phases(in, out, false); }

/* A warp writes two tiles in turn, thread 32 stores them. It asks for the last one but once. */
static __device__ void store_tiles(uint32_t *out, bool repeated) {
  __shared__ alignas(128) uint32_t tile[2][WORDS];
  __shared__ uint64_t written[2], freed[2];
  for (int i = 0; i < 2; i++) {
    begin_by_first(&written[i], 32);
    begin_by_first(&freed[i], 1);
  }
  __syncthreads();
#pragma unroll
  for (int round = 0; round < 4; round++) {
    const int i = round % 2;
    if (threadIdx.x == 32) {
      if (round < 3 || repeated)
        mbarrier_wait_parity(&written[i], round / 2);
      else
        mbarrier_try_wait_parity(&written[i], round / 2);
      store_and_wait(out + round * WORDS, tile[i], BYTES);
      mbarrier_arrive(&freed[i]);
    } else if (threadIdx.x < 32) {
      mbarrier_wait_parity(&freed[i], (round / 2 + 1) & 1);
      for (int k = threadIdx.x; k < WORDS; k += 32) tile[i][k] = round + k;
      fence_proxy_async();
      mbarrier_arrive(&written[i]);
    }
  }
}
CASE(fine_wait_repeated, "") { store_tiles(out + 4096 * cluster_rank(), true); }
CASE(asked_once, "wait-not-repeated") { store_tiles(out + 4096 * cluster_rank(), false); }

static __device__ void wait_relaxed(uint64_t *barrier) {
  uint32_t done = 0;
  while (!done)
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 p, [%1], 0;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(shared_address(barrier))
        : "memory");
}

static __device__ void arrive(uint64_t *barrier, bool relaxed) {
  if (relaxed)
    PTX("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];", "r"(shared_address(barrier)));
  else
    mbarrier_arrive(barrier);
}

/* Warp 0, or a copy, fills a tile, and warp 1 reads it, over weak arrivals and waits. */
typedef struct {
  bool loads, fences, waits_relaxed, arrives_relaxed;
} Weak;
static __device__ void hand_over(const uint32_t *in, uint32_t *out, Weak weak) {
  __shared__ alignas(128) uint32_t tile[WORDS];
  __shared__ uint64_t full;
  begin_by_first(&full, weak.loads ? 1 : 32);
  __syncthreads();
  if (weak.loads && threadIdx.x == 0) {
    expect_and_load(tile, in, BYTES, &full);
  } else if (!weak.loads && threadIdx.x < 32) {
    tile[threadIdx.x] = threadIdx.x;
    if (weak.fences) PTX("fence.acq_rel.cta;");
    arrive(&full, weak.arrives_relaxed);
  }
  if (threadIdx.x < 32) return;
  if (weak.waits_relaxed)
    wait_relaxed(&full);
  else
    mbarrier_wait_parity(&full, 0);
  if (weak.fences) PTX("fence.acq_rel.cta;");
  out[cluster_rank() * THREADS + threadIdx.x] = tile[threadIdx.x % 32];
}
CASE(fine_relaxed_with_fences, "") { hand_over(in, out, {false, true, true, true}); }
CASE(copy_awaited_relaxed, "read-without-wait") { hand_over(in, out, {true, false, true, false}); }
CASE(writes_awaited_relaxed, "shared-race") { hand_over(in, out, {false, false, true, false}); }
CASE(writes_told_relaxed, "shared-race") { hand_over(in, out, {false, false, false, true}); }
/* Warp 1 reads a tile and reports that; thread 0 waits for it before it loads the next one over it. */
static __device__ void load_again(const uint32_t *in, uint32_t *out, Weak weak) {
  __shared__ alignas(128) uint32_t tile[WORDS];
  __shared__ uint64_t full, empty;
  begin_by_first(&full, 1);
  begin_by_first(&empty, 32);
  __syncthreads();
  for (int i = 0; i < 2 && threadIdx.x == 0; i++) {
    if (i && weak.waits_relaxed) wait_relaxed(&empty);
    if (i && !weak.waits_relaxed) mbarrier_wait_parity(&empty, 0);
    expect_and_load(tile, in, BYTES, &full);
  }
  for (int i = 0; i < 2 && threadIdx.x >= 32; i++) {
    mbarrier_wait_parity(&full, i);
    out[(cluster_rank() * 2 + i) * THREADS + threadIdx.x] = tile[threadIdx.x - 32];
    arrive(&empty, weak.arrives_relaxed);
  }
}
CASE(fine_loaded_again, "") { load_again(in, out, {true, false, false, false}); }
CASE(readers_awaited_relaxed, "stage-reused-too-early") {
  load_again(in, out, {true, false, true, false});
}
CASE(readers_tell_relaxed, "stage-reused-too-early") {
  load_again(in, out, {true, false, false, true});
}
/* One instruction, and two threads at each place. */
CASE(written_twice, "shared-race") {
  __shared__ uint32_t tile[32];
  tile[threadIdx.x % 32] = threadIdx.x;
  __syncthreads();
  out[cluster_rank() * THREADS + threadIdx.x] = tile[threadIdx.x % 32];
}

/* Warp 0 fills a tile, and warp 1 reads it. One lane of a warp arrives or waits for all of it. */
typedef struct {
  bool flag;      // in global memory, in place of an mbarrier
  bool branches;  // lane 0 goes its own way
  bool all_arrive, all_wait, synced_before, synced_after, meets, stores;
  bool late;  // what waits not, does something else first
} Hands;
static __device__ void hand_over_by_lane(uint32_t *out, Hands by) {
  __shared__ alignas(128) uint32_t shared[32];
  __shared__ uint64_t full;
  const uint32_t lane = threadIdx.x % 32;
  uint32_t *flag = out + 8192 + cluster_rank() * 64, *tile = by.flag ? flag + 32 : shared;
  begin_by_first(&full, by.all_arrive ? 32 : 1);
  __syncthreads();
  if (threadIdx.x < 32) {
    if (by.branches && lane == 0) {
      tile[0] = 100;
      mbarrier_arrive(&full);
      return;
    }
    tile[lane] = 100 + lane;
    if (by.stores) fence_proxy_async();
    if (by.synced_before) __syncwarp();
    if (by.meets && __shfl_sync(~0u, lane, 0) != 0) return;
    if (by.branches || !(by.all_arrive || lane == 0)) return;
    if (by.flag)
      PTX("fence.acq_rel.gpu;\n st.relaxed.gpu.global.u32 [%0], 1;", "l"(flag));
    else
      mbarrier_arrive(&full);
    return;
  }
  uint32_t set = 0;
  if ((lane == 0 || by.all_wait) && !by.flag) mbarrier_wait_parity(&full, 0);
  while ((lane == 0 || by.all_wait) && by.flag && !set)
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(set) : "l"(flag) : "memory");
  for (int i = 0; i < 2000 && by.late && lane; i++) __nanosleep(1000);
  if (by.synced_after) __syncwarp();
  if (by.stores && lane == 0) store_and_wait(out + cluster_rank() * 64, shared, sizeof shared);
  if (!by.stores) out[cluster_rank() * 64 + lane] = tile[31 - lane];
}
#define BY(name, says, ...) \
  CASE(name, says) { hand_over_by_lane(out, Hands{__VA_ARGS__}); }
// flag, branches, all_arrive, all_wait, synced_before, synced_after, meets, stores, late
BY(lane_arrives_for_warp, "lane-race", false, false, false, true)
BY(lane_arrives_in_branch, "lane-race", false, true, false, true)
BY(lane_sets_flag_for_warp, "lane-race", true, false, false, true)
BY(lane_arrives_for_store, "lane-race", false, false, false, true, false, false, false, true)
BY(lane_waits_for_warp, "shared-race", false, false, true)
BY(lane_awaits_flag_for_warp, "global-race", true, false, false, false, true)
BY(lane_has_waited_for_warp, "lane-race", false, false, true, false, false, false, false, false,
   true)
BY(lane_has_awaited_flag, "lane-race", true, false, false, false, true, false, false, false, true)
BY(fine_lane_arrives, "", false, false, false, true, true)
BY(fine_lane_arrives_and_waits, "", false, false, false, false, true, true)
BY(fine_lanes_arrive, "", false, false, true, true)
BY(fine_lane_sets_flag, "", true, false, false, true, true)
BY(fine_lane_awaits_flag, "", true, false, false, false, true, true)
BY(fine_lane_arrives_for_store, "", false, false, false, true, true, false, false, true)
BY(fine_lanes_meet, "", false, false, false, true, false, false, true)

/* A load that lane 0 waits for, and its warp reads. */
static __device__ void read_loaded(const uint32_t *in, uint32_t *out, bool synced) {
  __shared__ alignas(128) uint32_t tile[32];
  __shared__ uint64_t full;
  begin_by_first(&full, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    expect_and_load(tile, in, sizeof tile, &full);
    mbarrier_wait_parity(&full, 0);
  }
  if (synced) __syncwarp();
  if (threadIdx.x < 32) out[cluster_rank() * 32 + threadIdx.x] = tile[threadIdx.x];
}
CASE(fine_loaded_for_warp, "") { read_loaded(in, out, true); }
CASE(loaded_for_warp, "read-without-wait") { read_loaded(in, out, false); }

/* Lane 0 waits until its store has read the tile, and its warp overwrites it. */
static __device__ void reuse_stored(uint32_t *out, bool synced, bool late) {
  __shared__ alignas(128) uint32_t tile[32];
  if (threadIdx.x >= 32) return;
  for (int round = 0; round < 2; round++) {
    tile[threadIdx.x] = round;
    fence_proxy_async();
    __syncwarp();
    if (threadIdx.x == 0) {
      bulk_store(out + (2 * cluster_rank() + round) * 32, tile, sizeof tile);
      bulk_commit_group();
      bulk_wait_group_read<0>();
    }
    for (int i = 0; i < 2000 && late && threadIdx.x; i++) atomicAdd(out + 16383, 0);
    if (synced) __syncwarp();
  }
}
CASE(fine_stored_for_warp, "") { reuse_stored(out, true, true); }
CASE(stored_for_warp, "source-reused-before-read") { reuse_stored(out, false, false); }
CASE(has_been_stored_for_warp, "source-reused-before-read") { reuse_stored(out, false, true); }

/* Each block writes a word of the other one, which may not have begun. */
static __device__ void write_to_peer(uint32_t *out, bool synced) {
  __shared__ uint32_t word;
  if (synced) cluster_sync();
  if (threadIdx.x == 0) st_shared_cluster(mapa_shared(&word, cluster_rank() ^ 1), 7);
  cluster_sync();
  if (threadIdx.x == 0) out[cluster_rank()] = word;
}
CASE(fine_peer_has_begun, "") { write_to_peer(out, true); }
CASE(peer_may_not_have_begun, "peer-not-started") { write_to_peer(out, false); }

/* A warp arrives at a barrier for which another one waits. */
static __device__ void meet_at_barrier(uint32_t threads) {
  if (threadIdx.x < 32)
    PTX("barrier.cta.arrive.aligned 1, %0;", "r"(threads));
  else
    PTX("barrier.cta.sync.aligned 1, 64;");
}
CASE(fine_same_count, "") { meet_at_barrier(64); }
CASE(count_of_another_barrier, "barrier-counts-differ") { meet_at_barrier(96); }

/* Copies that nobody has committed, or waited for. */
CASE(copies_not_committed, "read-without-wait") {
  __shared__ uint32_t tile[THREADS];
  PTX("cp.async.ca.shared.global [%0], [%1], 4;", "r"(shared_address(&tile[threadIdx.x])),
      "l"(in + threadIdx.x));
  PTX("cp.async.wait_group 0;");
  __syncthreads();
  out[cluster_rank() * THREADS + threadIdx.x] = tile[THREADS - 1 - threadIdx.x];
}
typedef enum { NEVER, LATE, IN_TIME } Committed;
static __device__ void store_and_reuse(uint32_t *out, Committed committed) {
  __shared__ alignas(128) uint32_t tile[4];
  if (threadIdx.x) return;
  for (int i = 0; i < 4; i++) tile[i] = i;
  fence_proxy_async();
  bulk_store(out + 4 * cluster_rank(), tile, 16);
  if (committed == IN_TIME) bulk_commit_group();
  if (committed == IN_TIME)
    bulk_wait_group_read<1>();
  else
    bulk_wait_group_read<0>();
  if (committed == LATE) bulk_commit_group();
  tile[0] = 7;
  finish_stores();
}
CASE(store_not_committed, "source-reused-before-read") { store_and_reuse(out, NEVER); }
CASE(store_committed_late, "source-reused-before-read") { store_and_reuse(out, LATE); }
CASE(store_left_pending, "source-reused-before-read") { store_and_reuse(out, IN_TIME); }
/* Two stores, of which one is not committed in time, or each; the wait leaves one group. */
static __device__ void store_twice(uint32_t *out, int uncommitted) {
  __shared__ alignas(128) uint32_t tile[2][4];
  if (threadIdx.x) return;
  for (int i = 0; i < 2; i++) {
    for (int k = 0; k < 4; k++) tile[i][k] = k;
    fence_proxy_async();
    bulk_store(out + 8 * cluster_rank() + 4 * i, tile[i], 16);
    if (i != uncommitted) bulk_commit_group();
  }
  bulk_wait_group_read<1>();
  tile[0][0] = 7;
  finish_stores();
}
CASE(fine_stored_twice, "") { store_twice(out, 2); }
CASE(store_joins_next, "source-reused-before-read") { store_twice(out, 0); }
CASE(store_behind_uncommitted, "source-reused-before-read") { store_twice(out, 1); }
CASE(read_uncommitted, "read-before-written") {
  __shared__ alignas(128) uint32_t tile[4];
  if (threadIdx.x) return;
  for (int i = 0; i < 4; i++) tile[i] = i;
  fence_proxy_async();
  bulk_store(out + 4 * cluster_rank(), tile, 16);
  bulk_wait_group<0>();
  out[8 + cluster_rank()] = *(volatile uint32_t *)(out + 4 * cluster_rank());
  finish_stores();
}

/* Addresses 128 bytes or 16 beside where they should be. */
typedef enum { NO_SHIFT, LOAD, LOAD_BESIDE, STORE, STORE_BESIDE, FIRST_FILLED, READ_BESIDE } Shift;
static __device__ void shift(const uint32_t *in, uint32_t *out, Shift shift) {
  __shared__ alignas(128) uint32_t tiles[2][WORDS];
  __shared__ uint64_t full[2];
  if (threadIdx.x) return;
  const bool loads = shift == LOAD || shift == LOAD_BESIDE || shift == READ_BESIDE;
  uint32_t *result = out + WORDS * cluster_rank();
  for (int i = shift == FIRST_FILLED ? 4 : 0; i < WORDS && !loads; i++) tiles[0][i] = i;
  for (int i = 0; i < WORDS && (shift == STORE_BESIDE || shift == LOAD_BESIDE); i++)
    tiles[1][i] = i;
  for (int i = 0; i < 2; i++) begin_by_first(&full[i], 1);
  if (shift != LOAD_BESIDE) fence_proxy_async();
  for (int i = 0; loads && i < (shift == READ_BESIDE ? 2 : 1); i++)
    expect_and_load(tiles[i] + (shift == READ_BESIDE ? 0 : 32), in, BYTES, &full[i]);
  if (loads) mbarrier_wait_parity(&full[0], 0);
  if (loads) result[0] = shift == READ_BESIDE ? tiles[1][0] : tiles[0][shift == LOAD ? 0 : 32];
  if (shift == READ_BESIDE) mbarrier_wait_parity(&full[1], 0);
  if (loads) return;
  bulk_store(result, tiles[0] + (shift == STORE || shift == STORE_BESIDE ? 32 : 0), BYTES);
  bulk_commit_group();
  if (shift == STORE_BESIDE) tiles[1][0] = 7;
  bulk_wait_group<0>();
}
CASE(fine_not_shifted, "") { shift(in, out, NO_SHIFT); }
CASE(load_shifted, "uninitialised-read") { shift(in, out, LOAD); }
CASE(load_shifted_into_next, "missing-proxy-fence") { shift(in, out, LOAD_BESIDE); }
CASE(store_shifted, "unwritten-bytes-stored") { shift(in, out, STORE); }
CASE(store_shifted_into_next, "source-reused-before-read") { shift(in, out, STORE_BESIDE); }
CASE(writes_shifted, "unwritten-bytes-stored") { shift(in, out, FIRST_FILLED); }
CASE(read_shifted_into_next, "read-without-wait") { shift(in, out, READ_BESIDE); }

/* A warp arrives twice at the first of two barriers, and never at the second. */
CASE(arrives_twice_at_one, "too-many-arrivals") {
  __shared__ uint64_t free[2];
  for (int i = 0; i < 2; i++) begin_by_first(&free[i], 2);
  __syncthreads();
  if (threadIdx.x % 32) return;
  mbarrier_arrive(&free[0]);
  for (int i = 0; threadIdx.x == 0 && i < 1000; i++) atomicAdd(out, 0);
  mbarrier_arrive(&free[threadIdx.x ? 1 : 0]);
}

/* One thread is enough, and it waits for those that write. */
static __device__ void store_words(uint32_t *out, bool synced, uint32_t every) {
  __shared__ alignas(128) uint32_t tile[4];
  if (threadIdx.x < 4) tile[threadIdx.x] = 0;
  fence_proxy_async();
  if (synced) __syncthreads();
  if (threadIdx.x % every) return;
  store_and_wait(out + 4 * cluster_rank(), tile, 16);
}
CASE(stored_by_two_threads, "global-race") { store_words(out, true, 32); }
CASE(stored_before_written, "lane-race") { store_words(out, false, 64); }
CASE(sent_tile_overwritten, "source-reused-before-read") {
  __shared__ alignas(128) uint32_t outbox[4], inbox[4];
  __shared__ uint64_t full;
  begin_by_first(&full, 1);
  for (int i = 0; i < 4 && threadIdx.x == 0; i++) outbox[i] = i;
  if (threadIdx.x == 0) mbarrier_arrive_expect_tx(&full, 16);
  fence_proxy_async();
  cluster_sync();
  if (threadIdx.x == 0) {
    bulk_copy_to_cluster(mapa_shared(inbox, cluster_rank() ^ 1), outbox, 16,
                         mapa_shared(&full, cluster_rank() ^ 1));
    outbox[0] = 7;
    mbarrier_wait_parity(&full, 0);
    out[cluster_rank()] = inbox[0];
  }
  cluster_sync();
}

/* Two barriers side by side, and the address of one in place of the other's; or the other parity. */
typedef enum { WAITS_BESIDE, ARRIVES_BESIDE, OTHER_PARITY } Beside;
static __device__ void take_other(const uint32_t *in, uint32_t *out, Beside beside) {
  __shared__ alignas(128) uint32_t tile[WORDS];
  __shared__ uint64_t full[3];
  for (int i = 0; i < 2; i++) begin_by_first(&full[i], i ? 1 : THREADS + 1);
  __syncthreads();
  if (beside == OTHER_PARITY) {
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(tile + threadIdx.x)),
        "l"(in + threadIdx.x));
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(full)));
  } else if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(&full[1], 0);
    mbarrier_expect_tx(&full[0], BYTES);
    bulk_load(tile, in, BYTES, &full[0]);
  }
  if (beside == ARRIVES_BESIDE) mbarrier_arrive(&full[2]);
  if (beside == OTHER_PARITY)
    mbarrier_wait_parity(&full[0], 1);
  else
    mbarrier_wait_parity(&full[1], 0);
  out[cluster_rank() * THREADS + threadIdx.x] = tile[threadIdx.x];
}
CASE(waits_beside, "read-without-wait") { take_other(in, out, WAITS_BESIDE); }
CASE(arrives_beside, "mbarrier-not-initialised") { take_other(in, out, ARRIVES_BESIDE); }
CASE(waits_for_other_parity, "read-without-wait") { take_other(in, out, OTHER_PARITY); }
CASE(each_thread_initialises, "mbarrier-init-again") {
  __shared__ uint64_t full;
  mbarrier_init(&full, 1);
  cluster_sync();
}

/* A block arrives at the cluster's barrier and reads the other's word without waiting there. */
static __device__ void read_peer(uint32_t *out, bool early) {
  __shared__ uint32_t word;
  cluster_sync();
  for (int i = 0; i < 1000 && early && cluster_rank() == 0; i++) atomicAdd(out, 0);
  if (threadIdx.x == 0) word = 7;
  cluster_arrive_release();
  if (cluster_rank() && threadIdx.x == 0) out[1] = ld_shared_cluster(mapa_shared(&word, 0));
  for (int i = 0; i < 2000 && early && cluster_rank(); i++) atomicAdd(out, 0);
  cluster_wait_acquire();
}
CASE(peer_read_without_wait, "shared-race") { read_peer(out, false); }
CASE(peer_read_before_it_writes, "shared-race") { read_peer(out, true); }

/* Another warp uses a barrier that may not have been initialised. */
CASE(init_not_awaited, "mbarrier-init-not-ordered|mbarrier-not-initialised") {
  __shared__ uint64_t full;
  begin_by_first(&full, 32);
  cluster_arrive_release();
  if (threadIdx.x >= 32) mbarrier_arrive(&full);
  cluster_wait_acquire();
}

/* The phase ends by an arrival alone: nobody has announced the bytes, or later. */
static __device__ void arrive_alone(const uint32_t *in, uint32_t *out, bool expects) {
  __shared__ alignas(128) uint32_t tile[WORDS];
  __shared__ uint64_t full;
  begin_by_first(&full, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    if (!expects) bulk_load(tile, in, BYTES, &full);
    mbarrier_arrive(&full);
    if (expects) mbarrier_expect_tx(&full, BYTES);
    if (expects) bulk_load(tile, in, BYTES, &full);
  }
  mbarrier_wait_parity(&full, 0);
  out[cluster_rank() * THREADS + threadIdx.x] = tile[threadIdx.x];
}
CASE(bytes_not_expected, "too-few-bytes-expected") { arrive_alone(in, out, false); }
CASE(bytes_expected_late, "too-few-bytes-expected") { arrive_alone(in, out, true); }

/* Warp 1 reads a tile and says so; thread 0, which fills it again, does not ask. */
static __device__ void refill(const uint32_t *in, uint32_t *out, bool asks) {
  __shared__ alignas(128) uint32_t tile[2][WORDS];
  __shared__ uint64_t full[2], read;
  for (int i = 0; i < 2; i++) begin_by_first(&full[i], 1);
  begin_by_first(&read, 32);
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; i++) expect_and_load(tile[i], in, BYTES, &full[i]);
    mbarrier_wait_parity(&full[0], 0);
    mbarrier_wait_parity(&full[1], 0);
    if (asks) mbarrier_wait_parity(&read, 0);
    expect_and_load(tile[0], in, BYTES, &full[0]);
    mbarrier_wait_parity(&full[0], 1);
  } else if (threadIdx.x >= 32) {
    mbarrier_wait_parity(&full[0], 0);
    out[cluster_rank() * THREADS + threadIdx.x] = tile[0][threadIdx.x];
    mbarrier_arrive(&read);
  }
}
CASE(fine_reader_asked, "") { refill(in, out, true); }
CASE(reader_not_asked, "stage-reused-too-early|copy-not-ordered") { refill(in, out, false); }

/* Warp 0 clears a tile while thread 32 waits for another one; nothing orders that before the copy that follows. */
CASE(cleared_beside_copy, "copy-not-ordered") {
  __shared__ alignas(128) uint32_t tile[2][WORDS];
  __shared__ uint64_t full[2];
  for (int i = 0; i < 2; i++) begin_by_first(&full[i], 1);
  __syncthreads();
  if (threadIdx.x < 32) tile[1][threadIdx.x] = 0;
  for (int i = 0; i < 2 && threadIdx.x == 32; i++) {
    expect_and_load(tile[i], in, BYTES, &full[i]);
    mbarrier_wait_parity(&full[i], 0);
  }
  mbarrier_wait_parity(&full[1], 0);
  out[cluster_rank() * THREADS + threadIdx.x] = tile[1][threadIdx.x];
}

int main(int argc, char **argv) {
  const Case<Kernel> *chosen = choose_case<Kernel>(argc, argv);
  uint32_t *in = device_filled<uint32_t>((IN_BYTES + sizeof(CUtensorMap)) / 4, 1);
  uint32_t *out = device_filled<uint32_t>(OUT_BYTES / 4, 0);
  CUtensorMap map = map_of_matrix(CU_TENSOR_MAP_DATA_TYPE_INT32, out, ROW, WORDS, ROW, WORDS / ROW);
  cudaMemcpy(in + IN_BYTES / 4, &map, sizeof map, cudaMemcpyHostToDevice);
  chosen->run<<<BLOCKS, THREADS>>>(in, out);
  printf("%s: %s\n", chosen->name,
         cudaGetErrorName(cudaMemcpy(malloc(OUT_BYTES), out, OUT_BYTES, cudaMemcpyDeviceToHost)));
  return 0;
}
