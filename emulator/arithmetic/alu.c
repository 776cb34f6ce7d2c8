/* alu.c: chooses the decoder family of instructions that exist for several types. */
#include "arithmetic/alu.h"

typedef struct {
  FamilyDecode *integer, *floating, *half;
} FamilyDecoders;

static bool decode_family(Decoder *decoder, const PtxStatement *statement, Instruction *out,
                          FamilyDecoders families) {
  Form form = form_begin(decoder, statement, out, 1);
  Type type = form_type(&form);
  FamilyDecode *decode = NULL;
  if (type_integer(type) || type == TYPE_U16X2 || type == TYPE_S16X2) decode = families.integer;
  if (type == TYPE_F32 || type == TYPE_F64) decode = families.floating;
  if (type >= TYPE_F16 && type <= TYPE_BF16X2) decode = families.half;
  return decode ? decode(&form, type) : form_fail(&form, "no such type for this instruction");
}

#define FAMILY(name, ...)                                                         \
  DECODER(decode_##name) {                                                        \
    return decode_family(decoder, statement, out, (FamilyDecoders){__VA_ARGS__}); \
  }
FAMILY(add, integer_add, float_add, half_add)
FAMILY(sub, integer_sub, float_sub, half_sub)
FAMILY(mul, integer_mul, float_mul, half_mul)
FAMILY(mad, integer_mad, float_fma, NULL)
FAMILY(fma, NULL, float_fma, half_fma)
FAMILY(div, integer_div, float_div, NULL)
FAMILY(rem, integer_rem, NULL, NULL)
FAMILY(abs, integer_abs, float_abs, half_abs)
FAMILY(neg, integer_neg, float_neg, half_neg)
FAMILY(min, integer_min, float_min, half_min)
FAMILY(max, integer_max, float_max, half_max)
