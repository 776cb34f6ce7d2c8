// endless_polls.cu: polls that never end, whatever they look like, and polls that do end, one case a run.
//
//   hangs CASE [BLOCKS]    prints "CASE: cudaError..., result N"
//
// Cases whose names begin with "ends_" end by themselves: their result is 1.
#include <cooperative_groups.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda/atomic>
#include <cuda/barrier>

typedef cuda::barrier<cuda::thread_scope_block> BlockBarrier;
enum { THREADS = 64, WORK = 3000000 };

static __device__ uint32_t shared_address(const void *pointer) {
  return (uint32_t)__cvta_generic_to_shared(pointer);
}
static __device__ void mbarrier_init(uint64_t *barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count)
               : "memory");
}
static __device__ void mbarrier_arrive(uint64_t *barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
static __device__ bool mbarrier_test_wait(uint64_t *barrier) {
  int over;
  asm volatile(
      "{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; "
      "selp.s32 %0, 1, 0, p; }"
      : "=r"(over)
      : "r"(shared_address(barrier))
      : "memory");
  return over;
}
static __device__ bool mbarrier_try_wait(uint64_t *barrier) {
  int over;
  asm volatile(
      "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; "
      "selp.s32 %0, 1, 0, p; }"
      : "=r"(over)
      : "r"(shared_address(barrier))
      : "memory");
  return over;
}
static __device__ bool mbarrier_try_wait_for(uint64_t *barrier, uint32_t nanoseconds) {
  int over;
  asm volatile(
      "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0, %2; "
      "selp.s32 %0, 1, 0, p; }"
      : "=r"(over)
      : "r"(shared_address(barrier)), "r"(nanoseconds)
      : "memory");
  return over;
}
static __device__ uint64_t nanoseconds_now() {
  uint64_t time;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}
static __device__ uint32_t work(uint32_t seed) {
  for (int i = 0; i < WORK; i++) seed = seed * 1664525 + 1013904223;
  return seed;
}

/* ---- These never end: nobody arrives often enough, or nobody writes the flag ---- */
__global__ void library_barrier(int *, int *) {
  __shared__ alignas(BlockBarrier) char memory[sizeof(BlockBarrier)];
  BlockBarrier *barrier = (BlockBarrier *)memory;
  if (threadIdx.x == 0) init(barrier, blockDim.x + 1);
  __syncthreads();
  barrier->arrive_and_wait();
}
__global__ void test_wait(int *, int *) {
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) mbarrier_init(&barrier, 2);
  __syncthreads();
  if (threadIdx.x == 0) mbarrier_arrive(&barrier);
  while (!mbarrier_test_wait(&barrier)) continue;
}
__global__ void test_wait_backoff(int *, int *) {
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) mbarrier_init(&barrier, 2);
  __syncthreads();
  if (threadIdx.x == 0) mbarrier_arrive(&barrier);
  for (uint32_t sleep = 20; !mbarrier_test_wait(&barrier); sleep *= 2) __nanosleep(sleep);
}
__global__ void try_wait_hint(int *, int *) {
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) mbarrier_init(&barrier, 2);
  __syncthreads();
  if (threadIdx.x == 0) mbarrier_arrive(&barrier);
  while (!mbarrier_try_wait_for(&barrier, 1000000)) continue;
}
/* The producer waits for a buffer that was never full to become free, and should ask for parity 1. */
__global__ void ring_never_begins(int *, int *) {
  __shared__ uint64_t full, empty;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    mbarrier_init(&empty, blockDim.x - 32);
  }
  __syncthreads();
  uint64_t *first = threadIdx.x < 32 ? &empty : &full, *then = threadIdx.x < 32 ? &full : &empty;
  while (!mbarrier_try_wait(first)) continue;
  if (threadIdx.x == 0 || threadIdx.x >= 32) mbarrier_arrive(then);
}
__global__ void volatile_flag(int *flag, int *) {
  while (*(volatile int *)flag == 0) continue;
}
__global__ void plain_flag_and_barrier(int *flag, int *) {
  while (*flag == 0) __syncthreads();
}
__global__ void acquire_flag(int *flag, int *) {
  cuda::atomic_ref<int, cuda::thread_scope_device> reference(*flag);
  while (reference.load(cuda::memory_order_acquire) == 0) continue;
}
__global__ void atomic_wait(int *flag, int *) {
  cuda::atomic_ref<int, cuda::thread_scope_device> reference(*flag);
  reference.wait(0);
}
__global__ void add_nothing(int *flag, int *) {
  for (uint32_t sleep = 8; atomicAdd(flag, 0) == 0; sleep *= 2) __nanosleep(sleep);
}
__global__ void failing_swap(int *flag, int *) {
  while (atomicCAS(flag, 1, 2) != 1) continue;
}
__global__ void counting(int *flag, int *result) {
  int attempts = 0;
  while (*(volatile int *)flag == 0) attempts++;
  *result = attempts;
}
__global__ void shared_flag(int *, int *) {
  __shared__ volatile int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  while (flag == 0) __nanosleep(100);
}
__global__ void one_thread_for_the_block(int *flag, int *) {
  __shared__ int value;
  for (;;) {
    if (threadIdx.x == 0) value = atomicAdd(flag, 0);
    __syncthreads();
    if (value) break;
    __syncthreads();
  }
}
__global__ void under_a_lock(int *flag, int *) { /* flag[1] is the lock */
  if (threadIdx.x % 32) return;
  for (int value = 0; value == 0;) {
    while (atomicCAS(flag + 1, 0, 1) != 0) continue;
    value = *(volatile int *)flag;
    atomicExch(flag + 1, 0);
  }
}
__global__ void sleeping_by_the_clock(int *flag, int *) {
  while (*(volatile int *)flag == 0)
    for (long long start = clock64(); clock64() - start < 1000000;) continue;
}
__global__ void for_ever(int *, int *) {
  for (;;) asm volatile("");
}
/* The copy can land, but no thread makes progress. */
__global__ void for_ever_beside_a_copy(int *source, int *) {
  __shared__ alignas(16) char tile[1024];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile(
        "mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" ::"r"(shared_address(&barrier))
        : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1], 1024, [%2];" ::"r"(shared_address(tile)),
        "l"(source), "r"(shared_address(&barrier))
        : "memory");
  }
  for (;;) asm volatile("");
}
/* Copies of each kind are under way, and one warp never comes to an end that would let them land. */
__global__ void waits_beside_a_loop(int *source, int *stored) {
  __shared__ alignas(16) int tile[256], loaded[4], from[4];
  __shared__ uint64_t full, copied;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    mbarrier_init(&copied, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    for (int i = 0; i < 4; i++) from[i] = 0;
    asm volatile(
        "fence.proxy.async.shared::cta;\n"
        "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;\n"
        "cp.async.bulk.commit_group;\n"
        "cp.async.bulk.wait_group.read 0;" ::"l"(stored),
        "r"(shared_address(from))
        : "memory");
  }
  __syncthreads();
  for (int i = 0; threadIdx.x >= 32; i++) asm volatile("" ::"r"(i));
  if (threadIdx.x == 0) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(shared_address(loaded)),
                 "l"(source)
                 : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(&copied))
                 : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" ::"r"(shared_address(&full))
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1], 1024, [%2];" ::"r"(shared_address(tile)),
        "l"(source), "r"(shared_address(&full))
        : "memory");
    while (!mbarrier_try_wait(&full)) continue;
  }
}
/* Other blocks want to change the same memory, each in its turn, and a warp of each loops for ever. */
__global__ void loops_beside_turns(int *, int *sum) {
  for (int i = 0; threadIdx.x >= 32; i++) asm volatile("" ::"r"(i));
  for (int i = 0; threadIdx.x == 0 && i < 100000; i++) atomicAdd(sum, *(volatile int *)(sum + 1));
}
/* It knows only the first of the two phases that are over, and waits for that again. */
__global__ void asks_for_the_last_phase(int *, int *) {
  __shared__ uint64_t barrier;
  if (threadIdx.x) return;
  mbarrier_init(&barrier, 1);
  mbarrier_arrive(&barrier);
  while (!mbarrier_try_wait(&barrier)) continue;
  mbarrier_arrive(&barrier);
  while (!mbarrier_try_wait(&barrier)) continue;
}
/* Each thread waits for a barrier of its own, at a place of its own: a long list. */
__global__ void each_waits_elsewhere(int *, int *) {
  enum { PLACES = 28 };
  __shared__ uint64_t barriers[PLACES];
  if (threadIdx.x >= PLACES) return;
  mbarrier_init(&barriers[threadIdx.x], 1);
#pragma unroll
  for (int i = 0; i < PLACES; i++)
    if (threadIdx.x == i)
      while (!mbarrier_try_wait(&barriers[i])) continue;
}
/* Lanes of one warp ask different barriers by one instruction. Those of the first barrier go on. */
static __device__ void wait_at_own_barriers(uint64_t *barriers, int count) {
  if (threadIdx.x < count) mbarrier_init(&barriers[threadIdx.x], 2);
  __syncthreads();
  if (threadIdx.x >= 32) return;
  if (threadIdx.x < 2) mbarrier_arrive(&barriers[0]);
  if (threadIdx.x == 3) mbarrier_arrive(&barriers[3]);
  while (!mbarrier_try_wait(&barriers[threadIdx.x % count])) continue;
}
__global__ void lanes_at_four_barriers(int *, int *) {
  __shared__ uint64_t barriers[4];
  wait_at_own_barriers(barriers, 4);
}
__global__ void lanes_at_32_barriers(int *, int *) {
  __shared__ uint64_t barriers[32];
  wait_at_own_barriers(barriers, 32);
}
/* Both blocks arrive at the barrier of the first one, and both wait for their own. */
__global__ void __cluster_dims__(2, 1, 1) one_rank_is_left_out(int *, int *) {
  __shared__ uint64_t barrier;
  uint32_t first;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 2);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  cooperative_groups::this_cluster().sync();
  if (threadIdx.x == 0) {
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;"
                 : "=r"(first)
                 : "r"(shared_address(&barrier)));
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(first) : "memory");
    while (!mbarrier_try_wait(&barrier)) continue;
  }
  cooperative_groups::this_cluster().sync();
}
/* One lane waits for the block, the others of its warp for that lane. */
__global__ void split_warp(int *, int *) {
  if (threadIdx.x == 40) __syncthreads();
  __syncwarp();
}
__global__ void flag_and_mbarrier(int *flag, int *) {
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) mbarrier_init(&barrier, 1);
  __syncthreads();
  if (threadIdx.x / 32 == 0) {
    while (*(volatile int *)flag == 0) __nanosleep(50);
    mbarrier_arrive(&barrier);
  }
  while (!mbarrier_try_wait(&barrier)) continue;
}
/* Ends as long as all blocks fit on the chip: 132 x 32 of this size. */
__global__ void grid_barrier(int *count, int *result) {
  if (threadIdx.x == 0) {
    atomicAdd(count, 1);
    while (*(volatile int *)count < (int)gridDim.x) continue;
    *result = 1;
  }
}

/* ---- These end ---- */
__global__ void ends_by_count(int *flag, int *result) {
  int i;
  for (i = 0; i < 200000 && *(volatile int *)flag == 0; i++) continue;
  *result = i == 200000;
}
__global__ void ends_by_attempts(int *, int *result) {
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) mbarrier_init(&barrier, 1);
  __syncthreads();
  int attempts = 0;
  while (attempts < 50000 && !mbarrier_try_wait(&barrier)) attempts++;
  *result = attempts == 50000;
}
__global__ void ends_by_clock(int *flag, int *result) {
  long long start = clock64();
  while (*(volatile int *)flag == 0 && clock64() - start < 4000000000) continue;
  *result = 1;
}
__global__ void ends_by_short_clock(int *, int *result) {
  unsigned start = (unsigned)clock();
  while ((unsigned)clock() - start < 1000000) continue;
  *result = 1;
}
__global__ void ends_by_timer(int *, int *result) {
  uint64_t start = nanoseconds_now();
  while (nanoseconds_now() - start < 5000000000) __nanosleep(1000);
  *result = 1;
}
/* The shorter sleep ends first, and its flag is seen before the longer wait gives up. */
__global__ void ends_by_two_clocks(int *flag, int *result) {
  long long start = clock64();
  if (blockIdx.x == 0) {
    while (clock64() - start < 1000000) continue;
    *(volatile int *)flag = 1;
  } else {
    while (*(volatile int *)flag == 0 && clock64() - start < 400000000) continue;
    *result = *(volatile int *)flag;
  }
}
__global__ void ends_when_others_are_done(int *, int *result) {
  __shared__ volatile int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    while (flag == 0) continue;
    *result = 1;
  } else {
    result[threadIdx.x] = (int)work(threadIdx.x);
    flag = 1;
  }
}
/* Only ten attempts: it must not get "not yet" as long as the other warp works. */
__global__ void ends_with_few_attempts(int *, int *result) {
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) mbarrier_init(&barrier, 1);
  __syncthreads();
  if (threadIdx.x < 32) {
    bool over = false;
    for (int i = 0; i < 10 && !over; i++) over = mbarrier_try_wait(&barrier);
    *result = over;
  } else {
    result[threadIdx.x] = (int)work(threadIdx.x);
    if (threadIdx.x == 32) mbarrier_arrive(&barrier);
  }
}
__global__ void ends_by_exchange(int *, int *result) {
  __shared__ volatile int full, value;
  enum { ITEMS = 2000 };
  if (threadIdx.x == 0) full = 0;
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < ITEMS && threadIdx.x % 32 == 0; i++) {
    while (full == (threadIdx.x == 0)) continue;
    if (threadIdx.x == 0)
      value = i;
    else
      sum += value;
    full = threadIdx.x == 0;
  }
  if (threadIdx.x == 32) *result = sum == ITEMS * (ITEMS - 1) / 2;
}
__global__ void ends_by_the_grid(int *, int *result) {
  cooperative_groups::this_grid().sync();
  cooperative_groups::this_grid().sync();
  *result = 1;
}
__global__ void ends_by_flag(int *flag, int *result) {
  while (*(volatile int *)flag == 0) continue;
  *result = 1;
}
__global__ void set_flag(int *flag) { *flag = 1; }

/* ---- The host ---- */
typedef void (*Kernel)(int *flag, int *result);
static const struct {
  const char *name;
  Kernel kernel;
} CASES[] = {
#define CASE(kernel) \
  { #kernel, kernel }
    CASE(library_barrier),
    CASE(test_wait),
    CASE(test_wait_backoff),
    CASE(try_wait_hint),
    CASE(ring_never_begins),
    CASE(lanes_at_four_barriers),
    CASE(lanes_at_32_barriers),
    CASE(volatile_flag),
    CASE(plain_flag_and_barrier),
    CASE(acquire_flag),
    CASE(atomic_wait),
    CASE(add_nothing),
    CASE(failing_swap),
    CASE(counting),
    CASE(shared_flag),
    CASE(one_thread_for_the_block),
    CASE(under_a_lock),
    CASE(sleeping_by_the_clock),
    CASE(for_ever),
    CASE(for_ever_beside_a_copy),
    CASE(waits_beside_a_loop),
    CASE(loops_beside_turns),
    CASE(asks_for_the_last_phase),
    CASE(each_waits_elsewhere),
    CASE(one_rank_is_left_out),
    CASE(split_warp),
    CASE(flag_and_mbarrier),
    CASE(grid_barrier),
    CASE(ends_by_count),
    CASE(ends_by_attempts),
    CASE(ends_by_clock),
    CASE(ends_by_short_clock),
    CASE(ends_by_timer),
    CASE(ends_by_two_clocks),
    CASE(ends_when_others_are_done),
    CASE(ends_with_few_attempts),
    CASE(ends_by_exchange),
    CASE(ends_by_the_grid),
};

static void *set_later(void *flag) {
  usleep(100000);
  __atomic_store_n((int *)flag, 1, __ATOMIC_RELAXED);
  return NULL;
}

/* The flag is written by a kernel of another stream, by the host, by another thread of the host, or
 * never. */
static bool run_with_help(const char *name, int *flag, int *result) {
  volatile int *mapped;
  cudaHostAlloc((void **)&mapped, sizeof *mapped, cudaHostAllocMapped);
  *mapped = 0;
  if (strcmp(name, "ends_by_another_stream") == 0) {
    cudaStream_t first, second;
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    ends_by_flag<<<1, THREADS, 0, first>>>(flag, result);
    set_flag<<<1, 1, 0, second>>>(flag);
    return true;
  }
  if (strcmp(name, "ends_by_the_host") == 0) {
    ends_by_flag<<<1, THREADS>>>((int *)mapped, result);
    *mapped = 1;
    return true;
  }
  if (strcmp(name, "ends_by_a_host_thread") == 0) {
    pthread_t thread;
    ends_by_flag<<<1, THREADS>>>((int *)mapped, result);
    pthread_create(&thread, NULL, set_later, (void *)mapped);
    pthread_detach(thread);
    return true;
  }
  if (strcmp(name, "host_flag") != 0) return false;
  ends_by_flag<<<1, THREADS>>>((int *)mapped, result);
  return true;
}

int main(int argc, char **argv) {
  int blocks = argc > 2 ? atoi(argv[2]) : 1, result = 0;
  int *memory;
  if (argc < 2 || blocks < 1) {
    fprintf(stderr, "usage: hangs CASE [BLOCKS]\n");
    return 2;
  }
  cudaMalloc(&memory, 4096);
  cudaMemset(memory, 0, 4096);
  cudaDeviceSynchronize(); /* the kernels of other streams do not wait for the fill */
  int *flag = memory, *device_result = memory + 64;
  bool known = run_with_help(argv[1], flag, device_result);
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES && !known; i++) {
    if (strcmp(CASES[i].name, argv[1]) != 0) continue;
    known = true;
    void *arguments[] = {&flag, &device_result};
    if (CASES[i].kernel == ends_by_the_grid)
      cudaLaunchCooperativeKernel((const void *)ends_by_the_grid, dim3(blocks), dim3(THREADS),
                                  arguments, 0, NULL);
    else
      CASES[i].kernel<<<blocks, THREADS>>>(flag, device_result);
  }
  if (!known) {
    fprintf(stderr, "hangs: there is no case '%s'\n", argv[1]);
    return 2;
  }
  cudaError_t error = cudaDeviceSynchronize();
  if (error == cudaSuccess)
    error = cudaMemcpy(&result, device_result, sizeof result, cudaMemcpyDeviceToHost);
  printf("%s: %s, result %d\n", argv[1], cudaGetErrorName(error), result);
  return 0;
}
