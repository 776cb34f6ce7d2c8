// memory_rounds ROUNDS KIB: each round allocates so much memory, fills it, runs a kernel on it and frees it; every
// other round in the pool of a stream. After the first tenth the program may not need 32 MiB more, nor have more ranges
// of addresses. What the checker knows of freed memory took 10 KiB for each 64, and 200 rounds of 64 MiB 2 GB.
#include "device_memory.cuh"

__global__ void fill(uint32_t *words) {
  words[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
}

static int address_ranges(void) {
  FILE *file = fopen("/proc/self/maps", "r");
  int count = 0;
  if (!file) return 0;
  for (int c = getc(file); c != EOF; c = getc(file)) count += c == '\n';
  fclose(file);
  return count;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  without_huge_pages();
  int rounds = atoi(argv[1]), early_ranges = 0;
  size_t bytes = (size_t)atoi(argv[2]) << 10;
  long early = 0;
  for (int i = 0; i < rounds; i++) {
    uint32_t *words;
    CUDA_CHECK(i % 2 ? cudaMallocAsync(&words, bytes, 0) : cudaMalloc(&words, bytes));
    CUDA_CHECK(cudaMemset(words, 0, bytes));
    fill<<<4, 32>>>(words);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(i % 2 ? cudaFreeAsync(words, 0) : cudaFree(words));
    CUDA_CHECK(cudaDeviceSynchronize());
    if (i == rounds / 10) early = most_memory_kib(), early_ranges = address_ranges();
  }
  long more = most_memory_kib() - early;
  int more_ranges = address_ranges() - early_ranges;
  bool passed = more < 32 << 10 && more_ranges < 20;
  printf("%s memory_rounds: %d rounds", passed ? "PASS" : "FAIL", rounds);
  if (!passed) printf(", the last nine tenths took %ld KiB and %d ranges more", more, more_ranges);
  printf("\n");
  return !passed;
}
