/* wmma.c: wmma.load, wmma.store, wmma.mma: the older form of the tensor core instructions of a
 * warp.
 *
 * A fragment's registers are those of mma.sync, tile after tile: blocks of 8 rows (A) or columns
 * (B) by four lanes' words, and blocks of 8 x 8 for C and D. Fragments of f16 have eight
 * registers for every shape. Those beyond the matrix repeat the first ones. A product consists
 * of m16n8 products of mma.sync. m8n32 is m32n8 with everything transposed: its A is a B there,
 * its B an A. */
#include <stdio.h>
#include <string.h>

#include "base/access.h"
#include "base/gather.h"
#include "base/half.h"
#include "base/report.h"
#include "arithmetic/warp_access.h"
#include "record/record.h"
#include "base/settings.h"
#include "tensor_core/mma.h"
#include "tensor_core/tensor_core.h"
#include "tensor_core/undefined_matrices.h"
#include "state/notes.h"

typedef enum { FRAGMENT_A, FRAGMENT_B, FRAGMENT_RESULT } FragmentKind;

typedef struct {
  FragmentKind kind;
  int rows, columns; /* of this matrix */
  int bits;          /* of an element */
  int registers;     /* of the fragment */
  int distinct;      /* number of distinct ones; the others repeat these */
} Fragment;

typedef struct {
  int m, n, k;
} Shape;

/* ---- Which fragments there are ---- */
static bool shape_fits(Shape shape, NumberFormat format) {
  const bool square = shape.m == 16 && shape.n == 16;
  const bool any = square || (shape.m == 32 && shape.n == 8) || (shape.m == 8 && shape.n == 32);
  const bool small = shape.m == 8 && shape.n == 8;
  switch (format) {
    case NUMBER_F16:
    case NUMBER_BF16:
    case NUMBER_S8:
    case NUMBER_U8:
      return any && shape.k == 16;
    case NUMBER_TF32:
      return square && shape.k == 8;
    case NUMBER_S4:
    case NUMBER_U4:
      return small && shape.k == 32;
    case NUMBER_B1:
      return small && shape.k == 128;
    case NUMBER_F64:
      return small && shape.k == 4;
    default:
      return false;
  }
}

/* The same result type may belong to several formats. */
static bool result_fits(Shape shape, ResultFormat format) {
  static const NumberFormat of_float[] = {NUMBER_F16, NUMBER_TF32};
  static const NumberFormat of_half[] = {NUMBER_F16, NUMBER_F16};
  static const NumberFormat of_integer[] = {NUMBER_S8, NUMBER_S4};
  const NumberFormat *some = format == RESULT_F32   ? of_float
                             : format == RESULT_F16 ? of_half
                                                    : of_integer;
  if (format == RESULT_F64) return shape_fits(shape, NUMBER_F64);
  return shape_fits(shape, some[0]) || shape_fits(shape, some[1]) ||
         (format == RESULT_S32 && shape_fits(shape, NUMBER_B1));
}

static bool is_transposed(Shape shape) { return shape.m == 8 && shape.n == 32; }
static Shape transposed(Shape shape) { return (Shape){shape.n, shape.m, shape.k}; }
static FragmentKind transposed_kind(FragmentKind kind) {
  return kind == FRAGMENT_A ? FRAGMENT_B : kind == FRAGMENT_B ? FRAGMENT_A : kind;
}

static Fragment fragment_of(FragmentKind kind, Shape shape, int bits, bool half) {
  if (is_transposed(shape))
    return fragment_of(transposed_kind(kind), transposed(shape), bits, half);
  Fragment fragment = {.kind = kind, .bits = bits};
  fragment.rows = kind == FRAGMENT_B ? shape.k : shape.m;
  fragment.columns = kind == FRAGMENT_A ? shape.k : shape.n;
  const int register_bits = bits == 64 ? 64 : 32;
  fragment.distinct = fragment.rows * fragment.columns * bits / LANES / register_bits;
  fragment.registers = half && kind != FRAGMENT_RESULT ? 8 : fragment.distinct;
  return fragment;
}

/* The position in the matrix of number `index` of register r of a lane. */
static void place_of_element(const Fragment *fragment, int lane, int r, int index, int *row,
                             int *column) {
  const int group = lane / 4, place = lane % 4;
  const int each = fragment->bits == 64 ? 1 : 32 / fragment->bits;
  r %= fragment->distinct;
  if (fragment->kind == FRAGMENT_B) {
    const int blocks = fragment->rows / (4 * each); /* down one column of blocks */
    *row = r % blocks * 4 * each + place * each + index;
    *column = r / blocks * 8 + group;
    return;
  }
  const int tall = fragment->rows == 8 ? 1 : 2; /* blocks of 8 rows in a tile */
  if (fragment->kind == FRAGMENT_A) {
    const int blocks = fragment->columns / (4 * each);
    *row = r / (tall * blocks) * 16 + r % tall * 8 + group;
    *column = r / tall % blocks * 4 * each + place * each + index;
    return;
  }
  const int number = r * each + index; /* of C or D: two to a block */
  const int block = number / 2, across = fragment->columns / 8;
  *row = block / (tall * across) * 16 + block % tall * 8 + group;
  *column = block / tall % across * 8 + place * 2 + number % 2;
}

/* ---- wmma.load and wmma.store ---- */
typedef struct {
  Fragment fragment;
  int each;                   /* the numbers of a register, unless those are narrower than a byte */
  const MatrixPlaces *places; /* of each register and number; column-major: a column is a row */
  uint8_t outer_most, inner_most;
  bool column_major, store;
  bool adjacent; /* the numbers of a register lie side by side in memory */
  bool quads;    /* and those of four lanes after one another */
  Space space;
  uint8_t element_bytes; /* of a number, or of a register of narrower ones */
  const Operand *address, *stride;
  uint16_t slots[8];
} FragmentMove;

static uint8_t *element_at(Warp *warp, const Instruction *in, int lane, uint64_t address,
                           const FragmentMove *move, size_t bytes, uint32_t *shared, Space *where) {
  const Access access = move->store ? ACCESS_WRITE : ACCESS_READ;
  Space space = move->space;
  uint64_t inner = address;
  uint8_t *at;
  if (space == SPACE_GENERIC)
    at = generic_bytes_at(warp, in, lane, address, bytes, bytes, access, &space, &inner);
  else
    at = space_bytes_at(warp, in, lane, space, address, bytes, bytes, access);
  *where = space;
  *shared = (uint32_t)inner;
  return at;
}

/* Read before the first register is written, because that may be one of these. */
typedef struct {
  uint64_t base[LANES], pitch[LANES];
} MatrixOrigin;

/* What is moved at once: one of the numbers of a register, or all of them. */
typedef struct {
  int r, index;
  uint32_t bytes;
  unsigned shift; /* of the bits in the register */
} Portion;

/* One element of each lane: where it is. */
typedef struct {
  uint8_t *at[LANES];
  uint32_t shared[LANES]; /* its address, if it is in shared memory */
  uint64_t global[LANES]; /* its address, if it is in global memory */
  LaneMask shared_lanes, global_lanes;
} ElementPlaces;

static const MatrixPlaces *places_of(const FragmentMove *move, const Portion *portion) {
  return &move->places[portion->r * move->each + portion->index];
}

static void find_addresses(const FragmentMove *move, const Portion *portion,
                           const MatrixOrigin *origin, uint64_t *address) {
  const uint64_t bits = (uint64_t)move->fragment.bits;
  const MatrixPlaces *places = places_of(move, portion);
  for (int lane = 0; lane < LANES; lane++) {
    const uint64_t number = places->row[lane] * origin->pitch[lane] + places->place[lane];
    address[lane] = origin->base[lane] + (bits < 8 ? number * bits / 8 : number * (bits / 8));
  }
}

static bool find_elements(Warp *warp, const Instruction *in, LaneMask mask, const Portion *portion,
                          const MatrixOrigin *origin, ElementPlaces *places) {
  const FragmentMove *move = in->decoded;
  const uint32_t bytes = portion->bytes;
  find_addresses(move, portion, origin, places->global);
  for (LaneMask left = mask; left; left &= left - 1) {
    const int lane = first_lane(left);
    Space where;
    places->at[lane] = element_at(warp, in, lane, places->global[lane], move, bytes,
                                  &places->shared[lane], &where);
    if (!places->at[lane]) return false;
    note(move->store ? NOTE_WRITE : NOTE_READ, places->at[lane], bytes);
    places->shared_lanes |= (LaneMask)(where == SPACE_SHARED) << lane;
    places->global_lanes |= (LaneMask)(where == SPACE_GLOBAL) << lane;
  }
  return true;
}

/* Between a lane's register and its bytes, of which the register holds those from the shift on. */
static void move_value(Warp *warp, const FragmentMove *move, const Portion *portion, int lane,
                       uint8_t *at) {
  const uint16_t slot = move->slots[portion->r];
  if (portion->bytes == 8) {
    uint64_t *word = &column_u64(warp, slot)[lane];
    memcpy(move->store ? (void *)at : (void *)word, move->store ? (void *)word : at, 8);
    return;
  }
  uint32_t *word = &column_u32(warp, slot)[lane];
  uint32_t value = *word >> portion->shift;
  if (move->store) {
    memcpy(at, &value, portion->bytes);
    return;
  }
  value = 0;
  memcpy(&value, at, portion->bytes);
  const uint32_t kept =
      portion->bytes == 4 ? 0 : *word & ~(((1u << 8 * portion->bytes) - 1u) << portion->shift);
  *word = kept | value << portion->shift;
}

/* For the recorder and the checker. */
static void check_elements(Warp *warp, const Instruction *in, const FragmentMove *move,
                           uint32_t bytes, const ElementPlaces *places) {
  const Access access = move->store ? ACCESS_WRITE : ACCESS_READ;
  if (warp->cta->cluster->recorder && places->shared_lanes)
    record_shared(warp, in, places->shared_lanes, places->shared, bytes, access);
  if (settings()->checks && places->shared_lanes)
    check_shared(warp, in, places->shared_lanes, places->shared, bytes,
                 &(AccessKind){.access = access});
  if (places->global_lanes && warp->cta->cluster->launch->global) {
    const GlobalKind kind = {.access = access};
    check_unwritten(warp, places->global_lanes, places->global, false, bytes, access);
    check_global(warp, in, places->global_lanes, places->global, false, bytes, &kind, NULL);
  }
}

static StepResult move_portion(Warp *warp, const Instruction *in, LaneMask mask,
                               const Portion *portion, const MatrixOrigin *origin) {
  const FragmentMove *move = in->decoded;
  ElementPlaces places = {.shared_lanes = 0};
  places.global_lanes = 0;
  if (!find_elements(warp, in, mask, portion, origin, &places)) return STEP_FAULT;
  check_elements(warp, in, move, portion->bytes, &places);
  if (warp->watched & WATCH_UNDEFINED) {
    const NumberMove number = {.slot = move->slots[portion->r],
                               .bytes = portion->bytes,
                               .shift = portion->shift,
                               .shared = places.shared,
                               .shared_lanes = places.shared_lanes,
                               .global = places.global,
                               .global_lanes = places.global_lanes,
                               .store = move->store};
    undefined_move_number(warp, in, mask, &number);
  }
  for (LaneMask left = mask; left; left &= left - 1)
    move_value(warp, move, portion, first_lane(left), places.at[first_lane(left)]);
  return STEP_NEXT;
}

/* The usual load: of whole words by all lanes, which name the same matrix, in the shared memory of one
 * block. */
typedef struct {
  const uint8_t *memory; /* NULL: any other load */
  uint32_t base, pitch;  /* bytes */
} MatrixInShared;

static MatrixInShared find_in_shared(const Warp *warp, const FragmentMove *move, LaneMask mask,
                                     const MatrixOrigin *origin, bool words) {
  const uint64_t number_bytes = move->element_bytes, first = origin->base[0];
  const bool tagged = move->space == SPACE_GENERIC && (first & GENERIC_TAG_MASK) == GENERIC_SHARED;
  const uint64_t base = tagged ? first & ~GENERIC_TAG_MASK : first;
  uint64_t differing = 0;
  if (!words || move->store || mask != UINT32_MAX || !(tagged || move->space == SPACE_SHARED) ||
      move->fragment.bits < 8 || notes.wanted || warp->cta->cluster->recorder)
    return (MatrixInShared){NULL, 0, 0};
  for (int lane = 0; lane < LANES; lane++)
    differing |= (origin->base[lane] ^ first) | (origin->pitch[lane] ^ origin->pitch[0]);
  const uint64_t pitch = origin->pitch[0] * number_bytes;
  const uint64_t end = base + move->outer_most * pitch + (move->inner_most + 1u) * number_bytes;
  const Cta *cta = end >> 32 ? NULL : shared_address_cta(warp, (uint32_t)base);
  const bool inside = cta && SHARED_RANK((uint32_t)base) == SHARED_RANK((uint32_t)end - 1) &&
                      SHARED_OFFSET((uint32_t)end - 1) < cta->shared_bytes;
  if (differing || !inside) return (MatrixInShared){NULL, 0, 0};
  return (MatrixInShared){cta->shared, (uint32_t)base, (uint32_t)pitch};
}

/* Where the words of each lane's registers are. */
static SharedMatrix words_of_matrix(const FragmentMove *move, const MatrixInShared *matrix) {
  const uint32_t row_bytes = (move->inner_most + 1u) * move->element_bytes;
  return (SharedMatrix){.address = matrix->base,
                        .pitch = matrix->pitch,
                        .rows = move->outer_most + 1u,
                        .words = row_bytes / (uint32_t)sizeof(uint32_t),
                        .number_bytes = move->element_bytes,
                        .places = move->places,
                        .count = (uint32_t)move->fragment.distinct,
                        .apart = (uint32_t)move->each};
}

static void gather_words(const FragmentMove *move, const uint8_t *memory, const SharedMatrix *from,
                         int r, uint32_t *column) {
  enum { QUAD = 4 };
  const MatrixPlaces *places = &move->places[r * move->each];
  LANE_ARRAY uint32_t words[LANES];
  const uint8_t *start = memory + SHARED_OFFSET(from->address);
  for (int lane = 0; lane < LANES && move->quads; lane += QUAD)
    memcpy(column + lane,
           start + places->row[lane] * from->pitch + places->place[lane] * from->number_bytes,
           QUAD * sizeof *column);
  if (move->quads) return;
  matrix_addresses(from, (uint32_t)r, words);
  for (int lane = 0; lane < LANES; lane++)
    words[lane] = SHARED_OFFSET(words[lane]) / sizeof(uint32_t);
  gather(column, (const uint32_t *)(const void *)memory, words);
}

static void load_words(Warp *warp, const Instruction *in, const Portion *portion,
                       const MatrixInShared *matrix) {
  const FragmentMove *move = in->decoded;
  const SharedMatrix whole = words_of_matrix(move, matrix);
  LANE_ARRAY uint32_t addresses[LANES];
  matrix_addresses(&whole, (uint32_t)portion->r, addresses);
  if (settings()->checks)
    check_shared(warp, in, UINT32_MAX, addresses, sizeof(uint32_t),
                 &(AccessKind){.access = ACCESS_READ});
  if (warp->watched & WATCH_UNDEFINED) {
    const NumberMove number = {.slot = move->slots[portion->r],
                               .bytes = sizeof(uint32_t),
                               .shared = addresses,
                               .shared_lanes = UINT32_MAX};
    undefined_move_number(warp, in, UINT32_MAX, &number);
  }
  gather_words(move, matrix->memory, &whole, portion->r, column_u32(warp, move->slots[portion->r]));
}

/* The whole fragment at once. False: nothing was done. */
static bool load_matrix(Warp *warp, const Instruction *in, const MatrixInShared *matrix) {
  const FragmentMove *move = in->decoded;
  if (!matrix->memory || (warp->watched & WATCH_UNDEFINED)) return false;
  const SharedMatrix whole = words_of_matrix(move, matrix);
  if (settings()->checks && !check_shared_matrix(warp, in, &whole)) return false;
  for (int r = 0; r < move->fragment.registers; r++)
    gather_words(move, matrix->memory, &whole, r, column_u32(warp, move->slots[r]));
  return true;
}

/* May a word be moved at once: a register, whose numbers may be smaller? Those at addresses that are too
 * odd for that move one by one. */
static bool moves_words(const FragmentMove *move, LaneMask mask, const MatrixOrigin *origin) {
  const unsigned number_bytes = move->element_bytes;
  uint64_t bits = 0;
  if (!move->adjacent && number_bytes != sizeof(uint32_t)) return false;
  for (LaneMask left = mask; left; left &= left - 1)
    bits |= origin->base[first_lane(left)] | origin->pitch[first_lane(left)] * number_bytes;
  return bits % sizeof(uint32_t) == 0;
}

/* A register that repeats another one has read the same bytes. That need not be looked at again, unless there
 * was something to report, or somebody watches. */
static bool repeats_quietly(const Warp *warp, const FragmentMove *move, LaneMask mask, int r,
                            uint64_t findings) {
  return r >= move->fragment.distinct && mask == UINT32_MAX && !notes.wanted && !warp->watched &&
         !warp->cta->cluster->recorder && findings_made() == findings;
}

static StepResult move_register(Warp *warp, const Instruction *in, LaneMask mask, int r, bool words,
                                const MatrixOrigin *origin) {
  const FragmentMove *move = in->decoded;
  const uint32_t bytes = words ? sizeof(uint32_t) : move->element_bytes;
  for (int index = 0; index < (words ? 1 : move->each); index++) {
    const Portion portion = {r, index, bytes, (unsigned)index * bytes * 8};
    if (move_portion(warp, in, mask, &portion, origin) != STEP_NEXT) return STEP_FAULT;
  }
  return STEP_NEXT;
}

static MatrixOrigin origin_of_matrix(const Warp *warp, const FragmentMove *move) {
  MatrixOrigin origin;
  for (int lane = 0; lane < LANES; lane++) {
    origin.base[lane] = lane_address(warp, move->address, lane);
    origin.pitch[lane] = move->stride         ? (uint32_t)lane_value(warp, move->stride, lane)
                         : move->column_major ? (uint32_t)move->fragment.rows
                                              : (uint32_t)move->fragment.columns;
  }
  return origin;
}

static StepResult run_fragment_move(Warp *warp, const Instruction *in, LaneMask mask) {
  const FragmentMove *move = in->decoded;
  const int count = move->store ? move->fragment.distinct : move->fragment.registers;
  const MatrixOrigin origin = origin_of_matrix(warp, move);
  const bool words = moves_words(move, mask, &origin);
  const bool repeats = count > move->fragment.distinct;
  const uint64_t findings = repeats ? findings_made() : 0;
  const MatrixInShared matrix = find_in_shared(warp, move, mask, &origin, words);
  uint32_t loaded[8][LANES];
  emit_lanes_met(warp, in, mask, false);
  if (load_matrix(warp, in, &matrix)) return STEP_NEXT;
  for (int r = 0; r < count; r++) {
    if (repeats_quietly(warp, move, mask, r, findings)) {
      memcpy(column_u32(warp, move->slots[r]), loaded[r % move->fragment.distinct], sizeof *loaded);
      continue;
    }
    if (matrix.memory)
      load_words(warp, in, &(Portion){r, 0, sizeof(uint32_t), 0}, &matrix);
    else if (move_register(warp, in, mask, r, words, &origin) != STEP_NEXT)
      return STEP_FAULT;
    if (repeats) memcpy(loaded[r], column_u32(warp, move->slots[r]), sizeof *loaded);
  }
  return STEP_NEXT;
}

static void make_places(Decoder *decoder, FragmentMove *move) {
  const int bits = move->fragment.bits, registers = move->fragment.registers;
  move->each = bits < 8 || bits >= 32 ? 1 : 32 / bits;
  MatrixPlaces *places =
      decoder_allocate(decoder, (size_t)(registers * move->each) * sizeof *places);
  for (int r = 0; r < registers; r++)
    for (int index = 0; index < move->each; index++)
      for (int lane = 0; lane < LANES; lane++) {
        int row, column;
        place_of_element(&move->fragment, lane, r, index, &row, &column);
        MatrixPlaces *at = &places[r * move->each + index];
        at->row[lane] = (uint8_t)(move->column_major ? column : row);
        at->place[lane] = (uint8_t)(move->column_major ? row : column);
        if (at->row[lane] > move->outer_most) move->outer_most = at->row[lane];
        if (at->place[lane] > move->inner_most) move->inner_most = at->place[lane];
      }
  move->places = places;
}

/* Do the words of each four lanes lie side by side in a row? */
static bool has_quads(const FragmentMove *move) {
  const int word_numbers = (int)sizeof(uint32_t) / move->element_bytes;
  bool all = move->adjacent || move->element_bytes == sizeof(uint32_t);
  for (int i = 0; all && i < move->fragment.registers * move->each; i += move->each)
    for (int lane = 0; lane < LANES; lane++) {
      const MatrixPlaces *places = &move->places[i];
      const int first = lane & ~3;
      all &= places->row[lane] == places->row[first] &&
             places->place[lane] == places->place[first] + (lane - first) * word_numbers;
    }
  return all;
}

static bool read_shape(Form *form, Shape *shape) {
  const char *word = form_prefixed(form, "m");
  char rest = 0;
  if (word && sscanf(word, "m%2dn%2dk%3d%c", &shape->m, &shape->n, &shape->k, &rest) == 3)
    return true;
  return form_fail(form, "the shape should look like m16n16k16");
}

bool decode_wmma_move(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  static const char *const matrices[] = {"a", "b", "c", "d", NULL};
  Form form = form_begin(decoder, statement, out, 2);
  FragmentMove *move = decoder_allocate(decoder, sizeof *move);
  move->store = strcmp(statement->modifiers[1], "store") == 0;
  const int matrix = form_choose(&form, matrices);
  if (matrix < 0 || move->store != (matrix == 3))
    return form_fail(&form, "there are wmma.load.a, .b and .c and wmma.store.d");
  if (!form_take(&form, "sync") || !form_take(&form, "aligned"))
    return form_fail(&form, "wmma needs .sync.aligned");
  move->column_major = form_take(&form, "col");
  if (!move->column_major && !form_take(&form, "row"))
    return form_fail(&form, "the layout must be .row or .col");
  Shape shape;
  if (!read_shape(&form, &shape)) return false;
  move->space = form_space(&form);
  if (move->space != SPACE_GENERIC && move->space != SPACE_GLOBAL && move->space != SPACE_SHARED)
    return form_fail(&form, "wmma works on .global and .shared");
  const char *word = statement->modifiers[statement->modifier_count - 1];
  form_take(&form, word);
  NumberFormat number = NUMBER_F16;
  ResultFormat result = RESULT_F32;
  const bool known = matrix < 2 ? read_number_format(word, &number) && shape_fits(shape, number)
                                : read_result_format(word, &result) && result_fits(shape, result);
  if (!known) return form_fail(&form, "this shape does not exist for this type");
  const int result_bits = result == RESULT_F16 ? 16 : result == RESULT_F64 ? 64 : 32;
  move->fragment =
      fragment_of((FragmentKind)(matrix < 2 ? matrix : 2), shape,
                  matrix < 2 ? (int)number_bits(number) : result_bits, number == NUMBER_F16);
  const int bits = move->fragment.bits;
  if (is_transposed(shape)) move->column_major = !move->column_major;
  make_places(decoder, move);
  move->adjacent = move->each > 1 && move->column_major == (move->fragment.kind == FRAGMENT_B);
  if (bits < 8 && move->column_major != (matrix == 1))
    return form_fail(&form, "numbers of less than a byte: A is .row, B is .col");
  move->element_bytes = (uint8_t)(bits < 8 ? 4 : bits / 8);
  move->quads = bits <= 32 && has_quads(move);
  if (!form_operands(&form, 2, 3)) return false;
  const int registers = move->store ? 1 : 0;
  Type type = matrix < 2 ? registers_of(number) : registers_of_result(result);
  if (type == TYPE_B32) type = TYPE_U32;
  if (!register_list(&form, registers, type, move->fragment.registers, !move->store, move->slots))
    return false;
  move->address = form_operand(&form, 1 - registers);
  if (move->address->kind != OPERAND_ADDRESS) return form_fail(&form, "an address is missing");
  if (out->operand_count == 3) {
    move->stride = form_operand(&form, 2);
    if (move->stride->kind != OPERAND_REGISTER)
      return form_fail(&form, "the stride must be a register or a literal");
  }
  out->decoded = move;
  return form_end(&form, run_fragment_move);
}

/* ---- wmma.mma ---- */
typedef struct {
  Shape shape;
  MmaForm tile;
  ResultFormat c, d; /* as named by the instruction; the tile uses d for both, or f32 */
  uint16_t a_slot[8], b_slot[8], c_slot[8], d_slot[8];
} Product;

/* An f16 C whose D is f32 is widened, and an f16 D of an f32 C narrowed. */
static bool widens(const Product *product) {
  return product->c == RESULT_F16 && product->tile.c == RESULT_F32;
}
static bool narrows(const Product *product) {
  return product->d == RESULT_F16 && product->tile.d == RESULT_F32;
}

static void widen_column(const uint32_t *halves, int half, uint32_t *wide) {
  for (int lane = 0; lane < LANES; lane++)
    wide[lane] = half_bits(float_of_half((uint16_t)(halves[lane] >> half * 16)));
}

static int tiles_down(const Product *product) {
  return product->shape.m > 16 ? product->shape.m / 16 : 1;
}
static int tiles_across(const Product *product) { return product->shape.n / 8; }

/* All m16n8 (or m8n8) products. All sources are read before a result is written, because D may share
 * registers with them. */
static void multiply_all(Warp *warp, const Product *product, void *const *d) {
  const MmaForm *tile = &product->tile;
  const int down = tiles_down(product), across = tiles_across(product);
  const void *a[8], *b[8], *c[8];
  uint32_t wide[8][LANES];
  for (int i = 0; i < down * tile->a_registers; i++) a[i] = column_u32(warp, product->a_slot[i]);
  for (int i = 0; i < across * tile->b_registers; i++) b[i] = column_u32(warp, product->b_slot[i]);
  for (int i = 0; i < down * across * tile->c_registers; i++) {
    if (!widens(product)) {
      c[i] = column_u32(warp, product->c_slot[i]);
      continue;
    }
    widen_column(column_u32(warp, product->c_slot[i / 2]), i % 2, wide[i]);
    c[i] = wide[i];
  }
  if (tile->a == NUMBER_F64)
    mma_compute(tile, a, b, c, NULL, d);
  else
    mma_compute_tiles(tile, down, across, a, b, c, NULL, d);
}

/* The same for the undefined bits. */
static void follow_undefined(Warp *warp, const Product *product, LaneMask mask) {
  const MmaForm *tile = &product->tile;
  const bool halves_in = widens(product), halves_out = narrows(product);
  const int across = tiles_across(product), tiles = tiles_down(product) * across;
  UndefinedResults all = {0}, one;
  for (int t = 0; t < tiles; t++) {
    const void *c_bits[8];
    uint16_t c_slot[8];
    uint32_t wide[8][LANES];
    const int first = t * tile->c_registers;
    for (int i = 0; i < tile->c_registers; i++) {
      c_slot[i] = product->c_slot[halves_in ? (first + i) / 2 : first + i];
      const uint32_t *bits = check_undefined_column(warp, c_slot[i]);
      for (int lane = 0; halves_in && bits && lane < LANES; lane++)
        wide[i][lane] = bits[lane] >> ((first + i) % 2 * 16) & 0xffffu;
      c_bits[i] = halves_in && bits ? wide[i] : bits;
    }
    undefined_product(warp, tile, product->a_slot + t / across * tile->a_registers,
                      product->b_slot + t % across * tile->b_registers, c_bits, c_slot, &one);
    for (int i = 0; i < tile->d_registers; i++)
      for (int lane = 0; lane < LANES; lane++) {
        const int d = t * tile->d_registers + i, to = halves_out ? d / 2 : d;
        const uint64_t bits = one.bits[i][lane];
        all.bits[to][lane] |= halves_out ? (bits & 0xffffu) << (d % 2 * 16) : bits;
        if (bits) all.origins[to][lane] = one.origins[i][lane];
      }
  }
  const int registers = tiles * tile->d_registers / (halves_out ? 2 : 1);
  for (int i = 0; i < registers; i++)
    undefined_set_result(warp, product->d_slot[i], tile->d == RESULT_F64 ? 8 : 4, mask, all.bits[i],
                         all.origins[i]);
}

/* The results of the lanes in the mask, which may be f32 where D is f16. */
static void set_results(Warp *warp, const Product *product, LaneMask mask, int registers,
                        uint64_t (*results)[LANES]) {
  const MmaForm *tile = &product->tile;
  for (int i = 0; i < registers; i++)
    for (LaneMask left = mask; left; left &= left - 1) {
      const int lane = first_lane(left);
      const uint32_t value = ((const uint32_t *)(const void *)results[i])[lane];
      if (tile->d == RESULT_F64) {
        column_u64(warp, product->d_slot[i])[lane] = results[i][lane];
      } else if (narrows(product)) {
        uint32_t *word = &column_u32(warp, product->d_slot[i / 2])[lane];
        const uint32_t half = half_of_float(half_float(value));
        *word = i % 2 ? (*word & 0xffffu) | half << 16 : (*word & 0xffff0000u) | half;
      } else {
        column_u32(warp, product->d_slot[i])[lane] = value;
      }
    }
}

static StepResult run_wmma(Warp *warp, const Instruction *in, LaneMask mask) {
  const Product *product = in->decoded;
  const MmaForm *tile = &product->tile;
  const bool at_once = mask == UINT32_MAX && !narrows(product);
  const int registers = tiles_down(product) * tiles_across(product) * tile->d_registers;
  uint64_t results[8][LANES];
  void *d[8];
  if (warp->watched & WATCH_UNDEFINED) follow_undefined(warp, product, mask);
  for (int i = 0; i < registers; i++)
    d[i] = at_once ? (void *)column_u32(warp, product->d_slot[i]) : (void *)results[i];
  multiply_all(warp, product, d);
  if (warp->cta->cluster->recorder)
    record_multiply_adds(
        warp, (uint64_t)product->shape.m * (uint64_t)product->shape.n * (uint64_t)product->shape.k,
        number_bits(tile->a), false);
  if (!at_once) set_results(warp, product, mask, registers, results);
  return STEP_NEXT;
}

/* The mma.sync that computes one tile of it. Returns NULL or an error message. */
static const char *read_tile(const PtxStatement *statement, Shape shape, int at, Product *product) {
  const char *const *words = statement->modifiers + at;
  int count = statement->modifier_count - at;
  const char *modifiers[12] = {"sync", "aligned"};
  int used = 2, word = 0;
  char name[32];
  snprintf(name, sizeof name, "m%dn8k%d", shape.n == 8 && shape.m == 8 ? 8 : 16, shape.k);
  modifiers[used++] = name;
  modifiers[used++] = "row";
  modifiers[used++] = "col";
  const char *operation = NULL;
  if (count > 2 && strcmp(words[1], "popc") == 0) {
    operation = words[0];
    word = 2;
  }
  if (count > 4 && strcmp(words[count - 1], "rn") == 0) count--; /* f64 always rounds to nearest */
  const bool saturates = count > word && strcmp(words[count - 1], "satfinite") == 0;
  if (saturates) modifiers[used++] = "satfinite";
  const int types = count - word - saturates;
  if (types != 2 && types != 4) return "the types should be D and C, or D, A, B and C";
  const char *a = types == 2 ? "f16" : words[word + 1], *b = types == 2 ? "f16" : words[word + 2];
  if (!read_result_format(words[word], &product->d) ||
      !read_result_format(words[word + types - 1], &product->c))
    return "the type of D or C is not known";
  const bool mixed =
      product->c != product->d && (product->c == RESULT_F16 || product->d == RESULT_F16);
  modifiers[used++] = mixed ? "f32" : words[word];
  modifiers[used++] = a;
  modifiers[used++] = b;
  modifiers[used++] = mixed ? "f32" : words[word + types - 1];
  if (operation) {
    modifiers[used++] = operation;
    modifiers[used++] = "popc";
  }
  const char *wrong = mma_read_form(modifiers, used, false, &product->tile);
  if (wrong) return wrong;
  if (saturates && product->tile.d != RESULT_S32) return ".satfinite is for integers";
  return shape_fits(shape, product->tile.a) ? NULL : "this shape does not exist for these types";
}

bool decode_wmma(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  Form form = form_begin(decoder, statement, out, MAX_MODIFIERS);
  Product *product = decoder_allocate(decoder, sizeof *product);
  const char *const *words = statement->modifiers + 2;
  const int count = statement->modifier_count - 2;
  /* for b1, .op.popc comes before .sync */
  const int popc = count > 2 && strcmp(words[1], "popc") == 0 ? 2 : 0;
  if (count < popc + 7)
    return form_fail(&form, "expected wmma.mma.sync.aligned, two layouts, a shape and types");
  if (strcmp(words[popc], "sync") != 0 || strcmp(words[popc + 1], "aligned") != 0)
    return form_fail(&form, "wmma needs .sync.aligned");
  for (int i = 2; i < 4; i++)
    if (strcmp(words[popc + i], "row") != 0 && strcmp(words[popc + i], "col") != 0)
      return form_fail(&form, "the layouts must be .row or .col");
  char rest = 0;
  Shape *shape = &product->shape;
  if (sscanf(words[popc + 4], "m%2dn%2dk%3d%c", &shape->m, &shape->n, &shape->k, &rest) != 3)
    return form_fail(&form, "the shape should look like m16n16k16");
  /* The modifiers after the shape, with .op.popc, if present, moved next to it. */
  PtxStatement tail = {.modifier_count = 0};
  for (int i = 0; i < popc; i++) tail.modifiers[tail.modifier_count++] = words[i];
  for (int i = popc + 5; i < count; i++) tail.modifiers[tail.modifier_count++] = words[i];
  const char *wrong = read_tile(&tail, *shape, 0, product);
  if (wrong) return form_fail(&form, wrong);
  MmaForm *tile = &product->tile;
  if (tile->a == NUMBER_TF32) tile->rule.step = 4; /* ptxas splits it into two products */
  const int bits = (int)number_bits(tile->a);
  const bool half = tile->a == NUMBER_F16;
  const Fragment a = fragment_of(FRAGMENT_A, *shape, bits, half);
  const Fragment b = fragment_of(FRAGMENT_B, *shape, bits, half);
  const int wide = tile->d == RESULT_F64 ? 64 : 32;
  const Fragment c =
      fragment_of(FRAGMENT_RESULT, *shape, product->c == RESULT_F16 ? 16 : wide, false);
  const Fragment d =
      fragment_of(FRAGMENT_RESULT, *shape, product->d == RESULT_F16 ? 16 : wide, false);
  const bool swapped = is_transposed(*shape);
  if (!form_operands(&form, 4, 4) ||
      !register_list(&form, 0, registers_of_result(tile->d), d.registers, true, product->d_slot) ||
      !register_list(&form, 1, registers_of(tile->a), a.registers, false,
                     swapped ? product->b_slot : product->a_slot) ||
      !register_list(&form, 2, registers_of(tile->b), b.registers, false,
                     swapped ? product->a_slot : product->b_slot) ||
      !register_list(&form, 3, registers_of_result(product->c), c.registers, false,
                     product->c_slot))
    return false;
  if (swapped) *shape = transposed(*shape);
  out->decoded = product;
  return form_end(&form, run_wmma);
}
