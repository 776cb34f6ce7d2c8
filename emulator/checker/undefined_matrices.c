/* undefined_matrices.c: undefined bits in the matrices of one warp: mma.sync, ldmatrix, stmatrix,
 * movmatrix. A number of the result is undefined if any number of its row of A, of its column of B,
 * or the number in C is, because an undefined float times anything may be NaN. Integers times zero
 * are zero. So a kernel may multiply rows outside its matrix, as long as it never uses the results.
 */
#include "checker/undefined_matrices.h"

#include <string.h>

#include "tensor_core/tensor_core.h"

enum { MAX_ROWS = 16, MAX_COLUMNS = 8, MAX_DEPTH = 32, HALF_BITS = 16 };

/* ---- Products ---- */

/* The numbers of A by row, or of B by column: which are undefined, and where they come from. */
typedef struct {
  struct {
    bool undefined[MAX_DEPTH], zero[MAX_DEPTH]; /* zero: integers only */
    bool any;                                   /* some of them is undefined */
    uint16_t origin;
  } line[MAX_ROWS];
} Factor;

/* The undefined bits of a lane; bits: NULL if no lane has any. */
static uint32_t marks_of(const uint32_t *bits, int lane) { return bits ? bits[lane] : 0; }

static uint32_t part_of(uint32_t value, int index, int bits) {
  return bits == 32 ? value : value >> (index * bits) & ((1u << bits) - 1u);
}

static bool is_integer(const MmaForm *form) { return form->d == RESULT_S32; }

/* halves: 2 if every second register holds the lines from 8 on. */
static void take_factor(const Warp *warp, const MmaForm *form, const uint16_t *slots, int registers,
                        int halves, Factor *factor) {
  const int bits = (int)number_bits(form->a), each = 32 / bits;
  memset(factor, 0, sizeof *factor);
  for (int r = 0; r < registers; r++) {
    const UndefinedColumn marks = undefined_column(warp, slots[r], false);
    for (int lane = 0; lane < LANES; lane++) {
      const int line = lane / 4 + r % halves * 8, first = (r / halves * 4 + lane % 4) * each;
      const uint32_t value = column_u32(warp, slots[r])[lane];
      const uint32_t mark = marks_of(marks.bits, lane);
      for (int i = 0; i < each; i++) {
        factor->line[line].zero[first + i] = part_of(value, i, bits) == 0;
        if (!part_of(mark, i, bits)) continue;
        factor->line[line].undefined[first + i] = factor->line[line].any = true;
        factor->line[line].origin = marks.origins[lane];
      }
    }
  }
}

/* Is the sum of this row times this column undefined, without C? */
static bool is_undefined(const MmaForm *form, const Factor *a, int row, const Factor *b,
                         int column) {
  if (!a->line[row].any && !b->line[column].any) return false;
  if (!is_integer(form)) return true;
  for (int k = 0; k < form->depth; k++) {
    const bool of_a = a->line[row].undefined[k], of_b = b->line[column].undefined[k];
    if ((of_a && (of_b || !b->line[column].zero[k])) || (of_b && !a->line[row].zero[k]))
      return true;
  }
  return false;
}

static bool any_column(const Warp *warp, const uint16_t *slots, int count) {
  for (int i = 0; i < count; i++)
    if (undefined_column(warp, slots[i], false).lanes) return true;
  return false;
}

/* Undefined bits of up to four result registers. */
typedef struct {
  uint32_t bits[4][LANES];
  uint16_t origins[4][LANES];
} UndefinedResults;

static void find_undefined_results(const Warp *warp, const MmaForm *form, const uint16_t *a_slot,
                                   const uint16_t *b_slot, const uint16_t *c_slot,
                                   UndefinedResults *results) {
  bool any =
      any_column(warp, a_slot, form->a_registers) || any_column(warp, b_slot, form->b_registers);
  UndefinedColumn c_marks[4];
  for (int i = 0; i < form->c_registers; i++) {
    c_marks[i] = undefined_column(warp, c_slot[i], false);
    any |= c_marks[i].bits != NULL;
  }
  memset(results, 0, sizeof *results);
  if (!any) return;
  Factor a, b;
  take_factor(warp, form, a_slot, form->a_registers, 2, &a);
  take_factor(warp, form, b_slot, form->b_registers, 1, &b);
  const bool half_c = form->c == RESULT_F16;
  for (int lane = 0; lane < LANES; lane++)
    for (int i = 0; i < MAX_ROWS * MAX_COLUMNS / LANES; i++) {
      const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      const int c = half_c ? i / 2 : i;
      const uint32_t before =
          part_of(marks_of(c_marks[c].bits, lane), i % 2, half_c ? HALF_BITS : 32);
      const bool product = is_undefined(form, &a, row, &b, column);
      if (!product && !before) continue;
      const int d = form->d == RESULT_F16 ? i / 2 : i;
      results->bits[d][lane] |= form->d != RESULT_F16 ? UINT32_MAX : 0xffffu << (i % 2 * HALF_BITS);
      results->origins[d][lane] = ORIGIN_COMPUTED | (!product          ? c_marks[c].origins[lane]
                                                     : a.line[row].any ? a.line[row].origin
                                                                       : b.line[column].origin);
    }
}

void undefined_mma(Warp *warp, const Instruction *in, LaneMask mask) {
  const Mma *mma = in->decoded;
  if (!(warp->watched & WATCH_UNDEFINED)) return;
  UndefinedResults results;
  find_undefined_results(warp, &mma->form, mma->a, mma->b, mma->c, &results);
  for (int i = 0; i < mma->form.d_registers; i++)
    undefined_mark(warp, mma->d[i], 4, mask, results.bits[i], results.origins[i]);
}

/* ---- ldmatrix, stmatrix, movmatrix ---- */

/* A matrix of 8 x 8 numbers of 16 bits: two in each lane, row lane / 4. */
static void transpose_matrix(const uint32_t *bits, const uint16_t *origins, uint32_t *turned,
                             uint16_t *turned_origins) {
  for (int lane = 0; lane < LANES; lane++) {
    const int low = lane % 4 * 8 + lane / 8, high = low + 4; /* the lanes that hold its numbers */
    const int shift = lane / 4 % 2 * HALF_BITS;
    turned[lane] = (bits[low] >> shift & 0xffffu) | (bits[high] >> shift & 0xffffu) << HALF_BITS;
    turned_origins[lane] = turned[lane] & 0xffffu ? origins[low] : origins[high];
  }
}

static void load_matrices(Warp *warp, const MatrixMove *move, const uint32_t *addresses,
                          LaneMask mask) {
  enum { ROW_BYTES = 16, ROWS = 8, LANES_OF_ROW = 4 };
  for (int matrix = 0; matrix < move->matrices; matrix++) {
    uint32_t bits[LANES], turned[LANES];
    uint16_t origins[LANES], turned_origins[LANES];
    for (int row = 0; row < ROWS; row++) {
      const uint32_t address = addresses[matrix * ROWS + row];
      uint8_t *row_bits = (uint8_t *)&bits[row * LANES_OF_ROW];
      const OriginNumber origin = undefined_bits(check_of(warp), address, ROW_BYTES, row_bits);
      for (int i = 0; i < LANES_OF_ROW; i++) origins[row * LANES_OF_ROW + i] = origin;
    }
    transpose_matrix(bits, origins, turned, turned_origins);
    undefined_mark(warp, move->registers[matrix], 4, mask, move->transposed ? turned : bits,
                   move->transposed ? turned_origins : origins);
  }
}

/* A register's bits and origins. */
static void take_column(const Warp *warp, uint16_t slot, uint32_t *bits, uint16_t *origins) {
  const UndefinedColumn marks = undefined_column(warp, slot, false);
  for (int lane = 0; lane < LANES; lane++) {
    bits[lane] = marks_of(marks.bits, lane);
    origins[lane] = marks.origins ? marks.origins[lane] : 0;
  }
}

static void store_matrices(const Warp *warp, const MatrixMove *move, const uint32_t *addresses) {
  enum { WORD = 4, ROWS = 8, LANES_OF_ROW = 4 };
  for (int matrix = 0; matrix < move->matrices; matrix++) {
    uint32_t bits[LANES], turned[LANES];
    uint16_t origins[LANES], turned_origins[LANES];
    take_column(warp, move->registers[matrix], bits, origins);
    transpose_matrix(bits, origins, turned, turned_origins);
    for (int i = 0; i < ROWS * LANES_OF_ROW; i++)
      undefined_put(
          check_of(warp),
          addresses[matrix * ROWS + i / LANES_OF_ROW] + (uint32_t)(i % LANES_OF_ROW * WORD), WORD,
          (const uint8_t *)&(move->transposed ? turned : bits)[i],
          (move->transposed ? turned_origins : origins)[i]);
  }
}

static void turn_register(Warp *warp, uint16_t from, uint16_t to, LaneMask mask) {
  uint32_t bits[LANES], turned[LANES];
  uint16_t origins[LANES], turned_origins[LANES];
  take_column(warp, from, bits, origins);
  transpose_matrix(bits, origins, turned, turned_origins);
  undefined_mark(warp, to, 4, mask, turned, turned_origins);
}

/* Of a warp that has exited in part, nothing is known about the rows that are missing. */
void undefined_matrices_move(Warp *warp, const Instruction *in, const uint32_t *addresses,
                             LaneMask mask) {
  const MatrixMove *move = in->decoded;
  if (!(warp->watched & WATCH_UNDEFINED)) return;
  if (!addresses)
    turn_register(warp, in->a, in->d, mask);
  else if (!warp->exited && move->store)
    store_matrices(warp, move, addresses);
  else if (!warp->exited)
    load_matrices(warp, move, addresses, mask);
}
