// Every warp of a naive product reads the same elements many times, by more load instructions than a small table holds.
// What the checker notes about the readers must not grow with the number of reads: the launch may need 24 MiB at most.
//   many_readers

#include "device_memory.cuh"

enum { SIZE = 192, TILE = 4, BLOCK = 16 };

// The compiler does not merge two of these.
__device__ uint32_t element(const uint16_t *place) {
  uint16_t value;
  asm volatile("ld.global.u16 %0, [%1];" : "=h"(value) : "l"(place));
  return value;
}

// c = a * b, each thread a tile of TILE x TILE elements, and the loads are not shared among its products.
__global__ void multiply(const uint16_t *a, const uint16_t *b, uint32_t *c) {
  uint32_t row = (blockIdx.y * BLOCK + threadIdx.y) * TILE,
           column = (blockIdx.x * BLOCK + threadIdx.x) * TILE;
  uint32_t sum[TILE][TILE] = {{0}};
#pragma unroll 4
  for (uint32_t k = 0; k < SIZE; k++)
#pragma unroll
    for (uint32_t i = 0; i < TILE; i++)
#pragma unroll
      for (uint32_t j = 0; j < TILE; j++)
        sum[i][j] += element(&a[(row + i) * SIZE + k]) * element(&b[k * SIZE + column + j]);
#pragma unroll
  for (uint32_t i = 0; i < TILE; i++)
#pragma unroll
    for (uint32_t j = 0; j < TILE; j++) c[(row + i) * SIZE + column + j] = sum[i][j];
}

int main(void) {
  without_huge_pages();
  size_t count = (size_t)SIZE * SIZE;
  uint16_t *ones = (uint16_t *)malloc(count * sizeof *ones);
  uint32_t *sums = (uint32_t *)malloc(count * sizeof *sums);
  if (!ones || !sums) return 1;
  for (size_t i = 0; i < count; i++) ones[i] = 1;
  uint16_t *a = device_copy(ones, count), *b = device_copy(ones, count);
  uint32_t *c = device_memory<uint32_t>(count);
  long before = most_memory_kib();
  multiply<<<dim3(SIZE / BLOCK / TILE, SIZE / BLOCK / TILE), dim3(BLOCK, BLOCK)>>>(a, b, c);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(sums, c, count * sizeof *c, cudaMemcpyDeviceToHost));
  long more = most_memory_kib() - before;
  for (size_t i = 0; i < count; i++) {
    if (sums[i] == SIZE) continue;
    printf("FAIL many_readers: element %zu is %u, expected %d\n", i, sums[i], SIZE);
    return 1;
  }
  if (more > 24 * 1024) {
    printf("FAIL many_readers: the launch took %ld KiB\n", more);
    return 1;
  }
  printf("PASS many_readers: %d x %d\n", SIZE, SIZE);
  return 0;
}
