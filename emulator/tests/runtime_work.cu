// runtime_work: streams, graphs, pools and copies: what the calls answer, one line each, and
// whether the data is what it should be. The same executable runs on the H200 and on the emulator;
// the lines must be the same.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { COUNT = 256, BYTES = COUNT * (int)sizeof(int) };

__global__ void add(int *data, int amount) { data[threadIdx.x] += amount; }
__global__ void multiply(int *data, int factor) { data[threadIdx.x] *= factor; }
__global__ void sum_of_two(const int *a, const int *b, int *out) {
  out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}
// Waits for another stream, or for the host.
__global__ void wait_for_flag(volatile int *flag, int *data, int value) {
  while (*flag == 0) __nanosleep(200);
  data[threadIdx.x] = value;
}

static int case_number;
static void say(const char *what, cudaError_t error) {
  printf("%3d %-56s %s\n", case_number++, what, cudaGetErrorName(error));
  cudaGetLastError();
}
static void say_number(const char *what, long long number) {
  printf("%3d %-56s %lld\n", case_number++, what, number);
}

static int *data, *other, *result;
static int host[COUNT];

static void set_all(int value) {
  for (int i = 0; i < COUNT; i++) host[i] = value;
  CUDA_CHECK(cudaMemcpy(data, host, BYTES, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(other, host, BYTES, cudaMemcpyHostToDevice));
}
// The value that all elements have, or -1.
static int all_of(const int *device) {
  CUDA_CHECK(cudaMemcpy(host, device, BYTES, cudaMemcpyDeviceToHost));
  for (int i = 1; i < COUNT; i++) {
    if (host[i] != host[0]) return -1;
  }
  return host[0];
}

static void count_call(void *count) { ++*(int *)count; }

// ---- Graphs from captured streams ----

static void captures(cudaStream_t stream, cudaStream_t second) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaEvent_t fork, join;
  enum cudaStreamCaptureStatus status;
  unsigned long long id = 0;
  size_t nodes = 0;
  static int calls;
  CUDA_CHECK(cudaEventCreate(&fork));
  CUDA_CHECK(cudaEventCreate(&join));

  set_all(1);
  say("begin capture", cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  say("begin capture again", cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  add<<<1, COUNT, 0, stream>>>(data, 2);
  say("record into the capture", cudaEventRecord(fork, stream));
  say("wait: the second stream joins", cudaStreamWaitEvent(second, fork, 0));
  multiply<<<1, COUNT, 0, second>>>(other, 5);
  say("record on the second", cudaEventRecord(join, second));
  multiply<<<1, COUNT, 0, stream>>>(data, 10);
  say("wait: joined again", cudaStreamWaitEvent(stream, join, 0));
  sum_of_two<<<1, COUNT, 0, stream>>>(data, other, result);
  say("host function", cudaLaunchHostFunc(stream, count_call, &calls));
  say("memset", cudaMemsetAsync(other, 0, BYTES, stream));
  say("copy", cudaMemcpyAsync(other, result, BYTES, cudaMemcpyDeviceToDevice, stream));
  say("capture info", cudaStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL, NULL));
  say_number("... active", status == cudaStreamCaptureStatusActive && id != 0);
  say("is capturing", cudaStreamIsCapturing(second, &status));
  say_number("... active", status == cudaStreamCaptureStatusActive);
  say("end capture", cudaStreamEndCapture(stream, &graph));
  say("is capturing", cudaStreamIsCapturing(second, &status));
  say_number("... none", status == cudaStreamCaptureStatusNone);
  say("nodes", cudaGraphGetNodes(graph, NULL, &nodes));
  say_number("... so many", (long long)nodes);
  say_number("nothing has run", all_of(data) == 1 && calls == 0);
  say("instantiate", cudaGraphInstantiate(&exec, graph, 0));
  say("launch", cudaGraphLaunch(exec, stream));
  say("synchronize", cudaStreamSynchronize(stream));
  say_number("(1 + 2) * 10 + 1 * 5", all_of(result));
  say_number("copied", all_of(other));
  say("launch", cudaGraphLaunch(exec, stream));
  say("launch", cudaGraphLaunch(exec, stream));
  say("synchronize", cudaStreamSynchronize(stream));
  say_number("data after three", all_of(data));
  say_number("calls of the host after three", calls);
  say("destroy exec", cudaGraphExecDestroy(exec));
  say("destroy graph", cudaGraphDestroy(graph));
  CUDA_CHECK(cudaEventDestroy(fork));
  CUDA_CHECK(cudaEventDestroy(join));
}

// An executable graph is brought up to date with another capture of the same form.
static void updates(cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  for (int amount = 1; amount <= 2; amount++) {
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    add<<<1, COUNT, 0, stream>>>(data, amount);
    CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExecUpdateResultInfo result_info;
    if (amount == 1) {
      CUDA_CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    } else {
      say("update", cudaGraphExecUpdate(exec, graph, &result_info));
      say_number("... result", result_info.result);
    }
    set_all(0);
    CUDA_CHECK(cudaGraphLaunch(exec, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    say_number("added", all_of(data));
    CUDA_CHECK(cudaGraphDestroy(graph));
  }
  CUDA_CHECK(cudaGraphExecDestroy(exec));
}

static void refused_in_captures(cudaStream_t stream) {
  cudaGraph_t graph;
  say("end without begin", cudaStreamEndCapture(stream, &graph));
  say("begin on the legacy stream", cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  say("synchronize a capturing stream", cudaStreamSynchronize(stream));
  say("end", cudaStreamEndCapture(stream, &graph));
  say_number("... no graph", graph == NULL);
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  void *memory = NULL;
  say("malloc during a global capture", cudaMalloc(&memory, 16));
  say("end", cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  say("malloc during a relaxed capture", cudaMalloc(&memory, 16));
  say("end", cudaStreamEndCapture(stream, &graph));
  say_number("... a graph", graph != NULL);
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaFree(memory));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  add<<<1, COUNT>>>(data, 1);
  say("launch on the legacy stream during a capture", cudaGetLastError());
  say("end", cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  say("device synchronize during a capture", cudaDeviceSynchronize());
  say("end", cudaStreamEndCapture(stream, &graph));
}

static void refused_with_events(cudaStream_t stream, cudaStream_t second) {
  cudaGraph_t graph;
  cudaEvent_t fork;
  CUDA_CHECK(cudaEventCreate(&fork));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  add<<<1, COUNT, 0, stream>>>(data, 2);
  CUDA_CHECK(cudaEventRecord(fork, stream));
  CUDA_CHECK(cudaStreamWaitEvent(second, fork, 0));
  say("query of a captured event", cudaEventQuery(fork));
  say("end", cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  add<<<1, COUNT, 0, stream>>>(data, 2);
  CUDA_CHECK(cudaEventRecord(fork, stream));
  CUDA_CHECK(cudaStreamWaitEvent(second, fork, 0));
  add<<<1, COUNT, 0, second>>>(data, 2);
  say("end on the stream that joined", cudaStreamEndCapture(second, &graph));
  say("end", cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  add<<<1, COUNT, 0, stream>>>(data, 2);
  CUDA_CHECK(cudaEventRecord(fork, stream));
  CUDA_CHECK(cudaStreamWaitEvent(second, fork, 0));
  add<<<1, COUNT, 0, second>>>(data, 2);
  say("end, the second stream not joined again", cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaEventRecord(fork, second));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  say("wait for an event from before", cudaStreamWaitEvent(stream, fork, 0));
  say("end", cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaEventDestroy(fork));
}

// ---- Memory: pools, pinned memory, pitched copies ----

static void memory(cudaStream_t stream) {
  cudaMemPool_t pool;
  void *address = NULL;
  say("default pool", cudaDeviceGetDefaultMemPool(&pool, 0));
  unsigned long long threshold = ~0ull, read = 0;
  say("release threshold",
      cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  say("... read", cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &read));
  say_number("... as set", read == threshold);
  say("malloc async", cudaMallocAsync(&address, BYTES, stream));
  say("memset async", cudaMemsetAsync(address, 1, BYTES, stream));
  say("copy async", cudaMemcpyAsync(data, address, BYTES, cudaMemcpyDeviceToDevice, stream));
  say("free async", cudaFreeAsync(address, stream));
  say("synchronize", cudaStreamSynchronize(stream));
  say_number("0x01010101", all_of(data));
  int *pinned = NULL, *device_view = NULL;
  unsigned flags = 0;
  say("host alloc", cudaHostAlloc(&pinned, BYTES, cudaHostAllocMapped));
  say("device pointer", cudaHostGetDevicePointer((void **)&device_view, pinned, 0));
  say("host flags", cudaHostGetFlags(&flags, pinned));
  for (int i = 0; i < COUNT; i++) pinned[i] = 20;
  add<<<1, COUNT>>>(device_view, 3);
  say("synchronize", cudaDeviceSynchronize());
  say_number("pinned[5]", pinned[5]);
  struct cudaPointerAttributes attributes;
  say("pointer attributes of pinned memory", cudaPointerGetAttributes(&attributes, pinned));
  say_number("... host", attributes.type == cudaMemoryTypeHost);
  say("free host", cudaFreeHost(pinned));
  say("pointer attributes of the stack", cudaPointerGetAttributes(&attributes, &flags));
  say_number("... unregistered", attributes.type == cudaMemoryTypeUnregistered);
  int *managed = NULL;
  say("managed", cudaMallocManaged(&managed, BYTES));
  say("pointer attributes of managed memory", cudaPointerGetAttributes(&attributes, managed));
  say_number("... managed", attributes.type == cudaMemoryTypeManaged);
  say("free", cudaFree(managed));
}

// A part of pitched memory.
static void pitched_copies(cudaStream_t stream) {
  enum { WIDTH = 6, HEIGHT = 5 };
  int *pitched, source[HEIGHT][WIDTH], part[3][4];
  size_t pitch = 0;
  say("malloc pitch", cudaMallocPitch(&pitched, &pitch, WIDTH * sizeof(int), HEIGHT));
  say_number("... pitch", (long long)pitch);
  for (int i = 0; i < WIDTH * HEIGHT; i++) ((int *)source)[i] = i;
  say("copy 2D", cudaMemcpy2D(pitched, pitch, source, sizeof source[0], sizeof source[0], HEIGHT,
                              cudaMemcpyHostToDevice));
  say("copy 2D async",
      cudaMemcpy2DAsync(part, sizeof part[0], (char *)pitched + pitch + 2 * sizeof(int), pitch,
                        sizeof part[0], 3, cudaMemcpyDeviceToHost, stream));
  say("synchronize", cudaStreamSynchronize(stream));
  printf("part %d %d %d\n", part[0][0], part[0][3], part[2][3]);
  say("copy 2D, too wide", cudaMemcpy2D(data, 16, host, 32, 24, 2, cudaMemcpyHostToDevice));
  say("free", cudaFree(pitched));
}

// An allocation inside a captured graph.
static void captured_allocation(cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  int *inside = NULL;
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  say("malloc async in a capture", cudaMallocAsync(&inside, BYTES, stream));
  CUDA_CHECK(cudaMemsetAsync(inside, 0, BYTES, stream));
  add<<<1, COUNT, 0, stream>>>(inside, 9);
  CUDA_CHECK(cudaMemcpyAsync(data, inside, BYTES, cudaMemcpyDeviceToDevice, stream));
  say("free async in a capture", cudaFreeAsync(inside, stream));
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 2; i++) CUDA_CHECK(cudaGraphLaunch(exec, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  say_number("9", all_of(data));
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaGraphDestroy(graph));
}

// ---- Kernels that wait for what comes later ----

static void overlap(cudaStream_t stream, cudaStream_t second) {
  int *flag, *pinned;
  cudaEvent_t event;
  CUDA_CHECK(cudaMalloc(&flag, BYTES));
  CUDA_CHECK(cudaMemset(flag, 0, BYTES));
  CUDA_CHECK(cudaHostAlloc(&pinned, sizeof *pinned, cudaHostAllocMapped));
  CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  set_all(1);
  CUDA_CHECK(cudaDeviceSynchronize());

  wait_for_flag<<<1, COUNT, 0, second>>>(flag, data, 5);
  say("launch of a kernel that waits", cudaGetLastError());
  say("query of its stream", cudaStreamQuery(second));
  add<<<1, COUNT, 0, second>>>(data, 1);
  say("record behind it", cudaEventRecord(event, second));
  say("query of the event", cudaEventQuery(event));
  say("another stream waits for the event", cudaStreamWaitEvent(stream, event, 0));
  multiply<<<1, COUNT, 0, stream>>>(data, 10);
  say("copy behind the wait",
      cudaMemcpyAsync(result, data, BYTES, cudaMemcpyDeviceToDevice, stream));
  cudaStream_t third;
  CUDA_CHECK(cudaStreamCreateWithFlags(&third, cudaStreamNonBlocking));
  add<<<1, 1, 0, third>>>(flag, 1);
  say("synchronize the stream that sets the flag", cudaStreamSynchronize(third));
  say("synchronize the stream that waits", cudaStreamSynchronize(stream));
  say_number("(5 + 1) * 10", all_of(result));
  say("query of the event", cudaEventQuery(event));

  *(volatile int *)pinned = 0;
  wait_for_flag<<<1, COUNT, 0, second>>>(pinned, data, 7);
  say("query", cudaStreamQuery(second));
  *(volatile int *)pinned = 1;
  say("synchronize", cudaDeviceSynchronize());
  say_number("7", all_of(data));

  // Blocking streams wait for the legacy stream, and it for them.
  *(volatile int *)pinned = 0;
  wait_for_flag<<<1, COUNT, 0, stream>>>(pinned, data, 3);
  add<<<1, COUNT>>>(data, 1);
  multiply<<<1, COUNT, 0, stream>>>(data, 100);
  say("query of the legacy stream", cudaStreamQuery(NULL));
  *(volatile int *)pinned = 1;
  say("synchronize", cudaStreamSynchronize(stream));
  say_number("(3 + 1) * 100", all_of(data));
  CUDA_CHECK(cudaEventDestroy(event));
  CUDA_CHECK(cudaStreamDestroy(third));
  CUDA_CHECK(cudaFree(flag));
  CUDA_CHECK(cudaFreeHost(pinned));
}

int main(int argc, char **argv) {
  program_begin("runtime_work", argc, argv, NULL, 0);
  cudaStream_t stream, second;
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  CUDA_CHECK(cudaMalloc(&data, BYTES));
  CUDA_CHECK(cudaMalloc(&other, BYTES));
  CUDA_CHECK(cudaMalloc(&result, BYTES));
  captures(stream, second);
  updates(stream);
  refused_in_captures(stream);
  refused_with_events(stream, second);
  memory(stream);
  pitched_copies(stream);
  captured_allocation(stream);
  overlap(stream, second);
  CUDA_CHECK(cudaStreamDestroy(stream));
  CUDA_CHECK(cudaStreamDestroy(second));
  return program_end("streams, graphs, memory");
}
