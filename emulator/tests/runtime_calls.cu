// runtime_calls: what the runtime answers to right and wrong calls, one line each. The same
// executable runs on the H200 and on the emulator; the lines must be the same.
//
// Faults are sticky, so each faulting case has a separate process: runtime_calls --fault N.
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "launch_clusters.cuh"

__global__ void add_one(int *data) { data[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

__global__ void __launch_bounds__(64) at_most_64(int *data) { data[threadIdx.x] = 1; }

__global__ void __cluster_dims__(2, 1, 1) pair(int *data) { data[blockIdx.x] = 1; }

extern __shared__ int dynamic[];
__global__ void uses_dynamic(int *data) {
  dynamic[threadIdx.x] = (int)threadIdx.x;
  __syncthreads();
  data[threadIdx.x] = dynamic[threadIdx.x ^ 1];
}
__global__ void uses_static(int *data) {
  __shared__ int buffer[8192];  // 32 KiB
  buffer[threadIdx.x] = (int)threadIdx.x;
  __syncthreads();
  data[threadIdx.x] = buffer[threadIdx.x ^ 1];
}

__constant__ int constant_table[4] = {1, 2, 3, 4};
__device__ int device_counter = 41;
__device__ int zero_initialised[3];
__global__ void read_symbols(int *data) {
  data[0] = constant_table[threadIdx.x % 4] + constant_table[3];
  device_counter += 1;
  data[1] = zero_initialised[1];
}

enum { FAULT_TRAP, FAULT_ASSERT, FAULT_NULL, FAULT_MISALIGNED, FAULT_SHARED, FAULTS };

__global__ void faulting(int kind, int *data, int elements) {
  if (kind == FAULT_TRAP) __trap();
  assert(kind != FAULT_ASSERT);
  if (kind == FAULT_NULL) *(volatile int *)(uintptr_t)(elements - elements) = 1;
  if (kind == FAULT_MISALIGNED) *(volatile int *)((char *)data + 2) = 1;
  if (kind == FAULT_SHARED) *(volatile int *)((char *)dynamic + (1 << 20)) = 1;
}

static int case_number;
static void say(const char *what, cudaError_t error) {
  printf("%3d %-52s %s\n", case_number++, what, cudaGetErrorName(error));
}
static void say_number(const char *what, long long number) {
  printf("%3d %-52s %lld\n", case_number++, what, number);
}
// A launch's own error, then what came of running it.
static void say_launch(const char *what) {
  cudaError_t launch = cudaGetLastError();
  cudaError_t run = cudaDeviceSynchronize();
  printf("%3d %-52s %s, %s\n", case_number++, what, cudaGetErrorName(launch),
         cudaGetErrorName(run));
  cudaGetLastError();
}

static void launch_ex(const void *kernel, int grid, int block, int cluster, size_t shared,
                      int *data, const char *what) {
  void *arguments[] = {&data};
  cudaError_t error = launch_clusters(kernel, grid, cluster, block, shared, arguments);
  printf("%3d %-52s %s; ", case_number, what, cudaGetErrorName(error));
  printf("%s, ", cudaGetErrorName(cudaGetLastError()));
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  case_number++;
}

static void print_properties(void) {
  struct cudaDeviceProp p;
  CUDA_CHECK(cudaGetDeviceProperties(&p, 0));
  say_number("warpSize", p.warpSize);
  say_number("multiProcessorCount", p.multiProcessorCount);
  say_number("sharedMemPerBlock", (long long)p.sharedMemPerBlock);
  say_number("sharedMemPerBlockOptin", (long long)p.sharedMemPerBlockOptin);
  say_number("sharedMemPerMultiprocessor", (long long)p.sharedMemPerMultiprocessor);
  say_number("reservedSharedMemPerBlock", (long long)p.reservedSharedMemPerBlock);
  say_number("regsPerBlock", p.regsPerBlock);
  say_number("regsPerMultiprocessor", p.regsPerMultiprocessor);
  say_number("maxThreadsPerBlock", p.maxThreadsPerBlock);
  say_number("maxThreadsPerMultiProcessor", p.maxThreadsPerMultiProcessor);
  say_number("maxBlocksPerMultiProcessor", p.maxBlocksPerMultiProcessor);
  say_number("maxThreadsDim[2]", p.maxThreadsDim[2]);
  say_number("maxGridSize[0]", p.maxGridSize[0]);
  say_number("maxGridSize[1]", p.maxGridSize[1]);
  say_number("totalConstMem", (long long)p.totalConstMem);
  say_number("l2CacheSize", p.l2CacheSize);
  say_number("memoryBusWidth", p.memoryBusWidth);
  say_number("major", p.major);
  say_number("minor", p.minor);
  say_number("clusterLaunch", p.clusterLaunch);
  say_number("cooperativeLaunch", p.cooperativeLaunch);
  say_number("unifiedAddressing", p.unifiedAddressing);
  say_number("managedMemory", p.managedMemory);
  // Every attribute that does not depend on the host or on how the GPU is plugged in.
  static const int HOST_DEPENDENT[] = {13, 18, 20, 33,  34,  36,  50,  88,
                                       89, 98, 99, 100, 102, 124, 139, 140};
  for (int attribute = 1; attribute <= 148; attribute++) {
    bool skipped = false;
    for (size_t i = 0; i < sizeof HOST_DEPENDENT / sizeof *HOST_DEPENDENT; i++) {
      skipped |= HOST_DEPENDENT[i] == attribute;
    }
    int value = -1;
    if (skipped) continue;
    cudaError_t error = cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)attribute, 0);
    cudaGetLastError();
    printf("attribute %d: %s %d\n", attribute, cudaGetErrorName(error),
           error == cudaSuccess ? value : 0);
  }
}

static void print_functions(void) {
  struct cudaFuncAttributes f;
  CUDA_CHECK(cudaFuncGetAttributes(&f, (const void *)uses_static));
  say_number("uses_static: sharedSizeBytes", (long long)f.sharedSizeBytes);
  say_number("uses_static: maxThreadsPerBlock", f.maxThreadsPerBlock);
  say_number("uses_static: maxDynamicSharedSizeBytes", f.maxDynamicSharedSizeBytes);
  CUDA_CHECK(cudaFuncGetAttributes(&f, (const void *)at_most_64));
  say_number("at_most_64: maxThreadsPerBlock", f.maxThreadsPerBlock);
  int blocks = 0;
  say("occupancy of uses_static, 256 threads",
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)uses_static, 256, 0));
  say_number("... blocks", blocks);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)add_one, 1024, 0);
  say_number("occupancy of add_one, 1024 threads", blocks);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)add_one, 32, 0);
  say_number("occupancy of add_one, 32 threads", blocks);
}

static int run_fault(int kind) {
  int *data;
  CUDA_CHECK(cudaMalloc(&data, 4096));
  faulting<<<1, 32>>>(kind, data, 1024);
  say("launch", cudaGetLastError());
  say("synchronise", cudaDeviceSynchronize());
  say("last error", cudaGetLastError());
  say("last error again", cudaGetLastError());
  say("malloc afterwards", cudaMalloc(&data, 4096));
  say("free afterwards", cudaFree(data));
  add_one<<<1, 32>>>(data);
  say("launch afterwards", cudaGetLastError());
  say("synchronise afterwards", cudaDeviceSynchronize());
  return 0;
}

static int *print_memory(int *host) {
  int *data;
  say("malloc", cudaMalloc(&data, 4096));
  void *nothing = (void *)1;
  say("malloc of 0 bytes", cudaMalloc(&nothing, 0));
  say_number("... gives a null pointer", nothing == NULL);
  say("malloc of 2^50 bytes", cudaMalloc(&nothing, (size_t)1 << 50));
  say("last error", cudaGetLastError());
  say("last error again", cudaGetLastError());
  say("free of NULL", cudaFree(NULL));
  say("free of the middle", cudaFree(data + 1));
  say("peek", cudaPeekAtLastError());
  say("last error", cudaGetLastError());
  say("memset", cudaMemset(data, 0, 4096));
  say("memset past the end", cudaMemset(data, 0, (size_t)1 << 40));
  cudaGetLastError();
  say("copy down", cudaMemcpy(host, data, 4096, cudaMemcpyDeviceToHost));
  say("copy with a wrong direction value", cudaMemcpy(host, data, 4096, (enum cudaMemcpyKind)9));
  cudaGetLastError();
  say("copy default", cudaMemcpy(host, data, 4096, cudaMemcpyDefault));
  say("copy past the end", cudaMemcpy(host, data, (size_t)1 << 31, cudaMemcpyDeviceToHost));
  cudaGetLastError();
  return data;
}

static void print_launches(int *data) {
  add_one<<<4, 256>>>(data);
  say_launch("launch");
  add_one<<<0, 256>>>(data);
  say_launch("launch of 0 blocks");
  add_one<<<1, 0>>>(data);
  say_launch("launch of 0 threads");
  add_one<<<1, 1025>>>(data);
  say_launch("launch of 1025 threads");
  add_one<<<dim3(1, 65536), 32>>>(data);
  say_launch("launch with gridDim.y 65536");
  add_one<<<1, dim3(1, 1, 65)>>>(data);
  say_launch("launch with blockDim.z 65");
  at_most_64<<<1, 128>>>(data);
  say_launch("launch of 128 threads over a bound of 64");
}

static void print_shared_memory(int *data) {
  uses_dynamic<<<1, 32, 48 * 1024>>>(data);
  say_launch("48 KiB dynamic");
  uses_dynamic<<<1, 32, 48 * 1024 + 4>>>(data);
  say_launch("48 KiB + 4 dynamic without asking");
  uses_static<<<1, 32, 16 * 1024 + 4>>>(data);
  say_launch("32 KiB static + 16 KiB + 4 dynamic without asking");
  say("ask for 227 KiB", cudaFuncSetAttribute((const void *)uses_dynamic,
                                              cudaFuncAttributeMaxDynamicSharedMemorySize, 232448));
  say("ask for 227 KiB + 1",
      cudaFuncSetAttribute((const void *)uses_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           232449));
  cudaGetLastError();
  say("ask for 227 KiB beside 32 KiB static",
      cudaFuncSetAttribute((const void *)uses_static, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           232448));
  cudaGetLastError();
  uses_dynamic<<<1, 32, 232448>>>(data);
  say_launch("227 KiB dynamic after asking");
  uses_dynamic<<<1, 32, 232449>>>(data);
  say_launch("227 KiB + 1 dynamic");
}

static void print_clusters(int *data) {
  pair<<<4, 32>>>(data);
  say_launch("required cluster of 2, grid 4");
  pair<<<3, 32>>>(data);
  say_launch("required cluster of 2, grid 3");
  launch_ex((const void *)add_one, 8, 32, 2, 0, data, "cluster 2, grid 8");
  launch_ex((const void *)add_one, 8, 32, 3, 0, data, "cluster 3, grid 8");
  launch_ex((const void *)add_one, 16, 32, 8, 0, data, "cluster 8, grid 16");
  launch_ex((const void *)add_one, 16, 32, 16, 0, data, "cluster 16, grid 16, not allowed");
  say("allow non-portable clusters",
      cudaFuncSetAttribute((const void *)add_one, cudaFuncAttributeNonPortableClusterSizeAllowed,
                           1));
  launch_ex((const void *)add_one, 16, 32, 16, 0, data, "cluster 16, grid 16, allowed");
  launch_ex((const void *)add_one, 32, 32, 32, 0, data, "cluster 32, grid 32");
  launch_ex((const void *)add_one, 8, 32, 0, 0, data, "cluster 0, grid 8");
  launch_ex((const void *)pair, 8, 32, 4, 0, data, "cluster 4 over a required one of 2");
}

static void print_symbols(int *data, const int *host) {
  read_symbols<<<1, 1>>>(data);
  say_launch("read symbols");
  int two[2], counter = 0;
  CUDA_CHECK(cudaMemcpy(two, data, sizeof two, cudaMemcpyDeviceToHost));
  say_number("constant_table[0] + constant_table[3]", two[0]);
  say_number("zero_initialised[1]", two[1]);
  say("from symbol", cudaMemcpyFromSymbol(&counter, device_counter, sizeof counter));
  say_number("device_counter", counter);
  int table[4] = {10, 20, 30, 40};
  say("to symbol", cudaMemcpyToSymbol(constant_table, table, sizeof table));
  say("to symbol, too much", cudaMemcpyToSymbol(constant_table, host, 4096));
  cudaGetLastError();
  read_symbols<<<1, 1>>>(data);
  CUDA_CHECK(cudaMemcpy(two, data, sizeof two, cudaMemcpyDeviceToHost));
  say_number("constant_table[0] + constant_table[3]", two[0]);
  void *address;
  size_t bytes;
  say("symbol address", cudaGetSymbolAddress(&address, device_counter));
  say("symbol size", cudaGetSymbolSize(&bytes, constant_table));
  say_number("... bytes", (long long)bytes);
  say("a symbol that is none", cudaGetSymbolSize(&bytes, (const void *)host));
  cudaGetLastError();
}

static void print_streams(int *data, int *host) {
  cudaStream_t stream;
  cudaEvent_t begin, end;
  float milliseconds = -1;
  say("stream create", cudaStreamCreate(&stream));
  say("event create", cudaEventCreate(&begin));
  say("event create", cudaEventCreate(&end));
  say("elapsed before record", cudaEventElapsedTime(&milliseconds, begin, end));
  cudaGetLastError();
  say("record", cudaEventRecord(begin, stream));
  add_one<<<1, 32, 0, stream>>>(data);
  say("record", cudaEventRecord(end, stream));
  say("event synchronize", cudaEventSynchronize(end));
  say("elapsed", cudaEventElapsedTime(&milliseconds, begin, end));
  say_number("... is not negative", milliseconds >= 0);
  say("stream query", cudaStreamQuery(stream));
  say("copy async", cudaMemcpyAsync(host, data, 4096, cudaMemcpyDeviceToHost, stream));
  say("stream synchronize", cudaStreamSynchronize(stream));
  say("stream destroy", cudaStreamDestroy(stream));
  say("event destroy", cudaEventDestroy(begin));
  say("event destroy", cudaEventDestroy(end));
}

static void print_devices(void) {
  int device = -1, count = 0, version = 0;
  say("set device 0", cudaSetDevice(0));
  say("set device 99", cudaSetDevice(99));
  cudaGetLastError();
  say("get device", cudaGetDevice(&device));
  say_number("... device", device);
  say("device count", cudaGetDeviceCount(&count));
  say_number("... at least one", count >= 1);
  say("runtime version", cudaRuntimeGetVersion(&version));
  say_number("... major", version / 1000);
  say("driver version", cudaDriverGetVersion(&version));
  say_number("... major at least 13", version / 1000 >= 13);
  void *entry = NULL;
  enum cudaDriverEntryPointQueryResult found;
  say("driver entry point", cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry,
                                                             12000, cudaEnableDefault, &found));
  say_number("... found", found == cudaDriverEntryPointSuccess && entry);
  say("driver entry point that is none",
      cudaGetDriverEntryPointByVersion("cuNoSuchCall", &entry, 12000, cudaEnableDefault, &found));
  say_number("... query result", found);
  cudaGetLastError();
}

static void print_errors(void) {
  printf("%s | %s | %s\n", cudaGetErrorName((cudaError_t)12345), cudaGetErrorString(cudaSuccess),
         cudaGetErrorString((cudaError_t)12345));
  static const int errors[] = {0,   1,   2,   3,   9,   12,  13,  21,  35,  49,  52,  98,  100, 101,
                               200, 201, 209, 215, 218, 222, 301, 400, 401, 500, 600, 700, 701, 702,
                               709, 710, 712, 713, 714, 715, 716, 717, 718, 719, 720, 800, 801, 900,
                               901, 902, 903, 904, 905, 906, 907, 908, 909, 910, 912, 999};
  for (int error : errors)
    printf("error %d %s: %s\n", error, cudaGetErrorName((cudaError_t)error),
           cudaGetErrorString((cudaError_t)error));
}

int main(int argc, char **argv) {
  long fault = -1;
  const Option options[] = {{"--fault", "the faulting case to run", &fault, 0, FAULTS - 1}};
  program_begin("runtime_calls", argc, argv, options, 1);
  if (fault >= 0) return run_fault((int)fault);

  print_properties();
  print_functions();

  int host[1024] = {0}, *data = print_memory(host);
  print_launches(data);
  print_shared_memory(data);
  print_clusters(data);
  print_symbols(data, host);
  print_streams(data, host);
  print_devices();
  print_errors();
  say("free", cudaFree(data));
  say("free twice", cudaFree(data));
  cudaGetLastError();
  return program_end("the runtime's answers");
}
