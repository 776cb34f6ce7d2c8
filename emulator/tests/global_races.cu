/* global_races.cu: small kernels with and without races in global memory, and their known answers. What
 * random_global.c draws is not among them: plain accesses of warps in any pattern, chains of releases and acquires,
 * and barriers of blocks and clusters.
 *
 *   global_races          runs all, and prints for each its name and the rule that it breaks ("-": none)
 *   global_races NAME     runs one
 *
 * The test compares this list with what the checker reports (emulator/tests/global.bats). Each kernel
 * is named after its case; `data` has one element for each thread, and `flags` is zero at the start. */
#include <cooperative_groups.h>
#include <cuda/atomic>

#include "cases.cuh"
#include "copies.cuh"
#include "device_memory.cuh"
#include "ptx.cuh"

namespace cg = cooperative_groups;

enum { BLOCKS = 4, THREADS = 64, COUNT = BLOCKS * THREADS };

typedef void Kernel(int *data, int *flags);
#define CASE(name, rule) CASE_OF(Kernel, name, rule, __global__ void, (int *data, int *flags))
#define ME (blockIdx.x * blockDim.x + threadIdx.x)
static __device__ volatile int *as_volatile(int *at) { return at; }

typedef enum {
  NO_FENCE,
  BLOCK_FENCE,
  DEVICE_FENCE,
  SYSTEM_FENCE,
  WEAKER_FENCE, /* not sequentially consistent */
  FENCE_OF_ONE_WARP
} Fence;
static __device__ __forceinline__ void fence(Fence kind) {
  if (kind == BLOCK_FENCE) __threadfence_block();
  if (kind == DEVICE_FENCE) __threadfence();
  if (kind == SYSTEM_FENCE) __threadfence_system();
  if (kind == WEAKER_FENCE)
    cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_device);
  if (kind == FENCE_OF_ONE_WARP && threadIdx.x < 32) __threadfence();
}
#define FIRST_OF_BLOCK \
  if (threadIdx.x != 0) return
#define FIRST_OF_TWO_BLOCKS \
  if (threadIdx.x != 0 || blockIdx.x > 1) return

/* ---- Plain accesses of several blocks and warps ---- */
CASE(all_write_one, "global-race") { data[0] = (int)ME + 5; }
CASE(all_write_same, "-") { data[0] = 7; }
/* More readers of one place than have to be known: any write to it races. */
static __device__ void read_by_all(int *data) { data[ME + COUNT] = data[0]; }
CASE(second_reader_writes, "global-race") {
  read_by_all(data);
  if (ME == THREADS) data[0] = 5;
}
CASE(last_reader_writes, "global-race") {
  read_by_all(data);
  if (ME == COUNT - 1) data[0] = 5;
}
/* Here the blocks learn of each other, so each reader matters. */
static __device__ void last_to_come_writes(int *data, int *flags) {
  read_by_all(data);
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();
  bool last = atomicAdd(&flags[0], 1) == BLOCKS - 1;
  __threadfence();
  if (last) data[0] = 5;
}
CASE(last_to_come_writes_what_all_have_read, "-") { last_to_come_writes(data, flags); }
CASE(one_reads_after_it_has_come, "global-race") {
  last_to_come_writes(data, flags);
  if (ME == 2 * THREADS + 40) data[ME + COUNT] += data[0];
}
CASE(atomic_increments, "-") { atomicAdd(&data[0], 1); }
CASE(one_increment_not_atomic, "global-race") {
  if (blockIdx.x == 1)
    data[0]++;
  else
    atomicAdd(&data[0], 1);
}
CASE(reads_atomic_counter, "global-race") {
  atomicAdd(&data[0], 1);
  data[ME + COUNT] = data[0];
}
CASE(one_of_every_second, "global-race") { /* only thread 3's element is written twice */
  if (threadIdx.x < 32 && (blockIdx.x == 0 || threadIdx.x == 3)) data[threadIdx.x * 2] = (int)ME;
}
CASE(halves_of_one_word, "-") {
  short *halves = (short *)data;
  halves[(threadIdx.x & 31) * 2 + (ME / 32) % 2 + ME / 64 * 64] = (short)ME;
}
CASE(set_after_check, "global-race") {
  if (threadIdx.x % 3 == 0 && data[0] == 0) data[0] = 1;
}
CASE(set_without_check, "-") {
  if (threadIdx.x % 3 == 0) data[0] = 1;
}

/* ---- Flags: block 0 hands data[0] to block 1 ---- */
typedef enum { ATOMIC, BLOCK_ATOMIC, VOLATILE, PLAIN } Access;
static __device__ __forceinline__ void hand_on(int *data, int *flag, Access sets, Fence before,
                                               Access asks, Fence after) {
  FIRST_OF_TWO_BLOCKS;
  if (blockIdx.x == 0) {
    data[0] = 5;
    fence(before);
    if (sets == ATOMIC) atomicExch(flag, 1);
    if (sets == BLOCK_ATOMIC) atomicExch_block(flag, 1);
    if (sets == VOLATILE) *as_volatile(flag) = 1;
    if (sets == PLAIN) *flag = 1;
  } else {
    while ((asks == ATOMIC ? atomicAdd(flag, 0) : *as_volatile(flag)) == 0) continue;
    fence(after);
    data[1] = data[0];
  }
}
#define FLAG(name, rule, ...) \
  CASE(name, rule) { hand_on(data, flags, __VA_ARGS__); }
FLAG(flag_with_fences, "-", ATOMIC, DEVICE_FENCE, ATOMIC, DEVICE_FENCE)
FLAG(volatile_flag_with_fences, "-", VOLATILE, DEVICE_FENCE, VOLATILE, DEVICE_FENCE)
FLAG(flag_without_writer_fence, "global-race", ATOMIC, NO_FENCE, ATOMIC, DEVICE_FENCE)
FLAG(flag_without_reader_fence, "flag-without-fence", ATOMIC, DEVICE_FENCE, VOLATILE, NO_FENCE)
FLAG(flag_with_block_fence, "scope-too-narrow", ATOMIC, BLOCK_FENCE, ATOMIC, DEVICE_FENCE)
FLAG(flag_with_block_fence_in_reader, "scope-too-narrow", ATOMIC, DEVICE_FENCE, VOLATILE,
     BLOCK_FENCE)
FLAG(flag_set_by_block_atomic, "scope-too-narrow", BLOCK_ATOMIC, DEVICE_FENCE, VOLATILE,
     DEVICE_FENCE)
FLAG(plain_flag, "global-race", PLAIN, DEVICE_FENCE, VOLATILE, DEVICE_FENCE)

/* ---- Locks ---- */
static __device__ void take(int *lock) {
  while (atomicCAS(lock, 0, 1) != 0) continue;
}
/* At most `blocks` blocks add to data[0], one after the other. */
static __device__ __forceinline__ void add_locked(int *data, int *lock, unsigned blocks,
                                                  Fence before, Fence after) {
  if (threadIdx.x != 0 || blockIdx.x >= blocks) return;
  take(lock);
  fence(before);
  data[0]++;
  fence(after);
  atomicExch(lock, 0);
}
CASE(lock_with_fences, "-") { add_locked(data, flags, BLOCKS, DEVICE_FENCE, DEVICE_FENCE); }
CASE(lock_without_release_fence, "global-race") {
  add_locked(data, flags, BLOCKS, DEVICE_FENCE, NO_FENCE);
}
CASE(lock_without_acquire_fence, "flag-without-fence") {
  add_locked(data, flags, BLOCKS, NO_FENCE, DEVICE_FENCE);
}
CASE(lock_with_block_fences, "scope-too-narrow") {
  add_locked(data, flags, BLOCKS, BLOCK_FENCE, BLOCK_FENCE);
}
/* Of two blocks one has the narrow fence: in every order of the two it is a mistake. */
CASE(lock_with_block_fence_of_first, "scope-too-narrow") {
  add_locked(data, flags, 2, blockIdx.x == 0 ? BLOCK_FENCE : DEVICE_FENCE, DEVICE_FENCE);
}
CASE(lock_with_block_fence_of_second, "scope-too-narrow") {
  add_locked(data, flags, 2, blockIdx.x == 1 ? BLOCK_FENCE : DEVICE_FENCE, DEVICE_FENCE);
}
CASE(lock_with_both_fences, "-") {
  FIRST_OF_BLOCK;
  take(&flags[0]);
  __threadfence_block();
  __threadfence();
  data[0]++;
  __threadfence();
  atomicExch(&flags[0], 0);
}
CASE(lock_of_block, "-") {
  if (threadIdx.x % 32 != 0) return;
  int *lock = &flags[blockIdx.x], *count = &data[blockIdx.x];
  while (atomicCAS_block(lock, 0, 1) != 0) continue;
  __threadfence_block();
  ++*count;
  __threadfence_block();
  atomicExch_block(lock, 0);
}
CASE(block_lock_between_blocks, "scope-too-narrow") {
  if (threadIdx.x % 32 != 0) return;
  while (atomicCAS_block(&flags[0], 0, 1) != 0) continue;
  __threadfence();
  data[0]++;
  __threadfence();
  atomicExch_block(&flags[0], 0);
}
CASE(one_without_the_lock, "global-race") {
  FIRST_OF_BLOCK;
  if (blockIdx.x == 0)
    data[0] = 1;
  else
    add_locked(data, flags, BLOCKS, DEVICE_FENCE, DEVICE_FENCE);
}

/* ---- Atomics' scopes ---- */
CASE(block_atomics_on_own_counter, "-") { atomicAdd_block(&data[blockIdx.x], 1); }
CASE(block_atomics_between_blocks, "scope-too-narrow") { atomicAdd_block(&data[0], 1); }
CASE(one_block_atomic, "scope-too-narrow") {
  if (blockIdx.x == 0)
    atomicAdd_block(&data[0], 1);
  else
    atomicAdd(&data[0], 1);
}
CASE(block_and_device_atomics_in_block, "-") {
  if (threadIdx.x < 32)
    atomicAdd_block(&data[blockIdx.x], 1);
  else
    atomicAdd(&data[blockIdx.x], 1);
}

/* ---- Volatile data: of two blocks, each stores its number under a lock ---- */
static __device__ __forceinline__ void store_locked(int *data, int *lock, Fence before,
                                                    Fence after) {
  FIRST_OF_TWO_BLOCKS;
  take(lock);
  fence(before);
  *as_volatile(data) = (int)blockIdx.x + 1;
  fence(after);
  atomicExch(lock, 0);
}
CASE(volatile_lock, "-") { store_locked(data, flags, DEVICE_FENCE, DEVICE_FENCE); }
CASE(volatile_lock_without_release_fence, "volatile-race") {
  store_locked(data, flags, DEVICE_FENCE, NO_FENCE);
}
CASE(volatile_lock_one_without_acquire_fence, "flag-without-fence") {
  store_locked(data, flags, blockIdx.x == 0 ? NO_FENCE : DEVICE_FENCE, DEVICE_FENCE);
}
CASE(volatile_lock_other_without_acquire_fence, "flag-without-fence") {
  store_locked(data, flags, blockIdx.x == 1 ? NO_FENCE : DEVICE_FENCE, DEVICE_FENCE);
}
CASE(volatile_lock_with_block_fences, "scope-too-narrow") {
  store_locked(data, flags, BLOCK_FENCE, BLOCK_FENCE);
}
CASE(volatile_store_without_the_lock, "volatile-race") {
  if (blockIdx.x == 0)
    store_locked(data, flags, DEVICE_FENCE, DEVICE_FENCE);
  else if (ME == THREADS)
    *as_volatile(data) = 2;
}
/* Block 0 stores a volatile word and sets a flag; block 1 takes the flag and loads the word. */
static __device__ __forceinline__ void load_after_flag(int *data, int *flags, Fence before) {
  FIRST_OF_TWO_BLOCKS;
  if (blockIdx.x == 0) {
    *as_volatile(data) = 5;
    fence(before);
    atomicExch(flags, 1);
  } else {
    while (atomicExch(flags, 0) == 0) continue;
    data[1] = *as_volatile(data);
  }
}
CASE(volatile_load_after_flag, "-") { load_after_flag(data, flags, DEVICE_FENCE); }
CASE(volatile_load_after_flag_of_block, "scope-too-narrow") {
  load_after_flag(data, flags, BLOCK_FENCE);
}
CASE(atomic_and_volatile_store, "volatile-race") {
  if (threadIdx.x == 0) atomicExch(&data[blockIdx.x], 1);
  if (threadIdx.x == 32) *as_volatile(&data[blockIdx.x]) = 2;
}
CASE(volatile_handshake, "-") {
  FIRST_OF_TWO_BLOCKS;
  volatile int *flag = flags;
  for (int i = 0; i < 3; i++) {
    if (blockIdx.x == 0) {
      while (*flag != 0) continue;
      __threadfence();
      data[0] = i;
      __threadfence();
      *flag = 1;
    } else {
      while (*flag == 0) continue;
      __threadfence();
      data[1 + i] = data[0];
      __threadfence();
      *flag = 0;
    }
  }
}
CASE(volatile_unlock, "-") {
  if (threadIdx.x % 32 != 0) return;
  take(flags);
  __threadfence();
  data[0]++;
  __threadfence();
  *as_volatile(flags) = 0;
}
CASE(ticket_lock, "-") {
  FIRST_OF_BLOCK;
  int ticket = atomicAdd(&flags[0], 1);
  while (*as_volatile(&flags[1]) != ticket) continue;
  __threadfence();
  data[0]++;
  __threadfence();
  *as_volatile(&flags[1]) = ticket + 1;
}
CASE(maximum_by_swaps, "-") { /* compare-and-swap, but no lock */
  int seen = atomicAdd(&data[0], 0), value = (int)(ME * 7919 % 1000);
  while (seen < value) {
    int found = atomicCAS(&data[0], seen, value);
    if (found == seen) break;
    seen = found;
  }
  flags[ME] = seen;
  __syncthreads();
  data[1 + ME] = flags[ME ^ 32];
}
CASE(volatile_stop_sign, "-") {
  FIRST_OF_BLOCK;
  if (blockIdx.x == 3) *as_volatile(flags) = 1;
  for (int i = 0; i < 4 && *as_volatile(flags) == 0; i++) data[ME] += i;
}
CASE(stores_in_place_after_polling,
     "-") { /* as thrust::unique: the flag depends on what was read */
  FIRST_OF_TWO_BLOCKS;
  cuda::atomic_ref<int, cuda::thread_scope_device> state(flags[0]);
  if (blockIdx.x == 0) {
    int count = data[5] & 1;
    state.store(count + 1, cuda::memory_order_relaxed);
  } else {
    int found;
    while ((found = state.load(cuda::memory_order_relaxed)) == 0) continue;
    data[found + 4] = 3;
  }
}
CASE(stores_after_polling_something_else,
     "global-race") { /* the flag says nothing about the load */
  FIRST_OF_BLOCK;
  if (blockIdx.x == 0) flags[1] = data[9];
  if (blockIdx.x == 1) *as_volatile(flags) = 1;
  if (blockIdx.x == 2) {
    while (*as_volatile(flags) == 0) continue;
    data[9] = 3;
  }
}
CASE(stores_after_flag_before_the_load, "global-race") {
  FIRST_OF_TWO_BLOCKS;
  if (blockIdx.x == 0) {
    *as_volatile(flags) = 1;
    flags[1] = data[9];
  } else {
    while (*as_volatile(flags) == 0) continue;
    data[9] = 3;
  }
}
template <bool fences>
static __device__ void peterson(int *data, int *flags) {
  FIRST_OF_TWO_BLOCKS;
  int other = 1 - blockIdx.x;
  for (int round = 0; round < 3; round++) {
    *as_volatile(&flags[blockIdx.x]) = 1;
    *as_volatile(&flags[2]) = other;
    if (fences) __threadfence();
    while (*as_volatile(&flags[other]) && *as_volatile(&flags[2]) == other) continue;
    if (fences) __threadfence();
    data[0]++;
    if (fences) __threadfence();
    *as_volatile(&flags[blockIdx.x]) = 0;
  }
}
CASE(peterson_with_fences, "-") { peterson<true>(data, flags); }
CASE(peterson_without_fences, "global-race") { peterson<false>(data, flags); }
/* The block that is counted last adds up what all have stored. */
static __device__ void last_block_adds(int *data, int *flags) {
  __syncthreads();
  __shared__ bool is_last;
  if (threadIdx.x == 0) is_last = atomicAdd(&flags[0], 1) == BLOCKS - 1;
  __syncthreads();
  for (int i = 0; i < BLOCKS && is_last; i++)
    data[COUNT + threadIdx.x] += data[i * THREADS + (threadIdx.x ^ 32)];
}
CASE(fence_of_all_threads_before_barrier, "-") { /* by one fence.sc after the other */
  data[ME] = (int)ME;
  __threadfence();
  last_block_adds(data, flags);
}
/* Block 0 sets a flag after a fence by all its threads; one thread of block 1 sees it, then all meet. */
static __device__ __forceinline__ void flag_for_all(int *data, int *flags, Fence after) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 5;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) *as_volatile(&flags[0]) = 1;
  } else if (blockIdx.x == 1) {
    if (threadIdx.x == 0)
      while (*as_volatile(&flags[0]) == 0) continue;
    __syncthreads();
    fence(after);
    data[COUNT + threadIdx.x] = data[(threadIdx.x + 33) % THREADS];
  }
}
#define FLAG_FOR_ALL(name, rule, after) \
  CASE(name, rule) { flag_for_all(data, flags, after); }
FLAG_FOR_ALL(fence_of_all_threads_after_barrier, "-", DEVICE_FENCE)
FLAG_FOR_ALL(fence_of_system_after_barrier, "-", SYSTEM_FENCE)
FLAG_FOR_ALL(weaker_fence_of_all_threads_after_barrier, "flag-without-fence", WEAKER_FENCE)
FLAG_FOR_ALL(block_fence_of_all_threads_after_barrier, "scope-too-narrow", BLOCK_FENCE)
FLAG_FOR_ALL(no_fence_after_barrier, "flag-without-fence", NO_FENCE)
FLAG_FOR_ALL(one_fence_after_barrier, "flag-without-fence", FENCE_OF_ONE_WARP)
CASE(weaker_fence_of_all_threads_before_barrier,
     "global-race") { /* only fence.sc have an order of their own */
  data[ME] = (int)ME;
  fence(WEAKER_FENCE);
  last_block_adds(data, flags);
}
CASE(double_sum_by_swaps,
     "-") { /* as in the CUDA guide: the swap checks what the plain load has read */
  unsigned long long *sum = (unsigned long long *)data, old = *sum, assumed;
  do {
    assumed = old;
    old = atomicCAS(sum, assumed, __double_as_longlong(1 + __longlong_as_double(assumed)));
  } while (assumed != old);
}
CASE(peek_before_atomic, "global-race") {
  if (data[0] < (int)ME) atomicMax(&data[0], (int)ME);
}
CASE(list_by_swaps, "-") { /* the swap of the list's head takes no lock */
  int old = *as_volatile(flags), seen;
  do {
    seen = old;
    data[ME] = seen;
    __threadfence();
    old = atomicCAS(&flags[0], seen, (int)ME + 1);
  } while (old != seen);
}
CASE(atomics_of_two_sizes, "access-sizes-differ") {
  FIRST_OF_BLOCK;
  if (blockIdx.x == 0)
    atomicAdd((unsigned long long *)&data[2], 1ull);
  else
    atomicAdd(&data[3], 1);
}
CASE(atomics_of_bytes, "-") { /* made from atomics of words */
  cuda::atomic_ref<char, cuda::thread_scope_device> byte(((char *)data)[threadIdx.x % 8]);
  byte.fetch_add(1, cuda::memory_order_relaxed);
  if (byte.load(cuda::memory_order_relaxed) == 0) data[4] = 1;
}
CASE(volatile_read_after_release,
     "volatile-race") { /* the second read may come before or after the store */
  FIRST_OF_TWO_BLOCKS;
  if (blockIdx.x == 0) {
    flags[1] = *as_volatile(data);
    __threadfence();
    atomicExch(&flags[0], 1);
    flags[2] = *as_volatile(data);
  } else {
    while (atomicAdd(&flags[0], 0) == 0) continue;
    *as_volatile(data) = 1;
  }
}
CASE(volatile_store_after_the_lock, "volatile-race") {
  FIRST_OF_TWO_BLOCKS;
  take(&flags[0]);
  __threadfence();
  flags[1 + blockIdx.x] = *as_volatile(data);
  __threadfence();
  atomicExch(&flags[0], 0);
  if (blockIdx.x == 0) *as_volatile(data) = 1;
}
CASE(volatile_peek_before_the_lock, "-") {
  if (threadIdx.x != 0 || *as_volatile(data) > 2) return;
  take(&flags[0]);
  __threadfence();
  *as_volatile(data) = *as_volatile(data) + 1;
  __threadfence();
  atomicExch(&flags[0], 0);
}
CASE(passed_on_with_mixed_scopes, "-") { /* within a block by .cta, between blocks by .gpu */
  if (blockIdx.x > 1 || threadIdx.x % 32 != 0) return;
  int turn = (int)(blockIdx.x * 2 + threadIdx.x / 32);
  while (atomicAdd(flags, 0) != turn) continue;
  if (turn % 2)
    atomicExch(data, turn);
  else
    atomicExch_block(data, turn);
  fence(turn % 2 ? DEVICE_FENCE : BLOCK_FENCE);
  atomicExch(flags, turn + 1);
}

/* ---- The last block, and barriers of the grid ---- */
static __device__ __forceinline__ void last_block_adds_up(int *data, int *flags, Fence before) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    data[blockIdx.x] = (int)blockIdx.x;
    fence(before);
    last = atomicAdd(&flags[0], 1) == (int)gridDim.x - 1;
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; i++) sum += data[i];
  data[COUNT] = sum;
}
CASE(last_block_sums, "-") { last_block_adds_up(data, flags, DEVICE_FENCE); }
CASE(last_block_sums_without_fence, "global-race") { last_block_adds_up(data, flags, NO_FENCE); }
/* All blocks add to the sums, and the last one reads them. Nothing tells it that the others' sums are
 * there, even if its own additions came after theirs in this run: their results are not read. */
static __device__ __forceinline__ void last_block_reads_sums(int *data, int *flags, Fence before) {
  __shared__ bool last;
  atomicAdd(&data[threadIdx.x], 1);
  fence(before);
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&flags[0], 1) == (int)gridDim.x - 1;
  __syncthreads();
  if (last) data[COUNT + threadIdx.x] = data[threadIdx.x];
}
CASE(last_block_reads_atomic_sums, "-") { last_block_reads_sums(data, flags, DEVICE_FENCE); }
CASE(last_block_reads_atomic_sums_without_fence, "global-race") {
  last_block_reads_sums(data, flags, NO_FENCE);
}
CASE(last_block_resets_counter, "-") { /* its atomic has seen those of all others */
  __shared__ bool last;
  __threadfence();
  if (threadIdx.x == 0) last = atomicAdd(&flags[0], 1) == (int)gridDim.x - 1;
  __syncthreads();
  if (last && threadIdx.x == 0) flags[0] = 0;
}
CASE(counter_reset_too_early, "global-race") {
  if (threadIdx.x == 0 && atomicAdd(&flags[0], 1) == 1) flags[0] = 0;
}
static __device__ void barrier_of_blocks(int *count, Fence around) {
  __syncthreads();
  if (threadIdx.x == 0) {
    fence(around);
    atomicAdd(count, 1);
    while (*as_volatile(count) < BLOCKS) continue;
    fence(around);
  }
  __syncthreads();
}
CASE(own_grid_barrier, "-") {
  data[ME] = (int)ME;
  barrier_of_blocks(flags, DEVICE_FENCE);
  flags[64 + ME] = data[(ME + THREADS) % COUNT];
}
CASE(own_grid_barrier_without_fences, "global-race") {
  data[ME] = (int)ME;
  barrier_of_blocks(flags, NO_FENCE);
  flags[64 + ME] = data[(ME + THREADS) % COUNT];
}
/* These are launched as cooperative kernels. */
CASE(grid_barrier, "-") {
  data[ME] = (int)ME;
  cg::this_grid().sync();
  int right = data[(ME + THREADS) % COUNT];
  cg::this_grid().sync();
  data[ME] = right;
}
CASE(grid_barrier_missing, "global-race") {
  data[ME] = (int)ME;
  cg::this_grid().sync();
  int right = data[(ME + THREADS) % COUNT];
  data[ME] = right;
}

/* ---- The copy engine ---- */
/* Each block stores its tile; what its elements are, and whether the thread that stores waits. */
static __device__ __forceinline__ void store_tile(int *to, int value, bool waits) {
  __shared__ alignas(128) int tile[THREADS];
  tile[threadIdx.x] = value;
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    bulk_store(to, tile, sizeof tile);
    bulk_commit_group();
    if (waits) bulk_wait_group<0>();
    if (!waits) bulk_wait_group_read<0>();
  }
  __syncthreads();
}
CASE(bulk_store_awaited, "-") {
  store_tile(&data[blockIdx.x * THREADS], (int)ME, true);
  flags[ME] = data[ME];
}
CASE(bulk_store_read_elsewhere, "global-race") {
  store_tile(&data[blockIdx.x * THREADS], (int)ME, false);
  if (threadIdx.x >= 32) flags[ME] = data[ME];
}
CASE(bulk_stores_to_one_place, "global-race") { store_tile(data, (int)ME, true); }
/* Equal plain stores are let pass; of copies one would be enough. */
CASE(equal_bulk_stores_to_one_place, "global-race") { store_tile(data, 1, true); }

static __device__ void add_tile(int *to) {
  __shared__ alignas(128) int tile[THREADS];
  tile[threadIdx.x] = (int)ME;
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x != 0) return;
  PTX("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;", "l"(to),
      "r"(shared_address(tile)), "r"((int)sizeof tile));
  finish_stores();
}
CASE(bulk_adds_to_one_place, "-") { add_tile(data); }
CASE(bulk_adds_and_a_store, "global-race") {
  add_tile(data);
  if (threadIdx.x == 0 && blockIdx.x == 2) data[3] = 1;
}

/* Starts a load of a tile; returns its barrier. */
static __device__ uint64_t *load_tile(const int *from) {
  __shared__ alignas(128) int tile[THREADS];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) init_and_load(tile, from, sizeof tile, &barrier);
  __syncthreads();
  return &barrier;
}
CASE(bulk_load_overwritten, "global-race") {
  uint64_t *barrier = load_tile(&data[blockIdx.x * THREADS]);
  if (threadIdx.x >= 32) data[ME] = 5;
  mbarrier_wait_parity(barrier, 0);
}
CASE(bulk_load_awaited_and_overwritten, "-") {
  mbarrier_wait_parity(load_tile(&data[blockIdx.x * THREADS]), 0);
  data[ME] = 5;
}
CASE(bulk_load_of_other_block, "global-race") {
  data[ME] = (int)ME;
  mbarrier_wait_parity(load_tile(&data[(blockIdx.x + 1) % BLOCKS * THREADS]), 0);
}

/* ---- What all blocks read, in several ways, and one of them writes at last ---- */
static __device__ void last_block_writes(int *data) {
  if (blockIdx.x == BLOCKS - 1 && threadIdx.x == 5) data[5] = 7;
}
static __device__ void copied_by_all(const int *data, int *flags) {
  __shared__ int tile[THREADS];
  PTX("cp.async.ca.shared.global [%0], [%1], 4; cp.async.wait_all;",
      "r"(shared_address(&tile[threadIdx.x])), "l"(&data[threadIdx.x]));
  flags[ME] = tile[threadIdx.x];
}
CASE(copied_by_all_blocks, "-") { copied_by_all(data, flags); }
CASE(copied_by_all_blocks_and_written, "global-race") {
  copied_by_all(data, flags);
  last_block_writes(data);
}
CASE(bulk_load_by_all_blocks, "-") { mbarrier_wait_parity(load_tile(data), 0); }
CASE(bulk_load_by_all_blocks_and_written, "global-race") {
  mbarrier_wait_parity(load_tile(data), 0);
  last_block_writes(data);
}
CASE(scattered_reads_by_all_blocks, "-") { flags[ME] = data[threadIdx.x * 5 % THREADS]; }
CASE(scattered_reads_by_all_blocks_and_written, "global-race") {
  flags[ME] = data[threadIdx.x * 5 % THREADS];
  last_block_writes(data);
}
/* Who reads it after the write races, too, whether or not others have read it before. */
CASE(written_by_first_and_read_by_all, "global-race") {
  if (blockIdx.x == 0 && threadIdx.x == 5) data[5] = 7;
  flags[ME] = data[5] + data[threadIdx.x * 5 % THREADS];
}

/* ---- The read-only path, and dependent launches ---- */
CASE(read_only_load_of_written, "read-only-load-of-written") {
  data[ME] = (int)ME;
  __syncthreads();
  flags[ME] = __ldg(&data[ME ^ 32]);
}
CASE(read_only_load_of_input, "-") { flags[ME] = __ldg(&data[ME ^ 32]); }

static __global__ void writes_early(int *data) {
  PTX("griddepcontrol.launch_dependents;");
  data[ME] = (int)ME;
}
static __device__ void wait_for_launch(void) { PTX("griddepcontrol.wait;"); }
CASE(dependent_waits, "-") {
  wait_for_launch();
  flags[ME] = data[ME];
}
CASE(dependent_does_not_wait, "global-race") { flags[ME] = data[ME]; }
CASE(dependent_waits_in_one_warp, "global-race") {
  if (threadIdx.x < 32) wait_for_launch();
  flags[ME] = data[ME];
}
CASE(dependent_waits_for_all, "-") {
  if (threadIdx.x < 32) wait_for_launch();
  __syncthreads();
  flags[ME] = data[ME];
}

/* Found in some orders alone; runs only if it is named. */
CASE(waits_for_one_fewer, "in-some-orders") { /* if block 1 runs before block 0 has written all */
  FIRST_OF_TWO_BLOCKS;
  for (int i = 0; i < 20; i++) {
    if (blockIdx.x == 0) {
      data[i] = i;
      __threadfence();
      *as_volatile(flags) = i + 1;
    } else {
      while (*as_volatile(flags) < i) continue;
      __threadfence();
      data[COUNT + i] = data[i];
    }
  }
}

static void run_dependent(Kernel *kernel, int *data, int *flags) {
  writes_early<<<BLOCKS, THREADS>>>(data);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = BLOCKS;
  config.blockDim = THREADS;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, data, flags));
}

static void run_case(const Case<Kernel> *test, int *data, int *flags) {
  CUDA_CHECK(cudaMemset(data, 0, 2 * COUNT * sizeof *data));
  CUDA_CHECK(cudaMemset(flags, 0, 2 * COUNT * sizeof *flags));
  void *arguments[] = {&data, &flags};
  if (strncmp(test->name, "grid_barrier", 12) == 0)
    CUDA_CHECK(cudaLaunchCooperativeKernel((const void *)test->run, BLOCKS, THREADS, arguments));
  else if (strncmp(test->name, "dependent", 9) == 0)
    run_dependent(test->run, data, flags);
  else
    CUDA_CHECK(cudaLaunchKernel((const void *)test->run, BLOCKS, THREADS, arguments));
  CUDA_CHECK(cudaDeviceSynchronize());
  printf("%s %s\n", test->name, test->says);
}

int main(int argc, char **argv) {
  const Case<Kernel> *chosen = choose_case<Kernel>(argc, argv, true);
  int *data = device_memory<int>(2 * COUNT), *flags = device_memory<int>(2 * COUNT);
  if (chosen) run_case(chosen, data, flags);
  for (const Case<Kernel> *test = Case<Kernel>::first; test && !chosen; test = test->next)
    if (strcmp(test->says, "in-some-orders") != 0) run_case(test, data, flags);
  return 0;
}
