/* nvrtc_cubin.h: what the emulator hands out as NVRTC's cubin, and which devices can run what. */
#ifndef EMULATOR_NVRTC_CUBIN_H
#define EMULATOR_NVRTC_CUBIN_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* Whether the device can run this text: PTX, or one that nvrtcGetCUBIN has returned.
 * CUDA_ERROR_NO_BINARY_FOR_GPU: it is a cubin for another device. CUDA_ERROR_INVALID_IMAGE: it is not PTX.
 * CUDA_ERROR_UNSUPPORTED_PTX_VERSION. CUDA_ERROR_INVALID_PTX: it does not begin as PTX must, or is for a newer
 * device. */
CUresult nvrtc_text_runs_here(const char *text);

#endif
