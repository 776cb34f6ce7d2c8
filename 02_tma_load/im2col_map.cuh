/* im2col_map.cuh: encodes a tensor map in im2col mode, for loads (im2col.cu) and stores
 * (../03_tma_store/im2col_store.cu). */
#ifndef TMA_LOAD_IM2COL_MAP_CUH
#define TMA_LOAD_IM2COL_MAP_CUH

#include <cuda.h>

#include "check.h"

typedef CUresult (*EncodeIm2col)(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t dimensions,
                                 void *globalAddress, const cuuint64_t *globalDim,
                                 const cuuint64_t *globalStrides, const int *pixelBoxLowerCorner,
                                 const int *pixelBoxUpperCorner, cuuint32_t channelsPerPixel,
                                 cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion l2Promotion,
                                 CUtensorMapFloatOOBfill oobFill);

/* Of packed images of int32. sizes: channels, width, height, images. The corners are (w, h), the
 * lower one counted from the first pixel of an image, the upper one from the last. One copy moves
 * `pixels` pixels with all their channels. */
static inline CUtensorMap im2col_map_s32(void *images, const cuuint64_t sizes[4],
                                         const int lower_corner[2], const int upper_corner[2],
                                         cuuint32_t pixels) {
  void *symbol = NULL;
  cudaDriverEntryPointQueryResult found;
  CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", &symbol, 12000,
                                              cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess) {
    program_fail("the driver has no cuTensorMapEncodeIm2col");
  }
  const cuuint64_t strides[3] = {sizes[0] * 4, sizes[0] * sizes[1] * 4,
                                 sizes[0] * sizes[1] * sizes[2] * 4};
  const cuuint32_t every_element[4] = {1, 1, 1, 1};
  CUtensorMap map;
  CU_CHECK(((EncodeIm2col)symbol)(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 4, images, sizes, strides,
                                  lower_corner, upper_corner, (cuuint32_t)sizes[0], pixels,
                                  every_element, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                  CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  return map;
}

#endif
