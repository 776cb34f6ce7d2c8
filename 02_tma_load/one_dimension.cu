// 02 one_dimension: a run of numbers, by a bulk copy or by tensor copies?
//
//   beside dimensions
//
//                         cp.async.bulk                        cp.async.bulk.tensor.1d
//   tensor map            none                                 one, made by the host
//   length                any multiple of 16 bytes             the box: at most 256 elements
//   past the end          reads whatever lies there, or        zeros; the bytes of the whole box count
//                         faults: pass the true length
//   address               a pointer, multiple of 16 bytes      a coordinate, multiple of 16 bytes
//
// So a run goes by a bulk copy, unless the end must be filled with zeros, or the swizzle, the
// element stride or the type's rounding of a map are wanted.
//
// Here both fetch 1,000 ints into a buffer for 1,024: one bulk copy of 4,000 bytes, or four boxes of
// 256. All four report to one barrier, which was told the sum of their bytes. Each way is written
// twice, with the destination as .shared::cluster and as .shared::cta: the same copy.
#include <stdio.h>

#include "check.h"
#include "tensor_map.h"
#include "tma_load_dimensions.cuh"

enum { RUN = 1000, BUFFER = 1024, BOX = 256, UNTOUCHED = -1, WAYS = 4 };
static const char *const names[WAYS] = {"bulk, .shared::cluster", "bulk, .shared::cta",
                                        "tensor, .shared::cluster", "tensor, .shared::cta"};

__global__ void fetch(const __grid_constant__ CUtensorMap map, const int *run, int way, int *out) {
  __shared__ alignas(128) int buffer[BUFFER];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
  }
  for (int i = threadIdx.x; i < BUFFER; i += blockDim.x) buffer[i] = UNTOUCHED;
  fence_proxy_async();  // the copies write where these threads have written
  __syncthreads();
  if (threadIdx.x == 0) {
    uint32_t bytes = (way < 2 ? RUN : BUFFER) * sizeof(int);
    mbarrier_arrive_expect_tx(&barrier, bytes);
    if (way == 0) bulk_load(buffer, run, bytes, &barrier);
    if (way == 1) bulk_load_cta(buffer, run, bytes, &barrier);
    for (int x = 0; x < BUFFER && way >= 2; x += BOX) {
      if (way == 2) tma_load_1d(&buffer[x], &map, x, &barrier);
      if (way == 3) tma_load_1d_cta(&buffer[x], &map, x, &barrier);
    }
  }
  mbarrier_wait_parity(&barrier, 0);
  for (int i = threadIdx.x; i < BUFFER; i += blockDim.x) out[i] = buffer[i];
}

int main(int argc, char **argv) {
  program_begin("one_dimension", argc, argv, NULL, 0);
  int run[RUN], got[BUFFER], expected[BUFFER], *device_run, *device_out;
  for (int i = 0; i < RUN; i++) run[i] = 3 * i + 1;
  CUDA_CHECK(cudaMalloc(&device_run, sizeof run));
  CUDA_CHECK(cudaMalloc(&device_out, sizeof got));
  CUDA_CHECK(cudaMemcpy(device_run, run, sizeof run, cudaMemcpyHostToDevice));
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 1,
                   .address = device_run,
                   .size = {RUN},
                   .box = {BOX}};
  printf("elements 998 to 1002\n");
  for (int way = 0; way < WAYS; way++) {
    fetch<<<1, 128>>>(tensor_map_encode("run", &map), device_run, way, device_out);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(got, device_out, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < BUFFER; i++) expected[i] = i < RUN ? run[i] : way < 2 ? UNTOUCHED : 0;
    printf("  %-25s", names[way]);
    for (int i = RUN - 2; i < RUN + 3; i++) printf(" %4d", got[i]);
    printf("\n");
    check_tile(names[way], ELEMENT_S32, got, expected, 1, BUFFER, 0);
  }
  CUDA_CHECK(cudaFree(device_run));
  CUDA_CHECK(cudaFree(device_out));
  return program_end("%d ways to fetch %d numbers, every element of the buffer", WAYS, RUN);
}
