/* driver_copy.c: the driver's copies of rows and slices, which are the runtime's in another description. */
#include "runtime/driver_context.h"
#include "runtime/refusals.h"
#include "runtime/runtime.h"

static CUresult as_driver(cudaError_t error) { return (CUresult)error; } /* the same numbers */
static void *pointer(CUdeviceptr address) { return (void *)(uintptr_t)address; }

static struct cudaPitchedPtr rows_of(void *memory, size_t pitch, size_t height,
                                     const CUDA_MEMCPY3D *copy) {
  return (struct cudaPitchedPtr){memory, pitch ? pitch : copy->WidthInBytes, copy->WidthInBytes,
                                 height ? height : copy->Height};
}

static CUresult as_runtime(const CUDA_MEMCPY3D *copy, struct cudaMemcpy3DParms *same) {
  if (copy->srcMemoryType == CU_MEMORYTYPE_ARRAY || copy->dstMemoryType == CU_MEMORYTYPE_ARRAY)
    refuse_call("a copy of a CUDA array", NO_TEXTURES);
  if (copy->srcLOD || copy->dstLOD) return CUDA_ERROR_INVALID_VALUE;
  *same = (struct cudaMemcpy3DParms){
      .srcPos = {copy->srcXInBytes, copy->srcY, copy->srcZ},
      .dstPos = {copy->dstXInBytes, copy->dstY, copy->dstZ},
      .extent = {copy->WidthInBytes, copy->Height, copy->Depth},
      .kind = cudaMemcpyDefault,
  };
  same->srcPtr =
      rows_of(copy->srcMemoryType == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)copy->srcHost
                                                        : pointer(copy->srcDevice),
              copy->srcPitch, copy->srcHeight, copy);
  same->dstPtr =
      rows_of(copy->dstMemoryType == CU_MEMORYTYPE_HOST ? copy->dstHost : pointer(copy->dstDevice),
              copy->dstPitch, copy->dstHeight, copy);
  return CUDA_SUCCESS;
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy) {
  struct cudaMemcpy3DParms same;
  CUresult result = copy ? as_runtime(copy, &same) : CUDA_ERROR_INVALID_VALUE;
  return result == CUDA_SUCCESS ? as_driver(cudaMemcpy3D(&same)) : result;
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream) {
  struct cudaMemcpy3DParms same;
  CUresult result = stream_usable(stream);
  if (result == CUDA_SUCCESS) result = copy ? as_runtime(copy, &same) : CUDA_ERROR_INVALID_VALUE;
  return result == CUDA_SUCCESS ? as_driver(cudaMemcpy3DAsync(&same, stream)) : result;
}

static CUDA_MEMCPY3D with_depth(const CUDA_MEMCPY2D *copy) {
  return (CUDA_MEMCPY3D){
      .srcXInBytes = copy->srcXInBytes,
      .srcY = copy->srcY,
      .srcMemoryType = copy->srcMemoryType,
      .srcHost = copy->srcHost,
      .srcDevice = copy->srcDevice,
      .srcPitch = copy->srcPitch,
      .dstXInBytes = copy->dstXInBytes,
      .dstY = copy->dstY,
      .dstMemoryType = copy->dstMemoryType,
      .dstHost = copy->dstHost,
      .dstDevice = copy->dstDevice,
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
