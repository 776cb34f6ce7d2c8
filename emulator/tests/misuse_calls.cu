/* misuse_calls.cu: what calls answer to arguments that they should not be given.
 *
 *   misuse_calls CASE      each case is a process of its own
 *
 * Without CASE it prints the names of the cases. emulator/tests/recorded/misuse_calls.txt holds what
 * an H200 answered to these calls. */
#include <sys/mman.h>

#include "cases.cuh"
#include "driver_call.cuh"

#define SHOW(call)                                                         \
  do {                                                                     \
    cudaError_t error_ = (call);                                           \
    printf("%s -> %d %s\n", #call, (int)error_, cudaGetErrorName(error_)); \
    fflush(stdout);                                                        \
  } while (0)

static int *d, h[64];
static void *p;

static void limits(void) {
  SHOW(cudaDeviceSetLimit((cudaLimit)77, 1));
  SHOW(cudaDeviceSetLimit((cudaLimit)-1, 1));
  SHOW(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 1ull << 60));
  SHOW(cudaDeviceSetLimit(cudaLimitStackSize, 1ull << 40));
  SHOW(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1ull << 40));
  SHOW(cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, 2));
  SHOW(cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 77));
  SHOW(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1ull << 40));
  size_t s;
  SHOW(cudaDeviceGetLimit(&s, (cudaLimit)77));
  for (int i = 0; i < 8; i++) {
    s = 99;
    SHOW(cudaDeviceGetLimit(&s, (cudaLimit)i));
    printf("limit %d = %zu\n", i, s);
  }
}

static void pitch(void) {
  size_t q;
  SHOW(cudaMallocPitch((void **)&p, &q, 1ull << 33, 1ull << 33));
  SHOW(cudaMallocPitch((void **)&p, &q, (size_t)-1, 2));
  SHOW(cudaMallocPitch((void **)&p, &q, 0, 2));
  printf("%p %zu\n", p, q);
  SHOW(cudaMallocPitch((void **)&p, &q, 2, 0));
  printf("%p %zu\n", p, q);
  SHOW(cudaMallocPitch((void **)&p, 0, 2, 2));
  SHOW(cudaMallocPitch(0, &q, 2, 2));
}

int main(int argc, char **argv);
static void host_memory(void) {
  char *p = (char *)mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  SHOW(cudaHostRegister((void *)0x10000, 1 << 20, 0));
  SHOW(cudaHostRegister((void *)0x10000, 0x7ffffffe0000, 0));
  SHOW(cudaHostRegister(p, 1ull << 40, 0));
  SHOW(cudaHostRegister(p, 0, 0));
  SHOW(cudaHostRegister(0, 10, 0));
  SHOW(cudaHostRegister(p, 8192, 0xffff));
  SHOW(cudaHostRegister((void *)main, 4096, 0));
  SHOW(cudaHostRegister((void *)main, 4096, cudaHostRegisterReadOnly));
  SHOW(cudaHostRegister(p, 8192, 0));
  SHOW(cudaHostRegister(p + 100, 100, 0));
  SHOW(cudaHostRegister(d, 64, 0));
  SHOW(cudaHostUnregister(p + 1));
  SHOW(cudaHostUnregister(d));
  SHOW(cudaMallocHost((void **)&p, 1ull << 50));
  SHOW(cudaMallocHost((void **)&p, 0));
  printf("%p\n", (void *)p);
  SHOW(cudaHostAlloc((void **)&p, 16, 0xffff));
  SHOW(cudaFreeHost((void *)0x10));
  SHOW(cudaFreeHost(d));
  SHOW(cudaMallocManaged((void **)&p, 16, 0));
  SHOW(cudaMallocManaged((void **)&p, 16, 77));
  SHOW(cudaMallocManaged((void **)&p, 0));
}

static void allocation(void) {
  SHOW(cudaMalloc(&p, (size_t)-1));
  SHOW(cudaMalloc(&p, 0));
  SHOW(cudaMalloc(0, 4));
  SHOW(cudaMalloc(&p, 140ull << 30));
  SHOW(cudaMalloc(&p, 1ull << 63));
  SHOW(cudaFree((void *)0x1234));
  SHOW(cudaFree(&p));
  SHOW(cudaFree(0));
  SHOW(cudaMallocManaged(&p, 1ull << 50));
  SHOW(cudaMallocAsync(&p, (size_t)-1, 0));
}

static void copies(void) {
  SHOW(cudaMemcpy(h, d, 16, (cudaMemcpyKind)77));
  SHOW(cudaMemcpy(d, h, 16, cudaMemcpyDeviceToHost));
  SHOW(cudaMemset(h, 0, 16));
  SHOW(cudaMemset(0, 0, 16));
  SHOW(cudaMemcpy2D(d, (size_t)-8, h, 8, 8, 8, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy2D(d, 8, h, 8, 8, 1ull << 61, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy2D(d, 8, h, 8, 16, 2, cudaMemcpyHostToDevice));
  SHOW(cudaMemset2D(d, 1ull << 62, 0, 8, 8));
  SHOW(cudaMemcpyToSymbol((const void *)0x1234, h, 4));
}

static void nothing(void) {
  SHOW(cudaGetDevice(0));
  SHOW(cudaMemGetInfo(0, 0));
  SHOW(cudaEventRecord(0, 0));
  SHOW(cudaEventElapsedTime(0, 0, 0));
  SHOW(cudaGraphLaunch(0, 0));
  SHOW(cudaStreamEndCapture(0, 0));
  SHOW(cudaStreamIsCapturing(0, 0));
  SHOW(cudaPointerGetAttributes(0, 0));
}

/* ---- Where calls may be made ---- */
static void within(void *) {
  int n;
  cudaPointerAttributes pa;
  size_t a, b;
  SHOW(cudaDeviceSynchronize());
  SHOW(cudaMalloc(&p, 16));
  SHOW(cudaGetDevice(&n));
  SHOW(cudaGetDeviceCount(&n));
  SHOW(cudaMemGetInfo(&a, &b));
  SHOW(cudaStreamQuery(0));
  SHOW(cudaDeviceGetAttribute(&n, cudaDevAttrWarpSize, 0));
  SHOW(cudaDriverGetVersion(&n));
  SHOW(cudaSetDevice(0));
  SHOW(cudaPointerGetAttributes(&pa, &n));
  SHOW(cudaMallocHost(&p, 16));
  SHOW(cudaFree(0));
  SHOW(cudaLaunchHostFunc(0, 0, 0));
}
static void host_function(void) {
  cudaLaunchHostFunc(0, within, 0);
  cudaDeviceSynchronize();
  SHOW(cudaGetLastError());
}

static void contexts(void) {
  CUcontext c;
  auto pop = DRIVER(cuCtxPopCurrent);
  auto push = DRIVER(cuCtxPushCurrent);
  printf("%d\n", pop(0));
  printf("%d\n", DRIVER(cuCtxGetCurrent)(&c));
  printf("%d\n", push(0));
  printf("%d %d\n", pop(&c), pop(&c));
  CUdevice device;
  printf("%d\n", DRIVER(cuCtxGetDevice)(&device));
  printf("%d\n", DRIVER(cuCtxSynchronize)());
}

/* ---- Kernels ---- */
__device__ char *kept;
__global__ void keep(void) { kept = (char *)malloc(64); }
__global__ void print(int *out) {
  out[0] = printf("no arguments\n"), out[1] = printf("%d %s\n", 1, "two");
  out[2] = printf("%*d\n", 20, 3), out[3] = printf((const char *)0);
  out[4] = printf("[%*d] [%-*d] [%.*f]\n", 7, 1, 7, 2, 2, 3.14159);
}
__global__ void two_places(int *out) {
  int lane = threadIdx.x, v;
  if (lane < 16)
    v = __shfl_sync(~0u, lane * 10, lane ^ 31) + 1000;
  else
    v = __shfl_sync(~0u, lane * 100, lane ^ 31) + 2000;
  out[lane] = v;
}
__global__ void lane_barriers(int *out) {
  asm volatile("barrier.sync %0, 32;" ::"r"(1 + (threadIdx.x & 1)) : "memory");
  out[threadIdx.x] = 1;
}

static void heap(void) {
  char *b;
  keep<<<1, 1>>>();
  SHOW(cudaMemcpyFromSymbol(&b, kept, 8));
  SHOW(cudaMemcpy(h, b, 4, cudaMemcpyDeviceToHost));
  SHOW(cudaMemset(b, 0, 4));
  SHOW(cudaFree(b));
}
static void show_words(int count) {
  int error = cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  printf("%d:", error);
  for (int i = 0; i < count; i++) printf(" %d", h[i]);
  printf("\n");
}
static void printing(void) {
  print<<<1, 1>>>(d);
  show_words(4);
}
static void places(void) {
  two_places<<<1, 32>>>(d);
  show_words(32);
}
static void barriers(void) {
  lane_barriers<<<1, 64>>>(d);
  show_words(0);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } cases[] = {{"limits", limits},          {"pitch", pitch},       {"host", host_memory},
               {"allocation", allocation},  {"copies", copies},     {"nothing", nothing},
               {"callback", host_function}, {"contexts", contexts}, {"heap", heap},
               {"printf", printing},        {"places", places},     {"barriers", barriers}};
  cudaMalloc(&d, sizeof h);
  cudaMemset(d, 0, sizeof h);
  cases[choose_of(cases, argc, argv)].run();
  return 0;
}
