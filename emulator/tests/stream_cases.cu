/* stream_cases.cu: work of several streams and graphs on the same memory, with and without what
 * orders it (streams.bats).
 *
 *   stream_cases CASE */

#include "cases.cuh"
#include "device_memory.cuh"

typedef void Run(void);
#define CASE(name) CASE_OF(Run, name, "", static void, (void))

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

static void let_wait(cudaStream_t waits, cudaStream_t stream) {
  CUDA_CHECK(cudaEventRecord(event, stream));
  CUDA_CHECK(cudaStreamWaitEvent(waits, event, 0));
}
static void run(int *memory, cudaStream_t stream) { add<<<4, 256, 0, stream>>>(memory, 1); }

/* ---- Without order ---- */

CASE(kernels_without_event) {
  run(data, one);
  run(data, two);
}
CASE(copy_without_event) {
  run(data, one);
  CUDA_CHECK(cudaMemcpyAsync(pinned, data, BYTES, cudaMemcpyDeviceToHost, two));
}
CASE(kernel_after_copy) {
  CUDA_CHECK(cudaMemcpyAsync(data, pinned, BYTES, cudaMemcpyHostToDevice, one));
  run(data, two);
}
CASE(copy_over_what_a_copy_reads) {
  CUDA_CHECK(cudaMemcpyAsync(more, data, BYTES, cudaMemcpyDeviceToDevice, one));
  CUDA_CHECK(cudaMemcpyAsync(data, pinned, BYTES, cudaMemcpyHostToDevice, two));
}
CASE(fill_over_what_a_copy_reads) {
  CUDA_CHECK(cudaMemcpyAsync(more, data, BYTES, cudaMemcpyDeviceToDevice, one));
  CUDA_CHECK(cudaMemsetAsync(data, 0, BYTES, two));
}
CASE(copies_through_pinned) {
  CUDA_CHECK(cudaMemcpyAsync(data, pinned, BYTES, cudaMemcpyHostToDevice, one));
  CUDA_CHECK(cudaMemcpyAsync(pinned, more, BYTES, cudaMemcpyDeviceToHost, two));
}
CASE(fill_of_default_stream) {
  CUDA_CHECK(cudaMemsetAsync(data, 0, BYTES, 0));
  run(data, other);
}
CASE(event_recorded_too_early) {
  CUDA_CHECK(cudaEventRecord(event, one));
  run(data, one);
  CUDA_CHECK(cudaStreamWaitEvent(two, event, 0));
  run(data, two);
}
CASE(freed_while_in_use) {
  int *memory;
  CUDA_CHECK(cudaMallocAsync(&memory, BYTES, one));
  CUDA_CHECK(cudaMemsetAsync(memory, 0, BYTES, one));
  CUDA_CHECK(cudaStreamSynchronize(one));
  run(memory, two);
  CUDA_CHECK(cudaFreeAsync(memory, one));
}
CASE(rows_without_event) { /* the second half of each row */
  run(data, two);
  CUDA_CHECK(cudaMemcpy2DAsync(pinned, 128, data + 16, 128, 64, 8, cudaMemcpyDeviceToHost, one));
}
CASE(rows_apart) { /* each stream its own half of each row */
  CUDA_CHECK(cudaMemset2DAsync(data, 128, 0, 64, 8, one));
  CUDA_CHECK(cudaStreamSynchronize(one));
  CUDA_CHECK(cudaMemcpy2DAsync(data, 128, pinned, 128, 64, 8, cudaMemcpyHostToDevice, one));
  CUDA_CHECK(cudaMemcpy2DAsync(data + 16, 128, pinned, 128, 64, 8, cudaMemcpyHostToDevice, two));
}
CASE(source_changed) {
  CUDA_CHECK(cudaMemcpyAsync(data, pinned, BYTES, cudaMemcpyHostToDevice, one));
  pinned[7] = 5;
  CUDA_CHECK(cudaStreamSynchronize(one));
}
CASE(destination_changed) {
  CUDA_CHECK(cudaMemcpyAsync(pinned, data, BYTES, cudaMemcpyDeviceToHost, one));
  pinned[8] = 6;
  CUDA_CHECK(cudaStreamSynchronize(one));
}

static void run_graph(bool edge) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CUDA_CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  let_wait(two, one);
  run(data, one);
  if (edge) let_wait(two, one);
  run(data, two);
  let_wait(one, two);
  CUDA_CHECK(cudaStreamEndCapture(one, &graph));
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaGraphLaunch(exec, one));
  CUDA_CHECK(cudaGraphLaunch(exec, two)); /* an executable graph does not overlap with itself */
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaGraphDestroy(graph));
}
CASE(graph_without_edge) { run_graph(false); }
CASE(graph_with_edge) { run_graph(true); }

/* ---- In order ---- */

CASE(with_event) {
  run(data, one);
  let_wait(two, one);
  run(data, two);
  CUDA_CHECK(cudaMemcpyAsync(pinned, data, BYTES, cudaMemcpyDeviceToHost, two));
  CUDA_CHECK(cudaEventRecord(event, two));
  CUDA_CHECK(cudaEventSynchronize(event));
  pinned[0]++;
  run(data, other);
}
CASE(default_stream_between) {
  run(data, one);
  run(data, 0);
  run(data, two);
  CUDA_CHECK(cudaMemset(data, 0, BYTES));
  run(data, one);
}
CASE(host_between) {
  run(data, one);
  CUDA_CHECK(cudaStreamSynchronize(one));
  run(data, other);
  while (cudaStreamQuery(other) == cudaErrorNotReady) continue;
  run(data, two);
  CUDA_CHECK(cudaDeviceSynchronize());
  run(data, other);
  CUDA_CHECK(cudaStreamSynchronize(other));
  CUDA_CHECK(cudaMemcpy(host, data, BYTES, cudaMemcpyDeviceToHost));
}
CASE(copies_in_parts) { /* as in NVIDIA's simpleMultiCopy and asyncAPI */
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 2; i++) {
      cudaStream_t stream = i ? two : other;
      int *part = data + i * COUNT / 2, *to = more + i * COUNT / 2;
      CUDA_CHECK(
          cudaMemcpyAsync(part, pinned + i * COUNT / 2, BYTES / 2, cudaMemcpyHostToDevice, stream));
      take<<<2, 256, 0, stream>>>(part, to);
      CUDA_CHECK(
          cudaMemcpyAsync(pinned + i * COUNT / 2, to, BYTES / 2, cudaMemcpyDeviceToHost, stream));
    }
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < COUNT; i++) pinned[i] = i;
}
CASE(readers) {
  take<<<2, 256, 0, one>>>(data, more);
  take<<<2, 256, 0, two>>>(data, more + COUNT / 2);
}
CASE(captured) { /* a fork and a join, as in simpleCudaGraphs */
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaEvent_t joined;
  CUDA_CHECK(cudaEventCreate(&joined));
  CUDA_CHECK(cudaStreamBeginCapture(other, cudaStreamCaptureModeGlobal));
  put<<<4, 256, 0, other>>>(data, 1);
  let_wait(two, other);
  put<<<2, 256, 0, two>>>(data, 2);
  put<<<2, 256, 0, other>>>(data + 512, 3);
  CUDA_CHECK(cudaEventRecord(joined, two));
  CUDA_CHECK(cudaStreamWaitEvent(other, joined, 0));
  CUDA_CHECK(cudaMemcpyAsync(more, data, BYTES, cudaMemcpyDeviceToDevice, other));
  CUDA_CHECK(cudaStreamEndCapture(other, &graph));
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; i++) CUDA_CHECK(cudaGraphLaunch(exec, one));
  CUDA_CHECK(cudaMemcpyAsync(pinned, more, BYTES, cudaMemcpyDeviceToHost, one));
  CUDA_CHECK(cudaStreamSynchronize(one));
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaGraphDestroy(graph));
}
CASE(allocated_in_order) { /* as in streamOrderedAllocation */
  for (int i = 0; i < 3; i++) {
    int *memory;
    CUDA_CHECK(cudaMallocAsync(&memory, BYTES, other));
    CUDA_CHECK(cudaMemsetAsync(memory, 0, BYTES, other));
    run(memory, other);
    let_wait(two, other);
    run(memory, two);
    CUDA_CHECK(cudaFreeAsync(memory, two));
  }
}
static void CUDART_CB call_back(void *count) { ++*(int *)count; }
CASE(host_function) {
  int calls = 0;
  run(data, one);
  CUDA_CHECK(cudaLaunchHostFunc(one, call_back, &calls));
  CUDA_CHECK(cudaStreamSynchronize(one));
  run(data, two);
  if (calls != 1) exit(1);
}
static void CUDART_CB change(void *memory) { ++*(int *)memory; }
CASE(pinned_in_order) { /* changed by a kernel and a host function, each in its turn */
  CUDA_CHECK(cudaMemcpyAsync(data, pinned, BYTES, cudaMemcpyHostToDevice, one));
  run(pinned, one);
  CUDA_CHECK(cudaMemcpyAsync(more, pinned, BYTES, cudaMemcpyHostToDevice, one));
  CUDA_CHECK(cudaLaunchHostFunc(one, change, pinned));
  CUDA_CHECK(cudaStreamSynchronize(one));
}
CASE(freed_after_use) { /* cudaFree waits for the device */
  int *memory;
  CUDA_CHECK(cudaMalloc(&memory, BYTES));
  CUDA_CHECK(cudaMemset(memory, 0, BYTES));
  CUDA_CHECK(cudaDeviceSynchronize());
  run(memory, other);
  CUDA_CHECK(cudaFree(memory));
}

/* Raises a flag to this value, and waits until the other one has it, too. */
static __device__ void meet(int *flag, int *flag_of_peer, int value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
  for (int seen = 0; seen < value;)
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag_of_peer) : "memory");
}

/* Two kernels that exchange parts as an all-reduce does: each stores its part, then a flag for the
 * other one, and waits for the other one's. */
__global__ void exchange(int *parts, int *flags, int rank, int *to) {
  int i = threadIdx.x, peer = 1 - rank;
  parts[rank * blockDim.x + i] = rank + 1;
  __syncthreads();
  if (i == 0) meet(flags + rank, flags + peer, 1);
  __syncthreads();
  to[i] = parts[peer * blockDim.x + i];
  __syncthreads();
  if (i == 0) meet(flags + rank, flags + peer, 2);
}

CASE(flags_between_streams) {
  enum { THREADS = 128 };
  exchange<<<1, THREADS, 0, one>>>(data, data + 2 * THREADS, 0, more);
  exchange<<<1, THREADS, 0, two>>>(data, data + 2 * THREADS, 1, more + THREADS);
  /* what the other one has read may change after the second exchange of flags */
  add<<<1, THREADS, 0, one>>>(data, 1);
  add<<<1, THREADS, 0, two>>>(data + THREADS, 1);
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(host, more, 2 * THREADS * 4, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 2 * THREADS; i++)
    if (host[i] != 2 - i / THREADS) {
      printf("%d: %d\n", i, host[i]);
      exit(1);
    }
}

int main(int argc, char **argv) {
  const Case<Run> *chosen = choose_case<Run>(argc, argv);
  CUDA_CHECK(cudaStreamCreate(&one));
  CUDA_CHECK(cudaStreamCreate(&two));
  CUDA_CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CUDA_CHECK(cudaEventCreate(&event));
  data = device_filled<int>(COUNT, 0);
  more = device_filled<int>(COUNT, 0);
  CUDA_CHECK(cudaMallocHost(&pinned, BYTES));
  CUDA_CHECK(cudaDeviceSynchronize());
  chosen->run();
  CUDA_CHECK(cudaDeviceSynchronize());
  return 0;
}
