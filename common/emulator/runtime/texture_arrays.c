/* texture_arrays.c: CUDA arrays: texels in device memory, row after row without gaps, with a
 * format; copies between arrays and memory. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/written.h"
#include "runtime/texture.h"

static struct cudaArray *arrays;

bool array_exists(cudaArray_const_t array) {
  pthread_mutex_lock(&runtime_lock); /* other host threads may make and free arrays meanwhile */
  const struct cudaArray *each = arrays;
  while (each && each != array) each = each->next;
  pthread_mutex_unlock(&runtime_lock);
  return each != NULL;
}

bool texel_format_of(const struct cudaChannelFormatDesc *channels, TexelFormat *format) {
  int bits = channels->x, count = 1;
  if (channels->y) count = 2;
  if (channels->z) count = 3;
  if (channels->w) count = 4;
  if (count > 1 && channels->y != bits) return false;
  if (count > 2 && (count == 3 || channels->z != bits || channels->w != bits)) return false;
  if (bits != 8 && bits != 16 && bits != 32) return false;
  static const uint8_t KINDS[] = {[cudaChannelFormatKindSigned] = TEXEL_SIGNED,
                                  [cudaChannelFormatKindUnsigned] = TEXEL_UNSIGNED,
                                  [cudaChannelFormatKindFloat] = TEXEL_FLOAT};
  if ((unsigned)channels->f > cudaChannelFormatKindFloat) return false;
  if (channels->f == cudaChannelFormatKindFloat && bits == 8) return false;
  *format = (TexelFormat){KINDS[channels->f], (uint8_t)bits, (uint8_t)count};
  return true;
}

/* ---- Allocation ---- */

/* The limits of an H200, according to its attributes. */
static bool within_limits(struct cudaExtent extent, unsigned flags) {
  static const uint8_t LINE[] = {21}, PLANE[] = {22, 23}, SPACE[] = {24, 25, 26},
                       LINES[] = {42, 43}, PLANES[] = {27, 28, 29}, CUBE[] = {52, 52},
                       CUBES[] = {53, 53, 54};
  const size_t sizes[] = {extent.width, extent.height ? extent.height : extent.depth, extent.depth};
  bool layered = flags & cudaArrayLayered, cube = flags & cudaArrayCubemap;
  const uint8_t *limits = cube            ? (layered ? CUBES : CUBE)
                          : layered       ? (extent.height ? PLANES : LINES)
                          : extent.depth  ? SPACE
                          : extent.height ? PLANE
                                          : LINE;
  int count = cube            ? (layered ? 3 : 2)
              : layered       ? (extent.height ? 3 : 2)
              : extent.depth  ? 3
              : extent.height ? 2
                              : 1;
  for (int i = 0; i < count; i++) {
    int most = 0;
    device_attribute(limits[i], &most);
    if (sizes[i] > (size_t)most) return false;
  }
  return true;
}

cudaError_t array_create(cudaArray_t *array, const struct cudaChannelFormatDesc *channels,
                         struct cudaExtent extent, unsigned flags) {
  enum { LAYERED = cudaArrayLayered, CUBEMAP = cudaArrayCubemap };
  TexelFormat format;
  cudaError_t error = stream_unsafe_allowed();
  if (error == cudaSuccess) error = runtime_known_fault();
  if (error != cudaSuccess) return error;
  if (!array || !channels) return cudaErrorInvalidValue;
  if (flags & (cudaArraySparse | cudaArrayDeferredMapping))
    runtime_refuse(
        "the program makes a sparse array or one that is mapped later, which the "
        "emulator does not know");
  if (channels->f > cudaChannelFormatKindFloat && channels->f != cudaChannelFormatKindNone)
    runtime_refuse(
        "the program makes an array of a planar, compressed or normalised format; the "
        "emulator knows integers and floats of 8, 16 and 32 bits");
  if (!texel_format_of(channels, &format)) return cudaErrorInvalidChannelDescriptor;
  bool layered = flags & LAYERED, cube = flags & CUBEMAP;
  if (!extent.width || (layered && !extent.depth) || (!layered && extent.depth && !extent.height))
    return cudaErrorInvalidValue;
  if (cube && (extent.width != extent.height || extent.depth % 6 || !extent.depth ||
               (!layered && extent.depth != 6)))
    return cudaErrorInvalidValue;
  if (!within_limits(extent, flags)) return cudaErrorInvalidValue;
  struct cudaArray *made = calloc(1, sizeof *made);
  if (!made) return cudaErrorMemoryAllocation;
  size_t rows = extent.height ? extent.height : 1, slices = extent.depth ? extent.depth : 1;
  made->channels = *channels;
  made->format = format;
  made->extent = extent;
  made->flags = flags;
  made->rows = rows;
  made->slices = slices;
  made->row_bytes = extent.width * texel_bytes(format);
  pthread_mutex_lock(&runtime_lock);
  made->first = memory_allocate(made->row_bytes * rows * slices);
  if (made->first) {
    written_set(made->first, made->row_bytes * rows * slices); /* textures are not looked at */
    made->next = arrays;
    arrays = made;
  }
  pthread_mutex_unlock(&runtime_lock);
  if (!made->first) {
    free(made);
    return cudaErrorMemoryAllocation;
  }
  *array = made;
  return cudaSuccess;
}

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *channels,
                              struct cudaExtent extent, unsigned flags) {
  return runtime_answer(array_create(array, channels, extent, flags));
}
cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *channels,
                            size_t width, size_t height, unsigned flags) {
  return cudaMalloc3DArray(array, channels, (struct cudaExtent){width, height, 0}, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  cudaError_t error = stream_unsafe_allowed();
  if (error == cudaSuccess) error = runtime_synchronise();
  if (error != cudaSuccess || !array) return runtime_answer(error);
  pthread_mutex_lock(&runtime_lock);
  struct cudaArray **link = &arrays;
  while (*link && *link != array) link = &(*link)->next;
  bool found = *link != NULL;
  if (found) {
    *link = array->next;
    memory_free(array->first);
    free(array);
  }
  pthread_mutex_unlock(&runtime_lock);
  return runtime_answer(found ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *channels, struct cudaExtent *extent,
                             unsigned *flags, cudaArray_t array) {
  if (!array_exists(array)) return runtime_answer(cudaErrorInvalidResourceHandle);
  if (channels) *channels = array->channels;
  if (extent) *extent = array->extent;
  if (flags) *flags = array->flags;
  return cudaSuccess;
}
cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *channels, cudaArray_const_t array) {
  if (!channels || !array_exists(array)) return runtime_answer(cudaErrorInvalidValue);
  *channels = array->channels;
  return cudaSuccess;
}
struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                   enum cudaChannelFormatKind kind) {
  return (struct cudaChannelFormatDesc){x, y, z, w, kind};
}

/* ---- Copies ---- */

/* One side of a copy: its array becomes plain memory. */
static cudaError_t flatten(cudaArray_t array, struct cudaExtent elements,
                           struct cudaPitchedPtr *memory, struct cudaPos *at) {
  if (!array_exists(array)) return cudaErrorInvalidResourceHandle;
  if (memory->ptr) return cudaErrorInvalidValue; /* both were given */
  if (at->x > array->extent.width || elements.width > array->extent.width - at->x ||
      at->y > array->rows || elements.height > array->rows - at->y || at->z > array->slices ||
      elements.depth > array->slices - at->z)
    return cudaErrorInvalidValue;
  *memory = (struct cudaPitchedPtr){(void *)(uintptr_t)array->first, array->row_bytes,
                                    array->row_bytes, array->rows};
  at->x *= texel_bytes(array->format);
  return cudaSuccess;
}

cudaError_t copy_without_arrays(const struct cudaMemcpy3DParms *copy,
                                struct cudaMemcpy3DParms *plain) {
  *plain = *copy;
  if (!copy->srcArray && !copy->dstArray) return cudaSuccess;
  cudaError_t error = cudaSuccess;
  if (copy->srcArray) error = flatten(copy->srcArray, copy->extent, &plain->srcPtr, &plain->srcPos);
  if (copy->dstArray && error == cudaSuccess)
    error = flatten(copy->dstArray, copy->extent, &plain->dstPtr, &plain->dstPos);
  if (error != cudaSuccess) return error;
  uint32_t bytes = texel_bytes((copy->srcArray ? copy->srcArray : copy->dstArray)->format);
  if (copy->srcArray && copy->dstArray && texel_bytes(copy->dstArray->format) != bytes)
    return cudaErrorInvalidValue;
  plain->extent.width *= bytes;
  plain->srcArray = plain->dstArray = NULL;
  return cudaSuccess;
}

/* The calls for planes count x and the width in bytes, cudaMemcpy3D in elements. */
static cudaError_t in_elements(cudaArray_const_t array, size_t x_bytes, size_t width_bytes,
                               size_t *x, size_t *width) {
  if (!array_exists(array)) return cudaErrorInvalidResourceHandle;
  uint32_t bytes = texel_bytes(array->format);
  if (x_bytes % bytes || width_bytes % bytes) return cudaErrorInvalidValue;
  *x = x_bytes / bytes;
  *width = width_bytes / bytes;
  return cudaSuccess;
}

typedef struct {
  cudaArray_t array;
  size_t x_bytes, y;
  void *memory;
  size_t pitch, width_bytes, height;
  enum cudaMemcpyKind kind;
} PlaneCopy;

static cudaError_t describe_plane(const PlaneCopy *plane, bool to_array,
                                  struct cudaMemcpy3DParms *copy) {
  size_t x = 0, width = 0;
  cudaError_t error = in_elements(plane->array, plane->x_bytes, plane->width_bytes, &x, &width);
  if (error == cudaSuccess && plane->width_bytes > plane->pitch) error = cudaErrorInvalidPitchValue;
  struct cudaPitchedPtr memory = {plane->memory, plane->pitch, plane->width_bytes, plane->height};
  *copy = (struct cudaMemcpy3DParms){.extent = {width, plane->height, 1}, .kind = plane->kind};
  if (to_array) {
    copy->srcPtr = memory;
    copy->dstArray = plane->array;
    copy->dstPos = (struct cudaPos){x, plane->y, 0};
  } else {
    copy->dstPtr = memory;
    copy->srcArray = plane->array;
    copy->srcPos = (struct cudaPos){x, plane->y, 0};
  }
  return error;
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
                                size_t width, size_t height, enum cudaMemcpyKind kind) {
  struct cudaMemcpy3DParms copy;
  PlaneCopy plane = {to, x, y, (void *)(uintptr_t)from, pitch, width, height, kind};
  cudaError_t error = describe_plane(&plane, true, &copy);
  return error == cudaSuccess ? cudaMemcpy3D(&copy) : runtime_answer(error);
}
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from,
                                     size_t pitch, size_t width, size_t height,
                                     enum cudaMemcpyKind kind, cudaStream_t stream) {
  struct cudaMemcpy3DParms copy;
  PlaneCopy plane = {to, x, y, (void *)(uintptr_t)from, pitch, width, height, kind};
  cudaError_t error = describe_plane(&plane, true, &copy);
  return error == cudaSuccess ? cudaMemcpy3DAsync(&copy, stream) : runtime_answer(error);
}
cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x,
                                  size_t y, size_t width, size_t height, enum cudaMemcpyKind kind) {
  struct cudaMemcpy3DParms copy;
  PlaneCopy plane = {(cudaArray_t)from, x, y, to, pitch, width, height, kind};
  cudaError_t error = describe_plane(&plane, false, &copy);
  return error == cudaSuccess ? cudaMemcpy3D(&copy) : runtime_answer(error);
}
cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_const_t from, size_t x,
                                       size_t y, size_t width, size_t height,
                                       enum cudaMemcpyKind kind, cudaStream_t stream) {
  struct cudaMemcpy3DParms copy;
  PlaneCopy plane = {(cudaArray_t)from, x, y, to, pitch, width, height, kind};
  cudaError_t error = describe_plane(&plane, false, &copy);
  return error == cudaSuccess ? cudaMemcpy3DAsync(&copy, stream) : runtime_answer(error);
}
cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y,
                                     cudaArray_const_t from, size_t from_x, size_t from_y,
                                     size_t width, size_t height, enum cudaMemcpyKind kind) {
  struct cudaMemcpy3DParms copy = {.srcArray = (cudaArray_t)from, .dstArray = to, .kind = kind};
  size_t elements = 0;
  cudaError_t error = in_elements(from, from_x, width, &copy.srcPos.x, &elements);
  if (error == cudaSuccess) error = in_elements(to, to_x, width, &copy.dstPos.x, &elements);
  if (error != cudaSuccess) return runtime_answer(error);
  copy.srcPos.y = from_y;
  copy.dstPos.y = to_y;
  copy.extent = (struct cudaExtent){elements, height, 1};
  return cudaMemcpy3D(&copy);
}

/* Consecutive bytes through the rows of one plane. NULL: they are not inside the array. */
void *array_run(cudaArray_const_t array, size_t x, size_t y, size_t bytes) {
  if (!array_exists(array)) return NULL;
  size_t plane = array->row_bytes * array->rows;
  if (x > array->row_bytes || y >= array->rows) return NULL;
  size_t first = y * array->row_bytes + x;
  return bytes <= plane - first ? (void *)(uintptr_t)(array->first + first) : NULL;
}
cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from,
                                   size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
  void *run = array_run(to, x, y, bytes);
  return run ? cudaMemcpyAsync(run, from, bytes, kind, stream)
             : runtime_answer(cudaErrorInvalidValue);
}
cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes,
                              enum cudaMemcpyKind kind) {
  void *run = array_run(to, x, y, bytes);
  return run ? cudaMemcpy(run, from, bytes, kind) : runtime_answer(cudaErrorInvalidValue);
}
cudaError_t cudaMemcpyFromArrayAsync(void *to, cudaArray_const_t from, size_t x, size_t y,
                                     size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
  const void *run = array_run(from, x, y, bytes);
  return run ? cudaMemcpyAsync(to, run, bytes, kind, stream)
             : runtime_answer(cudaErrorInvalidValue);
}
cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
                                enum cudaMemcpyKind kind) {
  const void *run = array_run(from, x, y, bytes);
  return run ? cudaMemcpy(to, run, bytes, kind) : runtime_answer(cudaErrorInvalidValue);
}
cudaError_t cudaMemcpyArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from,
                                   size_t from_x, size_t from_y, size_t bytes,
                                   enum cudaMemcpyKind kind) {
  void *run = array_run(to, to_x, to_y, bytes);
  const void *source = array_run(from, from_x, from_y, bytes);
  return run && source ? cudaMemcpy(run, source, bytes, kind)
                       : runtime_answer(cudaErrorInvalidValue);
}
