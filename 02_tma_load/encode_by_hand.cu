// 02 encode_by_hand: the call to the driver that tensor_map_encode makes for you.
//
// cuTensorMapEncodeTiled is a function of the driver, libcuda.so. A program that is linked with the
// runtime alone asks the runtime for its address. Sizes count elements and strides count bytes. The
// innermost dimension comes first and has no stride: its elements always lie side by side.
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "tensor_map.h"

enum { ROWS = 32, COLUMNS = 64, TILE_ROWS = 8, TILE_COLUMNS = 16 };

typedef CUresult (*EncodeTiled)(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t dimensions,
                                void *globalAddress, const cuuint64_t *globalDim,
                                const cuuint64_t *globalStrides, const cuuint32_t *boxDim,
                                const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
                                CUtensorMapFloatOOBfill oobFill);

int main(int argc, char **argv) {
  program_begin("encode_by_hand", argc, argv, NULL, 0);
  void *matrix;
  CUDA_CHECK(cudaMalloc(&matrix, ROWS * COLUMNS * sizeof(int)));

  void *symbol = NULL;
  cudaDriverEntryPointQueryResult found;
  CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &symbol, 12000,
                                              cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess)
    program_fail("the driver has no cuTensorMapEncodeTiled");
  EncodeTiled encode_tiled = (EncodeTiled)symbol;

  cuuint64_t globalDim[2] = {COLUMNS, ROWS};              // the tensor, in elements
  cuuint64_t globalStrides[1] = {COLUMNS * sizeof(int)};  // from one row to the next, in bytes
  cuuint32_t boxDim[2] = {TILE_COLUMNS, TILE_ROWS};       // what one copy takes, in elements
  cuuint32_t elementStrides[2] = {1, 1};                  // every element
  CUtensorMap by_hand;
  CU_CHECK(encode_tiled(&by_hand, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, matrix, globalDim,
                        globalStrides, boxDim, elementStrides, CU_TENSOR_MAP_INTERLEAVE_NONE,
                        CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));

  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = matrix,
                   .size = {COLUMNS, ROWS},
                   .box = {TILE_COLUMNS, TILE_ROWS}};
  CUtensorMap encoded = tensor_map_encode("matrix", &map);
  check_that(memcmp(&by_hand, &encoded, sizeof encoded) == 0, "the two tensor maps must be equal");
  printf("cuTensorMapEncodeTiled and tensor_map_encode made the same %zu bytes\n", sizeof encoded);
  return program_end("one tensor map, all %zu bytes", sizeof encoded);
}
