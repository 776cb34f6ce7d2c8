/* types.h: the types of PTX, in declarations and as modifiers of instructions. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum {
  TYPE_NONE,
  TYPE_B8,
  TYPE_B16,
  TYPE_B32,
  TYPE_B64,
  TYPE_B128,
  TYPE_U8,
  TYPE_U16,
  TYPE_U32,
  TYPE_U64,
  TYPE_S8,
  TYPE_S16,
  TYPE_S32,
  TYPE_S64,
  TYPE_U16X2,
  TYPE_S16X2,
  TYPE_F16,
  TYPE_F16X2,
  TYPE_BF16,
  TYPE_BF16X2,
  TYPE_F32,
  TYPE_F64,
  TYPE_TF32,
  TYPE_E4M3X2,
  TYPE_E5M2X2,
  TYPE_PREDICATE,
  TYPES
} Type;

Type type_named(const char *name); /* TYPE_NONE: no instruction works on such a type */
uint32_t type_bytes(Type type);
const char *type_name(Type type);
/* The size of any type in bytes; 0 for a predicate. False: there is no such type. */
bool type_size(const char *name, uint8_t *bytes);
/* Registers and variables may have this type; their size, and what they hold (DeclaredNumbers). */
bool declared_type(const char *name, uint8_t *bytes, uint8_t *numbers);
/* An opaque type: .texref, .samplerref or .surfref. */
bool type_opaque(const char *name);

/* The bits of its exponent, or of both; 0: it has none. */
uint64_t type_exponent(Type type);

static inline bool type_signed(Type type) {
  return (type >= TYPE_S8 && type <= TYPE_S64) || type == TYPE_S16X2;
}
static inline bool type_integer(Type type) { return type >= TYPE_U8 && type <= TYPE_S64; }
static inline bool type_bits(Type type) { return type >= TYPE_B8 && type <= TYPE_B128; }
static inline bool type_floating(Type type) { return type >= TYPE_F16 && type <= TYPE_E5M2X2; }
static inline bool type_packed(Type type) {
  return type == TYPE_U16X2 || type == TYPE_S16X2 || type == TYPE_F16X2 || type == TYPE_BF16X2 ||
         type == TYPE_E4M3X2 || type == TYPE_E5M2X2;
}
