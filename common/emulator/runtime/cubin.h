/* cubin.h: machine code, of which only one thing matters here. */
#ifndef EMULATOR_CUBIN_H
#define EMULATOR_CUBIN_H

#include <stddef.h>
#include <stdint.h>

/* How many registers a thread of this kernel has, 0: it does not say, or is damaged. */
uint32_t cubin_registers(const unsigned char *cubin, size_t bytes, const char *kernel);

#endif
