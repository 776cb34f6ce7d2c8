/* device_printf.h: formats the printf output of one thread. */
#pragma once

#include "base/warp.h"

enum { PRINTF_MOST_WIDTH = 65536 };

typedef struct {
  char *text; /* allocated by malloc */
  size_t bytes, capacity;
  int arguments; /* number of arguments copied: what printf returns on the device */
  bool too_wide; /* a width or precision was above PRINTF_MOST_WIDTH, which was used instead */
} DeviceText;

/* The bytes from a generic address of this lane to the end of the variable, block or space that it
 * lies in. false: the address is invalid. */
bool device_bytes_at(const Warp *warp, int lane, uint64_t address, const char **bytes,
                     size_t *count);
/* `format` ends with a zero or after `format_bytes`. Arguments lie in `arguments` as the device's C
 * ABI lays them out; past their end, zeros are read. Strings are generic addresses. */
DeviceText device_printf(Warp *warp, const Instruction *in, int lane, const char *format,
                         size_t format_bytes, const char *arguments, size_t argument_bytes);
