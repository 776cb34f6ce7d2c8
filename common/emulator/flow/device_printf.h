/* device_printf.h: formats one printf of a kernel. */
#ifndef EMULATOR_DEVICE_PRINTF_H
#define EMULATOR_DEVICE_PRINTF_H

#include <stddef.h>
#include <stdint.h>

/* `arguments` is the buffer that vprintf got; strings are generic addresses of global or constant
 * memory. Returns how long the text is, which may be more than `text_bytes` can hold. */
int device_printf_format(char *text, size_t text_bytes, const char *format,
                         const uint8_t *arguments);

#endif
