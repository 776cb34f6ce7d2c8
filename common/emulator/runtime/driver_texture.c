/* driver_texture.c: the driver API's arrays, textures and surfaces, implemented by the runtime's,
 * and its copies to and from arrays. */
#include <string.h>

#include "runtime/driver_context.h"
#include "runtime/texture.h"

static CUresult as_driver(cudaError_t error) { return (CUresult)error; } /* the same numbers */
static void *pointer(CUdeviceptr address) { return (void *)(uintptr_t)address; }

/* ---- Formats ---- */

static bool channels_of(CUarray_format format, unsigned count,
                        struct cudaChannelFormatDesc *channels) {
  static const struct {
    CUarray_format format;
    int bits;
    enum cudaChannelFormatKind kind;
  } FORMATS[] = {{CU_AD_FORMAT_UNSIGNED_INT8, 8, cudaChannelFormatKindUnsigned},
                 {CU_AD_FORMAT_UNSIGNED_INT16, 16, cudaChannelFormatKindUnsigned},
                 {CU_AD_FORMAT_UNSIGNED_INT32, 32, cudaChannelFormatKindUnsigned},
                 {CU_AD_FORMAT_SIGNED_INT8, 8, cudaChannelFormatKindSigned},
                 {CU_AD_FORMAT_SIGNED_INT16, 16, cudaChannelFormatKindSigned},
                 {CU_AD_FORMAT_SIGNED_INT32, 32, cudaChannelFormatKindSigned},
                 {CU_AD_FORMAT_HALF, 16, cudaChannelFormatKindFloat},
                 {CU_AD_FORMAT_FLOAT, 32, cudaChannelFormatKindFloat}};
  if (count != 1 && count != 2 && count != 4) return false;
  for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
    if (FORMATS[i].format != format) continue;
    int bits = FORMATS[i].bits;
    *channels = (struct cudaChannelFormatDesc){bits, count > 1 ? bits : 0, count > 2 ? bits : 0,
                                               count > 2 ? bits : 0, FORMATS[i].kind};
    return true;
  }
  if (format > CU_AD_FORMAT_FLOAT)
    runtime_refuse(
        "the program makes an array of a planar, compressed or normalised format; the "
        "emulator knows integers and floats of 8, 16 and 32 bits");
  return false;
}

static CUarray_format format_of(const struct cudaChannelFormatDesc *channels) {
  if (channels->f == cudaChannelFormatKindFloat)
    return channels->x == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
  int step = channels->x == 8 ? 0 : channels->x == 16 ? 1 : 2;
  bool sign = channels->f == cudaChannelFormatKindSigned;
  return (CUarray_format)((sign ? CU_AD_FORMAT_SIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT8) + step);
}
static unsigned count_of(const struct cudaChannelFormatDesc *channels) {
  return channels->w ? 4 : channels->y ? 2 : 1;
}

/* ---- Arrays ---- */

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *wanted) {
  struct cudaChannelFormatDesc channels;
  if (!array || !wanted) return CUDA_ERROR_INVALID_VALUE;
  if (!channels_of(wanted->Format, wanted->NumChannels, &channels)) return CUDA_ERROR_INVALID_VALUE;
  struct cudaExtent extent = {wanted->Width, wanted->Height, wanted->Depth};
  return as_driver(array_create((cudaArray_t *)array, &channels, extent, wanted->Flags));
}
CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *wanted) {
  if (!wanted) return CUDA_ERROR_INVALID_VALUE;
  CUDA_ARRAY3D_DESCRIPTOR same = {wanted->Width,  wanted->Height,      0,
                                  wanted->Format, wanted->NumChannels, 0};
  return cuArray3DCreate_v2(array, &same);
}
CUresult cuArrayDestroy(CUarray array) {
  return array ? as_driver(cudaFreeArray((cudaArray_t)array)) : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *found, CUarray array) {
  const struct cudaArray *same = (cudaArray_t)array;
  if (!found || !array_exists(same)) return CUDA_ERROR_INVALID_HANDLE;
  *found = (CUDA_ARRAY3D_DESCRIPTOR){same->extent.width,        same->extent.height,
                                     same->extent.depth,        format_of(&same->channels),
                                     count_of(&same->channels), same->flags};
  return CUDA_SUCCESS;
}
CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *found, CUarray array) {
  CUDA_ARRAY3D_DESCRIPTOR whole;
  CUresult result = found ? cuArray3DGetDescriptor_v2(&whole, array) : CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS)
    *found = (CUDA_ARRAY_DESCRIPTOR){whole.Width, whole.Height, whole.Format, whole.NumChannels};
  return result;
}

/* ---- Copies ---- */

/* The driver counts x and the width in bytes, the runtime in elements if an array is involved. */
static CUresult as_elements(const CUDA_MEMCPY3D *copy, struct cudaMemcpy3DParms *same) {
  const struct cudaArray *arrays[] = {same->srcArray, same->dstArray};
  uint32_t bytes = 1;
  for (int i = 0; i < 2; i++) {
    if (!arrays[i]) continue;
    if (!array_exists(arrays[i])) return CUDA_ERROR_INVALID_HANDLE;
    bytes = texel_bytes(arrays[i]->format);
  }
  if (copy->WidthInBytes % bytes || (same->srcArray && copy->srcXInBytes % bytes) ||
      (same->dstArray && copy->dstXInBytes % bytes))
    return CUDA_ERROR_INVALID_VALUE;
  if (same->srcArray) same->srcPos.x /= bytes;
  if (same->dstArray) same->dstPos.x /= bytes;
  same->extent.width /= bytes;
  return CUDA_SUCCESS;
}

static struct cudaPitchedPtr rows_of(void *memory, size_t pitch, size_t height,
                                     const CUDA_MEMCPY3D *copy) {
  return (struct cudaPitchedPtr){memory, pitch ? pitch : copy->WidthInBytes, copy->WidthInBytes,
                                 height ? height : copy->Height};
}

CUresult driver_copy_as_runtime(const CUDA_MEMCPY3D *copy, struct cudaMemcpy3DParms *same) {
  *same = (struct cudaMemcpy3DParms){
      .srcPos = {copy->srcXInBytes, copy->srcY, copy->srcZ},
      .dstPos = {copy->dstXInBytes, copy->dstY, copy->dstZ},
      .extent = {copy->WidthInBytes, copy->Height, copy->Depth},
      .kind = cudaMemcpyDefault,
  };
  if (copy->srcLOD || copy->dstLOD) return CUDA_ERROR_INVALID_VALUE;
  if (copy->srcMemoryType == CU_MEMORYTYPE_ARRAY)
    same->srcArray = (cudaArray_t)copy->srcArray;
  else
    same->srcPtr =
        rows_of(copy->srcMemoryType == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)copy->srcHost
                                                          : pointer(copy->srcDevice),
                copy->srcPitch, copy->srcHeight, copy);
  if (copy->dstMemoryType == CU_MEMORYTYPE_ARRAY)
    same->dstArray = (cudaArray_t)copy->dstArray;
  else
    same->dstPtr = rows_of(
        copy->dstMemoryType == CU_MEMORYTYPE_HOST ? copy->dstHost : pointer(copy->dstDevice),
        copy->dstPitch, copy->dstHeight, copy);
  return as_elements(copy, same);
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy) {
  struct cudaMemcpy3DParms same;
  CUresult result = copy ? driver_copy_as_runtime(copy, &same) : CUDA_ERROR_INVALID_VALUE;
  return result == CUDA_SUCCESS ? as_driver(cudaMemcpy3D(&same)) : result;
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream) {
  struct cudaMemcpy3DParms same;
  CUresult result = copy_usable(stream);
  if (result == CUDA_SUCCESS)
    result = copy ? driver_copy_as_runtime(copy, &same) : CUDA_ERROR_INVALID_VALUE;
  return result == CUDA_SUCCESS ? as_driver(cudaMemcpy3DAsync(&same, stream)) : result;
}

static CUDA_MEMCPY3D with_depth(const CUDA_MEMCPY2D *copy) {
  return (CUDA_MEMCPY3D){
      .srcXInBytes = copy->srcXInBytes,
      .srcY = copy->srcY,
      .srcMemoryType = copy->srcMemoryType,
      .srcHost = copy->srcHost,
      .srcDevice = copy->srcDevice,
      .srcArray = copy->srcArray,
      .srcPitch = copy->srcPitch,
      .dstXInBytes = copy->dstXInBytes,
      .dstY = copy->dstY,
      .dstMemoryType = copy->dstMemoryType,
      .dstHost = copy->dstHost,
      .dstDevice = copy->dstDevice,
      .dstArray = copy->dstArray,
      .dstPitch = copy->dstPitch,
      .WidthInBytes = copy->WidthInBytes,
      .Height = copy->Height,
      .Depth = 1,
  };
}
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy) {
  if (!copy) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D whole = with_depth(copy);
  return cuMemcpy3D_v2(&whole);
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy) { return cuMemcpy2D_v2(copy); }
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream) {
  if (!copy) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D whole = with_depth(copy);
  return cuMemcpy3DAsync_v2(&whole, stream);
}

static CUresult copy_bytes(void *to, const void *from, size_t bytes) {
  if (!to || !from) return CUDA_ERROR_INVALID_VALUE;
  return as_driver(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
}
static void *run_of(CUarray array, size_t offset, size_t bytes) {
  return array_run((cudaArray_t)array, offset, 0, bytes);
}
CUresult cuMemcpyHtoA_v2(CUarray to, size_t offset, const void *from, size_t bytes) {
  return copy_bytes(run_of(to, offset, bytes), from, bytes);
}
CUresult cuMemcpyAtoH_v2(void *to, CUarray from, size_t offset, size_t bytes) {
  return copy_bytes(to, run_of(from, offset, bytes), bytes);
}
CUresult cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) {
  return copy_bytes(run_of(to, offset, bytes), pointer(from), bytes);
}
CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) {
  return copy_bytes(pointer(to), run_of(from, offset, bytes), bytes);
}
CUresult cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset,
                         size_t bytes) {
  return copy_bytes(run_of(to, to_offset, bytes), run_of(from, from_offset, bytes), bytes);
}
CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t bytes,
                              CUstream stream) {
  CUresult result = copy_usable(stream);
  if (result != CUDA_SUCCESS) return result;
  void *run = run_of(to, offset, bytes);
  if (!run) return CUDA_ERROR_INVALID_VALUE;
  return as_driver(cudaMemcpyAsync(run, from, bytes, cudaMemcpyHostToDevice, stream));
}
CUresult cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t bytes,
                              CUstream stream) {
  CUresult result = copy_usable(stream);
  if (result != CUDA_SUCCESS) return result;
  void *run = run_of(from, offset, bytes);
  if (!run) return CUDA_ERROR_INVALID_VALUE;
  return as_driver(cudaMemcpyAsync(to, run, bytes, cudaMemcpyDeviceToHost, stream));
}

/* ---- Textures and surfaces ---- */

static CUresult runtime_resource(const CUDA_RESOURCE_DESC *given, struct cudaResourceDesc *same) {
  memset(same, 0, sizeof *same);
  same->resType = (enum cudaResourceType)given->resType;
  if (given->resType == CU_RESOURCE_TYPE_ARRAY) {
    same->res.array.array = (cudaArray_t)given->res.array.hArray;
  } else if (given->resType == CU_RESOURCE_TYPE_LINEAR) {
    same->res.linear.devPtr = pointer(given->res.linear.devPtr);
    same->res.linear.sizeInBytes = given->res.linear.sizeInBytes;
    if (!channels_of(given->res.linear.format, given->res.linear.numChannels,
                     &same->res.linear.desc))
      return CUDA_ERROR_INVALID_VALUE;
  } else if (given->resType == CU_RESOURCE_TYPE_PITCH2D) {
    same->res.pitch2D.devPtr = pointer(given->res.pitch2D.devPtr);
    same->res.pitch2D.width = given->res.pitch2D.width;
    same->res.pitch2D.height = given->res.pitch2D.height;
    same->res.pitch2D.pitchInBytes = given->res.pitch2D.pitchInBytes;
    if (!channels_of(given->res.pitch2D.format, given->res.pitch2D.numChannels,
                     &same->res.pitch2D.desc))
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

static void driver_resource(const struct cudaResourceDesc *given, CUDA_RESOURCE_DESC *same) {
  memset(same, 0, sizeof *same);
  same->resType = (CUresourcetype)given->resType;
  if (given->resType == cudaResourceTypeArray) {
    same->res.array.hArray = (CUarray)given->res.array.array;
  } else if (given->resType == cudaResourceTypeLinear) {
    same->res.linear.devPtr = (CUdeviceptr)(uintptr_t)given->res.linear.devPtr;
    same->res.linear.format = format_of(&given->res.linear.desc);
    same->res.linear.numChannels = count_of(&given->res.linear.desc);
    same->res.linear.sizeInBytes = given->res.linear.sizeInBytes;
  } else {
    same->res.pitch2D.devPtr = (CUdeviceptr)(uintptr_t)given->res.pitch2D.devPtr;
    same->res.pitch2D.format = format_of(&given->res.pitch2D.desc);
    same->res.pitch2D.numChannels = count_of(&given->res.pitch2D.desc);
    same->res.pitch2D.width = given->res.pitch2D.width;
    same->res.pitch2D.height = given->res.pitch2D.height;
    same->res.pitch2D.pitchInBytes = given->res.pitch2D.pitchInBytes;
  }
}

static int channel_bits(const struct cudaResourceDesc *resource) {
  if (resource->resType == cudaResourceTypeLinear) return resource->res.linear.desc.x;
  if (resource->resType == cudaResourceTypePitch2D) return resource->res.pitch2D.desc.x;
  return array_exists(resource->res.array.array) ? resource->res.array.array->channels.x : 0;
}

/* By default, the driver reads 8- and 16-bit integers as floats. */
static struct cudaTextureDesc runtime_sampling(const CUDA_TEXTURE_DESC *given, int bits) {
  struct cudaTextureDesc same;
  memset(&same, 0, sizeof same);
  for (int i = 0; i < 3; i++)
    same.addressMode[i] = (enum cudaTextureAddressMode)given->addressMode[i];
  same.filterMode = (enum cudaTextureFilterMode)given->filterMode;
  bool integers = given->flags & CU_TRSF_READ_AS_INTEGER || bits == 32;
  same.readMode = integers ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
  same.normalizedCoords = (given->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  same.sRGB = (given->flags & CU_TRSF_SRGB) != 0;
  same.maxAnisotropy = given->maxAnisotropy;
  memcpy(same.borderColor, given->borderColor, sizeof same.borderColor);
  return same;
}

CUresult cuTexObjectCreate(CUtexObject *object, const CUDA_RESOURCE_DESC *resource,
                           const CUDA_TEXTURE_DESC *how, const CUDA_RESOURCE_VIEW_DESC *view) {
  struct cudaResourceDesc same;
  if (!object || !resource || !how) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = runtime_resource(resource, &same);
  if (result != CUDA_SUCCESS) return result;
  struct cudaTextureDesc sampling = runtime_sampling(how, channel_bits(&same));
  uint64_t handle = 0;
  result = as_driver(texture_create(&handle, &same, &sampling,
                                    (const struct cudaResourceViewDesc *)(const void *)view));
  if (result == CUDA_SUCCESS) *object = handle;
  return result;
}
CUresult cuTexObjectDestroy(CUtexObject object) {
  return as_driver(cudaDestroyTextureObject(object));
}
CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, CUtexObject object) {
  struct cudaResourceDesc same;
  CUresult result = resource ? as_driver(cudaGetTextureObjectResourceDesc(&same, object))
                             : CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS) driver_resource(&same, resource);
  return result;
}
CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *how, CUtexObject object) {
  struct cudaTextureDesc same;
  CUresult result =
      how ? as_driver(cudaGetTextureObjectTextureDesc(&same, object)) : CUDA_ERROR_INVALID_VALUE;
  if (result != CUDA_SUCCESS) return result;
  memset(how, 0, sizeof *how);
  for (int i = 0; i < 3; i++) how->addressMode[i] = (CUaddress_mode)same.addressMode[i];
  how->filterMode = (CUfilter_mode)same.filterMode;
  how->flags = (same.readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0u) |
               (same.normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0u);
  how->maxAnisotropy = same.maxAnisotropy;
  memcpy(how->borderColor, same.borderColor, sizeof how->borderColor);
  return CUDA_SUCCESS;
}
CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *view, CUtexObject object) {
  (void)view, (void)object;
  return CUDA_ERROR_INVALID_VALUE; /* textures never have a view */
}
CUresult cuSurfObjectCreate(CUsurfObject *object, const CUDA_RESOURCE_DESC *resource) {
  struct cudaResourceDesc same;
  uint64_t handle = 0;
  if (!object || !resource) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = runtime_resource(resource, &same);
  if (result == CUDA_SUCCESS) result = as_driver(surface_create(&handle, &same));
  if (result == CUDA_SUCCESS) *object = handle;
  return result;
}
CUresult cuSurfObjectDestroy(CUsurfObject object) {
  return as_driver(cudaDestroySurfaceObject(object));
}
CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, CUsurfObject object) {
  struct cudaResourceDesc same;
  CUresult result = resource ? as_driver(cudaGetSurfaceObjectResourceDesc(&same, object))
                             : CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS) driver_resource(&same, resource);
  return result;
}
