// host_threads.cu: eight host threads use the runtime at once: launches, copies, streams, events,
// symbols, memory. Each thread has its own last error, as on a GPU.
//
//   build/emulator/tests/host_threads    the last line is PASS or FAIL
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 6, BLOCKS = 4, COUNT = 256 };

__device__ unsigned launches;
__constant__ unsigned factor = 3;

__global__ void scale(unsigned *values, unsigned add) {
  __shared__ unsigned tile[COUNT];
  values += blockIdx.x * COUNT;
  tile[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = tile[COUNT - 1 - threadIdx.x] * factor + add;
  if (threadIdx.x == 0) atomicAdd(&launches, 1u);
}

static pthread_barrier_t all_here;

#define CHECK(good)                                           \
  do {                                                        \
    if (!(good)) {                                            \
      printf("host_threads: line %d: %s\n", __LINE__, #good); \
      return (void *)1;                                       \
    }                                                         \
  } while (0)

// Not by <<<>>>: the function that nvcc makes for that writes a static variable in every launch, which
// ThreadSanitizer would report.
static cudaError_t launch(unsigned blocks, unsigned threads, cudaStream_t stream, unsigned *values,
                          unsigned add) {
  void *arguments[] = {&values, &add};
  return cudaLaunchKernel((const void *)scale, dim3(blocks), dim3(threads), arguments, 0, stream);
}

// The threads with even numbers make a mistake; the others must not see it.
static void *provoke_errors(int number) {
  CHECK(cudaGetLastError() == cudaSuccess);
  pthread_barrier_wait(&all_here);
  if (number % 2 == 0) CHECK(launch(1, 4096, NULL, NULL, 0) != cudaSuccess);
  pthread_barrier_wait(&all_here);
  if (number % 2 == 0) {
    CHECK(cudaPeekAtLastError() != cudaSuccess);
    CHECK(cudaGetLastError() != cudaSuccess);
  }
  CHECK(cudaGetLastError() == cudaSuccess);
  return NULL;
}

// What is asked about memory while other threads allocate some: the table that answers moves.
static void *look_at_memory(unsigned *managed) {
  void *place;
  size_t free_bytes, bytes;
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, managed) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeManaged);
  CHECK(cudaMemGetInfo(&free_bytes, &bytes) == cudaSuccess);
  CHECK(free_bytes < bytes);
  CHECK(cudaHostGetDevicePointer(&place, managed, 0) == cudaSuccess);
  CHECK(cudaMemset(managed, 0, sizeof *managed) == cudaSuccess);
  CHECK(cudaMallocAsync(&place, COUNT, NULL) == cudaSuccess);
  CHECK(cudaFreeAsync(place, NULL) == cudaSuccess);
  return NULL;
}

// Every way to get memory that kernels may use: the kernels of the other threads look their memory up meanwhile.
static void *use_memory(void) {
  unsigned values[COUNT], *pinned, *managed;
  cudaGraph_t graph;
  cudaStream_t stream;
  void *captured;
  CHECK(cudaHostAlloc((void **)&pinned, sizeof values, 0) == cudaSuccess);
  CHECK(cudaMallocManaged((void **)&managed, sizeof values) == cudaSuccess);
  CHECK(cudaHostRegister(values, sizeof values, 0) == cudaSuccess);
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK(cudaMallocAsync(&captured, sizeof values, stream) == cudaSuccess);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(look_at_memory(managed) == NULL);
  CHECK(cudaHostUnregister(values) == cudaSuccess);
  CHECK(cudaFree(managed) == cudaSuccess);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  return NULL;
}

static void *use_the_runtime(void *argument) {
  int number = (int)(long)argument;
  unsigned values[BLOCKS * COUNT], *device = NULL;
  if (provoke_errors(number)) return (void *)1;
  for (int round = 0; round < ROUNDS; round++) {
    cudaStream_t stream = NULL;
    cudaEvent_t event;
    CHECK(cudaMalloc((void **)&device, sizeof values) == cudaSuccess);
    if (round % 2) CHECK(cudaStreamCreate(&stream) == cudaSuccess);
    CHECK(cudaEventCreate(&event) == cudaSuccess);
    for (unsigned i = 0; i < BLOCKS * COUNT; i++) values[i] = i + (unsigned)number;
    CHECK(cudaMemcpyAsync(device, values, sizeof values, cudaMemcpyHostToDevice, stream) ==
          cudaSuccess);
    CHECK(launch(BLOCKS, COUNT, stream, device, (unsigned)number) == cudaSuccess);
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(use_memory() == NULL);
    CHECK(cudaEventRecord(event, stream) == cudaSuccess);
    CHECK(cudaEventSynchronize(event) == cudaSuccess);
    CHECK(cudaMemcpyAsync(values, device, sizeof values, cudaMemcpyDeviceToHost, stream) ==
          cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    for (unsigned i = 0; i < BLOCKS * COUNT; i++) {
      unsigned source = i / COUNT * COUNT + COUNT - 1 - i % COUNT + (unsigned)number;
      CHECK(values[i] == source * 3 + (unsigned)number);
    }
    int resident = 0;
    cudaFuncAttributes attributes;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, scale, COUNT, 0) == cudaSuccess);
    CHECK(resident == 8);
    CHECK(cudaFuncGetAttributes(&attributes, scale) == cudaSuccess);
    void *address = NULL;
    CHECK(cudaGetSymbolAddress(&address, launches) == cudaSuccess);
    CHECK(cudaEventDestroy(event) == cudaSuccess);
    if (stream) CHECK(cudaStreamDestroy(stream) == cudaSuccess);
    CHECK(cudaFree(device) == cudaSuccess);
  }
  return NULL;
}

// A signal that all of the program's threads have blocked stays pending: no thread of the emulator's takes it.
static void *signal_stays_pending(void) {
  sigset_t mask, pending;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &mask, NULL);
  kill(getpid(), SIGUSR1);
  sched_yield();
  sigpending(&pending);
  CHECK(sigismember(&pending, SIGUSR1));
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  int failed = 0;
  pthread_barrier_init(&all_here, NULL, THREADS);
  for (long i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, use_the_runtime, (void *)i) != 0) return 2;
  for (int i = 0; i < THREADS; i++) {
    void *result;
    pthread_join(threads[i], &result);
    failed += result != NULL;
  }
  unsigned count = 0;
  if (cudaMemcpyFromSymbol(&count, launches, sizeof count) != cudaSuccess) failed++;
  count /= BLOCKS;
  if (count != THREADS * ROUNDS) failed++;
  if (cudaDeviceSynchronize() != cudaSuccess) failed++;
  if (signal_stays_pending() != NULL) failed++;
  if (failed) {
    printf("FAIL host_threads: %d of %d threads failed, %u launches\n", failed, THREADS, count);
    return 1;
  }
  printf("PASS host_threads: %d threads, %u launches\n", THREADS, count);
  return 0;
}
