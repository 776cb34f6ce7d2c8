// Calls functions of the driver's library by their names, without asking the runtime for them.
#include <cuda.h>
#include <stdio.h>

int main(void) {
  int *matrix;
  CUtensorMap map;
  cuuint64_t sizes[2] = {32, 32}, stride = 128;
  cuuint32_t box[2] = {32, 32}, steps[2] = {1, 1};
  if (cudaMalloc((void **)&matrix, 32 * 32 * sizeof *matrix) != cudaSuccess) return 1;
  CUresult result =
      cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, matrix, sizes, &stride, box,
                             steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                             CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  printf("encoded with result %d\n", (int)result);
  return 0;
}
