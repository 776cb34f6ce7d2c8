/* unknown_calls.c: the runtime and driver calls that the emulator does not implement. A program
 * that uses one ends with a message that names the call and the reason. If the program is linked with one, it
 * says so when it starts, and not only when it comes to it, which may be after minutes. Without
 * this list the loader would reject the program, naming at most one of them. A test compares the
 * list with the toolkit's headers. */
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void refuse_call(const char *call, const char *reason) {
  fflush(stdout);
  fprintf(stderr, "emulator: the program calls %s, which the emulator does not know: %s\n", call,
          reason);
  exit(1);
}

typedef struct {
  const char *name, *why;
} RefusedCall;
/* The linker puts them one after the other. */
extern const RefusedCall __start_refused_calls[] __attribute__((visibility("hidden")));
extern const RefusedCall __stop_refused_calls[] __attribute__((visibility("hidden")));

#define REFUSED(call, reason)                                              \
  static const RefusedCall refused_##call                                  \
      __attribute__((used, section("refused_calls"))) = {#call, (reason)}; \
  void call(void);                                                         \
  void call(void) { refuse_call(#call, refused_##call.why); }
/* Launchers ask before they use, and do without. */
#define NOT_SUPPORTED 801 /* both CUDA_ERROR_NOT_SUPPORTED and cudaErrorNotSupported */
#define UNSUPPORTED(call) \
  int call(void);         \
  int call(void) { return NOT_SUPPORTED; }

#define GRAPHICS(call) REFUSED(call, "graphics interfaces (OpenGL, EGL, VDPAU) do not exist here")
#define OTHER_PROCESSES(call)                                                                  \
  REFUSED(call,                                                                                \
          "memory and events of other processes or other interfaces cannot be shared with an " \
          "emulated device")
#define REMOVED(call) \
  REFUSED(            \
      call,           \
      "texture and surface references were removed in CUDA 12: use texture and surface objects")
#define TEXTURES(call) \
  REFUSED(call, "textures, surfaces and CUDA arrays are not emulated: read plain memory instead")
#define OLD(call) REFUSED(call, "it belongs to an interface that CUDA has dropped")
#define GREEN(call) REFUSED(call, "parts of a device (green contexts) are not emulated")
#define MIPMAPS(call) REFUSED(call, "mipmapped and sparse arrays are not emulated")
#define MULTICAST(call) REFUSED(call, "there is one device: no multicast objects")
#define VIRTUAL(call) REFUSED(call, "virtual memory (cuMemMap) is not emulated: use cudaMalloc")
#define LINKER(call) REFUSED(call, "the driver's linker is not emulated: link with nvcc -rdc=true")
#define PER_THREAD(call)                                                                       \
  REFUSED(call,                                                                                \
          "the program is built with --default-stream per-thread: build it without, and pass " \
          "cudaStreamPerThread where you mean that stream")
#define GRAPHS(call)                                                                           \
  REFUSED(call,                                                                                \
          "a graph is a captured stream (cudaStreamBeginCapture), which can be instantiated, " \
          "updated and launched")
#define POOLS(call) \
  REFUSED(call, "there is one memory pool: call cudaMallocAsync and cudaDeviceGetDefaultMemPool")
#define PEERS(call) REFUSED(call, "there is one device: no peers")
#define VOLUMES(call) REFUSED(call, "of memory with slices there are no copies: copy its rows")
#define ROWS(call) REFUSED(call, "call the runtime's for rows: cudaMemcpy2D, cudaMemset2D")
#define PROCESS(call) \
  REFUSED(call, "it is about tools around a process (checkpoints, core dumps, logs)")

#define INTERNAL(call) REFUSED(call, "it is an interface of NVIDIA's own libraries and tools")
#define CONTEXTS(call)                                                                            \
  REFUSED(                                                                                        \
      call,                                                                                       \
      "contexts have no flags, caches, numbers or events of their own here: leave the call out, " \
      "or record and wait for events in streams")
#define DEVICES(call)                                                                       \
  REFUSED(call,                                                                             \
          "there is one device, 0: ask cudaGetDeviceProperties and cudaDeviceGetAttribute " \
          "about it")
#define FUNCTIONS(call)                                                                      \
  REFUSED(call,                                                                              \
          "of kernels and modules the emulator tells what cudaFuncGetAttributes tells, and " \
          "addresses of variables (cudaGetSymbolAddress)")
#define OCCUPANCY(call) \
  REFUSED(call, "call cudaOccupancyMaxActiveBlocksPerMultiprocessor for the sizes in question")
#define MOVES(call)                                                                                \
  REFUSED(call,                                                                                    \
          "managed memory does not move between host and device here: leave the call out, or use " \
          "cudaMemPrefetchAsync and cudaMemAdvise, which do nothing")
#define BATCHES(call) REFUSED(call, "there are no batches of copies: call cudaMemcpyAsync for each")
#define VALUES(call) \
  REFUSED(call, "streams cannot wait for values in memory or write them: use events")
#define ATTRIBUTES(call) \
  REFUSED(call, "attributes of streams have no effect here: cudaStreamSetAttribute takes them")
#define HOST(call)                                                                      \
  REFUSED(call,                                                                         \
          "no other device reads or writes this memory: leave it out; of pointers ask " \
          "cudaPointerGetAttributes")
#define BLACKWELL(call) REFUSED(call, "such maps need a GPU of compute capability 10.0 or newer")

/* clang-format off */
GRAPHICS(cuGLGetDevices) GRAPHICS(cuGLGetDevices_v2) GRAPHICS(cuGraphicsGLRegisterBuffer)
GRAPHICS(cuGraphicsGLRegisterImage) GRAPHICS(cuGraphicsMapResources)
GRAPHICS(cuGraphicsMapResources_ptsz) GRAPHICS(cuGraphicsResourceGetMappedMipmappedArray)
GRAPHICS(cuGraphicsResourceGetMappedPointer_v2) GRAPHICS(cuGraphicsResourceSetMapFlags_v2)
GRAPHICS(cuGraphicsSubResourceGetMappedArray) GRAPHICS(cuGraphicsUnmapResources)
GRAPHICS(cuGraphicsUnmapResources_ptsz) GRAPHICS(cuGraphicsUnregisterResource)
GRAPHICS(cudaEGLStreamConsumerAcquireFrame) GRAPHICS(cudaEGLStreamConsumerConnect)
GRAPHICS(cudaEGLStreamConsumerConnectWithFlags) GRAPHICS(cudaEGLStreamConsumerDisconnect)
GRAPHICS(cudaEGLStreamConsumerReleaseFrame) GRAPHICS(cudaEGLStreamProducerConnect)
GRAPHICS(cudaEGLStreamProducerDisconnect) GRAPHICS(cudaEGLStreamProducerPresentFrame)
GRAPHICS(cudaEGLStreamProducerReturnFrame) GRAPHICS(cudaEventCreateFromEGLSync)
GRAPHICS(cudaGLGetDevices) GRAPHICS(cudaGLMapBufferObject) GRAPHICS(cudaGLMapBufferObjectAsync)
GRAPHICS(cudaGLRegisterBufferObject) GRAPHICS(cudaGLSetBufferObjectMapFlags)
GRAPHICS(cudaGLSetGLDevice) GRAPHICS(cudaGLUnmapBufferObject) GRAPHICS(cudaGLUnmapBufferObjectAsync)
GRAPHICS(cudaGLUnregisterBufferObject) GRAPHICS(cudaGraphicsEGLRegisterImage)
GRAPHICS(cudaGraphicsGLRegisterBuffer) GRAPHICS(cudaGraphicsGLRegisterImage)
GRAPHICS(cudaGraphicsMapResources) GRAPHICS(cudaGraphicsResourceGetMappedMipmappedArray)
GRAPHICS(cudaGraphicsResourceGetMappedPointer) GRAPHICS(cudaGraphicsResourceSetMapFlags)
GRAPHICS(cudaGraphicsSubResourceGetMappedArray) GRAPHICS(cudaGraphicsUnmapResources)
GRAPHICS(cudaGraphicsUnregisterResource) GRAPHICS(cudaGraphicsVDPAURegisterOutputSurface)
GRAPHICS(cudaGraphicsVDPAURegisterVideoSurface) GRAPHICS(cudaVDPAUGetDevice)
GRAPHICS(cudaVDPAUSetVDPAUDevice)

OTHER_PROCESSES(cuDestroyExternalMemory) OTHER_PROCESSES(cuDestroyExternalSemaphore)
OTHER_PROCESSES(cuDeviceGetNvSciSyncAttributes) OTHER_PROCESSES(cuExternalMemoryGetMappedBuffer)
OTHER_PROCESSES(cuExternalMemoryGetMappedMipmappedArray)
OTHER_PROCESSES(cuGraphAddExternalSemaphoresSignalNode)
OTHER_PROCESSES(cuGraphAddExternalSemaphoresWaitNode)
OTHER_PROCESSES(cuGraphExecExternalSemaphoresSignalNodeSetParams)
OTHER_PROCESSES(cuGraphExecExternalSemaphoresWaitNodeSetParams)
OTHER_PROCESSES(cuGraphExternalSemaphoresSignalNodeGetParams)
OTHER_PROCESSES(cuGraphExternalSemaphoresSignalNodeSetParams)
OTHER_PROCESSES(cuGraphExternalSemaphoresWaitNodeGetParams)
OTHER_PROCESSES(cuGraphExternalSemaphoresWaitNodeSetParams) OTHER_PROCESSES(cuImportExternalMemory)
OTHER_PROCESSES(cuImportExternalSemaphore) OTHER_PROCESSES(cuIpcCloseMemHandle)
OTHER_PROCESSES(cuIpcGetEventHandle) OTHER_PROCESSES(cuIpcGetMemHandle)
OTHER_PROCESSES(cuIpcOpenEventHandle) OTHER_PROCESSES(cuIpcOpenMemHandle_v2)
OTHER_PROCESSES(cuMemExportToShareableHandle) OTHER_PROCESSES(cuMemGetHandleForAddressRange)
OTHER_PROCESSES(cuMemImportFromShareableHandle) OTHER_PROCESSES(cuMemPoolExportPointer)
OTHER_PROCESSES(cuMemPoolExportToShareableHandle)
OTHER_PROCESSES(cuMemPoolImportFromShareableHandle) OTHER_PROCESSES(cuMemPoolImportPointer)
OTHER_PROCESSES(cuSignalExternalSemaphoresAsync)
OTHER_PROCESSES(cuSignalExternalSemaphoresAsync_ptsz) OTHER_PROCESSES(cuWaitExternalSemaphoresAsync)
OTHER_PROCESSES(cuWaitExternalSemaphoresAsync_ptsz) OTHER_PROCESSES(cudaDestroyExternalMemory)
OTHER_PROCESSES(cudaDestroyExternalSemaphore) OTHER_PROCESSES(cudaDeviceGetNvSciSyncAttributes)
OTHER_PROCESSES(cudaExternalMemoryGetMappedBuffer)
OTHER_PROCESSES(cudaExternalMemoryGetMappedMipmappedArray)
OTHER_PROCESSES(cudaGraphAddExternalSemaphoresSignalNode)
OTHER_PROCESSES(cudaGraphAddExternalSemaphoresWaitNode)
OTHER_PROCESSES(cudaGraphExecExternalSemaphoresSignalNodeSetParams)
OTHER_PROCESSES(cudaGraphExecExternalSemaphoresWaitNodeSetParams)
OTHER_PROCESSES(cudaGraphExternalSemaphoresSignalNodeGetParams)
OTHER_PROCESSES(cudaGraphExternalSemaphoresSignalNodeSetParams)
OTHER_PROCESSES(cudaGraphExternalSemaphoresWaitNodeGetParams)
OTHER_PROCESSES(cudaGraphExternalSemaphoresWaitNodeSetParams)
OTHER_PROCESSES(cudaImportExternalMemory) OTHER_PROCESSES(cudaImportExternalSemaphore)
OTHER_PROCESSES(cudaIpcCloseMemHandle) OTHER_PROCESSES(cudaIpcGetEventHandle)
OTHER_PROCESSES(cudaIpcGetMemHandle) OTHER_PROCESSES(cudaIpcOpenEventHandle)
OTHER_PROCESSES(cudaIpcOpenMemHandle) OTHER_PROCESSES(cudaMemPoolExportPointer)
OTHER_PROCESSES(cudaMemPoolExportToShareableHandle)
OTHER_PROCESSES(cudaMemPoolImportFromShareableHandle) OTHER_PROCESSES(cudaMemPoolImportPointer)
OTHER_PROCESSES(cudaSignalExternalSemaphoresAsync)
OTHER_PROCESSES(cudaSignalExternalSemaphoresAsync_ptsz)
OTHER_PROCESSES(cudaWaitExternalSemaphoresAsync)
OTHER_PROCESSES(cudaWaitExternalSemaphoresAsync_ptsz)

TEXTURES(cuArray3DCreate_v2) TEXTURES(cuArray3DGetDescriptor_v2) TEXTURES(cuArrayCreate_v2)
TEXTURES(cuArrayDestroy) TEXTURES(cuArrayGetDescriptor_v2) TEXTURES(cuArrayGetMemoryRequirements)
TEXTURES(cuArrayGetPlane) TEXTURES(cuDeviceGetTexture1DLinearMaxWidth) TEXTURES(cuMemcpyAtoA_v2)
TEXTURES(cuMemcpyAtoA_v2_ptds) TEXTURES(cuMemcpyAtoD_v2) TEXTURES(cuMemcpyAtoD_v2_ptds)
TEXTURES(cuMemcpyAtoHAsync_v2) TEXTURES(cuMemcpyAtoHAsync_v2_ptsz) TEXTURES(cuMemcpyAtoH_v2)
TEXTURES(cuMemcpyAtoH_v2_ptds) TEXTURES(cuMemcpyDtoA_v2) TEXTURES(cuMemcpyDtoA_v2_ptds)
TEXTURES(cuMemcpyHtoAAsync_v2) TEXTURES(cuMemcpyHtoAAsync_v2_ptsz) TEXTURES(cuMemcpyHtoA_v2)
TEXTURES(cuMemcpyHtoA_v2_ptds) TEXTURES(cuSurfObjectCreate) TEXTURES(cuSurfObjectDestroy)
TEXTURES(cuSurfObjectGetResourceDesc) TEXTURES(cuTexObjectCreate) TEXTURES(cuTexObjectDestroy)
TEXTURES(cuTexObjectGetResourceDesc) TEXTURES(cuTexObjectGetResourceViewDesc)
TEXTURES(cuTexObjectGetTextureDesc) TEXTURES(cudaArrayGetInfo)
TEXTURES(cudaArrayGetMemoryRequirements) TEXTURES(cudaArrayGetPlane) TEXTURES(cudaCreateChannelDesc)
TEXTURES(cudaCreateSurfaceObject) TEXTURES(cudaCreateTextureObject)
TEXTURES(cudaDestroySurfaceObject) TEXTURES(cudaDestroyTextureObject)
TEXTURES(cudaDeviceGetTexture1DLinearMaxWidth) TEXTURES(cudaFreeArray) TEXTURES(cudaGetChannelDesc)
TEXTURES(cudaGetSurfaceObjectResourceDesc) TEXTURES(cudaGetTextureObjectResourceDesc)
TEXTURES(cudaGetTextureObjectResourceViewDesc) TEXTURES(cudaGetTextureObjectTextureDesc)
TEXTURES(cudaMalloc3DArray) TEXTURES(cudaMallocArray) TEXTURES(cudaMemcpy2DArrayToArray)
TEXTURES(cudaMemcpy2DArrayToArray_ptds) TEXTURES(cudaMemcpy2DFromArray)
TEXTURES(cudaMemcpy2DFromArrayAsync) TEXTURES(cudaMemcpy2DFromArrayAsync_ptsz)
TEXTURES(cudaMemcpy2DFromArray_ptds) TEXTURES(cudaMemcpy2DToArray)
TEXTURES(cudaMemcpy2DToArrayAsync) TEXTURES(cudaMemcpy2DToArrayAsync_ptsz)
TEXTURES(cudaMemcpy2DToArray_ptds) TEXTURES(cudaMemcpyArrayToArray)
TEXTURES(cudaMemcpyArrayToArray_ptds) TEXTURES(cudaMemcpyFromArray)
TEXTURES(cudaMemcpyFromArrayAsync) TEXTURES(cudaMemcpyFromArrayAsync_ptsz)
TEXTURES(cudaMemcpyFromArray_ptds) TEXTURES(cudaMemcpyToArray) TEXTURES(cudaMemcpyToArrayAsync)
TEXTURES(cudaMemcpyToArrayAsync_ptsz) TEXTURES(cudaMemcpyToArray_ptds)

REMOVED(cuModuleGetSurfRef) REMOVED(cuModuleGetTexRef) REMOVED(cuParamSetTexRef)
REMOVED(cuSurfRefGetArray) REMOVED(cuSurfRefSetArray) REMOVED(cuTexRefCreate)
REMOVED(cuTexRefDestroy) REMOVED(cuTexRefGetAddressMode) REMOVED(cuTexRefGetAddress_v2)
REMOVED(cuTexRefGetArray) REMOVED(cuTexRefGetBorderColor) REMOVED(cuTexRefGetFilterMode)
REMOVED(cuTexRefGetFlags) REMOVED(cuTexRefGetFormat) REMOVED(cuTexRefGetMaxAnisotropy)
REMOVED(cuTexRefGetMipmapFilterMode) REMOVED(cuTexRefGetMipmapLevelBias)
REMOVED(cuTexRefGetMipmapLevelClamp) REMOVED(cuTexRefGetMipmappedArray)
REMOVED(cuTexRefSetAddress2D_v3) REMOVED(cuTexRefSetAddressMode) REMOVED(cuTexRefSetAddress_v2)
REMOVED(cuTexRefSetArray) REMOVED(cuTexRefSetBorderColor) REMOVED(cuTexRefSetFilterMode)
REMOVED(cuTexRefSetFlags) REMOVED(cuTexRefSetFormat) REMOVED(cuTexRefSetMaxAnisotropy)
REMOVED(cuTexRefSetMipmapFilterMode) REMOVED(cuTexRefSetMipmapLevelBias)
REMOVED(cuTexRefSetMipmapLevelClamp) REMOVED(cuTexRefSetMipmappedArray)

OLD(cuCtxAttach) OLD(cuCtxCreate_v3) OLD(cuCtxDetach)
OLD(cuCtxGetSharedMemConfig) OLD(cuCtxSetSharedMemConfig)
OLD(cuFuncSetBlockShape) OLD(cuFuncSetSharedMemConfig) OLD(cuFuncSetSharedSize) OLD(cuLaunch)
OLD(cuLaunchCooperativeKernelMultiDevice) OLD(cuLaunchGrid) OLD(cuLaunchGridAsync)
OLD(cuParamSetSize) OLD(cuParamSetf) OLD(cuParamSeti) OLD(cuParamSetv) OLD(cuProfilerInitialize)
OLD(cudaDeviceGetSharedMemConfig) OLD(cudaDeviceSetSharedMemConfig) OLD(cudaFuncSetSharedMemConfig)

GREEN(cuCtxFromGreenCtx) GREEN(cuCtxGetDevResource) GREEN(cuDevResourceGenerateDesc)
GREEN(cuDevSmResourceSplitByCount) GREEN(cuDeviceGetDevResource) GREEN(cuGreenCtxCreate)
GREEN(cuGreenCtxDestroy) GREEN(cuGreenCtxGetDevResource) GREEN(cuGreenCtxGetId)
GREEN(cuGreenCtxRecordEvent) GREEN(cuGreenCtxStreamCreate) GREEN(cuGreenCtxWaitEvent)
GREEN(cuStreamGetGreenCtx)

MIPMAPS(cuArrayGetSparseProperties) MIPMAPS(cuMemMapArrayAsync) MIPMAPS(cuMemMapArrayAsync_ptsz)
MIPMAPS(cuMipmappedArrayCreate) MIPMAPS(cuMipmappedArrayDestroy) MIPMAPS(cuMipmappedArrayGetLevel)
MIPMAPS(cuMipmappedArrayGetMemoryRequirements) MIPMAPS(cuMipmappedArrayGetSparseProperties)
MIPMAPS(cudaArrayGetSparseProperties) MIPMAPS(cudaFreeMipmappedArray)
MIPMAPS(cudaGetMipmappedArrayLevel) MIPMAPS(cudaMallocMipmappedArray)
MIPMAPS(cudaMipmappedArrayGetMemoryRequirements) MIPMAPS(cudaMipmappedArrayGetSparseProperties)

MULTICAST(cuMulticastAddDevice) MULTICAST(cuMulticastBindAddr) MULTICAST(cuMulticastBindMem)
MULTICAST(cuMulticastCreate) MULTICAST(cuMulticastUnbind) UNSUPPORTED(cuMulticastGetGranularity)

PROCESS(cuCheckpointProcessCheckpoint) PROCESS(cuCheckpointProcessGetRestoreThreadId)
PROCESS(cuCheckpointProcessGetState) PROCESS(cuCheckpointProcessLock)
PROCESS(cuCheckpointProcessRestore) PROCESS(cuCheckpointProcessUnlock)
PROCESS(cuCoredumpGetAttribute) PROCESS(cuCoredumpGetAttributeGlobal)
PROCESS(cuCoredumpSetAttribute) PROCESS(cuCoredumpSetAttributeGlobal)
PROCESS(cuDeviceRegisterAsyncNotification) PROCESS(cuDeviceUnregisterAsyncNotification)
PROCESS(cuLogsCurrent) PROCESS(cuLogsDumpToFile) PROCESS(cuLogsDumpToMemory)
PROCESS(cuLogsRegisterCallback) PROCESS(cuLogsUnregisterCallback)
PROCESS(cudaDeviceRegisterAsyncNotification) PROCESS(cudaDeviceUnregisterAsyncNotification)
PROCESS(cudaLogsCurrent) PROCESS(cudaLogsDumpToFile) PROCESS(cudaLogsDumpToMemory)
PROCESS(cudaLogsRegisterCallback) PROCESS(cudaLogsUnregisterCallback)

VIRTUAL(cuMemAddressFree) VIRTUAL(cuMemAddressReserve) VIRTUAL(cuMemCreate) VIRTUAL(cuMemGetAccess)
UNSUPPORTED(cuMemGetAllocationGranularity) VIRTUAL(cuMemGetAllocationPropertiesFromHandle)
VIRTUAL(cuMemMap) VIRTUAL(cuMemRelease) VIRTUAL(cuMemRetainAllocationHandle) VIRTUAL(cuMemSetAccess)
VIRTUAL(cuMemUnmap)

LINKER(cuLinkAddData_v2) LINKER(cuLinkAddFile_v2) LINKER(cuLinkComplete) LINKER(cuLinkCreate_v2)
LINKER(cuLinkDestroy)

PER_THREAD(__cudaLaunchKernel_ptsz) PER_THREAD(cuEventRecordWithFlags_ptsz)
PER_THREAD(cuEventRecord_ptsz) PER_THREAD(cuGetProcAddress_v2_ptsz)
PER_THREAD(cuGraphInstantiateWithParams_ptsz) PER_THREAD(cuGraphLaunch_ptsz)
PER_THREAD(cuGraphUpload_ptsz) PER_THREAD(cuLaunchCooperativeKernel_ptsz)
PER_THREAD(cuLaunchHostFunc_ptsz) PER_THREAD(cuLaunchKernelEx_ptsz) PER_THREAD(cuLaunchKernel_ptsz)
PER_THREAD(cuMemAllocAsync_ptsz) PER_THREAD(cuMemAllocFromPoolAsync_ptsz)
PER_THREAD(cuMemBatchDecompressAsync_ptsz) PER_THREAD(cuMemDiscardAndPrefetchBatchAsync_ptsz)
PER_THREAD(cuMemDiscardBatchAsync_ptsz) PER_THREAD(cuMemFreeAsync_ptsz)
PER_THREAD(cuMemPrefetchAsync_v2_ptsz) PER_THREAD(cuMemPrefetchBatchAsync_ptsz)
PER_THREAD(cuMemcpy2DAsync_v2_ptsz) PER_THREAD(cuMemcpy2DUnaligned_v2_ptds)
PER_THREAD(cuMemcpy2D_v2_ptds) PER_THREAD(cuMemcpy3DAsync_v2_ptsz)
PER_THREAD(cuMemcpy3DBatchAsync_v2_ptsz) PER_THREAD(cuMemcpy3DPeerAsync_ptsz)
PER_THREAD(cuMemcpy3DPeer_ptds) PER_THREAD(cuMemcpy3D_v2_ptds) PER_THREAD(cuMemcpyAsync_ptsz)
PER_THREAD(cuMemcpyBatchAsync_v2_ptsz) PER_THREAD(cuMemcpyDtoDAsync_v2_ptsz)
PER_THREAD(cuMemcpyDtoD_v2_ptds) PER_THREAD(cuMemcpyDtoHAsync_v2_ptsz)
PER_THREAD(cuMemcpyDtoH_v2_ptds) PER_THREAD(cuMemcpyHtoDAsync_v2_ptsz)
PER_THREAD(cuMemcpyHtoD_v2_ptds) PER_THREAD(cuMemcpyPeerAsync_ptsz) PER_THREAD(cuMemcpyPeer_ptds)
PER_THREAD(cuMemcpy_ptds) PER_THREAD(cuMemsetD16Async_ptsz) PER_THREAD(cuMemsetD16_v2_ptds)
PER_THREAD(cuMemsetD2D16Async_ptsz) PER_THREAD(cuMemsetD2D16_v2_ptds)
PER_THREAD(cuMemsetD2D32Async_ptsz) PER_THREAD(cuMemsetD2D32_v2_ptds)
PER_THREAD(cuMemsetD2D8Async_ptsz) PER_THREAD(cuMemsetD2D8_v2_ptds)
PER_THREAD(cuMemsetD32Async_ptsz) PER_THREAD(cuMemsetD32_v2_ptds) PER_THREAD(cuMemsetD8Async_ptsz)
PER_THREAD(cuMemsetD8_v2_ptds) PER_THREAD(cuStreamAddCallback_ptsz)
PER_THREAD(cuStreamAttachMemAsync_ptsz) PER_THREAD(cuStreamBatchMemOp_v2_ptsz)
PER_THREAD(cuStreamBeginCaptureToGraph_ptsz) PER_THREAD(cuStreamBeginCapture_v2_ptsz)
PER_THREAD(cuStreamCopyAttributes_ptsz) PER_THREAD(cuStreamEndCapture_ptsz)
PER_THREAD(cuStreamGetAttribute_ptsz) PER_THREAD(cuStreamGetCaptureInfo_v3_ptsz)
PER_THREAD(cuStreamGetCtx_ptsz) PER_THREAD(cuStreamGetCtx_v2_ptsz)
PER_THREAD(cuStreamGetDevice_ptsz) PER_THREAD(cuStreamGetFlags_ptsz) PER_THREAD(cuStreamGetId_ptsz)
PER_THREAD(cuStreamGetPriority_ptsz) PER_THREAD(cuStreamIsCapturing_ptsz)
PER_THREAD(cuStreamQuery_ptsz) PER_THREAD(cuStreamSetAttribute_ptsz)
PER_THREAD(cuStreamSynchronize_ptsz) PER_THREAD(cuStreamUpdateCaptureDependencies_v2_ptsz)
PER_THREAD(cuStreamWaitEvent_ptsz) PER_THREAD(cuStreamWaitValue32_v2_ptsz)
PER_THREAD(cuStreamWaitValue64_v2_ptsz) PER_THREAD(cuStreamWriteValue32_v2_ptsz)
PER_THREAD(cuStreamWriteValue64_v2_ptsz) PER_THREAD(cudaEventRecordWithFlags_ptsz)
PER_THREAD(cudaEventRecord_ptsz) PER_THREAD(cudaFreeAsync_ptsz)
PER_THREAD(cudaGetDriverEntryPointByVersion_ptsz) PER_THREAD(cudaGetDriverEntryPoint_ptsz)
PER_THREAD(cudaGraphInstantiateWithParams_ptsz) PER_THREAD(cudaGraphLaunch_ptsz)
PER_THREAD(cudaGraphUpload_ptsz) PER_THREAD(cudaLaunchCooperativeKernel_ptsz)
PER_THREAD(cudaLaunchHostFunc_ptsz) PER_THREAD(cudaLaunchKernelExC_ptsz)
PER_THREAD(cudaLaunchKernel_ptsz) PER_THREAD(cudaMallocAsync_ptsz)
PER_THREAD(cudaMallocFromPoolAsync_ptsz) PER_THREAD(cudaMemDiscardAndPrefetchBatchAsync_ptsz)
PER_THREAD(cudaMemDiscardBatchAsync_ptsz) PER_THREAD(cudaMemPrefetchAsync_ptsz)
PER_THREAD(cudaMemPrefetchBatchAsync_ptsz) PER_THREAD(cudaMemcpy2DAsync_ptsz)
PER_THREAD(cudaMemcpy2D_ptds) PER_THREAD(cudaMemcpy3DAsync_ptsz)
PER_THREAD(cudaMemcpy3DBatchAsync_ptsz) PER_THREAD(cudaMemcpy3DPeerAsync_ptsz)
PER_THREAD(cudaMemcpy3DPeer_ptds) PER_THREAD(cudaMemcpy3D_ptds) PER_THREAD(cudaMemcpyAsync_ptsz)
PER_THREAD(cudaMemcpyBatchAsync_ptsz) PER_THREAD(cudaMemcpyFromSymbolAsync_ptsz)
PER_THREAD(cudaMemcpyFromSymbol_ptds) PER_THREAD(cudaMemcpyToSymbolAsync_ptsz)
PER_THREAD(cudaMemcpyToSymbol_ptds) PER_THREAD(cudaMemcpy_ptds) PER_THREAD(cudaMemset2DAsync_ptsz)
PER_THREAD(cudaMemset2D_ptds) PER_THREAD(cudaMemset3DAsync_ptsz) PER_THREAD(cudaMemset3D_ptds)
PER_THREAD(cudaMemsetAsync_ptsz) PER_THREAD(cudaMemset_ptds) PER_THREAD(cudaStreamAddCallback_ptsz)
PER_THREAD(cudaStreamAttachMemAsync_ptsz) PER_THREAD(cudaStreamBeginCaptureToGraph_ptsz)
PER_THREAD(cudaStreamBeginCapture_ptsz) PER_THREAD(cudaStreamCopyAttributes_ptsz)
PER_THREAD(cudaStreamEndCapture_ptsz) PER_THREAD(cudaStreamGetAttribute_ptsz)
PER_THREAD(cudaStreamGetCaptureInfo_ptsz) PER_THREAD(cudaStreamGetDevice_ptsz)
PER_THREAD(cudaStreamGetFlags_ptsz) PER_THREAD(cudaStreamGetId_ptsz)
PER_THREAD(cudaStreamGetPriority_ptsz) PER_THREAD(cudaStreamIsCapturing_ptsz)
PER_THREAD(cudaStreamQuery_ptsz) PER_THREAD(cudaStreamSetAttribute_ptsz)
PER_THREAD(cudaStreamSynchronize_ptsz) PER_THREAD(cudaStreamUpdateCaptureDependencies_ptsz)
PER_THREAD(cudaStreamWaitEvent_ptsz)

GRAPHS(cuDeviceGetGraphMemAttribute) GRAPHS(cuDeviceGraphMemTrim)
GRAPHS(cuDeviceSetGraphMemAttribute) GRAPHS(cuGraphAddBatchMemOpNode)
GRAPHS(cuGraphAddChildGraphNode) GRAPHS(cuGraphAddDependencies_v2) GRAPHS(cuGraphAddEmptyNode)
GRAPHS(cuGraphAddEventRecordNode) GRAPHS(cuGraphAddEventWaitNode) GRAPHS(cuGraphAddHostNode)
GRAPHS(cuGraphAddKernelNode) GRAPHS(cuGraphAddKernelNode_v2)
GRAPHS(cuGraphAddMemAllocNode) GRAPHS(cuGraphAddMemFreeNode)
GRAPHS(cuGraphAddMemcpyNode) GRAPHS(cuGraphAddMemsetNode) GRAPHS(cuGraphAddNode_v2)
GRAPHS(cuGraphBatchMemOpNodeGetParams) GRAPHS(cuGraphBatchMemOpNodeSetParams)
GRAPHS(cuGraphChildGraphNodeGetGraph) GRAPHS(cuGraphClone) GRAPHS(cuGraphConditionalHandleCreate)
GRAPHS(cuGraphCreate) GRAPHS(cuGraphDebugDotPrint) GRAPHS(cuGraphDestroyNode)
GRAPHS(cuGraphEventRecordNodeGetEvent) GRAPHS(cuGraphEventRecordNodeSetEvent)
GRAPHS(cuGraphEventWaitNodeGetEvent) GRAPHS(cuGraphEventWaitNodeSetEvent)
GRAPHS(cuGraphExecBatchMemOpNodeSetParams) GRAPHS(cuGraphExecChildGraphNodeSetParams)
GRAPHS(cuGraphExecEventRecordNodeSetEvent) GRAPHS(cuGraphExecEventWaitNodeSetEvent)
GRAPHS(cuGraphExecGetFlags) GRAPHS(cuGraphExecHostNodeSetParams)
GRAPHS(cuGraphExecKernelNodeSetParams_v2) GRAPHS(cuGraphExecMemcpyNodeSetParams)
GRAPHS(cuGraphExecMemsetNodeSetParams) GRAPHS(cuGraphExecNodeSetParams) GRAPHS(cuGraphExecUpdate_v2)
GRAPHS(cuGraphGetEdges_v2) GRAPHS(cuGraphGetRootNodes) GRAPHS(cuGraphHostNodeGetParams)
GRAPHS(cuGraphHostNodeSetParams) GRAPHS(cuGraphInstantiateWithParams)
GRAPHS(cuGraphKernelNodeCopyAttributes) GRAPHS(cuGraphKernelNodeGetAttribute)
GRAPHS(cuGraphKernelNodeGetParams_v2) GRAPHS(cuGraphKernelNodeSetAttribute)
GRAPHS(cuGraphKernelNodeSetParams_v2) GRAPHS(cuGraphMemAllocNodeGetParams)
GRAPHS(cuGraphMemFreeNodeGetParams) GRAPHS(cuGraphMemcpyNodeGetParams)
GRAPHS(cuGraphMemcpyNodeSetParams) GRAPHS(cuGraphMemsetNodeGetParams)
GRAPHS(cuGraphMemsetNodeSetParams) GRAPHS(cuGraphNodeFindInClone)
GRAPHS(cuGraphNodeGetDependencies_v2) GRAPHS(cuGraphNodeGetDependentNodes_v2)
GRAPHS(cuGraphNodeGetEnabled) GRAPHS(cuGraphNodeGetType) GRAPHS(cuGraphNodeSetEnabled)
GRAPHS(cuGraphNodeSetParams) GRAPHS(cuGraphReleaseUserObject) GRAPHS(cuGraphRemoveDependencies_v2)
GRAPHS(cuGraphRetainUserObject) GRAPHS(cuStreamBeginCaptureToGraph)
GRAPHS(cuStreamUpdateCaptureDependencies_v2) GRAPHS(cuUserObjectCreate) GRAPHS(cuUserObjectRelease)
GRAPHS(cuUserObjectRetain) GRAPHS(cudaDeviceGetGraphMemAttribute) GRAPHS(cudaDeviceGraphMemTrim)
GRAPHS(cudaDeviceSetGraphMemAttribute) GRAPHS(cudaGraphAddChildGraphNode)
GRAPHS(cudaGraphAddDependencies) GRAPHS(cudaGraphAddEmptyNode) GRAPHS(cudaGraphAddEventRecordNode)
GRAPHS(cudaGraphAddEventWaitNode) GRAPHS(cudaGraphAddHostNode) GRAPHS(cudaGraphAddKernelNode)
GRAPHS(cudaGraphAddMemAllocNode) GRAPHS(cudaGraphAddMemFreeNode) GRAPHS(cudaGraphAddMemcpyNode)
GRAPHS(cudaGraphAddMemcpyNode1D) GRAPHS(cudaGraphAddMemcpyNodeFromSymbol)
GRAPHS(cudaGraphAddMemcpyNodeToSymbol) GRAPHS(cudaGraphAddMemsetNode) GRAPHS(cudaGraphAddNode)
GRAPHS(cudaGraphChildGraphNodeGetGraph) GRAPHS(cudaGraphClone)
GRAPHS(cudaGraphConditionalHandleCreate) GRAPHS(cudaGraphCreate) GRAPHS(cudaGraphDebugDotPrint)
GRAPHS(cudaGraphDestroyNode) GRAPHS(cudaGraphEventRecordNodeGetEvent)
GRAPHS(cudaGraphEventRecordNodeSetEvent) GRAPHS(cudaGraphEventWaitNodeGetEvent)
GRAPHS(cudaGraphEventWaitNodeSetEvent) GRAPHS(cudaGraphExecChildGraphNodeSetParams)
GRAPHS(cudaGraphExecEventRecordNodeSetEvent) GRAPHS(cudaGraphExecEventWaitNodeSetEvent)
GRAPHS(cudaGraphExecGetFlags) GRAPHS(cudaGraphExecHostNodeSetParams)
GRAPHS(cudaGraphExecKernelNodeSetParams) GRAPHS(cudaGraphExecMemcpyNodeSetParams)
GRAPHS(cudaGraphExecMemcpyNodeSetParams1D) GRAPHS(cudaGraphExecMemcpyNodeSetParamsFromSymbol)
GRAPHS(cudaGraphExecMemcpyNodeSetParamsToSymbol) GRAPHS(cudaGraphExecMemsetNodeSetParams)
GRAPHS(cudaGraphExecNodeSetParams) GRAPHS(cudaGraphGetEdges) GRAPHS(cudaGraphGetRootNodes)
GRAPHS(cudaGraphHostNodeGetParams) GRAPHS(cudaGraphHostNodeSetParams)
GRAPHS(cudaGraphInstantiateWithParams) GRAPHS(cudaGraphKernelNodeCopyAttributes)
GRAPHS(cudaGraphKernelNodeGetAttribute) GRAPHS(cudaGraphKernelNodeGetParams)
GRAPHS(cudaGraphKernelNodeSetAttribute) GRAPHS(cudaGraphKernelNodeSetParams)
GRAPHS(cudaGraphMemAllocNodeGetParams) GRAPHS(cudaGraphMemFreeNodeGetParams)
GRAPHS(cudaGraphMemcpyNodeGetParams) GRAPHS(cudaGraphMemcpyNodeSetParams)
GRAPHS(cudaGraphMemcpyNodeSetParams1D) GRAPHS(cudaGraphMemcpyNodeSetParamsFromSymbol)
GRAPHS(cudaGraphMemcpyNodeSetParamsToSymbol) GRAPHS(cudaGraphMemsetNodeGetParams)
GRAPHS(cudaGraphMemsetNodeSetParams) GRAPHS(cudaGraphNodeFindInClone)
GRAPHS(cudaGraphNodeGetDependencies) GRAPHS(cudaGraphNodeGetDependentNodes)
GRAPHS(cudaGraphNodeGetEnabled) GRAPHS(cudaGraphNodeGetType) GRAPHS(cudaGraphNodeSetEnabled)
GRAPHS(cudaGraphNodeSetParams) GRAPHS(cudaGraphReleaseUserObject)
GRAPHS(cudaGraphRemoveDependencies) GRAPHS(cudaGraphRetainUserObject)
GRAPHS(cudaStreamBeginCaptureToGraph) GRAPHS(cudaStreamUpdateCaptureDependencies)
GRAPHS(cudaUserObjectCreate) GRAPHS(cudaUserObjectRelease) GRAPHS(cudaUserObjectRetain)

UNSUPPORTED(cuMemPoolCreate) UNSUPPORTED(cudaMemPoolCreate) POOLS(cuMemPoolDestroy)
POOLS(cudaMemPoolDestroy) POOLS(cuMemGetDefaultMemPool) POOLS(cuMemGetMemPool)
POOLS(cuMemSetMemPool) POOLS(cudaMemGetDefaultMemPool) POOLS(cudaMemGetMemPool)
POOLS(cudaMemSetMemPool)

INTERNAL(__cudaGetProcAddress) INTERNAL(__cudaRegisterHostVar) INTERNAL(__cudaRegisterUnifiedTable)
INTERNAL(cudaGetExportTable)

CONTEXTS(cuCtxGetApiVersion) CONTEXTS(cuCtxGetCacheConfig) CONTEXTS(cuCtxGetExecAffinity)
CONTEXTS(cuCtxGetFlags) CONTEXTS(cuCtxGetId) CONTEXTS(cuCtxRecordEvent)
CONTEXTS(cuCtxSetCacheConfig) CONTEXTS(cuCtxSetFlags) CONTEXTS(cuCtxWaitEvent)
CONTEXTS(cuDevicePrimaryCtxSetFlags_v2)

DEVICES(cuDeviceComputeCapability) DEVICES(cuDeviceGetByPCIBusId)
DEVICES(cuDeviceGetExecAffinitySupport) DEVICES(cuDeviceGetLuid) DEVICES(cuDeviceGetProperties)
DEVICES(cudaChooseDevice) DEVICES(cudaDeviceGetByPCIBusId) DEVICES(cudaDeviceGetCacheConfig)
DEVICES(cudaSetValidDevices)

FUNCTIONS(cuFuncGetModule) FUNCTIONS(cuFuncGetParamInfo) FUNCTIONS(cuFuncIsLoaded)
FUNCTIONS(cuFuncLoad) FUNCTIONS(cuKernelGetLibrary) FUNCTIONS(cuKernelGetParamInfo)
FUNCTIONS(cuKernelSetCacheConfig) FUNCTIONS(cuLibraryGetManaged)
FUNCTIONS(cuLibraryGetUnifiedFunction) FUNCTIONS(cuModuleGetLoadingMode)
FUNCTIONS(cudaFuncGetParamInfo) FUNCTIONS(cudaLibraryGetManaged)
FUNCTIONS(cudaLibraryGetUnifiedFunction)

OCCUPANCY(cuOccupancyAvailableDynamicSMemPerBlock) OCCUPANCY(cuOccupancyMaxPotentialBlockSize)
OCCUPANCY(cuOccupancyMaxPotentialBlockSizeWithFlags) OCCUPANCY(cuOccupancyMaxPotentialClusterSize)
OCCUPANCY(cudaOccupancyAvailableDynamicSMemPerBlock)

MOVES(cuMemAdvise_v2) MOVES(cuMemDiscardAndPrefetchBatchAsync) MOVES(cuMemDiscardBatchAsync)
MOVES(cuMemPrefetchAsync_v2) MOVES(cuMemPrefetchBatchAsync) MOVES(cuMemRangeGetAttribute)
MOVES(cuMemRangeGetAttributes) MOVES(cudaMemDiscardAndPrefetchBatchAsync)
MOVES(cudaMemDiscardBatchAsync) MOVES(cudaMemPrefetchBatchAsync) MOVES(cudaMemRangeGetAttribute)
MOVES(cudaMemRangeGetAttributes)

BATCHES(cuMemBatchDecompressAsync) BATCHES(cuMemcpy3DBatchAsync_v2) BATCHES(cuMemcpyBatchAsync)
BATCHES(cuMemcpyBatchAsync_v2) BATCHES(cudaMemcpy3DBatchAsync) BATCHES(cudaMemcpyBatchAsync)

VALUES(cuStreamBatchMemOp_v2) VALUES(cuStreamWaitValue32_v2) VALUES(cuStreamWaitValue64_v2)
VALUES(cuStreamWriteValue32_v2) VALUES(cuStreamWriteValue64_v2)

ATTRIBUTES(cuStreamGetAttribute) ATTRIBUTES(cuStreamSetAttribute) ATTRIBUTES(cudaStreamGetAttribute)

HOST(cuDeviceGetHostAtomicCapabilities) HOST(cuFlushGPUDirectRDMAWrites)
HOST(cuPointerSetAttribute) HOST(cudaDeviceFlushGPUDirectRDMAWrites)
HOST(cudaDeviceGetHostAtomicCapabilities)

BLACKWELL(cuTensorMapEncodeIm2colWide)

PEERS(cuCtxDisablePeerAccess) PEERS(cuCtxEnablePeerAccess) PEERS(cuDeviceGetP2PAtomicCapabilities)
PEERS(cuDeviceGetP2PAttribute) PEERS(cuMemcpy3DPeer) PEERS(cuMemcpy3DPeerAsync) PEERS(cuMemcpyPeer)
PEERS(cuMemcpyPeerAsync) PEERS(cudaDeviceDisablePeerAccess) PEERS(cudaDeviceEnablePeerAccess)
PEERS(cudaDeviceGetP2PAtomicCapabilities) PEERS(cudaDeviceGetP2PAttribute) PEERS(cudaMemcpy3DPeer)
PEERS(cudaMemcpy3DPeerAsync) PEERS(cudaMemcpyPeer) PEERS(cudaMemcpyPeerAsync)

VOLUMES(cuMemcpy3DAsync_v2) VOLUMES(cuMemcpy3D_v2) VOLUMES(cudaMalloc3D) VOLUMES(cudaMemcpy3D)
VOLUMES(cudaMemcpy3DAsync) VOLUMES(cudaMemset3D) VOLUMES(cudaMemset3DAsync)

ROWS(cuMemAllocPitch_v2) ROWS(cuMemcpy2DAsync_v2) ROWS(cuMemcpy2DUnaligned_v2) ROWS(cuMemcpy2D_v2)
ROWS(cuMemsetD2D16Async) ROWS(cuMemsetD2D16_v2) ROWS(cuMemsetD2D32Async) ROWS(cuMemsetD2D32_v2)
ROWS(cuMemsetD2D8Async) ROWS(cuMemsetD2D8_v2)

    /* clang-format on */
    /* ---- What the program is linked with ---- */

    /* An address in the program's dynamic section, which the loader has relocated, or not. */
    static const void *place_of(const struct dl_phdr_info *program, ElfW(Addr) address) {
  return (const void *)(uintptr_t)(address < program->dlpi_addr ? program->dlpi_addr + address
                                                                : address);
}

static void announce(const char *name) {
  for (const RefusedCall *call = __start_refused_calls; call < __stop_refused_calls; call++)
    if (strcmp(call->name, name) == 0)
      fprintf(stderr, "emulator: the program is linked with %s, and ends where it calls it: %s\n",
              name, call->why);
}

static void look_at_relocations(const struct dl_phdr_info *program, const ElfW(Dyn) * dynamic,
                                ElfW(Sxword) table, ElfW(Sxword) bytes) {
  const ElfW(Rela) *relocations = NULL;
  const ElfW(Sym) *symbols = NULL;
  const char *names = NULL;
  size_t count = 0;
  for (; dynamic->d_tag != DT_NULL; dynamic++) {
    if (dynamic->d_tag == table) relocations = place_of(program, dynamic->d_un.d_ptr);
    if (dynamic->d_tag == bytes) count = dynamic->d_un.d_val / sizeof *relocations;
    if (dynamic->d_tag == DT_SYMTAB) symbols = place_of(program, dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_STRTAB) names = place_of(program, dynamic->d_un.d_ptr);
  }
  if (!relocations || !symbols || !names) return;
  for (size_t i = 0; i < count; i++) {
    const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(relocations[i].r_info)];
    if (symbol->st_shndx == SHN_UNDEF) announce(names + symbol->st_name);
  }
}

/* The first object is the program. */
static int look_at_program(struct dl_phdr_info *program, size_t bytes, void *unused) {
  (void)bytes, (void)unused;
  for (int i = 0; i < program->dlpi_phnum; i++) {
    if (program->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const ElfW(Dyn) *dynamic =
        (const void *)(uintptr_t)(program->dlpi_addr + program->dlpi_phdr[i].p_vaddr);
    look_at_relocations(program, dynamic, DT_JMPREL, DT_PLTRELSZ);
    look_at_relocations(program, dynamic, DT_RELA, DT_RELASZ);
  }
  return 1;
}
__attribute__((constructor)) static void announce_refused_calls(void) {
  dl_iterate_phdr(look_at_program, NULL);
}
