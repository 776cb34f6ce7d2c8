/* cubin.h: what the machine code of a kernel says and its PTX does not. */
#ifndef EMULATOR_CUBIN_H
#define EMULATOR_CUBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint32_t registers; /* per thread */
  /* The most loads from global memory that a warp has under way before it waits for one. */
  uint32_t loads_at_once;
} MachineCode;

/* Of this kernel; 0 in a field: unknown, or the file is damaged. */
MachineCode cubin_machine_code(const unsigned char *cubin, size_t bytes, const char *kernel);

/* Does the text define every function of the machine code? */
bool cubin_is_of(const unsigned char *cubin, size_t bytes, const char *ptx);

#endif
