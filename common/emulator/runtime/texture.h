/* texture.h: arrays, textures and surfaces, shared by the files of the runtime. */
#ifndef EMULATOR_RUNTIME_TEXTURE_H
#define EMULATOR_RUNTIME_TEXTURE_H

#include "base/texture.h"
#include "runtime/runtime.h"

/* The driver's CUarray is the same. */
struct cudaArray {
  struct cudaArray *next;
  struct cudaChannelFormatDesc channels;
  TexelFormat format;
  struct cudaExtent extent; /* as specified by the program: 0 for missing dimensions */
  unsigned flags;
  uint64_t first; /* its memory */
  size_t rows, slices, row_bytes;
};

bool array_exists(cudaArray_const_t array);
cudaError_t array_create(cudaArray_t *array, const struct cudaChannelFormatDesc *channels,
                         struct cudaExtent extent, unsigned flags);
void *array_run(cudaArray_const_t array, size_t x, size_t y, size_t bytes);
/* False: not a texture format. */
bool texel_format_of(const struct cudaChannelFormatDesc *channels, TexelFormat *format);

cudaError_t texture_create(uint64_t *object, const struct cudaResourceDesc *resource,
                           const struct cudaTextureDesc *how,
                           const struct cudaResourceViewDesc *view);
cudaError_t surface_create(uint64_t *object, const struct cudaResourceDesc *resource);

/* Converts a copy from the driver's description to the runtime's. */
CUresult driver_copy_as_runtime(const CUDA_MEMCPY3D *copy, struct cudaMemcpy3DParms *same);

#endif
