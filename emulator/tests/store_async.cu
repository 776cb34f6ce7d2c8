// store_async: st.async and red.async into the block's own shared memory, correct or with one mistake.
// pipelines.bats looks at what the emulator calls it.
//   store_async CASE    prints "CASE: cudaError..., N", N being the sum of what the tile held
#include "../../02_tma_load/mbarrier.cuh"
#include "cases.cuh"
#include "device_memory.cuh"
#include "ptx.cuh"

enum { THREADS = 64 };

static const char *const CASES[] = {"fine",       "fine_reduced", "fine_dropped",
                                    "not_waited", "twice",        "nothing_written"};
enum { FINE, FINE_REDUCED, FINE_DROPPED, NOT_WAITED, TWICE, NOTHING_WRITTEN };

__device__ void store_async(uint32_t *to, uint32_t value, uint64_t *barrier) {
  PTX("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];",
      "r"(shared_address(to)), "r"(value), "r"(shared_address(barrier)));
}

__device__ void add_async(uint32_t *to, uint32_t value, uint64_t *barrier) {
  PTX("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, "
      "[%2];",
      "r"(shared_address(to)), "r"(value), "r"(shared_address(barrier)));
}

__global__ void stores(int which, uint32_t *sum) {
  __shared__ uint32_t tile[THREADS], source[THREADS];
  __shared__ alignas(8) uint64_t barrier;
  uint32_t value = threadIdx.x, announced = which == TWICE ? 8 : 4;
  tile[threadIdx.x] = 0;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    mbarrier_arrive_expect_tx(&barrier, announced * THREADS);
  }
  __syncthreads();
  if (which == NOTHING_WRITTEN || which == FINE_DROPPED) value = source[threadIdx.x];
  if (which == FINE_REDUCED)
    add_async(&tile[threadIdx.x / 2], value, &barrier);
  else
    store_async(&tile[threadIdx.x], value, &barrier);
  if (which == TWICE) store_async(&tile[threadIdx.x], value + 1, &barrier);
  if (which == NOT_WAITED) return;
  mbarrier_wait_parity(&barrier, 0);
  __syncthreads();
  value = tile[THREADS - 1 - threadIdx.x];
  atomicAdd(sum, which == FINE_DROPPED ? 1 : value);  // here it matters
}

int main(int argc, char **argv) {
  const int which = choose_of(CASES, argc, argv);
  uint32_t *sum = device_filled<uint32_t>(1, 0), result = 0;
  stores<<<1, THREADS>>>(which, sum);
  cudaError_t error = cudaDeviceSynchronize();
  if (error == cudaSuccess) error = cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost);
  printf("%s: %s, %u\n", CASES[which], cudaGetErrorName(error), result);
  return 0;
}
