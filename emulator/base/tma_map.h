/* tma_map.h: a tensor map as the copy engine reads it, and the rows that one copy moves.
 *
 * common/tensor_map.h describes the driver's encoder and what it accepts. The engine only reads the
 * bits, whether they come from the encoder, the im2col encoder or tensormap.replace. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The engine's numbers for element types. */
typedef enum {
  TENSOR_U8,
  TENSOR_U16,
  TENSOR_U32,
  TENSOR_S32,
  TENSOR_U64,
  TENSOR_S64,
  TENSOR_F16,
  TENSOR_F32,
  TENSOR_F32_FTZ,
  TENSOR_F64,
  TENSOR_BF16,
  TENSOR_TYPES
} TensorType;
uint32_t tensor_type_bytes(TensorType type);
const char *tensor_type_name(TensorType type);

typedef enum { INTERLEAVE_NONE, INTERLEAVE_16B, INTERLEAVE_32B } Interleave;

typedef struct {
  uint64_t address;
  uint64_t dimension[5];
  uint64_t stride[5]; /* bytes between neighbours; [0] is the element (or slice) itself */
  uint32_t box[5];
  uint32_t element_stride[5];
  int32_t lower[3], upper[3]; /* im2col: corners of the box of pixels, w, h, d */
  uint32_t pixels;            /* im2col: per column; box[0] is the channels of each */
  uint8_t dimensions, type, element_bytes, interleave;
  uint8_t unit_bytes;   /* of one step in dimension 0: an element, or an interleaved slice */
  uint8_t swizzle_span; /* 0, 32, 64, 128 */
  bool fill_nan, tf32, im2col;
  bool converts; /* the copy changes the values: tma_convert */
} TmaMap;
bool tma_map_read(const uint64_t words[16], TmaMap *map, const char **problem);

/* Rounds elements on their way into shared memory, for the types that require it. */
void tma_convert(const TmaMap *map, uint8_t *elements, size_t bytes);

/* The position of one copy in the tensor, and im2col's offsets inside the filter. */
typedef struct {
  int32_t coordinate[5];
  uint16_t offset[3];
  bool no_offsets; /* im2col stores */
} TmaPlace;

/* The rows of a copy, in the order of shared memory. A row is `left` bytes of fill, `bytes` bytes
 * at `global`, then fill to `row_bytes`. Rows that differ only in their positions are returned
 * together. */
typedef struct {
  uint32_t offset; /* of the first from the start of the box in shared memory, before swizzling */
  uint32_t left, bytes;
  uint32_t count;
  uint64_t global; /* of the first; nothing when there are no bytes */
  uint64_t step;   /* from row to row in global memory; in shared memory it is the pitch */
} TmaRows;
typedef struct {
  const TmaMap *map;
  const TmaPlace *place;
  uint32_t rows, row_bytes, pitch; /* pitch: from row to row in shared memory */
  uint32_t next, row_units;
  int first_counted; /* dimension in which rows begin to count */
  uint32_t count[5], position[5];
  TmaRows whole;     /* how dimension 0 clips a row */
  bool outer_inside; /* dimensions 2 and up */
  uint64_t outer_offset;
  int64_t pixel[5]; /* im2col */
} TmaWalk;
TmaWalk tma_walk(const TmaMap *map, const TmaPlace *place);
bool tma_walk_next(TmaWalk *walk, TmaRows *rows);
/* The global addresses between which all rows lie; false when nothing is inside the tensor. */
bool tma_range(const TmaMap *map, const TmaPlace *place, uint64_t *first, uint64_t *end);
/* The number of bytes that a copy reports to its barrier. */
uint32_t tma_copy_bytes(const TmaMap *map);
/* Swizzling moves 16-byte chunks: applying the function twice gives the original address. */
static inline uint32_t tma_swizzle(uint32_t span, uint32_t address) {
  return address ^ ((address >> 3) & (span == 128 ? 0x70u : span == 64 ? 0x30u : span ? 0x10u : 0));
}
