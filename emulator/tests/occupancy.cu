// occupancy.cu: how many blocks fit on a multiprocessor, for kernels that may use 24 to 255
// registers, different numbers of threads and several sizes of shared memory. The answers are
// compared with those of NVIDIA's cuda_occupancy.h, which computes them from the device's limits.
#include <cuda_occupancy.h>

#include "../../common/check.h"

enum { OTHER_REGISTERS = 14 };  // at most: the address, the stack, multiples of 8

// Holds as many values as there may be registers: none is used before all are read.
template <int REGISTERS>
__global__ void __maxnreg__(REGISTERS) hold(float *numbers) {
  enum { VALUES = REGISTERS - OTHER_REGISTERS };
  float values[VALUES];
  float *first = numbers + threadIdx.x;
#pragma unroll
  for (int i = 0; i < VALUES; i++) values[i] = first[i * 1024];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < VALUES; i++) first[i * 1024] = values[i] * values[VALUES - 1 - i];
}

static const struct {
  void (*start)(float *numbers);
  int limit;
} kernels[] = {{hold<24>, 24},   {hold<32>, 32},   {hold<40>, 40},   {hold<48>, 48},
               {hold<64>, 64},   {hold<72>, 72},   {hold<80>, 80},   {hold<96>, 96},
               {hold<104>, 104}, {hold<128>, 128}, {hold<144>, 144}, {hold<168>, 168},
               {hold<192>, 192}, {hold<224>, 224}, {hold<255>, 255}};

static void compare(const cudaOccDeviceProp *device, int kernel, int threads, size_t shared) {
  const void *start = (const void *)kernels[kernel].start;
  cudaFuncAttributes attributes;
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, start));
  const cudaOccFuncAttributes properties(attributes);
  const cudaOccDeviceState state;
  cudaOccResult expected = {};
  int blocks = -1;
  cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(&expected, device, &properties,
                                                               &state, threads, shared);
  check_that(error == CUDA_OCC_SUCCESS, "cuda_occupancy.h answers %d", error);
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, start, threads, shared));
  check_that(blocks == expected.activeBlocksPerMultiprocessor,
             "%d registers, %d threads, %zu bytes: expected %d blocks, got %d", attributes.numRegs,
             threads, shared, expected.activeBlocksPerMultiprocessor, blocks);
}

int main(int argc, char **argv) {
  program_begin("occupancy", argc, argv, NULL, 0);
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  const cudaOccDeviceProp device(properties);
  const size_t sizes[] = {0, 1, 1000, 16384, 33000, 100000, 232448};
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
    const void *start = (const void *)kernels[i].start;
    cudaFuncAttributes attributes;
    CUDA_CHECK(cudaFuncGetAttributes(&attributes, start));
    int limit = kernels[i].limit, registers = attributes.numRegs;
    check_that(registers >= limit - OTHER_REGISTERS && registers <= limit,
               "a kernel that needs nearly %d registers: got %d", limit, registers);
    CUDA_CHECK(cudaFuncSetAttribute(start, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448));
    for (size_t size : sizes) {
      for (int threads = 1; threads <= 1024; threads += 31) compare(&device, (int)i, threads, size);
    }
  }
  return program_end("blocks per multiprocessor, by registers, threads and shared memory");
}
