/* kept_ptx.h: the PTX of machine code, where the compiler has left it in a file. */
#ifndef EMULATOR_KEPT_PTX_H
#define EMULATOR_KEPT_PTX_H

#include <stddef.h>

/* Newly allocated. NULL: EMULATOR_PTX is not set, or no file there defines the same functions. */
char *kept_ptx_of(const unsigned char *cubin, size_t bytes);

/* The same of an ELF file in memory, whose size its header states. */
char *kept_ptx_of_elf(const void *elf);

/* A whole file, newly allocated and with a zero byte behind it. NULL: it cannot be read. */
char *read_whole_file(const char *path, size_t *bytes);

#endif
