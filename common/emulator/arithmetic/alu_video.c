/* alu_video.c: the video instructions: integer arithmetic on parts of registers (a word, a half or
 * a byte; for vadd2 and similar two halves at once, of vadd4 four bytes), which may saturate, apply
 * a second operation to the result and c, or put the result into a part of c. */
#include "arithmetic/alu.h"

typedef enum {
  VIDEO_ADD,
  VIDEO_SUB,
  VIDEO_AVERAGE,
  VIDEO_DIFFERENCE,
  VIDEO_MIN,
  VIDEO_MAX,
  VIDEO_SHIFT_LEFT,
  VIDEO_SHIFT_RIGHT,
  VIDEO_SET,
  VIDEO_MAD
} VideoOp;
typedef enum { SECOND_ADD, SECOND_MIN, SECOND_MAX } SecondOp;
enum { MOST_PARTS = 4, NO_SECOND = -1 };

/* A bit field of a register: its first bit and its width. */
typedef struct {
  uint8_t in_b, shift, bits;
} VideoField;

typedef struct {
  uint8_t op, parts;
  int8_t second; /* a SecondOp, or none */
  int8_t comparison;
  bool signed_d, signed_a, signed_b, saturate, wrap, plus_one, negate_product, negate_c;
  bool has_c;
  uint8_t scale;
  uint8_t wanted; /* one bit for each part */
  VideoField a[MOST_PARTS], b[MOST_PARTS], d[MOST_PARTS];
} VideoForm;

/* ---- Arithmetic ---- */

static int64_t extract(const uint32_t *words, VideoField place, bool is_signed) {
  const uint32_t up = words[place.in_b] << (32 - place.bits - place.shift);
  return is_signed ? (int64_t)((int32_t)up >> (32 - place.bits))
                   : (int64_t)(up >> (32 - place.bits));
}

static bool compare(int comparison, int64_t a, int64_t b) {
  switch (comparison) {
    case 0:
      return a == b;
    case 1:
      return a != b;
    case 2:
      return a < b;
    case 3:
      return a <= b;
    case 4:
      return a > b;
    default:
      return a >= b;
  }
}

static int64_t clamped(int64_t value, bool is_signed, int bits) {
  const int64_t most = is_signed ? (1ll << (bits - 1)) - 1 : (1ll << bits) - 1;
  const int64_t least = is_signed ? -(1ll << (bits - 1)) : 0;
  return value < least ? least : value > most ? most : value;
}

static bool is_shift(const VideoForm *form) {
  return form->op == VIDEO_SHIFT_LEFT || form->op == VIDEO_SHIFT_RIGHT;
}

/* This follows the GPU, which differs from the PTX ISA in places: the GPU has no circuit for these
 * instructions, so ptxas builds them from others. A .u32 sum is clamped at 0 but not at the upper
 * end. A value for a half or a byte is compared as an unsigned number. Shifts work on 34 bits. */
static int64_t saturated(const VideoForm *form, int64_t value, int bits) {
  if (form->parts > 1) return clamped(value, form->signed_d, bits); /* these follow the PTX ISA */
  if (is_shift(form)) return clamped((int64_t)((uint64_t)value << 30) >> 30, form->signed_d, 32);
  if (bits == 32 && form->signed_d) return clamped(value, true, 32);
  if (bits == 32) return value < 0 ? 0 : value;
  const int64_t most = (1ll << (form->signed_d ? bits - 1 : bits)) - 1;
  return value < 0 || value > most ? most : value;
}

/* A second .min or .max compares 64 bits, with .u32 as an unsigned number. c is then unsigned, but
 * the result is still signed. */
static bool is_larger(const VideoForm *form, int64_t value, uint32_t c) {
  const bool is_sum = form->op == VIDEO_ADD || form->op == VIDEO_SUB;
  if (is_sum || (is_shift(form) && form->saturate)) value = (int32_t)value;
  return form->signed_d ? value > (int32_t)c : (uint64_t)value > c;
}

static int64_t video_result(const VideoForm *form, int64_t a, int64_t b) {
  const int64_t by = form->wrap ? (b & 31) : b > 32 ? 32 : b;
  switch ((VideoOp)form->op) {
    case VIDEO_ADD:
      return a + b;
    case VIDEO_SUB:
      return a - b;
    case VIDEO_AVERAGE:
      return (a + b + (a + b >= 0)) >> 1;
    case VIDEO_DIFFERENCE:
      return a < b ? b - a : a - b;
    case VIDEO_MIN:
      return a < b ? a : b;
    case VIDEO_MAX:
      return a > b ? a : b;
    case VIDEO_SHIFT_LEFT:
      return (int64_t)((uint64_t)a << by);
    case VIDEO_SHIFT_RIGHT:
      return a >> by;
    default:
      return compare(form->comparison, a, b);
  }
}

static uint32_t video_word(const VideoForm *form, const uint32_t *words, uint32_t c) {
  uint32_t sum = c, merged = form->has_c ? c : 0;
  for (int part = 0; part < form->parts; part++) {
    if (!(form->wanted >> part & 1)) continue;
    const VideoField place = form->d[part];
    int64_t one = video_result(form, extract(words, form->a[part], form->signed_a),
                               extract(words, form->b[part], form->signed_b));
    if (form->saturate) one = saturated(form, one, place.bits);
    const uint32_t kept = (uint32_t)((1ull << place.bits) - 1u) << place.shift;
    /* The upper half of c receives the upper half of the result, again because of ptxas. */
    const bool upper = form->parts == 1 && place.shift == 16 && place.bits == 16;
    merged = (merged & ~kept) | ((uint32_t)one << (upper ? 0 : place.shift) & kept);
    if (form->second == SECOND_ADD)
      sum += (uint32_t)one;
    else if (form->second != NO_SECOND && is_larger(form, one, c) == (form->second == SECOND_MAX))
      sum = (uint32_t)one;
  }
  return form->second == NO_SECOND ? merged : sum;
}

/* The factors and c are signed whatever their types. */
static uint32_t multiply_add(const VideoForm *form, const uint32_t *words, uint32_t c) {
  const bool is_signed = form->signed_a || form->signed_b || form->negate_product || form->negate_c;
  const int64_t addend = (int32_t)c;
  const int64_t product = (int64_t)(int32_t)extract(words, form->a[0], form->signed_a) *
                          (int32_t)extract(words, form->b[0], form->signed_b);
  const uint64_t sum = (uint64_t)(form->negate_product ? -product : product) +
                       (uint64_t)(form->negate_c ? -addend : addend) + (form->plus_one ? 1u : 0u);
  const int64_t scaled = is_signed ? (int64_t)sum >> form->scale : (int64_t)(sum >> form->scale);
  return (uint32_t)(form->saturate ? clamped(scaled, is_signed, 32) : scaled);
}

static StepResult run_video(Warp *warp, const Instruction *in, LaneMask mask) {
  const VideoForm *form = in->decoded;
  LANE_ARRAY uint32_t result[LANES];
  const uint32_t *a = column_u32(warp, in->a), *b = column_u32(warp, in->b);
  const uint32_t *c = form->has_c ? column_u32(warp, in->c) : NULL;
  for (int lane = 0; lane < LANES; lane++) {
    const uint32_t words[2] = {a[lane], b[lane]}, third = c != NULL ? c[lane] : 0;
    result[lane] =
        form->op == VIDEO_MAD ? multiply_add(form, words, third) : video_word(form, words, third);
  }
  store_u32(warp, in->d, mask, result);
  return STEP_NEXT;
}

/* ---- Decoding ---- */

/* "b2" or "h1"; NULL: the whole register. */
static bool read_place(Form *form, const char *part, bool in_b, VideoField *place) {
  *place = (VideoField){in_b, 0, 32};
  if (part == NULL) return true;
  const int index = part[1] - '0';
  const bool half = part[0] == 'h';
  if ((part[0] != 'b' && !half) || index < 0 || index > (half ? 1 : 3) || part[2] != '\0')
    return form_fail(form, "the parts of a register are .b0 to .b3, .h0 and .h1");
  const int bits = half ? 16 : 8;
  *place = (VideoField){in_b, (uint8_t)(index * bits), (uint8_t)bits};
  return true;
}

/* "h20", "b7531": for each part of the result, highest first, its position in the concatenation of
 * a and b. */
static bool read_places(Form *form, const char *selection, int parts, VideoField *places) {
  if (strlen(selection) != (size_t)parts + 1 || selection[0] != (parts == 2 ? 'h' : 'b'))
    return form_fail(form, "a selection names two halves (.h10) or four bytes (.b3210)");
  for (int i = 0; i < parts; i++) {
    const int index = selection[parts - i] - '0', bits = 32 / parts;
    if (index < 0 || index >= 2 * parts)
      return form_fail(form, "a selection names parts of a and of b that there are not");
    places[i] = (VideoField){index >= parts, (uint8_t)(index % parts * bits), (uint8_t)bits};
  }
  return true;
}

/* "h1", "b320": which parts of the result are written. */
static bool read_mask(Form *form, const char *mask, VideoForm *made) {
  int before = made->parts;
  made->wanted = 0;
  for (const char *at = mask + 1; *at != '\0'; at++) {
    const int index = *at - '0';
    if (index < 0 || index >= before)
      return form_fail(form, "the parts of a mask go down: .h10, .b320");
    made->wanted |= (uint8_t)(1u << index);
    before = index;
  }
  return (mask[0] == (made->parts == 2 ? 'h' : 'b') && made->wanted != 0) ||
         form_fail(form, "the mask of the result should look like .h1 or .b320");
}

static bool read_parts(Form *form, VideoForm *made) {
  const char *d = form_operand(form, 0)->part;
  const char *a = form_operand(form, 1)->part, *b = form_operand(form, 2)->part;
  made->wanted = (uint8_t)((1u << made->parts) - 1u);
  if (made->parts == 1)
    return read_place(form, d, false, &made->d[0]) && read_place(form, a, false, &made->a[0]) &&
           read_place(form, b, true, &made->b[0]);
  for (int i = 0; i < made->parts; i++) {
    const int bits = 32 / made->parts;
    made->d[i] = (VideoField){false, (uint8_t)(i * bits), (uint8_t)bits};
  }
  const bool halves = made->parts == 2;
  return (d == NULL || read_mask(form, d, made)) &&
         read_places(form,
                     a != NULL ? a
                     : halves  ? "h10"
                               : "b3210",
                     made->parts, made->a) &&
         read_places(form,
                     b != NULL ? b
                     : halves  ? "h32"
                               : "b7654",
                     made->parts, made->b);
}

/* A minus before a register: vmad negates the product or c. */
static bool read_signs(Form *form, VideoForm *made) {
  const bool a = form_operand(form, 1)->negated, b = form_operand(form, 2)->negated;
  const bool c = form->out->operand_count > 3 && form_operand(form, 3)->negated;
  if ((a || b || c) && (made->op != VIDEO_MAD || made->plus_one))
    return form_fail(form, "only vmad without .po negates its operands");
  if (c && a != b) return form_fail(form, "vmad negates either the product or c");
  made->negate_product = a != b;
  made->negate_c = c;
  return true;
}

static bool read_types(Form *form, VideoForm *made) {
  bool is_signed[3] = {false};
  for (int i = made->op == VIDEO_SET ? 1 : 0; i < 3; i++) {
    const Type type = form_type(form);
    if (type != TYPE_U32 && type != TYPE_S32)
      return form_fail(form, "the types of D, A and B must be .u32 or .s32");
    is_signed[i] = type == TYPE_S32;
  }
  made->signed_d = is_signed[0];
  made->signed_a = is_signed[1];
  made->signed_b = is_signed[2];
  if (made->op == VIDEO_SET) made->signed_d = made->signed_a; /* for the second operation */
  return !is_shift(made) || !made->signed_b || form_fail(form, "what is shifted by is .u32");
}

static bool read_operation(Form *form, VideoForm *made) {
  static const char *const seconds[] = {"add", "min", "max", NULL};
  static const char *const comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge", NULL};
  if (made->op == VIDEO_MAD) {
    made->plus_one = form_take(form, "po");
    made->scale = form_take(form, "shr7") ? 7 : form_take(form, "shr15") ? 15 : 0;
  }
  if (made->op != VIDEO_SET) made->saturate = form_take(form, "sat");
  if (made->op == VIDEO_SET) {
    made->comparison = (int8_t)form_choose(form, comparisons);
    if (made->comparison < 0) return form_fail(form, "the comparison is missing");
  }
  if (is_shift(made)) {
    made->wrap = form_take(form, "wrap");
    if (!made->wrap && !form_take(form, "clamp"))
      return form_fail(form, "a video shift needs .clamp or .wrap");
  }
  made->second = (int8_t)(made->op == VIDEO_MAD ? NO_SECOND : form_choose(form, seconds));
  if (made->parts > 1 && made->second > SECOND_ADD)
    return form_fail(form, "the second operation on halves and bytes is .add");
  if (made->parts > 1 && made->saturate && made->second == SECOND_ADD)
    return form_fail(form, ".sat and .add exclude each other");
  return true;
}

bool decode_video(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  static const char *const names[] = {"vadd", "vsub", "vavrg", "vabsdiff", "vmin",
                                      "vmax", "vshl", "vshr",  "vset",     "vmad"};
  Form form = form_begin(decoder, statement, out, 1);
  VideoForm *made = decoder_allocate(decoder, sizeof *made);
  const char *name = statement->modifiers[0];
  const char last = name[strlen(name) - 1];
  made->parts = last == '2' ? 2 : last == '4' ? 4 : 1;
  const size_t length = strlen(name) - (made->parts > 1 ? 1 : 0);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strlen(names[i]) == length && strncmp(name, names[i], length) == 0) made->op = (uint8_t)i;
  if (!form_operands(&form, 3, 4) || !read_types(&form, made) || !read_operation(&form, made) ||
      !read_parts(&form, made) || !read_signs(&form, made))
    return false;
  made->has_c = out->operand_count == 4;
  const bool wants_c =
      made->parts > 1 || made->op == VIDEO_MAD || made->second != NO_SECOND || made->d[0].bits < 32;
  if (wants_c && !made->has_c) return form_fail(&form, "the operand c is missing");
  if (made->op == VIDEO_MAD && made->d[0].bits < 32)
    return form_fail(&form, "vmad writes a whole register");
  if (made->second != NO_SECOND && made->parts == 1 && made->d[0].bits < 32)
    return form_fail(&form, "either a second operation or a part of the result");
  if (made->has_c && form_operand(&form, 3)->part != NULL)
    return form_fail(&form, "c is a whole register");
  out->d = form_destination(&form, 0, TYPE_U32);
  out->a = form_source(&form, 1, TYPE_U32);
  out->b = form_source(&form, 2, TYPE_U32);
  if (made->has_c) out->c = form_source(&form, 3, TYPE_U32);
  made->has_c = wants_c; /* c without a second operation is ignored, as ptxas does */
  out->decoded = made;
  return form_end(&form, run_video);
}
