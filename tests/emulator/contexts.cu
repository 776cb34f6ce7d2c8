// contexts.cu: contexts of the driver: a handle each, a stack of them in each thread, and errors for those that are
// destroyed or missing, as the driver's documentation says. The runtime uses the current one, or the primary one.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../common/check.h"

// Finding a call needs no context.
static void *version_of(const char *name, int version) {
  void *entry = NULL;
  cudaDriverEntryPointQueryResult found;
  CUDA_CHECK(cudaGetDriverEntryPointByVersion(name, &entry, version, cudaEnableDefault, &found));
  if (!check_that(entry != NULL, "the driver has no %s of version %d", name, version)) {
    exit(program_end("contexts"));
  }
  return entry;
}
#define DRIVER(name, version) ((PFN_##name##_v##version)version_of(#name, version))

#define EXPECT(wanted, call)                                                          \
  do {                                                                                \
    int answered = (int)(call);                                                       \
    check_that(answered == (int)(wanted), "%s: %d, not %d", #call, answered, wanted); \
  } while (0)

static CUcontext current(void) {
  CUcontext context = (CUcontext)1;
  CU_CHECK(DRIVER(cuCtxGetCurrent, 4000)(&context));
  return context;
}
static CUcontext create(void) {
  CUcontext context = NULL;
  CU_CHECK(DRIVER(cuCtxCreate, 3020)(&context, 0, 0));
  return context;
}
static CUcontext pop(void) {
  CUcontext context = NULL;
  CU_CHECK(DRIVER(cuCtxPopCurrent, 4000)(&context));
  return context;
}
static CUresult push(CUcontext context) { return DRIVER(cuCtxPushCurrent, 4000)(context); }
static CUresult set(CUcontext context) { return DRIVER(cuCtxSetCurrent, 4000)(context); }
static CUresult destroy(CUcontext context) { return DRIVER(cuCtxDestroy, 4000)(context); }
static CUresult allocate(CUdeviceptr *address) { return DRIVER(cuMemAlloc, 3020)(address, 256); }
static bool is_active(void) {
  unsigned flags;
  int active = -1;
  CU_CHECK(DRIVER(cuDevicePrimaryCtxGetState, 7000)(0, &flags, &active));
  return active != 0;
}

// Calls that work in a context, in a thread that has `answer` to say about its own.
static void expect_of_calls(CUresult answer) {
  CUdeviceptr address = 0;
  CUstream stream;
  CUevent event;
  CUdevice device;
  CUmodule module;
  size_t free_bytes, bytes;
  EXPECT(answer, allocate(&address));
  EXPECT(answer, DRIVER(cuMemsetD8, 3020)(address, 0, 16));
  EXPECT(answer, DRIVER(cuStreamCreate, 2000)(&stream, 0));
  EXPECT(answer, DRIVER(cuEventCreate, 2000)(&event, 0));
  EXPECT(answer, DRIVER(cuCtxSynchronize, 2000)());
  EXPECT(answer, DRIVER(cuStreamSynchronize, 2000)(CU_STREAM_LEGACY));
  EXPECT(answer, DRIVER(cuCtxGetDevice, 2000)(&device));
  EXPECT(answer, DRIVER(cuMemGetInfo, 3020)(&free_bytes, &bytes));
  EXPECT(answer, DRIVER(cuModuleLoadData, 2000)(
                     &module, ".version 8.0\n.target sm_90a\n.address_size 64\n"));
}

static void *fresh_thread(void *used) {
  check_that(current() == NULL, "a new thread has a context");
  expect_of_calls(CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(CUDA_ERROR_INVALID_CONTEXT, DRIVER(cuCtxPopCurrent, 4000)(NULL));
  EXPECT(CUDA_SUCCESS, set(NULL));
  if (!used) return NULL;
  EXPECT(CUDA_SUCCESS, push((CUcontext)used));
  expect_of_calls(CUDA_SUCCESS);
  check_that(pop() == (CUcontext)used, "another context was popped");
  check_that(current() == NULL, "a context is left");
  return NULL;
}
static void in_a_thread(void *(*function)(void *), void *argument) {
  pthread_t thread;
  check_that(pthread_create(&thread, NULL, function, argument) == 0, "no thread");
  pthread_join(thread, NULL);
}

static void stacks(void) {
  CUcontext first = create(), second = create(), third = create();
  unsigned long long ids[2] = {0, 0};
  check_that(first && first != second && second != third && first != third, "one handle for two");
  CU_CHECK(DRIVER(cuCtxGetId, 12000)(first, &ids[0]));
  CU_CHECK(DRIVER(cuCtxGetId, 12000)(NULL, &ids[1]));
  check_that(ids[0] != ids[1], "two contexts have the id %llu", ids[0]);
  check_that(pop() == third, "the last one is not on top");
  EXPECT(CUDA_SUCCESS, push(first));
  EXPECT(CUDA_SUCCESS, push(first));
  check_that(pop() == first && pop() == first && pop() == second,
             "they come back in another order");
  EXPECT(CUDA_SUCCESS, set(third));  // in place of the first
  EXPECT(CUDA_SUCCESS, set(NULL));
  check_that(current() == NULL, "setting did not replace the top");
  in_a_thread(fresh_thread, first);
  EXPECT(CUDA_SUCCESS, destroy(first));
  EXPECT(CUDA_SUCCESS, destroy(second));
  EXPECT(CUDA_SUCCESS, destroy(third));
}

static void destroyed(void) {
  CUcontext below = create(), above = create();
  EXPECT(CUDA_SUCCESS, destroy(above));
  check_that(current() == below, "the destroyed one was not popped");
  EXPECT(CUDA_ERROR_INVALID_CONTEXT, destroy(above));
  EXPECT(CUDA_ERROR_INVALID_CONTEXT, push(above));
  EXPECT(CUDA_ERROR_INVALID_CONTEXT, set(above));
  check_that(current() == below, "a refused call has changed the stack");
  EXPECT(CUDA_SUCCESS, destroy(below));
  check_that(current() == NULL, "a destroyed context is current");
  expect_of_calls(CUDA_ERROR_INVALID_CONTEXT);
}

static void *destroy_in_another_thread(void *context) {
  EXPECT(CUDA_SUCCESS, destroy((CUcontext)context));
  return NULL;
}
static void destroyed_elsewhere(void) {
  CUcontext context = create();
  in_a_thread(destroy_in_another_thread, context);
  check_that(current() == context, "it does not remain current");
  expect_of_calls(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT(cudaErrorContextIsDestroyed, cudaFree(NULL));
  EXPECT(cudaErrorContextIsDestroyed, cudaGetLastError());
  check_that(pop() == context, "another one was popped");
}

static void the_primary(void) {
  CUcontext primary = NULL;
  CUcontext own = create();
  CUstream stream;
  void *memory = NULL;
  check_that(!is_active(), "the primary context is active before its first use");
  CUDA_CHECK(cudaMalloc(&memory, 256));
  check_that(current() == own, "the runtime has replaced the current context");
  check_that(!is_active(), "the runtime has used the primary context, not the current one");
  CUDA_CHECK(cudaFree(memory));
  CU_CHECK(DRIVER(cuStreamCreate, 2000)(&stream, 0));
  EXPECT(CUDA_SUCCESS, set(NULL));
  CUDA_CHECK(cudaFree(NULL));
  CU_CHECK(DRIVER(cuDevicePrimaryCtxRetain, 7000)(&primary, 0));
  check_that(primary && primary == current(), "the runtime has not made the primary one current");
  CUcontext of_stream = NULL;
  CU_CHECK(DRIVER(cuStreamGetCtx, 9020)(stream, &of_stream));
  check_that(of_stream == own, "the stream has another context than its creator");
  CU_CHECK(DRIVER(cuStreamGetCtx, 9020)(CU_STREAM_LEGACY, &of_stream));
  check_that(of_stream == primary, "the legacy stream is not the current context's");
  EXPECT(CUDA_SUCCESS, set(own));
  CUDA_CHECK(cudaSetDevice(0));
  check_that(current() == primary, "cudaSetDevice has not made the primary one current");
  EXPECT(CUDA_SUCCESS, DRIVER(cuDevicePrimaryCtxRelease, 11000)(0));
  EXPECT(CUDA_SUCCESS, destroy(own));
}

// After what the_primary has done: it is current, and the runtime uses it.
static void reset(void) {
  CUcontext primary = current(), again = NULL;
  expect_of_calls(CUDA_SUCCESS);
  CUDA_CHECK(cudaDeviceReset());
  check_that(current() == primary && !is_active(), "it is active after a reset, or not current");
  expect_of_calls(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CUDA_CHECK(cudaFree(NULL));
  check_that(is_active(), "the runtime has not initialised it again");
  expect_of_calls(CUDA_SUCCESS);
  CUDA_CHECK(cudaDeviceReset());
  CU_CHECK(DRIVER(cuDevicePrimaryCtxRetain, 7000)(&again, 0));
  check_that(again == primary && is_active(), "retaining has not initialised it");
  EXPECT(CUDA_SUCCESS, DRIVER(cuDevicePrimaryCtxRelease, 11000)(0));
  EXPECT(CUDA_ERROR_INVALID_CONTEXT, DRIVER(cuDevicePrimaryCtxRelease, 11000)(0));
  check_that(!is_active(), "it is active after the last release");
  CUDA_CHECK(cudaSetDevice(0));  // the end of the program prints the device
}

// The driver's own symbols: a call of the runtime would initialise it.
static void before_initialisation(void) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!check_that(driver != NULL, "there is no libcuda.so.1")) return;
  int count;
  CUcontext context;
  CUdeviceptr address;
  EXPECT(CUDA_ERROR_NOT_INITIALIZED,
         ((PFN_cuDeviceGetCount_v2000)dlsym(driver, "cuDeviceGetCount"))(&count));
  EXPECT(CUDA_ERROR_NOT_INITIALIZED,
         ((PFN_cuCtxCreate_v3020)dlsym(driver, "cuCtxCreate_v2"))(&context, 0, 0));
  EXPECT(CUDA_ERROR_NOT_INITIALIZED,
         ((PFN_cuMemAlloc_v3020)dlsym(driver, "cuMemAlloc_v2"))(&address, 256));
}

int main(int argc, char **argv) {
  before_initialisation();
  program_begin("contexts", argc, argv, NULL, 0);
  EXPECT(CUDA_SUCCESS, DRIVER(cuInit, 2000)(0));
  set(NULL);  // program_begin has used the runtime
  CUDA_CHECK(cudaDeviceReset());
  check_that(current() == NULL, "a context before the first call");
  expect_of_calls(CUDA_ERROR_INVALID_CONTEXT);
  in_a_thread(fresh_thread, NULL);
  stacks();
  destroyed();
  destroyed_elsewhere();
  the_primary();
  reset();
  return program_end("stacks of contexts, their ends, the primary context");
}
