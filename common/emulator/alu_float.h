/* alu_float.h: what the rooms of floating-point instructions share. */
#ifndef EMULATOR_ALU_FLOAT_H
#define EMULATOR_ALU_FLOAT_H

#include "alu.h"

/* Every NaN that arithmetic makes is this one. */
#define CANONICAL_NAN 0x7fffffffu
#define CANONICAL_NAN_F64 0x7ff8000000000000ull

static inline uint32_t flush(uint32_t bits) {
  return (bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits;
}
static inline float flushed(uint32_t bits) { return float_of(flush(bits)); }
static inline uint32_t float_result(float value) {
  return value != value ? CANONICAL_NAN : bits_of_float(value);
}
static inline uint64_t double_result(double value) {
  return value != value ? CANONICAL_NAN_F64 : bits_of_double(value);
}
/* .sat: to 0 to 1; NaN and -0 become +0. */
static inline uint32_t float_saturated(float value) {
  float low = value > 0.0f ? value : 0.0f;
  return bits_of_float(low < 1.0f ? low : 1.0f);
}

typedef enum { ROUND_NONE, ROUND_RN, ROUND_RZ, ROUND_RM, ROUND_RP, ROUND_RNA } Rounding;
Rounding form_rounding(Form *form); /* takes .rn .rz .rm .rp */

typedef enum { FLOAT_ADD, FLOAT_SUB, FLOAT_MUL, FLOAT_DIV, FLOAT_FMA, FLOAT_SQRT } FloatOperation;
typedef struct {
  FloatOperation operation;
  Rounding rounding;
  bool flush, saturate;
} Directed;
bool directed_end(Form *form, FloatOperation operation, Type type, Rounding rounding, bool flush_,
                  bool saturate, int sources);
StepResult directed_f32(Warp *warp, const Instruction *in, LaneMask mask);
StepResult directed_f64(Warp *warp, const Instruction *in, LaneMask mask);

/* alu_special.c */
uint32_t divide_approximately(uint32_t a, uint32_t b, bool flush_inputs);
uint32_t divide_fully(uint32_t a, uint32_t b, bool flush_inputs);

#endif
