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
/* Launchers ask before they use, and do without. */
#define NOT_SUPPORTED 801 /* both CUDA_ERROR_NOT_SUPPORTED and cudaErrorNotSupported */
#define UNSUPPORTED(call) \
  int call(void);         \
  int call(void) { return NOT_SUPPORTED; }

/* clang-format off */
UNSUPPORTED(cuMulticastGetGranularity) UNSUPPORTED(cuMemGetAllocationGranularity)
UNSUPPORTED(cuMemPoolCreate) UNSUPPORTED(cudaMemPoolCreate)

#define REASON "graphics interfaces (OpenGL, EGL, VDPAU) do not exist here"
NO(cuGLGetDevices) NO(cuGLGetDevices_v2) NO(cuGraphicsGLRegisterBuffer)
NO(cuGraphicsGLRegisterImage) NO(cuGraphicsMapResources) NO(cuGraphicsMapResources_ptsz)
NO(cuGraphicsResourceGetMappedMipmappedArray) NO(cuGraphicsResourceGetMappedPointer_v2)
NO(cuGraphicsResourceSetMapFlags_v2) NO(cuGraphicsSubResourceGetMappedArray)
NO(cuGraphicsUnmapResources) NO(cuGraphicsUnmapResources_ptsz) NO(cuGraphicsUnregisterResource)
NO(cudaEGLStreamConsumerAcquireFrame) NO(cudaEGLStreamConsumerConnect)
NO(cudaEGLStreamConsumerConnectWithFlags) NO(cudaEGLStreamConsumerDisconnect)
NO(cudaEGLStreamConsumerReleaseFrame) NO(cudaEGLStreamProducerConnect)
NO(cudaEGLStreamProducerDisconnect) NO(cudaEGLStreamProducerPresentFrame)
NO(cudaEGLStreamProducerReturnFrame) NO(cudaEventCreateFromEGLSync) NO(cudaGLGetDevices)
NO(cudaGLMapBufferObject) NO(cudaGLMapBufferObjectAsync) NO(cudaGLRegisterBufferObject)
NO(cudaGLSetBufferObjectMapFlags) NO(cudaGLSetGLDevice) NO(cudaGLUnmapBufferObject)
NO(cudaGLUnmapBufferObjectAsync) NO(cudaGLUnregisterBufferObject) NO(cudaGraphicsEGLRegisterImage)
NO(cudaGraphicsGLRegisterBuffer) NO(cudaGraphicsGLRegisterImage) NO(cudaGraphicsMapResources)
NO(cudaGraphicsResourceGetMappedMipmappedArray) NO(cudaGraphicsResourceGetMappedPointer)
NO(cudaGraphicsResourceSetMapFlags) NO(cudaGraphicsSubResourceGetMappedArray)
NO(cudaGraphicsUnmapResources) NO(cudaGraphicsUnregisterResource)
NO(cudaGraphicsVDPAURegisterOutputSurface) NO(cudaGraphicsVDPAURegisterVideoSurface)
NO(cudaVDPAUGetDevice) NO(cudaVDPAUSetVDPAUDevice)
#undef REASON

#define REASON \
  "memory and events of other processes or other interfaces cannot be shared with an emulated " \
  "device"
NO(cuDestroyExternalMemory) NO(cuDestroyExternalSemaphore) NO(cuDeviceGetNvSciSyncAttributes)
NO(cuExternalMemoryGetMappedBuffer) NO(cuExternalMemoryGetMappedMipmappedArray)
NO(cuGraphAddExternalSemaphoresSignalNode) NO(cuGraphAddExternalSemaphoresWaitNode)
NO(cuGraphExecExternalSemaphoresSignalNodeSetParams)
NO(cuGraphExecExternalSemaphoresWaitNodeSetParams) NO(cuGraphExternalSemaphoresSignalNodeGetParams)
NO(cuGraphExternalSemaphoresSignalNodeSetParams) NO(cuGraphExternalSemaphoresWaitNodeGetParams)
NO(cuGraphExternalSemaphoresWaitNodeSetParams) NO(cuImportExternalMemory)
NO(cuImportExternalSemaphore) NO(cuIpcCloseMemHandle) NO(cuIpcGetEventHandle) NO(cuIpcGetMemHandle)
NO(cuIpcOpenEventHandle) NO(cuIpcOpenMemHandle_v2) NO(cuMemExportToShareableHandle)
NO(cuMemGetHandleForAddressRange) NO(cuMemImportFromShareableHandle) NO(cuMemPoolExportPointer)
NO(cuMemPoolExportToShareableHandle) NO(cuMemPoolImportFromShareableHandle)
NO(cuMemPoolImportPointer) NO(cuSignalExternalSemaphoresAsync)
NO(cuSignalExternalSemaphoresAsync_ptsz) NO(cuWaitExternalSemaphoresAsync)
NO(cuWaitExternalSemaphoresAsync_ptsz) NO(cudaDestroyExternalMemory)
NO(cudaDestroyExternalSemaphore) NO(cudaDeviceGetNvSciSyncAttributes)
NO(cudaExternalMemoryGetMappedBuffer) NO(cudaExternalMemoryGetMappedMipmappedArray)
NO(cudaGraphAddExternalSemaphoresSignalNode) NO(cudaGraphAddExternalSemaphoresWaitNode)
NO(cudaGraphExecExternalSemaphoresSignalNodeSetParams)
NO(cudaGraphExecExternalSemaphoresWaitNodeSetParams)
NO(cudaGraphExternalSemaphoresSignalNodeGetParams)
NO(cudaGraphExternalSemaphoresSignalNodeSetParams) NO(cudaGraphExternalSemaphoresWaitNodeGetParams)
NO(cudaGraphExternalSemaphoresWaitNodeSetParams) NO(cudaImportExternalMemory)
NO(cudaImportExternalSemaphore) NO(cudaIpcCloseMemHandle) NO(cudaIpcGetEventHandle)
NO(cudaIpcGetMemHandle) NO(cudaIpcOpenEventHandle) NO(cudaIpcOpenMemHandle)
NO(cudaMemPoolExportPointer) NO(cudaMemPoolExportToShareableHandle)
NO(cudaMemPoolImportFromShareableHandle) NO(cudaMemPoolImportPointer)
NO(cudaSignalExternalSemaphoresAsync) NO(cudaSignalExternalSemaphoresAsync_ptsz)
NO(cudaWaitExternalSemaphoresAsync) NO(cudaWaitExternalSemaphoresAsync_ptsz)
#undef REASON

#define REASON "textures, surfaces and CUDA arrays are not emulated: read plain memory instead"
NO(cuArray3DCreate_v2) NO(cuArray3DGetDescriptor_v2) NO(cuArrayCreate_v2) NO(cuArrayDestroy)
NO(cuArrayGetDescriptor_v2) NO(cuArrayGetMemoryRequirements) NO(cuArrayGetPlane)
NO(cuDeviceGetTexture1DLinearMaxWidth) NO(cuMemcpyAtoA_v2) NO(cuMemcpyAtoA_v2_ptds)
NO(cuMemcpyAtoD_v2) NO(cuMemcpyAtoD_v2_ptds) NO(cuMemcpyAtoHAsync_v2) NO(cuMemcpyAtoHAsync_v2_ptsz)
NO(cuMemcpyAtoH_v2) NO(cuMemcpyAtoH_v2_ptds) NO(cuMemcpyDtoA_v2) NO(cuMemcpyDtoA_v2_ptds)
NO(cuMemcpyHtoAAsync_v2) NO(cuMemcpyHtoAAsync_v2_ptsz) NO(cuMemcpyHtoA_v2) NO(cuMemcpyHtoA_v2_ptds)
NO(cuSurfObjectCreate) NO(cuSurfObjectDestroy) NO(cuSurfObjectGetResourceDesc) NO(cuTexObjectCreate)
NO(cuTexObjectDestroy) NO(cuTexObjectGetResourceDesc) NO(cuTexObjectGetResourceViewDesc)
NO(cuTexObjectGetTextureDesc) NO(cudaArrayGetInfo) NO(cudaArrayGetMemoryRequirements)
NO(cudaArrayGetPlane) NO(cudaCreateChannelDesc) NO(cudaCreateSurfaceObject)
NO(cudaCreateTextureObject) NO(cudaDestroySurfaceObject) NO(cudaDestroyTextureObject)
NO(cudaDeviceGetTexture1DLinearMaxWidth) NO(cudaFreeArray) NO(cudaGetChannelDesc)
NO(cudaGetSurfaceObjectResourceDesc) NO(cudaGetTextureObjectResourceDesc)
NO(cudaGetTextureObjectResourceViewDesc) NO(cudaGetTextureObjectTextureDesc) NO(cudaMalloc3DArray)
NO(cudaMallocArray) NO(cudaMemcpy2DArrayToArray) NO(cudaMemcpy2DArrayToArray_ptds)
NO(cudaMemcpy2DFromArray) NO(cudaMemcpy2DFromArrayAsync) NO(cudaMemcpy2DFromArrayAsync_ptsz)
NO(cudaMemcpy2DFromArray_ptds) NO(cudaMemcpy2DToArray) NO(cudaMemcpy2DToArrayAsync)
NO(cudaMemcpy2DToArrayAsync_ptsz) NO(cudaMemcpy2DToArray_ptds) NO(cudaMemcpyArrayToArray)
NO(cudaMemcpyArrayToArray_ptds) NO(cudaMemcpyFromArray) NO(cudaMemcpyFromArrayAsync)
NO(cudaMemcpyFromArrayAsync_ptsz) NO(cudaMemcpyFromArray_ptds) NO(cudaMemcpyToArray)
NO(cudaMemcpyToArrayAsync) NO(cudaMemcpyToArrayAsync_ptsz) NO(cudaMemcpyToArray_ptds)
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
NO(cuCtxSetSharedMemConfig) NO(cuFuncSetBlockShape) NO(cuFuncSetSharedMemConfig)
NO(cuFuncSetSharedSize) NO(cuLaunch) NO(cuLaunchCooperativeKernelMultiDevice) NO(cuLaunchGrid)
NO(cuLaunchGridAsync) NO(cuParamSetSize) NO(cuParamSetf) NO(cuParamSeti) NO(cuParamSetv)
NO(cuProfilerInitialize) NO(cudaDeviceGetSharedMemConfig) NO(cudaDeviceSetSharedMemConfig)
NO(cudaFuncSetSharedMemConfig)
#undef REASON

#define REASON "parts of a device (green contexts) are not emulated"
NO(cuCtxFromGreenCtx) NO(cuCtxGetDevResource) NO(cuDevResourceGenerateDesc)
NO(cuDevSmResourceSplitByCount) NO(cuDeviceGetDevResource) NO(cuGreenCtxCreate)
NO(cuGreenCtxDestroy) NO(cuGreenCtxGetDevResource) NO(cuGreenCtxGetId) NO(cuGreenCtxRecordEvent)
NO(cuGreenCtxStreamCreate) NO(cuGreenCtxWaitEvent) NO(cuStreamGetGreenCtx)
#undef REASON

#define REASON "mipmapped and sparse arrays are not emulated"
NO(cuArrayGetSparseProperties) NO(cuMemMapArrayAsync) NO(cuMemMapArrayAsync_ptsz)
NO(cuMipmappedArrayCreate) NO(cuMipmappedArrayDestroy) NO(cuMipmappedArrayGetLevel)
NO(cuMipmappedArrayGetMemoryRequirements) NO(cuMipmappedArrayGetSparseProperties)
NO(cudaArrayGetSparseProperties) NO(cudaFreeMipmappedArray) NO(cudaGetMipmappedArrayLevel)
NO(cudaMallocMipmappedArray) NO(cudaMipmappedArrayGetMemoryRequirements)
NO(cudaMipmappedArrayGetSparseProperties)
#undef REASON

#define REASON "there is one device: no multicast objects"
NO(cuMulticastAddDevice) NO(cuMulticastBindAddr) NO(cuMulticastBindMem) NO(cuMulticastCreate)
NO(cuMulticastUnbind)
#undef REASON

#define REASON "it is about tools around a process (checkpoints, core dumps, logs)"
NO(cuCheckpointProcessCheckpoint) NO(cuCheckpointProcessGetRestoreThreadId)
NO(cuCheckpointProcessGetState) NO(cuCheckpointProcessLock) NO(cuCheckpointProcessRestore)
NO(cuCheckpointProcessUnlock) NO(cuCoredumpGetAttribute) NO(cuCoredumpGetAttributeGlobal)
NO(cuCoredumpSetAttribute) NO(cuCoredumpSetAttributeGlobal) NO(cuDeviceRegisterAsyncNotification)
NO(cuDeviceUnregisterAsyncNotification) NO(cuLogsCurrent) NO(cuLogsDumpToFile)
NO(cuLogsDumpToMemory) NO(cuLogsRegisterCallback) NO(cuLogsUnregisterCallback)
NO(cudaDeviceRegisterAsyncNotification) NO(cudaDeviceUnregisterAsyncNotification)
NO(cudaLogsCurrent) NO(cudaLogsDumpToFile) NO(cudaLogsDumpToMemory) NO(cudaLogsRegisterCallback)
NO(cudaLogsUnregisterCallback)
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
NO(__cudaLaunchKernel_ptsz) NO(cuEventRecordWithFlags_ptsz) NO(cuEventRecord_ptsz)
NO(cuGetProcAddress_v2_ptsz) NO(cuGraphInstantiateWithParams_ptsz) NO(cuGraphLaunch_ptsz)
NO(cuGraphUpload_ptsz) NO(cuLaunchCooperativeKernel_ptsz) NO(cuLaunchHostFunc_ptsz)
NO(cuLaunchKernelEx_ptsz) NO(cuLaunchKernel_ptsz) NO(cuMemAllocAsync_ptsz)
NO(cuMemAllocFromPoolAsync_ptsz) NO(cuMemBatchDecompressAsync_ptsz)
NO(cuMemDiscardAndPrefetchBatchAsync_ptsz) NO(cuMemDiscardBatchAsync_ptsz) NO(cuMemFreeAsync_ptsz)
NO(cuMemPrefetchAsync_v2_ptsz) NO(cuMemPrefetchBatchAsync_ptsz) NO(cuMemcpy2DAsync_v2_ptsz)
NO(cuMemcpy2DUnaligned_v2_ptds) NO(cuMemcpy2D_v2_ptds) NO(cuMemcpy3DAsync_v2_ptsz)
NO(cuMemcpy3DBatchAsync_v2_ptsz) NO(cuMemcpy3DPeerAsync_ptsz) NO(cuMemcpy3DPeer_ptds)
NO(cuMemcpy3D_v2_ptds) NO(cuMemcpyAsync_ptsz) NO(cuMemcpyBatchAsync_v2_ptsz)
NO(cuMemcpyDtoDAsync_v2_ptsz) NO(cuMemcpyDtoD_v2_ptds) NO(cuMemcpyDtoHAsync_v2_ptsz)
NO(cuMemcpyDtoH_v2_ptds) NO(cuMemcpyHtoDAsync_v2_ptsz) NO(cuMemcpyHtoD_v2_ptds)
NO(cuMemcpyPeerAsync_ptsz) NO(cuMemcpyPeer_ptds) NO(cuMemcpy_ptds) NO(cuMemsetD16Async_ptsz)
NO(cuMemsetD16_v2_ptds) NO(cuMemsetD2D16Async_ptsz) NO(cuMemsetD2D16_v2_ptds)
NO(cuMemsetD2D32Async_ptsz) NO(cuMemsetD2D32_v2_ptds) NO(cuMemsetD2D8Async_ptsz)
NO(cuMemsetD2D8_v2_ptds) NO(cuMemsetD32Async_ptsz) NO(cuMemsetD32_v2_ptds) NO(cuMemsetD8Async_ptsz)
NO(cuMemsetD8_v2_ptds) NO(cuStreamAddCallback_ptsz) NO(cuStreamAttachMemAsync_ptsz)
NO(cuStreamBatchMemOp_v2_ptsz) NO(cuStreamBeginCaptureToGraph_ptsz) NO(cuStreamBeginCapture_v2_ptsz)
NO(cuStreamCopyAttributes_ptsz) NO(cuStreamEndCapture_ptsz) NO(cuStreamGetAttribute_ptsz)
NO(cuStreamGetCaptureInfo_v3_ptsz) NO(cuStreamGetCtx_ptsz) NO(cuStreamGetCtx_v2_ptsz)
NO(cuStreamGetDevice_ptsz) NO(cuStreamGetFlags_ptsz) NO(cuStreamGetId_ptsz)
NO(cuStreamGetPriority_ptsz) NO(cuStreamIsCapturing_ptsz) NO(cuStreamQuery_ptsz)
NO(cuStreamSetAttribute_ptsz) NO(cuStreamSynchronize_ptsz)
NO(cuStreamUpdateCaptureDependencies_v2_ptsz) NO(cuStreamWaitEvent_ptsz)
NO(cuStreamWaitValue32_v2_ptsz) NO(cuStreamWaitValue64_v2_ptsz) NO(cuStreamWriteValue32_v2_ptsz)
NO(cuStreamWriteValue64_v2_ptsz) NO(cudaEventRecordWithFlags_ptsz) NO(cudaEventRecord_ptsz)
NO(cudaFreeAsync_ptsz) NO(cudaGetDriverEntryPointByVersion_ptsz) NO(cudaGetDriverEntryPoint_ptsz)
NO(cudaGraphInstantiateWithParams_ptsz) NO(cudaGraphLaunch_ptsz) NO(cudaGraphUpload_ptsz)
NO(cudaLaunchCooperativeKernel_ptsz) NO(cudaLaunchHostFunc_ptsz) NO(cudaLaunchKernelExC_ptsz)
NO(cudaLaunchKernel_ptsz) NO(cudaMallocAsync_ptsz) NO(cudaMallocFromPoolAsync_ptsz)
NO(cudaMemDiscardAndPrefetchBatchAsync_ptsz) NO(cudaMemDiscardBatchAsync_ptsz)
NO(cudaMemPrefetchAsync_ptsz) NO(cudaMemPrefetchBatchAsync_ptsz) NO(cudaMemcpy2DAsync_ptsz)
NO(cudaMemcpy2D_ptds) NO(cudaMemcpy3DAsync_ptsz) NO(cudaMemcpy3DBatchAsync_ptsz)
NO(cudaMemcpy3DPeerAsync_ptsz) NO(cudaMemcpy3DPeer_ptds) NO(cudaMemcpy3D_ptds)
NO(cudaMemcpyAsync_ptsz) NO(cudaMemcpyBatchAsync_ptsz) NO(cudaMemcpyFromSymbolAsync_ptsz)
NO(cudaMemcpyFromSymbol_ptds) NO(cudaMemcpyToSymbolAsync_ptsz) NO(cudaMemcpyToSymbol_ptds)
NO(cudaMemcpy_ptds) NO(cudaMemset2DAsync_ptsz) NO(cudaMemset2D_ptds) NO(cudaMemset3DAsync_ptsz)
NO(cudaMemset3D_ptds) NO(cudaMemsetAsync_ptsz) NO(cudaMemset_ptds) NO(cudaStreamAddCallback_ptsz)
NO(cudaStreamAttachMemAsync_ptsz) NO(cudaStreamBeginCaptureToGraph_ptsz)
NO(cudaStreamBeginCapture_ptsz) NO(cudaStreamCopyAttributes_ptsz) NO(cudaStreamEndCapture_ptsz)
NO(cudaStreamGetAttribute_ptsz) NO(cudaStreamGetCaptureInfo_ptsz) NO(cudaStreamGetDevice_ptsz)
NO(cudaStreamGetFlags_ptsz) NO(cudaStreamGetId_ptsz) NO(cudaStreamGetPriority_ptsz)
NO(cudaStreamIsCapturing_ptsz) NO(cudaStreamQuery_ptsz) NO(cudaStreamSetAttribute_ptsz)
NO(cudaStreamSynchronize_ptsz) NO(cudaStreamUpdateCaptureDependencies_ptsz)
NO(cudaStreamWaitEvent_ptsz)
#undef REASON

#define REASON \
  "a graph is a captured stream (cudaStreamBeginCapture), which can be instantiated, updated " \
  "and launched"
NO(cuDeviceGetGraphMemAttribute) NO(cuDeviceGraphMemTrim) NO(cuDeviceSetGraphMemAttribute)
NO(cuGraphAddBatchMemOpNode) NO(cuGraphAddChildGraphNode) NO(cuGraphAddDependencies_v2)
NO(cuGraphAddEmptyNode) NO(cuGraphAddEventRecordNode) NO(cuGraphAddEventWaitNode)
NO(cuGraphAddHostNode) NO(cuGraphAddKernelNode) NO(cuGraphAddKernelNode_v2)
NO(cuGraphAddMemAllocNode) NO(cuGraphAddMemFreeNode) NO(cuGraphAddMemcpyNode)
NO(cuGraphAddMemsetNode) NO(cuGraphAddNode_v2) NO(cuGraphBatchMemOpNodeGetParams)
NO(cuGraphBatchMemOpNodeSetParams) NO(cuGraphChildGraphNodeGetGraph) NO(cuGraphClone)
NO(cuGraphConditionalHandleCreate) NO(cuGraphCreate) NO(cuGraphDebugDotPrint) NO(cuGraphDestroyNode)
NO(cuGraphEventRecordNodeGetEvent) NO(cuGraphEventRecordNodeSetEvent)
NO(cuGraphEventWaitNodeGetEvent) NO(cuGraphEventWaitNodeSetEvent)
NO(cuGraphExecBatchMemOpNodeSetParams) NO(cuGraphExecChildGraphNodeSetParams)
NO(cuGraphExecEventRecordNodeSetEvent) NO(cuGraphExecEventWaitNodeSetEvent) NO(cuGraphExecGetFlags)
NO(cuGraphExecHostNodeSetParams) NO(cuGraphExecKernelNodeSetParams_v2)
NO(cuGraphExecMemcpyNodeSetParams) NO(cuGraphExecMemsetNodeSetParams) NO(cuGraphExecNodeSetParams)
NO(cuGraphExecUpdate_v2) NO(cuGraphGetEdges_v2) NO(cuGraphGetRootNodes) NO(cuGraphHostNodeGetParams)
NO(cuGraphHostNodeSetParams) NO(cuGraphInstantiateWithParams) NO(cuGraphKernelNodeCopyAttributes)
NO(cuGraphKernelNodeGetAttribute) NO(cuGraphKernelNodeGetParams_v2)
NO(cuGraphKernelNodeSetAttribute) NO(cuGraphKernelNodeSetParams_v2) NO(cuGraphMemAllocNodeGetParams)
NO(cuGraphMemFreeNodeGetParams) NO(cuGraphMemcpyNodeGetParams) NO(cuGraphMemcpyNodeSetParams)
NO(cuGraphMemsetNodeGetParams) NO(cuGraphMemsetNodeSetParams) NO(cuGraphNodeFindInClone)
NO(cuGraphNodeGetDependencies_v2) NO(cuGraphNodeGetDependentNodes_v2) NO(cuGraphNodeGetEnabled)
NO(cuGraphNodeGetType) NO(cuGraphNodeSetEnabled) NO(cuGraphNodeSetParams)
NO(cuGraphReleaseUserObject) NO(cuGraphRemoveDependencies_v2) NO(cuGraphRetainUserObject)
NO(cuStreamBeginCaptureToGraph) NO(cuStreamUpdateCaptureDependencies_v2) NO(cuUserObjectCreate)
NO(cuUserObjectRelease) NO(cuUserObjectRetain) NO(cudaDeviceGetGraphMemAttribute)
NO(cudaDeviceGraphMemTrim) NO(cudaDeviceSetGraphMemAttribute) NO(cudaGraphAddChildGraphNode)
NO(cudaGraphAddDependencies) NO(cudaGraphAddEmptyNode) NO(cudaGraphAddEventRecordNode)
NO(cudaGraphAddEventWaitNode) NO(cudaGraphAddHostNode) NO(cudaGraphAddKernelNode)
NO(cudaGraphAddMemAllocNode) NO(cudaGraphAddMemFreeNode) NO(cudaGraphAddMemcpyNode)
NO(cudaGraphAddMemcpyNode1D) NO(cudaGraphAddMemcpyNodeFromSymbol) NO(cudaGraphAddMemcpyNodeToSymbol)
NO(cudaGraphAddMemsetNode) NO(cudaGraphAddNode) NO(cudaGraphChildGraphNodeGetGraph)
NO(cudaGraphClone) NO(cudaGraphConditionalHandleCreate) NO(cudaGraphCreate)
NO(cudaGraphDebugDotPrint) NO(cudaGraphDestroyNode) NO(cudaGraphEventRecordNodeGetEvent)
NO(cudaGraphEventRecordNodeSetEvent) NO(cudaGraphEventWaitNodeGetEvent)
NO(cudaGraphEventWaitNodeSetEvent) NO(cudaGraphExecChildGraphNodeSetParams)
NO(cudaGraphExecEventRecordNodeSetEvent) NO(cudaGraphExecEventWaitNodeSetEvent)
NO(cudaGraphExecGetFlags) NO(cudaGraphExecHostNodeSetParams) NO(cudaGraphExecKernelNodeSetParams)
NO(cudaGraphExecMemcpyNodeSetParams) NO(cudaGraphExecMemcpyNodeSetParams1D)
NO(cudaGraphExecMemcpyNodeSetParamsFromSymbol) NO(cudaGraphExecMemcpyNodeSetParamsToSymbol)
NO(cudaGraphExecMemsetNodeSetParams) NO(cudaGraphExecNodeSetParams) NO(cudaGraphGetEdges)
NO(cudaGraphGetRootNodes) NO(cudaGraphHostNodeGetParams) NO(cudaGraphHostNodeSetParams)
NO(cudaGraphInstantiateWithParams) NO(cudaGraphKernelNodeCopyAttributes)
NO(cudaGraphKernelNodeGetAttribute) NO(cudaGraphKernelNodeGetParams)
NO(cudaGraphKernelNodeSetAttribute) NO(cudaGraphKernelNodeSetParams)
NO(cudaGraphMemAllocNodeGetParams) NO(cudaGraphMemFreeNodeGetParams)
NO(cudaGraphMemcpyNodeGetParams) NO(cudaGraphMemcpyNodeSetParams) NO(cudaGraphMemcpyNodeSetParams1D)
NO(cudaGraphMemcpyNodeSetParamsFromSymbol) NO(cudaGraphMemcpyNodeSetParamsToSymbol)
NO(cudaGraphMemsetNodeGetParams) NO(cudaGraphMemsetNodeSetParams) NO(cudaGraphNodeFindInClone)
NO(cudaGraphNodeGetDependencies) NO(cudaGraphNodeGetDependentNodes) NO(cudaGraphNodeGetEnabled)
NO(cudaGraphNodeGetType) NO(cudaGraphNodeSetEnabled) NO(cudaGraphNodeSetParams)
NO(cudaGraphReleaseUserObject) NO(cudaGraphRemoveDependencies) NO(cudaGraphRetainUserObject)
NO(cudaStreamBeginCaptureToGraph) NO(cudaStreamUpdateCaptureDependencies) NO(cudaUserObjectCreate)
NO(cudaUserObjectRelease) NO(cudaUserObjectRetain)
#undef REASON

#define REASON "there is one memory pool: call cudaMallocAsync and cudaDeviceGetDefaultMemPool"
NO(cuMemPoolDestroy) NO(cudaMemPoolDestroy) NO(cuMemGetDefaultMemPool) NO(cuMemGetMemPool)
NO(cuMemSetMemPool) NO(cudaMemGetDefaultMemPool) NO(cudaMemGetMemPool) NO(cudaMemSetMemPool)
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
NO(cuDeviceComputeCapability) NO(cuDeviceGetByPCIBusId) NO(cuDeviceGetExecAffinitySupport)
NO(cuDeviceGetLuid) NO(cuDeviceGetProperties) NO(cudaChooseDevice) NO(cudaDeviceGetByPCIBusId)
NO(cudaDeviceGetCacheConfig) NO(cudaSetValidDevices)
#undef REASON

#define REASON \
  "of kernels and modules the emulator tells what cudaFuncGetAttributes tells, and addresses of " \
  "variables (cudaGetSymbolAddress)"
NO(cuFuncGetModule) NO(cuFuncGetParamInfo) NO(cuFuncIsLoaded) NO(cuFuncLoad) NO(cuKernelGetLibrary)
NO(cuKernelGetParamInfo) NO(cuKernelSetCacheConfig) NO(cuLibraryGetManaged)
NO(cuLibraryGetUnifiedFunction) NO(cuModuleGetLoadingMode) NO(cudaFuncGetParamInfo)
NO(cudaLibraryGetManaged) NO(cudaLibraryGetUnifiedFunction)
#undef REASON

#define REASON "call cudaOccupancyMaxActiveBlocksPerMultiprocessor for the sizes in question"
NO(cuOccupancyAvailableDynamicSMemPerBlock) NO(cuOccupancyMaxPotentialBlockSize)
NO(cuOccupancyMaxPotentialBlockSizeWithFlags) NO(cuOccupancyMaxPotentialClusterSize)
NO(cudaOccupancyAvailableDynamicSMemPerBlock)
#undef REASON

#define REASON \
  "managed memory does not move between host and device here: leave the call out, or use " \
  "cudaMemPrefetchAsync and cudaMemAdvise, which do nothing"
NO(cuMemAdvise_v2) NO(cuMemDiscardAndPrefetchBatchAsync) NO(cuMemDiscardBatchAsync)
NO(cuMemPrefetchAsync_v2) NO(cuMemPrefetchBatchAsync) NO(cuMemRangeGetAttribute)
NO(cuMemRangeGetAttributes) NO(cudaMemDiscardAndPrefetchBatchAsync) NO(cudaMemDiscardBatchAsync)
NO(cudaMemPrefetchBatchAsync) NO(cudaMemRangeGetAttribute) NO(cudaMemRangeGetAttributes)
#undef REASON

#define REASON "there are no batches of copies: call cudaMemcpyAsync for each"
NO(cuMemBatchDecompressAsync) NO(cuMemcpy3DBatchAsync_v2) NO(cuMemcpyBatchAsync)
NO(cuMemcpyBatchAsync_v2) NO(cudaMemcpy3DBatchAsync) NO(cudaMemcpyBatchAsync)
#undef REASON

#define REASON "streams cannot wait for values in memory or write them: use events"
NO(cuStreamBatchMemOp_v2) NO(cuStreamWaitValue32_v2) NO(cuStreamWaitValue64_v2)
NO(cuStreamWriteValue32_v2) NO(cuStreamWriteValue64_v2)
#undef REASON

#define REASON "attributes of streams have no effect here: cudaStreamSetAttribute takes them"
NO(cuStreamGetAttribute) NO(cuStreamSetAttribute) NO(cudaStreamGetAttribute)
#undef REASON

#define REASON \
  "no other device reads or writes this memory: leave it out; of pointers ask " \
  "cudaPointerGetAttributes"
NO(cuDeviceGetHostAtomicCapabilities) NO(cuFlushGPUDirectRDMAWrites) NO(cuPointerSetAttribute)
NO(cudaDeviceFlushGPUDirectRDMAWrites) NO(cudaDeviceGetHostAtomicCapabilities)
#undef REASON

#define REASON "such maps need a GPU of compute capability 10.0 or newer"
NO(cuTensorMapEncodeIm2colWide)
#undef REASON

#define REASON "there is one device: no peers"
NO(cuCtxDisablePeerAccess) NO(cuCtxEnablePeerAccess) NO(cuDeviceGetP2PAtomicCapabilities)
NO(cuDeviceGetP2PAttribute) NO(cuMemcpy3DPeer) NO(cuMemcpy3DPeerAsync) NO(cuMemcpyPeer)
NO(cuMemcpyPeerAsync) NO(cudaDeviceDisablePeerAccess) NO(cudaDeviceEnablePeerAccess)
NO(cudaDeviceGetP2PAtomicCapabilities) NO(cudaDeviceGetP2PAttribute) NO(cudaMemcpy3DPeer)
NO(cudaMemcpy3DPeerAsync) NO(cudaMemcpyPeer) NO(cudaMemcpyPeerAsync)
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
