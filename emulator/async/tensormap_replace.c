/* tensormap_replace.c: tensormap.replace, which changes one field of a tensor map in shared or
 * global memory. The layout is in tma_map.c. */
#include <string.h>

#include "arithmetic/observe.h"
#include "async/async.h"
#include "base/access.h"
#include "base/fault.h"
#include "state/notes.h"

typedef enum {
  FIELD_ADDRESS,
  FIELD_RANK,
  FIELD_BOX,
  FIELD_DIMENSION,
  FIELD_STRIDE,
  FIELD_ELEMENT_STRIDE,
  FIELD_TYPE,
  FIELD_INTERLEAVE,
  FIELD_SWIZZLE,
  FIELD_FILL
} Field;
static const char *const field_names[] = {
    "global_address", "rank",           "box_dim",  "global_dim",
    "global_stride",  "element_stride", "elemtype", "interleave_layout",
    "swizzle_mode",   "fill_mode",      NULL};

typedef struct {
  uint8_t field, space; /* Space */
  uint8_t ordinal;
  int8_t value; /* operand */
} ReplaceForm;

static void set_bits(uint64_t words[16], int word, int first, int bits, uint64_t value) {
  uint64_t mask = bits == 64 ? ~0ull : ((1ull << bits) - 1) << first;
  words[word] = (words[word] & ~mask) | ((value << first) & mask);
}

static void replace(uint64_t words[16], const ReplaceForm *form, uint64_t value) {
  static const struct {
    uint8_t word, first;
  } strides[4] = {{1, 32}, {2, 0}, {2, 32}, {3, 0}},
    dimensions[5] = {{4, 0}, {4, 32}, {5, 0}, {5, 32}, {6, 0}};
  int i = form->ordinal;
  switch ((Field)form->field) {
    case FIELD_ADDRESS:
      set_bits(words, 0, 0, 64, value);
      break;
    case FIELD_RANK:
      set_bits(words, 1, 4, 3, value);
      break;
    case FIELD_BOX:
      if (i == 0)
        set_bits(words, 6, 56, 8, value - 1);
      else
        set_bits(words, 7, 8 * (i - 1), 8, value - 1);
      break;
    case FIELD_DIMENSION:
      set_bits(words, dimensions[i].word, dimensions[i].first, 32, value - 1);
      break;
    case FIELD_STRIDE:
      set_bits(words, strides[i].word, strides[i].first, 32, value >> 4);
      set_bits(words, 3, 32 + 4 * i, 4, value >> 36);
      break;
    case FIELD_ELEMENT_STRIDE:
      set_bits(words, 6, 32 + 3 * i, 3, value - 1);
      break;
    case FIELD_TYPE: {
      /* The instruction numbers f32.ftz 8, f64 9, bf16 10, tf32 11, tf32.ftz 12. */
      bool tf32 = value >= 11;
      set_bits(words, 1, 7, 4, tf32 ? value - 4 : value);
      if (tf32) set_bits(words, 1, 16, 1, 1); /* other types do not clear it */
      break;
    }
    case FIELD_INTERLEAVE:
      set_bits(words, 1, 11, 2, value);
      break;
    case FIELD_SWIZZLE:
      set_bits(words, 1, 13, 2, value);
      set_bits(words, 1, 22, 1, 0);
      break;
    case FIELD_FILL:
      set_bits(words, 1, 15, 1, value);
      break;
  }
}

static uint8_t *map_bytes(Warp *warp, const Instruction *in, int lane, uint64_t address,
                          Access access, Space *space, uint64_t *in_space) {
  *space = (Space)((const ReplaceForm *)in->decoded)->space;
  *in_space = address;
  launch_is_unique(warp);
  if (*space == SPACE_GENERIC)
    return generic_bytes_at(warp, in, lane, address, 128, 64, access, space, in_space);
  if (*space == SPACE_SHARED)
    return shared_bytes_at(warp, in, lane, (uint32_t)address, 128, 64, access);
  return global_bytes_at(warp, in, lane, address, 128, 64, access);
}

static StepResult run_replace(Warp *warp, const Instruction *in, LaneMask mask) {
  const ReplaceForm *form = in->decoded;
  FOR_LANES(lane, mask) {
    uint64_t address = lane_address(warp, &in->operand[0], lane), in_space;
    Space space;
    if (!map_bytes(warp, in, lane, address, ACCESS_READ, &space, &in_space)) return STEP_FAULT;
    emit_map_read(warp, in, lane, space, in_space, "changes one field of");
    uint8_t *map = map_bytes(warp, in, lane, address, ACCESS_WRITE, &space, &in_space);
    if (!map) return STEP_FAULT;
    if (space != SPACE_SHARED && space != SPACE_GLOBAL)
      return fault(warp, in, 1u << lane, 717, RULE(ADDRESS_SPACE),
                   "tensormap.replace works on maps in shared or global memory; generic address "
                   "0x%llx is in neither",
                   (unsigned long long)address);
    if (space == SPACE_SHARED)
      observe_shared_place(warp, in, 1u << lane, (uint32_t)in_space, map, 128, ACCESS_WRITE);
    uint64_t words[16];
    memcpy(words, map, 128);
    replace(words, form, lane_value(warp, &in->operand[form->value], lane));
    if (space != SPACE_SHARED) note(NOTE_WRITE, map, 128);
    memcpy(map, words, 128);
    if (space == SPACE_GLOBAL) emit_map_written(in, address, 128);
  }
  return STEP_NEXT;
}

FORM_DECODER(decode_tensormap_replace, 2) {
  ReplaceForm *made = decoder_allocate(decoder, sizeof *made);
  if (!form_take(&form, "tile")) return form_fail(&form, "the form is tensormap.replace.tile");
  int field = form_choose(&form, field_names);
  if (field < 0) return form_fail(&form, "there is no such field of a tensor map on sm_90a");
  made->field = (uint8_t)field;
  made->space = form_take(&form, "global")        ? SPACE_GLOBAL
                : form_take(&form, "shared::cta") ? SPACE_SHARED
                                                  : SPACE_GENERIC;
  if (!form_take(&form, "b1024")) return form_fail(&form, "a tensor map is of type .b1024");
  bool wide = field == FIELD_ADDRESS || field == FIELD_STRIDE;
  if (!form_take(&form, wide ? "b64" : "b32"))
    return form_fail(&form, wide ? "this field is of type .b64" : "this field is of type .b32");
  bool ordinal = field >= FIELD_BOX && field <= FIELD_ELEMENT_STRIDE;
  bool literal = field >= FIELD_TYPE;
  if (!form_operands(&form, 2 + ordinal, 2 + ordinal)) return false;
  made->value = (int8_t)(1 + ordinal);
  const Operand *operand = out->operand;
  if (operand[0].kind != OPERAND_ADDRESS || operand[made->value].kind != OPERAND_REGISTER)
    return form_fail(&form, "the operands are [map], (ordinal,) new value");
  form_numbers(&form, made->value, 1, wide ? TYPE_B64 : TYPE_U32);
  if (ordinal) {
    if (!operand[1].constant || operand[1].constant_value > (field == FIELD_STRIDE ? 3 : 4))
      return form_fail(&form,
                       "the ordinal must be a constant: a dimension, 0 to 4 (of a stride, 0 to 3)");
    made->ordinal = (uint8_t)operand[1].constant_value;
  }
  if (literal) {
    static const uint8_t most[] = {12, 2, 3, 1};
    if (!operand[1].constant || operand[1].constant_value > most[field - FIELD_TYPE])
      return form_fail(&form, "this field's new value must be a constant, in its range");
  }
  out->decoded = made;
  return form_end(&form, run_replace);
}
