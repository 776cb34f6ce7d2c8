/* cache_hints.c: prefetch, discard, applypriority and createpolicy. There is no cache: all but
 * discard have no effect. */
#include "arithmetic/alu.h"
#include "arithmetic/warp_access.h"
#include "base/access.h"
#include "state/notes.h"

static StepResult no_effect(Warp *warp, const Instruction *in, LaneMask mask) {
  (void)warp, (void)in, (void)mask;
  return STEP_NEXT;
}

FORM_DECODER(decode_prefetch, 1) {
  static const char *const levels[] = {"L1",        "L2", "L2::evict_last", "L2::evict_normal",
                                       "tensormap", NULL};
  Space space = form_space(&form);
  int level = form_choose(&form, levels);
  if (level < 0) return form_fail(&form, "prefetch names a cache level");
  bool of_map = strcmp(levels[level], "tensormap") == 0;
  bool fits = space == SPACE_GENERIC ||
              (of_map ? space == SPACE_CONST || space == SPACE_PARAM
                      : space == SPACE_GLOBAL || (space == SPACE_LOCAL && level < 2));
  if (!fits) return form_fail(&form, "no prefetch of this kind in this state space");
  bool uniform = strcmp(statement->modifiers[0], "prefetchu") == 0;
  if (uniform && (level > 0 || space != SPACE_GENERIC))
    return form_fail(&form, "prefetchu is .L1, without a state space");
  if (!form_operands(&form, 1, 1)) return false;
  form_address(&form, 0);
  return form_end(&form, no_effect);
}

/* discard leaves the 128 bytes undefined: here they become poison. */
static StepResult discard(Warp *warp, const Instruction *in, LaneMask mask) {
  launch_is_unique(warp);
  FOR_LANES(lane, mask) {
    uint64_t address = lane_address(warp, &in->operand[0], lane);
    uint8_t *bytes = generic_bytes_at(warp, in, lane, address, 128, 128, ACCESS_WRITE, NULL, NULL);
    if (!bytes) return STEP_FAULT;
    note(NOTE_WRITE, bytes, 128);
    memset(bytes, 0xff, 128);
  }
  return STEP_NEXT;
}

FORM_DECODER(decode_line_hint, 1) {
  bool is_discard = strcmp(statement->modifiers[0], "discard") == 0;
  form_take(&form, "global");
  if (!form_take(&form, is_discard ? "L2" : "L2::evict_normal"))
    return form_fail(&form, "discard is .L2, applypriority is .L2::evict_normal");
  if (!form_operands(&form, 2, 2)) return false;
  form_address(&form, 0);
  if (!out->operand[1].constant || out->operand[1].constant_value != 128)
    return form_fail(&form, "the size is 128");
  return form_end(&form, is_discard ? discard : no_effect);
}

HANDLER1(copy_policy, 64, 64, a)

static double literal_number(const Operand *literal) {
  return literal->bytes == 4 ? (double)float_of((uint32_t)literal->constant_value)
                             : double_of(literal->constant_value);
}

/* A cache policy is opaque to programs and nothing here reads it. The bits of the fractional form
 * are the GPU's: primary priority, secondary priority, and the fraction in sixteenths, less one. */
static uint64_t policy_bits(int primary, int secondary, const Operand *fraction) {
  const double share =
      fraction && fraction->constant && fraction->floating ? literal_number(fraction) : 1.0;
  uint64_t sixteenths = share > 1.0 / 16 && share <= 1.0 ? (uint64_t)(share * 16) : 1;
  return 1ull << 60 | (uint64_t)(uint32_t)primary << 57 | (uint64_t)(uint32_t)secondary << 56 |
         (sixteenths - 1) << 52;
}
/* A literal above 0, up to 1. */
static bool is_fraction(Form *form) {
  const Operand *operand = form_operand(form, 1);
  if (!form_numbers(form, 1, 1, TYPE_F32)) return false;
  if (!operand->constant) return true;
  const double share = literal_number(operand);
  return (share > 0 && share <= 1) || form_fail(form, "the fraction is above 0 and at most 1");
}
FORM_DECODER(decode_createpolicy, 1) {
  static const char *const priorities[] = {"L2::evict_unchanged", "L2::evict_first",
                                           "L2::evict_last", "L2::evict_normal", NULL};
  bool fractional = form_take(&form, "fractional"), range = form_take(&form, "range");
  bool convert = form_take(&form, "cvt");
  if (convert) form_take(&form, "L2");
  if (range) form_take(&form, "global");
  int primary = form_choose(&form, priorities);
  if (!convert && primary < 0) return form_fail(&form, "createpolicy names an eviction priority");
  int secondary = form_choose(&form, priorities); /* evict_unchanged, or evict_first */
  for (int i = 0; secondary >= 0 && i < statement->modifier_count; i++) {
    if (strcmp(statement->modifiers[i], priorities[primary]) == 0) break;
    if (strcmp(statement->modifiers[i], priorities[secondary]) != 0) continue;
    int written_first = secondary; /* form_choose follows the order of the list, not of the text */
    secondary = primary;
    primary = written_first;
    break;
  }
  if (secondary > 1) return form_fail(&form, "the second priority is unchanged or first");
  if (form_type(&form) != TYPE_B64) return form_fail(&form, "a cache policy is .b64");
  if (fractional + range + convert != 1)
    return form_fail(&form, "createpolicy is .fractional, .range or .cvt");
  if (!form_operands(&form, fractional ? 1 : convert ? 2 : 4, fractional ? 2 : convert ? 2 : 4))
    return false;
  if (fractional && out->operand_count > 1 && !is_fraction(&form)) return false;
  out->d = form_destination(&form, 0, TYPE_U64);
  uint64_t value = policy_bits(primary < 0 ? 0 : primary, secondary < 0 ? 0 : secondary,
                               fractional && out->operand_count > 1 ? &out->operand[1] : NULL);
  out->a = convert ? form_source(&form, 1, TYPE_U64) : decoder_constant(decoder, value, 8);
  return form_end(&form, copy_policy);
}
