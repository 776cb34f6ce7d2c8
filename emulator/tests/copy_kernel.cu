/* copy_kernel.cu: a kernel that only copies, bound by memory: for what the checks cost at worst
 * (emulator/tests/long/check_costs). */

#include "device_memory.cuh"

enum { BYTES = 64 << 20, COUNT = BYTES / 16, THREADS = 256, TIMES = 4 };

__global__ void copy(int4 *to, const int4 *from) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i];
}

int main(void) {
  int4 *from = device_filled<int4>(COUNT, 1), *to = device_memory<int4>(COUNT);
  for (int i = 0; i < TIMES; i++) copy<<<COUNT / THREADS, THREADS>>>(to, from);
  CUDA_CHECK(cudaDeviceSynchronize());
  int last;
  CUDA_CHECK(
      cudaMemcpy(&last, (char *)to + BYTES - sizeof last, sizeof last, cudaMemcpyDeviceToHost));
  printf("%s copy_kernel\n", last == 0x01010101 ? "PASS" : "FAIL");
  return last != 0x01010101;
}
