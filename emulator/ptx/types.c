/* types.c: the one table of types (types.h). */
#include "ptx/types.h"

#include <stddef.h>
#include <string.h>

#include "base/instruction.h"

enum { ONLY_OF_INSTRUCTIONS = 0xff };
static const struct {
  const char *name;
  Type type; /* TYPE_NONE: of no instruction */
  uint8_t bytes;
  uint8_t numbers; /* DeclaredNumbers of registers that are declared so */
} types[] = {
    {"b8", TYPE_B8, 1, NUMBERS_BITS},
    {"b16", TYPE_B16, 2, NUMBERS_BITS},
    {"b32", TYPE_B32, 4, NUMBERS_BITS},
    {"b64", TYPE_B64, 8, NUMBERS_BITS},
    {"b128", TYPE_B128, 16, NUMBERS_BITS},
    {"u8", TYPE_U8, 1, NUMBERS_INTEGER},
    {"u16", TYPE_U16, 2, NUMBERS_INTEGER},
    {"u32", TYPE_U32, 4, NUMBERS_INTEGER},
    {"u64", TYPE_U64, 8, NUMBERS_INTEGER},
    {"s8", TYPE_S8, 1, NUMBERS_INTEGER},
    {"s16", TYPE_S16, 2, NUMBERS_INTEGER},
    {"s32", TYPE_S32, 4, NUMBERS_INTEGER},
    {"s64", TYPE_S64, 8, NUMBERS_INTEGER},
    {"f16", TYPE_F16, 2, NUMBERS_FLOAT},
    {"f32", TYPE_F32, 4, NUMBERS_FLOAT},
    {"f64", TYPE_F64, 8, NUMBERS_FLOAT},
    {"f16x2", TYPE_F16X2, 4, NUMBERS_HALVES},
    {"pred", TYPE_PREDICATE, 0, NUMBERS_BITS},
    {"u16x2", TYPE_U16X2, 4, ONLY_OF_INSTRUCTIONS},
    {"s16x2", TYPE_S16X2, 4, ONLY_OF_INSTRUCTIONS},
    {"bf16", TYPE_BF16, 2, ONLY_OF_INSTRUCTIONS},
    {"bf16x2", TYPE_BF16X2, 4, ONLY_OF_INSTRUCTIONS},
    {"tf32", TYPE_TF32, 4, ONLY_OF_INSTRUCTIONS},
    {"e4m3x2", TYPE_E4M3X2, 2, ONLY_OF_INSTRUCTIONS},
    {"e5m2x2", TYPE_E5M2X2, 2, ONLY_OF_INSTRUCTIONS},
    {"f32x2", TYPE_NONE, 8, ONLY_OF_INSTRUCTIONS},
    {"texref", TYPE_NONE, 8, NUMBERS_BITS},
    {"samplerref", TYPE_NONE, 8, NUMBERS_BITS},
    {"surfref", TYPE_NONE, 8, NUMBERS_BITS},
};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

Type type_named(const char *name) {
  for (size_t i = 0; i < TYPE_COUNT; i++)
    if (strcmp(types[i].name, name) == 0) return types[i].type;
  return TYPE_NONE;
}

uint32_t type_bytes(Type type) {
  for (size_t i = 0; i < TYPE_COUNT; i++)
    if (types[i].type == type) return types[i].bytes;
  return 0;
}

uint64_t type_exponent(Type type) {
  static const uint64_t exponents[TYPES] = {
      [TYPE_F16] = 0x7c00,       [TYPE_BF16] = 0x7f80,       [TYPE_F32] = 0x7f800000,
      [TYPE_F16X2] = 0x7c007c00, [TYPE_BF16X2] = 0x7f807f80, [TYPE_F64] = 0x7ff0000000000000};
  return exponents[type];
}

const char *type_name(Type type) {
  for (size_t i = 0; i < TYPE_COUNT; i++)
    if (types[i].type == type && type != TYPE_NONE) return types[i].name;
  return "none";
}

bool type_size(const char *name, uint8_t *bytes) {
  for (size_t i = 0; i < TYPE_COUNT; i++) {
    if (strcmp(types[i].name, name) != 0) continue;
    *bytes = types[i].bytes;
    return true;
  }
  return false;
}

bool declared_type(const char *name, uint8_t *bytes, uint8_t *numbers) {
  for (size_t i = 0; i < TYPE_COUNT; i++) {
    if (strcmp(types[i].name, name) != 0 || types[i].numbers == ONLY_OF_INSTRUCTIONS) continue;
    *bytes = types[i].bytes;
    *numbers = types[i].numbers;
    return true;
  }
  return false;
}

bool type_opaque(const char *name) { return type_named(name) == TYPE_NONE && strstr(name, "ref"); }
