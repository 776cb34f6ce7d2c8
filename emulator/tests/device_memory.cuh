/* device_memory.cuh: memory of the device with what a test begins with, which stays until the program ends, and maps of it. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "check.h"
#include "tensor_map.h"

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

/* A map of a matrix without gaps between its rows. */
static inline CUtensorMap map_of_matrix(CUtensorMapDataType type, void *matrix, long columns,
                                        long rows, long box_columns, long box_rows,
                                        CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE) {
  TensorMap map = {.type = type,
                   .dimensions = 2,
                   .address = matrix,
                   .size = {(uint64_t)columns, (uint64_t)rows},
                   .box = {(uint32_t)box_columns, (uint32_t)box_rows},
                   .swizzle = swizzle};
  return tensor_map_encode("matrix", &map);
}

/* The most memory of the host that the process has used. A page of 2 MiB would count as used whole. */
static inline void without_huge_pages(void) { prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }
static inline long most_memory_kib(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/* After a launch: waits for its end. Both must have gone well. */
#define CHECK_LAUNCH() (CUDA_CHECK(cudaGetLastError()), CUDA_CHECK(cudaDeviceSynchronize()))
