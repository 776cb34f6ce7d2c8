/* mma.c: the tensor instructions of one warp: mma.sync, ldmatrix, stmatrix, movmatrix.
 *
 * A matrix is spread over the lanes' registers in one pattern for all types: with P numbers in each
 * 32-bit register, lane 4g+t holds in register r of A row g (g+8 in odd registers) the numbers from
 * column (r/2)*4P + tP on, in register r of B column g from row r*4P + tP on, and of C and D row g
 * (g+8 in the second half) the columns 2t and 2t+1. Only m8n8k4 has its own. */
#include "tensor_core/mma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "tensor_core/exact_products.h"

enum { MAX_ROWS = 16, MAX_DEPTH = 256, MAX_RESULTS = 128 };

/* ---- Modifiers ---- */

bool read_number_format(const char *word, NumberFormat *format) {
  static const struct {
    const char *name;
    NumberFormat format;
  } names[] = {{"f16", NUMBER_F16},   {"bf16", NUMBER_BF16}, {"tf32", NUMBER_TF32},
               {"e4m3", NUMBER_E4M3}, {"e5m2", NUMBER_E5M2}, {"s8", NUMBER_S8},
               {"u8", NUMBER_U8},     {"s4", NUMBER_S4},     {"u4", NUMBER_U4},
               {"b1", NUMBER_B1},     {"f64", NUMBER_F64}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(word, names[i].name) == 0) {
      *format = names[i].format;
      return true;
    }
  return false;
}

bool read_result_format(const char *word, ResultFormat *format) {
  static const char *const names[] = {"f32", "f16", "s32", "f64"};
  for (int i = 0; i < 4; i++)
    if (strcmp(word, names[i]) == 0) {
      *format = (ResultFormat)i;
      return true;
    }
  return false;
}

/* The dense depths of each width of number: m16n8k(256/bits) and half of it, and the small ones. */
static bool shape_exists(const MmaForm *form) {
  const int full = form->a == NUMBER_F64 ? 16 : 256 / (int)number_bits(form->a);
  const int depth = form->sparse ? form->depth / 2 : form->depth;
  if (form->columns != 8) return false;
  if (form->a == NUMBER_F64)
    return !form->sparse && ((form->rows == 8 && depth == 4) ||
                             (form->rows == 16 && (depth == 4 || depth == 8 || depth == 16)));
  if (form->rows == 16) return depth == full || depth == full / 2;
  if (form->sparse || form->rows != 8) return false;
  if (form->a == NUMBER_F16) return depth == 4;
  return form->d == RESULT_S32 && depth == full / 2;
}

static FloatRule rule_of(const MmaForm *form) {
  FloatRule rule = {25, 16, form->d == RESULT_F16, false};
  switch (form->a) {
    case NUMBER_TF32:
      rule.step = 8;
      break;
    default:
      break;
  }
  if (form->sparse) rule.step *= 2;
  if (number_bits(form->a) == 8 && form->depth / 2 < rule.step) rule.step = form->depth / 2;
  if (rule.step > form->depth) rule.step = form->depth;
  return rule;
}

/* Why these types do not go together; NULL: they do. */
static const char *types_mismatch(const MmaForm *form) {
  const bool is_integer = form->a >= NUMBER_S8 && form->a <= NUMBER_B1;
  const bool is_small_float = form->a == NUMBER_E4M3 || form->a == NUMBER_E5M2;
  if (number_bits(form->a) != number_bits(form->b)) return "A and B differ in width";
  if (form->a != form->b && !is_small_float && !(is_integer && form->a != NUMBER_B1))
    return "A and B must have the same type";
  if (is_small_float && form->b != NUMBER_E4M3 && form->b != NUMBER_E5M2)
    return "A and B must both be .e4m3 or .e5m2";
  const bool half_allowed = form->a == NUMBER_F16 || is_small_float;
  const ResultFormat natural = is_integer              ? RESULT_S32
                               : form->a == NUMBER_F64 ? RESULT_F64
                                                       : RESULT_F32;
  if (form->d != natural && !(half_allowed && form->d == RESULT_F16))
    return "this type of D does not go with A and B";
  if (form->c != natural && !(half_allowed && form->c == RESULT_F16))
    return "this type of C does not go with A and B";
  if (form->saturate && !(is_integer && form->a != NUMBER_B1)) return ".satfinite is for integers";
  const bool tiny = form->rows == 8 && form->a == NUMBER_F16;
  if (form->c != form->d && !tiny) return "C and D must have the same type";
  if (tiny && form->d == RESULT_F16 && form->c == RESULT_F32) return "C is wider than D";
  if (!tiny && (form->a_column_major || form->b_row_major)) return "this shape needs .row.col";
  if (form->sparse && (form->a == NUMBER_B1 || form->a == NUMBER_F64))
    return "no sparse form of this type";
  return NULL;
}

static const char *finish_form(MmaForm *form) {
  if (!shape_exists(form)) return "this shape does not exist for these types";
  const int bits = (int)number_bits(form->a);
  if (form->rows == 8 && form->a == NUMBER_F16) {
    form->a_registers = form->b_registers = 2;
    form->c_registers = form->c == RESULT_F16 ? 4 : 8;
    form->d_registers = form->d == RESULT_F16 ? 4 : 8;
  } else {
    const int register_bits = form->a == NUMBER_F64 ? 64 : 32;
    form->a_registers =
        form->rows * form->depth * bits / 32 / register_bits / (form->sparse ? 2 : 1);
    form->b_registers = form->columns * form->depth * bits / 32 / register_bits;
    form->c_registers = form->rows * 8 / 32 / (form->c == RESULT_F16 ? 2 : 1);
    form->d_registers = form->rows * 8 / 32 / (form->d == RESULT_F16 ? 2 : 1);
  }
  form->rule = rule_of(form);
  return NULL;
}

/* .satfinite before the types, as in the PTX ISA, or behind them: ptxas takes that, too, and CUTLASS
 * writes it. Returns the number of words. */
static int read_saturation(const char *const *modifiers, int count, int at, MmaForm *form) {
  if (form->saturate || at >= count || strcmp(modifiers[at], "satfinite") != 0) return 0;
  form->saturate = true;
  return 1;
}

const char *mma_read_form(const char *const *modifiers, int count, bool sparse, MmaForm *form) {
  memset(form, 0, sizeof *form);
  form->sparse = sparse;
  int at = 0;
  if (at + 2 > count || strcmp(modifiers[at], "sync") != 0 ||
      strcmp(modifiers[at + 1], "aligned") != 0)
    return "mma needs .sync.aligned";
  at += 2;
  if (at == count) return "the shape is missing";
  char rest = 0;
  if (sscanf(modifiers[at], "m%dn%dk%d%c", &form->rows, &form->columns, &form->depth, &rest) != 3)
    return "the shape should look like m16n8k16";
  at++;
  if (at + 2 > count) return "the layouts (.row.col) are missing";
  const bool a_row = strcmp(modifiers[at], "row") == 0, a_col = strcmp(modifiers[at], "col") == 0;
  const bool b_row = strcmp(modifiers[at + 1], "row") == 0;
  const bool b_col = strcmp(modifiers[at + 1], "col") == 0;
  if (!(a_row || a_col) || !(b_row || b_col)) return "the layouts must be .row or .col";
  form->a_column_major = a_col;
  form->b_row_major = b_row;
  at += 2;
  at += read_saturation(modifiers, count, at, form);
  if (at + 4 > count) return "the four types (of D, A, B, C) are missing";
  if (!read_result_format(modifiers[at], &form->d)) return "the type of D is not known";
  if (!read_number_format(modifiers[at + 1], &form->a)) return "the type of A is not known";
  if (!read_number_format(modifiers[at + 2], &form->b)) return "the type of B is not known";
  if (!read_result_format(modifiers[at + 3], &form->c)) return "the type of C is not known";
  at += 4;
  at += read_saturation(modifiers, count, at, form);
  if (form->a == NUMBER_B1) {
    if (at + 2 > count || strcmp(modifiers[at + 1], "popc") != 0)
      return ".b1 needs .and.popc or .xor.popc";
    form->exclusive_or = strcmp(modifiers[at], "xor") == 0;
    if (!form->exclusive_or && strcmp(modifiers[at], "and") != 0)
      return ".b1 needs .and.popc or .xor.popc";
    at += 2;
  }
  if (at != count) return "a modifier at the end is not known for mma";
  const char *wrong = types_mismatch(form);
  return wrong ? wrong : finish_form(form);
}

static uint32_t canonical(float value) { return value != value ? 0x7fffffffu : half_bits(value); }
static uint32_t add_floats(uint32_t a, uint32_t b) {
  return canonical(half_float(a) + half_float(b));
}

/* ---- Matrices out of registers and back ---- */

typedef struct {
  uint32_t a[MAX_ROWS * MAX_DEPTH]; /* [row][k], compressed when sparse */
  uint32_t b[MAX_DEPTH * 8];        /* [k][column] */
  uint32_t c[MAX_RESULTS];          /* [row][column] */
} Matrices;

static inline uint32_t number_at(const void *column, int lane, int index, int bits) {
  const uint32_t value = ((const uint32_t *)column)[lane] >> (index * bits);
  return bits == 32 ? value : value & ((1u << bits) - 1u);
}

/* A register of A holds 16 bytes of each of eight rows, those of C two numbers of each. */
enum { PIECE_ROWS = 8, PIECE_WORDS = 4 };

/* The numbers in words that lie one behind the other. */
__attribute__((always_inline)) static inline void unpack(const uint32_t *words, int bits, int count,
                                                         uint32_t *numbers) {
  const uint16_t *halves = (const uint16_t *)(const void *)words;
  const uint8_t *bytes = (const uint8_t *)(const void *)words;
  const int each = 32 / bits;
  if (bits == 32)
    memcpy(numbers, words, (size_t)count * sizeof *numbers);
  else if (bits == 16)
    for (int i = 0; i < count; i++) numbers[i] = halves[i];
  else if (bits == 8)
    for (int i = 0; i < count; i++) numbers[i] = bytes[i];
  else
    for (int i = 0; i < count; i++)
      numbers[i] = words[i / each] >> (i % each * bits) & ((1u << bits) - 1u);
}

__attribute__((always_inline)) static inline void gather_a(const MmaForm *form, int bits,
                                                           const void *const *a,
                                                           uint32_t *numbers) {
  const int depth = form->sparse ? form->depth / 2 : form->depth;
  const int row_words = depth * bits / 32, row_step = form->rows == 8 ? 1 : 2;
  uint32_t words[MAX_ROWS * MAX_DEPTH];
  for (int r = 0; r < form->a_registers; r++) {
    const uint32_t *from = a[r];
    const int row = r % row_step * PIECE_ROWS;
    uint32_t *to = words + row * row_words + r / row_step * PIECE_WORDS;
    for (int i = 0; i < PIECE_ROWS; i++)
      memcpy(to + i * row_words, from + i * PIECE_WORDS, PIECE_WORDS * sizeof *to);
  }
  unpack(words, bits, form->rows * depth, numbers);
}

__attribute__((always_inline)) static inline void gather_b(const MmaForm *form, int bits,
                                                           const void *const *b,
                                                           uint32_t *numbers) {
  const int each = 32 / bits;
  const uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1u;
  for (int r = 0; r < form->b_registers; r++) {
    const uint32_t *from = b[r];
    uint32_t words[4][8];
    for (int column = 0; column < 8; column++)
      for (int place = 0; place < 4; place++) words[place][column] = from[column * 4 + place];
    for (int place = 0; place < 4; place++)
      for (int i = 0; i < each; i++) {
        uint32_t *to = numbers + ((r * 4 + place) * each + i) * form->columns;
        for (int column = 0; column < 8; column++)
          to[column] = words[place][column] >> (i * bits) & mask;
      }
  }
}

__attribute__((always_inline)) static inline void gather_of(const MmaForm *form, int bits,
                                                            const void *const *a,
                                                            const void *const *b,
                                                            Matrices *matrices) {
  gather_a(form, bits, a, matrices->a);
  gather_b(form, bits, b, matrices->b);
}

static void gather(const MmaForm *form, const void *const *a, const void *const *b,
                   Matrices *matrices) {
  const int bits = (int)number_bits(form->a);
  if (bits == 16) /* the usual sizes, which the compiler then knows */
    gather_of(form, 16, a, b, matrices);
  else if (bits == 8)
    gather_of(form, 8, a, b, matrices);
  else
    gather_of(form, bits, a, b, matrices);
}

/* The layout of C and D: the place of number `index` of a lane. */
static inline int result_row(int lane, int index) { return lane / 4 + (index / 2) * 8; }
static inline int result_column(int lane, int index) { return (lane % 4) * 2 + index % 2; }

static uint32_t read_result(ResultFormat format, const void *const *c, int lane, int index) {
  if (format != RESULT_F16) return ((const uint32_t *)c[index])[lane];
  return number_at(c[index / 2], lane, index % 2, 16);
}

static void write_result(ResultFormat format, void *const *d, int lane, int index, uint32_t value) {
  if (format != RESULT_F16) {
    ((uint32_t *)d[index])[lane] = value;
    return;
  }
  uint32_t *word = &((uint32_t *)d[index / 2])[lane];
  *word = index % 2 ? (*word & 0xffffu) | (value << 16) : (*word & 0xffff0000u) | (value & 0xffffu);
}

int sparse_position(const uint32_t *metadata, uint32_t bits, int depth, int selector, int row,
                    int index) {
  /* Two bits for each stored number: its position among four. For tf32: one of two, in four
   * bits. */
  const int bits_each = bits == 32 ? 4 : 2;
  const int at = index * bits_each, row_bits = depth / 2 * bits_each;
  const int high = row / 8; /* rows 8 to 15 */
  int place, shift;         /* lane of the group, bit of its word */
  if (bits == 8) {
    place = row_bits == 32 ? 2 * (selector & 1) + high : high + 2 * (at / 32);
    shift = at % 32;
  } else {
    place = row_bits == 16 ? selector : 2 * (selector & 1) + at / 16;
    shift = 16 * high + at % 16;
  }
  const uint32_t which = metadata[4 * (row % 8) + place] >> shift;
  if (bits == 32) return 2 * index + ((which & 0xfu) == 0xeu ? 1 : 0);
  return 4 * (index / 2) + (int)(which & 3u);
}

/* Eight rows of eight numbers of C: of 32 bits, those of two registers alternate; of 16, one register
 * holds them. */
static void read_piece(ResultFormat format, const void *const *c, uint32_t *numbers) {
  const uint32_t *first = c[0], *second = format == RESULT_F16 ? NULL : c[1];
  for (int lane = 0; lane < LANES; lane++) {
    numbers[2 * lane] = second ? first[lane] : first[lane] & 0xffffu;
    numbers[2 * lane + 1] = second ? second[lane] : first[lane] >> 16;
  }
}

static void write_piece(ResultFormat format, const uint32_t *numbers, void *const *d) {
  uint32_t *first = d[0], *second = format == RESULT_F16 ? NULL : d[1];
  for (int lane = 0; lane < LANES && second; lane++) {
    first[lane] = numbers[2 * lane];
    second[lane] = numbers[2 * lane + 1];
  }
  for (int lane = 0; lane < LANES && !second; lane++)
    first[lane] = (numbers[2 * lane] & 0xffffu) | numbers[2 * lane + 1] << 16;
}

enum { PIECE_COLUMNS = 8, PIECE_RESULTS = PIECE_ROWS * PIECE_COLUMNS };

static void read_results(const MmaForm *form, const void *const *c, Matrices *matrices) {
  const int registers = form->c == RESULT_F16 ? 1 : 2;
  const int pieces = form->rows * form->columns / PIECE_RESULTS;
  for (int piece = 0; piece < pieces; piece++) {
    uint32_t numbers[PIECE_RESULTS], *to = matrices->c + piece * PIECE_RESULTS;
    read_piece(form->c, c + piece * registers, numbers);
    for (int row = 0; row < PIECE_ROWS; row++)
      memcpy(to + row * form->columns, numbers + row * PIECE_COLUMNS,
             PIECE_COLUMNS * sizeof *numbers);
  }
}

static void write_results(const MmaForm *form, Matrices *matrices, void *const *d) {
  const int registers = form->d == RESULT_F16 ? 1 : 2;
  const int pieces = form->rows * form->columns / PIECE_RESULTS;
  for (int piece = 0; piece < pieces; piece++) {
    uint32_t numbers[PIECE_RESULTS];
    const uint32_t *from = matrices->c + piece * PIECE_RESULTS;
    for (int row = 0; row < PIECE_ROWS; row++)
      memcpy(numbers + row * PIECE_COLUMNS, from + row * form->columns,
             PIECE_COLUMNS * sizeof *numbers);
    write_piece(form->d, numbers, d + piece * registers);
  }
}

typedef struct {
  float values[MAX_ROWS * MAX_DEPTH];
  int16_t exponents[MAX_ROWS * MAX_DEPTH];
} FloatStore;

static FloatMatrix float_matrix(FloatStore *store, int pitch) {
  return (FloatMatrix){store->values, store->exponents, (size_t)pitch};
}

static void copy_number(FloatMatrix from, int from_row, int from_column, FloatMatrix to, int to_row,
                        int to_column) {
  const size_t source = (size_t)from_row * from.pitch + (size_t)from_column;
  const size_t target = (size_t)to_row * to.pitch + (size_t)to_column;
  to.values[target] = from.values[source];
  to.exponents[target] = from.exponents[source];
}

/* On Hopper, wgmma supports 8-bit floats in hardware but mma.sync does not: ptxas unpacks them to
 * f16. The lower halves of all registers go into one multiplication, the upper halves into a second
 * one that continues from the first one's sums. C is added with an ordinary addition. */
static void multiply_small_floats(const MmaForm *form, FloatMatrix a, FloatMatrix b, uint32_t *c) {
  const int half = form->depth / 2, run = form->sparse ? 4 : 2;
  FloatStore store_a, store_b;
  const FloatMatrix some_a = float_matrix(&store_a, half), some_b = float_matrix(&store_b, 8);
  uint32_t sums[MAX_ROWS * 8] = {0};
  for (int part = 0; part < 2; part++) {
    for (int k = 0; k < half; k++) {
      const int from = k / run * 2 * run + part * run + k % run;
      for (int row = 0; row < form->rows; row++) copy_number(a, row, from, some_a, row, k);
      for (int column = 0; column < 8; column++) copy_number(b, from, column, some_b, k, column);
    }
    multiply_floats(&form->rule, form->rows, 8, half, some_a, some_b, sums, 8);
  }
  for (int i = 0; i < form->rows * 8; i++)
    c[i] = form->d == RESULT_F16
               ? half_of_float(float_of_half((uint16_t)c[i]) + float_of_half((uint16_t)sums[i]))
               : add_floats(c[i], sums[i]);
}

static void small_to_half(NumberFormat format, uint32_t *numbers, size_t count) {
  float wide[MAX_ROWS * MAX_DEPTH];
  widen_numbers(format, false, numbers, wide, count);
  for (size_t i = 0; i < count; i++) numbers[i] = half_of_float(wide[i]);
}

/* The numbers of a sparse A at their places. */
static void spread_integers(const MmaForm *form, const uint32_t *numbers, const uint32_t *metadata,
                            int16_t *a) {
  const int depth = form->depth, stored = depth / 2;
  memset(a, 0, (size_t)(form->rows * depth) * sizeof *a);
  for (int row = 0; row < form->rows; row++)
    for (int k = 0; k < stored; k++)
      a[row * depth + sparse_position(metadata, number_bits(form->a), depth, form->selector, row,
                                      k)] = extend_integer(form->a, numbers[row * stored + k]);
}

static void multiply(const MmaForm *form, Matrices *matrices, const uint32_t *metadata) {
  const int rows = form->rows, columns = form->columns;
  const int depth = form->depth, a_depth = form->sparse ? depth / 2 : depth;
  const uint32_t bits = number_bits(form->a);
  if (form->a == NUMBER_B1) {
    for (int row = 0; row < form->rows; row++)
      for (int column = 0; column < 8; column++) {
        uint32_t sum = 0;
        for (int k = 0; k < depth; k++) {
          const uint32_t x = matrices->a[row * depth + k], y = matrices->b[k * 8 + column];
          sum += form->exclusive_or ? x ^ y : x & y;
        }
        matrices->c[row * 8 + column] += sum;
      }
    return;
  }
  if (form->d == RESULT_S32) {
    int16_t a[MAX_ROWS * MAX_DEPTH], b[MAX_DEPTH * 8];
    if (form->sparse)
      spread_integers(form, matrices->a, metadata, a);
    else
      extend_integers(form->a, matrices->a, a, (size_t)(rows * depth));
    extend_integers(form->b, matrices->b, b, (size_t)(depth * columns));
    multiply_integers(form->saturate, rows, columns, depth, a, (size_t)depth, b, (size_t)columns,
                      matrices->c, (size_t)columns);
    return;
  }
  FloatStore store_a, store_b, store_dense;
  const FloatMatrix a = float_matrix(&store_a, a_depth), b = float_matrix(&store_b, columns);
  const size_t a_count = (size_t)(rows * a_depth), b_count = (size_t)(depth * columns);
  NumberFormat a_format = form->a, b_format = form->b;
  if (bits == 8) { /* subnormals of e4m3 are normal numbers in f16, which affects the alignment */
    small_to_half(form->a, matrices->a, a_count);
    small_to_half(form->b, matrices->b, b_count);
    a_format = b_format = NUMBER_F16;
  }
  read_numbers(a_format, false, matrices->a, a, a_count);
  read_numbers(b_format, false, matrices->b, b, b_count);
  FloatMatrix left = a;
  if (form->sparse) {
    left = float_matrix(&store_dense, depth);
    for (int i = 0; i < form->rows * depth; i++) {
      left.values[i] = 0;
      left.exponents[i] = EXPONENT_ABSENT;
    }
    for (int row = 0; row < form->rows; row++)
      for (int k = 0; k < a_depth; k++)
        copy_number(a, row, k, left, row,
                    sparse_position(metadata, bits, depth, form->selector, row, k));
  }
  if (bits == 8)
    multiply_small_floats(form, left, b, matrices->c);
  else
    multiply_floats(&form->rule, rows, columns, depth, left, b, matrices->c, (size_t)columns);
}

/* results[column] += the sum of a[k] * b[k][column]. A NaN, which none of the following sums loses, is
 * computed again, by the rule for which NaN it is. */
static void multiply_row_of_doubles(int depth, const uint64_t *a, const uint64_t *b,
                                    uint64_t *results) {
  double sums[8], row[16], numbers[16][8];
  bool any_nan = false;
  memcpy(sums, results, sizeof sums);
  memcpy(row, a, (size_t)depth * sizeof *row);
  memcpy(numbers, b, (size_t)depth * sizeof *numbers);
  for (int k = 0; k < depth; k++)
    for (int column = 0; column < 8; column++)
      sums[column] = __builtin_fma(row[k], numbers[k][column], sums[column]);
  for (int column = 0; column < 8; column++) any_nan |= sums[column] != sums[column];
  if (!any_nan) {
    memcpy(results, sums, sizeof sums);
    return;
  }
  for (int column = 0; column < 8; column++)
    for (int k = 0; k < depth; k++)
      results[column] = multiply_add_double(a[k], b[k * 8 + column], results[column]);
}

static void compute_doubles(const MmaForm *form, const void *const *a, const void *const *b,
                            const void *const *c, void *const *d) {
  uint64_t left[16][16], right[16][8], result[16][8];
  const int row_step = form->rows == 8 ? 1 : 2;
  for (int lane = 0; lane < LANES; lane++) {
    for (int r = 0; r < form->a_registers; r++)
      left[lane / 4 + (r % row_step) * 8][r / row_step * 4 + lane % 4] =
          ((const uint64_t *)a[r])[lane];
    for (int r = 0; r < form->b_registers; r++)
      right[r * 4 + lane % 4][lane / 4] = ((const uint64_t *)b[r])[lane];
    for (int r = 0; r < form->c_registers; r++)
      result[result_row(lane, r)][result_column(lane, r)] = ((const uint64_t *)c[r])[lane];
  }
  for (int row = 0; row < form->rows; row++)
    multiply_row_of_doubles(form->depth, left[row], &right[0][0], result[row]);
  for (int lane = 0; lane < LANES; lane++)
    for (int r = 0; r < form->d_registers; r++)
      ((uint64_t *)d[r])[lane] = result[result_row(lane, r)][result_column(lane, r)];
}

/* m8n8k4: four products of 8 x 4 by 4 x 8, each computed by eight lanes: a quad and the quad 16
 * lanes further. Hopper has no hardware for it either: ptxas uses shuffles and ordinary
 * arithmetic. */
static void compute_quad_pairs(const MmaForm *form, const void *const *a, const void *const *b,
                               const void *const *c, void *const *d) {
  Matrices parts[4];
  for (int lane = 0; lane < LANES; lane++) {
    Matrices *part = &parts[lane % 16 / 4];
    const int place = lane % 4, upper = lane / 16 * 4;
    for (int i = 0; i < 4; i++) {
      const uint32_t x = number_at(a[i / 2], lane, i % 2, 16),
                     y = number_at(b[i / 2], lane, i % 2, 16);
      if (form->a_column_major)
        part->a[(i + upper) * 4 + place] = x;
      else
        part->a[(place + upper) * 4 + i] = x;
      if (form->b_row_major)
        part->b[place * 8 + i + upper] = y;
      else
        part->b[i * 8 + place + upper] = y;
    }
    for (int i = 0; i < 8; i++) {
      const bool half = form->c == RESULT_F16;
      const int row = upper + (half ? place : (lane & 1) + (i & 2));
      const int column = half ? i : (i & 4) + (lane & 2) + (i & 1);
      part->c[row * 8 + column] = read_result(form->c, c, lane, i);
    }
  }
  for (int part = 0; part < 4; part++)
    for (int i = 0; i < 64; i++) {
      const uint32_t *a_row = &parts[part].a[i / 8 * 4], *b_column = &parts[part].b[i % 8];
      float x[4], y[4];
      for (int k = 0; k < 4; k++) {
        x[k] = float_of_half((uint16_t)a_row[k]);
        y[k] = float_of_half((uint16_t)b_column[k * 8]);
      }
      uint32_t *c_bits = &parts[part].c[i];
      const float before =
          form->c == RESULT_F16 ? float_of_half((uint16_t)*c_bits) : half_float(*c_bits);
      if (form->d == RESULT_F16) {
        const float first = __builtin_fmaf(x[1], y[1], x[0] * y[0]);
        const float second = __builtin_fmaf(x[3], y[3], x[2] * y[2]);
        *c_bits = half_of_float(before + first + second);
      } else {
        float sum = 0;
        for (int k = 0; k < 4; k++) sum = __builtin_fmaf(x[k], y[k], sum);
        *c_bits = canonical(sum + before);
      }
    }
  for (int lane = 0; lane < LANES; lane++)
    for (int i = 0; i < 8; i++) {
      const int place = lane % 4, upper = lane / 16 * 4;
      const bool half = form->d == RESULT_F16;
      const int row = upper + (half ? place : (lane & 1) + (i & 2));
      const int column = half ? i : (i & 4) + (lane & 2) + (i & 1);
      write_result(form->d, d, lane, i, parts[lane % 16 / 4].c[row * 8 + column]);
    }
}

/* Small whole numbers, with which programs are tried, need no rounding. Where some do, the next ones
 * probably do, too. False: nothing was done. */
static bool multiply_exactly(const MmaForm *form, Matrices *matrices) {
  enum { REST = 31 };
  static _Thread_local int rest;
  const int a_count = form->rows * form->depth, b_count = form->depth * form->columns;
  const bool wide = form->a == NUMBER_F16 || form->a == NUMBER_BF16 || form->a == NUMBER_TF32;
  if (!wide || form->sparse || form->d != RESULT_F32 || form->rule.short_result ||
      a_count > EXACT_NUMBERS || b_count > EXACT_NUMBERS || form->columns > EXACT_COLUMNS)
    return false;
  if (rest > 0) {
    rest--;
    return false;
  }
  ExactMatrix a, b;
  exact_read(form->a, matrices->a, (size_t)a_count, &a);
  exact_read(form->b, matrices->b, (size_t)b_count, &b);
  const bool exact =
      exact_multiply(form->rule.step, form->rows, form->columns, form->depth, &a, &b, matrices->c);
  if (!exact) rest = REST;
  return exact;
}

static void compute_tile(const MmaForm *form, const void *const *a, const void *const *b,
                         const void *const *c, const uint32_t *metadata, void *const *d) {
  Matrices matrices;
  gather(form, a, b, &matrices);
  read_results(form, c, &matrices);
  if (!multiply_exactly(form, &matrices)) multiply(form, &matrices, metadata);
  write_results(form, &matrices, d);
}

void mma_compute(const MmaForm *form, const void *const *a, const void *const *b,
                 const void *const *c, const uint32_t *metadata, void *const *d) {
  if (form->a == NUMBER_F64)
    compute_doubles(form, a, b, c, d);
  else if (form->rows == 8 && form->a == NUMBER_F16)
    compute_quad_pairs(form, a, b, c, d);
  else
    compute_tile(form, a, b, c, metadata, d);
}
