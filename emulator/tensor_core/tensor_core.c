/* tensor_core.c: decodes the tensor core instructions of one warp: mma.sync, ldmatrix, stmatrix,
 * movmatrix. The arithmetic is in mma.c. wgmma is in wgmma.c. */
#include "tensor_core/tensor_core.h"

#include <string.h>

#include "arithmetic/observe.h"
#include "base/access.h"
#include "base/events.h"
#include "base/fault.h"
#include "tensor_core/mma.h"

Type registers_of(NumberFormat format) {
  return format == NUMBER_F16    ? TYPE_F16X2
         : format == NUMBER_BF16 ? TYPE_BF16X2
         : format == NUMBER_TF32 ? TYPE_TF32
                                 : TYPE_B32;
}

Type registers_of_result(ResultFormat format) {
  static const Type types[] = {
      [RESULT_F32] = TYPE_F32, [RESULT_F16] = TYPE_F16X2, [RESULT_S32] = TYPE_S32};
  return types[format];
}

bool register_list(Form *form, int index, Type type, int count, bool written, uint16_t *slots) {
  const Operand *operand = form_operand(form, index);
  if (form->failed) return false;
  const Operand *elements = operand->kind == OPERAND_VECTOR ? operand->elements : operand;
  const int have = operand->kind == OPERAND_VECTOR ? operand->count : 1;
  if (have != count)
    return form_fail(form, "operand %d has %d registers, this form needs %d", index + 1, have,
                     count);
  for (int i = 0; i < count; i++) {
    if (written && (elements[i].kind != OPERAND_REGISTER || elements[i].constant))
      return form_fail(form, "a destination must be a register");
    if (elements[i].constant && elements[i].floating)
      return form_fail(form, "a floating-point literal is no matrix");
    const Type bits = type == TYPE_B64 ? TYPE_B64 : TYPE_B32;
    slots[i] = form_value(form, &elements[i], elements[i].constant ? bits : type);
  }
  return !form->failed;
}

bool literal_choice(Form *form, int index, int64_t first, int64_t second, const char *what,
                    int64_t *value) {
  const Operand *operand = form_operand(form, index);
  if (form->failed) return false;
  *value = (int64_t)operand->constant_value;
  if (operand->kind == OPERAND_REGISTER && operand->constant && !operand->floating &&
      (*value == first || *value == second))
    return true;
  return form_fail(form, "operand %d (%s) must be %lld or %lld", index + 1, what, (long long)first,
                   (long long)second);
}

/* ---- mma ---- */

static StepResult run_mma(Warp *warp, const Instruction *in, LaneMask mask) {
  const Mma *mma = in->decoded;
  const MmaForm *form = &mma->form;
  const void *a[4], *b[2], *c[4];
  void *d[4];
  uint32_t spare[4][LANES];
  emit_lanes_met(warp, in, mask, false);
  for (int i = 0; i < form->a_registers; i++) a[i] = column_u32(warp, mma->a[i]);
  for (int i = 0; i < form->b_registers; i++) b[i] = column_u32(warp, mma->b[i]);
  for (int i = 0; i < form->c_registers; i++) c[i] = column_u32(warp, mma->c[i]);
  for (int i = 0; i < form->d_registers; i++)
    d[i] = mask == ~0u ? (void *)column_u32(warp, mma->d[i]) : (void *)spare[i];
  emit_mma(warp, in, mask);
  mma_compute(form, a, b, c, d);
  if (mask != ~0u)
    for (int i = 0; i < form->d_registers; i++)
      for (int lane = 0; lane < LANES; lane++)
        if ((mask >> lane) & 1u) column_u32(warp, mma->d[i])[lane] = spare[i][lane];
  return STEP_NEXT;
}

FORM_DECODER(decode_mma, MAX_MODIFIERS) {
  Mma *mma = decoder_allocate(decoder, sizeof *mma);
  const char *wrong =
      mma_read_form(statement->modifiers + 1, statement->modifier_count - 1, &mma->form);
  if (wrong != NULL) return decoder_error(decoder, statement, "%s", wrong);
  MmaForm *shape = &mma->form;
  const Type c = registers_of_result(shape->c), d = registers_of_result(shape->d);
  if (!form_operands(&form, 4, 4)) return false;
  if (!register_list(&form, 0, d, shape->d_registers, true, mma->d) ||
      !register_list(&form, 1, registers_of(shape->a), shape->a_registers, false, mma->a) ||
      !register_list(&form, 2, registers_of(shape->b), shape->b_registers, false, mma->b) ||
      !register_list(&form, 3, c, shape->c_registers, false, mma->c))
    return false;
  out->decoded = mma;
  return form_end(&form, run_mma);
}

/* ---- ldmatrix, stmatrix, movmatrix ---- */

/* An 8 x 8 matrix of 16-bit numbers has two per lane: row lane / 4, columns 2 (lane % 4) and the
 * next. */
static void transpose(const uint32_t *from, uint32_t *to) {
  for (int lane = 0; lane < LANES; lane++) {
    const int row = lane / 4, column = lane % 4 * 2;
    const int shift = row % 2 * 16;
    const uint32_t low = from[column * 4 + row / 2] >> shift & 0xffffu;
    const uint32_t high = from[(column + 1) * 4 + row / 2] >> shift & 0xffffu;
    to[lane] = low | high << 16;
  }
}

/* Where the rows are that the lanes below `rows` name. False: a fault. The row of a thread that has exited, which is
 * a finding, is in `nowhere`. */
static bool find_rows(Warp *warp, const Instruction *in, int rows, uint8_t nowhere[LANES][16],
                      uint8_t **at, uint32_t *addresses) {
  const MatrixMove *move = in->decoded;
  const Access access = move->store ? ACCESS_WRITE : ACCESS_READ;
  for (int lane = 0; lane < rows; lane++) {
    if (warp->exited >> lane & 1) {
      at[lane] = memset(nowhere[lane], 0, sizeof nowhere[lane]);
      continue;
    }
    const uint64_t address = lane_address(warp, move->address, lane);
    if (move->generic) {
      Space space;
      uint64_t inner;
      at[lane] = generic_bytes_at(warp, in, lane, address, 16, 16, access, &space, &inner);
      if (at[lane] == NULL) return false;
      if (space != SPACE_SHARED) {
        fault(warp, in, 1u << lane, 700, RULE(MATRIX_NOT_IN_SHARED_MEMORY),
              "the row at generic address 0x%llx is not in shared memory, the only space "
              "that this instruction reaches",
              (unsigned long long)address);
        return false;
      }
      addresses[lane] = (uint32_t)inner;
    } else {
      addresses[lane] = (uint32_t)address;
      at[lane] = shared_bytes_at(warp, in, lane, addresses[lane], 16, 16, access);
      if (at[lane] == NULL) return false;
    }
  }
  return true;
}

static StepResult run_matrix_move(Warp *warp, const Instruction *in, LaneMask mask) {
  const MatrixMove *move = in->decoded;
  const Access access = move->store ? ACCESS_WRITE : ACCESS_READ;
  emit_lanes_met(warp, in, mask, false);
  const int rows = 8 * move->matrices;
  uint8_t *at[LANES];
  uint8_t nowhere[LANES][16];
  uint32_t addresses[LANES] = {0};
  if (!find_rows(warp, in, rows, nowhere, at, addresses)) return STEP_FAULT;
  /* lanes that provide an address */
  const LaneMask giving = (rows == LANES ? ~0u : (1u << rows) - 1u) & ~warp->exited;
  observe_shared(warp, in, giving, addresses, at, 16, access);
  emit_matrices_move(warp, in, addresses, mask);
  for (int matrix = 0; matrix < move->matrices; matrix++) {
    uint32_t *column = column_u32(warp, move->registers[matrix]);
    uint32_t words[LANES], turned[LANES];
    if (move->store) {
      memcpy(words, column, sizeof words);
      if (move->transposed) transpose(words, turned);
      for (int row = 0; row < 8; row++)
        memcpy(at[8 * matrix + row], (move->transposed ? turned : words) + 4 * row, 16);
      continue;
    }
    for (int row = 0; row < 8; row++) memcpy(words + 4 * row, at[8 * matrix + row], 16);
    if (move->transposed) transpose(words, turned);
    for (int lane = 0; lane < LANES; lane++)
      if ((mask >> lane) & 1u) column[lane] = (move->transposed ? turned : words)[lane];
  }
  return STEP_NEXT;
}

static bool decode_matrix_move(Decoder *decoder, const PtxStatement *statement, Instruction *out,
                               bool store) {
  static const char *const counts[] = {"x1", "x2", "x4", NULL};
  Form form = form_begin(decoder, statement, out, 1);
  MatrixMove *move = decoder_allocate(decoder, sizeof *move);
  const bool aligned = form_take(&form, "sync") && form_take(&form, "aligned");
  const int count = form_choose(&form, counts);
  if (form_take(&form, "m16n16") || form_take(&form, "m8n16") || form_take(&form, "m16n8"))
    return form_fail(&form, "this shape exists from sm_100a on, not on sm_90a");
  if (!aligned || !form_take(&form, "m8n8") || count < 0 || !form_take(&form, "b16"))
    return form_fail(&form, "expected .sync.aligned.m8n8, .x1 .x2 or .x4, .b16");
  move->matrices = 1 << count;
  move->transposed = form_take(&form, "trans");
  move->generic = !form_take(&form, "shared") && !form_take(&form, "shared::cta");
  move->store = store;
  if (!form_operands(&form, 2, 2)) return false;
  if (!register_list(&form, store ? 1 : 0, TYPE_B32, move->matrices, !store, move->registers))
    return false;
  move->address = form_operand(&form, store ? 0 : 1);
  if (move->address->kind != OPERAND_ADDRESS) return form_fail(&form, "an address is missing");
  out->decoded = move;
  return form_end(&form, run_matrix_move);
}

DECODER(decode_ldmatrix) { return decode_matrix_move(decoder, statement, out, false); }
DECODER(decode_stmatrix) { return decode_matrix_move(decoder, statement, out, true); }

static StepResult run_movmatrix(Warp *warp, const Instruction *in, LaneMask mask) {
  uint32_t turned[LANES];
  emit_matrices_move(warp, in, NULL, mask);
  transpose(column_u32(warp, in->a), turned);
  uint32_t *column = column_u32(warp, in->d);
  for (int lane = 0; lane < LANES; lane++)
    if ((mask >> lane) & 1u) column[lane] = turned[lane];
  return STEP_NEXT;
}

FORM_DECODER(decode_movmatrix, 1) {
  if (!form_take(&form, "sync") || !form_take(&form, "aligned") || !form_take(&form, "m8n8") ||
      !form_take(&form, "trans") || !form_take(&form, "b16"))
    return form_fail(&form, "expected movmatrix.sync.aligned.m8n8.trans.b16");
  uint16_t slots[2] = {0, 0};
  if (!form_operands(&form, 2, 2) || !register_list(&form, 0, TYPE_B32, 1, true, &slots[0]) ||
      !register_list(&form, 1, TYPE_B32, 1, false, &slots[1]))
    return false;
  out->d = slots[0];
  out->a = slots[1];
  return form_end(&form, run_movmatrix);
}
