/* alu_video.c: the SIMD video instructions on two halves or four bytes of a word (vadd2, vabsdiff4
 * and their kin), on whole registers: without the selection of parts by .b or .h. */
#include "alu.h"

typedef enum {
  VIDEO_ADD,
  VIDEO_SUB,
  VIDEO_AVERAGE,
  VIDEO_DIFFERENCE,
  VIDEO_MIN,
  VIDEO_MAX
} VideoOp;

typedef struct {
  uint8_t op, parts;
  bool signed_d, signed_a, signed_b, saturate, add;
} VideoForm;

static int32_t part_of(uint32_t word, int part, int bits, bool is_signed) {
  const uint32_t up = word << (32 - bits - part * bits);
  return is_signed ? (int32_t)up >> (32 - bits) : (int32_t)(up >> (32 - bits));
}

static int32_t video_result(const VideoForm *form, int32_t a, int32_t b, int bits) {
  int32_t result = 0;
  switch ((VideoOp)form->op) {
    case VIDEO_ADD:
      result = a + b;
      break;
    case VIDEO_SUB:
      result = a - b;
      break;
    case VIDEO_AVERAGE:
      result = (a + b + (a + b >= 0)) >> 1;
      break;
    case VIDEO_DIFFERENCE:
      result = a < b ? b - a : a - b;
      break;
    case VIDEO_MIN:
      result = a < b ? a : b;
      break;
    case VIDEO_MAX:
      result = a > b ? a : b;
      break;
  }
  if (!form->saturate) return result;
  const int32_t most = form->signed_d ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
  const int32_t least = form->signed_d ? -(1 << (bits - 1)) : 0;
  return result < least ? least : result > most ? most : result;
}

static StepResult run_video(Warp *warp, const Instruction *in, LaneMask mask) {
  const VideoForm *form = in->decoded;
  LANE_ARRAY uint32_t result[LANES];
  const uint32_t *a = column_u32(warp, in->a), *b = column_u32(warp, in->b);
  const uint32_t *c = column_u32(warp, in->c);
  const int bits = 32 / form->parts;
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t sum = c[lane], word = 0;
    for (int part = 0; part < form->parts; part++) {
      const uint32_t one =
          (uint32_t)video_result(form, part_of(a[lane], part, bits, form->signed_a),
                                 part_of(b[lane], part, bits, form->signed_b), bits);
      sum += one;
      word |= (one & ((1u << bits) - 1u)) << (part * bits);
    }
    result[lane] = form->add ? sum : word;
  }
  store_u32(warp, in->d, mask, result);
  return STEP_NEXT;
}

bool decode_video(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  static const char *const names[] = {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"};
  Form form = form_begin(decoder, statement, out, 1);
  VideoForm *made = decoder_allocate(decoder, sizeof *made);
  const char *name = statement->modifiers[0];
  const size_t length = strlen(name) - 1;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strlen(names[i]) == length && strncmp(name, names[i], length) == 0) made->op = (uint8_t)i;
  made->parts = (uint8_t)(name[length] - '0');
  Type types[3];
  for (int i = 0; i < 3; i++) {
    types[i] = form_type(&form);
    if (types[i] != TYPE_U32 && types[i] != TYPE_S32)
      return form_fail(&form, "the types of D, A and B must be .u32 or .s32");
  }
  made->signed_d = types[0] == TYPE_S32;
  made->signed_a = types[1] == TYPE_S32;
  made->signed_b = types[2] == TYPE_S32;
  made->saturate = form_take(&form, "sat");
  made->add = form_take(&form, "add");
  if (made->saturate && made->add) return form_fail(&form, ".sat and .add exclude each other");
  if (!form_columns(&form, TYPE_B32, TYPE_B32, TYPE_B32, TYPE_B32)) return false;
  out->decoded = made;
  return form_end(&form, run_video);
}
