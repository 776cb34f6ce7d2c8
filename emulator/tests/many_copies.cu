// many_copies: a warp issues more cp.async than the emulator keeps a list of, waits once, and
// another warp reads. A correct program: nothing may be reported, in whatever order the copies
// land.

#include "device_memory.cuh"

enum { COPIES = 300, WARP = 32 };

__global__ void many_copies(int *out, const int *in) {
  __shared__ int tile[COPIES][WARP];
  int lane = threadIdx.x % WARP;
  if (threadIdx.x < WARP) {
    for (int i = 0; i < COPIES; i++) {
      uint32_t to = (uint32_t)__cvta_generic_to_shared(&tile[i][lane]);
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(in + i * WARP + lane)
                   : "memory");
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
  }
  __syncthreads();
  for (int i = threadIdx.x / WARP; i < COPIES; i += 2) out[i * WARP + lane] = tile[i][lane ^ 1];
}

int main(int argc, char **argv) {
  program_begin("many_copies", argc, argv, NULL, 0);
  static int in[COPIES * WARP], out[COPIES * WARP], expected[COPIES * WARP];
  for (int i = 0; i < COPIES * WARP; i++) in[i] = i;
  for (int i = 0; i < COPIES * WARP; i++) expected[i] = i ^ 1;
  int *device_in = device_copy(in), *device_out = device_memory<int>(COPIES * WARP);
  many_copies<<<1, 2 * WARP>>>(device_out, device_in);
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
  check_tile("neighbours swapped", ELEMENT_S32, out, expected, COPIES, WARP, 0);
  return program_end("%d rows of %d", COPIES, WARP);
}
