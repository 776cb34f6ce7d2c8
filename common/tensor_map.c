/* tensor_map.c: the 128 bytes of a tensor map, written and read without a driver, and what a copy
 * through a map moves. The rules that a map must keep are in tensor_map_explain.c.
 *
 * The bytes as sixteen 64-bit words, read off 34,000 maps of the driver of an H200 and checked on
 * five million more. Sizes, boxes and element strides are stored minus one, strides divided by 16.
 *
 *   word 0   address
 *   word 1   bit 0 im2col; 4..6 dimensions - 1; 7..10 type; 11,12 interleave; 13,14 swizzle; 15 fill;
 *            16 round to TF32; 17,18 L2 promotion; 32..63 stride 0, low 32 bits
 *   word 2   0..31 stride 1; 32..63 stride 2, low 32 bits
 *   word 3   0..31 stride 3, low 32 bits; 32..47 the high 4 bits of each of the four strides
 *   word 4   size 0; size 1
 *   word 5   size 2; size 3
 *   word 6   0..31 size 4; 32..46 element strides, 3 bits each; 56..63 box 0
 *   word 7   0..31 box 1 to box 4, 8 bits each
 *            (im2col: 0..15 lower corners, 16..31 upper corners, 32..41 pixels per column)
 *   word 8   bytes of the box as the driver counts them
 *   word 9   alignment of the swizzle pattern: 16, 256, 512 or 1024 */
#include "tensor_map.h"

#include <string.h>

static uint64_t divide_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

/* The constants of cuda.h by value. hardware_type is the number stored in the map. */
static const struct {
  const char *name;
  unsigned char bytes, hardware_type;
  bool is_float, rounds_to_tf32;
} TYPES[] = {{"UINT8", 1, 0, false, false},         {"UINT16", 2, 1, false, false},
             {"UINT32", 4, 2, false, false},        {"INT32", 4, 3, false, false},
             {"UINT64", 8, 4, false, false},        {"INT64", 8, 5, false, false},
             {"FLOAT16", 2, 6, true, false},        {"FLOAT32", 4, 7, true, false},
             {"FLOAT64", 8, 9, true, false},        {"BFLOAT16", 2, 10, true, false},
             {"FLOAT32_FTZ", 4, 8, true, false},    {"TFLOAT32", 4, 7, true, true},
             {"TFLOAT32_FTZ", 4, 8, true, true},    {"16U4_ALIGN8B", 0, 0, false, false},
             {"16U4_ALIGN16B", 0, 0, false, false}, {"16U6_ALIGN16B", 0, 0, false, false}};
static const char *const INTERLEAVES[] = {"NONE", "16B", "32B"};
static const char *const SWIZZLES[] = {
    "NONE", "32B", "64B", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B"};
static const char *const L2_PROMOTIONS[] = {"NONE", "L2_64B", "L2_128B", "L2_256B"};
static const char *const FILLS[] = {"NONE", "NAN_REQUEST_ZERO_FMA"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NAME_OF(array, value) ((unsigned)(value) < COUNT(array) ? (array)[(unsigned)(value)] : NULL)

const char *tensor_map_type_name(CUtensorMapDataType type) {
  return (unsigned)type < COUNT(TYPES) ? TYPES[(unsigned)type].name : NULL;
}

size_t tensor_map_element_bytes(CUtensorMapDataType type) {
  return (unsigned)type < COUNT(TYPES) ? TYPES[(unsigned)type].bytes : 0;
}

bool tensor_map_type_is_float(CUtensorMapDataType type) {
  return (unsigned)type < COUNT(TYPES) && TYPES[(unsigned)type].is_float;
}

const char *tensor_map_interleave_name(CUtensorMapInterleave interleave) {
  return NAME_OF(INTERLEAVES, interleave);
}

const char *tensor_map_swizzle_name(CUtensorMapSwizzle swizzle) {
  return NAME_OF(SWIZZLES, swizzle);
}

const char *tensor_map_l2_promotion_name(CUtensorMapL2promotion promotion) {
  return NAME_OF(L2_PROMOTIONS, promotion);
}

const char *tensor_map_fill_name(CUtensorMapFloatOOBfill fill) { return NAME_OF(FILLS, fill); }

/* What a coordinate of dimension 0 counts: elements, or the chunks of an interleaved layout. */
static uint64_t unit_bytes(const TensorMap *map) {
  if (map->interleave == CU_TENSOR_MAP_INTERLEAVE_16B) return 16;
  if (map->interleave == CU_TENSOR_MAP_INTERLEAVE_32B) return 32;
  return tensor_map_element_bytes(map->type);
}

TensorMap tensor_map_resolved(const TensorMap *given) {
  TensorMap map = *given;
  if (given->zeros_are_literal) return map;
  map.zeros_are_literal = true;
  uint64_t below = unit_bytes(&map); /* bytes between neighbours, one dimension down */
  for (int i = 0; i < map.dimensions && i < 5; ++i) {
    if (map.element_stride[i] == 0) map.element_stride[i] = 1;
    if (i == 4) break;
    if (map.stride_bytes[i] == 0 && i + 1 < map.dimensions &&
        __builtin_mul_overflow(below, map.size[i], &map.stride_bytes[i])) {
      map.stride_bytes[i] = UINT64_MAX; /* explained as too large */
    }
    below = map.stride_bytes[i];
  }
  return map;
}

/* Every field lies within one word. Bits are counted from bit 0 of word 0. */
static void put(uint64_t words[16], int bit, int width, uint64_t value) {
  words[bit / 64] |= (value & (~0ull >> (64 - width))) << (bit % 64);
}

static uint64_t get(const uint64_t words[16], int bit, int width) {
  return words[bit / 64] >> (bit % 64) & (~0ull >> (64 - width));
}

static int64_t get_signed(const uint64_t words[16], int bit, int width) {
  uint64_t sign = 1ull << (width - 1);
  return (int64_t)((get(words, bit, width) ^ sign) - sign);
}

enum {
  ADDRESS = 0,
  IM2COL = 64,
  RANK = 64 + 4,
  TYPE = 64 + 7,
  INTERLEAVE = 64 + 11,
  SWIZZLE = 64 + 13,
  FILL = 64 + 15,
  ROUND_TO_TF32 = 64 + 16,
  L2_PROMOTION = 64 + 17,
  STRIDE_LOW = 64 + 32,         /* + 32 i */
  STRIDE_HIGH = 3 * 64 + 32,    /* + 4 i */
  SIZE = 4 * 64,                /* + 32 i */
  ELEMENT_STRIDE = 6 * 64 + 32, /* + 3 i */
  BOX = 6 * 64 + 56,            /* + 8 i */
  LOWER_CORNERS = 7 * 64,
  UPPER_CORNERS = 7 * 64 + 16,
  PIXELS_PER_COLUMN = 7 * 64 + 32,
  BOX_BYTES = 8 * 64,
  ALIGNMENT = 9 * 64
};

/* The bits of words 1 to 7 that are zero in every map. */
static const uint64_t UNUSED_WORD_1 = 0xfff8000eull;
static const uint64_t UNUSED_WORD_3 = 0xffff000000000000ull;
static const uint64_t UNUSED_WORD_6 = 0x00ff800000000000ull;
static const uint64_t UNUSED_WORD_7_TILED = 0xffffffff00000000ull;
static const uint64_t UNUSED_WORD_7_IM2COL = 0xfffffc0000000000ull;

/* The part common to tiled and im2col maps: all words except 7 and 8. */
static void put_tensor(uint64_t words[16], const TensorMap *map) {
  memset(words, 0, 16 * sizeof words[0]);
  put(words, ADDRESS, 64, (uint64_t)(uintptr_t)map->address);
  put(words, RANK, 3, (uint64_t)map->dimensions - 1);
  put(words, TYPE, 4, TYPES[map->type].hardware_type);
  put(words, INTERLEAVE, 2, map->interleave);
  put(words, SWIZZLE, 2, map->swizzle);
  put(words, FILL, 1, map->fill);
  put(words, ROUND_TO_TF32, 1, TYPES[map->type].rounds_to_tf32);
  put(words, L2_PROMOTION, 2, map->l2_promotion);
  for (int i = 0; i < map->dimensions - 1; ++i) {
    put(words, STRIDE_LOW + 32 * i, 32, map->stride_bytes[i] >> 4);
    put(words, STRIDE_HIGH + 4 * i, 4, map->stride_bytes[i] >> 36);
  }
  for (int i = 0; i < map->dimensions; ++i) {
    put(words, SIZE + 32 * i, 32, map->size[i] - 1);
    put(words, ELEMENT_STRIDE + 3 * i, 3, map->element_stride[i] - 1);
  }
  put(words, BOX, 8, map->box[0] - 1);
  put(words, ALIGNMENT, 32, map->swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? 16 : 128u << map->swizzle);
}

static bool get_tensor(const uint64_t words[16], TensorMap *map) {
  if ((words[1] & UNUSED_WORD_1) != 0 || (words[3] & UNUSED_WORD_3) != 0 ||
      (words[6] & UNUSED_WORD_6) != 0) {
    return false;
  }
  memset(map, 0, sizeof *map);
  map->dimensions = (int)get(words, RANK, 3) + 1;
  map->interleave = (CUtensorMapInterleave)get(words, INTERLEAVE, 2);
  size_t type = 0;
  while (type < COUNT(TYPES) &&
         (TYPES[type].bytes == 0 || TYPES[type].hardware_type != get(words, TYPE, 4) ||
          TYPES[type].rounds_to_tf32 != (get(words, ROUND_TO_TF32, 1) != 0)))
    ++type;
  if (map->dimensions > 5 || type == COUNT(TYPES) ||
      tensor_map_interleave_name(map->interleave) == NULL)
    return false;
  map->type = (CUtensorMapDataType)type;
  map->address = (void *)(uintptr_t)words[0];
  map->swizzle = (CUtensorMapSwizzle)get(words, SWIZZLE, 2);
  map->fill = (CUtensorMapFloatOOBfill)get(words, FILL, 1);
  map->l2_promotion = (CUtensorMapL2promotion)get(words, L2_PROMOTION, 2);
  for (int i = 0; i < map->dimensions - 1; ++i) {
    map->stride_bytes[i] =
        get(words, STRIDE_LOW + 32 * i, 32) << 4 | get(words, STRIDE_HIGH + 4 * i, 4) << 36;
  }
  for (int i = 0; i < map->dimensions; ++i) {
    map->size[i] = get(words, SIZE + 32 * i, 32) + 1;
    map->element_stride[i] = (uint32_t)get(words, ELEMENT_STRIDE + 3 * i, 3) + 1;
  }
  map->box[0] = (uint32_t)get(words, BOX, 8) + 1;
  map->zeros_are_literal = true;
  return true;
}

bool tensor_map_pack(const TensorMap *given, uint64_t words[16]) {
  if (tensor_map_explain(given, NULL, 0) != 0) return false;
  const TensorMap map = tensor_map_resolved(given);
  put_tensor(words, &map);
  /* The driver's count, which differs from what a copy moves: tensor_map_explain.c shows how. */
  uint64_t box_bytes = tensor_map_element_bytes(map.type);
  for (int i = 0; i < map.dimensions; ++i) {
    if (i > 0) put(words, BOX + 8 * i, 8, map.box[i] - 1);
    box_bytes *= map.box[i] / map.element_stride[i];
  }
  put(words, BOX_BYTES, 32, box_bytes);
  return true;
}

bool tensor_map_unpack(const uint64_t words[16], TensorMap *map) {
  if (get(words, IM2COL, 1) != 0 || (words[7] & UNUSED_WORD_7_TILED) != 0) return false;
  if (!get_tensor(words, map)) return false;
  for (int i = 1; i < map->dimensions; ++i) map->box[i] = (uint32_t)get(words, BOX + 8 * i, 8) + 1;
  return true;
}

/* Each half word holds one, two or three corners. */
static int corner_bits(int dimensions) { return dimensions == 3 ? 16 : dimensions == 4 ? 8 : 5; }

bool tensor_map_pack_im2col(const TensorMapIm2col *given, uint64_t words[16]) {
  if (tensor_map_explain_im2col(given, NULL, 0) != 0) return false;
  TensorMap tensor = {.type = given->type,
                      .dimensions = given->dimensions,
                      .address = given->address,
                      .box = {given->channels_per_pixel},
                      .interleave = given->interleave,
                      .swizzle = given->swizzle,
                      .l2_promotion = given->l2_promotion,
                      .fill = given->fill,
                      .zeros_are_literal = given->zeros_are_literal};
  memcpy(tensor.size, given->size, sizeof tensor.size);
  memcpy(tensor.stride_bytes, given->stride_bytes, sizeof tensor.stride_bytes);
  memcpy(tensor.element_stride, given->element_stride, sizeof tensor.element_stride);
  tensor = tensor_map_resolved(&tensor);
  put_tensor(words, &tensor);
  put(words, IM2COL, 1, 1);
  int bits = corner_bits(given->dimensions);
  for (int i = 0; i < given->dimensions - 2; ++i) {
    put(words, LOWER_CORNERS + bits * i, bits, (uint64_t)(int64_t)given->lower_corner[i]);
    put(words, UPPER_CORNERS + bits * i, bits, (uint64_t)(int64_t)given->upper_corner[i]);
  }
  put(words, PIXELS_PER_COLUMN, 10, given->pixels_per_column - 1);
  put(words, BOX_BYTES, 32,
      (uint64_t)given->channels_per_pixel * given->pixels_per_column *
          tensor_map_element_bytes(given->type));
  return true;
}

bool tensor_map_unpack_im2col(const uint64_t words[16], TensorMapIm2col *map) {
  TensorMap tensor;
  if (get(words, IM2COL, 1) != 1 || (words[7] & UNUSED_WORD_7_IM2COL) != 0) return false;
  if (!get_tensor(words, &tensor) || tensor.dimensions < 3) return false;
  memset(map, 0, sizeof *map);
  map->type = tensor.type;
  map->dimensions = tensor.dimensions;
  map->address = tensor.address;
  memcpy(map->size, tensor.size, sizeof map->size);
  memcpy(map->stride_bytes, tensor.stride_bytes, sizeof map->stride_bytes);
  memcpy(map->element_stride, tensor.element_stride, sizeof map->element_stride);
  map->channels_per_pixel = tensor.box[0];
  map->pixels_per_column = (uint32_t)get(words, PIXELS_PER_COLUMN, 10) + 1;
  int bits = corner_bits(map->dimensions);
  for (int i = 0; i < map->dimensions - 2; ++i) {
    map->lower_corner[i] = (int)get_signed(words, LOWER_CORNERS + bits * i, bits);
    map->upper_corner[i] = (int)get_signed(words, UPPER_CORNERS + bits * i, bits);
  }
  map->interleave = tensor.interleave;
  map->swizzle = tensor.swizzle;
  map->l2_promotion = tensor.l2_promotion;
  map->fill = tensor.fill;
  map->zeros_are_literal = true;
  return true;
}

/* How many arrive in dimension i. Without an interleave the innermost element stride has no effect.
 * With one the second-to-last dimension counts slices of channels, and a copy takes one slice,
 * whatever the box says. */
static uint64_t arriving(const TensorMap *map, int i) {
  bool interleaved = map->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE;
  if (i == 0 && !interleaved) return map->box[0];
  if (i == map->dimensions - 2 && interleaved) return 1;
  return divide_up(map->box[i], map->element_stride[i] == 0 ? 1 : map->element_stride[i]);
}

/* How much of dimension i one copy covers, the elements that it steps over included. */
static uint64_t covered(const TensorMap *map, int i) {
  bool slice = i == map->dimensions - 2 && map->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE;
  return slice ? 1 : map->box[i];
}

static uint64_t rows_of_box(const TensorMap *map) {
  uint64_t rows = 1;
  for (int i = 1; i < map->dimensions && i < 5; ++i) rows *= arriving(map, i);
  return rows;
}

static uint64_t row_bytes(const TensorMap *map) { return arriving(map, 0) * unit_bytes(map); }

/* The pattern permutes 16-byte chunks within a span of this many bytes; 0 without a swizzle, and
 * for the modes that this chip refuses. */
static uint64_t swizzle_span(CUtensorMapSwizzle swizzle) {
  bool known = swizzle >= CU_TENSOR_MAP_SWIZZLE_32B && swizzle <= CU_TENSOR_MAP_SWIZZLE_128B;
  return known ? 16ull << swizzle : 0;
}

size_t tensor_map_copy_bytes(const TensorMap *map) { return row_bytes(map) * rows_of_box(map); }

/* Rows narrower than the swizzle's span lie a whole span apart; interleaved ones do not. */
static uint64_t row_pitch(const TensorMap *map) {
  uint64_t span = swizzle_span(map->swizzle), bytes = row_bytes(map);
  return map->interleave == CU_TENSOR_MAP_INTERLEAVE_NONE && bytes < span ? span : bytes;
}

size_t tensor_map_footprint_bytes(const TensorMap *map) {
  uint64_t span = swizzle_span(map->swizzle), bytes = row_pitch(map) * rows_of_box(map);
  return span == 0 ? bytes : divide_up(bytes, span) * span;
}

size_t tensor_map_alignment(const TensorMap *map) {
  uint64_t span = swizzle_span(map->swizzle);
  return span == 0 ? 128 : 8 * span;
}

static void print_product(FILE *out, const uint64_t *numbers, int count) {
  for (int i = 0; i < count; ++i)
    fprintf(out, "%s%llu", i > 0 ? " x " : "", (unsigned long long)numbers[i]);
}

/* A sketch of the two innermost dimensions, not to scale: tensor and box begin in the same corner, and
 * either may be the larger one in either dimension. */
enum { SKETCH_ROWS = 5, SKETCH_COLUMNS = 64, SHORT = 26, LONG = 60, LOW = 2, HIGH = 4 };
typedef char Sketch[SKETCH_ROWS][SKETCH_COLUMNS];

static void sketch_rectangle(Sketch sketch, int right, int bottom) {
  for (int column = 0; column <= right; ++column) {
    for (int row = 0; row <= bottom; row += bottom)
      if (sketch[row][column] != '+') sketch[row][column] = '-';
  }
  for (int row = 0; row <= bottom; ++row) {
    for (int column = 0; column <= right; column += right)
      if (sketch[row][column] != '+') sketch[row][column] = row % bottom == 0 ? '+' : '|';
  }
}

/* In the part of a rectangle that the other one does not cover, if there is one. */
static void sketch_label(Sketch sketch, const char *what, uint64_t width, uint64_t height,
                         bool wider, bool taller) {
  char label[SKETCH_COLUMNS];
  int length = snprintf(label, sizeof label, "%s %llu x %llu", what, (unsigned long long)width,
                        (unsigned long long)height);
  memcpy(&sketch[taller && !wider ? 3 : 1][wider ? SHORT + 2 : 2], label, (size_t)length);
}

static void print_sketch(FILE *out, const TensorMap *map) {
  uint64_t rows = map->dimensions > 1 ? map->size[1] : 1,
           box_rows = map->dimensions > 1 ? map->box[1] : 1;
  bool tensor_wider = map->size[0] > map->box[0], box_wider = map->size[0] < map->box[0];
  bool tensor_taller = rows > box_rows, box_taller = rows < box_rows;
  bool equal = !tensor_wider && !box_wider && !tensor_taller && !box_taller;
  Sketch sketch;
  memset(sketch, ' ', sizeof sketch);
  sketch_rectangle(sketch, box_wider ? SHORT : LONG, box_taller ? LOW : HIGH);
  sketch_rectangle(sketch, tensor_wider ? SHORT : LONG, tensor_taller ? LOW : HIGH);
  sketch_label(sketch, "tensor", map->size[0], rows, tensor_wider, tensor_taller || equal);
  sketch_label(sketch, "box", map->box[0], box_rows, box_wider, box_taller);
  for (int row = 0; row < SKETCH_ROWS; ++row) {
    int end = SKETCH_COLUMNS;
    while (end > 0 && sketch[row][end - 1] == ' ') --end;
    fprintf(out, "  %.*s\n", end, sketch[row]);
  }
}

static void print_swizzle(FILE *out, const TensorMap *map) {
  uint64_t span = swizzle_span(map->swizzle);
  if (span == 0) {
    fprintf(out,
            map->swizzle == CU_TENSOR_MAP_SWIZZLE_NONE
                ? "swizzle   none: chunks lie in order\n"
                : "swizzle   %u, a mode that this chip does not have\n",
            (unsigned)map->swizzle);
    return;
  }
  unsigned chunks = (unsigned)(span / 16), rows_per_line = 128 / (unsigned)span;
  fprintf(out,
          "swizzle   %s: each row of shared memory holds its %u chunks of 16 bytes in this order;\n"
          "          the pattern restarts at every multiple of %u bytes\n",
          tensor_map_swizzle_name(map->swizzle), chunks, (unsigned)tensor_map_alignment(map));
  for (unsigned row = 0; row < chunks * rows_per_line; ++row) {
    fprintf(out, "            row %2u ", row);
    for (unsigned chunk = 0; chunk < chunks; ++chunk)
      fprintf(out, " %u", chunk ^ (row / rows_per_line));
    fputc('\n', out);
  }
}

static void print_strides(FILE *out, const TensorMap *map) {
  uint64_t below = unit_bytes(map);
  for (int i = 0; i < map->dimensions - 1; ++i) {
    unsigned long long stride = map->stride_bytes[i], dense = below * map->size[i];
    fprintf(out, "stride    %llu bytes between neighbours in dimension %d", stride, i + 1);
    if (stride == dense) fprintf(out, ", packed\n");
    if (stride > dense) fprintf(out, ", the last %llu unused\n", stride - dense);
    if (stride == 0) fprintf(out, ": the same data again and again\n");
    if (stride > 0 && stride < dense) fprintf(out, ": they overlap\n");
    below = stride;
  }
}

static void print_box(FILE *out, const TensorMap *map) {
  uint64_t box[5], arrive[5];
  bool strided = false;
  for (int i = 0; i < map->dimensions; ++i) {
    box[i] = map->box[i];
    arrive[i] = arriving(map, i);
    strided = strided || arrive[i] != box[i];
  }
  fprintf(out, "box       ");
  print_product(out, box, map->dimensions);
  if (strided) {
    fprintf(out, ", of which ");
    print_product(out, arrive, map->dimensions);
    fprintf(out, " arrive (element strides");
    for (int i = 0; i < map->dimensions; ++i) fprintf(out, " %u", map->element_stride[i]);
    fputc(')', out);
  }
  fprintf(out, ": %llu row%s of %llu bytes\n", (unsigned long long)rows_of_box(map),
          rows_of_box(map) == 1 ? "" : "s", (unsigned long long)row_bytes(map));
}

static void print_tiles(FILE *out, const TensorMap *map) {
  uint64_t tiles[5], tile_count = 1;
  bool exact = true;
  for (int i = 0; i < map->dimensions; ++i) {
    uint64_t taken = covered(map, i);
    tiles[i] = taken == 0 ? 0 : divide_up(map->size[i], taken);
    exact = exact && tiles[i] * taken == map->size[i];
    if (__builtin_mul_overflow(tile_count, tiles[i], &tile_count)) tile_count = UINT64_MAX;
  }
  fprintf(out, "tiles     ");
  print_product(out, tiles, map->dimensions);
  if (map->dimensions > 1) fprintf(out, " = %llu", (unsigned long long)tile_count);
  fprintf(out, " to cover the tensor, %s\n",
          exact ? "exactly" : "the last ones reaching past its end");
}

static void print_shared(FILE *out, const TensorMap *map) {
  fprintf(out, "copy      %llu bytes: the count for mbarrier.arrive.expect_tx\n",
          (unsigned long long)tensor_map_copy_bytes(map));
  fprintf(out, "shared    %llu bytes, aligned to %llu\n",
          (unsigned long long)tensor_map_footprint_bytes(map),
          (unsigned long long)tensor_map_alignment(map));
  if (row_bytes(map) < row_pitch(map)) {
    fprintf(out,
            "          more than the copy's bytes: rows lie a whole span of %llu bytes apart\n",
            (unsigned long long)swizzle_span(map->swizzle));
  }
}

static void print_modes(FILE *out, const TensorMap *map) {
  fprintf(out, "outside   the tensor reads as %s\n",
          map->fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE ? "zeros" : "NaN");
  fprintf(out, "modes     L2 promotion %s, interleave %s\n",
          map->l2_promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B ? L2_PROMOTIONS[map->l2_promotion]
                                                                  : "?",
          map->interleave <= CU_TENSOR_MAP_INTERLEAVE_32B ? INTERLEAVES[map->interleave] : "?");
  if (map->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) {
    fprintf(out,
            "          dimension 0 counts chunks of %llu bytes, not elements; dimension %d counts\n"
            "          slices of channels, of which a copy takes one\n",
            (unsigned long long)unit_bytes(map), map->dimensions - 2);
  }
}

void tensor_map_print(FILE *out, const TensorMap *given) {
  const TensorMap map = tensor_map_resolved(given);
  if (map.dimensions < 1 || map.dimensions > 5 || tensor_map_element_bytes(map.type) == 0) {
    fprintf(out, "tensor    of type %u and %d dimensions: no tensor map\n", (unsigned)map.type,
            map.dimensions);
    return;
  }
  unsigned long long element_bytes = tensor_map_element_bytes(map.type);
  fprintf(out, "tensor    ");
  print_product(out, map.size, map.dimensions);
  fprintf(out, " of %s (%llu byte%s), innermost dimension first, at 0x%llx\n",
          tensor_map_type_name(map.type), element_bytes, element_bytes == 1 ? "" : "s",
          (unsigned long long)(uintptr_t)map.address);
  print_strides(out, &map);
  print_box(out, &map);
  print_sketch(out, &map);
  print_tiles(out, &map);
  print_shared(out, &map);
  print_swizzle(out, &map);
  print_modes(out, &map);
}
