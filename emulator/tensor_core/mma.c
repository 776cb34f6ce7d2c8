/* mma.c: the tensor instructions of one warp: mma.sync, ldmatrix, stmatrix, movmatrix.
 *
 * A matrix is spread over the lanes' registers in one pattern for all types: with P numbers in each
 * 32-bit register, lane 4g+t holds in register r of A row g (g+8 in odd registers) the numbers from
 * column (r/2)*4P + tP on, in register r of B column g from row r*4P + tP on, and of C and D row g
 * (g+8 in the second half) the columns 2t and 2t+1. */
#include "tensor_core/mma.h"

#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "tensor_core/exact_products.h"

enum { ROWS = 16, COLUMNS = 8, MAX_DEPTH = 32, RESULTS = ROWS * COLUMNS };

/* ---- Modifiers ---- */

bool read_number_format(const char *word, NumberFormat *format) {
  static const struct {
    const char *name;
    NumberFormat format;
  } names[] = {{"f16", NUMBER_F16},   {"bf16", NUMBER_BF16}, {"tf32", NUMBER_TF32},
               {"e4m3", NUMBER_E4M3}, {"e5m2", NUMBER_E5M2}, {"s8", NUMBER_S8},
               {"u8", NUMBER_U8}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(word, names[i].name) == 0) {
      *format = names[i].format;
      return true;
    }
  return false;
}

bool read_result_format(const char *word, ResultFormat *format) {
  static const char *const names[] = {"f32", "f16", "s32"};
  for (int i = 0; i < 3; i++)
    if (strcmp(word, names[i]) == 0) {
      *format = (ResultFormat)i;
      return true;
    }
  return false;
}

/* m16n8k(256/bits) and half of it. */
static bool shape_exists(int rows, const MmaForm *form) {
  const int full = 256 / (int)number_bits(form->a);
  return rows == ROWS && form->columns == COLUMNS &&
         (form->depth == full || form->depth == full / 2);
}

static FloatRule rule_of(const MmaForm *form) {
  FloatRule rule = {25, form->a == NUMBER_TF32 ? 8 : 16, form->d == RESULT_F16, false};
  if (number_bits(form->a) == 8 && form->depth / 2 < rule.step) rule.step = form->depth / 2;
  if (rule.step > form->depth) rule.step = form->depth;
  return rule;
}

/* Why these types do not go together; NULL: they do. */
static const char *types_mismatch(const MmaForm *form) {
  const bool is_integer = form->a == NUMBER_S8 || form->a == NUMBER_U8;
  const bool is_small_float = form->a == NUMBER_E4M3 || form->a == NUMBER_E5M2;
  if (number_bits(form->a) != number_bits(form->b)) return "A and B differ in width";
  if (form->a != form->b && !is_small_float && !is_integer)
    return "A and B must have the same type";
  if (is_small_float && form->b != NUMBER_E4M3 && form->b != NUMBER_E5M2)
    return "A and B must both be .e4m3 or .e5m2";
  const bool half_allowed = form->a == NUMBER_F16 || is_small_float;
  const ResultFormat natural = is_integer ? RESULT_S32 : RESULT_F32;
  if (form->d != natural && !(half_allowed && form->d == RESULT_F16))
    return "this type of D does not go with A and B";
  if (form->c != natural && !(half_allowed && form->c == RESULT_F16))
    return "this type of C does not go with A and B";
  if (form->saturate && !is_integer) return ".satfinite is for integers";
  return form->c == form->d ? NULL : "C and D must have the same type";
}

static const char *finish_form(int rows, MmaForm *form) {
  if (!shape_exists(rows, form))
    return "this shape does not exist for these types (those of GPUs before Ampere are not "
           "emulated)";
  const int bits = (int)number_bits(form->a);
  form->a_registers = ROWS * form->depth * bits / 32 / 32;
  form->b_registers = COLUMNS * form->depth * bits / 32 / 32;
  form->c_registers = form->d_registers = form->d == RESULT_F16 ? 2 : 4;
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

static const char OTHER_TYPES[] =
    "A and B can be .f16, .bf16, .tf32, .e4m3, .e5m2, .s8 or .u8, C and D .f32, .f16 or .s32: "
    "other types are not emulated";

const char *mma_read_form(const char *const *modifiers, int count, MmaForm *form) {
  memset(form, 0, sizeof *form);
  int at = 0, rows = 0;
  if (at + 2 > count || strcmp(modifiers[at], "sync") != 0 ||
      strcmp(modifiers[at + 1], "aligned") != 0)
    return "mma needs .sync.aligned";
  at += 2;
  if (at == count) return "the shape is missing";
  char rest = 0;
  if (sscanf(modifiers[at], "m%dn%dk%d%c", &rows, &form->columns, &form->depth, &rest) != 3)
    return "the shape should look like m16n8k16";
  at++;
  if (at + 2 > count || strcmp(modifiers[at], "row") != 0 || strcmp(modifiers[at + 1], "col") != 0)
    return "the layouts must be .row.col";
  at += 2;
  at += read_saturation(modifiers, count, at, form);
  if (at + 4 > count) return "the four types (of D, A, B, C) are missing";
  if (!read_result_format(modifiers[at], &form->d)) return OTHER_TYPES;
  if (!read_number_format(modifiers[at + 1], &form->a)) return OTHER_TYPES;
  if (!read_number_format(modifiers[at + 2], &form->b)) return OTHER_TYPES;
  if (!read_result_format(modifiers[at + 3], &form->c)) return OTHER_TYPES;
  at += 4;
  at += read_saturation(modifiers, count, at, form);
  if (at != count) return "a modifier at the end is not known for mma";
  const char *wrong = types_mismatch(form);
  return wrong ? wrong : finish_form(rows, form);
}

static uint32_t canonical(float value) {
  return value != value ? 0x7fffffffu : bits_of_float(value);
}
static uint32_t add_floats(uint32_t a, uint32_t b) { return canonical(float_of(a) + float_of(b)); }

/* ---- Matrices out of registers and back ---- */

typedef struct {
  uint32_t a[ROWS * MAX_DEPTH];    /* [row][k] */
  uint32_t b[MAX_DEPTH * COLUMNS]; /* [k][column] */
  uint32_t c[RESULTS];             /* [row][column] */
} Matrices;

/* A register of A holds 16 bytes of each of eight rows, those of C two numbers of each. */
enum { PIECE_ROWS = 8, PIECE_WORDS = 4 };

/* The numbers in words that lie one behind the other. */
__attribute__((always_inline)) static inline void unpack_numbers(const uint32_t *words, int bits,
                                                                 int count, uint32_t *numbers) {
  const uint16_t *halves = (const uint16_t *)(const void *)words;
  const uint8_t *bytes = (const uint8_t *)(const void *)words;
  if (bits == 32)
    memcpy(numbers, words, (size_t)count * sizeof *numbers);
  else if (bits == 16)
    for (int i = 0; i < count; i++) numbers[i] = halves[i];
  else
    for (int i = 0; i < count; i++) numbers[i] = bytes[i];
}

__attribute__((always_inline)) static inline void gather_a(const MmaForm *form, int bits,
                                                           const void *const *a,
                                                           uint32_t *numbers) {
  const int row_words = form->depth * bits / 32;
  uint32_t words[ROWS * MAX_DEPTH];
  for (int r = 0; r < form->a_registers; r++) {
    const uint32_t *from = a[r];
    uint32_t *to = words + r % 2 * PIECE_ROWS * row_words + r / 2 * PIECE_WORDS;
    for (int i = 0; i < PIECE_ROWS; i++)
      memcpy(to + i * row_words, from + i * PIECE_WORDS, PIECE_WORDS * sizeof *to);
  }
  unpack_numbers(words, bits, ROWS * form->depth, numbers);
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
        uint32_t *to = numbers + ((r * 4 + place) * each + i) * COLUMNS;
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

static void gather_factors(const MmaForm *form, const void *const *a, const void *const *b,
                           Matrices *matrices) {
  const int bits = (int)number_bits(form->a);
  if (bits == 16) /* the usual sizes, which the compiler then knows */
    gather_of(form, 16, a, b, matrices);
  else if (bits == 8)
    gather_of(form, 8, a, b, matrices);
  else
    gather_of(form, 32, a, b, matrices);
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

enum { PIECE_RESULTS = PIECE_ROWS * COLUMNS, PIECES = RESULTS / PIECE_RESULTS };

static void read_results(const MmaForm *form, const void *const *c, Matrices *matrices) {
  for (int piece = 0; piece < PIECES; piece++)
    read_piece(form->c, c + piece * form->c_registers / PIECES,
               matrices->c + piece * PIECE_RESULTS);
}

static void write_results(const MmaForm *form, const Matrices *matrices, void *const *d) {
  for (int piece = 0; piece < PIECES; piece++)
    write_piece(form->d, matrices->c + piece * PIECE_RESULTS,
                d + piece * form->d_registers / PIECES);
}

typedef struct {
  float values[ROWS * MAX_DEPTH];
  int16_t exponents[ROWS * MAX_DEPTH];
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
  const int half = form->depth / 2, run = 2;
  FloatStore store_a, store_b;
  const FloatMatrix some_a = float_matrix(&store_a, half), some_b = float_matrix(&store_b, COLUMNS);
  uint32_t sums[RESULTS] = {0};
  for (int part = 0; part < 2; part++) {
    for (int k = 0; k < half; k++) {
      const int from = k / run * 2 * run + part * run + k % run;
      for (int row = 0; row < ROWS; row++) copy_number(a, row, from, some_a, row, k);
      for (int column = 0; column < COLUMNS; column++)
        copy_number(b, from, column, some_b, k, column);
    }
    multiply_floats(&form->rule, ROWS, COLUMNS, half, some_a, some_b, sums, COLUMNS);
  }
  for (int i = 0; i < RESULTS; i++)
    c[i] = form->d == RESULT_F16
               ? half_of_float(float_of_half((uint16_t)c[i]) + float_of_half((uint16_t)sums[i]))
               : add_floats(c[i], sums[i]);
}

static float small_float(NumberFormat format, uint32_t bits) {
  if (format == NUMBER_E5M2) return float_of_half((uint16_t)(bits << 8));
  /* e4m3 bits placed in an f16 have an exponent that is 8 too small. Multiplying by 2^8 corrects it,
   * for subnormals too. */
  const uint32_t half = (bits & 0x80u) << 8 | (bits & 0x7fu) << 7;
  return (bits & 0x7fu) == 0x7fu ? float_of(0x7fffffffu) : float_of_half((uint16_t)half) * 256.0f;
}

static void small_to_half(NumberFormat format, uint32_t *numbers, size_t count) {
  for (size_t i = 0; i < count; i++) numbers[i] = half_of_float(small_float(format, numbers[i]));
}

static void multiply(const MmaForm *form, Matrices *matrices) {
  const int depth = form->depth;
  const size_t a_count = (size_t)(ROWS * depth), b_count = (size_t)(depth * COLUMNS);
  if (form->d == RESULT_S32) {
    int16_t a[ROWS * MAX_DEPTH], b[MAX_DEPTH * COLUMNS];
    extend_integers(form->a, matrices->a, a, a_count);
    extend_integers(form->b, matrices->b, b, b_count);
    multiply_integers(form->saturate, ROWS, COLUMNS, depth, a, (size_t)depth, b, COLUMNS,
                      matrices->c, COLUMNS);
    return;
  }
  FloatStore store_a, store_b;
  const FloatMatrix a = float_matrix(&store_a, depth), b = float_matrix(&store_b, COLUMNS);
  const bool small = number_bits(form->a) == 8;
  if (small) { /* subnormals of e4m3 are normal numbers in f16, which affects the alignment */
    small_to_half(form->a, matrices->a, a_count);
    small_to_half(form->b, matrices->b, b_count);
  }
  read_numbers(small ? NUMBER_F16 : form->a, false, matrices->a, a, a_count);
  read_numbers(small ? NUMBER_F16 : form->b, false, matrices->b, b, b_count);
  if (small)
    multiply_small_floats(form, a, b, matrices->c);
  else
    multiply_floats(&form->rule, ROWS, COLUMNS, depth, a, b, matrices->c, COLUMNS);
}

/* Small whole numbers, with which programs are tried, need no rounding. Where some do, the next ones
 * probably do, too. False: nothing was done. */
static bool multiply_exactly(const MmaForm *form, Matrices *matrices) {
  enum { REST = 31 };
  static _Thread_local int rest;
  const int a_count = ROWS * form->depth, b_count = form->depth * COLUMNS;
  const bool wide = form->a == NUMBER_F16 || form->a == NUMBER_BF16 || form->a == NUMBER_TF32;
  if (!wide || form->d != RESULT_F32) return false;
  if (rest > 0) {
    rest--;
    return false;
  }
  ExactMatrix a, b;
  exact_read(form->a, matrices->a, (size_t)a_count, &a);
  exact_read(form->b, matrices->b, (size_t)b_count, &b);
  const bool exact =
      exact_multiply(form->rule.step, ROWS, COLUMNS, form->depth, &a, &b, matrices->c);
  if (!exact) rest = REST;
  return exact;
}

void mma_compute(const MmaForm *form, const void *const *a, const void *const *b,
                 const void *const *c, void *const *d) {
  Matrices matrices;
  gather_factors(form, a, b, &matrices);
  read_results(form, c, &matrices);
  if (!multiply_exactly(form, &matrices)) multiply(form, &matrices);
  write_results(form, &matrices, d);
}
