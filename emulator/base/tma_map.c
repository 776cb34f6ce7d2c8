/* tma_map.c: reads the 128 bytes of a tensor map, and walks the rows of one copy (tma_map.h).
 *
 *   word 0        address
 *   word 1        0 im2col, 3:1 not read, 6:4 dimensions - 1, 10:7 type, 12:11 interleave, 14:13 swizzle, 15 NaN fill,
 *                 16 tf32, 18:17 L2 promotion, 63:32 stride 0 / 16
 *   word 2        stride 1 / 16, stride 2 / 16
 *   word 3        stride 3 / 16; 47:32 the four strides' bits 35:32
 *   word 4 to 6   dimensions - 1, 32 bits each
 *   word 6        46:32 element strides - 1, 3 bits each; 63:56 box 0 - 1
 *   word 7        box 1 to 4 - 1, 8 bits each
 *   word 8 on     the encoder's own notes
 *
 * CuTe DSL encodes its maps itself, with bit 1 of word 1 set; an H200 takes any value of bits 3:1. im2col has the channels of a pixel in place of box 0, and in word 7 the corners of the
 * box of pixels, lower then upper, in 16 bits for each of one, 8 of two, 5 of three spatial
 * dimensions, then in 41:32 the pixels of a column - 1. */
#include "base/tma_map.h"

#include <string.h>

uint32_t tensor_type_bytes(TensorType type) {
  static const uint8_t bytes[TENSOR_TYPES] = {1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2};
  return type < TENSOR_TYPES ? bytes[type] : 1;
}

const char *tensor_type_name(TensorType type) {
  static const char *const names[TENSOR_TYPES] = {"u8",  "u16", "u32",     "s32", "u64", "s64",
                                                  "f16", "f32", "f32 ftz", "f64", "bf16"};
  return type < TENSOR_TYPES ? names[type] : "unknown";
}

enum { MOST_BYTES = 256 * 1024 };
static const char *box_problem(const TmaMap *map);

static uint32_t map_field(const uint64_t words[16], int word, int first, int bits) {
  return (uint32_t)((words[word] >> first) & ((1ull << bits) - 1));
}

static int32_t sign_extend(uint32_t value, int bits) {
  return (int32_t)(value << (32 - bits)) >> (32 - bits);
}

bool tma_map_read(const uint64_t words[16], TmaMap *map, const char **problem) {
  *map = (TmaMap){.address = words[0],
                  .dimensions = (uint8_t)(map_field(words, 1, 4, 3) + 1),
                  .type = (uint8_t)map_field(words, 1, 7, 4),
                  .interleave = (uint8_t)map_field(words, 1, 11, 2),
                  .im2col = map_field(words, 1, 0, 1),
                  .fill_nan = map_field(words, 1, 15, 1),
                  .tf32 = map_field(words, 1, 16, 1)};
  static const uint8_t spans[4] = {0, 32, 64, 128};
  map->swizzle_span = spans[map_field(words, 1, 13, 2)];
  map->converts = map->tf32;
  if (map->dimensions > 5) return *problem = "it has more than 5 dimensions", false;
  if (map->type >= TENSOR_TYPES) return *problem = "its element type is unknown", false;
  if (map->interleave > INTERLEAVE_32B) return *problem = "its interleave is unknown", false;
  map->element_bytes = (uint8_t)tensor_type_bytes((TensorType)map->type);
  static const struct {
    uint8_t word, first;
  } strides[4] = {{1, 32}, {2, 0}, {2, 32}, {3, 0}},
    dimensions[5] = {{4, 0}, {4, 32}, {5, 0}, {5, 32}, {6, 0}};
  map->unit_bytes = map->interleave ? 16 * map->interleave : map->element_bytes;
  map->stride[0] = map->unit_bytes;
  for (int i = 0; i < 5; i++) {
    map->dimension[i] = (uint64_t)map_field(words, dimensions[i].word, dimensions[i].first, 32) + 1;
    map->element_stride[i] = map_field(words, 6, 32 + 3 * i, 3) + 1;
    map->box[i] = (i == 0 ? map_field(words, 6, 56, 8) : map_field(words, 7, 8 * (i - 1), 8)) + 1;
    if (i == 4) break;
    uint64_t low = map_field(words, strides[i].word, strides[i].first, 32);
    map->stride[i + 1] = (low | (uint64_t)map_field(words, 3, 32 + 4 * i, 4) << 32) * 16;
  }
  if (map->im2col) {
    if (map->dimensions < 3) return *problem = "im2col needs 3 to 5 dimensions", false;
    int spatial = map->dimensions - 2, bits = spatial == 1 ? 16 : spatial == 2 ? 8 : 5;
    for (int i = 0; i < spatial; i++) {
      map->lower[i] = sign_extend(map_field(words, 7, bits * i, bits), bits);
      map->upper[i] = sign_extend(map_field(words, 7, 16 + bits * i, bits), bits);
    }
    map->pixels = map_field(words, 7, 32, 10) + 1;
  }
  for (int i = map->dimensions; i < 5; i++) {
    map->dimension[i] = map->box[i] = map->element_stride[i] = 1;
    map->stride[i] = 0;
  }
  *problem = box_problem(map);
  return *problem == NULL;
}

/* Positions that a copy takes in a dimension: every n-th of the box. The engine ignores the stride
 * of dimension 0, unless that dimension counts slices. Of interleaved channel slices, the
 * second-to-last dimension, it takes one. */
static uint32_t positions(const TmaMap *map, int i) {
  if (i == 0 && map->interleave == INTERLEAVE_NONE) return map->box[0];
  if (i == map->dimensions - 2 && map->interleave != INTERLEAVE_NONE) return 1;
  return (map->box[i] + map->element_stride[i] - 1) / map->element_stride[i];
}

/* A copy must fit into shared memory. Otherwise later sums could overflow. */
static const char *box_problem(const TmaMap *map) {
  uint64_t row = (uint64_t)map->box[0] * map->unit_bytes;
  if (row % 16) return "its rows in shared memory are not a multiple of 16 bytes";
  if (!map->interleave && row < map->swizzle_span) row = map->swizzle_span;
  if (map->im2col)
    return row * map->pixels > MOST_BYTES ? "its column of pixels is too large" : NULL;
  if (map->interleave) row = (uint64_t)positions(map, 0) * map->unit_bytes;
  for (int i = 1; i < map->dimensions; i++) row *= positions(map, i);
  return row > MOST_BYTES ? "its box is larger than shared memory" : NULL;
}

uint32_t tma_copy_bytes(const TmaMap *map) {
  uint32_t bytes = map->unit_bytes;
  if (map->im2col) return bytes * map->box[0] * map->pixels;
  for (int i = 0; i < map->dimensions; i++) bytes *= positions(map, i);
  return bytes;
}

/* The part of a row that begins at `first` in dimension 0 and lies inside the tensor. */
static void clip_row(const TmaWalk *walk, TmaRows *row, int64_t first) {
  int64_t begin = first < 0 ? 0 : first, end = first + walk->row_units;
  if (end > (int64_t)walk->map->dimension[0]) end = (int64_t)walk->map->dimension[0];
  if (begin >= end) return;
  row->left = (uint32_t)(begin - first) * walk->map->unit_bytes;
  row->bytes = (uint32_t)(end - begin) * walk->map->unit_bytes;
  row->global += (uint64_t)begin * walk->map->unit_bytes;
}

/* The contribution of dimensions 2 and up is the same for all rows of dimension 1. */
static void outer_begin(TmaWalk *walk) {
  const TmaMap *map = walk->map;
  walk->outer_inside = true;
  walk->outer_offset = 0;
  for (int i = 2; i < map->dimensions; i++) {
    int64_t at =
        (int64_t)walk->place->coordinate[i] + (int64_t)walk->position[i] * map->element_stride[i];
    if (at < 0 || (uint64_t)at >= map->dimension[i]) walk->outer_inside = false;
    walk->outer_offset += (uint64_t)at * map->stride[i];
  }
}

TmaWalk tma_walk(const TmaMap *map, const TmaPlace *place) {
  TmaWalk walk = {.map = map, .place = place, .rows = 1};
  /* With a strided dimension 0 (interleaved maps only), every slice is a row. */
  bool strided = map->interleave && map->element_stride[0] > 1;
  walk.first_counted = strided ? 0 : 1;
  walk.row_units = strided ? 1 : map->box[0];
  walk.row_bytes = walk.row_units * map->unit_bytes;
  walk.pitch = walk.row_bytes;
  if (!map->interleave && walk.row_bytes < map->swizzle_span) walk.pitch = map->swizzle_span;
  if (map->im2col) {
    walk.rows = map->pixels;
    for (int i = 1; i < map->dimensions; i++) walk.pixel[i] = place->coordinate[i];
    return walk;
  }
  for (int i = walk.first_counted; i < 5; i++) {
    walk.count[i] = positions(map, i);
    walk.rows *= walk.count[i];
  }
  walk.whole = (TmaRows){.global = map->address};
  clip_row(&walk, &walk.whole, place->coordinate[0]);
  outer_begin(&walk);
  return walk;
}

/* A column of pixels: through the box of pixels, w first, from image to image. */
static void im2col_row(TmaWalk *walk, TmaRows *row) {
  const TmaMap *map = walk->map;
  bool inside = true;
  for (int i = 1; i < map->dimensions; i++) {
    bool spatial = i < map->dimensions - 1;
    int64_t at =
        walk->pixel[i] + (spatial && !walk->place->no_offsets ? walk->place->offset[i - 1] : 0);
    if (at < 0 || (uint64_t)at >= map->dimension[i]) inside = false;
    row->global += (uint64_t)at * map->stride[i];
  }
  if (inside) clip_row(walk, row, walk->place->coordinate[0]);
  for (int i = 1; i < map->dimensions; i++) {
    if (i == map->dimensions - 1) {
      walk->pixel[i]++;
      break;
    }
    walk->pixel[i] += map->element_stride[i];
    if (walk->pixel[i] <= (int64_t)map->dimension[i] - 1 + map->upper[i - 1]) break;
    walk->pixel[i] = map->lower[i - 1];
  }
}

/* How many of the next `most` rows of dimension 1 lie on the same side of the tensor's edges. */
static uint32_t rows_alike(const TmaMap *map, int64_t at, uint32_t most, bool *inside) {
  int64_t step = map->element_stride[1], size = (int64_t)map->dimension[1], count = most;
  *inside = at >= 0 && at < size;
  if (at < 0) count = (-at + step - 1) / step;
  if (*inside) count = (size - 1 - at) / step + 1;
  return count < most ? (uint32_t)count : most;
}

bool tma_walk_next(TmaWalk *walk, TmaRows *rows) {
  if (walk->next >= walk->rows) return false;
  const TmaMap *map = walk->map;
  const TmaPlace *place = walk->place;
  *rows = (TmaRows){.offset = walk->next * walk->pitch, .count = 1, .global = map->address};
  if (map->im2col) {
    im2col_row(walk, rows);
    walk->next++;
    return true;
  }
  int64_t at = (int64_t)place->coordinate[1] + (int64_t)walk->position[1] * map->element_stride[1];
  bool inside, slices = walk->first_counted == 0; /* each row is one slice */
  uint32_t count = rows_alike(map, at, slices ? 1 : walk->count[1] - walk->position[1], &inside);
  if (inside && walk->outer_inside) {
    if (slices)
      clip_row(walk, rows,
               place->coordinate[0] + (int64_t)walk->position[0] * map->element_stride[0]);
    else
      rows->left = walk->whole.left, rows->bytes = walk->whole.bytes,
      rows->global = walk->whole.global;
  }
  rows->global += walk->outer_offset + (uint64_t)at * map->stride[1];
  rows->step = map->stride[1] * map->element_stride[1];
  rows->count = count;
  walk->next += count;
  walk->position[walk->first_counted] += count;
  for (int i = walk->first_counted; i < 4 && walk->position[i] == walk->count[i]; i++) {
    walk->position[i] = 0;
    walk->position[i + 1]++;
    if (i > 0) outer_begin(walk);
  }
  return true;
}

bool tma_range(const TmaMap *map, const TmaPlace *place, uint64_t *first, uint64_t *end) {
  TmaWalk walk = tma_walk(map, place);
  TmaRows rows;
  *first = UINT64_MAX;
  *end = 0;
  if (map->im2col || map->interleave) {
    while (tma_walk_next(&walk, &rows)) {
      uint64_t last = rows.global + (rows.count - 1) * rows.step;
      if (!rows.bytes) continue;
      if (rows.global < *first) *first = rows.global;
      if (last + rows.bytes > *end) *end = last + rows.bytes;
    }
    return *end != 0;
  }
  if (!walk.whole.bytes) return false;
  *first = walk.whole.global;
  *end = walk.whole.global + walk.whole.bytes;
  for (int i = 1; i < map->dimensions; i++) {
    int64_t step = map->element_stride[i], low = place->coordinate[i];
    int64_t high = low + (int64_t)(walk.count[i] - 1) * step;
    int64_t last = (int64_t)map->dimension[i] - 1;
    if (low < 0) low += (-low + step - 1) / step * step;
    if (high > last) high -= (high - last + step - 1) / step * step;
    if (low > high) return false;
    *first += (uint64_t)low * map->stride[i];
    *end += (uint64_t)high * map->stride[i];
  }
  return true;
}

/* tf32: the 13 low bits of the fraction are rounded away, to nearest, ties to even; every NaN
 * becomes one NaN (02_tma_load/descriptor, on an H200). No type flushes subnormal numbers. */
void tma_convert(const TmaMap *map, uint8_t *elements, size_t bytes) {
  if (!map->converts) return;
  for (size_t i = 0; i + 4 <= bytes; i += 4) {
    uint32_t value;
    memcpy(&value, elements + i, 4);
    bool nan = (value & 0x7fffffffu) > 0x7f800000u;
    value = nan ? 0x7fffe000u : (value + 0xfffu + (value >> 13 & 1)) & 0xffffe000u;
    memcpy(elements + i, &value, 4);
  }
}
