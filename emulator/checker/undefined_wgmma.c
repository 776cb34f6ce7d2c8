/* undefined_wgmma.c: undefined bits in the operands and results of a wgmma. */
#include <string.h>

#include "checker/undefined_matrices.h"

enum { ROWS = 16, MAX_COLUMNS = 256, CHUNK = 16, K_BYTES = 64, COLUMNS_OF_ORIGIN = 8 };

/* The rows of A and the columns of B: whether they are undefined, and of integers which bytes along
 * K are, and which are zero. */
typedef struct {
  bool undefined[MAX_COLUMNS];
  uint16_t origin[MAX_COLUMNS];
  bool marks[MAX_COLUMNS][K_BYTES], zero[MAX_COLUMNS][K_BYTES];
} Lines;

static uint16_t origin_of_element(Warp *warp, const Instruction *in, Side side, int line,
                                  uint32_t address, const UndefinedBytes *found) {
  if (!found->unwritten) return found->origin;
  const int index =
      side == SIDE_A ? (int)(warp->index % 4) * ROWS + line : line / COLUMNS_OF_ORIGIN;
  const OriginPlace place = {
      .part = side == SIDE_A ? PART_A : PART_B,
      .index = (uint32_t)index,
      .rank = SHARED_RANK(address),
      .offset = SHARED_OFFSET(address) + (uint32_t)__builtin_ctz(found->unwritten)};
  return undefined_origin(warp, in, 0, &place);
}

/* One chunk: of line `line` along K (K-major), or of several lines at one depth (MN-major). */
static void take_chunk(Warp *warp, const Instruction *in, const WgmmaForm *form, Side side,
                       uint32_t offset, int line, int k_byte, bool mn_major, Lines *lines) {
  const uint32_t address = warp->cta->rank << 24 | offset;
  const UndefinedBytes found = check_undefined_bytes(warp, address, CHUNK);
  const uint32_t bytes = found.unwritten | found.undefined;
  const int width = mn_major ? (int)number_bits(form->a) / 8 : CHUNK; /* bytes of one line */
  if (offset + CHUNK > warp->cta->shared_bytes) return;
  for (int i = 0; i < CHUNK; i++) {
    const int at = line + i / width;
    if (!mn_major) {
      lines->zero[at][k_byte + i] = warp->cta->shared[offset + (uint32_t)i] == 0;
      lines->marks[at][k_byte + i] = bytes >> i & 1;
    }
    if (!(bytes >> i & 1) || lines->undefined[at]) continue;
    lines->undefined[at] = true;
    lines->origin[at] = origin_of_element(warp, in, side, at, address, &found);
  }
}

static void take_shared(Warp *warp, const Instruction *in, const WgmmaIssue *issue, Side side,
                        Lines *lines) {
  const WgmmaForm *form = issue->form;
  const bool is_a = side == SIDE_A, mn_major = is_a ? form->a_mn_major : form->b_mn_major;
  const MatrixDescriptor matrix =
      matrix_descriptor(is_a ? issue->descriptor_a : issue->descriptor_b);
  ChunkCount count = wgmma_chunks(form, side);
  const int quarter = (int)(warp->index % 4);
  const int first_outer = is_a && !mn_major ? quarter * ROWS : 0;
  const int first_chunk = is_a && mn_major ? quarter * 2 : 0;
  if (is_a && mn_major) count.chunks = 2;
  if (is_a && !mn_major) count.outer = ROWS;
  const int each = CHUNK * 8 / (int)number_bits(form->a);
  for (int outer = 0; outer < count.outer; outer++)
    for (int chunk = 0; chunk < count.chunks; chunk++)
      take_chunk(warp, in, form, side,
                 chunk_offset(&matrix, mn_major, first_outer + outer, first_chunk + chunk),
                 mn_major ? chunk * each : outer, mn_major ? outer : chunk * CHUNK, mn_major,
                 lines);
}

/* A in registers: rows lane / 4 and, in odd registers, 8 more. */
static void take_registers(const Warp *warp, const uint16_t *slots, Lines *rows) {
  for (int r = 0; r < 4; r++) {
    const UndefinedColumn column = undefined_column(warp, slots[r], false);
    const uint8_t *marks = column.bits;
    const uint8_t *values = (const uint8_t *)column_u32(warp, slots[r]);
    for (int lane = 0; lane < LANES; lane++) {
      const int row = lane / 4 + r % 2 * 8, first = (r / 2 * 4 + lane % 4) * 4;
      for (int i = 0; i < 4; i++) {
        rows->zero[row][first + i] = values[lane * 4 + i] == 0;
        if (!marks || !marks[lane * 4 + i]) continue;
        rows->marks[row][first + i] = rows->undefined[row] = true;
        rows->origin[row] = column.origins[lane];
      }
    }
  }
}

static bool is_undefined(const WgmmaForm *form, const Lines *a, const Lines *b, int row,
                         int column) {
  if (!a->undefined[row] && !b->undefined[column]) return false;
  if (form->d != RESULT_S32) return true;
  for (int k = 0; k < K_BYTES / 2; k++) {
    const bool in_a = a->marks[row][k], in_b = b->marks[column][k];
    if ((in_a && (in_b || !b->zero[column][k])) || (in_b && !a->zero[row][k])) return true;
  }
  return false;
}

/* D's registers: of eight columns, lane t of a row's four holds 2t and 2t + 1. */
static void set_results(Warp *warp, const WgmmaIssue *issue, const Lines *a, const Lines *b) {
  const WgmmaForm *form = issue->form;
  const bool half = form->d == RESULT_F16;
  for (int r = 0; r < form->d_registers; r++) {
    uint32_t bits[LANES] = {0};
    uint16_t origins[LANES] = {0};
    const UndefinedColumn before = undefined_column(warp, issue->d_slot[r], false);
    const uint32_t *added = issue->scale_d ? before.bits : NULL;
    for (int lane = 0; lane < LANES; lane++) {
      if (added && added[lane]) {
        bits[lane] = added[lane];
        origins[lane] = before.origins[lane];
      }
      const int block = half ? r / 2 : r / 4, row = lane / 4 + (half ? r % 2 : r / 2 % 2) * 8;
      for (int i = 0; i < (half ? 2 : 1); i++) {
        const int column = block * 8 + lane % 4 * 2 + (half ? i : r % 2);
        if (!is_undefined(form, a, b, row, column)) continue;
        bits[lane] |= half ? 0xffffu << (i * 16) : UINT32_MAX;
        origins[lane] = ORIGIN_COMPUTED | (a->undefined[row] ? a->origin[row] : b->origin[column]);
      }
    }
    undefined_mark(warp, issue->d_slot[r], 4, UINT32_MAX, bits, origins);
  }
}

static bool any_marked(const Warp *warp, const uint16_t *slots, int count) {
  for (int r = 0; r < count; r++)
    if (undefined_column(warp, slots[r], false).lanes) return true;
  return false;
}

/* Which of the rows a copy writes is not looked at. */
static void take_unordered(uint16_t origin, Lines *rows) {
  for (int row = 0; row < ROWS; row++) {
    if (rows->undefined[row]) continue;
    rows->undefined[row] = true;
    rows->origin[row] = origin;
    memset(rows->marks[row], true, sizeof rows->marks[row]);
  }
}

void undefined_wgmma(Warp *warp, const Instruction *in, const WgmmaIssue *issue) {
  if (!issue->undefined_tiles && !issue->unordered &&
      !(issue->a_slot && any_marked(warp, issue->a_slot, 4))) {
    /* What the product is added to decides. */
    for (int r = 0; r < issue->form->d_registers && !issue->scale_d; r++)
      undefined_mark(warp, issue->d_slot[r], 4, UINT32_MAX, NULL, NULL);
    return;
  }
  Lines a, b;
  memset(&a, 0, sizeof a);
  memset(&b, 0, sizeof b);
  if (issue->a_slot)
    take_registers(warp, issue->a_slot, &a);
  else
    take_shared(warp, in, issue, SIDE_A, &a);
  take_shared(warp, in, issue, SIDE_B, &b);
  if (issue->unordered) take_unordered(issue->unordered, &a);
  bool any = (warp->watched & WATCH_UNDEFINED) != 0;
  for (int i = 0; i < MAX_COLUMNS && !any; i++) any = a.undefined[i] || b.undefined[i];
  if (any) set_results(warp, issue, &a, &b);
}
