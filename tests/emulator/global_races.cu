/* global_races.cu: small kernels with and without races in global memory, and their known answers.
 *
 *   global_races          runs all, and prints for each its name and the rule that it breaks ("-": none)
 *   global_races NAME     runs one
 *
 * The test compares this list with what the checker reports (tests/emulator_global.bats). Each kernel
 * is named after its case; `data` has one element for each thread, and `flags` is zero at the start. */
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <stdio.h>
#include <string.h>

#include "check.h"

namespace cg = cooperative_groups;

enum { BLOCKS = 4, THREADS = 64, COUNT = BLOCKS * THREADS };

#define KERNEL(name) __global__ void name(int *data, int *flags)
#define ME (blockIdx.x * blockDim.x + threadIdx.x)
static __device__ volatile int *as_volatile(int *at) { return at; }

/* ---- Plain accesses of several blocks and warps ---- */
KERNEL(own_elements) { data[ME] += 1; }
KERNEL(neighbour_of_block) {
  int right = data[(ME + 1) % COUNT];
  data[ME] = right + 1;
}
KERNEL(all_write_one) { data[0] = (int)ME + 5; }
KERNEL(all_write_same) { data[0] = 7; }
KERNEL(all_read_one) { data[ME + COUNT] = data[0]; }
KERNEL(one_writes_all_read) {
  if (ME == 0) data[0] = 5;
  data[ME + COUNT] = data[0];
}
/* More readers of one place than have to be known: any write to it races. */
static __device__ void read_by_all(int *data) { data[ME + COUNT] = data[0]; }
KERNEL(second_reader_writes) {
  read_by_all(data);
  if (ME == THREADS) data[0] = 5;
}
KERNEL(last_reader_writes) {
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
KERNEL(last_to_come_writes_what_all_have_read) { last_to_come_writes(data, flags); }
KERNEL(one_reads_after_it_has_come) {
  last_to_come_writes(data, flags);
  if (ME == 2 * THREADS + 40) data[ME + COUNT] += data[0];
}
KERNEL(increments) { data[0]++; }
KERNEL(atomic_increments) { atomicAdd(&data[0], 1); }
KERNEL(one_increment_not_atomic) {
  if (blockIdx.x == 1)
    data[0]++;
  else
    atomicAdd(&data[0], 1);
}
KERNEL(reads_atomic_counter) {
  atomicAdd(&data[0], 1);
  data[ME + COUNT] = data[0];
}
KERNEL(warps_without_barrier) {
  data[ME] = (int)ME;
  flags[ME] = data[blockIdx.x * THREADS + (threadIdx.x + 32) % THREADS];
}
KERNEL(warps_with_barrier) {
  data[ME] = (int)ME;
  __syncthreads();
  flags[ME] = data[blockIdx.x * THREADS + (threadIdx.x + 32) % THREADS];
}
KERNEL(one_of_every_second) { /* only thread 3's element is written twice */
  if (threadIdx.x < 32 && (blockIdx.x == 0 || threadIdx.x == 3)) data[threadIdx.x * 2] = (int)ME;
}
KERNEL(bytes_of_one_word) {
  char *bytes = (char *)data;
  bytes[ME * 3 % COUNT] = (char)ME;
}
KERNEL(halves_of_one_word) {
  short *halves = (short *)data;
  halves[(threadIdx.x & 31) * 2 + (ME / 32) % 2 + ME / 64 * 64] = (short)ME;
}
KERNEL(byte_written_twice) {
  char *bytes = (char *)data;
  if (threadIdx.x == 0) bytes[blockIdx.x / 2] = (char)(blockIdx.x + 1);
}
KERNEL(wrong_bounds) {
  if (threadIdx.x <= 32) data[blockIdx.x * 32 + threadIdx.x] = (int)ME + 1;
}
/* The store alone is let pass: "set_without_check". The read makes it a race. */
KERNEL(set_after_check) {
  if (threadIdx.x % 3 == 0 && data[0] == 0) data[0] = 1;
}
KERNEL(set_without_check) {
  if (threadIdx.x % 3 == 0) data[0] = 1;
}

/* ---- Flags ---- */
KERNEL(flag_with_fences) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    data[0] = 5;
    __threadfence();
    atomicExch(&flags[0], 1);
  } else if (blockIdx.x == 1) {
    while (atomicAdd(&flags[0], 0) == 0) continue;
    __threadfence();
    data[1] = data[0];
  }
}
KERNEL(volatile_flag_with_fences) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    data[0] = 5;
    __threadfence();
    *as_volatile(&flags[0]) = 1;
  } else if (blockIdx.x == 1) {
    while (*as_volatile(&flags[0]) == 0) continue;
    __threadfence();
    data[1] = data[0];
  }
}
KERNEL(flag_without_writer_fence) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    data[0] = 5;
    atomicExch(&flags[0], 1);
  } else if (blockIdx.x == 1) {
    while (atomicAdd(&flags[0], 0) == 0) continue;
    __threadfence();
    data[1] = data[0];
  }
}
KERNEL(flag_without_reader_fence) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    data[0] = 5;
    __threadfence();
    atomicExch(&flags[0], 1);
  } else if (blockIdx.x == 1) {
    while (*as_volatile(&flags[0]) == 0) continue;
    data[1] = data[0];
  }
}
KERNEL(flag_with_block_fence) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    data[0] = 5;
    __threadfence_block();
    atomicExch(&flags[0], 1);
  } else if (blockIdx.x == 1) {
    while (atomicAdd(&flags[0], 0) == 0) continue;
    __threadfence();
    data[1] = data[0];
  }
}
KERNEL(flag_with_block_fence_in_reader) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    data[0] = 5;
    __threadfence();
    atomicExch(&flags[0], 1);
  } else if (blockIdx.x == 1) {
    while (*as_volatile(&flags[0]) == 0) continue;
    __threadfence_block();
    data[1] = data[0];
  }
}
KERNEL(flag_with_block_fence_in_block) {
  if (blockIdx.x != 0) return;
  if (threadIdx.x == 0) {
    data[0] = 5;
    __threadfence_block();
    atomicExch_block(&flags[0], 1);
  } else if (threadIdx.x == 32) {
    while (atomicAdd_block(&flags[0], 0) == 0) continue;
    __threadfence_block();
    data[1] = data[0];
  }
}
KERNEL(flag_set_by_block_atomic) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    data[0] = 5;
    __threadfence();
    atomicExch_block(&flags[0], 1);
  } else if (blockIdx.x == 1) {
    while (*as_volatile(&flags[0]) == 0) continue;
    __threadfence();
    data[1] = data[0];
  }
}
KERNEL(release_acquire) {
  if (threadIdx.x != 0) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> flag(flags[0]);
  if (blockIdx.x == 0) {
    data[0] = 5;
    flag.store(1, cuda::memory_order_release);
  } else if (blockIdx.x == 1) {
    while (flag.load(cuda::memory_order_acquire) == 0) continue;
    data[1] = data[0];
  }
}
KERNEL(release_acquire_of_block) {
  if (threadIdx.x != 0) return;
  cuda::atomic_ref<int, cuda::thread_scope_block> flag(flags[0]);
  if (blockIdx.x == 0) {
    data[0] = 5;
    flag.store(1, cuda::memory_order_release);
  } else if (blockIdx.x == 1) {
    while (flag.load(cuda::memory_order_acquire) == 0) continue;
    data[1] = data[0];
  }
}
KERNEL(relaxed_flag) {
  if (threadIdx.x != 0) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> flag(flags[0]);
  if (blockIdx.x == 0) {
    data[0] = 5;
    flag.store(1, cuda::memory_order_relaxed);
  } else if (blockIdx.x == 1) {
    while (flag.load(cuda::memory_order_relaxed) == 0) continue;
    data[1] = data[0];
  }
}
KERNEL(plain_flag) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    data[0] = 5;
    __threadfence();
    flags[0] = 1;
  } else if (blockIdx.x == 1) {
    while (*as_volatile(&flags[0]) == 0) continue;
    __threadfence();
    data[1] = data[0];
  }
}
KERNEL(three_blocks_pass_on) { /* cumulative: 0 to 1 to 2 */
  if (threadIdx.x != 0) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> first(flags[0]), second(flags[1]);
  if (blockIdx.x == 0) {
    data[0] = 5;
    first.store(1, cuda::memory_order_release);
  } else if (blockIdx.x == 1) {
    while (first.load(cuda::memory_order_acquire) == 0) continue;
    second.store(1, cuda::memory_order_release);
  } else if (blockIdx.x == 2) {
    while (second.load(cuda::memory_order_acquire) == 0) continue;
    data[1] = data[0];
  }
}
KERNEL(release_sequence) { /* the reader sees the second atomic's value, and both have released */
  if (threadIdx.x != 0) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> count(flags[0]);
  if (blockIdx.x < 2) {
    data[blockIdx.x] = 5;
    count.fetch_add(1, cuda::memory_order_release);
  } else if (blockIdx.x == 2) {
    while (count.load(cuda::memory_order_acquire) != 2) continue;
    data[2] = data[0] + data[1];
  }
}
KERNEL(block_hands_on_by_barrier) { /* all threads write, one of them releases after a barrier */
  data[ME] = (int)ME;
  __syncthreads();
  cuda::atomic_ref<int, cuda::thread_scope_device> flag(flags[0]);
  if (threadIdx.x == 0 && blockIdx.x == 0) flag.store(1, cuda::memory_order_release);
  if (blockIdx.x != 1) return;
  if (threadIdx.x == 0)
    while (flag.load(cuda::memory_order_acquire) == 0) continue;
  __syncthreads();
  flags[1 + threadIdx.x] = data[threadIdx.x];
}
KERNEL(block_hands_on_without_barrier) {
  data[ME] = (int)ME;
  cuda::atomic_ref<int, cuda::thread_scope_device> flag(flags[0]);
  if (threadIdx.x == 0 && blockIdx.x == 0) flag.store(1, cuda::memory_order_release);
  if (blockIdx.x != 1) return;
  if (threadIdx.x == 0)
    while (flag.load(cuda::memory_order_acquire) == 0) continue;
  __syncthreads();
  flags[1 + threadIdx.x] = data[threadIdx.x];
}
KERNEL(writes_after_release) {
  if (threadIdx.x != 0) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> flag(flags[0]);
  if (blockIdx.x == 0) {
    flag.store(1, cuda::memory_order_release);
    data[0] = 5;
  } else if (blockIdx.x == 1) {
    while (flag.load(cuda::memory_order_acquire) == 0) continue;
    data[1] = data[0];
  }
}

/* ---- Locks ---- */
static __device__ void take(int *lock) {
  while (atomicCAS(lock, 0, 1) != 0) continue;
}
KERNEL(lock_with_fences) {
  if (threadIdx.x != 0) return;
  take(&flags[0]);
  __threadfence();
  data[0]++;
  __threadfence();
  atomicExch(&flags[0], 0);
}
KERNEL(lock_without_release_fence) {
  if (threadIdx.x != 0) return;
  take(&flags[0]);
  __threadfence();
  data[0]++;
  atomicExch(&flags[0], 0);
}
KERNEL(lock_without_acquire_fence) {
  if (threadIdx.x != 0) return;
  take(&flags[0]);
  data[0]++;
  __threadfence();
  atomicExch(&flags[0], 0);
}
KERNEL(lock_with_block_fences) {
  if (threadIdx.x != 0) return;
  take(&flags[0]);
  __threadfence_block();
  data[0]++;
  __threadfence_block();
  atomicExch(&flags[0], 0);
}
/* Of two blocks one has the narrow fence: in every order of the two it is a mistake. */
static __device__ void add_locked_with_narrow_fence_of(int *data, int *flags, unsigned block) {
  if (threadIdx.x != 0 || blockIdx.x > 1) return;
  take(&flags[0]);
  if (blockIdx.x == block)
    __threadfence_block();
  else
    __threadfence();
  data[0]++;
  __threadfence();
  atomicExch(&flags[0], 0);
}
KERNEL(lock_with_block_fence_of_first) { add_locked_with_narrow_fence_of(data, flags, 0); }
KERNEL(lock_with_block_fence_of_second) { add_locked_with_narrow_fence_of(data, flags, 1); }
KERNEL(lock_with_both_fences) {
  if (threadIdx.x != 0) return;
  take(&flags[0]);
  __threadfence_block();
  __threadfence();
  data[0]++;
  __threadfence();
  atomicExch(&flags[0], 0);
}
KERNEL(lock_of_block) {
  if (threadIdx.x % 32 != 0) return;
  int *lock = &flags[blockIdx.x], *count = &data[blockIdx.x];
  while (atomicCAS_block(lock, 0, 1) != 0) continue;
  __threadfence_block();
  ++*count;
  __threadfence_block();
  atomicExch_block(lock, 0);
}
KERNEL(block_lock_between_blocks) {
  if (threadIdx.x % 32 != 0) return;
  while (atomicCAS_block(&flags[0], 0, 1) != 0) continue;
  __threadfence();
  data[0]++;
  __threadfence();
  atomicExch_block(&flags[0], 0);
}
KERNEL(one_without_the_lock) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    data[0] = 1;
    return;
  }
  take(&flags[0]);
  __threadfence();
  data[0]++;
  __threadfence();
  atomicExch(&flags[0], 0);
}

/* ---- Atomics' scopes ---- */
KERNEL(block_atomics_on_own_counter) { atomicAdd_block(&data[blockIdx.x], 1); }
KERNEL(block_atomics_between_blocks) { atomicAdd_block(&data[0], 1); }
KERNEL(one_block_atomic) {
  if (blockIdx.x == 0)
    atomicAdd_block(&data[0], 1);
  else
    atomicAdd(&data[0], 1);
}
KERNEL(block_and_device_atomics_in_block) {
  if (threadIdx.x < 32)
    atomicAdd_block(&data[blockIdx.x], 1);
  else
    atomicAdd(&data[blockIdx.x], 1);
}

/* ---- Volatile data ---- */
typedef enum { NO_FENCE, BLOCK_FENCE, DEVICE_FENCE } Fence;
static __device__ void fence(Fence kind) {
  if (kind == BLOCK_FENCE) __threadfence_block();
  if (kind == DEVICE_FENCE) __threadfence();
}
static __device__ void store_locked(int *lock, int *data, int value, Fence before, Fence after) {
  take(lock);
  fence(before);
  *as_volatile(data) = value;
  fence(after);
  atomicExch(lock, 0);
}
#define FIRST_OF_TWO_BLOCKS \
  if (threadIdx.x != 0 || blockIdx.x > 1) return
KERNEL(volatile_lock) {
  FIRST_OF_TWO_BLOCKS;
  store_locked(flags, data, (int)blockIdx.x + 1, DEVICE_FENCE, DEVICE_FENCE);
}
KERNEL(volatile_lock_without_release_fence) {
  FIRST_OF_TWO_BLOCKS;
  store_locked(flags, data, (int)blockIdx.x + 1, DEVICE_FENCE, NO_FENCE);
}
KERNEL(volatile_lock_one_without_acquire_fence) {
  FIRST_OF_TWO_BLOCKS;
  Fence before = blockIdx.x == 0 ? NO_FENCE : DEVICE_FENCE;
  store_locked(flags, data, (int)blockIdx.x + 1, before, DEVICE_FENCE);
}
KERNEL(volatile_lock_other_without_acquire_fence) {
  FIRST_OF_TWO_BLOCKS;
  Fence before = blockIdx.x == 1 ? NO_FENCE : DEVICE_FENCE;
  store_locked(flags, data, (int)blockIdx.x + 1, before, DEVICE_FENCE);
}
KERNEL(volatile_lock_with_block_fences) {
  FIRST_OF_TWO_BLOCKS;
  store_locked(flags, data, (int)blockIdx.x + 1, BLOCK_FENCE, BLOCK_FENCE);
}
KERNEL(volatile_block_lock) {
  FIRST_OF_TWO_BLOCKS;
  while (atomicCAS_block(flags, 0, 1) != 0) continue;
  __threadfence();
  *as_volatile(data) = (int)blockIdx.x + 1;
  __threadfence();
  atomicExch_block(flags, 0);
}
KERNEL(volatile_store_without_the_lock) {
  FIRST_OF_TWO_BLOCKS;
  if (blockIdx.x == 0)
    store_locked(flags, data, 1, DEVICE_FENCE, DEVICE_FENCE);
  else
    *as_volatile(data) = 2;
}
KERNEL(volatile_load_after_flag) {
  FIRST_OF_TWO_BLOCKS;
  if (blockIdx.x == 0) {
    *as_volatile(data) = 5;
    __threadfence();
    atomicExch(flags, 1);
  } else {
    while (atomicExch(flags, 0) == 0) continue;
    data[1] = *as_volatile(data);
  }
}
KERNEL(volatile_load_after_flag_of_block) {
  FIRST_OF_TWO_BLOCKS;
  if (blockIdx.x == 0) {
    *as_volatile(data) = 5;
    __threadfence_block();
    atomicExch(flags, 1);
  } else {
    while (atomicExch(flags, 0) == 0) continue;
    data[1] = *as_volatile(data);
  }
}
KERNEL(atomic_and_volatile_store) {
  if (threadIdx.x == 0) atomicExch(&data[blockIdx.x], 1);
  if (threadIdx.x == 32) *as_volatile(&data[blockIdx.x]) = 2;
}
KERNEL(volatile_handshake) {
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
KERNEL(volatile_unlock) {
  if (threadIdx.x % 32 != 0) return;
  take(flags);
  __threadfence();
  data[0]++;
  __threadfence();
  *as_volatile(flags) = 0;
}
KERNEL(ticket_lock) {
  if (threadIdx.x != 0) return;
  int ticket = atomicAdd(&flags[0], 1);
  while (*as_volatile(&flags[1]) != ticket) continue;
  __threadfence();
  data[0]++;
  __threadfence();
  *as_volatile(&flags[1]) = ticket + 1;
}
KERNEL(maximum_by_swaps) { /* compare-and-swap, but no lock */
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
KERNEL(volatile_stop_sign) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 3) *as_volatile(flags) = 1;
  for (int i = 0; i < 4 && *as_volatile(flags) == 0; i++) data[ME] += i;
}
KERNEL(stores_in_place_after_polling) { /* as thrust::unique: the flag depends on what was read */
  if (threadIdx.x != 0 || blockIdx.x > 1) return;
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
KERNEL(stores_after_polling_something_else) { /* the flag says nothing about the load */
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) flags[1] = data[9];
  if (blockIdx.x == 1) *as_volatile(flags) = 1;
  if (blockIdx.x == 2) {
    while (*as_volatile(flags) == 0) continue;
    data[9] = 3;
  }
}
KERNEL(stores_after_flag_before_the_load) {
  if (threadIdx.x != 0 || blockIdx.x > 1) return;
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
  if (threadIdx.x != 0 || blockIdx.x > 1) return;
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
KERNEL(peterson_with_fences) { peterson<true>(data, flags); }
KERNEL(peterson_without_fences) { peterson<false>(data, flags); }
/* The block that is counted last adds up what all have stored. */
static __device__ void last_block_adds(int *data, int *flags) {
  __syncthreads();
  __shared__ bool is_last;
  if (threadIdx.x == 0) is_last = atomicAdd(&flags[0], 1) == BLOCKS - 1;
  __syncthreads();
  for (int i = 0; i < BLOCKS && is_last; i++)
    data[COUNT + threadIdx.x] += data[i * THREADS + (threadIdx.x ^ 32)];
}
KERNEL(fence_of_all_threads_before_barrier) { /* by one fence.sc after the other */
  data[ME] = (int)ME;
  __threadfence();
  last_block_adds(data, flags);
}
/* Block 0 sets a flag after a fence by all its threads; one thread of block 1 sees it, then all meet. */
#define FLAG_FOR_ALL(fence_before, fence_after)                     \
  if (blockIdx.x == 0) {                                            \
    data[threadIdx.x] = 5;                                          \
    fence_before;                                                   \
    __syncthreads();                                                \
    if (threadIdx.x == 0) *as_volatile(&flags[0]) = 1;              \
  } else if (blockIdx.x == 1) {                                     \
    if (threadIdx.x == 0)                                           \
      while (*as_volatile(&flags[0]) == 0) continue;                \
    __syncthreads();                                                \
    fence_after;                                                    \
    data[COUNT + threadIdx.x] = data[(threadIdx.x + 33) % THREADS]; \
  }
#define WEAKER_FENCE \
  cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_device)
KERNEL(fence_of_all_threads_after_barrier){
    FLAG_FOR_ALL(__threadfence(), __threadfence())} KERNEL(fence_of_system_after_barrier){
    FLAG_FOR_ALL(__threadfence(),
                 __threadfence_system())} KERNEL(weaker_fence_of_all_threads_after_barrier){
    FLAG_FOR_ALL(__threadfence(), WEAKER_FENCE)} KERNEL(weaker_fence_before_the_flag){
    FLAG_FOR_ALL(WEAKER_FENCE, __threadfence())} KERNEL(block_fence_of_all_threads_after_barrier){
    FLAG_FOR_ALL(__threadfence(), __threadfence_block())} KERNEL(no_fence_after_barrier){
    FLAG_FOR_ALL(__threadfence(), )} KERNEL(one_fence_after_barrier) {
  FLAG_FOR_ALL(__threadfence(), if (threadIdx.x < 32) __threadfence())
}
KERNEL(weaker_fence_of_all_threads_before_barrier) { /* only fence.sc have an order of their own */
  data[ME] = (int)ME;
  cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_device);
  last_block_adds(data, flags);
}
KERNEL(
    double_sum_by_swaps) { /* as in the CUDA guide: the swap checks what the plain load has read */
  unsigned long long *sum = (unsigned long long *)data, old = *sum, assumed;
  do {
    assumed = old;
    old = atomicCAS(sum, assumed, __double_as_longlong(1 + __longlong_as_double(assumed)));
  } while (assumed != old);
}
KERNEL(peek_before_atomic) {
  if (data[0] < (int)ME) atomicMax(&data[0], (int)ME);
}
KERNEL(list_by_swaps) { /* the swap of the list's head takes no lock */
  int old = *as_volatile(flags), seen;
  do {
    seen = old;
    data[ME] = seen;
    __threadfence();
    old = atomicCAS(&flags[0], seen, (int)ME + 1);
  } while (old != seen);
}
KERNEL(atomics_of_two_sizes) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0)
    atomicAdd((unsigned long long *)&data[2], 1ull);
  else
    atomicAdd(&data[3], 1);
}
KERNEL(atomics_of_bytes) { /* made from atomics of words */
  cuda::atomic_ref<char, cuda::thread_scope_device> byte(((char *)data)[threadIdx.x % 8]);
  byte.fetch_add(1, cuda::memory_order_relaxed);
  if (byte.load(cuda::memory_order_relaxed) == 0) data[4] = 1;
}
KERNEL(waits_for_one_fewer) { /* seen only if block 1 runs before block 0 has written all */
  if (threadIdx.x != 0 || blockIdx.x > 1) return;
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
KERNEL(volatile_read_after_release) { /* the second read may come before or after the store */
  if (threadIdx.x != 0 || blockIdx.x > 1) return;
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
KERNEL(volatile_store_after_the_lock) {
  if (threadIdx.x != 0 || blockIdx.x > 1) return;
  while (atomicCAS(&flags[0], 0, 1) != 0) continue;
  __threadfence();
  flags[1 + blockIdx.x] = *as_volatile(data);
  __threadfence();
  atomicExch(&flags[0], 0);
  if (blockIdx.x == 0) *as_volatile(data) = 1;
}
KERNEL(volatile_peek_before_the_lock) {
  if (threadIdx.x != 0 || *as_volatile(data) > 2) return;
  while (atomicCAS(&flags[0], 0, 1) != 0) continue;
  __threadfence();
  *as_volatile(data) = *as_volatile(data) + 1;
  __threadfence();
  atomicExch(&flags[0], 0);
}
KERNEL(volatile_ping_pong) {
  if (threadIdx.x != 0 || blockIdx.x > 1) return;
  for (int round = 0; round < 3; round++) {
    if (blockIdx.x == 0) {
      data[0] = round;
      __threadfence();
      *as_volatile(&flags[0]) = round + 1;
      while (*as_volatile(&flags[1]) != round + 1) continue;
      __threadfence();
    } else {
      while (*as_volatile(&flags[0]) != round + 1) continue;
      __threadfence();
      data[1 + round] = data[0];
      __threadfence();
      *as_volatile(&flags[1]) = round + 1;
    }
  }
}
KERNEL(passed_on_with_mixed_scopes) { /* within a block by .cta, between blocks by .gpu */
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
KERNEL(last_block_sums) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    data[blockIdx.x] = (int)blockIdx.x;
    __threadfence();
    last = atomicAdd(&flags[0], 1) == (int)gridDim.x - 1;
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; i++) sum += data[i];
  data[COUNT] = sum;
}
KERNEL(last_block_sums_without_fence) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    data[blockIdx.x] = (int)blockIdx.x;
    last = atomicAdd(&flags[0], 1) == (int)gridDim.x - 1;
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; i++) sum += data[i];
  data[COUNT] = sum;
}
/* All blocks add to the sums, and the last one reads them. Nothing tells it that the others' sums are
 * there, even if its own additions came after theirs in this run: their results are not read. */
static __device__ void last_block_reads_sums(int *data, int *flags, bool fences) {
  __shared__ bool last;
  atomicAdd(&data[threadIdx.x], 1);
  if (fences) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&flags[0], 1) == (int)gridDim.x - 1;
  __syncthreads();
  if (last) data[COUNT + threadIdx.x] = data[threadIdx.x];
}
KERNEL(last_block_reads_atomic_sums) { last_block_reads_sums(data, flags, true); }
KERNEL(last_block_reads_atomic_sums_without_fence) { last_block_reads_sums(data, flags, false); }
KERNEL(last_block_resets_counter) { /* its atomic has seen those of all others */
  __shared__ bool last;
  __threadfence();
  if (threadIdx.x == 0) last = atomicAdd(&flags[0], 1) == (int)gridDim.x - 1;
  __syncthreads();
  if (last && threadIdx.x == 0) flags[0] = 0;
}
KERNEL(counter_reset_too_early) {
  if (threadIdx.x == 0 && atomicAdd(&flags[0], 1) == 1) flags[0] = 0;
}
KERNEL(grid_barrier) {
  data[ME] = (int)ME;
  cg::this_grid().sync();
  int right = data[(ME + THREADS) % COUNT];
  cg::this_grid().sync();
  data[ME] = right;
}
KERNEL(grid_barrier_missing) {
  data[ME] = (int)ME;
  cg::this_grid().sync();
  int right = data[(ME + THREADS) % COUNT];
  data[ME] = right;
}
static __device__ void barrier_of_blocks(int *count, int goal, bool fence) {
  __syncthreads();
  if (threadIdx.x == 0) {
    if (fence) __threadfence();
    atomicAdd(count, 1);
    while (*(volatile int *)count < goal) continue;
    if (fence) __threadfence();
  }
  __syncthreads();
}
KERNEL(own_grid_barrier) {
  data[ME] = (int)ME;
  barrier_of_blocks(flags, BLOCKS, true);
  flags[64 + ME] = data[(ME + THREADS) % COUNT];
}
KERNEL(own_grid_barrier_without_fences) {
  data[ME] = (int)ME;
  barrier_of_blocks(flags, BLOCKS, false);
  flags[64 + ME] = data[(ME + THREADS) % COUNT];
}

/* ---- Clusters ---- */
__cluster_dims__(2) KERNEL(cluster_barrier) {
  data[ME] = (int)ME;
  cg::this_cluster().sync();
  flags[ME] = data[ME ^ THREADS];
}
__cluster_dims__(2) KERNEL(cluster_without_barrier) {
  data[ME] = (int)ME;
  __syncthreads();
  flags[ME] = data[ME ^ THREADS];
}
__cluster_dims__(2) KERNEL(cluster_relaxed_arrive) {
  data[ME] = (int)ME;
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
  flags[ME] = data[ME ^ THREADS];
}
__cluster_dims__(2) KERNEL(cluster_fence_and_relaxed_arrive) {
  data[ME] = (int)ME;
  asm volatile("fence.acq_rel.cluster;" ::: "memory");
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  flags[ME] = data[ME ^ THREADS];
}
__cluster_dims__(2) KERNEL(cluster_scope_flag) {
  if (threadIdx.x != 0) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> flag(flags[blockIdx.x / 2]);
  if (blockIdx.x % 2 == 0) {
    data[ME] = 5;
    asm volatile("st.release.cluster.global.s32 [%0], 1;" ::"l"(&flags[blockIdx.x / 2]) : "memory");
  } else {
    int seen = 0;
    while (!seen)
      asm volatile("ld.acquire.cluster.global.s32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(&flags[blockIdx.x / 2])
                   : "memory");
    data[ME] = data[ME - THREADS];
  }
}

#include "global_race_copies.cuh"

/* ---- The read-only path, and dependent launches ---- */
KERNEL(read_only_load_of_written) {
  data[ME] = (int)ME;
  __syncthreads();
  flags[ME] = __ldg(&data[ME ^ 32]);
}
KERNEL(read_only_load_of_input) { flags[ME] = __ldg(&data[ME ^ 32]); }

static __global__ void writes_early(int *data) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  data[ME] = (int)ME;
}
KERNEL(dependent_waits) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  flags[ME] = data[ME];
}
KERNEL(dependent_does_not_wait) { flags[ME] = data[ME]; }
KERNEL(dependent_waits_in_one_warp) {
  if (threadIdx.x < 32) asm volatile("griddepcontrol.wait;" ::: "memory");
  flags[ME] = data[ME];
}
KERNEL(dependent_waits_for_all) {
  if (threadIdx.x < 32) asm volatile("griddepcontrol.wait;" ::: "memory");
  __syncthreads();
  flags[ME] = data[ME];
}

typedef enum { ALONE, COOPERATIVE, DEPENDENT } HowLaunched;
typedef struct {
  const char *name, *rule;
  void (*kernel)(int *, int *);
  HowLaunched how;
} Case;
#define CASE(name, rule) \
  { #name, rule, name, ALONE }
#define GRID_CASE(name, rule) \
  { #name, rule, name, COOPERATIVE }
#define DEPENDENT_CASE(name, rule) \
  { #name, rule, name, DEPENDENT }
static const Case CASES[] = {
    CASE(own_elements, "-"),
    CASE(neighbour_of_block, "global-race"),
    CASE(one_of_every_second, "global-race"),
    CASE(all_write_one, "global-race"),
    CASE(all_write_same, "-"),
    CASE(all_read_one, "-"),
    CASE(one_writes_all_read, "global-race"),
    CASE(second_reader_writes, "global-race"),
    CASE(last_reader_writes, "global-race"),
    CASE(last_to_come_writes_what_all_have_read, "-"),
    CASE(one_reads_after_it_has_come, "global-race"),
    CASE(increments, "global-race"),
    CASE(atomic_increments, "-"),
    CASE(one_increment_not_atomic, "global-race"),
    CASE(reads_atomic_counter, "global-race"),
    CASE(warps_without_barrier, "global-race"),
    CASE(warps_with_barrier, "-"),
    CASE(bytes_of_one_word, "-"),
    CASE(halves_of_one_word, "-"),
    CASE(byte_written_twice, "global-race"),
    CASE(wrong_bounds, "global-race"),
    CASE(flag_with_fences, "-"),
    CASE(volatile_flag_with_fences, "-"),
    CASE(flag_without_writer_fence, "global-race"),
    CASE(flag_without_reader_fence, "flag-without-fence"),
    CASE(flag_with_block_fence, "scope-too-narrow"),
    CASE(flag_with_block_fence_in_reader, "scope-too-narrow"),
    CASE(flag_with_block_fence_in_block, "-"),
    CASE(flag_set_by_block_atomic, "scope-too-narrow"),
    CASE(release_acquire, "-"),
    CASE(release_acquire_of_block, "scope-too-narrow"),
    CASE(relaxed_flag, "global-race"),
    CASE(plain_flag, "global-race"),
    CASE(three_blocks_pass_on, "-"),
    CASE(release_sequence, "-"),
    CASE(block_hands_on_by_barrier, "-"),
    CASE(block_hands_on_without_barrier, "global-race"),
    CASE(writes_after_release, "global-race"),
    CASE(lock_with_fences, "-"),
    CASE(lock_without_release_fence, "global-race"),
    CASE(lock_without_acquire_fence, "flag-without-fence"),
    CASE(lock_with_block_fences, "scope-too-narrow"),
    CASE(lock_with_block_fence_of_first, "scope-too-narrow"),
    CASE(lock_with_block_fence_of_second, "scope-too-narrow"),
    CASE(lock_with_both_fences, "-"),
    CASE(lock_of_block, "-"),
    CASE(block_lock_between_blocks, "scope-too-narrow"),
    CASE(one_without_the_lock, "global-race"),
    CASE(block_atomics_on_own_counter, "-"),
    CASE(block_atomics_between_blocks, "scope-too-narrow"),
    CASE(one_block_atomic, "scope-too-narrow"),
    CASE(block_and_device_atomics_in_block, "-"),
    CASE(volatile_lock, "-"),
    CASE(volatile_lock_without_release_fence, "volatile-race"),
    CASE(volatile_lock_one_without_acquire_fence, "flag-without-fence"),
    CASE(volatile_lock_other_without_acquire_fence, "flag-without-fence"),
    CASE(volatile_lock_with_block_fences, "scope-too-narrow"),
    CASE(volatile_block_lock, "scope-too-narrow"),
    CASE(volatile_store_without_the_lock, "volatile-race"),
    CASE(volatile_load_after_flag, "-"),
    CASE(volatile_load_after_flag_of_block, "scope-too-narrow"),
    CASE(atomic_and_volatile_store, "volatile-race"),
    CASE(volatile_handshake, "-"),
    CASE(volatile_unlock, "-"),
    CASE(ticket_lock, "-"),
    CASE(maximum_by_swaps, "-"),
    CASE(volatile_stop_sign, "-"),
    CASE(stores_in_place_after_polling, "-"),
    CASE(stores_after_polling_something_else, "global-race"),
    CASE(stores_after_flag_before_the_load, "global-race"),
    CASE(peterson_with_fences, "-"),
    CASE(peterson_without_fences, "global-race"),
    CASE(fence_of_all_threads_before_barrier, "-"),
    CASE(weaker_fence_of_all_threads_before_barrier, "global-race"),
    CASE(fence_of_all_threads_after_barrier, "-"),
    CASE(fence_of_system_after_barrier, "-"),
    CASE(weaker_fence_of_all_threads_after_barrier, "flag-without-fence"),
    CASE(block_fence_of_all_threads_after_barrier, "scope-too-narrow"),
    CASE(no_fence_after_barrier, "flag-without-fence"),
    CASE(one_fence_after_barrier, "flag-without-fence"),
    CASE(double_sum_by_swaps, "-"),
    CASE(peek_before_atomic, "global-race"),
    CASE(list_by_swaps, "-"),
    CASE(atomics_of_two_sizes, "access-sizes-differ"),
    CASE(atomics_of_bytes, "-"),
    CASE(volatile_read_after_release, "volatile-race"),
    CASE(volatile_store_after_the_lock, "volatile-race"),
    CASE(volatile_peek_before_the_lock, "-"),
    CASE(volatile_ping_pong, "-"),
    CASE(passed_on_with_mixed_scopes, "-"),
    CASE(last_block_sums, "-"),
    CASE(last_block_sums_without_fence, "global-race"),
    CASE(last_block_reads_atomic_sums, "-"),
    CASE(last_block_reads_atomic_sums_without_fence, "global-race"),
    CASE(last_block_resets_counter, "-"),
    CASE(counter_reset_too_early, "global-race"),
    GRID_CASE(grid_barrier, "-"),
    GRID_CASE(grid_barrier_missing, "global-race"),
    CASE(own_grid_barrier, "-"),
    CASE(own_grid_barrier_without_fences, "global-race"),
    CASE(cluster_barrier, "-"),
    CASE(cluster_without_barrier, "global-race"),
    CASE(cluster_relaxed_arrive, "global-race"),
    CASE(cluster_fence_and_relaxed_arrive, "-"),
    CASE(cluster_scope_flag, "-"),
    CASE(bulk_store_awaited, "-"),
    CASE(bulk_store_read_elsewhere, "global-race"),
    CASE(bulk_stores_to_one_place, "global-race"),
    CASE(equal_bulk_stores_to_one_place, "global-race"),
    CASE(set_after_check, "global-race"),
    CASE(set_without_check, "-"),
    CASE(bulk_adds_to_one_place, "-"),
    CASE(bulk_adds_and_a_store, "global-race"),
    CASE(bulk_load_of_own_store, "missing-proxy-fence"),
    CASE(bulk_load_of_fenced_store, "-"),
    CASE(bulk_load_overwritten, "global-race"),
    CASE(bulk_load_awaited_and_overwritten, "-"),
    CASE(bulk_load_of_other_block, "global-race"),
    CASE(copied_by_all_blocks, "-"),
    CASE(copied_by_all_blocks_and_written, "global-race"),
    CASE(bulk_load_by_all_blocks, "-"),
    CASE(bulk_load_by_all_blocks_and_written, "global-race"),
    CASE(scattered_reads_by_all_blocks, "-"),
    CASE(scattered_reads_by_all_blocks_and_written, "global-race"),
    CASE(written_by_first_and_read_by_all, "global-race"),
    CASE(read_only_load_of_written, "read-only-load-of-written"),
    CASE(read_only_load_of_input, "-"),
    DEPENDENT_CASE(dependent_waits, "-"),
    DEPENDENT_CASE(dependent_does_not_wait, "global-race"),
    DEPENDENT_CASE(dependent_waits_in_one_warp, "global-race"),
    DEPENDENT_CASE(dependent_waits_for_all, "-"),
};

/* Found in some orders alone; runs only if it is named. */
static const Case IN_SOME_ORDERS = CASE(waits_for_one_fewer, "global-race");

static void run_dependent(const Case *test, int *data, int *flags) {
  writes_early<<<BLOCKS, THREADS>>>(data);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = BLOCKS;
  config.blockDim = THREADS;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CUDA_CHECK(cudaLaunchKernelEx(&config, test->kernel, data, flags));
}

static void run_case(const Case *test, int *data, int *flags) {
  CUDA_CHECK(cudaMemset(data, 0, 2 * COUNT * sizeof *data));
  CUDA_CHECK(cudaMemset(flags, 0, 2 * COUNT * sizeof *flags));
  void *arguments[] = {&data, &flags};
  const void *kernel = (const void *)test->kernel;
  if (test->how == COOPERATIVE)
    CUDA_CHECK(cudaLaunchCooperativeKernel(kernel, BLOCKS, THREADS, arguments, 0, 0));
  else if (test->how == DEPENDENT)
    run_dependent(test, data, flags);
  else
    CUDA_CHECK(cudaLaunchKernel(kernel, BLOCKS, THREADS, arguments, 0, 0));
  CUDA_CHECK(cudaDeviceSynchronize());
  printf("%s %s\n", test->name, test->rule);
}

int main(int argc, char **argv) {
  int *data, *flags, ran = 0;
  CUDA_CHECK(cudaMalloc(&data, 2 * COUNT * sizeof *data));
  CUDA_CHECK(cudaMalloc(&flags, 2 * COUNT * sizeof *flags));
  for (const Case &test : CASES) {
    if (argc > 1 && strcmp(argv[1], test.name) != 0) continue;
    run_case(&test, data, flags);
    ran++;
  }
  if (argc > 1 && strcmp(argv[1], IN_SOME_ORDERS.name) == 0) {
    run_case(&IN_SOME_ORDERS, data, flags);
    ran++;
  }
  if (ran == 0) {
    fprintf(stderr, "global_races: there is no case %s\n", argv[1]);
    return 2;
  }
  return 0;
}
