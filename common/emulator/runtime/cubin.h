/* cubin.h: reads the register count of kernels from machine code. */
#ifndef EMULATOR_CUBIN_H
#define EMULATOR_CUBIN_H

#include <stddef.h>
#include <stdint.h>

/* The number of registers per thread of this kernel; 0: unknown, or the file is damaged. */
uint32_t cubin_registers(const unsigned char *cubin, size_t bytes, const char *kernel);

#endif
