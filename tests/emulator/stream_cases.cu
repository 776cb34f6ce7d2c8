/* stream_cases.cu: work of several streams and graphs on the same memory, with and without what
 * orders it (emulator_streams.bats).
 *
 *   stream_cases CASE */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>

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

static int kernels_without_event(void) {
  run(data, one);
  run(data, two);
  return 0;
}
static int copy_without_event(void) {
  run(data, one);
  CHECK(cudaMemcpyAsync(pinned, data, BYTES, cudaMemcpyDeviceToHost, two));
  return 0;
}
static int kernel_after_copy(void) {
  CHECK(cudaMemcpyAsync(data, pinned, BYTES, cudaMemcpyHostToDevice, one));
  run(data, two);
  return 0;
}
static int copy_over_what_a_copy_reads(void) {
  CHECK(cudaMemcpyAsync(more, data, BYTES, cudaMemcpyDeviceToDevice, one));
  CHECK(cudaMemcpyAsync(data, pinned, BYTES, cudaMemcpyHostToDevice, two));
  return 0;
}
static int fill_over_what_a_copy_reads(void) {
  CHECK(cudaMemcpyAsync(more, data, BYTES, cudaMemcpyDeviceToDevice, one));
  CHECK(cudaMemsetAsync(data, 0, BYTES, two));
  return 0;
}
static int copies_through_pinned(void) {
  CHECK(cudaMemcpyAsync(data, pinned, BYTES, cudaMemcpyHostToDevice, one));
  CHECK(cudaMemcpyAsync(pinned, more, BYTES, cudaMemcpyDeviceToHost, two));
  return 0;
}
static int fill_of_default_stream(void) {
  CHECK(cudaMemsetAsync(data, 0, BYTES, 0));
  run(data, other);
  return 0;
}
static int event_recorded_too_early(void) {
  CHECK(cudaEventRecord(event, one));
  run(data, one);
  CHECK(cudaStreamWaitEvent(two, event, 0));
  run(data, two);
  return 0;
}
static int freed_while_in_use(void) {
  int *memory;
  CHECK(cudaMallocAsync(&memory, BYTES, one));
  CHECK(cudaMemsetAsync(memory, 0, BYTES, one));
  CHECK(cudaStreamSynchronize(one));
  run(memory, two);
  CHECK(cudaFreeAsync(memory, one));
  return 0;
}
static int rows_without_event(void) { /* the second half of each row */
  run(data, two);
  CHECK(cudaMemcpy2DAsync(pinned, 128, data + 16, 128, 64, 8, cudaMemcpyDeviceToHost, one));
  return 0;
}
static int rows_apart(void) { /* each stream its own half of each row */
  CHECK(cudaMemset2DAsync(data, 128, 0, 64, 8, one));
  CHECK(cudaStreamSynchronize(one));
  CHECK(cudaMemcpy2DAsync(data, 128, pinned, 128, 64, 8, cudaMemcpyHostToDevice, one));
  CHECK(cudaMemcpy2DAsync(data + 16, 128, pinned, 128, 64, 8, cudaMemcpyHostToDevice, two));
  return 0;
}
static int source_changed(void) {
  CHECK(cudaMemcpyAsync(data, pinned, BYTES, cudaMemcpyHostToDevice, one));
  pinned[7] = 5;
  CHECK(cudaStreamSynchronize(one));
  return 0;
}
static int destination_changed(void) {
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
static int graph_without_edge(void) { return run_graph(false); }
static int graph_with_edge(void) { return run_graph(true); }

/* ---- In order ---- */

static int with_event(void) {
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
static int default_stream_between(void) {
  run(data, one);
  run(data, 0);
  run(data, two);
  CHECK(cudaMemset(data, 0, BYTES));
  run(data, one);
  return 0;
}
static int host_between(void) {
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
static int copies_in_parts(void) { /* as in NVIDIA's simpleMultiCopy and asyncAPI */
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
static int readers(void) {
  take<<<2, 256, 0, one>>>(data, more);
  take<<<2, 256, 0, two>>>(data, more + COUNT / 2);
  return 0;
}
static int captured(void) { /* a fork and a join, as in simpleCudaGraphs */
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
static int allocated_in_order(void) { /* as in streamOrderedAllocation */
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
static int host_function(void) {
  int calls = 0;
  run(data, one);
  CHECK(cudaLaunchHostFunc(one, call_back, &calls));
  CHECK(cudaStreamSynchronize(one));
  run(data, two);
  return calls == 1 ? 0 : 1;
}
static void CUDART_CB change(void *memory) { ++*(int *)memory; }
static int pinned_in_order(void) { /* changed by a kernel and a host function, each in its turn */
  CHECK(cudaMemcpyAsync(data, pinned, BYTES, cudaMemcpyHostToDevice, one));
  run(pinned, one);
  CHECK(cudaMemcpyAsync(more, pinned, BYTES, cudaMemcpyHostToDevice, one));
  CHECK(cudaLaunchHostFunc(one, change, pinned));
  CHECK(cudaStreamSynchronize(one));
  return 0;
}
static int freed_after_use(void) { /* cudaFree waits for the device */
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

static int flags_between_streams(void) {
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

static const struct StreamCase {
  const char *name;
  int (*run)(void);
} cases[] = {{"kernels-without-event", kernels_without_event},
             {"copy-without-event", copy_without_event},
             {"kernel-after-copy", kernel_after_copy},
             {"copy-over-what-a-copy-reads", copy_over_what_a_copy_reads},
             {"fill-over-what-a-copy-reads", fill_over_what_a_copy_reads},
             {"copies-through-pinned", copies_through_pinned},
             {"fill-of-default-stream", fill_of_default_stream},
             {"event-recorded-too-early", event_recorded_too_early},
             {"freed-while-in-use", freed_while_in_use},
             {"rows-without-event", rows_without_event},
             {"rows-apart", rows_apart},
             {"source-changed", source_changed},
             {"destination-changed", destination_changed},
             {"graph-without-edge", graph_without_edge},
             {"graph-with-edge", graph_with_edge},
             {"with-event", with_event},
             {"default-stream-between", default_stream_between},
             {"host-between", host_between},
             {"copies-in-parts", copies_in_parts},
             {"readers", readers},
             {"captured", captured},
             {"allocated-in-order", allocated_in_order},
             {"host-function", host_function},
             {"pinned-in-order", pinned_in_order},
             {"freed-after-use", freed_after_use},
             {"flags-between-streams", flags_between_streams}};

int main(int argc, char **argv) {
  const int CASES = sizeof cases / sizeof cases[0];
  int which = 0;
  while (which < CASES && (argc != 2 || strcmp(argv[1], cases[which].name))) which++;
  if (which == CASES) return fprintf(stderr, "usage: stream_cases CASE\n"), 2;
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
  if (cases[which].run()) return 1;
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
