/* stream_callbacks.cu: cudaStreamAddCallback and cuStreamAddCallback, whose functions run in the order of the stream, and
 * what a stream says of its device and its context. */

#include "check.h"
#include "driver_call.cuh"

#define CALL(name, ...) ((CUresult(*)(__VA_ARGS__))driver_call(#name))

static int order[4], called;
static cudaError_t status[2];

__global__ void set(int *value, int to) { *value = to; }

static void CUDART_CB by_runtime(cudaStream_t stream, cudaError_t error, void *data) {
  status[0] = stream == NULL ? cudaErrorUnknown : error;
  order[called++] = *(const int *)data;
}
static void CUDA_CB by_driver(CUstream stream, CUresult error, void *data) {
  status[1] = stream == NULL ? cudaErrorUnknown : (cudaError_t)error;
  order[called++] = *(const int *)data;
}

int main(void) {
  int *value, device = -1;
  cudaStream_t stream;
  CUcontext context = NULL, current = NULL;
  CUdevice of_driver = -1;
  cudaGraph_t graph;
  CUDA_CHECK(cudaMallocManaged(&value, sizeof *value));
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaStreamAttachMemAsync(stream, value, 0, cudaMemAttachGlobal));
  set<<<1, 1, 0, stream>>>(value, 1);
  CUDA_CHECK(cudaStreamAddCallback(stream, by_runtime, value, 0));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  set<<<1, 1, 0, stream>>>(value, 2);
  CUresult added = CALL(cuStreamAddCallback, CUstream, CUstreamCallback, void *, unsigned)(
      stream, by_driver, value, 0);
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaStreamGetDevice(stream, &device));
  const bool same = CALL(cuStreamGetCtx, CUstream, CUcontext *)(stream, &context) == CUDA_SUCCESS &&
                    CALL(cuCtxGetCurrent, CUcontext *)(&current) == CUDA_SUCCESS &&
                    context == current && current;
  const bool known =
      CALL(cuStreamGetDevice, CUstream, CUdevice *)(stream, &of_driver) == CUDA_SUCCESS &&
      of_driver == device;
  printf("called %d times: %d %d, status %d %d, added %d\n", called, order[0], order[1], status[0],
         status[1], added);
  printf("device %d, the driver's %s, context %s\n", device, known ? "the same" : "another",
         same ? "the current one" : "another");
  printf("with flags: %s\n", cudaGetErrorName(cudaStreamAddCallback(stream, by_runtime, value, 1)));
  printf("no function: %s\n", cudaGetErrorName(cudaStreamAddCallback(stream, NULL, value, 0)));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  printf("in a capture: %s\n",
         cudaGetErrorName(cudaStreamAddCallback(stream, by_runtime, value, 0)));
  (void)cudaStreamEndCapture(stream, &graph);
  return 0;
}
