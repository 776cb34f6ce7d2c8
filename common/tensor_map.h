/* tensor_map.h: a tensor map (TMA descriptor) as a struct that reads like the documentation, and
 * everything a person wants to know about one: what is wrong with it, what its 128 bytes are,
 * what one copy through it moves.
 *
 *   TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
 *                    .dimensions = 2,
 *                    .address = matrix,
 *                    .size = {columns, rows},
 *                    .box = {64, 128},
 *                    .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
 *   CUtensorMap encoded = tensor_map_encode("matrix A", &map);
 *
 * What is left out is zero, and zero means the usual thing: rows without padding between them,
 * every element (stride 1), no interleave, no swizzle, no L2 promotion, zeros out of bounds.
 *
 * The driver's own encoder answers "invalid value" to every mistake; tensor_map_explain names each
 * broken rule. The rules are those of an H200 (compute capability 9.0): documented
 * ones and those that only the driver knows, all checked against it (tests/tensor_map/).
 *
 * To take these files along: tensor_map.h, tensor_map.c and tensor_map_explain.c need only
 * cuda.h for its types, no driver, no GPU; tensor_map_encode.c also links the CUDA runtime. */
#ifndef COMMON_TENSOR_MAP_H
#define COMMON_TENSOR_MAP_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  CUtensorMapDataType type;
  int dimensions;             /* how many, 1 to 5 */
  void *address;              /* of element (0, 0, ...) in global memory */
  uint64_t size[5];           /* elements in each dimension, innermost first */
  uint64_t stride_bytes[4];   /* stride_bytes[i]: bytes between neighbours in dimension i+1;
                                 0: packed, no gap after dimension i */
  uint32_t box[5];            /* elements that one copy spans in each dimension */
  uint32_t element_stride[5]; /* take every n-th element of the box; 0 means 1 */
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion l2_promotion;
  CUtensorMapFloatOOBfill fill; /* what elements outside the tensor read as: zero, or NaNs whose
                                   bytes are f7 7f f7 7f ..., whatever the type */
  /* true: a zero stride means zero, as in the driver's own call; stride_bytes[i] = 0 then
   * repeats one row forever */
  bool zeros_are_literal;
} TensorMap;

/* With an interleave of 16B or 32B, dimension 0 counts chunks of 16 or 32 bytes (8 or 16 channels of
 * 2 bytes of a pixel), not elements, and its coordinate needs no alignment; the second-to-last
 * dimension counts slices of channels. A copy takes one such slice, whatever its box says.
 *
 * The types TFLOAT32 and TFLOAT32_FTZ round to nearest what they load; FLOAT32_FTZ does not flush
 * what it loads. emulator/tests/random_maps.cu shows all this on an H200. */

/* An im2col map: dimensions are channels, width, height, depth, image (with 3: channels, width,
 * image). One copy takes channels_per_pixel channels of pixels_per_column pixels, walking a
 * bounding box that runs from lower_corner to size + upper_corner in each spatial dimension. */
typedef struct {
  CUtensorMapDataType type;
  int dimensions; /* 3 to 5 */
  void *address;
  uint64_t size[5];
  uint64_t stride_bytes[4];
  int lower_corner[3]; /* dimensions - 2 of them, for size[1], size[2], size[3] */
  int upper_corner[3];
  uint32_t channels_per_pixel;
  uint32_t pixels_per_column;
  uint32_t element_stride[5];
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion l2_promotion;
  CUtensorMapFloatOOBfill fill;
  bool zeros_are_literal;
} TensorMapIm2col;

/* Writes every broken rule into text, one per line: the field, its value, the rule, and a fix.
 * Returns how many rules are broken; 0 means that the driver's encoder accepts the map. Text that
 * does not fit is cut, the count is not; text may be NULL when text_bytes is 0. */
int tensor_map_explain(const TensorMap *map, char *text, size_t text_bytes);

/* Encodes with the driver. A map that breaks a rule is explained on stderr under its name, and the
 * program ends with exit code 2. The driver is found through the runtime: no -lcuda. */
CUtensorMap tensor_map_encode(const char *name, const TensorMap *map);

/* The same 128 bytes without a driver. False, and words untouched, when a rule is broken. */
bool tensor_map_pack(const TensorMap *map, uint64_t words[16]);

/* 128 bytes back into a struct. False when they are not a tiled tensor map: an im2col map, or bits
 * set that no map has. The last 64 bytes are ignored, because they follow from the others. */
bool tensor_map_unpack(const uint64_t words[16], TensorMap *map);

/* The same three for im2col maps. */
int tensor_map_explain_im2col(const TensorMapIm2col *map, char *text, size_t text_bytes);
bool tensor_map_pack_im2col(const TensorMapIm2col *map, uint64_t words[16]);
bool tensor_map_unpack_im2col(const uint64_t words[16], TensorMapIm2col *map);

/* A picture of the map: tensor, box, grid of tiles, swizzle, bytes, alignment. */
void tensor_map_print(FILE *out, const TensorMap *map);

/* What one copy of a whole box moves: the byte count to give mbarrier.arrive.expect_tx. */
size_t tensor_map_copy_bytes(const TensorMap *map);

/* The shared memory that one box needs. More than the copy's bytes when a swizzle's span is wider
 * than the box: its rows then lie a whole span apart. */
size_t tensor_map_footprint_bytes(const TensorMap *map);

/* The alignment in shared memory at which the box's swizzle pattern starts at its first row. */
size_t tensor_map_alignment(const TensorMap *map);

/* The map with every zero that means a default replaced by that default. */
TensorMap tensor_map_resolved(const TensorMap *map);

/* One element in global memory; 0 for the packed 4-bit and 6-bit types, which an H200 refuses. */
size_t tensor_map_element_bytes(CUtensorMapDataType type);
bool tensor_map_type_is_float(CUtensorMapDataType type);

/* The names of CUDA's constants without their prefix: "BFLOAT16", "128B"; NULL for no constant. */
const char *tensor_map_type_name(CUtensorMapDataType type);
const char *tensor_map_interleave_name(CUtensorMapInterleave interleave);
const char *tensor_map_swizzle_name(CUtensorMapSwizzle swizzle);
const char *tensor_map_l2_promotion_name(CUtensorMapL2promotion promotion);
const char *tensor_map_fill_name(CUtensorMapFloatOOBfill fill);

#ifdef __cplusplus
}
#endif
#endif
