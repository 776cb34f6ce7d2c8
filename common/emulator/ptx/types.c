/* types.c: the one table of types (types.h). */
#include "ptx/types.h"

#include <stddef.h>
#include <string.h>

static const struct {
  const char *name;
  Type type; /* TYPE_NONE: only in declarations */
  uint8_t bytes;
} types[] = {
    {"b8", TYPE_B8, 1},           {"b16", TYPE_B16, 2},       {"b32", TYPE_B32, 4},
    {"b64", TYPE_B64, 8},         {"b128", TYPE_B128, 16},    {"u8", TYPE_U8, 1},
    {"u16", TYPE_U16, 2},         {"u32", TYPE_U32, 4},       {"u64", TYPE_U64, 8},
    {"s8", TYPE_S8, 1},           {"s16", TYPE_S16, 2},       {"s32", TYPE_S32, 4},
    {"s64", TYPE_S64, 8},         {"u16x2", TYPE_U16X2, 4},   {"s16x2", TYPE_S16X2, 4},
    {"f16", TYPE_F16, 2},         {"f16x2", TYPE_F16X2, 4},   {"bf16", TYPE_BF16, 2},
    {"bf16x2", TYPE_BF16X2, 4},   {"f32", TYPE_F32, 4},       {"f64", TYPE_F64, 8},
    {"tf32", TYPE_TF32, 4},       {"e4m3x2", TYPE_E4M3X2, 2}, {"e5m2x2", TYPE_E5M2X2, 2},
    {"pred", TYPE_PREDICATE, 0},  {"f32x2", TYPE_NONE, 8},    {"texref", TYPE_NONE, 8},
    {"samplerref", TYPE_NONE, 8}, {"surfref", TYPE_NONE, 8},
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

const char *type_name(Type type) {
  for (size_t i = 0; i < TYPE_COUNT; i++)
    if (types[i].type == type && type != TYPE_NONE) return types[i].name;
  return "none";
}

bool declared_type(const char *name, uint8_t *bytes) {
  for (size_t i = 0; i < TYPE_COUNT; i++) {
    if (strcmp(types[i].name, name) != 0) continue;
    *bytes = types[i].bytes;
    return true;
  }
  return false;
}
