/* alu.c: the rows of arithmetic, and which family an instruction of several types belongs to. */
#include "arithmetic/alu.h"

typedef struct {
  FamilyDecode *integer, *floating, *half;
} Families;

static bool decode_family(Decoder *decoder, const PtxStatement *statement, Instruction *out,
                          Families families) {
  Form form = form_begin(decoder, statement, out, 1);
  Type type = form_type(&form);
  FamilyDecode *decode = NULL;
  if (type_integer(type) || type == TYPE_U16X2 || type == TYPE_S16X2) decode = families.integer;
  if (type == TYPE_F32 || type == TYPE_F64) decode = families.floating;
  if (type >= TYPE_F16 && type <= TYPE_BF16X2) decode = families.half;
  return decode ? decode(&form, type) : form_fail(&form, "no such type for this instruction");
}

#define FAMILY_ROW(name, ...)                                                                    \
  static bool decode_##name(Decoder *decoder, const PtxStatement *statement, Instruction *out) { \
    return decode_family(decoder, statement, out, (Families){__VA_ARGS__});                      \
  }
FAMILY_ROW(add, integer_add, float_add, half_add)
FAMILY_ROW(sub, integer_sub, float_sub, half_sub)
FAMILY_ROW(mul, integer_mul, float_mul, half_mul)
FAMILY_ROW(mad, integer_mad, float_fma, NULL)
FAMILY_ROW(fma, NULL, float_fma, half_fma)
FAMILY_ROW(div, integer_div, float_div, NULL)
FAMILY_ROW(rem, integer_rem, NULL, NULL)
FAMILY_ROW(abs, integer_abs, float_abs, half_abs)
FAMILY_ROW(neg, integer_neg, float_neg, half_neg)
FAMILY_ROW(min, integer_min, float_min, half_min)
FAMILY_ROW(max, integer_max, float_max, half_max)

const InstructionRow alu_rows[] = {
    {"mov", decode_mov},
    {"selp", decode_selp},
    {"slct", decode_slct},
    {"set", decode_set},
    {"setp", decode_setp},
    {"add", decode_add},
    {"addc", decode_carry},
    {"sub", decode_sub},
    {"subc", decode_carry},
    {"mul", decode_mul},
    {"mad", decode_mad},
    {"madc", decode_carry},
    {"fma", decode_fma},
    {"div", decode_div},
    {"rem", decode_rem},
    {"abs", decode_abs},
    {"neg", decode_neg},
    {"min", decode_min},
    {"max", decode_max},
    {"mul24", decode_mul24},
    {"mad24", decode_mul24},
    {"sad", decode_sad},
    {"dp4a", decode_integer_dot},
    {"dp2a", decode_integer_dot},
    {"and", decode_logic},
    {"or", decode_logic},
    {"xor", decode_logic},
    {"not", decode_not},
    {"cnot", decode_cnot},
    {"lop3", decode_lop3},
    {"shl", decode_shift},
    {"shr", decode_shift},
    {"shf", decode_shf},
    {"prmt", decode_prmt},
    {"bfe", decode_bfe},
    {"bfi", decode_bfi},
    {"szext", decode_szext},
    {"bmsk", decode_bmsk},
    {"popc", decode_count},
    {"clz", decode_count},
    {"bfind", decode_bfind},
    {"brev", decode_brev},
    {"fns", decode_fns},
    {"testp", decode_testp},
    {"copysign", decode_copysign},
    {"rcp", decode_rcp},
    {"sqrt", decode_sqrt},
    {"rsqrt", decode_rsqrt},
    {"sin", decode_sin},
    {"cos", decode_cos},
    {"lg2", decode_lg2},
    {"ex2", decode_ex2},
    {"tanh", decode_tanh},
    {"cvt", decode_cvt},
    {"cvt.pack", decode_cvt_pack},
    {"vadd2", decode_video},
    {"vadd4", decode_video},
    {"vsub2", decode_video},
    {"vsub4", decode_video},
    {"vavrg2", decode_video},
    {"vavrg4", decode_video},
    {"vabsdiff2", decode_video},
    {"vabsdiff4", decode_video},
    {"vmin2", decode_video},
    {"vmin4", decode_video},
    {"vmax2", decode_video},
    {"vmax4", decode_video},
    {"vset2", decode_video},
    {"vset4", decode_video},
    {"vadd", decode_video},
    {"vsub", decode_video},
    {"vabsdiff", decode_video},
    {"vmin", decode_video},
    {"vmax", decode_video},
    {"vshl", decode_video},
    {"vshr", decode_video},
    {"vset", decode_video},
    {"vmad", decode_video},
    {"", NULL},
};
