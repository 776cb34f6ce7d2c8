/* alu_convert.c: cvt and cvt.pack.
 *
 * An intermediate value is a 64-bit integer, or a number with a sign, a 64-bit significand and an
 * exponent, which represents every value of every type exactly. One routine rounds a number to any
 * floating format, so a conversion rounds only once. The most common conversions have dedicated
 * loops. */
#include "arithmetic/alu_float.h"

/* ---- Numbers and formats ---- */
typedef struct {
  uint8_t precision; /* bits of the significand, the hidden one included */
  int16_t least;     /* exponent of the smallest normal number */
  int16_t most;      /* exponent of the largest */
  uint64_t infinity, nan, largest;
  uint8_t sign_bit;
} FloatFormat;

static const FloatFormat format_f16 = {11, -14, 15, 0x7c00, 0x7fff, 0x7bff, 15};
static const FloatFormat format_bf16 = {8, -126, 127, 0x7f80, 0x7fff, 0x7f7f, 15};
static const FloatFormat format_f32 = {24, -126, 127, 0x7f800000, 0x7fffffff, 0x7f7fffff, 31};
static const FloatFormat format_f64 = {
    53, -1022, 1023, 0x7ff0000000000000, 0x7ff8000000000000, 0x7fefffffffffffff, 63};
static const FloatFormat format_tf32 = {11, -126, 127, 0x3fc00, 0x3ffff, 0x3fbff, 18}; /* 19 bits */
static const FloatFormat format_e4m3 = {4, -6, 8, 0x7f, 0x7f, 0x7e, 7}; /* no infinity */
static const FloatFormat format_e5m2 = {3, -14, 15, 0x7c, 0x7f, 0x7b, 7};

typedef enum { NUMBER_FINITE, NUMBER_INFINITE, NUMBER_NAN } NumberKind;
typedef struct {
  NumberKind kind;
  bool negative;
  uint64_t significand;
  int exponent; /* of the significand's last bit */
} Number;

static Number unpack_number(uint64_t bits, const FloatFormat *format) {
  int fraction_bits = format->precision - 1;
  uint64_t magnitude = bits & (((uint64_t)1 << format->sign_bit) - 1);
  uint64_t fraction = magnitude & (((uint64_t)1 << fraction_bits) - 1);
  int exponent = (int)(magnitude >> fraction_bits);
  Number number = {.negative = (bits >> format->sign_bit) & 1u};
  if (format->infinity == format->nan ? magnitude == format->nan : magnitude > format->infinity) {
    number.kind = NUMBER_NAN;
  } else if (magnitude == format->infinity) {
    number.kind = NUMBER_INFINITE;
  } else {
    number.significand = exponent ? fraction | (uint64_t)1 << fraction_bits : fraction;
    number.exponent = (exponent ? exponent - 1 : 0) + format->least - fraction_bits;
  }
  return number;
}

/* Drops `shift` bits of the significand, using the given rounding. */
static uint64_t shift_rounded(uint64_t significand, int shift, bool negative, Rounding rounding) {
  if (shift <= 0) return significand << -shift;
  uint64_t kept = shift < 64 ? significand >> shift : 0;
  uint64_t half = shift <= 64 ? (uint64_t)1 << (shift - 1) : 0;
  uint64_t lost = shift < 64 ? significand & (((uint64_t)1 << shift) - 1) : significand;
  bool up = false;
  switch (rounding) {
    case ROUND_RN:
      up = half && (lost > half || (lost == half && (kept & 1u)));
      break;
    case ROUND_RNA:
      up = half && lost >= half;
      break;
    case ROUND_RM:
      up = lost != 0 && negative;
      break;
    case ROUND_RP:
      up = lost != 0 && !negative;
      break;
    default:
      break;
  }
  return kept + up;
}

/* finite: what is too large becomes the largest number, not infinity. */
static uint64_t pack_number(Number number, const FloatFormat *format, Rounding rounding,
                            bool finite) {
  uint64_t sign = (uint64_t)number.negative << format->sign_bit;
  if (number.kind == NUMBER_NAN) return format->nan;
  if (number.kind == NUMBER_INFINITE) return sign | (finite ? format->largest : format->infinity);
  if (number.significand == 0) return sign;
  int top = 63 - __builtin_clzll(number.significand) + number.exponent;
  int last = (top > format->least ? top : format->least) - (format->precision - 1);
  uint64_t kept =
      shift_rounded(number.significand, last - number.exponent, number.negative, rounding);
  /* A carry out of the significand correctly increments the exponent. */
  uint64_t exponent = (uint64_t)(last + format->precision - 1 - format->least);
  uint64_t bits = (exponent << (format->precision - 1)) + kept;
  if (bits > format->largest) {
    bool away = rounding == ROUND_RN || rounding == ROUND_RNA ||
                rounding == (number.negative ? ROUND_RM : ROUND_RP);
    bits = away && !finite ? format->infinity : format->largest;
  }
  return sign | bits;
}

static const FloatFormat *format_of(Type type) {
  static const FloatFormat *const formats[TYPES] = {[TYPE_F16] = &format_f16,
                                                    [TYPE_BF16] = &format_bf16,
                                                    [TYPE_F32] = &format_f32,
                                                    [TYPE_F64] = &format_f64};
  return formats[type];
}

/* ---- The general conversion ---- */
typedef struct {
  Type to, from;
  Rounding rounding;
  bool to_integer_value; /* .rni and similar: round to an integer value */
  bool flush, saturate, finite, relu;
  uint8_t from_column, to_column; /* 4 or 8 bytes */
  uint8_t to_register;            /* declared bytes of the destination */
} Conversion;

static uint64_t read_column(const Warp *warp, unsigned slot, unsigned bytes, int lane) {
  return bytes == 8 ? column_u64(warp, slot)[lane] : column_u32(warp, slot)[lane];
}

static uint64_t cut_to_bytes(uint64_t value, uint32_t bytes) {
  return bytes >= 8 ? value : value & (((uint64_t)1 << (8 * bytes)) - 1);
}
static uint64_t sign_extended(uint64_t value, uint32_t bytes) {
  int shift = 64 - 8 * (int)bytes;
  return (uint64_t)((int64_t)(value << shift) >> shift);
}

/* Clamps |value| with its sign into the integer type. */
static uint64_t clamp_integer(uint64_t magnitude, bool negative, Type type) {
  uint32_t width = 8 * type_bytes(type);
  if (!type_signed(type)) {
    uint64_t most = width == 64 ? ~0ull : ((uint64_t)1 << width) - 1;
    return negative ? 0 : magnitude < most ? magnitude : most;
  }
  uint64_t limit = (uint64_t)1 << (width - 1);
  if (negative) return 0 - (magnitude < limit ? magnitude : limit);
  return magnitude < limit ? magnitude : limit - 1;
}

static uint64_t number_to_integer(Number number, const Conversion *conversion) {
  if (number.kind == NUMBER_NAN) {
    /* NaN: the top bit when converting from f64 or to 64 bits, otherwise 0. */
    uint32_t bytes = type_bytes(conversion->to);
    return conversion->from == TYPE_F64 || bytes == 8 ? (uint64_t)1 << (8 * bytes - 1) : 0;
  }
  uint64_t magnitude = ~0ull;
  if (number.kind == NUMBER_FINITE) {
    int top = number.significand ? 63 - __builtin_clzll(number.significand) + number.exponent : -1;
    if (top < 64)
      magnitude = shift_rounded(number.significand, -number.exponent, number.negative,
                                conversion->rounding);
  }
  return clamp_integer(magnitude, number.negative, conversion->to);
}

static Number to_integer_value(Number number, Rounding rounding) {
  if (number.kind != NUMBER_FINITE || number.exponent >= 0) return number;
  number.significand =
      shift_rounded(number.significand, -number.exponent, number.negative, rounding);
  number.exponent = 0;
  return number;
}

/* Would it be subnormal in f32 after rounding with an unbounded exponent? */
static bool is_tiny(Number number, Rounding rounding) {
  if (number.kind != NUMBER_FINITE || number.significand == 0) return false;
  int top = 63 - __builtin_clzll(number.significand) + number.exponent, last = top - 23;
  uint64_t kept =
      shift_rounded(number.significand, last - number.exponent, number.negative, rounding);
  return top + (kept >> 24 ? 1 : 0) < format_f32.least;
}

static uint64_t finish_float(Number number, const Conversion *conversion) {
  const FloatFormat *format = format_of(conversion->to);
  if (conversion->to_integer_value) number = to_integer_value(number, conversion->rounding);
  uint64_t bits = pack_number(number, format, conversion->rounding, conversion->finite);
  bool negative = (bits >> format->sign_bit) & 1u;
  bool nan = number.kind == NUMBER_NAN;
  if (conversion->flush && conversion->to == TYPE_F32 &&
      (flush((uint32_t)bits) != bits || is_tiny(number, conversion->rounding)))
    bits &= 0x80000000u;
  if (conversion->saturate) {
    uint64_t one = pack_number((Number){.significand = 1}, format, ROUND_RN, false);
    bits = nan || negative ? 0 : bits > one ? one : bits;
  }
  if (conversion->relu && negative && !nan) bits = 0;
  return bits;
}

/* f32 or f64 stays what it is, and nothing is rounded: a move. */
static bool is_move(const Conversion *conversion) {
  return conversion->to == conversion->from && type_bytes(conversion->to) >= 4 &&
         !conversion->to_integer_value && !conversion->flush && !conversion->saturate;
}

/* In conversions that involve f64, and from bf16 to f32, a NaN keeps its sign and as many upper bits
 * of its payload as fit. It is made quiet, except from bf16 to f32 and where the type stays and
 * nothing is rounded. Any other NaN becomes the canonical NaN of the destination. As an H100 does it. */
static uint64_t convert_nan(const Conversion *conversion, uint64_t value) {
  const FloatFormat *from = format_of(conversion->from), *to = format_of(conversion->to);
  bool of_f64 = conversion->from == TYPE_F64 || conversion->to == TYPE_F64;
  bool of_bf16 = conversion->from == TYPE_BF16 && conversion->to == TYPE_F32 && !conversion->flush;
  if (conversion->saturate) return 0;
  if (is_move(conversion)) return value;
  if (!of_f64 && !of_bf16) return to->nan;
  if (conversion->flush && conversion->from == TYPE_F32) value = format_f32.nan;
  uint64_t sign = ((value >> from->sign_bit) & 1u) << to->sign_bit;
  uint64_t quiet = (uint64_t)1 << (to->precision - 2);
  uint64_t fraction = value & (((uint64_t)1 << (from->precision - 1)) - 1);
  int wider = to->precision - from->precision;
  fraction = wider >= 0 ? fraction << wider : fraction >> -wider;
  return sign | to->infinity | fraction | (of_f64 ? quiet : 0);
}

static uint64_t convert(const Conversion *conversion, uint64_t value) {
  uint32_t from_bytes = type_bytes(conversion->from);
  value = cut_to_bytes(value, from_bytes);
  if (!type_integer(conversion->from)) {
    bool flushes = conversion->flush && conversion->to != TYPE_F16; /* seen: f16 gets subnormals */
    if (flushes && conversion->from == TYPE_F32) value = flush((uint32_t)value);
    Number number = unpack_number(value, format_of(conversion->from));
    if (number.kind == NUMBER_NAN && !type_integer(conversion->to))
      return convert_nan(conversion, value);
    return type_integer(conversion->to) ? number_to_integer(number, conversion)
                                        : finish_float(number, conversion);
  }
  if (type_signed(conversion->from)) value = sign_extended(value, from_bytes);
  bool negative = type_signed(conversion->from) && (int64_t)value < 0;
  uint64_t magnitude = negative ? 0 - value : value;
  if (!type_integer(conversion->to))
    return finish_float((Number){.negative = negative, .significand = magnitude}, conversion);
  return conversion->saturate ? clamp_integer(magnitude, negative, conversion->to) : value;
}

static StepResult convert_any(Warp *warp, const Instruction *in, LaneMask mask) {
  const Conversion *conversion = in->decoded;
  uint32_t bytes = type_bytes(conversion->to);
  FOR_LANES(lane, mask) {
    uint64_t value = convert(conversion, read_column(warp, in->a, conversion->from_column, lane));
    /* The value is extended to a wider register. */
    value = type_signed(conversion->to) ? sign_extended(value, bytes) : cut_to_bytes(value, bytes);
    value = cut_to_bytes(value, conversion->to_register);
    if (conversion->to_column == 8)
      column_u64(warp, in->d)[lane] = value;
    else
      column_u32(warp, in->d)[lane] = (uint32_t)value;
  }
  return STEP_NEXT;
}

/* ---- Conversions with loops of their own ---- */
static inline uint32_t integer_of_float(uint32_t bits) { /* .rzi.s32 */
  float value = float_of(bits);
  float low = value > -0x1p31f ? value : -0x1p31f;
  int32_t inside = (int32_t)(low < 0x1p31f ? low : 0.0f);
  return value != value ? 0u : value >= 0x1p31f ? 0x7fffffffu : (uint32_t)inside;
}
HANDLER1(u64_of_u32, 64, 32, a)
HANDLER1(s64_of_s32, 64, 32, (int64_t)(int32_t)a)
HANDLER1(u32_of_u64, 32, 64, a)
HANDLER1(u16_of_u32, 32, 32, a & 0xffffu)
HANDLER1(u32_of_u16, 32, 32, a & 0xffffu)
HANDLER1(s32_of_s16, 32, 32, (int32_t)(int16_t)a)
HANDLER1(u32_of_u8, 32, 32, a & 0xffu)
HANDLER1(s32_of_s8, 32, 32, (int32_t)(int8_t)a)
HANDLER1(f32_of_s32, 32, 32, bits_of_float((float)(int32_t)a))
HANDLER1(f32_of_u32, 32, 32, bits_of_float((float)a))
HANDLER1(s32_of_f32, 32, 32, integer_of_float(a))
HANDLER1(f32_of_f16, 32, 32, float_result(float_of_half((uint16_t)a)))
HANDLER1(f16_of_f32, 32, 32, half_of_float(float_of(a)))
HANDLER1(f32_of_bf16, 32, 32, a << 16)
HANDLER1(bf16_of_f32, 32, 32, bfloat_of_float(float_of(a)))
HANDLER1(f64_of_f32, 64, 32, bits_of_double((double)float_of(a)))
HANDLER2(f16x2_of_f32, 32, 32, 32,
         (uint32_t)half_of_float(float_of(a)) << 16 | half_of_float(float_of(b)))
HANDLER2(bf16x2_of_f32, 32, 32, 32,
         (uint32_t)bfloat_of_float(float_of(a)) << 16 | bfloat_of_float(float_of(b)))

static const struct {
  Type to, from;
  Rounding rounding; /* ROUND_NONE: none is written */
  Execute execute;
} fast[] = {
    {TYPE_U64, TYPE_U32, ROUND_NONE, u64_of_u32},   {TYPE_S64, TYPE_U32, ROUND_NONE, u64_of_u32},
    {TYPE_S64, TYPE_S32, ROUND_NONE, s64_of_s32},   {TYPE_U64, TYPE_S32, ROUND_NONE, s64_of_s32},
    {TYPE_U32, TYPE_U64, ROUND_NONE, u32_of_u64},   {TYPE_S32, TYPE_U64, ROUND_NONE, u32_of_u64},
    {TYPE_U32, TYPE_S64, ROUND_NONE, u32_of_u64},   {TYPE_S32, TYPE_S64, ROUND_NONE, u32_of_u64},
    {TYPE_U16, TYPE_U32, ROUND_NONE, u16_of_u32},   {TYPE_U16, TYPE_S32, ROUND_NONE, u16_of_u32},
    {TYPE_U32, TYPE_U16, ROUND_NONE, u32_of_u16},   {TYPE_S32, TYPE_S16, ROUND_NONE, s32_of_s16},
    {TYPE_U32, TYPE_U8, ROUND_NONE, u32_of_u8},     {TYPE_S32, TYPE_S8, ROUND_NONE, s32_of_s8},
    {TYPE_F32, TYPE_S32, ROUND_RN, f32_of_s32},     {TYPE_F32, TYPE_U32, ROUND_RN, f32_of_u32},
    {TYPE_F32, TYPE_F16, ROUND_NONE, f32_of_f16},   {TYPE_F16, TYPE_F32, ROUND_RN, f16_of_f32},
    {TYPE_F32, TYPE_BF16, ROUND_NONE, f32_of_bf16}, {TYPE_BF16, TYPE_F32, ROUND_RN, bf16_of_f32},
    {TYPE_F64, TYPE_F32, ROUND_NONE, f64_of_f32},
};

/* ---- Packed destinations and sources ---- */
static inline uint32_t round_tf32(uint32_t bits, Rounding rounding, bool finite, bool relu) {
  Number number = unpack_number(bits, &format_f32);
  uint32_t result = (uint32_t)pack_number(number, &format_tf32, rounding, finite) << 13;
  if (number.kind == NUMBER_NAN && rounding != ROUND_RNA) return 0x7fffe000u;
  /* .rna truncates the payload, .satfinite uses the preceding bit pattern */
  if (number.kind == NUMBER_NAN) return (bits & 0xffffe000u) - (finite ? 0x2000u : 0u);
  return relu && (result >> 31) ? 0 : result;
}
/* The same for .rna without .satfinite, as libraries and compilers use it: half of the last place that is kept is
 * added to the magnitude. A carry goes into the exponent, and up to infinity. */
static inline uint32_t round_away_tf32(uint32_t bits) {
  bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return (bits + (nan ? 0 : 0x1000u)) & 0xffffe000u;
}
HANDLER1(tf32_away_of_f32, 32, 32, round_away_tf32(a))
static StepResult convert_tf32(Warp *warp, const Instruction *in, LaneMask mask) {
  const Conversion *conversion = in->decoded;
  LANE_ARRAY uint32_t result[LANES];
  const uint32_t *a = column_u32(warp, in->a);
  for (int lane = 0; lane < LANES; lane++)
    result[lane] = round_tf32(a[lane], conversion->rounding, conversion->finite, conversion->relu);
  store_u32(warp, in->d, mask, result);
  return STEP_NEXT;
}

static uint32_t into_format(const Conversion *conversion, uint64_t bits, const FloatFormat *from,
                            const FloatFormat *to) {
  Number number = unpack_number(bits, from);
  uint32_t result = (uint32_t)pack_number(number, to, conversion->rounding, conversion->finite);
  bool negative = (result >> to->sign_bit) & 1u;
  return conversion->relu && negative && number.kind != NUMBER_NAN ? 0 : result;
}
static const FloatFormat *packed_format(Type type) {
  static const FloatFormat *const formats[TYPES] = {[TYPE_F16X2] = &format_f16,
                                                    [TYPE_BF16X2] = &format_bf16,
                                                    [TYPE_E4M3X2] = &format_e4m3,
                                                    [TYPE_E5M2X2] = &format_e5m2};
  return formats[type];
}
/* d, a, b of f32: a goes to the upper half. */
static StepResult convert_two(Warp *warp, const Instruction *in, LaneMask mask) {
  const Conversion *conversion = in->decoded;
  const FloatFormat *to = packed_format(conversion->to);
  LANE_ARRAY uint32_t result[LANES];
  const uint32_t *a = column_u32(warp, in->a), *b = column_u32(warp, in->b);
  for (int lane = 0; lane < LANES; lane++)
    result[lane] = into_format(conversion, a[lane], &format_f32, to) << (to->sign_bit + 1) |
                   into_format(conversion, b[lane], &format_f32, to);
  store_u32(warp, in->d, mask, result);
  return STEP_NEXT;
}
/* Between pairs: f16x2 and the 8-bit types. */
static StepResult convert_pair(Warp *warp, const Instruction *in, LaneMask mask) {
  const Conversion *conversion = in->decoded;
  const FloatFormat *from = packed_format(conversion->from), *to = packed_format(conversion->to);
  int from_bits = from->sign_bit + 1, to_bits = to->sign_bit + 1;
  LANE_ARRAY uint32_t result[LANES];
  const uint32_t *a = column_u32(warp, in->a);
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t low = cut_to_bytes(a[lane], (uint32_t)from_bits / 8), high = a[lane] >> from_bits;
    high = (uint32_t)cut_to_bytes(high, (uint32_t)from_bits / 8);
    result[lane] =
        into_format(conversion, high, from, to) << to_bits | into_format(conversion, low, from, to);
  }
  store_u32(warp, in->d, mask, result);
  return STEP_NEXT;
}

/* ---- Decoding ---- */
static uint16_t any_width_source(Form *form, Conversion *conversion) {
  const Operand *operand = form_operand(form, 1);
  uint32_t bytes = type_bytes(conversion->from);
  conversion->from_column = bytes == 8 ? 8 : 4;
  if (operand->special && (type_floating(conversion->to) || type_floating(conversion->from)))
    form_fail(form, "a special register is converted between integers");
  if (operand->kind == OPERAND_REGISTER && !operand->constant && operand->bytes > bytes) {
    conversion->from_column = operand->bytes == 8 ? 8 : 4;
    if (operand->bytes == 16) form_fail(form, "a register of 128 bits cannot be converted");
    if (conversion->from == TYPE_BF16) form_fail(form, "bf16 is in a register of 16 bits");
    form_fits(form, operand, conversion->from);
    return operand->slot;
  }
  return form_source(form, 1, conversion->from);
}
static uint16_t any_width_destination(Form *form, Conversion *conversion) {
  const Operand *operand = form_operand(form, 0);
  uint32_t bytes = type_bytes(conversion->to);
  if (form->failed) return 0;
  if (operand->kind != OPERAND_REGISTER || operand->constant || operand->bytes < bytes ||
      operand->bytes > 8) {
    form_fail(form, "the destination must be a register of the right width");
    return 0;
  }
  form_fits(form, operand, conversion->to);
  conversion->to_column = operand->bytes == 8 ? 8 : 4;
  conversion->to_register = operand->bytes;
  return operand->slot;
}

static bool packed_decode(Form *form, Conversion *conversion) {
  Type to = conversion->to, from = conversion->from;
  bool small = to == TYPE_E4M3X2 || to == TYPE_E5M2X2;
  if (conversion->to_integer_value || conversion->saturate || conversion->flush)
    return form_fail(form, "no such modifier for packed types");
  if (to == TYPE_TF32) {
    bool away = conversion->rounding == ROUND_RNA;
    if (from != TYPE_F32 ||
        (!away && conversion->rounding != ROUND_RN && conversion->rounding != ROUND_RZ))
      return form_fail(form, "tf32 comes from f32 with .rna, .rn or .rz");
    if ((conversion->relu && away) || (conversion->finite && !away))
      return form_fail(form, "to tf32, .relu goes with .rn and .rz, .satfinite with .rna");
    if (!form_columns(form, TYPE_TF32, TYPE_F32, TYPE_NONE, TYPE_NONE)) return false;
    return form_end(form, away && !conversion->finite ? tf32_away_of_f32 : convert_tf32);
  }
  bool nearest = conversion->rounding == ROUND_RN;
  if (small && (!nearest || !conversion->finite))
    return form_fail(form, "the 8-bit types are converted to with .rn.satfinite");
  if (from == TYPE_F32 && (small || to == TYPE_F16X2 || to == TYPE_BF16X2)) {
    if (!nearest && conversion->rounding != ROUND_RZ)
      return form_fail(form, "pairs are rounded with .rn or .rz");
    if (!form_columns(form, to, TYPE_F32, TYPE_F32, TYPE_NONE)) return false;
    bool plain = nearest && !conversion->finite && !conversion->relu;
    if (plain && to == TYPE_F16X2) return form_end(form, f16x2_of_f32);
    if (plain && to == TYPE_BF16X2) return form_end(form, bf16x2_of_f32);
    return form_end(form, convert_two);
  }
  bool from_small = from == TYPE_E4M3X2 || from == TYPE_E5M2X2;
  if ((small && from == TYPE_F16X2) || (from_small && to == TYPE_F16X2 && nearest)) {
    if (!form_columns(form, to, from, TYPE_NONE, TYPE_NONE)) return false;
    return form_end(form, convert_pair);
  }
  return form_fail(form, "no such conversion on sm_90");
}

/* Does an integer type hold all numbers of the other one? */
static bool holds_all(Type to, Type from) {
  if (type_signed(from)) return type_signed(to) && type_bytes(to) >= type_bytes(from);
  return type_bytes(to) >= type_bytes(from) + (type_signed(to) ? 1u : 0u);
}

static bool between_halves(const Conversion *conversion) {
  Type to = conversion->to, from = conversion->from;
  return (to == TYPE_BF16 && from == TYPE_F16) || (to == TYPE_F16 && from == TYPE_BF16);
}

/* The roundings that ptxas takes between floats. */
static const char *float_rounding_clash(const Conversion *conversion) {
  Type to = conversion->to, from = conversion->from;
  bool given = conversion->rounding != ROUND_NONE, integral = conversion->to_integer_value;
  bool halves = between_halves(conversion);
  if (to == from)
    return given && !integral ? "within one type only .rni, .rzi, .rmi and .rpi round" : NULL;
  if (integral) return ".rni, .rzi, .rmi and .rpi are for integers and within one type";
  if (halves || format_of(to)->precision < format_of(from)->precision)
    return given ? NULL : "this conversion names its rounding";
  return given && from != TYPE_BF16 ? "a conversion to a wider type does not round" : NULL;
}

/* What ptxas refuses of conversions between numbers. */
static const char *conversion_clash(const Conversion *conversion) {
  Type to = conversion->to, from = conversion->from;
  bool to_integer = type_integer(to), from_integer = type_integer(from);
  bool given = conversion->rounding != ROUND_NONE, integral = conversion->to_integer_value;
  bool bf16 = to == TYPE_BF16 || from == TYPE_BF16;
  if (bf16 && (type_bytes(to) == 1 || type_bytes(from) == 1))
    return "there is no conversion between bf16 and 8 bits";
  if (bf16 && conversion->saturate) return "there is no .sat from or to bf16";
  if (conversion->rounding == ROUND_RNA) return ".rna is for tf32";
  if (conversion->flush && to != TYPE_F32 && from != TYPE_F32) return ".ftz goes with f32";
  bool special = conversion->finite || conversion->relu;
  if (special && ((to != TYPE_F16 && to != TYPE_BF16) || from != TYPE_F32))
    return ".satfinite and .relu belong to conversions from f32 to 16 bits";
  if (special && (conversion->flush || conversion->saturate || integral ||
                  (conversion->rounding != ROUND_RN && conversion->rounding != ROUND_RZ)))
    return ".satfinite and .relu go with .rn or .rz, and not with .ftz or .sat";
  if (to_integer && from_integer) {
    if (given) return "a conversion between integers does not round";
    return conversion->saturate && holds_all(to, from) ? ".sat: all numbers fit anyway" : NULL;
  }
  if (to_integer && !integral)
    return "a conversion to an integer rounds with .rni, .rzi, .rmi or .rpi";
  if (from_integer && (!given || integral))
    return "a conversion from an integer rounds with .rn, .rz, .rm or .rp";
  return to_integer || from_integer ? NULL : float_rounding_clash(conversion);
}

FORM_DECODER(decode_cvt, 1) {
  static const char *const integer_roundings[] = {"rni", "rzi", "rmi", "rpi", NULL};
  Conversion *conversion = decoder_allocate(decoder, sizeof *conversion);
  out->decoded = conversion;
  conversion->to = form_type(&form);
  conversion->from = form_type(&form);
  int integer = form_choose(&form, integer_roundings);
  conversion->rounding = integer >= 0 ? (Rounding)(ROUND_RN + integer) : form_rounding(&form);
  if (form_take(&form, "rna")) conversion->rounding = ROUND_RNA;
  conversion->to_integer_value = integer >= 0;
  conversion->flush = form_take(&form, "ftz");
  conversion->saturate = form_take(&form, "sat");
  conversion->finite = form_take(&form, "satfinite");
  conversion->relu = form_take(&form, "relu");
  if (conversion->rounding == ROUND_NONE && between_halves(conversion))
    conversion->rounding = ROUND_RN; /* as ptxas assumes */
  Type to = conversion->to, from = conversion->from;
  if (to == TYPE_NONE || from == TYPE_NONE) return form_fail(&form, "cvt names two types");
  const FloatFormat *to_format = format_of(to), *from_format = format_of(from);
  if ((!type_integer(to) && !to_format) || (!type_integer(from) && !from_format))
    return packed_decode(&form, conversion);

  const char *clash = conversion_clash(conversion);
  if (clash) return form_fail(&form, "%s", clash);
  if (!form_operands(&form, 2, 2)) return false;
  out->d = any_width_destination(&form, conversion);
  out->a = any_width_source(&form, conversion);

  bool own_widths =
      conversion->from_column == (type_bytes(from) == 8 ? 8 : 4) &&
      conversion->to_column == (type_bytes(to) == 8 ? 8 : 4) &&
      !(type_bytes(to) < 4 && conversion->to_register > type_bytes(to) && type_signed(to));
  bool plain =
      !conversion->flush && !conversion->saturate && !conversion->finite && !conversion->relu;
  if (plain && own_widths) {
    for (size_t i = 0; i < sizeof fast / sizeof fast[0]; i++)
      if (fast[i].to == to && fast[i].from == from && integer < 0 &&
          fast[i].rounding == conversion->rounding)
        return form_end(&form, fast[i].execute);
    if (to == TYPE_S32 && from == TYPE_F32 && integer == 1) return form_end(&form, s32_of_f32);
  }
  return form_end(&form, convert_any);
}

/* ---- cvt.pack ---- */

/* cvt.pack.sat.convertType.abType d, a, b {, c}: a and b, clamped, side by side with b in the low
 * bits; types of 8 bits and less have c's low bits above them. */
typedef struct {
  int64_t least, most;
  uint32_t bits;
  bool with_c;
} Pack;

static uint32_t clamped_bits(int32_t value, const Pack *packing) {
  int64_t wide = value, kept = wide < packing->least ? packing->least : wide;
  if (kept > packing->most) kept = packing->most;
  return (uint32_t)kept & ((1u << packing->bits) - 1);
}

static StepResult cvt_pack(Warp *warp, const Instruction *in, LaneMask mask) {
  const Pack *packing = in->decoded;
  LANE_ARRAY uint32_t result[LANES];
  const uint32_t *a = column_u32(warp, in->a), *b = column_u32(warp, in->b);
  const uint32_t *c = column_u32(warp, packing->with_c ? in->c : in->a);
  for (int lane = 0; lane < LANES; lane++) {
    result[lane] = clamped_bits((int32_t)a[lane], packing) << packing->bits |
                   clamped_bits((int32_t)b[lane], packing);
    if (packing->with_c) result[lane] |= c[lane] << (2 * packing->bits);
  }
  store_u32(warp, in->d, mask, result);
  return STEP_NEXT;
}

FORM_DECODER(decode_cvt_pack, 2) {
  static const char *const types[] = {"s16", "u16", "s8", "u8", "s4", "u4", "s2", "u2", NULL};
  bool saturate = form_take(&form, "sat");
  int to = form_choose(&form, types);
  Type from = form_type(&form), third = form_type(&form);
  if (!saturate || from != TYPE_S32 || to < 0 || third != (to < 2 ? TYPE_NONE : TYPE_B32))
    return form_fail(&form,
                     "cvt.pack is .sat.{s16,u16}.s32 or .sat.{s8,u8,s4,u4,s2,u2}.s32.b32 on sm_90");
  Pack *packing = decoder_allocate(decoder, sizeof *packing);
  packing->bits = 16u >> to / 2;
  packing->with_c = to >= 2;
  bool is_signed = to % 2 == 0;
  packing->most = (1ll << (packing->bits - is_signed)) - 1;
  packing->least = is_signed ? -packing->most - 1 : 0;
  out->decoded = packing;
  if (!form_columns(&form, TYPE_U32, TYPE_S32, TYPE_S32, third)) return false;
  return form_end(&form, cvt_pack);
}
