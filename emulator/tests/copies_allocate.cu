// copies_allocate: what the checker keeps for a copy is used again for later ones, so that a program with millions of
// small copies does not spend its time in the allocator. Counts the calls of the allocator in a launch that comes after
// one of the same kernel.
//   copies_allocate

#include "copies.cuh"
#include "device_memory.cuh"

enum { LANES = 32, WARPS = 4, ROUNDS = 20, BLOCKS = 16, WORDS = 4, MOST = 10000 };

static unsigned long calls;

// The emulator's calls end up here, because the program's own functions come first. CUDA declares functions of these
// names for kernels, too, so here they are called differently.
extern "C" void *__libc_malloc(size_t bytes);
extern "C" void *__libc_calloc(size_t count, size_t bytes);
extern "C" void *counted_malloc(size_t bytes) __asm__("malloc");
extern "C" void *counted_calloc(size_t count, size_t bytes) __asm__("calloc");

void *counted_malloc(size_t bytes) {
  __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
  return __libc_malloc(bytes);
}

void *counted_calloc(size_t count, size_t bytes) {
  __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
  return __libc_calloc(count, bytes);
}

// Each thread loads 16 bytes, and all read what their neighbours have loaded.
__global__ void stream(const int *in, int *out) {
  __shared__ alignas(128) int tile[WARPS * LANES][WORDS];
  __shared__ uint64_t full;
  int sum = 0, thread = threadIdx.x;
  begin_by_first(&full, WARPS * LANES);
  __syncthreads();
  for (uint32_t round = 0; round < ROUNDS; round++) {
    expect_and_load(tile[thread], in + thread * WORDS, sizeof tile[0], &full);
    mbarrier_wait_parity(&full, round % 2);
    sum += tile[thread ^ 1][round % WORDS];
    __syncthreads();
  }
  out[blockIdx.x * WARPS * LANES + thread] = sum;
}

int main(void) {
  int *in = device_filled<int>(WARPS * LANES * WORDS, 1);
  int *out = device_memory<int>(BLOCKS * WARPS * LANES);
  unsigned long counted = 0;
  for (int launch = 0; launch < 2; launch++) {
    counted = calls;
    stream<<<BLOCKS, WARPS * LANES>>>(in, out);
    CUDA_CHECK(cudaDeviceSynchronize());
    counted = calls - counted;
  }
  bool passed = counted <= MOST;
  printf("%s copies_allocate: ", passed ? "PASS" : "FAIL");
  if (passed)
    printf("at most %d allocations for %d copies\n", MOST, BLOCKS * WARPS * LANES * ROUNDS);
  else
    printf("%lu allocations, want at most %d\n", counted, MOST);
  return !passed;
}
