/* element.h: the element types a tile can hold, and their values as doubles on the host.
 *
 * Half and bfloat16 arrays are held as uint16_t on the host, so that this file needs no CUDA. */
#ifndef COMMON_ELEMENT_H
#define COMMON_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  ELEMENT_U8,
  ELEMENT_S8,
  ELEMENT_U16,
  ELEMENT_S16,
  ELEMENT_U32,
  ELEMENT_S32,
  ELEMENT_U64,
  ELEMENT_S64,
  ELEMENT_F16,
  ELEMENT_BF16,
  ELEMENT_F32,
  ELEMENT_F64
} ElementType;

size_t element_bytes(ElementType type);
const char *element_name(ElementType type);
bool element_is_float(ElementType type);

/* The value of array[index]. 64-bit integers above 2^53 lose their low bits here: compare those
 * with their bits, as check_tile does. */
double element_value(ElementType type, const void *array, size_t index);

/* Writes array[index] as a person reads it: integers in full, floats with up to 6 digits. */
void element_format(ElementType type, const void *array, size_t index, char *text,
                    size_t text_bytes);

/* Conversions round to nearest, ties to even, as the hardware's cvt.rn does. */
uint16_t half_from_float(float value);
float half_to_float(uint16_t bits);
uint16_t bfloat16_from_float(float value);
float bfloat16_to_float(uint16_t bits);

#ifdef __cplusplus
}
#endif
#endif
