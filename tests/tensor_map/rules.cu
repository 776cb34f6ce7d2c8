// rules: breaks each rule of tensor maps alone, reads the message, and fixes it as the message says
// and finds nothing wrong. Also: all messages of a map that breaks several rules, text that does
// not fit, packed strides and the byte counts.
// No device takes part, neither a GPU nor the emulator.
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor_map.h"

static long failures;

__attribute__((format(printf, 2, 3))) static void check_that(bool holds, const char *format, ...) {
  if (holds) return;
  failures++;
  va_list arguments;
  va_start(arguments, format);
  printf("  wrong: ");
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
}

static TensorMap legal_map(void) {
  TensorMap map = {};
  map.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  map.dimensions = 3;
  map.address = (void *)0x7f0000000000;
  map.size[0] = 1024, map.size[1] = 512, map.size[2] = 8;
  map.box[0] = 32, map.box[1] = 64, map.box[2] = 2;
  map.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  return map;
}

static TensorMapIm2col legal_im2col(void) {
  TensorMapIm2col map = {};
  map.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  map.dimensions = 4;
  map.address = (void *)0x7f0000000000;
  map.size[0] = 64, map.size[1] = 56, map.size[2] = 56, map.size[3] = 32;
  map.lower_corner[0] = map.lower_corner[1] = -1;
  map.upper_corner[0] = map.upper_corner[1] = -1;
  map.channels_per_pixel = 64;
  map.pixels_per_column = 128;
  map.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  return map;
}

// Exactly this one rule is broken, and pack refuses without touching the words.
template <typename Map>
static void expect_rule(const Map *map, int (*explain)(const Map *, char *, size_t),
                        bool (*pack)(const Map *, uint64_t *), const char *message) {
  char text[4096], expected[512];
  int count = explain(map, text, sizeof text);
  snprintf(expected, sizeof expected, "%s\n", message);
  check_that(count == 1 && strcmp(text, expected) == 0,
             "%d rules broken, expected one.\n    expected: %s    got:      %s", count, expected,
             text);
  uint64_t words[16] = {7};
  check_that(!pack(map, words) && words[0] == 7, "packed nevertheless: %s", message);
}

static void expect_legal(const TensorMap *map, const char *what) {
  char text[4096];
  int count = tensor_map_explain(map, text, sizeof text);
  check_that(count == 0 && text[0] == 0, "the fix of '%s' is refused: %s", what, text);
}

// breaking: statements that break the legal `map`; fixing: statements that follow the message.
#define RULE(breaking, message, fixing)                              \
  do {                                                               \
    TensorMap map = legal_map();                                     \
    breaking;                                                        \
    expect_rule(&map, tensor_map_explain, tensor_map_pack, message); \
    fixing;                                                          \
    expect_legal(&map, message);                                     \
  } while (0)

#define IM2COL_RULE(breaking, message)                                             \
  do {                                                                             \
    TensorMapIm2col map = legal_im2col();                                          \
    breaking;                                                                      \
    expect_rule(&map, tensor_map_explain_im2col, tensor_map_pack_im2col, message); \
  } while (0)

static void tensor_rules(void) {
  RULE(map.type = (CUtensorMapDataType)99,
       "type = 99 is not a CUtensorMapDataType: use 0 (UINT8) to 12 (TFLOAT32_FTZ), for example "
       "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16",
       map.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  RULE(map.type = (CUtensorMapDataType)13,
       "type = 16U4_ALIGN8B is a packed type, which compute capability 9.0 refuses: describe the "
       "tensor as bytes (CU_TENSOR_MAP_DATA_TYPE_UINT8)",
       map.type = CU_TENSOR_MAP_DATA_TYPE_UINT8);
  RULE(map.dimensions = 0,
       "dimensions = 0 is not 1 to 5: set it to the number of dimensions of the tensor",
       map.dimensions = 3);
  RULE(map.dimensions = 6,
       "dimensions = 6 is not 1 to 5: merge neighbouring dimensions that have no gap between them",
       map.dimensions = 3);
  RULE(map.dimensions = -2,
       "dimensions = -2 is not 1 to 5: set it to the number of dimensions of the tensor",
       map.dimensions = 3);
  RULE(map.address = (void *)0x7f0000000018,
       "address = 0x7f0000000018 is not a multiple of 16: start the tensor at 0x7f0000000010, or "
       "copy it to memory from cudaMalloc, which is aligned",
       map.address = (void *)0x7f0000000010);
  RULE(map.interleave = CU_TENSOR_MAP_INTERLEAVE_32B;
       map.address = (void *)0x7f0000000010,
       "address = 0x7f0000000010 is not a multiple of 32 (interleave 32B): start the tensor at "
       "0x7f0000000000, or copy it to memory from cudaMalloc, which is aligned",
       map.address = (void *)0x7f0000000000);
  RULE(map.address = (void *)0x200000000000000,
       "address = 0x200000000000000 is not below 2^57, so it is not a pointer to global memory: "
       "pass what cudaMalloc gave, not an uninitialised or computed value",
       map.address = (void *)0x1fffffffffffff0);
  RULE(map.size[2] = 0,
       "size[2] = 0, and no dimension may be empty: set size[2] to the tensor's elements in that "
       "dimension, or lower dimensions = 3",
       map.dimensions = 2);
  RULE(map.size[2] = 4294967297,
       "size[2] = 4294967297 is more than 2^32 elements: split the dimension in two, or make one "
       "map for each part",
       map.size[2] = 4294967296);
}

static void stride_rules(void) {
  RULE(map.size[0] = 1025; map.stride_bytes[0] = 4100;
       map.stride_bytes[1] = 4112 * 512,
       "stride_bytes[0] = 4100 is not a multiple of 16: pad each row to 1028 elements (4112 bytes)",
       map.stride_bytes[0] = 4112);
  // Packed: the stride follows from the size, and the ones above it are not reported again.
  RULE(map.size[0] = 1025;
       map.size[1] = 511,
       "stride_bytes[0] = 4100 is not a multiple of 16: pad each row to 1028 elements (4112 bytes) "
       "and set stride_bytes[0] so",
       map.stride_bytes[0] = 4112);
  RULE(map.stride_bytes[1] = 2097160,
       "stride_bytes[1] = 2097160 is not a multiple of 16: pad so that neighbours in dimension 2 "
       "are 2097168 bytes apart",
       map.stride_bytes[1] = 2097168);
  RULE(map.interleave = CU_TENSOR_MAP_INTERLEAVE_32B; map.stride_bytes[0] = 4112;
       map.stride_bytes[1] = 4128 * 512,
       "stride_bytes[0] = 4112 is not a multiple of 32 (interleave 32B): pad so that neighbours in "
       "dimension 1 are 4128 bytes apart",
       map.stride_bytes[0] = 4128);
  RULE(map.stride_bytes[1] = 1099511627776,
       "stride_bytes[1] = 1099511627776 is not below 2^40: make several maps, each for a part of "
       "the tensor, with smaller strides",
       map.stride_bytes[1] = 1099511627760);
}

static void box_rules(void) {
  RULE(map.box[1] = 0,
       "box[1] = 0 is not 1 to 256: set box[1] to the elements that one copy takes in that "
       "dimension",
       map.box[1] = 1);
  RULE(map.box[1] = 512, "box[1] = 512 is not 1 to 256: use 256 or less, and 2 copies",
       map.box[1] = 256);
  RULE(map.box[0] = 30,
       "box[0] = 30 makes rows of 120 bytes, not a multiple of 16: make it a multiple of 4 "
       "elements, for example 32",
       map.box[0] = 32);
  // Undocumented: with an interleave too.
  RULE(map.box[0] = 5;
       map.interleave = CU_TENSOR_MAP_INTERLEAVE_16B,
       "box[0] = 5 makes rows of 20 bytes, not a multiple of 16: make it a multiple of 4 elements, "
       "for example 8",
       map.box[0] = 8);
  RULE(map.box[0] = 64,
       "swizzle = 128B spans 128 bytes, but box[0] = 64 makes rows of 256 bytes: make box[0] 32 "
       "and copy 2 boxes side by side",
       map.box[0] = 32);
  RULE(map.swizzle = CU_TENSOR_MAP_SWIZZLE_32B,
       "swizzle = 32B spans 32 bytes, but box[0] = 32 makes rows of 128 bytes: make box[0] 8 and "
       "copy 4 boxes side by side, or use a wider swizzle",
       map.swizzle = CU_TENSOR_MAP_SWIZZLE_128B);
  RULE(map.box[1] = 256;
       map.box[2] = 8,
       "box of 262144 bytes is more than the 233472 of shared memory (228 KiB): make box[1] at "
       "most 228 instead of 256",
       map.box[1] = 228);
  RULE(map.box[1] = 256; map.box[2] = 16;
       map.element_stride[1] = 2,
       "box of 262144 bytes is more than the 233472 of shared memory (228 KiB): make box[1] at "
       "most 228 instead of 256",
       map.box[1] = 228);
  RULE(map.dimensions = 5; map.size[3] = map.size[4] = 16;
       map.box[1] = map.box[2] = map.box[3] = 16;
       map.box[4] = 15,
       "box of 7864320 bytes is more than the 233472 of shared memory (228 KiB): make several of "
       "its dimensions smaller, 34 times in all",
       map.box[3] = map.box[4] = 2);
  RULE(map.element_stride[1] = 9,
       "element_stride[1] = 9 is not 1 to 8: use 1 to take every element, or a larger stride_bytes "
       "to skip more than 7 of them",
       map.element_stride[1] = 8);
  RULE(map = tensor_map_resolved(&map);
       map.element_stride[0] = 0,
       "element_stride[0] = 0 is not 1 to 8: use 1 to take every element",
       map.element_stride[0] = 1);
}

static void mode_rules(void) {
  RULE(map.interleave = (CUtensorMapInterleave)3,
       "interleave = 3 is not a CUtensorMapInterleave: use 0 (NONE), 1 (16B) or 2 (32B)",
       map.interleave = CU_TENSOR_MAP_INTERLEAVE_NONE);
  RULE(map.interleave = CU_TENSOR_MAP_INTERLEAVE_16B;
       map.dimensions = 2,
       "interleave = 16B needs 3 dimensions or more, not 2: use CU_TENSOR_MAP_INTERLEAVE_NONE, or "
       "add dimensions of size 1",
       map.interleave = CU_TENSOR_MAP_INTERLEAVE_NONE);
  RULE(map.swizzle = (CUtensorMapSwizzle)7,
       "swizzle = 7 is not a CUtensorMapSwizzle: use 0 (NONE), 1 (32B), 2 (64B) or 3 (128B)",
       map.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE);
  RULE(map.swizzle = (CUtensorMapSwizzle)4,
       "swizzle = 128B_ATOM_32B is refused by compute capability 9.0: use "
       "CU_TENSOR_MAP_SWIZZLE_128B",
       map.swizzle = CU_TENSOR_MAP_SWIZZLE_128B);
  RULE(map.l2_promotion = (CUtensorMapL2promotion)4,
       "l2_promotion = 4 is not a CUtensorMapL2promotion: use 0 (NONE), 1 (L2_64B), 2 (L2_128B) or "
       "3 (L2_256B)",
       map.l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  RULE(map.fill = (CUtensorMapFloatOOBfill)2,
       "fill = 2 is not a CUtensorMapFloatOOBfill: use 0 (NONE: zeros) or 1 (NAN_REQUEST_ZERO_FMA)",
       map.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
  RULE(map.type = CU_TENSOR_MAP_DATA_TYPE_INT32;
       map.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
       "fill = NAN_REQUEST_ZERO_FMA needs a floating-point type, not INT32: use "
       "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, which fills with zeros",
       map.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static void im2col_rules(void) {
  TensorMapIm2col legal = legal_im2col();
  check_that(tensor_map_explain_im2col(&legal, NULL, 0) == 0, "the legal im2col map is refused");
  IM2COL_RULE(map.dimensions = 2,
              "dimensions = 2 is not 3 to 5: an im2col tensor has channels, one to three spatial "
              "dimensions, and images");
  IM2COL_RULE(
      map.lower_corner[1] = -129,
      "lower_corner[1] = -129 is not -128 to 127, the range with 4 dimensions: use a smaller "
      "offset");
  IM2COL_RULE(
      map.upper_corner[0] = 128,
      "upper_corner[0] = 128 is not -128 to 127, the range with 4 dimensions: use a smaller "
      "offset");
  IM2COL_RULE(map.upper_corner[0] = -57,
              "upper_corner[0] = -57 and lower_corner[0] = -1 leave nothing of size[1] = 56: the "
              "bounding box runs from lower_corner to size + upper_corner, so raise upper_corner "
              "or lower lower_corner");
  IM2COL_RULE(map.channels_per_pixel = 264;
              map.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
              "channels_per_pixel = 264 is not 1 to 256: copy the channels in parts");
  IM2COL_RULE(map.channels_per_pixel = 60,
              "channels_per_pixel = 60 makes rows of 120 bytes, not a multiple of 16: make it a "
              "multiple of 8 elements, for example 64");
  IM2COL_RULE(map.channels_per_pixel = 128,
              "swizzle = 128B spans 128 bytes, but channels_per_pixel = 128 makes rows of 256 "
              "bytes: make channels_per_pixel 64 and copy 2 boxes side by side");
  IM2COL_RULE(map.pixels_per_column = 0,
              "pixels_per_column = 0 is not 1 to 1024: copy the pixels in parts");
  IM2COL_RULE(map.pixels_per_column = 1025,
              "pixels_per_column = 1025 is not 1 to 1024: copy the pixels in parts");
  IM2COL_RULE(map.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE; map.channels_per_pixel = 256;
              map.pixels_per_column = 512,
              "a copy of 262144 bytes is more than the 233472 of shared memory (228 KiB): make "
              "pixels_per_column at most 456 instead of 512");
  IM2COL_RULE(map.stride_bytes[0] = 136; map.stride_bytes[1] = 8192;
              map.stride_bytes[2] = 16 << 20,
              "stride_bytes[0] = 136 is not a multiple of 16: pad each row to 72 elements (144 "
              "bytes)");
}

static void several_rules(void) {
  TensorMap map = legal_map();
  map.address = (void *)0x7f0000000004;
  map.size[2] = 0;
  map.box[1] = 300;
  map.fill = (CUtensorMapFloatOOBfill)5;
  char text[4096], small[64];
  int count = tensor_map_explain(&map, text, sizeof text), lines = 0;
  for (const char *c = text; *c != 0; ++c) lines += *c == '\n';
  check_that(count == 4 && lines == 4, "4 rules broken: got %d in %d lines: %s", count, lines,
             text);
  count = tensor_map_explain(&map, small, sizeof small);
  check_that(count == 4 && strlen(small) == 63 && memcmp(small, text, 63) == 0,
             "a small buffer: got %d, '%s'", count, small);
  check_that(tensor_map_explain(&map, NULL, 0) == 4, "no buffer at all");

  // Sizes whose packed strides overflow 64 bits.
  map = legal_map();
  map.dimensions = 5;
  for (int i = 0; i < 5; ++i) map.size[i] = 1ull << 32, map.box[i] = i > 2 ? 1 : map.box[i];
  check_that(tensor_map_explain(&map, text, sizeof text) >= 1 && strstr(text, "below 2^40") != NULL,
             "overflowing strides: %s", text);
}

// A stride of zero repeats one row forever: legal, but only when it is intended.
static void zero_strides(void) {
  TensorMap map = legal_map(), back;
  uint64_t words[16];
  map.zeros_are_literal = true;
  for (int i = 0; i < 3; ++i) map.element_stride[i] = 1;
  expect_legal(&map, "literal zero strides");
  check_that(tensor_map_pack(&map, words) && tensor_map_unpack(words, &back) &&
                 back.stride_bytes[0] == 0 && back.stride_bytes[1] == 0,
             "literal zero strides do not survive packing");
  map.zeros_are_literal = false;
  check_that(tensor_map_pack(&map, words) && tensor_map_unpack(words, &back) &&
                 back.stride_bytes[0] == 4096 && back.stride_bytes[1] == 4096 * 512,
             "left-out strides are not the packed ones");
  map.stride_bytes[0] = 4112;
  check_that(tensor_map_pack(&map, words) && tensor_map_unpack(words, &back) &&
                 back.stride_bytes[0] == 4112 && back.stride_bytes[1] == 4112 * 512,
             "a left-out stride is not packed onto the one below it");
}

static void byte_counts(void) {
  TensorMap map = legal_map();
  check_that(tensor_map_copy_bytes(&map) == 16384, "copy bytes: %zu", tensor_map_copy_bytes(&map));
  check_that(tensor_map_footprint_bytes(&map) == 16384, "footprint: %zu",
             tensor_map_footprint_bytes(&map));
  check_that(tensor_map_alignment(&map) == 1024, "alignment: %zu", tensor_map_alignment(&map));
  map.box[0] = 4;  // rows of 16 bytes, 128 apart
  map.element_stride[0] = 5;
  map.element_stride[1] = 3;  // ceil(64 / 3) = 22 rows of each 64
  check_that(tensor_map_copy_bytes(&map) == 16 * 22 * 2, "strided, narrow: %zu bytes",
             tensor_map_copy_bytes(&map));
  check_that(tensor_map_footprint_bytes(&map) == 128 * 22 * 2, "strided, narrow: footprint %zu",
             tensor_map_footprint_bytes(&map));
  map.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  check_that(tensor_map_footprint_bytes(&map) == 16 * 22 * 2 && tensor_map_alignment(&map) == 128,
             "without swizzle: footprint %zu, alignment %zu", tensor_map_footprint_bytes(&map),
             tensor_map_alignment(&map));
}

static void unpacking_refuses(void) {
  TensorMap map = legal_map(), back;
  TensorMapIm2col im2col = legal_im2col(), im2col_back;
  uint64_t words[16], im2col_words[16];
  check_that(tensor_map_pack(&map, words), "the legal map does not pack");
  check_that(tensor_map_pack_im2col(&im2col, im2col_words), "the legal im2col map does not pack");
  check_that(!tensor_map_unpack(im2col_words, &back), "an im2col map unpacks as a tiled one");
  check_that(!tensor_map_unpack_im2col(words, &im2col_back), "a tiled map unpacks as im2col");
  uint64_t noise[16];
  memset(noise, 0xff, sizeof noise);
  check_that(!tensor_map_unpack(noise, &back), "all ones unpack as a tiled map");
  check_that(!tensor_map_unpack_im2col(noise, &im2col_back), "all ones unpack as an im2col map");
  words[1] |= 7ull << 4;  // 8 dimensions
  check_that(!tensor_map_unpack(words, &back), "a map of 8 dimensions unpacks");
}

int main(void) {
  tensor_rules();
  stride_rules();
  box_rules();
  mode_rules();
  im2col_rules();
  several_rules();
  zero_strides();
  byte_counts();
  unpacking_refuses();
  printf("%s rules: each rule's message, its fix, byte counts\n", failures == 0 ? "PASS" : "FAIL");
  return failures == 0 ? 0 : 1;
}
