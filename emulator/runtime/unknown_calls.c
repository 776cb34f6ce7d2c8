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

/* NO: a call that is refused for the REASON above it. */
#define NO(call)                                                           \
  static const RefusedCall refused_##call                                  \
      __attribute__((used, section("refused_calls"))) = {#call, (REASON)}; \
  void call(void);                                                         \
  void call(void) { refuse_call(#call, refused_##call.why); }
/* The same call of the driver, cuX, and of the runtime, cudaX. */
#define BOTH(call) NO(cu##call) NO(cuda##call)
/* Launchers ask before they use, and do without. */
#define NOT_SUPPORTED 801 /* both CUDA_ERROR_NOT_SUPPORTED and cudaErrorNotSupported */
#define UNSUPPORTED(call) \
  int call(void);         \
  int call(void) { return NOT_SUPPORTED; }

/* clang-format off */
UNSUPPORTED(cuMulticastGetGranularity) UNSUPPORTED(cuMemGetAllocationGranularity)
UNSUPPORTED(cuMemPoolCreate) UNSUPPORTED(cudaMemPoolCreate)

#define REASON "graphics interfaces (OpenGL, EGL, VDPAU) do not exist here"
NO(cuGLGetDevices_v2) NO(cuGraphicsMapResources_ptsz) NO(cuGraphicsResourceGetMappedPointer_v2)
NO(cuGraphicsResourceSetMapFlags_v2) NO(cuGraphicsUnmapResources_ptsz)
NO(cudaEGLStreamConsumerAcquireFrame) NO(cudaEGLStreamConsumerConnect)
NO(cudaEGLStreamConsumerConnectWithFlags) NO(cudaEGLStreamConsumerDisconnect)
NO(cudaEGLStreamConsumerReleaseFrame) NO(cudaEGLStreamProducerConnect)
NO(cudaEGLStreamProducerDisconnect) NO(cudaEGLStreamProducerPresentFrame)
NO(cudaEGLStreamProducerReturnFrame) NO(cudaEventCreateFromEGLSync) NO(cudaGLMapBufferObject)
NO(cudaGLMapBufferObjectAsync) NO(cudaGLRegisterBufferObject) NO(cudaGLSetBufferObjectMapFlags)
NO(cudaGLSetGLDevice) NO(cudaGLUnmapBufferObject) NO(cudaGLUnmapBufferObjectAsync)
NO(cudaGLUnregisterBufferObject) NO(cudaGraphicsEGLRegisterImage)
NO(cudaGraphicsResourceGetMappedPointer) NO(cudaGraphicsResourceSetMapFlags)
NO(cudaGraphicsVDPAURegisterOutputSurface) NO(cudaGraphicsVDPAURegisterVideoSurface)
NO(cudaVDPAUGetDevice) NO(cudaVDPAUSetVDPAUDevice)
BOTH(GLGetDevices) BOTH(GraphicsGLRegisterBuffer) BOTH(GraphicsGLRegisterImage)
BOTH(GraphicsMapResources) BOTH(GraphicsResourceGetMappedMipmappedArray)
BOTH(GraphicsSubResourceGetMappedArray) BOTH(GraphicsUnmapResources)
BOTH(GraphicsUnregisterResource)
#undef REASON

#define REASON \
  "memory and events of other processes or other interfaces cannot be shared with an emulated " \
  "device"
NO(cuIpcOpenMemHandle_v2) NO(cuMemExportToShareableHandle) NO(cuMemGetHandleForAddressRange)
NO(cuMemImportFromShareableHandle) NO(cudaIpcOpenMemHandle)
BOTH(DestroyExternalMemory) BOTH(DestroyExternalSemaphore) BOTH(DeviceGetNvSciSyncAttributes)
BOTH(ExternalMemoryGetMappedBuffer) BOTH(ExternalMemoryGetMappedMipmappedArray)
BOTH(GraphAddExternalSemaphoresSignalNode) BOTH(GraphAddExternalSemaphoresWaitNode)
BOTH(GraphExecExternalSemaphoresSignalNodeSetParams)
BOTH(GraphExecExternalSemaphoresWaitNodeSetParams) BOTH(GraphExternalSemaphoresSignalNodeGetParams)
BOTH(GraphExternalSemaphoresSignalNodeSetParams) BOTH(GraphExternalSemaphoresWaitNodeGetParams)
BOTH(GraphExternalSemaphoresWaitNodeSetParams) BOTH(ImportExternalMemory)
BOTH(ImportExternalSemaphore) BOTH(IpcCloseMemHandle) BOTH(IpcGetEventHandle) BOTH(IpcGetMemHandle)
BOTH(IpcOpenEventHandle) BOTH(MemPoolExportPointer) BOTH(MemPoolExportToShareableHandle)
BOTH(MemPoolImportFromShareableHandle) BOTH(MemPoolImportPointer)
BOTH(SignalExternalSemaphoresAsync) BOTH(SignalExternalSemaphoresAsync_ptsz)
BOTH(WaitExternalSemaphoresAsync) BOTH(WaitExternalSemaphoresAsync_ptsz)
#undef REASON

#define REASON "textures, surfaces and CUDA arrays are not emulated: read plain memory instead"
NO(cuArray3DCreate_v2) NO(cuArray3DGetDescriptor_v2) NO(cuArrayCreate_v2) NO(cuArrayDestroy)
NO(cuArrayGetDescriptor_v2) NO(cuMemcpyAtoA_v2) NO(cuMemcpyAtoA_v2_ptds) NO(cuMemcpyAtoD_v2)
NO(cuMemcpyAtoD_v2_ptds) NO(cuMemcpyAtoHAsync_v2) NO(cuMemcpyAtoHAsync_v2_ptsz) NO(cuMemcpyAtoH_v2)
NO(cuMemcpyAtoH_v2_ptds) NO(cuMemcpyDtoA_v2) NO(cuMemcpyDtoA_v2_ptds) NO(cuMemcpyHtoAAsync_v2)
NO(cuMemcpyHtoAAsync_v2_ptsz) NO(cuMemcpyHtoA_v2) NO(cuMemcpyHtoA_v2_ptds) NO(cuSurfObjectCreate)
NO(cuSurfObjectDestroy) NO(cuSurfObjectGetResourceDesc) NO(cuTexObjectCreate) NO(cuTexObjectDestroy)
NO(cuTexObjectGetResourceDesc) NO(cuTexObjectGetResourceViewDesc) NO(cuTexObjectGetTextureDesc)
NO(cudaArrayGetInfo) NO(cudaCreateChannelDesc) NO(cudaCreateSurfaceObject)
NO(cudaCreateTextureObject) NO(cudaDestroySurfaceObject) NO(cudaDestroyTextureObject)
NO(cudaFreeArray) NO(cudaGetChannelDesc) NO(cudaGetSurfaceObjectResourceDesc)
NO(cudaGetTextureObjectResourceDesc) NO(cudaGetTextureObjectResourceViewDesc)
NO(cudaGetTextureObjectTextureDesc) NO(cudaMalloc3DArray) NO(cudaMallocArray)
NO(cudaMemcpy2DArrayToArray) NO(cudaMemcpy2DArrayToArray_ptds) NO(cudaMemcpy2DFromArray)
NO(cudaMemcpy2DFromArrayAsync) NO(cudaMemcpy2DFromArrayAsync_ptsz) NO(cudaMemcpy2DFromArray_ptds)
NO(cudaMemcpy2DToArray) NO(cudaMemcpy2DToArrayAsync) NO(cudaMemcpy2DToArrayAsync_ptsz)
NO(cudaMemcpy2DToArray_ptds) NO(cudaMemcpyArrayToArray) NO(cudaMemcpyArrayToArray_ptds)
NO(cudaMemcpyFromArray) NO(cudaMemcpyFromArrayAsync) NO(cudaMemcpyFromArrayAsync_ptsz)
NO(cudaMemcpyFromArray_ptds) NO(cudaMemcpyToArray) NO(cudaMemcpyToArrayAsync)
NO(cudaMemcpyToArrayAsync_ptsz) NO(cudaMemcpyToArray_ptds)
BOTH(ArrayGetMemoryRequirements) BOTH(ArrayGetPlane) BOTH(DeviceGetTexture1DLinearMaxWidth)
#undef REASON

#define REASON \
  "texture and surface references were removed in CUDA 12: use texture and surface objects"
NO(cuModuleGetSurfRef) NO(cuModuleGetTexRef) NO(cuParamSetTexRef) NO(cuSurfRefGetArray)
NO(cuSurfRefSetArray) NO(cuTexRefCreate) NO(cuTexRefDestroy) NO(cuTexRefGetAddressMode)
NO(cuTexRefGetAddress_v2) NO(cuTexRefGetArray) NO(cuTexRefGetBorderColor) NO(cuTexRefGetFilterMode)
NO(cuTexRefGetFlags) NO(cuTexRefGetFormat) NO(cuTexRefGetMaxAnisotropy)
NO(cuTexRefGetMipmapFilterMode) NO(cuTexRefGetMipmapLevelBias) NO(cuTexRefGetMipmapLevelClamp)
NO(cuTexRefGetMipmappedArray) NO(cuTexRefSetAddress2D_v3) NO(cuTexRefSetAddressMode)
NO(cuTexRefSetAddress_v2) NO(cuTexRefSetArray) NO(cuTexRefSetBorderColor) NO(cuTexRefSetFilterMode)
NO(cuTexRefSetFlags) NO(cuTexRefSetFormat) NO(cuTexRefSetMaxAnisotropy)
NO(cuTexRefSetMipmapFilterMode) NO(cuTexRefSetMipmapLevelBias) NO(cuTexRefSetMipmapLevelClamp)
NO(cuTexRefSetMipmappedArray)
#undef REASON

#define REASON "it belongs to an interface that CUDA has dropped"
NO(cuCtxAttach) NO(cuCtxCreate_v3) NO(cuCtxDetach) NO(cuCtxGetSharedMemConfig)
NO(cuCtxSetSharedMemConfig) NO(cuFuncSetBlockShape) NO(cuFuncSetSharedSize) NO(cuLaunch)
NO(cuLaunchCooperativeKernelMultiDevice) NO(cuLaunchGrid) NO(cuLaunchGridAsync) NO(cuParamSetSize)
NO(cuParamSetf) NO(cuParamSeti) NO(cuParamSetv) NO(cuProfilerInitialize)
NO(cudaDeviceGetSharedMemConfig) NO(cudaDeviceSetSharedMemConfig)
BOTH(FuncSetSharedMemConfig)
#undef REASON

#define REASON "parts of a device (green contexts) are not emulated"
NO(cuCtxFromGreenCtx) NO(cuCtxGetDevResource) NO(cuDevResourceGenerateDesc)
NO(cuDevSmResourceSplitByCount) NO(cuDeviceGetDevResource) NO(cuGreenCtxCreate)
NO(cuGreenCtxDestroy) NO(cuGreenCtxGetDevResource) NO(cuGreenCtxGetId) NO(cuGreenCtxRecordEvent)
NO(cuGreenCtxStreamCreate) NO(cuGreenCtxWaitEvent) NO(cuStreamGetGreenCtx)
#undef REASON

#define REASON "mipmapped and sparse arrays are not emulated"
NO(cuMemMapArrayAsync) NO(cuMemMapArrayAsync_ptsz) NO(cuMipmappedArrayCreate)
NO(cuMipmappedArrayDestroy) NO(cuMipmappedArrayGetLevel) NO(cudaFreeMipmappedArray)
NO(cudaGetMipmappedArrayLevel) NO(cudaMallocMipmappedArray)
BOTH(ArrayGetSparseProperties) BOTH(MipmappedArrayGetMemoryRequirements)
BOTH(MipmappedArrayGetSparseProperties)
#undef REASON

#define REASON "there is one device: no multicast objects"
NO(cuMulticastAddDevice) NO(cuMulticastBindAddr) NO(cuMulticastBindMem) NO(cuMulticastCreate)
NO(cuMulticastUnbind)
#undef REASON

#define REASON "it is about tools around a process (checkpoints, core dumps, logs)"
NO(cuCheckpointProcessCheckpoint) NO(cuCheckpointProcessGetRestoreThreadId)
NO(cuCheckpointProcessGetState) NO(cuCheckpointProcessLock) NO(cuCheckpointProcessRestore)
NO(cuCheckpointProcessUnlock) NO(cuCoredumpGetAttribute) NO(cuCoredumpGetAttributeGlobal)
NO(cuCoredumpSetAttribute) NO(cuCoredumpSetAttributeGlobal)
BOTH(DeviceRegisterAsyncNotification) BOTH(DeviceUnregisterAsyncNotification) BOTH(LogsCurrent)
BOTH(LogsDumpToFile) BOTH(LogsDumpToMemory) BOTH(LogsRegisterCallback) BOTH(LogsUnregisterCallback)
#undef REASON

#define REASON "virtual memory (cuMemMap) is not emulated: use cudaMalloc"
NO(cuMemAddressFree) NO(cuMemAddressReserve) NO(cuMemCreate) NO(cuMemGetAccess)
NO(cuMemGetAllocationPropertiesFromHandle) NO(cuMemMap) NO(cuMemRelease)
NO(cuMemRetainAllocationHandle) NO(cuMemSetAccess) NO(cuMemUnmap)
#undef REASON

#define REASON "the driver's linker is not emulated: link with nvcc -rdc=true"
NO(cuLinkAddData_v2) NO(cuLinkAddFile_v2) NO(cuLinkComplete) NO(cuLinkCreate_v2) NO(cuLinkDestroy)
#undef REASON

#define REASON \
  "the program is built with --default-stream per-thread: build it without, and pass " \
  "cudaStreamPerThread where you mean that stream"
NO(__cudaLaunchKernel_ptsz) NO(cuGetProcAddress_v2_ptsz) NO(cuLaunchKernelEx_ptsz)
NO(cuMemAllocAsync_ptsz) NO(cuMemAllocFromPoolAsync_ptsz) NO(cuMemBatchDecompressAsync_ptsz)
NO(cuMemFreeAsync_ptsz) NO(cuMemPrefetchAsync_v2_ptsz) NO(cuMemcpy2DAsync_v2_ptsz)
NO(cuMemcpy2DUnaligned_v2_ptds) NO(cuMemcpy2D_v2_ptds) NO(cuMemcpy3DAsync_v2_ptsz)
NO(cuMemcpy3DBatchAsync_v2_ptsz) NO(cuMemcpy3D_v2_ptds) NO(cuMemcpyBatchAsync_v2_ptsz)
NO(cuMemcpyDtoDAsync_v2_ptsz) NO(cuMemcpyDtoD_v2_ptds) NO(cuMemcpyDtoHAsync_v2_ptsz)
NO(cuMemcpyDtoH_v2_ptds) NO(cuMemcpyHtoDAsync_v2_ptsz) NO(cuMemcpyHtoD_v2_ptds)
NO(cuMemcpyPeerAsync_ptsz) NO(cuMemcpyPeer_ptds) NO(cuMemsetD16Async_ptsz) NO(cuMemsetD16_v2_ptds)
NO(cuMemsetD2D16Async_ptsz) NO(cuMemsetD2D16_v2_ptds) NO(cuMemsetD2D32Async_ptsz)
NO(cuMemsetD2D32_v2_ptds) NO(cuMemsetD2D8Async_ptsz) NO(cuMemsetD2D8_v2_ptds)
NO(cuMemsetD32Async_ptsz) NO(cuMemsetD32_v2_ptds) NO(cuMemsetD8Async_ptsz) NO(cuMemsetD8_v2_ptds)
NO(cuStreamBatchMemOp_v2_ptsz) NO(cuStreamBeginCapture_v2_ptsz) NO(cuStreamGetCaptureInfo_v3_ptsz)
NO(cuStreamGetCtx_ptsz) NO(cuStreamGetCtx_v2_ptsz) NO(cuStreamUpdateCaptureDependencies_v2_ptsz)
NO(cuStreamWaitValue32_v2_ptsz) NO(cuStreamWaitValue64_v2_ptsz) NO(cuStreamWriteValue32_v2_ptsz)
NO(cuStreamWriteValue64_v2_ptsz) NO(cudaFreeAsync_ptsz) NO(cudaGetDriverEntryPointByVersion_ptsz)
NO(cudaGetDriverEntryPoint_ptsz) NO(cudaLaunchKernelExC_ptsz) NO(cudaMallocAsync_ptsz)
NO(cudaMallocFromPoolAsync_ptsz) NO(cudaMemPrefetchAsync_ptsz) NO(cudaMemcpy2DAsync_ptsz)
NO(cudaMemcpy2D_ptds) NO(cudaMemcpy3DAsync_ptsz) NO(cudaMemcpy3DBatchAsync_ptsz)
NO(cudaMemcpy3D_ptds) NO(cudaMemcpyBatchAsync_ptsz) NO(cudaMemcpyFromSymbolAsync_ptsz)
NO(cudaMemcpyFromSymbol_ptds) NO(cudaMemcpyToSymbolAsync_ptsz) NO(cudaMemcpyToSymbol_ptds)
NO(cudaMemset2DAsync_ptsz) NO(cudaMemset2D_ptds) NO(cudaMemset3DAsync_ptsz) NO(cudaMemset3D_ptds)
NO(cudaMemsetAsync_ptsz) NO(cudaMemset_ptds) NO(cudaStreamBeginCapture_ptsz)
NO(cudaStreamGetCaptureInfo_ptsz) NO(cudaStreamUpdateCaptureDependencies_ptsz)
BOTH(EventRecordWithFlags_ptsz) BOTH(EventRecord_ptsz) BOTH(GraphInstantiateWithParams_ptsz)
BOTH(GraphLaunch_ptsz) BOTH(GraphUpload_ptsz) BOTH(LaunchCooperativeKernel_ptsz)
BOTH(LaunchHostFunc_ptsz) BOTH(LaunchKernel_ptsz) BOTH(MemDiscardAndPrefetchBatchAsync_ptsz)
BOTH(MemDiscardBatchAsync_ptsz) BOTH(MemPrefetchBatchAsync_ptsz) BOTH(Memcpy3DPeerAsync_ptsz)
BOTH(Memcpy3DPeer_ptds) BOTH(MemcpyAsync_ptsz) BOTH(Memcpy_ptds) BOTH(StreamAddCallback_ptsz)
BOTH(StreamAttachMemAsync_ptsz) BOTH(StreamBeginCaptureToGraph_ptsz) BOTH(StreamCopyAttributes_ptsz)
BOTH(StreamEndCapture_ptsz) BOTH(StreamGetAttribute_ptsz) BOTH(StreamGetDevice_ptsz)
BOTH(StreamGetFlags_ptsz) BOTH(StreamGetId_ptsz) BOTH(StreamGetPriority_ptsz)
BOTH(StreamIsCapturing_ptsz) BOTH(StreamQuery_ptsz) BOTH(StreamSetAttribute_ptsz)
BOTH(StreamSynchronize_ptsz) BOTH(StreamWaitEvent_ptsz)
#undef REASON

#define REASON \
  "a graph is a captured stream (cudaStreamBeginCapture), which can be instantiated, updated " \
  "and launched"
NO(cuGraphAddBatchMemOpNode) NO(cuGraphAddDependencies_v2) NO(cuGraphAddKernelNode_v2)
NO(cuGraphAddNode_v2) NO(cuGraphBatchMemOpNodeGetParams) NO(cuGraphBatchMemOpNodeSetParams)
NO(cuGraphExecBatchMemOpNodeSetParams) NO(cuGraphExecKernelNodeSetParams_v2)
NO(cuGraphExecUpdate_v2) NO(cuGraphGetEdges_v2) NO(cuGraphKernelNodeGetParams_v2)
NO(cuGraphKernelNodeSetParams_v2) NO(cuGraphNodeGetDependencies_v2)
NO(cuGraphNodeGetDependentNodes_v2) NO(cuGraphRemoveDependencies_v2)
NO(cuStreamUpdateCaptureDependencies_v2) NO(cudaGraphAddDependencies) NO(cudaGraphAddMemcpyNode1D)
NO(cudaGraphAddMemcpyNodeFromSymbol) NO(cudaGraphAddMemcpyNodeToSymbol) NO(cudaGraphAddNode)
NO(cudaGraphExecKernelNodeSetParams) NO(cudaGraphExecMemcpyNodeSetParams1D)
NO(cudaGraphExecMemcpyNodeSetParamsFromSymbol) NO(cudaGraphExecMemcpyNodeSetParamsToSymbol)
NO(cudaGraphGetEdges) NO(cudaGraphKernelNodeGetParams) NO(cudaGraphKernelNodeSetParams)
NO(cudaGraphMemcpyNodeSetParams1D) NO(cudaGraphMemcpyNodeSetParamsFromSymbol)
NO(cudaGraphMemcpyNodeSetParamsToSymbol) NO(cudaGraphNodeGetDependencies)
NO(cudaGraphNodeGetDependentNodes) NO(cudaGraphRemoveDependencies)
NO(cudaStreamUpdateCaptureDependencies)
BOTH(DeviceGetGraphMemAttribute) BOTH(DeviceGraphMemTrim) BOTH(DeviceSetGraphMemAttribute)
BOTH(GraphAddChildGraphNode) BOTH(GraphAddEmptyNode) BOTH(GraphAddEventRecordNode)
BOTH(GraphAddEventWaitNode) BOTH(GraphAddHostNode) BOTH(GraphAddKernelNode)
BOTH(GraphAddMemAllocNode) BOTH(GraphAddMemFreeNode) BOTH(GraphAddMemcpyNode)
BOTH(GraphAddMemsetNode) BOTH(GraphChildGraphNodeGetGraph) BOTH(GraphClone)
BOTH(GraphConditionalHandleCreate) BOTH(GraphCreate) BOTH(GraphDebugDotPrint) BOTH(GraphDestroyNode)
BOTH(GraphEventRecordNodeGetEvent) BOTH(GraphEventRecordNodeSetEvent)
BOTH(GraphEventWaitNodeGetEvent) BOTH(GraphEventWaitNodeSetEvent)
BOTH(GraphExecChildGraphNodeSetParams) BOTH(GraphExecEventRecordNodeSetEvent)
BOTH(GraphExecEventWaitNodeSetEvent) BOTH(GraphExecGetFlags) BOTH(GraphExecHostNodeSetParams)
BOTH(GraphExecMemcpyNodeSetParams) BOTH(GraphExecMemsetNodeSetParams) BOTH(GraphExecNodeSetParams)
BOTH(GraphGetRootNodes) BOTH(GraphHostNodeGetParams) BOTH(GraphHostNodeSetParams)
BOTH(GraphInstantiateWithParams) BOTH(GraphKernelNodeCopyAttributes)
BOTH(GraphKernelNodeGetAttribute) BOTH(GraphKernelNodeSetAttribute) BOTH(GraphMemAllocNodeGetParams)
BOTH(GraphMemFreeNodeGetParams) BOTH(GraphMemcpyNodeGetParams) BOTH(GraphMemcpyNodeSetParams)
BOTH(GraphMemsetNodeGetParams) BOTH(GraphMemsetNodeSetParams) BOTH(GraphNodeFindInClone)
BOTH(GraphNodeGetEnabled) BOTH(GraphNodeGetType) BOTH(GraphNodeSetEnabled) BOTH(GraphNodeSetParams)
BOTH(GraphReleaseUserObject) BOTH(GraphRetainUserObject) BOTH(StreamBeginCaptureToGraph)
BOTH(UserObjectCreate) BOTH(UserObjectRelease) BOTH(UserObjectRetain)
#undef REASON

#define REASON "there is one memory pool: call cudaMallocAsync and cudaDeviceGetDefaultMemPool"
BOTH(MemGetDefaultMemPool) BOTH(MemGetMemPool) BOTH(MemPoolDestroy) BOTH(MemSetMemPool)
#undef REASON

#define REASON "it is an interface of NVIDIA's own libraries and tools"
NO(__cudaGetProcAddress) NO(__cudaRegisterHostVar) NO(__cudaRegisterUnifiedTable)
NO(cudaGetExportTable)
#undef REASON

#define REASON \
  "contexts have no flags, caches, numbers or events of their own here: leave the call out, or " \
  "record and wait for events in streams"
NO(cuCtxGetApiVersion) NO(cuCtxGetCacheConfig) NO(cuCtxGetExecAffinity) NO(cuCtxGetFlags)
NO(cuCtxGetId) NO(cuCtxRecordEvent) NO(cuCtxSetCacheConfig) NO(cuCtxSetFlags) NO(cuCtxWaitEvent)
NO(cuDevicePrimaryCtxSetFlags_v2)
#undef REASON

#define REASON \
  "there is one device, 0: ask cudaGetDeviceProperties and cudaDeviceGetAttribute about it"
NO(cuDeviceComputeCapability) NO(cuDeviceGetExecAffinitySupport) NO(cuDeviceGetLuid)
NO(cuDeviceGetProperties) NO(cudaChooseDevice) NO(cudaDeviceGetCacheConfig) NO(cudaSetValidDevices)
BOTH(DeviceGetByPCIBusId)
#undef REASON

#define REASON \
  "of kernels and modules the emulator tells what cudaFuncGetAttributes tells, and addresses of " \
  "variables (cudaGetSymbolAddress)"
NO(cuFuncGetModule) NO(cuFuncIsLoaded) NO(cuFuncLoad) NO(cuKernelGetLibrary)
NO(cuKernelGetParamInfo) NO(cuKernelSetCacheConfig) NO(cuModuleGetLoadingMode)
BOTH(FuncGetParamInfo) BOTH(LibraryGetManaged) BOTH(LibraryGetUnifiedFunction)
#undef REASON

#define REASON "call cudaOccupancyMaxActiveBlocksPerMultiprocessor for the sizes in question"
NO(cuOccupancyMaxPotentialBlockSize) NO(cuOccupancyMaxPotentialBlockSizeWithFlags)
NO(cuOccupancyMaxPotentialClusterSize)
BOTH(OccupancyAvailableDynamicSMemPerBlock)
#undef REASON

#define REASON \
  "managed memory does not move between host and device here: leave the call out, or use " \
  "cudaMemPrefetchAsync and cudaMemAdvise, which do nothing"
NO(cuMemAdvise_v2) NO(cuMemPrefetchAsync_v2)
BOTH(MemDiscardAndPrefetchBatchAsync) BOTH(MemDiscardBatchAsync) BOTH(MemPrefetchBatchAsync)
BOTH(MemRangeGetAttribute) BOTH(MemRangeGetAttributes)
#undef REASON

#define REASON "there are no batches of copies: call cudaMemcpyAsync for each"
NO(cuMemBatchDecompressAsync) NO(cuMemcpy3DBatchAsync_v2) NO(cuMemcpyBatchAsync_v2)
NO(cudaMemcpy3DBatchAsync)
BOTH(MemcpyBatchAsync)
#undef REASON

#define REASON "streams cannot wait for values in memory or write them: use events"
NO(cuStreamBatchMemOp_v2) NO(cuStreamWaitValue32_v2) NO(cuStreamWaitValue64_v2)
NO(cuStreamWriteValue32_v2) NO(cuStreamWriteValue64_v2)
#undef REASON

#define REASON "attributes of streams have no effect here: cudaStreamSetAttribute takes them"
NO(cuStreamSetAttribute)
BOTH(StreamGetAttribute)
#undef REASON

#define REASON \
  "no other device reads or writes this memory: leave it out; of pointers ask " \
  "cudaPointerGetAttributes"
NO(cuFlushGPUDirectRDMAWrites) NO(cuPointerSetAttribute) NO(cudaDeviceFlushGPUDirectRDMAWrites)
BOTH(DeviceGetHostAtomicCapabilities)
#undef REASON

#define REASON "such maps need a GPU of compute capability 10.0 or newer"
NO(cuTensorMapEncodeIm2colWide)
#undef REASON

#define REASON "there is one device: no peers"
NO(cuCtxDisablePeerAccess) NO(cuCtxEnablePeerAccess) NO(cudaDeviceDisablePeerAccess)
NO(cudaDeviceEnablePeerAccess)
BOTH(DeviceGetP2PAtomicCapabilities) BOTH(DeviceGetP2PAttribute) BOTH(Memcpy3DPeer)
BOTH(Memcpy3DPeerAsync) BOTH(MemcpyPeer) BOTH(MemcpyPeerAsync)
#undef REASON

#define REASON "of memory with slices there are no copies: copy its rows"
NO(cuMemcpy3DAsync_v2) NO(cuMemcpy3D_v2) NO(cudaMalloc3D) NO(cudaMemcpy3D) NO(cudaMemcpy3DAsync)
NO(cudaMemset3D) NO(cudaMemset3DAsync)
#undef REASON

#define REASON "call the runtime's for rows: cudaMemcpy2D, cudaMemset2D"
NO(cuMemAllocPitch_v2) NO(cuMemcpy2DAsync_v2) NO(cuMemcpy2DUnaligned_v2) NO(cuMemcpy2D_v2)
NO(cuMemsetD2D16Async) NO(cuMemsetD2D16_v2) NO(cuMemsetD2D32Async) NO(cuMemsetD2D32_v2)
NO(cuMemsetD2D8Async) NO(cuMemsetD2D8_v2)
#undef REASON
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
