// pitfall triggered_before_the_writes: a dependent kernel takes the trigger for the data
//   H200: right results
//   report: global-race
//
// The first kernel executes griddepcontrol.launch_dependents at its start, which lets the second one
// begin early, and writes afterwards. The second reads at once what the first writes. The trigger says
// when the next kernel may start, and nothing about data. A later trigger would not help either:
// only griddepcontrol.wait waits for the end of the first kernel, and for its writes.
//
// Seen on an H200 (28 November 2026, driver 580.159.04, three runs): right results each time.
// Our explanation, not measured: the second kernel began too late to read before the writes.
#include <stdio.h>

#include "check.h"

enum { THREADS = 256, BLOCKS = 4, NUMBERS = THREADS * BLOCKS };

__global__ void write_numbers(int *numbers) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  __nanosleep(100000);  // the work that comes before the results
  int i = blockIdx.x * THREADS + threadIdx.x;
  numbers[i] = 5 * i + 2;
}

__global__ void double_numbers(const int *numbers, int *doubled) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  doubled[i] = 2 * numbers[i];
}

int main(int argc, char **argv) {
  program_begin("triggered_before_the_writes", argc, argv, NULL, 0);
  static int got[NUMBERS], expected[NUMBERS];
  int *numbers, *doubled;
  for (int i = 0; i < NUMBERS; i++) expected[i] = 2 * (5 * i + 2);
  CUDA_CHECK(cudaMalloc(&numbers, sizeof got));
  CUDA_CHECK(cudaMalloc(&doubled, sizeof got));
  CUDA_CHECK(cudaMemset(numbers, 0, sizeof got));
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(BLOCKS);
  config.blockDim = dim3(THREADS);
  write_numbers<<<BLOCKS, THREADS>>>(numbers);
  config.attrs = &attribute;
  config.numAttrs = 1;
  CUDA_CHECK(cudaLaunchKernelEx(&config, double_numbers, (const int *)numbers, doubled));
  CUDA_CHECK(cudaMemcpy(got, doubled, sizeof got, cudaMemcpyDeviceToHost));
  check_tile("the doubled numbers", ELEMENT_S32, got, expected, 1, NUMBERS, 0);
  CUDA_CHECK(cudaFree(numbers));
  CUDA_CHECK(cudaFree(doubled));
  return program_end("%d numbers", NUMBERS);
}
