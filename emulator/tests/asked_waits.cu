// asked_waits.cu: threads ask an mbarrier by try_wait, some with a time limit, whether their tile has come,
// and go on. The answer may be "not yet" each time, also before the time is over.
// pipelines.bats looks at what the emulator says.
//
//   asked_waits CASE    prints "CASE: cudaError..., sum N"
//
// The cases whose name begins with "fine_" are correct: they use the tile only if it has come.
#include "cases.cuh"
#include "copies.cuh"
#include "device_memory.cuh"

enum { THREADS = 64, TILE_BYTES = THREADS * 4, NANOSECONDS = 10000000 };

typedef struct {
  const char *name;
  int times;          // it asks at most so often; once: without a loop
  bool looks_at_end;  // it uses the tile only if the last answer was "yes"
  bool without_limit;
} Asking;

static const Asking ASKINGS[] = {
    {"once_within_time", 1, false},
    {"three_times_within_time", 3, false},
    {"three_times", 3, false, true},
    {"fine_once_within_time", 1, true},
    {"fine_three_times_within_time", 3, true},
    {"fine_three_times", 3, true, true},
    {"fine_until_it_comes_within_time", 1000000, false},
    {"fine_until_it_comes", 1000000, false, true},
};

static __device__ bool ask_within_time(uint64_t *barrier) {
  uint32_t done;
  asm volatile(
      "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0, %2; selp.u32 %0, 1, 0, p; }"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(NANOSECONDS)
      : "memory");
  return done;
}
__global__ void load_and_ask(Asking asking, const uint32_t *source, uint32_t *sum) {
  __shared__ __align__(128) uint32_t tile[THREADS];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) init_and_load(tile, source, TILE_BYTES, &barrier);
  __syncthreads();
  bool come = false;
  if (asking.times == 1) {
    come = ask_within_time(&barrier);
  } else if (asking.without_limit) {
#pragma unroll 1
    for (int i = 0; i < asking.times && !come; i++) come = mbarrier_try_wait_parity(&barrier, 0);
  } else {
#pragma unroll 1
    for (int i = 0; i < asking.times && !come; i++) come = ask_within_time(&barrier);
  }
  if (come || !asking.looks_at_end) atomicAdd(sum, tile[threadIdx.x]);
  while (!ask_within_time(&barrier))
    ;  // before the block ends
}

int main(int argc, char **argv) {
  const Asking *asking = &ASKINGS[choose_of(ASKINGS, argc, argv)];
  uint32_t host[THREADS], *sum = device_filled<uint32_t>(1, 0), result = 0;
  for (int i = 0; i < THREADS; i++) host[i] = 1;
  load_and_ask<<<1, THREADS>>>(*asking, device_copy(host), sum);
  cudaError_t error = cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost);
  printf("%s: %s, sum %u\n", asking->name, cudaGetErrorName(error), result);
  return 0;
}
