/* tma_encode.h: how to get a tensor map from the driver.
 *
 * cuTensorMapEncodeTiled writes the 128 bytes of a tensor map. It is a function of the driver
 * library, so calling it by name needs -lcuda. The CUDA runtime can look the function up instead,
 * and then a program links nothing beyond the runtime.
 *
 *   uint64_t size[] = {columns, rows};             innermost dimension first
 *   uint64_t stride_bytes[] = {columns * 2};       from one row to the next: a multiple of 16
 *   uint32_t box[] = {64, 128};                    the tile: 64 columns, 128 rows
 *   CUtensorMap map;
 *   cudaError_t error = tma_encode_tiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, matrix, size,
 *                                        stride_bytes, box, CU_TENSOR_MAP_SWIZZLE_NONE);
 *   if (error != cudaSuccess) ...                  cudaGetErrorString(error) is the message
 *   kernel<<<grid, block>>>(map);                  a const __grid_constant__ CUtensorMap parameter
 *
 * Nothing here prints, and nothing ends the program. */
#ifndef COMMON_TMA_ENCODE_H
#define COMMON_TMA_ENCODE_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The driver's function. The comment at each parameter gives its name in CUDA's documentation. */
typedef CUresult (*TmaEncodeTiled)(
    CUtensorMap *map,         /* tensorMap: where the 128 bytes go */
    CUtensorMapDataType type, /* tensorDataType */
    cuuint32_t dimensions,    /* tensorRank: 1 to 5 dimensions */
    void *address,            /* globalAddress: of element (0, 0, ...), 16-byte aligned */
    const cuuint64_t *size,   /* globalDim: elements in each dimension, innermost first */
    const cuuint64_t
        *stride_bytes,     /* globalStrides: dimensions - 1 strides, multiples of 16 bytes */
    const cuuint32_t *box, /* boxDim: elements that one copy spans, 1 to 256 each */
    const cuuint32_t *element_stride,    /* elementStrides: 1 takes every element of the box */
    CUtensorMapInterleave interleave,    /* NONE: the tensor is stored dimension by dimension */
    CUtensorMapSwizzle swizzle,          /* the order of 16-byte chunks in shared memory */
    CUtensorMapL2promotion l2_promotion, /* how much L2 fetches at least for each access */
    CUtensorMapFloatOOBfill fill); /* oobFill: zeros or NaNs for elements outside the tensor */

/* Looks up a function of the driver, as it was in version 12000 (CUDA 12.0) or later. */
static inline cudaError_t tma_driver_function(const char *name, void **entry) {
  enum cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
  cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, entry, 12000, cudaEnableDefault, &found);
#else
  cudaError_t error = cudaGetDriverEntryPoint(name, entry, cudaEnableDefault, &found);
#endif
  if (error != cudaSuccess) return error;
  return found == cudaDriverEntryPointSuccess && *entry ? cudaSuccess : cudaErrorSymbolNotFound;
}

/* The same for tensors in im2col mode: what differs from TmaEncodeTiled. */
typedef CUresult (*TmaEncodeIm2col)(
    CUtensorMap *map, CUtensorMapDataType type,
    cuuint32_t dimensions, /* tensorRank: 3 to 5: channels, 1 to 3 dimensions of pixels, images */
    void *address, const cuuint64_t *size, const cuuint64_t *stride_bytes,
    const int *lower_corner, /* pixelBoxLowerCorner: from the first pixel of an image */
    const int *upper_corner, /* pixelBoxUpperCorner: from its last pixel */
    cuuint32_t channels,     /* channelsPerPixel: that one copy takes of each pixel */
    cuuint32_t pixels,       /* pixelsPerColumn: that one copy takes */
    const cuuint32_t *element_stride, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill fill);

/* Looks up a function that encodes. cudaErrorSymbolNotFound: the driver is older than CUDA 12.0.
 * The function needs a context, which is created here when the program has made no CUDA call yet.
 * Nothing else is called, because a stream may be capturing: encoding is allowed then, and almost
 * every other call would invalidate the capture. */
static inline cudaError_t tma_find_encoder(const char *name, void **encode) {
  void *context_entry = NULL;
  cudaError_t error = tma_driver_function(name, encode);
  if (error == cudaSuccess) error = tma_driver_function("cuCtxGetCurrent", &context_entry);
  if (error != cudaSuccess) return error;
  CUcontext context = NULL;
  CUresult (*current)(CUcontext *);
  memcpy(&current, &context_entry, sizeof(current));
  CUresult result = current(&context);
  if (result != CUDA_SUCCESS || context == NULL) error = cudaFree(NULL); /* only creates one */
  return error;
}

/* What is seldom set. All zeros is the usual map: every element, no interleave, no swizzle, no L2
 * promotion, and zeros outside the tensor. */
typedef struct {
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion l2_promotion; /* how much L2 fetches at least for each access */
  CUtensorMapFloatOOBfill fill;        /* NaNs in place of zeros outside a tensor of floats */
  CUtensorMapInterleave interleave;
  const uint32_t *element_stride; /* NULL, or for each dimension: take every n-th element */
} TmaMapOptions;

/* Encodes a map of boxes. `stride_bytes` has dimensions - 1 entries and may be NULL for 1 dimension.
 * Returns cudaErrorInvalidValue when the map breaks one of the driver's rules. The most frequent
 * ones: the address and all strides are multiples of 16 bytes, a row of the box is a multiple of 16
 * bytes and at most as wide as the swizzle, and no side of the box is longer than 256 elements.
 * `map` may have any alignment: the driver demands 64 bytes, and g++ does not align the result of a function
 * that is assigned. */
static inline cudaError_t tma_encode_tiled_with(CUtensorMap *map, CUtensorMapDataType type,
                                                uint32_t dimensions, void *address,
                                                const uint64_t *size, const uint64_t *stride_bytes,
                                                const uint32_t *box, const TmaMapOptions *options) {
  const cuuint32_t every_element[5] = {1, 1, 1, 1, 1};
  void *entry = NULL;
  TmaEncodeTiled encode;
  CUtensorMap encoded[1]; /* not a variable, which clang would build where the caller wants it */
  cudaError_t error = tma_find_encoder("cuTensorMapEncodeTiled", &entry);
  if (error != cudaSuccess) return error;
  memcpy(&encode, &entry, sizeof(encode)); /* C has no cast from data to a function */
  /* The driver's error numbers are those of the runtime: CUDA_ERROR_INVALID_VALUE is 1, too. */
  error = (cudaError_t)encode(encoded, type, dimensions, address, (const cuuint64_t *)size,
                              (const cuuint64_t *)stride_bytes, box,
                              options->element_stride ? options->element_stride : every_element,
                              options->interleave, options->swizzle, options->l2_promotion,
                              options->fill);
  if (error == cudaSuccess) memcpy((void *)map, (const void *)encoded, sizeof(encoded));
  return error;
}

/* The usual kind of map. */
static inline cudaError_t tma_encode_tiled(CUtensorMap *map, CUtensorMapDataType type,
                                           uint32_t dimensions, void *address, const uint64_t *size,
                                           const uint64_t *stride_bytes, const uint32_t *box,
                                           CUtensorMapSwizzle swizzle) {
  TmaMapOptions options = {swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                           CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, CU_TENSOR_MAP_INTERLEAVE_NONE, NULL};
  return tma_encode_tiled_with(map, type, dimensions, address, size, stride_bytes, box, &options);
}

/* Encodes a map in im2col mode, of `dimensions` 3 to 5: channels, then width, height and depth as far
 * as there are, then images. Each corner has dimensions - 2 entries, width first. */
static inline cudaError_t tma_encode_im2col(CUtensorMap *map, CUtensorMapDataType type,
                                            uint32_t dimensions, void *address,
                                            const uint64_t *size, const uint64_t *stride_bytes,
                                            const int *lower_corner, const int *upper_corner,
                                            uint32_t channels, uint32_t pixels,
                                            const TmaMapOptions *options) {
  const cuuint32_t every_element[5] = {1, 1, 1, 1, 1};
  void *entry = NULL;
  TmaEncodeIm2col encode;
  CUtensorMap encoded[1];
  cudaError_t error = tma_find_encoder("cuTensorMapEncodeIm2col", &entry);
  if (error != cudaSuccess) return error;
  memcpy(&encode, &entry, sizeof(encode));
  error = (cudaError_t)encode(
      encoded, type, dimensions, address, (const cuuint64_t *)size,
      (const cuuint64_t *)stride_bytes, lower_corner, upper_corner, channels, pixels,
      options->element_stride ? options->element_stride : every_element, options->interleave,
      options->swizzle, options->l2_promotion, options->fill);
  if (error == cudaSuccess) memcpy((void *)map, (const void *)encoded, sizeof(encoded));
  return error;
}

#endif
