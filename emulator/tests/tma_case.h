/* tma_case.h: random tensor maps and copies for tma_cases.cu, the same for every machine: a case is a number. It
 * needs mix() of base/mix.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
  CASES = 2560,
  GLOBAL_BYTES = 65536, /* all that tensors live in */
  TILE_BYTES = 32768,   /* shared memory that tiles land in */
  CASE_THREADS = 128
};

typedef enum { CASE_LOAD, CASE_STORE, CASE_REDUCE } CaseKind;
typedef enum { OP_NONE, OP_ADD, OP_MIN, OP_MAX, OP_INC, OP_DEC, OP_AND, OP_OR, OP_XOR } CaseOp;

typedef struct {
  int index;
  CaseKind kind;
  CaseOp op;
  bool im2col;
  int type, dimensions, interleave, swizzle, promotion, fill; /* the driver's numbers */
  uint32_t global_offset;                                     /* of element 0 in the global bytes */
  uint64_t size[5], stride[4];
  uint32_t box[5], element_stride[5];
  int lower[3], upper[3];
  uint32_t channels, pixels;
  int32_t coordinate[5];
  uint16_t offset[3];
  uint32_t tile_offset; /* of the tile in shared memory, which is 1,024-byte aligned */
  int ctas, issuer;
  uint32_t mask; /* of the multicast; 0: none */
  uint32_t expected_bytes;
  int values; /* what numbers there are, see case_word */
  uint64_t seed;
} TmaCase;

static uint64_t case_random(uint64_t *state) { return mix(*state += 0x9e3779b97f4a7c15ull); }
static int case_range(uint64_t *state, int first, int last) {
  return first + (int)(case_random(state) % (uint64_t)(last - first + 1));
}
static bool case_chance(uint64_t *state, int percent) { return case_range(state, 0, 99) < percent; }

/* Word number `index` of global memory (which 0) or of the tile (which 1). */
static uint32_t case_word(const TmaCase *c, int which, uint32_t index) {
  uint32_t bits = (uint32_t)mix(c->seed ^ ((uint64_t)index << 8) ^ (uint64_t)which << 60);
  if (c->values == 0) return bits;
  if (c->values == 1) return bits & 0xc7ffc7ffu; /* halves and floats of neighbouring exponents */
  if (c->values == 2) return bits & 0x83ff83ffu; /* subnormal ones */
  return bits & 0x000f000fu;                     /* equal ones */
}

static uint32_t case_type_bytes(int type) {
  static const uint8_t bytes[13] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return bytes[type];
}

/* How many positions of its box a copy takes. Interleaved: dimension 0 counts slices of 16 or 32
 * bytes and heeds its stride, and of the slices of channels, the last dimension but one, it takes
 * one. */
static uint32_t case_positions(const TmaCase *c, int i) {
  if (i == 0 && c->interleave == 0) return c->box[0];
  if (i == c->dimensions - 2 && c->interleave != 0) return 1;
  return (c->box[i] + c->element_stride[i] - 1) / c->element_stride[i];
}

static int case_coordinate(uint64_t *random, int low, int high) {
  if (case_chance(random, 1)) return case_chance(random, 50) ? INT32_MAX : 100000;
  return case_range(random, low, high);
}

static void case_tile_map(TmaCase *c, uint64_t *random) {
  uint32_t bytes = case_type_bytes(c->type);
  static const uint32_t spans[4] = {256, 32, 64, 128};
  uint32_t units = spans[c->swizzle] / 16;
  uint32_t unit = 16 / bytes;
  if (c->interleave) {
    c->box[0] = unit * (uint32_t)case_range(random, 1, 2);
  } else {
    uint32_t most = 256 / unit; /* a box has at most 256 elements in a dimension */
    if (units > most) units = most;
    c->box[0] =
        unit * (uint32_t)(case_chance(random, 40) ? (int)units : case_range(random, 1, (int)units));
  }
  uint32_t row = c->box[0] * bytes;
  if (c->interleave) row = c->box[0] * 16u * (uint32_t)c->interleave;
  if (c->swizzle && row < spans[c->swizzle]) row = spans[c->swizzle];
  uint32_t capacity = TILE_BYTES - 2048;
  for (int i = 0; i < c->dimensions; i++) {
    c->element_stride[i] = case_chance(random, 20) ? (uint32_t)case_range(random, 1, 4) : 1;
    if (i == 0) continue;
    uint32_t most = capacity / row > 24 ? 24 : capacity / row;
    if (c->dimensions > 3 && most > 6) most = 6;
    c->box[i] = (uint32_t)case_range(random, 1, most ? (int)most : 1);
    row *= c->box[i];
  }
}

static void case_im2col_map(TmaCase *c, uint64_t *random) {
  uint32_t bytes = case_type_bytes(c->type), unit = 16 / bytes;
  static const uint32_t spans[4] = {128, 32, 64, 128};
  uint32_t units = spans[c->swizzle] / 16;
  uint32_t pitch = spans[c->swizzle];
  if (c->interleave) {
    c->channels = unit * (uint32_t)c->interleave;
    pitch = 32;
  } else {
    c->channels = unit * (uint32_t)case_range(random, 1, (int)units);
    if (c->channels > 256) c->channels = 256;
  }
  c->pixels = (uint32_t)case_range(
      random, 1, (TILE_BYTES - 2048) / (int)pitch > 160 ? 160 : (TILE_BYTES - 2048) / (int)pitch);
  for (int i = 0; i < c->dimensions; i++)
    c->element_stride[i] = i > 0 && i < c->dimensions - 1 && case_chance(random, 30)
                               ? (uint32_t)case_range(random, 1, 3)
                               : 1;
  for (int i = 0; i < c->dimensions - 2; i++) {
    c->lower[i] = case_range(random, -3, 2);
    c->upper[i] = case_range(random, -3, 2);
    c->offset[i] = (uint16_t)case_range(random, 0, 4);
  }
}

static void case_reduce(TmaCase *c, uint64_t *random) {
  /* Pairs that an H200 executes; types by the driver's numbers. */
  static const uint8_t pairs[][2] = {
      {OP_ADD, 2}, {OP_ADD, 3}, {OP_ADD, 4}, {OP_ADD, 6},  {OP_ADD, 9}, {OP_ADD, 7}, {OP_ADD, 10},
      {OP_MIN, 2}, {OP_MIN, 3}, {OP_MIN, 4}, {OP_MIN, 5},  {OP_MIN, 9}, {OP_MAX, 2}, {OP_MAX, 3},
      {OP_MAX, 4}, {OP_MAX, 5}, {OP_MAX, 9}, {OP_INC, 2},  {OP_DEC, 2}, {OP_AND, 2}, {OP_AND, 3},
      {OP_AND, 4}, {OP_OR, 2},  {OP_OR, 3},  {OP_OR, 4},   {OP_XOR, 2}, {OP_XOR, 3}, {OP_XOR, 4},
      {OP_ADD, 8}, {OP_MIN, 6}, {OP_MAX, 6}, {OP_ADD, 11}, {OP_ADD, 12}};
  int pair = case_range(random, 0, (int)(sizeof pairs / sizeof pairs[0]) - 1);
  c->op = (CaseOp)pairs[pair][0];
  c->type = pairs[pair][1];
}

/* Elements along the first dimension. */
static uint32_t case_reach(const TmaCase *c) { return c->im2col ? c->channels : c->box[0]; }

/* The tensor in global memory. */
static void case_tensor(TmaCase *c, uint64_t *random, uint32_t bytes) {
  c->global_offset = 32u * (uint32_t)case_range(random, 0, 16);
  uint32_t reach = case_reach(c);
  c->size[0] = (uint64_t)case_range(random, 1, (int)reach * 2 + 8);
  uint64_t step = c->size[0] * bytes;
  if (c->interleave) step = c->size[0] * 16 * (uint64_t)c->interleave;
  uint64_t align = c->interleave == 2 ? 32 : 16;
  for (int i = 1; i < c->dimensions; i++) {
    step = (step + align - 1) / align * align + align * (uint64_t)case_range(random, 0, 2);
    c->stride[i - 1] = step;
    uint64_t positions = (GLOBAL_BYTES - 1024) / step;
    int most = c->dimensions > 3 ? 6 : 40;
    if (positions < (uint64_t)most) most = (int)positions;
    c->size[i] = (uint64_t)case_range(random, 1, most ? most : 1);
    step *= c->size[i];
  }
  for (int i = 0; c->im2col && i < c->dimensions - 2; i++)
    while ((int)c->size[i + 1] + c->upper[i] - c->lower[i] < 1) c->upper[i]++;
}

static void case_coordinates(TmaCase *c, uint64_t *random, uint32_t bytes) {
  uint32_t reach = case_reach(c), unit = 16 / bytes;
  bool negative = c->kind == CASE_LOAD || case_chance(random, 2);
  for (int i = 0; i < c->dimensions; i++) {
    int high = (int)c->size[i] + 2;
    if (i == 0) {
      int most = high / (int)unit + 1;
      /* of unsigned numbers: the product wraps for the coordinates at the ends of int */
      c->coordinate[0] = (int32_t)(unit * (uint32_t)case_coordinate(
                                              random, negative ? -(int)(reach / unit) : 0, most));
      if (case_chance(random, 1)) c->coordinate[0] += 1;
    } else if (c->im2col && i < c->dimensions - 1) {
      c->coordinate[i] = case_chance(random, 85)
                             ? case_range(random, c->lower[i - 1], (int)c->size[i] + 2)
                             : case_range(random, -6, 6);
    } else {
      c->coordinate[i] = case_coordinate(random, negative ? -(int)c->box[i] : 0, high);
    }
    if (c->kind != CASE_LOAD && !negative && c->coordinate[i] < 0) c->coordinate[i] = 0;
  }
}

static void case_make(int index, TmaCase *c) {
  memset(c, 0, sizeof *c);
  c->index = index;
  c->seed = mix((uint64_t)index * 7919 + 20261121);
  uint64_t state = c->seed, *random = &state;
  static const int kinds[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2};
  c->kind = (CaseKind)kinds[index % 16];
  c->im2col = index % 16 == 7 || index % 16 == 8 || (index % 16 == 11 && index % 32 == 11);
  bool interleaved = index % 16 == 6;
  c->dimensions = case_range(random, c->im2col || interleaved ? 3 : 1, 5);
  c->type = case_range(random, 0, 12);
  c->interleave = interleaved ? case_range(random, 1, 2) : 0;
  c->swizzle = case_range(random, 0, 3);
  if (c->interleave == 1) c->swizzle = 0;
  if (c->interleave == 2) c->swizzle = case_chance(random, 70);
  c->promotion = case_range(random, 0, 3);
  c->ctas = c->issuer = 0;
  if (c->kind == CASE_REDUCE) case_reduce(c, random);
  c->values = case_range(random, 0, 3);
  bool floating = c->type >= 6;
  c->fill = floating && c->kind == CASE_LOAD && case_chance(random, 50);
  uint32_t bytes = case_type_bytes(c->type);
  if (c->im2col)
    case_im2col_map(c, random);
  else
    case_tile_map(c, random);

  case_tensor(c, random, bytes);
  case_coordinates(c, random, bytes);
  c->tile_offset = 128u * (uint32_t)case_range(random, 0, 8);
  c->ctas = c->kind == CASE_LOAD && index % 4 == 1 ? 1 << case_range(random, 1, 2) : 1;
  c->issuer = case_range(random, 0, c->ctas - 1);
  if (c->ctas > 1) c->mask = (uint32_t)case_range(random, 1, (1 << c->ctas) - 1);
  if (c->im2col) {
    c->expected_bytes = c->channels * c->pixels * bytes;
  } else {
    c->expected_bytes = c->interleave ? 16u * (uint32_t)c->interleave : bytes;
    for (int i = 0; i < c->dimensions; i++) c->expected_bytes *= case_positions(c, i);
  }
}

static uint64_t case_hash(uint64_t hash, const void *data, size_t bytes) {
  const uint8_t *at = (const uint8_t *)data;
  for (size_t i = 0; i + 8 <= bytes; i += 8) {
    uint64_t word;
    memcpy(&word, at + i, 8);
    hash = mix(hash ^ word) + 0x9e3779b97f4a7c15ull;
  }
  return hash;
}
