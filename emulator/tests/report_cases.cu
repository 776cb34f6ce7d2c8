// report_cases: one mistake each, in a shape that makes reports hard to read. reports.bats
// looks at what the emulator prints.
//   report_cases CASE
#include "../../03_tma_store/tma_store.cuh"
#include "cases.cuh"
#include "device_memory.cuh"

enum { THREADS = 128, UNROLLED = 16 };

typedef void Kernel(int *out);
#define CASE(name) CASE_OF(Kernel, name, "", __global__ void, (int *out))

// Each warp reads what the next one writes, with no barrier between: 16 copies of one line.
CASE(unrolled) {
  __shared__ int tile[UNROLLED][THREADS];
#pragma unroll
  for (int i = 0; i < UNROLLED; i++) tile[i][threadIdx.x] = i + threadIdx.x;
  int sum = 0;
#pragma unroll
  for (int i = 0; i < UNROLLED; i++) {
    sum += tile[i][(threadIdx.x + 32) % THREADS];
  }
  out[blockIdx.x * THREADS + threadIdx.x] = sum;
}

// The two mistakes of one kernel stay two.
CASE(two_mistakes) {
  __shared__ int first[THREADS], second[THREADS];
  first[threadIdx.x] = threadIdx.x;
  second[threadIdx.x] = 2 * threadIdx.x;
  int sum = first[(threadIdx.x + 32) % THREADS];
  sum += second[(threadIdx.x + 64) % THREADS];
  out[threadIdx.x] = sum;
}

// Warps 1 to 3 return. The barrier that follows does not wait for them.
CASE(exited) {
  __shared__ int sums[32];
  if (threadIdx.x < 32) sums[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&sums[threadIdx.x % 32], 1);
  if (threadIdx.x >= 32) return;  // here they leave
  __syncthreads();
  out[threadIdx.x] = sums[threadIdx.x];
}

// The same, but the warp that leaves has arrived at the barrier before it writes.
CASE(arrived_before_writing) {
  __shared__ int tile[THREADS];
  tile[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x >= 32) {
    tile[threadIdx.x] = 1;
    return;
  }
  out[threadIdx.x] = tile[threadIdx.x + 32];
}

// Warp 0 has two rounds and the others one, so they pass a barrier behind the loop when it is in it.
CASE(passed_apart) {
  __shared__ int tile[THREADS];
  for (unsigned i = threadIdx.x / 32; i < 5; i += 4) {
    tile[threadIdx.x] = (int)i;
    __syncthreads();  // in the loop
  }
  __syncthreads();  // behind it
  out[threadIdx.x] = tile[threadIdx.x % 32];
  if (threadIdx.x < 32) tile[threadIdx.x] = 7;
}

// Asks with a plain read before it takes with an atomic one.
CASE(asked_beside_atomic) {
  __shared__ int left;
  if (threadIdx.x == 0) left = 40;
  __syncthreads();
  int got = -1;
  if (left > 0)                  // here it asks
    got = atomicAdd(&left, -1);  // here it takes
  out[threadIdx.x] = got;
}

// The same, and the one that asks is strong as well.
CASE(asked_atomically) {
  __shared__ int left;
  if (threadIdx.x == 0) left = 40;
  __syncthreads();
  int got = -1;
  if (*(volatile int *)&left > 0) got = atomicAdd(&left, -1);
  out[threadIdx.x] = got;
}

// Two lanes store halves of each tile. Each waits for its last store before the next one, and neither
// for the last one of all.
CASE(stored_in_halves) {
  __shared__ alignas(16) int tile[THREADS];
  for (int round = 0; round < 2; round++) {
    if (threadIdx.x < 2) bulk_wait_group<0>();
    __syncthreads();
    tile[threadIdx.x] = round;
    fence_proxy_async();
    __syncthreads();
    if (threadIdx.x < 2) {
      int first = threadIdx.x * THREADS / 2;
      bulk_store(out + first, tile + first, sizeof tile / 2);
      bulk_commit_group();
    }
  }
}

// All threads wait, also the one that has stored, but one group may be left.
CASE(waited_for_too_few) {
  __shared__ alignas(16) int tile[THREADS];
  tile[threadIdx.x] = 0;
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == THREADS - 1) {
    bulk_store(out, tile, sizeof tile);
    bulk_commit_group();
  }
  bulk_wait_group_read<1>();
}

namespace outer {
template <typename Number>
struct Pair {
  Number first, second;
};
namespace {
template <typename Number, int FACTOR>
__global__ void multiply(Number *out) {
  __shared__ Number tile[THREADS];
  tile[threadIdx.x] = (Number)threadIdx.x;
  out[threadIdx.x] = tile[(threadIdx.x + 32) % THREADS] * FACTOR;
}
}  // namespace
template <typename Number>
static __global__ void first_of(Pair<Number> pair, Number *out) {
  __shared__ Number tile[THREADS];
  tile[threadIdx.x] = pair.first;
  out[threadIdx.x] = tile[(threadIdx.x + 32) % THREADS];
}
}  // namespace outer

static Case<Kernel> of_template("template", "", outer::multiply<int, 4>);

int main(int argc, char **argv) {
  int *out = device_memory<int>(4 * THREADS);
  if (argc == 2 && !strcmp(argv[1], "argument")) {
    outer::first_of<<<1, THREADS>>>(outer::Pair<int>{1, 2}, out);
  } else {
    const Case<Kernel> *chosen = choose_case<Kernel>(argc, argv);
    chosen->run<<<chosen->run == unrolled ? 4 : 1, THREADS>>>(out);
  }
  CHECK_LAUNCH();
  return 0;
}
