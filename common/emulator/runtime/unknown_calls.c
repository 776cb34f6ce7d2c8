/* unknown_calls.c: the runtime's calls that the emulator does not know. A program that needs one is
 * told its name; without this list the loader would refuse the program, naming one of them at most.
 */
#include <stdio.h>
#include <stdlib.h>

#define UNKNOWN(call)                                                                             \
  void call(void);                                                                                \
  void call(void) {                                                                               \
    fflush(stdout);                                                                               \
    fprintf(stderr, "emulator: the program calls " #call ", which the emulator does not know\n"); \
    exit(1);                                                                                      \
  }

/* clang-format off */
UNKNOWN(__cudaGetProcAddress) UNKNOWN(__cudaRegisterHostVar) UNKNOWN(__cudaRegisterUnifiedTable)
UNKNOWN(cudaArrayGetMemoryRequirements) UNKNOWN(cudaArrayGetPlane)
UNKNOWN(cudaArrayGetSparseProperties) UNKNOWN(cudaDestroyExternalMemory)
UNKNOWN(cudaDestroyExternalSemaphore) UNKNOWN(cudaDeviceFlushGPUDirectRDMAWrites)
UNKNOWN(cudaDeviceGetHostAtomicCapabilities) UNKNOWN(cudaDeviceGetNvSciSyncAttributes)
UNKNOWN(cudaDeviceGetP2PAtomicCapabilities) UNKNOWN(cudaDeviceGetSharedMemConfig)
UNKNOWN(cudaDeviceRegisterAsyncNotification)
UNKNOWN(cudaDeviceSetGraphMemAttribute) UNKNOWN(cudaDeviceSetSharedMemConfig)
UNKNOWN(cudaDeviceUnregisterAsyncNotification) UNKNOWN(cudaEGLStreamConsumerAcquireFrame)
UNKNOWN(cudaEGLStreamConsumerConnect) UNKNOWN(cudaEGLStreamConsumerConnectWithFlags)
UNKNOWN(cudaEGLStreamConsumerDisconnect) UNKNOWN(cudaEGLStreamConsumerReleaseFrame)
UNKNOWN(cudaEGLStreamProducerConnect) UNKNOWN(cudaEGLStreamProducerDisconnect)
UNKNOWN(cudaEGLStreamProducerPresentFrame) UNKNOWN(cudaEGLStreamProducerReturnFrame)
UNKNOWN(cudaEventCreateFromEGLSync) UNKNOWN(cudaExternalMemoryGetMappedBuffer)
UNKNOWN(cudaExternalMemoryGetMappedMipmappedArray) UNKNOWN(cudaFreeMipmappedArray) UNKNOWN(cudaFuncSetSharedMemConfig) UNKNOWN(cudaGLGetDevices)
UNKNOWN(cudaGLMapBufferObject) UNKNOWN(cudaGLMapBufferObjectAsync)
UNKNOWN(cudaGLRegisterBufferObject) UNKNOWN(cudaGLSetBufferObjectMapFlags)
UNKNOWN(cudaGLSetGLDevice) UNKNOWN(cudaGLUnmapBufferObject) UNKNOWN(cudaGLUnmapBufferObjectAsync)
UNKNOWN(cudaGLUnregisterBufferObject) UNKNOWN(cudaGetExportTable)
UNKNOWN(cudaGetMipmappedArrayLevel) UNKNOWN(cudaGraphAddExternalSemaphoresSignalNode)
UNKNOWN(cudaGraphAddExternalSemaphoresWaitNode) UNKNOWN(cudaGraphConditionalHandleCreate)
UNKNOWN(cudaGraphEventRecordNodeSetEvent) UNKNOWN(cudaGraphEventWaitNodeSetEvent)
UNKNOWN(cudaGraphExecEventRecordNodeSetEvent) UNKNOWN(cudaGraphExecEventWaitNodeSetEvent)
UNKNOWN(cudaGraphExecExternalSemaphoresSignalNodeSetParams)
UNKNOWN(cudaGraphExecExternalSemaphoresWaitNodeSetParams)
UNKNOWN(cudaGraphExecMemcpyNodeSetParamsFromSymbol)
UNKNOWN(cudaGraphExecMemcpyNodeSetParamsToSymbol)
UNKNOWN(cudaGraphExternalSemaphoresSignalNodeGetParams)
UNKNOWN(cudaGraphExternalSemaphoresSignalNodeSetParams)
UNKNOWN(cudaGraphExternalSemaphoresWaitNodeGetParams)
UNKNOWN(cudaGraphExternalSemaphoresWaitNodeSetParams) UNKNOWN(cudaGraphMemAllocNodeGetParams)
UNKNOWN(cudaGraphMemFreeNodeGetParams) UNKNOWN(cudaGraphMemcpyNodeSetParamsFromSymbol)
UNKNOWN(cudaGraphMemcpyNodeSetParamsToSymbol) UNKNOWN(cudaGraphicsEGLRegisterImage)
UNKNOWN(cudaGraphicsGLRegisterBuffer) UNKNOWN(cudaGraphicsGLRegisterImage)
UNKNOWN(cudaGraphicsMapResources) UNKNOWN(cudaGraphicsResourceGetMappedEglFrame)
UNKNOWN(cudaGraphicsResourceGetMappedMipmappedArray) UNKNOWN(cudaGraphicsResourceGetMappedPointer)
UNKNOWN(cudaGraphicsResourceSetMapFlags) UNKNOWN(cudaGraphicsSubResourceGetMappedArray)
UNKNOWN(cudaGraphicsUnmapResources) UNKNOWN(cudaGraphicsUnregisterResource)
UNKNOWN(cudaGraphicsVDPAURegisterOutputSurface) UNKNOWN(cudaGraphicsVDPAURegisterVideoSurface)
UNKNOWN(cudaImportExternalMemory) UNKNOWN(cudaImportExternalSemaphore)
UNKNOWN(cudaIpcCloseMemHandle) UNKNOWN(cudaIpcGetEventHandle) UNKNOWN(cudaIpcGetMemHandle)
UNKNOWN(cudaIpcOpenEventHandle) UNKNOWN(cudaIpcOpenMemHandle) UNKNOWN(cudaLibraryGetUnifiedFunction)
UNKNOWN(cudaLogsCurrent) UNKNOWN(cudaLogsDumpToFile) UNKNOWN(cudaLogsDumpToMemory)
UNKNOWN(cudaLogsRegisterCallback) UNKNOWN(cudaLogsUnregisterCallback) UNKNOWN(cudaMallocMipmappedArray)
UNKNOWN(cudaMemDiscardAndPrefetchBatchAsync) UNKNOWN(cudaMemDiscardAndPrefetchBatchAsync_ptsz)
UNKNOWN(cudaMemDiscardBatchAsync) UNKNOWN(cudaMemDiscardBatchAsync_ptsz)
UNKNOWN(cudaMemGetDefaultMemPool) UNKNOWN(cudaMemGetMemPool) UNKNOWN(cudaMemPoolExportPointer)
UNKNOWN(cudaMemPoolExportToShareableHandle) UNKNOWN(cudaMemPoolImportFromShareableHandle)
UNKNOWN(cudaMemPoolImportPointer) UNKNOWN(cudaMemPrefetchBatchAsync)
UNKNOWN(cudaMemPrefetchBatchAsync_ptsz) UNKNOWN(cudaMemRangeGetAttribute)
UNKNOWN(cudaMemRangeGetAttributes) UNKNOWN(cudaMemSetMemPool) UNKNOWN(cudaMemcpy2DArrayToArray_ptds) UNKNOWN(cudaMemcpy2DFromArrayAsync_ptsz)
UNKNOWN(cudaMemcpy2DFromArray_ptds) UNKNOWN(cudaMemcpy2DToArrayAsync_ptsz) UNKNOWN(cudaMemcpy2DToArray_ptds)
UNKNOWN(cudaMemcpy3DBatchAsync) UNKNOWN(cudaMemcpy3DBatchAsync_ptsz) UNKNOWN(cudaMemcpy3DPeer)
UNKNOWN(cudaMemcpy3DPeerAsync) UNKNOWN(cudaMemcpy3DPeerAsync_ptsz) UNKNOWN(cudaMemcpy3DPeer_ptds)
UNKNOWN(cudaMemcpyArrayToArray_ptds) UNKNOWN(cudaMemcpyBatchAsync)
UNKNOWN(cudaMemcpyBatchAsync_ptsz) UNKNOWN(cudaMemcpyFromArrayAsync_ptsz) UNKNOWN(cudaMemcpyFromArray_ptds) UNKNOWN(cudaMemcpyToArrayAsync_ptsz) UNKNOWN(cudaMemcpyToArray_ptds)
UNKNOWN(cudaMemset3DAsync_ptsz) UNKNOWN(cudaMemset3D_ptds)
UNKNOWN(cudaMipmappedArrayGetMemoryRequirements) UNKNOWN(cudaMipmappedArrayGetSparseProperties)
UNKNOWN(cudaSignalExternalSemaphoresAsync) UNKNOWN(cudaSignalExternalSemaphoresAsync_ptsz)
UNKNOWN(cudaStreamAttachMemAsync_ptsz) UNKNOWN(cudaStreamBeginCaptureToGraph_ptsz)
UNKNOWN(cudaStreamCopyAttributes_ptsz) UNKNOWN(cudaStreamGetAttribute_ptsz)
UNKNOWN(cudaStreamSetAttribute_ptsz) UNKNOWN(cudaStreamUpdateCaptureDependencies_ptsz)
UNKNOWN(cudaVDPAUGetDevice) UNKNOWN(cudaVDPAUSetVDPAUDevice)
UNKNOWN(cudaWaitExternalSemaphoresAsync) UNKNOWN(cudaWaitExternalSemaphoresAsync_ptsz)
