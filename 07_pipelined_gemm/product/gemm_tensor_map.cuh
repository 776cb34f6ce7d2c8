/* gemm_tensor_map.cuh: the tensor map of an operand, from the driver's encoder. */
#ifndef PIPELINED_GEMM_GEMM_TENSOR_MAP_CUH
#define PIPELINED_GEMM_GEMM_TENSOR_MAP_CUH

#include "../../common/tma_encode.h"
#include "gemm_types.cuh"

/* An operand as it lies in memory: lines of contiguous elements. */
typedef struct {
  const void *memory;
  int64_t line, lines;           /* elements in a line, lines in a matrix */
  int64_t line_stride;           /* elements from one line to the next */
  int64_t batches, batch_stride; /* batch_stride: elements from one matrix to the next */
} GemmLines;

/* TMA reads and writes lines whose address and distance are multiples of 16 bytes. `bytes`: of an element. */
static inline bool gemm_tma_can_reach(const GemmLines *lines, int bytes) {
  return (uintptr_t)lines->memory % 16 == 0 && lines->line_stride * bytes % 16 == 0 &&
         (lines->batches == 1 || lines->batch_stride * bytes % 16 == 0);
}

/* Boxes of `box_line` elements (at most 128 bytes) by `box_lines` lines, under the narrowest swizzle that is
 * as wide. L2 fetches 256 bytes at a time; but only 128 where lines do not start at multiples of 128
 * bytes: there it would cost up to a fifth of the speed (NOTES.md). */
static inline cudaError_t gemm_encode_map(CUtensorMap *map, GemmType type, const GemmLines *lines,
                                          int box_line, int box_lines) {
  TmaEncodeTiled encode = NULL;
  cudaError_t error = tma_find_encode_tiled(&encode);
  if (error != cudaSuccess) return error;
  int bytes = gemm_element_bytes(type);
  cuuint64_t batch_bytes = (cuuint64_t)lines->batch_stride * bytes;
  if (lines->batches == 1) batch_bytes = (cuuint64_t)lines->line_stride * bytes; /* not used */
  const cuuint64_t sizes[] = {(cuuint64_t)lines->line, (cuuint64_t)lines->lines,
                              (cuuint64_t)lines->batches};
  const cuuint64_t strides[] = {(cuuint64_t)lines->line_stride * bytes, batch_bytes};
  const cuuint32_t box[] = {(cuuint32_t)box_line, (cuuint32_t)box_lines, 1}, every[] = {1, 1, 1};
  CUtensorMapL2promotion promotion = lines->line_stride * bytes % 128 == 0
                                         ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B
                                         : CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
  int line_n = gemm_line_n(box_line * bytes / 2);
  CUtensorMapSwizzle swizzle = line_n == 64   ? CU_TENSOR_MAP_SWIZZLE_128B
                               : line_n == 32 ? CU_TENSOR_MAP_SWIZZLE_64B
                                              : CU_TENSOR_MAP_SWIZZLE_32B;
  CUtensorMapDataType data_type = gemm_is_e4m3(type)  ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                  : type == GEMM_FP32 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                                  : type == GEMM_FP16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                      : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  CUresult result =
      encode(map, data_type, 3, (void *)(uintptr_t)lines->memory, sizes, strides, box, every,
             CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

#endif
