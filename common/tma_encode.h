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

/* Looks up cuTensorMapEncodeTiled. cudaErrorSymbolNotFound: the driver is older than CUDA 12.0.
 * The function needs a context, which is created here when the program has made no CUDA call yet.
 * Nothing else is called, because a stream may be capturing: encoding is allowed then, and almost
 * every other call would invalidate the capture. */
static inline cudaError_t tma_find_encode_tiled(TmaEncodeTiled *encode) {
  void *entry = NULL, *context_entry = NULL;
  cudaError_t error = tma_driver_function("cuTensorMapEncodeTiled", &entry);
  if (error == cudaSuccess) error = tma_driver_function("cuCtxGetCurrent", &context_entry);
  if (error != cudaSuccess) return error;
  CUcontext context = NULL;
  CUresult result = ((CUresult(*)(CUcontext *))context_entry)(&context);
  if (result != CUDA_SUCCESS || context == NULL) error = cudaFree(NULL); /* only creates one */
  *encode = (TmaEncodeTiled)entry;
  return error;
}

/* Encodes the usual kind of map: every element, no interleave, no L2 promotion, and zeros outside
 * the tensor. `stride_bytes` has dimensions - 1 entries and may be NULL for 1 dimension. Returns
 * cudaErrorInvalidValue when the map breaks one of the driver's rules. The most frequent ones: the
 * address and all strides are multiples of 16 bytes, a row of the box is a multiple of 16 bytes and
 * at most as wide as the swizzle, and no side of the box is longer than 256 elements. */
static inline cudaError_t tma_encode_tiled(CUtensorMap *map, CUtensorMapDataType type,
                                           uint32_t dimensions, void *address, const uint64_t *size,
                                           const uint64_t *stride_bytes, const uint32_t *box,
                                           CUtensorMapSwizzle swizzle) {
  const cuuint32_t every_element[5] = {1, 1, 1, 1, 1};
  TmaEncodeTiled encode;
  cudaError_t error = tma_find_encode_tiled(&encode);
  if (error != cudaSuccess) return error;
  /* The driver's error numbers are those of the runtime: CUDA_ERROR_INVALID_VALUE is 1, too. */
  return (cudaError_t)encode(map, type, dimensions, address, (const cuuint64_t *)size,
                             (const cuuint64_t *)stride_bytes, box, every_element,
                             CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                             CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

#endif
