/* stream_cases.cu: work of several streams and graphs on the same memory, with and without what
 * orders it (emulator_streams.bats).
 *
 *   stream_cases CASE */
#include <cuda_runtime.h>

#include "cases.cuh"

typedef int Run(void);
#define CASE(name) CASE_OF(Run, name, "", static int, (void))

#define CHECK(call)                                                           \
  do {                                                                        \
    cudaError_t error_of_call = (call);                                       \
    if (error_of_call != cudaSuccess)                                         \
      return printf("%s: %s\n", #call, cudaGetErrorString(error_of_call)), 1; \
  } while (0)

enum { COUNT = 1024, BYTES = COUNT * 4 };

__global__ void add(int *data, int value) { data[blockIdx.x * blockDim.x + threadIdx.x] += value; }
__global__ void put(int *data, int value) { data[blockIdx.x * blockDim.x + threadIdx.x] = value; }
__global__ void take(const int *from, int *to) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i];
}

static cudaStream_t one, two, other; /* other: does not wait for the legacy stream */
static cudaEvent_t event;
static int *data, *more, *pinned, host[COUNT];

static void run(int *memory, cudaStream_t stream) { add<<<4, 256, 0, stream>>>(memory, 1); }

/* ---- Without order ---- */

CASE(kernels_without_event) {
  run(data, one);
  run(data, two);
  return 0;
}
CASE(copy_without_event) {
  run(data, one);
  CHECK(cudaMemcpyAsync(pinned, data, BYTES, cudaMemcpyDeviceToHost, two));
  return 0;
}
CASE(kernel_after_copy) {
  CHECK(cudaMemcpyAsync(data, pinned, BYTES, cudaMemcpyHostToDevice, one));
  run(data, two);
  return 0;
}
CASE(copy_over_what_a_copy_reads) {
  CHECK(cudaMemcpyAsync(more, data, BYTES, cudaMemcpyDeviceToDevice, one));
  CHECK(cudaMemcpyAsync(data, pinned, BYTES, cudaMemcpyHostToDevice, two));
  return 0;
}
CASE(fill_over_what_a_copy_reads) {
  CHECK(cudaMemcpyAsync(more, data, BYTES, cudaMemcpyDeviceToDevice, one));
  CHECK(cudaMemsetAsync(data, 0, BYTES, two));
  return 0;
}
CASE(copies_through_pinned) {
  CHECK(cudaMemcpyAsync(data, pinned, BYTES, cudaMemcpyHostToDevice, one));
  CHECK(cudaMemcpyAsync(pinned, more, BYTES, cudaMemcpyDeviceToHost, two));
  return 0;
}
CASE(fill_of_default_stream) {
  CHECK(cudaMemsetAsync(data, 0, BYTES, 0));
  run(data, other);
  return 0;
}
CASE(event_recorded_too_early) {
  CHECK(cudaEventRecord(event, one));
  run(data, one);
  CHECK(cudaStreamWaitEvent(two, event, 0));
  run(data, two);
  return 0;
}
CASE(freed_while_in_use) {
  int *memory;
  CHECK(cudaMallocAsync(&memory, BYTES, one));
  CHECK(cudaMemsetAsync(memory, 0, BYTES, one));
  CHECK(cudaStreamSynchronize(one));
  run(memory, two);
  CHECK(cudaFreeAsync(memory, one));
  return 0;
}
CASE(rows_without_event) { /* the second half of each row */
  run(data, two);
  CHECK(cudaMemcpy2DAsync(pinned, 128, data + 16, 128, 64, 8, cudaMemcpyDeviceToHost, one));
  return 0;
}
CASE(rows_apart) { /* each stream its own half of each row */
  CHECK(cudaMemset2DAsync(data, 128, 0, 64, 8, one));
  CHECK(cudaStreamSynchronize(one));
  CHECK(cudaMemcpy2DAsync(data, 128, pinned, 128, 64, 8, cudaMemcpyHostToDevice, one));
  CHECK(cudaMemcpy2DAsync(data + 16, 128, pinned, 128, 64, 8, cudaMemcpyHostToDevice, two));
  return 0;
}
CASE(source_changed) {
  CHECK(cudaMemcpyAsync(data, pinned, BYTES, cudaMemcpyHostToDevice, one));
  pinned[7] = 5;
  CHECK(cudaStreamSynchronize(one));
  return 0;
}
CASE(destination_changed) {
  CHECK(cudaMemcpyAsync(pinned, data, BYTES, cudaMemcpyDeviceToHost, one));
  pinned[8] = 6;
  CHECK(cudaStreamSynchronize(one));
  return 0;
}

static int run_graph(bool edge) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(event, one));
  CHECK(cudaStreamWaitEvent(two, event, 0));
  run(data, one);
  if (edge) CHECK(cudaEventRecord(event, one));
  if (edge) CHECK(cudaStreamWaitEvent(two, event, 0));
  run(data, two);
  CHECK(cudaEventRecord(event, two));
  CHECK(cudaStreamWaitEvent(one, event, 0));
  CHECK(cudaStreamEndCapture(one, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, one));
  CHECK(cudaGraphLaunch(exec, two)); /* an executable graph does not overlap with itself */
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  return 0;
}
CASE(graph_without_edge) { return run_graph(false); }
CASE(graph_with_edge) { return run_graph(true); }

/* ---- In order ---- */

CASE(with_event) {
  run(data, one);
  CHECK(cudaEventRecord(event, one));
  CHECK(cudaStreamWaitEvent(two, event, 0));
  run(data, two);
  CHECK(cudaMemcpyAsync(pinned, data, BYTES, cudaMemcpyDeviceToHost, two));
  CHECK(cudaEventRecord(event, two));
  CHECK(cudaEventSynchronize(event));
  pinned[0]++;
  run(data, other);
  return 0;
}
CASE(default_stream_between) {
  run(data, one);
  run(data, 0);
  run(data, two);
  CHECK(cudaMemset(data, 0, BYTES));
  run(data, one);
  return 0;
}
CASE(host_between) {
  run(data, one);
  CHECK(cudaStreamSynchronize(one));
  run(data, other);
  while (cudaStreamQuery(other) == cudaErrorNotReady) continue;
  run(data, two);
  CHECK(cudaDeviceSynchronize());
  run(data, other);
  CHECK(cudaStreamSynchronize(other));
  CHECK(cudaMemcpy(host, data, BYTES, cudaMemcpyDeviceToHost));
  return 0;
}
CASE(copies_in_parts) { /* as in NVIDIA's simpleMultiCopy and asyncAPI */
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 2; i++) {
      cudaStream_t stream = i ? two : other;
      int *part = data + i * COUNT / 2, *to = more + i * COUNT / 2;
      CHECK(
          cudaMemcpyAsync(part, pinned + i * COUNT / 2, BYTES / 2, cudaMemcpyHostToDevice, stream));
      take<<<2, 256, 0, stream>>>(part, to);
      CHECK(cudaMemcpyAsync(pinned + i * COUNT / 2, to, BYTES / 2, cudaMemcpyDeviceToHost, stream));
    }
  }
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < COUNT; i++) pinned[i] = i;
  return 0;
}
CASE(readers) {
  take<<<2, 256, 0, one>>>(data, more);
  take<<<2, 256, 0, two>>>(data, more + COUNT / 2);
  return 0;
}
CASE(captured) { /* a fork and a join, as in simpleCudaGraphs */
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaEvent_t joined;
  CHECK(cudaEventCreate(&joined));
  CHECK(cudaStreamBeginCapture(other, cudaStreamCaptureModeGlobal));
  put<<<4, 256, 0, other>>>(data, 1);
  CHECK(cudaEventRecord(event, other));
  CHECK(cudaStreamWaitEvent(two, event, 0));
  put<<<2, 256, 0, two>>>(data, 2);
  put<<<2, 256, 0, other>>>(data + 512, 3);
  CHECK(cudaEventRecord(joined, two));
  CHECK(cudaStreamWaitEvent(other, joined, 0));
  CHECK(cudaMemcpyAsync(more, data, BYTES, cudaMemcpyDeviceToDevice, other));
  CHECK(cudaStreamEndCapture(other, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; i++) CHECK(cudaGraphLaunch(exec, one));
  CHECK(cudaMemcpyAsync(pinned, more, BYTES, cudaMemcpyDeviceToHost, one));
  CHECK(cudaStreamSynchronize(one));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  return 0;
}
CASE(allocated_in_order) { /* as in streamOrderedAllocation */
  for (int i = 0; i < 3; i++) {
    int *memory;
    CHECK(cudaMallocAsync(&memory, BYTES, other));
    CHECK(cudaMemsetAsync(memory, 0, BYTES, other));
    run(memory, other);
    CHECK(cudaEventRecord(event, other));
    CHECK(cudaStreamWaitEvent(two, event, 0));
    run(memory, two);
    CHECK(cudaFreeAsync(memory, two));
  }
  return 0;
}
static void CUDART_CB call_back(void *count) { ++*(int *)count; }
CASE(host_function) {
  int calls = 0;
  run(data, one);
  CHECK(cudaLaunchHostFunc(one, call_back, &calls));
  CHECK(cudaStreamSynchronize(one));
  run(data, two);
  return calls == 1 ? 0 : 1;
}
static void CUDART_CB change(void *memory) { ++*(int *)memory; }
CASE(pinned_in_order) { /* changed by a kernel and a host function, each in its turn */
  CHECK(cudaMemcpyAsync(data, pinned, BYTES, cudaMemcpyHostToDevice, one));
  run(pinned, one);
  CHECK(cudaMemcpyAsync(more, pinned, BYTES, cudaMemcpyHostToDevice, one));
  CHECK(cudaLaunchHostFunc(one, change, pinned));
  CHECK(cudaStreamSynchronize(one));
  return 0;
}
CASE(freed_after_use) { /* cudaFree waits for the device */
  int *memory;
  CHECK(cudaMalloc(&memory, BYTES));
  CHECK(cudaMemset(memory, 0, BYTES));
  CHECK(cudaDeviceSynchronize());
  run(memory, other);
  CHECK(cudaFree(memory));
  return 0;
}

/* Two kernels that exchange parts as an all-reduce does: each stores its part, then a flag for the
 * other one, and waits for the other one's. */
__global__ void exchange(int *parts, int *flags, int rank, int *to) {
  int i = threadIdx.x, peer = 1 - rank, seen = 0;
  parts[rank * blockDim.x + i] = rank + 1;
  __syncthreads();
  if (i == 0) {
    asm volatile("st.release.sys.global.u32 [%0], 1;" ::"l"(flags + rank) : "memory");
    while (!seen)
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(flags + peer)
                   : "memory");
  }
  __syncthreads();
  to[i] = parts[peer * blockDim.x + i];
  __syncthreads();
  if (i == 0) {
    asm volatile("st.release.sys.global.u32 [%0], 2;" ::"l"(flags + rank) : "memory");
    while (seen != 2)
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(flags + peer)
                   : "memory");
  }
}

CASE(flags_between_streams) {
  enum { THREADS = 128 };
  exchange<<<1, THREADS, 0, one>>>(data, data + 2 * THREADS, 0, more);
  exchange<<<1, THREADS, 0, two>>>(data, data + 2 * THREADS, 1, more + THREADS);
  /* what the other one has read may change after the second exchange of flags */
  add<<<1, THREADS, 0, one>>>(data, 1);
  add<<<1, THREADS, 0, two>>>(data + THREADS, 1);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(host, more, 2 * THREADS * 4, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 2 * THREADS; i++)
    if (host[i] != 2 - i / THREADS) return printf("%d: %d\n", i, host[i]), 1;
  return 0;
}

int main(int argc, char **argv) {
  const Case<Run> *chosen = choose_case<Run>(argc, argv);
  CHECK(cudaStreamCreate(&one));
  CHECK(cudaStreamCreate(&two));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&event));
  CHECK(cudaMalloc(&data, BYTES));
  CHECK(cudaMalloc(&more, BYTES));
  CHECK(cudaMallocHost(&pinned, BYTES));
  CHECK(cudaMemset(data, 0, BYTES));
  CHECK(cudaMemset(more, 0, BYTES));
  CHECK(cudaDeviceSynchronize());
  if (chosen->run()) return 1;
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaFree(data));
  CHECK(cudaFree(more));
  CHECK(cudaEventDestroy(event));
  CHECK(cudaStreamDestroy(one));
  CHECK(cudaStreamDestroy(two));
  CHECK(cudaStreamDestroy(other));
  return 0;
}
