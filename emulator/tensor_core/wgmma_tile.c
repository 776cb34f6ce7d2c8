/* wgmma_tile.c: locates the numbers of a matrix descriptor, and computes one warp's share of the
 * product. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor_core/wgmma.h"

#include "base/fault.h"
#include "base/warp.h"

enum { WARP_ROWS = 16, MAX_COLUMNS = 256, MAX_DEPTH = 32, CHUNK = 16 };

/* ---- Modifiers ---- */

static bool columns_exist(const WgmmaForm *form) {
  const int n = form->columns;
  if (n < 8 || n > 256 || n % 8 != 0) return false;
  return form->d != RESULT_S32 || n == 8 || n == 24 || n % 16 == 0;
}

static FloatRule rule_of(const WgmmaForm *form) {
  FloatRule rule = {25, 16, form->d == RESULT_F16, false};
  if (form->a == NUMBER_TF32) rule.step = 8;
  if (number_bits(form->a) == 8) {
    rule.fraction_bits = 13;
    rule.step = 32;
    rule.short_result = true;
  }
  return rule;
}

const char *wgmma_read_form(const char *const *modifiers, int count, WgmmaForm *form) {
  memset(form, 0, sizeof *form);
  int at = 0, rows = 0;
  char rest = 0;
  if (count < 3 || strcmp(modifiers[0], "sync") != 0 || strcmp(modifiers[1], "aligned") != 0)
    return "wgmma.mma_async needs .sync.aligned and a shape";
  if (sscanf(modifiers[2], "m%dn%dk%d%c", &rows, &form->columns, &form->depth, &rest) != 3 ||
      rows != 64)
    return "the shape should look like m64n128k16";
  at = 3;
  if (at < count && strcmp(modifiers[at], "satfinite") == 0) {
    form->saturate = true;
    at++;
  }
  if (at + 3 > count) return "the three types (of D, A, B) are missing";
  if (!read_result_format(modifiers[at], &form->d)) return "the type of D is not known";
  if (!read_number_format(modifiers[at + 1], &form->a))
    return "the type of A must be f16, bf16, tf32, e4m3, e5m2, s8 or u8: others are not emulated";
  if (!read_number_format(modifiers[at + 2], &form->b)) return "the type of B is not known";
  at += 3;
  if (at < count && !form->saturate && strcmp(modifiers[at], "satfinite") == 0) {
    form->saturate = true; /* CUTLASS writes it here; ptxas takes both places */
    at++;
  }
  if (at != count) return "a modifier at the end is not known for wgmma.mma_async";

  const bool is_small_float = form->a == NUMBER_E4M3 || form->a == NUMBER_E5M2;
  const bool is_integer = form->a == NUMBER_S8 || form->a == NUMBER_U8;
  if (is_small_float ? form->b != NUMBER_E4M3 && form->b != NUMBER_E5M2
      : is_integer   ? form->b != NUMBER_S8 && form->b != NUMBER_U8
                     : form->b != form->a)
    return "this type of B does not go with A";
  const ResultFormat natural = is_integer ? RESULT_S32 : RESULT_F32;
  const bool half_allowed = form->a == NUMBER_F16 || is_small_float;
  if (form->d != natural && !(half_allowed && form->d == RESULT_F16))
    return "this type of D does not go with A and B";
  if (form->saturate && !is_integer) return ".satfinite is for 8-bit integers";
  const int bits = (int)number_bits(form->a);
  if (form->depth != 256 / bits) return "k does not fit the type";
  if (!columns_exist(form)) return "this n does not exist for the type";
  form->d_registers = form->columns / (form->d == RESULT_F16 ? 4 : 2);
  form->rule = rule_of(form);
  return NULL;
}

/* ---- Matrix descriptors ---- */

MatrixDescriptor matrix_descriptor(uint64_t bits) {
  static const uint8_t spans[4] = {16, 128, 64, 32};
  MatrixDescriptor matrix;
  matrix.start = (uint32_t)(bits & 0x3fffu) << 4;
  matrix.leading = (uint32_t)(bits >> 16 & 0x3fffu) << 4;
  matrix.stride = (uint32_t)(bits >> 32 & 0x3fffu) << 4;
  matrix.base = (uint32_t)(bits >> 49 & 7u);
  matrix.span = spans[bits >> 62];
  return matrix;
}

ChunkCount wgmma_chunks(const WgmmaForm *form, Side side) {
  const bool is_a = side == SIDE_A;
  const int across = is_a ? 64 : form->columns;
  const int each = 128 / (int)number_bits(form->a); /* numbers of a chunk */
  if (is_a ? form->a_mn_major : form->b_mn_major) return (ChunkCount){form->depth, across / each};
  return (ChunkCount){across, form->depth / each};
}

/* ---- Tiles ---- */

/* Written once, and then only read. */
static struct {
  pthread_key_t keys[MEMORY_KINDS]; /* of memory of each host thread */
  pthread_once_t once;
} memories = {.once = PTHREAD_ONCE_INIT};

static void make_keys(void) {
  for (int i = 0; i < MEMORY_KINDS; i++)
    if (pthread_key_create(&memories.keys[i], free) != 0) out_of_memory();
}

void *wgmma_thread_memory(ThreadMemory kind, size_t bytes) {
  pthread_once(&memories.once, make_keys);
  void *memory = pthread_getspecific(memories.keys[kind]);
  if (memory != NULL) return memory;
  bytes = (bytes + HOST_LINE - 1) / HOST_LINE * HOST_LINE;
  memory = need_memory(aligned_alloc(HOST_LINE, bytes));
  if (pthread_setspecific(memories.keys[kind], memory) != 0) out_of_memory();
  return memset(memory, 0, bytes);
}

/* The chunks [first_chunk, first_chunk + chunks) of the rows (or depths) from first_outer on, one
 * after the other. */
static bool gather_chunks(const WgmmaOperands *operands, const MatrixDescriptor *matrix,
                          bool mn_major, int first_outer, int outers, int first_chunk, int chunks,
                          uint8_t *bytes, OutsideChunk *outside) {
  const uint32_t limit = operands->shared_bytes - CHUNK;
  /* byte stores cannot alias a local copy, so the compiler keeps it in registers */
  const MatrixDescriptor local = *matrix;
  for (int outer = 0; outer < outers; outer++)
    for (int chunk = 0; chunk < chunks; chunk++) {
      const uint32_t offset =
          chunk_offset(&local, mn_major, first_outer + outer, first_chunk + chunk);
      if (offset > limit) {
        *outside = (OutsideChunk){matrix, offset};
        return false;
      }
      memcpy(bytes, operands->shared + offset, CHUNK);
      bytes += CHUNK;
    }
  return true;
}

static inline uint32_t number_in(const uint8_t *bytes, int index, int bits) {
  if (bits == 8) return bytes[index];
  if (bits == 16) {
    uint16_t value;
    memcpy(&value, bytes + 2 * index, 2);
    return value;
  }
  uint32_t value;
  memcpy(&value, bytes + 4 * index, 4);
  return value;
}

/* A tile ready to multiply, in the form that the type needs. */
#define TILE(count)                            \
  union {                                      \
    struct {                                   \
      _Alignas(HOST_LINE) float values[count]; \
      int16_t exponents[count];                \
    };                                         \
    int16_t integers[count];                   \
  }
typedef TILE(WARP_ROWS *MAX_DEPTH) TileOfA;
typedef TILE(MAX_DEPTH *MAX_COLUMNS) Tile;

/* The four warps of a group read the same B, and preparing it costs as much as a warp's share of
 * the product. So the last few tiles are cached with the bytes they were made from. Other
 * warpgroups use them, too. */
enum { KEPT = 8, MAX_BYTES = MAX_COLUMNS * 64 };
typedef struct {
  MatrixDescriptor matrix;
  int32_t columns, depth, format, mn_major, negate;
} TileKey;
typedef struct {
  TileKey name;
  uint64_t moment; /* the moment at which it was last verified */
  uint8_t bytes[MAX_BYTES];
  Tile tile;
} KeptTile;

/* B's numbers at depth k, the even ones of each eight columns first (wgmma_take). */
static void numbers_of_row(const WgmmaForm *form, const uint8_t *bytes, int k, uint32_t *row) {
  const int bits = (int)number_bits(form->b);
  const int step = form->b_mn_major ? 1 : form->depth; /* from column to column */
  const uint8_t *from = bytes + (form->b_mn_major ? k * form->columns : k) * (bits / 8);
#define TAKE(type)                                                                             \
  for (int first = 0; first < form->columns; first += 8, from += 8 * step * (int)sizeof(type)) \
    for (int i = 0; i < 4; i++) {                                                              \
      type even, odd;                                                                          \
      memcpy(&even, from + 2 * i * step * (int)sizeof(type), sizeof(type));                    \
      memcpy(&odd, from + (2 * i + 1) * step * (int)sizeof(type), sizeof(type));               \
      row[first + i] = even;                                                                   \
      row[first + 4 + i] = odd;                                                                \
    }
  if (bits == 8) {
    TAKE(uint8_t)
  } else if (bits == 16) {
    TAKE(uint16_t)
  } else {
    TAKE(uint32_t)
  }
#undef TAKE
}

static Tile *tile_b(const WgmmaForm *form, const WgmmaOperands *operands, OutsideChunk *outside) {
  const TileKey name = {operands->b,      form->columns,    form->depth,
                        (int32_t)form->b, form->b_mn_major, form->negate_b};
  KeptTile *tiles = wgmma_thread_memory(MEMORY_TILES, KEPT * sizeof *tiles);
  KeptTile *kept = &tiles[(operands->b.start >> 5 ^ operands->b.start >> 10) % KEPT];
  const bool known = memcmp(&kept->name, &name, sizeof name) == 0;
  if (known && operands->moment != 0 && kept->moment == operands->moment) return &kept->tile;
  uint8_t bytes[MAX_BYTES];
  const ChunkCount count = wgmma_chunks(form, SIDE_B);
  if (!gather_chunks(operands, &operands->b, form->b_mn_major, 0, count.outer, 0, count.chunks,
                     bytes, outside))
    return NULL;
  const size_t bytes_count = (size_t)(count.outer * count.chunks) * CHUNK;
  kept->moment = operands->moment;
  if (known && memcmp(kept->bytes, bytes, bytes_count) == 0) return &kept->tile;
  kept->name = name;
  memcpy(kept->bytes, bytes, bytes_count);
  Tile *tile = &kept->tile;
  const int columns = form->columns;
  uint32_t row[MAX_COLUMNS];
  for (int k = 0; k < form->depth; k++) {
    numbers_of_row(form, bytes, k, row);
    if (form->d == RESULT_S32)
      for (int n = 0; n < columns; n++)
        tile->integers[k * columns + n] = extend_integer(form->b, row[n]);
    else
      read_numbers(form->b, form->negate_b, row,
                   (FloatMatrix){.values = tile->values + k * columns,
                                 .exponents = tile->exponents + k * columns},
                   (size_t)columns);
  }
  return tile;
}

/* The warp's 16 rows of A: [row][k]. */
static bool numbers_a(const WgmmaForm *form, const WgmmaOperands *operands, int quarter,
                      uint32_t *numbers, OutsideChunk *outside) {
  const int bits = (int)number_bits(form->a), each = 32 / bits;
  const int depth = form->depth;
  if (form->a_in_registers) {
    for (int r = 0; r < 4; r++)
      for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < each; i++) {
          const int row = lane / 4 + r % 2 * 8, k = (r / 2 * 4 + lane % 4) * each + i;
          const uint32_t value = operands->a_registers[r][lane] >> (i * bits);
          numbers[row * depth + k] = bits == 32 ? value : value & ((1u << bits) - 1u);
        }
    return true;
  }
  uint8_t bytes[WARP_ROWS * 64];
  if (form->a_mn_major) {
    if (!gather_chunks(operands, &operands->a, true, 0, depth, quarter * 2, 2, bytes, outside))
      return false;
    for (int row = 0; row < WARP_ROWS; row++)
      for (int k = 0; k < depth; k++)
        numbers[row * depth + k] = number_in(bytes, k * WARP_ROWS + row, bits);
    return true;
  }
  const int chunks = wgmma_chunks(form, SIDE_A).chunks;
  if (!gather_chunks(operands, &operands->a, false, quarter * WARP_ROWS, WARP_ROWS, 0, chunks,
                     bytes, outside))
    return false;
  for (int i = 0; i < WARP_ROWS * depth; i++) numbers[i] = number_in(bytes, i, bits);
  return true;
}

static void prepare_a(const WgmmaForm *form, const uint32_t *numbers, TileOfA *tile) {
  const size_t count = (size_t)(WARP_ROWS * form->depth);
  if (form->d == RESULT_S32)
    for (size_t i = 0; i < count; i++) tile->integers[i] = extend_integer(form->a, numbers[i]);
  else
    read_numbers(form->a, form->negate_a, numbers,
                 (FloatMatrix){.values = tile->values, .exponents = tile->exponents}, count);
}

/* ---- Results in registers ----
 *
 * Of eight neighbouring columns a lane holds two: 2t and 2t+1. Here the even ones come first, then
 * the odd ones, in results as in B's prepared tile, so that four lanes' registers are four
 * neighbours, and copying is enough. */

void wgmma_take(const WgmmaForm *form, uint32_t *const *d, WgmmaResults *results) {
  for (int block = 0; block < form->columns / 8; block++)
    for (int row = 0; row < WARP_ROWS; row++) {
      uint32_t *at = &results->numbers[row * form->columns + block * 8];
      const int lane = row % 8 * 4;
      if (form->d == RESULT_F16) {
        const uint32_t *from = d[2 * block + row / 8] + lane;
        for (int i = 0; i < 4; i++) {
          at[i] = from[i] & 0xffffu;
          at[4 + i] = from[i] >> 16;
        }
      } else {
        memcpy(at, d[4 * block + row / 8 * 2] + lane, 16);
        memcpy(at + 4, d[4 * block + row / 8 * 2 + 1] + lane, 16);
      }
    }
}

void wgmma_give(const WgmmaForm *form, const WgmmaResults *results, uint32_t *const *d) {
  for (int block = 0; block < form->columns / 8; block++)
    for (int row = 0; row < WARP_ROWS; row++) {
      const uint32_t *at = &results->numbers[row * form->columns + block * 8];
      const int lane = row % 8 * 4;
      if (form->d == RESULT_F16) {
        uint32_t *to = d[2 * block + row / 8] + lane;
        for (int i = 0; i < 4; i++) to[i] = at[i] | at[4 + i] << 16;
      } else {
        memcpy(d[4 * block + row / 8 * 2] + lane, at, 16);
        memcpy(d[4 * block + row / 8 * 2 + 1] + lane, at + 4, 16);
      }
    }
}

bool wgmma_multiply(const WgmmaForm *form, const WgmmaOperands *operands, int quarter,
                    WgmmaResults *results, OutsideChunk *outside) {
  const int columns = form->columns, depth = form->depth;
  const size_t pitch = (size_t)columns;
  uint32_t *sums = results->numbers;
  if (!operands->scale_d) memset(sums, 0, WARP_ROWS * pitch * sizeof *sums);
  Tile *b = tile_b(form, operands, outside);
  if (b == NULL) return false;
  uint32_t numbers[WARP_ROWS * MAX_DEPTH];
  TileOfA a;
  if (!numbers_a(form, operands, quarter, numbers, outside)) return false;
  prepare_a(form, numbers, &a);
  if (form->d == RESULT_S32)
    multiply_integers(form->saturate, WARP_ROWS, columns, depth, a.integers, (size_t)depth,
                      b->integers, pitch, sums, pitch);
  else
    multiply_floats(&form->rule, WARP_ROWS, columns, depth,
                    (FloatMatrix){a.values, a.exponents, (size_t)depth},
                    (FloatMatrix){b->values, b->exponents, pitch}, sums, pitch);
  return true;
}
