// driver_versions.cu: calls of the driver whose parameters have changed, each asked for by the version
// of CUDA that had them: what just-in-time compilers and Python packages do. A function of another
// version would take the wrong arguments.
#include <cudaTypedefs.h>
#include <dlfcn.h>

#include "../../common/check.h"
#include "driver_call.cuh"

// The call that hands out the others, in both of its forms, and what an H200 answers to names and versions.
static void entry_points(void) {
  PFN_cuGetProcAddress_v11030 plain = DRIVER_OF(cuGetProcAddress, 11030);
  PFN_cuGetProcAddress_v12000 newer = DRIVER_OF(cuGetProcAddress, 12000);
  void *first = NULL, *second = NULL;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  CU_CHECK(plain("cuCtxGetDevice", &first, 12000, CU_GET_PROC_ADDRESS_DEFAULT));
  CU_CHECK(newer("cuCtxGetDevice", &second, 13000, CU_GET_PROC_ADDRESS_DEFAULT, &found));
  check_that(first && second && first != second, "one cuCtxGetDevice for CUDA 12 and 13");
  CU_CHECK(newer("cuCtxGetDevice", &first, -1, CU_GET_PROC_ADDRESS_DEFAULT, &found));
  check_that(first == second, "version -1 is not the newest");
  static const struct {
    const char *name;
    int version, flags;
    CUdriverProcAddressQueryResult found;
  } NONE[] = {
      {"cuCtxGetDevice", 1000, CU_GET_PROC_ADDRESS_DEFAULT,
       CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
      {"cuNoSuchCall", 12000, CU_GET_PROC_ADDRESS_DEFAULT, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
  };
  for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++) {
    CU_CHECK(newer(NONE[i].name, &second, NONE[i].version, (cuuint64_t)NONE[i].flags, &found));
    check_that(!second && found == NONE[i].found, "%s of version %d: %d", NONE[i].name,
               NONE[i].version, (int)found);
    CUresult result = plain(NONE[i].name, &first, NONE[i].version, (cuuint64_t)NONE[i].flags);
    check_that(first && result == CUDA_ERROR_NOT_FOUND, "the older call answers %d", (int)result);
  }
  check_that(newer("cuMemAlloc", &first, 99000, CU_GET_PROC_ADDRESS_DEFAULT, &found) ==
                 CUDA_ERROR_INVALID_VALUE,
             "a driver of CUDA 99 answered");
  check_that(newer("cuMemAlloc", &first, 12000, 4, &found) == CUDA_ERROR_INVALID_VALUE,
             "flag 4 is known");
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  check_that(driver && dlsym(driver, "cuGetProcAddress"), "libcuda has no cuGetProcAddress");
}

static void contexts(void) {
  CUcontext current = NULL, popped = NULL;
  CUdevice device = -1, again = -1;
  CU_CHECK(DRIVER_OF(cuCtxGetCurrent, 4000)(&current));
  CU_CHECK(DRIVER_OF(cuCtxGetDevice, 2000)(&device));
  CU_CHECK(DRIVER_OF(cuCtxGetDevice, 13000)(&again, current));
  check_that(device == 0 && again == 0, "the context's device is %d and %d", device, again);
  CU_CHECK(DRIVER_OF(cuCtxPushCurrent, 4000)(current));
  CU_CHECK(DRIVER_OF(cuCtxPopCurrent, 4000)(&popped));
  check_that(popped == current, "another context was popped");
  CU_CHECK(DRIVER_OF(cuCtxSynchronize, 2000)());
}

static void capture(void) {
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = NULL;
  const CUgraphNode *nodes = NULL;
  size_t count = 77;
  CU_CHECK(DRIVER_OF(cuStreamBeginCapture, 10010)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CU_CHECK(DRIVER_OF(cuStreamGetCaptureInfo, 11030)(stream, &status, &id, &graph, &nodes, &count));
  check_that(status == CU_STREAM_CAPTURE_STATUS_ACTIVE, "status %d", (int)status);
  check_that(graph && count == 0, "a capture of %zu nodes", count);
  const CUgraphEdgeData *edges = NULL;
  CU_CHECK(DRIVER_OF(cuStreamGetCaptureInfo, 12030)(stream, &status, &id, &graph, &nodes, &edges,
                                                    &count));
  check_that(count == 0, "%zu nodes", count);
  CU_CHECK(DRIVER_OF(cuStreamEndCapture, 10000)(stream, &graph));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaStreamDestroy(stream));
}

int main(int argc, char **argv) {
  program_begin("driver_versions", argc, argv, NULL, 0);
  CUDA_CHECK(cudaFree(NULL));
  entry_points();
  contexts();
  capture();
  return program_end("calls of the driver in the forms of several versions");
}
