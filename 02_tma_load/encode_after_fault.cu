// 02 encode_after_fault: an encoder that fails although the map is right.
//
//   beside descriptor; asked about "Failed to initialize the TMA descriptor 715"
//
// A kernel that faults makes the whole context unusable. The launch has long returned success by then, and
// from then on every call returns the same error, whatever it was asked to do: the error sticks. In a
// program that does not synchronise after a launch, the first call to return it may be the encoder of
// the next tensor map, and its message blames a map that is right.
//
// The kernel here loads from column 2 of a matrix of floats, which is no multiple of 16 bytes: illegal
// instruction (715). Prints what each call returns, before and after. Only the end of the process helps.
#include <stdio.h>

#include "check.h"
#include "tma_encode.h"
#include "tma_load.cuh"

enum { ROWS = 8, COLUMNS = 8, BOX = 4, TILE_BYTES = BOX * BOX * sizeof(float) };

__global__ void load(const __grid_constant__ CUtensorMap map, int first_column) {
  __shared__ alignas(128) float tile[BOX * BOX];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, TILE_BYTES);
    tma_load_2d(tile, &map, first_column, 0, &barrier);
  }
  __syncthreads();
  mbarrier_wait_parity(&barrier, 0);
}

static int unexpected;

// Prints what a call returned, and counts what was not expected.
static void show(const char *call, cudaError_t error, cudaError_t expected) {
  printf("  %-34s %3d %s\n", call, (int)error, cudaGetErrorName(error));
  unexpected += !check_that(error == expected, "%s returns %d, but expected was %d", call,
                            (int)error, (int)expected);
}

// Always the same legal map.
static cudaError_t encode(TmaEncodeTiled encoder, float *matrix, CUtensorMap *map) {
  const uint64_t size[] = {COLUMNS, ROWS}, stride_bytes[] = {COLUMNS * sizeof(float)};
  const uint32_t box[] = {BOX, BOX}, every_element[] = {1, 1};
  // The driver's error numbers are those of the runtime.
  return (cudaError_t)encoder(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, matrix,
                              (const cuuint64_t *)size, (const cuuint64_t *)stride_bytes, box,
                              every_element, CU_TENSOR_MAP_INTERLEAVE_NONE,
                              CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

int main(int argc, char **argv) {
  program_begin("encode_after_fault", argc, argv, NULL, 0);
  float *matrix;
  void *more = NULL;
  CUtensorMap map;
  const cudaError_t fault = cudaErrorIllegalInstruction;
  TmaEncodeTiled encoder = NULL;
  CUDA_CHECK(tma_find_encoder("cuTensorMapEncodeTiled", (void **)&encoder));
  CUDA_CHECK(cudaMalloc(&matrix, ROWS * COLUMNS * sizeof *matrix));

  printf("a load from column 4\n");
  show("cuTensorMapEncodeTiled", encode(encoder, matrix, &map), cudaSuccess);
  load<<<1, 32>>>(map, 4);
  show("the launch, cudaGetLastError", cudaGetLastError(), cudaSuccess);
  show("cudaDeviceSynchronize", cudaDeviceSynchronize(), cudaSuccess);

  printf("a load from column 2\n");
  load<<<1, 32>>>(map, 2);
  show("the launch, cudaGetLastError", cudaGetLastError(), cudaSuccess);
  show("cudaDeviceSynchronize", cudaDeviceSynchronize(), fault);

  printf("and from then on\n");
  show("cuTensorMapEncodeTiled, same map", encode(encoder, matrix, &map), fault);
  show("cudaMalloc", cudaMalloc(&more, 16), fault);
  load<<<1, 32>>>(map, 4);
  show("a launch that is right", cudaGetLastError(), fault);
  show("cudaDeviceSynchronize", cudaDeviceSynchronize(), fault);
  if (unexpected) program_fail("%d calls returned another error than expected", unexpected);
  // program_end() would call the lost context again.
  printf("PASS encode_after_fault: every call after a fault returns its error\n");
  return EXIT_PASS;
}
