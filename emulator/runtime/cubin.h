/* cubin.h: machine code: what it says and its PTX does not, and the PTX to run in its place. */
#pragma once

#include <cuda.h>
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

/* ---- PTX in its place: what the compiler has left in a file (kept_ptx.c), or NVRTC keeps (nvrtc_cubin.c) ---- */

/* Newly allocated. NULL: EMULATOR_PTX is not set, or no file there defines the same functions. */
char *kept_ptx_of(const unsigned char *cubin, size_t bytes);

/* The same of an ELF file in memory, whose size its header states. */
char *kept_ptx_of_elf(const void *elf);

/* A whole file, newly allocated and with a zero byte behind it. NULL: it cannot be read. */
char *read_whole_file(const char *path, size_t *bytes);

/* Whether the device can run this text: PTX, or one that nvrtcGetCUBIN has returned.
 * CUDA_ERROR_NO_BINARY_FOR_GPU: it is a cubin for another device. CUDA_ERROR_INVALID_IMAGE: it is not PTX.
 * CUDA_ERROR_UNSUPPORTED_PTX_VERSION. CUDA_ERROR_INVALID_PTX: it does not begin as PTX must, or is for a newer
 * device. */
CUresult nvrtc_text_runs_here(const char *text);
