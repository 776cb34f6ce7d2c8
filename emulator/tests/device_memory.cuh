/* device_memory.cuh: memory of the device with what a test begins with. It stays until the program ends. */
#ifndef TESTS_DEVICE_MEMORY_CUH
#define TESTS_DEVICE_MEMORY_CUH

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

/* So many elements that nothing has written. */
template <typename T>
static T *device_memory(size_t count) {
  T *memory;
  CUDA_CHECK(cudaMalloc(&memory, count * sizeof *memory));
  return memory;
}

/* So many elements, of which each byte is `byte`. */
template <typename T>
static T *device_filled(size_t count, int byte) {
  T *memory = device_memory<T>(count);
  CUDA_CHECK(cudaMemset(memory, byte, count * sizeof *memory));
  return memory;
}

/* What an array of the host holds. */
template <typename T>
static T *device_copy(const T *host, size_t count) {
  T *memory = device_memory<T>(count);
  CUDA_CHECK(cudaMemcpy(memory, host, count * sizeof *memory, cudaMemcpyHostToDevice));
  return memory;
}
template <typename T, size_t COUNT>
static T *device_copy(const T (&host)[COUNT]) {
  return device_copy(host, COUNT);
}

/* After a launch: waits for its end. Both must have gone well. */
#define CHECK_LAUNCH() (CUDA_CHECK(cudaGetLastError()), CUDA_CHECK(cudaDeviceSynchronize()))

#endif
