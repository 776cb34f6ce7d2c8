/* texture_objects.c: texture and surface objects: their resources, and what kernels see of them
 * (base/texture.h). */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/texture.h"

/* What the program may query. */
typedef struct TextureObject {
  struct TextureObject *next;
  uint64_t handle;
  bool surface;
  struct cudaResourceDesc resource;
  struct cudaTextureDesc how;
} TextureObject;
static TextureObject *objects;

static const TextureObject *find_object(uint64_t handle, bool surface) {
  pthread_mutex_lock(&runtime_lock); /* as in array_exists() */
  const TextureObject *object = objects;
  while (object && (object->handle != handle || object->surface != surface)) object = object->next;
  pthread_mutex_unlock(&runtime_lock);
  return object;
}

static cudaError_t keep(const Texture *texture, const struct cudaResourceDesc *resource,
                        const struct cudaTextureDesc *how, uint64_t *handle) {
  TextureObject *object = calloc(1, sizeof *object);
  if (!object) return cudaErrorMemoryAllocation;
  pthread_mutex_lock(&runtime_lock);
  object->next = objects;
  object->handle = texture_add(texture);
  object->surface = texture->surface;
  object->resource = *resource;
  if (how) object->how = *how;
  bool added = object->handle != 0;
  if (added) objects = object;
  pthread_mutex_unlock(&runtime_lock);
  if (!added) {
    free(object);
    return cudaErrorMemoryAllocation;
  }
  *handle = object->handle;
  return cudaSuccess;
}

static cudaError_t destroy(uint64_t handle, bool surface) {
  pthread_mutex_lock(&runtime_lock);
  TextureObject **link = &objects;
  while (*link && ((*link)->handle != handle || (*link)->surface != surface)) link = &(*link)->next;
  TextureObject *object = *link;
  if (object) {
    *link = object->next;
    texture_remove(handle);
    free(object);
  }
  pthread_mutex_unlock(&runtime_lock);
  return object || !handle ? cudaSuccess : cudaErrorInvalidValue;
}

/* ---- Resources ---- */

static TextureShape shape_of(const struct cudaArray *array) {
  bool layered = array->flags & cudaArrayLayered;
  if (array->flags & cudaArrayCubemap) return layered ? TEXTURE_CUBE_LAYERED : TEXTURE_CUBE;
  if (layered) return array->extent.height ? TEXTURE_2D_LAYERED : TEXTURE_1D_LAYERED;
  return array->extent.depth ? TEXTURE_3D : array->extent.height ? TEXTURE_2D : TEXTURE_1D;
}

static cudaError_t read_array(cudaArray_t array, Texture *texture) {
  if (!array_exists(array)) return cudaErrorInvalidResourceHandle;
  bool space = shape_of(array) == TEXTURE_3D;
  texture->shape = shape_of(array);
  texture->format = array->format;
  texture->first = array->first;
  texture->row_bytes = array->row_bytes;
  texture->slice_bytes = array->row_bytes * array->rows;
  texture->size[0] = (uint32_t)array->extent.width;
  texture->size[1] = (uint32_t)array->rows;
  texture->size[2] = space ? (uint32_t)array->slices : 1;
  texture->layers = space ? 1 : (uint32_t)array->slices;
  return cudaSuccess;
}

/* The memory of linear and pitched textures: aligned as cudaMalloc aligns, inside one allocation.
 */
static cudaError_t read_memory(void *address, const struct cudaChannelFormatDesc *channels,
                               size_t width, size_t height, size_t pitch, Texture *texture) {
  int alignment = 1;
  device_attribute(cudaDevAttrTextureAlignment, &alignment);
  if (!texel_format_of(channels, &texture->format)) return cudaErrorInvalidChannelDescriptor;
  if (!address || !width || !height || width > UINT32_MAX || height > UINT32_MAX)
    return cudaErrorInvalidValue;
  if ((uintptr_t)address % (unsigned)alignment) return cudaErrorMisalignedAddress;
  texture->first = (uint64_t)(uintptr_t)address;
  texture->row_bytes = texture->slice_bytes = pitch;
  texture->size[0] = (uint32_t)width;
  texture->size[1] = (uint32_t)height;
  texture->size[2] = texture->layers = 1;
  return texture_has_memory(texture) ? cudaSuccess : cudaErrorInvalidValue;
}

static cudaError_t read_resource(const struct cudaResourceDesc *resource, Texture *texture) {
  TexelFormat format;
  int most = 0, pitch_alignment = 0;
  switch (resource->resType) {
    case cudaResourceTypeArray:
      return read_array(resource->res.array.array, texture);
    case cudaResourceTypeLinear: {
      const struct cudaChannelFormatDesc *channels = &resource->res.linear.desc;
      if (!texel_format_of(channels, &format)) return cudaErrorInvalidChannelDescriptor;
      size_t width = resource->res.linear.sizeInBytes / texel_bytes(format);
      device_attribute(cudaDevAttrMaxTexture1DLinearWidth, &most);
      if (width > (size_t)most) return cudaErrorInvalidValue;
      texture->shape = TEXTURE_LINEAR;
      return read_memory(resource->res.linear.devPtr, channels, width, 1,
                         resource->res.linear.sizeInBytes, texture);
    }
    case cudaResourceTypePitch2D:
      device_attribute(cudaDevAttrTexturePitchAlignment, &pitch_alignment);
      if (resource->res.pitch2D.pitchInBytes % (size_t)pitch_alignment)
        return cudaErrorInvalidValue;
      texture->shape = TEXTURE_2D;
      return read_memory(resource->res.pitch2D.devPtr, &resource->res.pitch2D.desc,
                         resource->res.pitch2D.width, resource->res.pitch2D.height,
                         resource->res.pitch2D.pitchInBytes, texture);
    default:
      runtime_refuse(
          "the program makes a texture of a mipmapped array; the emulator has no mipmaps");
  }
}

/* ---- Textures ---- */

static cudaError_t read_sampling(const struct cudaTextureDesc *how, Texture *texture) {
  bool floats = texture->format.kind == TEXEL_FLOAT;
  if (how->sRGB)
    runtime_refuse(
        "the program makes a texture with sRGB conversion, which the emulator does not "
        "know");
  if (how->maxAnisotropy > 1)
    runtime_refuse(
        "the program makes a texture with an anisotropic filter, which the emulator does "
        "not know");
  texture->linear_filter = how->filterMode == cudaFilterModeLinear;
  texture->normalised = how->normalizedCoords;
  texture->as_float = how->readMode == cudaReadModeNormalizedFloat;
  bool may_be_float = !floats && texture->format.bits < 32;
  bool filters_integers = !floats && !(texture->as_float && may_be_float);
  if (texture->linear_filter && filters_integers) return cudaErrorInvalidFilterSetting;
  if (texture->as_float && !may_be_float) return cudaErrorInvalidNormSetting;
  for (int i = 0; i < 3; i++) {
    if ((unsigned)how->addressMode[i] > cudaAddressModeBorder) return cudaErrorInvalidValue;
    texture->address[i] = (uint8_t)how->addressMode[i];
  }
  memcpy(texture->border, how->borderColor, sizeof texture->border);
  if (texture->shape == TEXTURE_LINEAR) { /* read by index: none of this applies */
    texture->linear_filter = texture->normalised = false;
    memset(texture->border, 0, sizeof texture->border);
  }
  return cudaSuccess;
}

cudaError_t texture_create(uint64_t *object, const struct cudaResourceDesc *resource,
                           const struct cudaTextureDesc *how,
                           const struct cudaResourceViewDesc *view) {
  Texture texture = {0};
  cudaError_t error = runtime_known_fault();
  if (error != cudaSuccess) return error;
  if (!object || !resource || !how) return cudaErrorInvalidValue;
  if (view)
    runtime_refuse(
        "the program makes a texture with a resource view, which the emulator does not "
        "know");
  error = read_resource(resource, &texture);
  if (error == cudaSuccess) error = read_sampling(how, &texture);
  return error == cudaSuccess ? keep(&texture, resource, how, object) : error;
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *object,
                                    const struct cudaResourceDesc *resource,
                                    const struct cudaTextureDesc *how,
                                    const struct cudaResourceViewDesc *view) {
  uint64_t handle = 0;
  cudaError_t error = texture_create(object ? &handle : NULL, resource, how, view);
  if (error == cudaSuccess) *object = handle;
  return runtime_answer(error);
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
  return runtime_answer(destroy(object, false));
}
cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc *resource,
                                             cudaTextureObject_t handle) {
  const TextureObject *object = find_object(handle, false);
  if (!object || !resource) return runtime_answer(cudaErrorInvalidValue);
  *resource = object->resource;
  return cudaSuccess;
}
cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc *how,
                                            cudaTextureObject_t handle) {
  const TextureObject *object = find_object(handle, false);
  if (!object || !how) return runtime_answer(cudaErrorInvalidValue);
  *how = object->how;
  return cudaSuccess;
}
/* Textures never have a view. */
cudaError_t cudaGetTextureObjectResourceViewDesc(struct cudaResourceViewDesc *view,
                                                 cudaTextureObject_t handle) {
  (void)view, (void)handle;
  return runtime_answer(cudaErrorInvalidValue);
}
cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *elements,
                                                 const struct cudaChannelFormatDesc *channels,
                                                 int device) {
  TexelFormat format;
  int most = 0;
  if (device != 0) return runtime_answer(cudaErrorInvalidDevice);
  if (!elements || !channels || !texel_format_of(channels, &format))
    return runtime_answer(cudaErrorInvalidValue);
  device_attribute(cudaDevAttrMaxTexture1DLinearWidth, &most);
  *elements = (size_t)most;
  return cudaSuccess;
}

/* ---- Surfaces ---- */

cudaError_t surface_create(uint64_t *object, const struct cudaResourceDesc *resource) {
  Texture surface = {.surface = true};
  cudaError_t error = runtime_known_fault();
  if (error != cudaSuccess) return error;
  if (!object || !resource || resource->resType != cudaResourceTypeArray)
    return cudaErrorInvalidValue;
  cudaArray_t array = resource->res.array.array;
  error = read_array(array, &surface);
  if (surface.shape == TEXTURE_CUBE || surface.shape == TEXTURE_CUBE_LAYERED)
    surface.shape = TEXTURE_2D_LAYERED; /* faces are layers */
  return error == cudaSuccess ? keep(&surface, resource, NULL, object) : error;
}
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *object,
                                    const struct cudaResourceDesc *resource) {
  uint64_t handle = 0;
  cudaError_t error = surface_create(object ? &handle : NULL, resource);
  if (error == cudaSuccess) *object = handle;
  return runtime_answer(error);
}
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object) {
  return runtime_answer(destroy(object, true));
}
cudaError_t cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc *resource,
                                             cudaSurfaceObject_t handle) {
  const TextureObject *object = find_object(handle, true);
  if (!object || !resource) return runtime_answer(cudaErrorInvalidValue);
  *resource = object->resource;
  return cudaSuccess;
}
