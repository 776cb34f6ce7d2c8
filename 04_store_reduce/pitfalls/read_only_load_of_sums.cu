// pitfall read_only_load_of_sums: __ldg() reads what the same kernel has written
//   H200: wrong results
//   report: read-only-load-of-written
//
// __ldg(), and a load through a pointer that is const __restrict__, may use the read-only path of
// the cache (ld.global.nc). That path does not notice stores: it may hold a line from before the
// store, whatever barrier stands between the two. It is for memory that the kernel only reads. The
// compiler counts on that, too, and may use the value of an earlier __ldg() again.
//
// Seen on an H200 (22 November 2026, driver 580.159.04, three runs): wrong results each time.
#include <stdio.h>

#include "check.h"

enum { ELEMENTS = 128 };

// Each element becomes the sum of itself and its neighbour, twice.
__global__ void add_neighbours(int *sums, int *result) {
  int element = threadIdx.x, neighbour = (element + 1) % ELEMENTS;
  int sum = __ldg(&sums[element]) + __ldg(&sums[neighbour]);
  __syncthreads();
  sums[element] = sum;
  __syncthreads();
  asm volatile("" : "+r"(neighbour));  // hides the index: nvcc 13.5 would leave out the last load
  result[element] = sum + __ldg(&sums[neighbour]);
}

int main(int argc, char **argv) {
  program_begin("read_only_load_of_sums", argc, argv, NULL, 0);
  int *sums, *result, values[ELEMENTS];
  for (int i = 0; i < ELEMENTS; i++) values[i] = i * i;
  CUDA_CHECK(cudaMalloc(&sums, sizeof values));
  CUDA_CHECK(cudaMalloc(&result, sizeof values));
  CUDA_CHECK(cudaMemcpy(sums, values, sizeof values, cudaMemcpyHostToDevice));
  add_neighbours<<<1, ELEMENTS>>>(sums, result);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  int got[ELEMENTS], expected[ELEMENTS];
  CUDA_CHECK(cudaMemcpy(got, result, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ELEMENTS; i++)
    expected[i] = values[i] + 2 * values[(i + 1) % ELEMENTS] + values[(i + 2) % ELEMENTS];
  check_tile("sums", ELEMENT_S32, got, expected, 1, ELEMENTS, 0);
  CUDA_CHECK(cudaFree(sums));
  CUDA_CHECK(cudaFree(result));
  return program_end("every sum of four values");
}
