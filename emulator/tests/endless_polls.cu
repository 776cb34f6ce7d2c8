// endless_polls.cu: polls that never end, whatever they look like, and polls that do end, one case a run.
//
//   endless_polls CASE [BLOCKS]    prints "CASE: cudaError..., result N"
//
// Cases whose names begin with "ends_" end by themselves: their result is 1.
#include <cooperative_groups.h>
#include <pthread.h>
#include <unistd.h>

#include <cuda/atomic>
#include <cuda/barrier>

#include "../../05_multicast/cluster.cuh"
#include "../../05_multicast/tma_multicast.cuh"
#include "cases.cuh"
#include "copies.cuh"
#include "ptx.cuh"

typedef cuda::barrier<cuda::thread_scope_block> BlockBarrier;
enum { THREADS = 64, WORK = 3000000 };

typedef void Kernel(int *flag, int *result);
#define CASE(name) CASE_OF(Kernel, name, "", __global__ void, (int *flag, int *result))
#define CASE_OF_TWO(name) \
  CASE_OF(Kernel, name, "", __global__ __cluster_dims__(2) void, (int *flag, int *result))

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
CASE(library_barrier) {
  __shared__ alignas(BlockBarrier) char memory[sizeof(BlockBarrier)];
  BlockBarrier *barrier = (BlockBarrier *)memory;
  if (threadIdx.x == 0) init(barrier, blockDim.x + 1);
  __syncthreads();
  barrier->arrive_and_wait();
}
CASE(two_numbers_of_a_barrier) {
  PTX("barrier.cta.sync.aligned %0, %1;", "r"(1 + threadIdx.x / 32), "r"(blockDim.x));
}
CASE(test_wait) {
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) mbarrier_init(&barrier, 2);
  __syncthreads();
  if (threadIdx.x == 0) mbarrier_arrive(&barrier);
  while (!mbarrier_test_wait_parity(&barrier, 0)) continue;
}
CASE(test_wait_backoff) {
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) mbarrier_init(&barrier, 2);
  __syncthreads();
  if (threadIdx.x == 0) mbarrier_arrive(&barrier);
  for (uint32_t sleep = 20; !mbarrier_test_wait_parity(&barrier, 0); sleep *= 2) __nanosleep(sleep);
}
/* The first warp reads what thread 32 fills, which asks for this parity first, and may wait for ever. */
static __device__ void go_round(int *flag, uint32_t parity) {
  __shared__ alignas(16) char tile[1024];
  __shared__ uint64_t full, empty;
  begin_by_first(&full, 1);
  begin_by_first(&empty, 32);
  __syncthreads();
  for (int i = 0; i < 2 && threadIdx.x == 32; i++) {
    mbarrier_wait_parity(&empty, parity ^ i);
    expect_and_load(tile, flag, sizeof tile, &full);
  }
  for (int i = 0; i < 2 && threadIdx.x < 32; i++) mbarrier_wait_parity(&full, i);
}
CASE(ring_never_begins) { go_round(flag, 0); }
CASE(ring_is_not_freed) { go_round(flag, 1); }
/* One line initialises both, and the second one gets a larger count. */
CASE(counts_differ) {
  __shared__ uint64_t barriers[2];
  for (int i = 0; i < 2 && threadIdx.x == 0; i++) mbarrier_init(&barriers[i], i + 1);
  __syncthreads();
  if (threadIdx.x == 0) mbarrier_arrive(&barriers[1]);
  mbarrier_wait_parity(&barriers[1], 0);
}
CASE(volatile_flag) {
  while (*(volatile int *)flag == 0) continue;
}
CASE(plain_flag_and_barrier) {
  while (*flag == 0) __syncthreads();
}
CASE(atomic_wait) {
  cuda::atomic_ref<int, cuda::thread_scope_device> reference(*flag);
  reference.wait(0);
}
CASE(failing_swap) {
  while (atomicCAS(flag, 1, 2) != 1) continue;
}
CASE(counting) {
  int attempts = 0;
  while (*(volatile int *)flag == 0) attempts++;
  *result = attempts;
}
CASE(shared_flag) {
  __shared__ volatile int set;
  if (threadIdx.x == 0) set = 0;
  __syncthreads();
  while (set == 0) __nanosleep(100);
}
CASE(one_thread_for_the_block) {
  __shared__ int value;
  for (;;) {
    if (threadIdx.x == 0) value = atomicAdd(flag, 0);
    __syncthreads();
    if (value) break;
    __syncthreads();
  }
}
CASE(under_a_lock) { /* flag[1] is the lock */
  if (threadIdx.x % 32) return;
  for (int value = 0; value == 0;) {
    while (atomicCAS(flag + 1, 0, 1) != 0) continue;
    value = *(volatile int *)flag;
    atomicExch(flag + 1, 0);
  }
}
CASE(sleeping_by_the_clock) {
  while (*(volatile int *)flag == 0)
    for (long long start = clock64(); clock64() - start < 1000000;) continue;
}
CASE(for_ever) {
  for (;;) asm volatile("");
}
/* The copy can land, but no thread makes progress. */
CASE(for_ever_beside_a_copy) {
  __shared__ alignas(16) char tile[1024];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) init_and_load(tile, flag, 1024, &barrier);
  for (;;) asm volatile("");
}
/* Copies of each kind are under way, and one warp never comes to an end that would let them land. */
CASE(waits_beside_a_loop) {
  __shared__ alignas(16) int tile[256], loaded[4], from[4];
  __shared__ uint64_t full, copied;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    begin_barrier(&copied, 1);
    for (int i = 0; i < 4; i++) from[i] = 0;
    fence_proxy_async();
    bulk_store(result, from, 16);
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
  __syncthreads();
  for (int i = 0; threadIdx.x >= 32; i++) asm volatile("" ::"r"(i));
  if (threadIdx.x == 0) {
    PTX("cp.async.ca.shared.global [%0], [%1], 16;", "r"(shared_address(loaded)), "l"(flag));
    PTX("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];", "r"(shared_address(&copied)));
    expect_and_load(tile, flag, 1024, &full);
    mbarrier_wait_parity(&full, 0);
  }
}
/* Other blocks want to change the same memory, each in its turn, and a warp of each loops for ever. */
CASE(loops_beside_turns) {
  for (int i = 0; threadIdx.x >= 32; i++) asm volatile("" ::"r"(i));
  for (int i = 0; threadIdx.x == 0 && i < 100000; i++)
    atomicAdd(result, *(volatile int *)(result + 1));
}
/* It knows only the first of the two phases that are over, and waits for that again. */
CASE(asks_for_the_last_phase) {
  __shared__ uint64_t barrier;
  if (threadIdx.x) return;
  mbarrier_init(&barrier, 1);
  mbarrier_arrive(&barrier);
  mbarrier_wait_parity(&barrier, 0);
  mbarrier_arrive(&barrier);
  mbarrier_wait_parity(&barrier, 0);
}
/* Each thread waits for a barrier of its own, at a place of its own: a long list. */
CASE(each_waits_elsewhere) {
  enum { PLACES = 28 };
  __shared__ uint64_t barriers[PLACES];
  if (threadIdx.x >= PLACES) return;
  mbarrier_init(&barriers[threadIdx.x], 1);
#pragma unroll
  for (int i = 0; i < PLACES; i++)
    if (threadIdx.x == i) mbarrier_wait_parity(&barriers[i], 0);
}
/* Lanes of one warp ask different barriers by one instruction. Those of the first barrier go on. */
static __device__ void wait_at_own_barriers(uint64_t *barriers, int count) {
  if (threadIdx.x < count) mbarrier_init(&barriers[threadIdx.x], 2);
  __syncthreads();
  if (threadIdx.x >= 32) return;
  if (threadIdx.x < 2) mbarrier_arrive(&barriers[0]);
  if (threadIdx.x == 3) mbarrier_arrive(&barriers[3]);
  mbarrier_wait_parity(&barriers[threadIdx.x % count], 0);
}
CASE(lanes_at_four_barriers) {
  __shared__ uint64_t barriers[4];
  wait_at_own_barriers(barriers, 4);
}
CASE(lanes_at_32_barriers) {
  __shared__ uint64_t barriers[32];
  wait_at_own_barriers(barriers, 32);
}
/* One lane asks again and again, with a time limit, and the rest of its warpgroup waits for it at a wgmma. */
CASE(asks_beside_wgmma) {
  __shared__ uint64_t barrier;
  uint32_t done = 0;
  float d[4] = {0};
  if (threadIdx.x == 0) mbarrier_init(&barrier, 1);
  __syncthreads();
  while (threadIdx.x == 0 && !done)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0, 1000000; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(shared_address(&barrier))
        : "memory");
  PTX("wgmma.fence.sync.aligned;");
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %4, 0, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(0ull));
  PTX("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;");
  *result = (int)d[0];
}
/* Both blocks arrive at the barrier of the first one, and both wait for their own. */
CASE_OF_TWO(one_rank_is_left_out) {
  __shared__ uint64_t barrier;
  begin_by_first(&barrier, 2);
  cluster_sync();
  if (threadIdx.x == 0) {
    mbarrier_arrive_cluster(mapa_shared(&barrier, 0));
    mbarrier_wait_parity(&barrier, 0);
  }
  cluster_sync();
}
/* One lane waits for the block, the others of its warp for that lane. */
CASE(split_warp) {
  if (threadIdx.x == 40) __syncthreads();
  __syncwarp();
}
CASE(flag_and_mbarrier) {
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) mbarrier_init(&barrier, 1);
  __syncthreads();
  if (threadIdx.x / 32 == 0) {
    while (*(volatile int *)flag == 0) __nanosleep(50);
    mbarrier_arrive(&barrier);
  }
  mbarrier_wait_parity(&barrier, 0);
}
/* Rank 1 never gets the arrival that frees its buffer, so the bytes of the second round come before it expects them. */
CASE_OF_TWO(one_rank_is_not_freed) {
  __shared__ alignas(16) int tile[4];
  __shared__ uint64_t full, empty;
  begin_by_first(&full, 1);
  begin_by_first(&empty, 1);
  cluster_sync();
  for (int round = 0; round < 2; round++) {
    if (threadIdx.x == 0) {
      if (round == 1 && cluster_rank() == 1) mbarrier_wait_parity(&empty, 0);
      mbarrier_arrive_expect_tx(&full, sizeof tile);
      if (cluster_rank() == 0) bulk_load_multicast(tile, flag, sizeof tile, &full, 3);
    }
    if (threadIdx.x >= 32) mbarrier_wait_parity(&full, round);
    __syncthreads();
  }
  cluster_sync();
}
/* Ends as long as all blocks fit on the chip: 132 x 32 of this size. */
CASE(grid_barrier) {
  if (threadIdx.x == 0) {
    atomicAdd(flag, 1);
    while (*(volatile int *)flag < (int)gridDim.x) continue;
    *result = 1;
  }
}

/* ---- These end ---- */
CASE(ends_by_count) {
  int i;
  for (i = 0; i < 200000 && *(volatile int *)flag == 0; i++) continue;
  *result = i == 200000;
}
CASE(ends_by_attempts) {
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) mbarrier_init(&barrier, 1);
  __syncthreads();
  int attempts = 0;
  while (attempts < 50000 && !mbarrier_try_wait_parity(&barrier, 0)) attempts++;
  *result = attempts == 50000;
}
CASE(ends_by_clock) {
  long long start = clock64();
  while (*(volatile int *)flag == 0 && clock64() - start < 4000000000) continue;
  *result = 1;
}
CASE(ends_by_short_clock) {
  unsigned start = (unsigned)clock();
  while ((unsigned)clock() - start < 1000000) continue;
  *result = 1;
}
CASE(ends_by_timer) {
  uint64_t start = nanoseconds_now();
  while (nanoseconds_now() - start < 5000000000) __nanosleep(1000);
  *result = 1;
}
/* The shorter sleep ends first, and its flag is seen before the longer wait gives up. */
CASE(ends_by_two_clocks) {
  long long start = clock64();
  if (blockIdx.x == 0) {
    while (clock64() - start < 1000000) continue;
    *(volatile int *)flag = 1;
  } else {
    while (*(volatile int *)flag == 0 && clock64() - start < 400000000) continue;
    *result = *(volatile int *)flag;
  }
}
CASE(ends_when_others_are_done) {
  __shared__ volatile int set;
  if (threadIdx.x == 0) set = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    while (set == 0) continue;
    *result = 1;
  } else {
    result[threadIdx.x] = (int)work(threadIdx.x);
    set = 1;
  }
}
/* Only ten attempts: it must not get "not yet" as long as the other warp works. */
CASE(ends_with_few_attempts) {
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) mbarrier_init(&barrier, 1);
  __syncthreads();
  if (threadIdx.x < 32) {
    bool over = false;
    for (int i = 0; i < 10 && !over; i++) over = mbarrier_try_wait_parity(&barrier, 0);
    *result = over;
  } else {
    result[threadIdx.x] = (int)work(threadIdx.x);
    if (threadIdx.x == 32) mbarrier_arrive(&barrier);
  }
}
CASE(ends_by_exchange) {
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
CASE(ends_by_the_grid) {
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
  cudaMalloc(&memory, 4096);
  cudaMemset(memory, 0, 4096);
  cudaDeviceSynchronize(); /* the kernels of other streams do not wait for the fill */
  int *flag = memory, *device_result = memory + 64;
  if (argc < 2 || !run_with_help(argv[1], flag, device_result)) {
    const Case<Kernel> *chosen = choose_case<Kernel>(argc, argv);
    void *arguments[] = {&flag, &device_result};
    if (chosen->run == ends_by_the_grid)
      cudaLaunchCooperativeKernel((const void *)chosen->run, dim3(blocks), dim3(THREADS),
                                  arguments);
    else
      chosen->run<<<blocks, chosen->run == asks_beside_wgmma ? 128 : THREADS>>>(flag,
                                                                                device_result);
  }
  cudaError_t error = cudaDeviceSynchronize();
  if (error == cudaSuccess)
    error = cudaMemcpy(&result, device_result, sizeof result, cudaMemcpyDeviceToHost);
  printf("%s: %s, result %d\n", argv[1], cudaGetErrorName(error), result);
  return 0;
}
