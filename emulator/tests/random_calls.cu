/* random_calls.cu: host programs drawn at random, which use the runtime as no program should.
 *
 *   random_calls [PROGRAMS [FIRST_SEED]]
 *   random_calls --show SEED
 *
 * Each program runs in a process of its own: a row of calls, half of the time from two host threads
 * at once, on streams, events, graphs, memory that live, are destroyed, are in
 * use, were never made, or are of another kind. Its kernels misuse the device's heap, printf and
 * wild addresses. A call may refuse, a kernel may fail, and the checker may report something; but
 * no signal may end the process, it may not hang, and host memory that was not handed over stays as
 * it is. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KINDS = 10, SLOTS = 6, HOST_WORDS = 1024, CALLS_MOST = 60, SECONDS_MOST = 60 };
typedef enum { STREAM, EVENT, GRAPH, EXEC, MEMORY, HOST } Kind;

static const uint64_t CANARY = 0x5ec7e7c0ffee5ec7ull;
static uint64_t before[HOST_WORDS], words[HOST_WORDS], after[HOST_WORDS];
static void *slots[KINDS][SLOTS]; /* a slot keeps its handle when the handle is destroyed */
static bool show;

/* ---- Drawing ---- */
static __thread uint64_t state;
static uint32_t draw(uint32_t below) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(state >> 33) % below;
}

/* Two host threads use the slots at once. */
static void *slot(int kind, uint32_t number) {
  return __atomic_load_n(&slots[kind][number], __ATOMIC_RELAXED);
}
static void fill_slot(int kind, uint32_t number, void *value) {
  __atomic_store_n(&slots[kind][number], value, __ATOMIC_RELAXED);
}

static void *wild(void) {
  switch (draw(6)) {
    case 0:
      return NULL;
    case 1:
      return (void *)(uintptr_t)(1 + draw(3)); /* also cudaStreamLegacy and cudaStreamPerThread */
    case 2:
      return words + draw(HOST_WORDS);
    case 3:
      return (void *)~(uintptr_t)draw(64);
    case 4: {
      int kind = (int)draw(KINDS);
      return slot(kind, draw(SLOTS));
    }
    default:
      return (void *)((uintptr_t)draw(1u << 30) << draw(32));
  }
}

template <typename T>
static T any(Kind kind) {
  void *found = draw(8) == 0 ? wild() : slot(kind, draw(SLOTS));
  if (kind == STREAM && draw(4) == 0) found = NULL;
  return (T)found;
}
#define ANY_STREAM any<cudaStream_t>(STREAM)
#define ANY_EVENT any<cudaEvent_t>(EVENT)
#define ANY_GRAPH any<cudaGraph_t>(GRAPH)
#define ANY_EXEC any<cudaGraphExec_t>(EXEC)
#define ANY_MEMORY any<char *>(MEMORY)

/* Where a call puts a new handle: it moves to its slot when the call has returned. */
static __thread struct {
  void *handle;
  int kind;
  uint32_t number;
  bool wanted;
} made;
template <typename T>
static T *fresh(Kind kind) {
  made.kind = kind;
  made.number = draw(SLOTS);
  made.handle = slot(made.kind, made.number);
  made.wanted = true;
  return (T *)(void *)&made.handle;
}
static void keep_made(void) {
  if (made.wanted) fill_slot(made.kind, made.number, made.handle);
  made.wanted = false;
}

static size_t size(void) {
  static const size_t sizes[] = {0, 1, 4, 64, 255, 4096, 8192, 65536, 1u << 20};
  static const size_t wild_sizes[] = {~(size_t)0, (size_t)1 << 62, (size_t)1 << 47, ~(size_t)0 / 2};
  return draw(10) ? sizes[draw(9)] : wild_sizes[draw(4)];
}
static size_t host_size(void) { return draw(sizeof words + 1); }

/* ---- Kernels ---- */
__global__ void fill(int *at, int count) {
  for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x) at[i] = i;
}

static __device__ void misuse_heap(char *at, int way, char *mine, char *shared) {
  switch (way % 32) {
    case 0:
      free(shared);
      break; /* by every thread */
    case 1:
      if (mine) free(mine + 8);
      break; /* not its start */
    case 2:
      free(at);
      break; /* not of this heap */
    case 3:
      free(mine);
      if (mine) *mine = 1;
      break;
    case 4:
      free(mine);
      if (mine) at[0] = *mine;
      break;
    case 5:
      while (malloc(1u << 18)) {
      }
      break;
    case 6:
      if (mine) memset(mine, 0xff, 64);
      free(mine);
      free(malloc(40));
      break;
    default:
      free((void *)(uintptr_t)way);
      free(mine);
      break;
  }
}

__global__ void misuse(char *at, int way) {
  __shared__ char *shared;
  char *mine = (char *)malloc(way & 64 ? 1u << 22 : 40);
  if (threadIdx.x == 0) shared = mine;
  __syncthreads();
  switch (way % 32) {
    case 7:
#pragma nv_diag_suppress 181, 224  // the arguments do not fit on purpose
      printf("%d %s %f %*d %n %c %p %lld %5.3e\n", way, at, 1.5, way, 3, at, 'x', mine, 5ll);
#pragma nv_diag_default 181, 224
      break;
    case 8:
      printf((const char *)at, way);
      break;
    case 9:
      *(volatile int *)((uintptr_t)at * 3 + way) = 5;
      break;
    case 10:
      at[(size_t)way << 20] = 1;
      break;
    case 11:
      __trap();
    case 12:
      __shfl_sync(0x0f0fu >> threadIdx.x, way, 3);
      break;
    case 13:
      if (threadIdx.x < 5) __syncthreads();
      break;
    case 14:
      ((void (*)(int))at)(3);
      break;
    default:
      misuse_heap(at, way, mine, shared);
      break;
  }
}

static void run_host(void *what) {
  cudaStream_t stream;
  if (what) cudaStreamCreate(&stream); /* refused there */
}

/* ---- Calls ---- */
static cudaKernelNodeParams kernel_node(void **arguments, char **at, int *way) {
  cudaKernelNodeParams parameters = {};
  *at = ANY_MEMORY;
  *way = (int)draw(128);
  arguments[0] = at;
  arguments[1] = way;
  parameters.func = draw(10) ? (void *)(draw(2) ? (void *)misuse : (void *)fill) : wild();
  parameters.gridDim = dim3(draw(4), 1 + draw(2), 1);
  parameters.blockDim = dim3(draw(12) ? 32 : draw(3000), 1, 1);
  parameters.sharedMemBytes = draw(8) ? 0 : (unsigned)size();
  parameters.kernelParams = draw(12) ? arguments : NULL;
  return parameters;
}

static int use_graph(void) {
  cudaGraphNode_t nodes[4];
  size_t count = draw(5);
  cudaGraphExecUpdateResultInfo info;
  const uint32_t what = draw(9);
  if (what == 0) return cudaGraphDestroy(ANY_GRAPH);
  if (what == 1 || what == 2)
    return cudaGraphInstantiate(fresh<cudaGraphExec_t>(EXEC), ANY_GRAPH, draw(12) ? 0 : draw(16));
  if (what == 3 || what == 4) return cudaGraphLaunch(ANY_EXEC, ANY_STREAM);
  if (what == 5) return cudaGraphExecDestroy(ANY_EXEC);
  if (what == 6) return cudaGraphExecUpdate(ANY_EXEC, ANY_GRAPH, &info);
  return cudaGraphGetNodes(ANY_GRAPH, draw(2) ? nodes : NULL, &count);
}

static int use_stream(void) {
  static const cudaStreamCaptureMode modes[] = {
      cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed};
  float time;
  const uint32_t what = draw(14);
  if (what == 0) return cudaStreamCreateWithFlags(fresh<cudaStream_t>(STREAM), draw(3));
  if (what == 1) return cudaStreamDestroy(ANY_STREAM);
  if (what == 2) return cudaStreamSynchronize(ANY_STREAM);
  if (what == 3) return cudaStreamWaitEvent(ANY_STREAM, ANY_EVENT, draw(3));
  if (what == 4) return cudaEventCreateWithFlags(fresh<cudaEvent_t>(EVENT), draw(5));
  if (what == 5) return cudaEventRecord(ANY_EVENT, ANY_STREAM);
  if (what == 6) return cudaEventDestroy(ANY_EVENT);
  if (what == 7) return cudaEventSynchronize(ANY_EVENT);
  if (what == 8) return cudaEventElapsedTime(&time, ANY_EVENT, ANY_EVENT);
  if (what == 9) return cudaStreamBeginCapture(ANY_STREAM, modes[draw(3)]);
  if (what == 10) return cudaStreamEndCapture(ANY_STREAM, fresh<cudaGraph_t>(GRAPH));
  if (what == 11) return cudaLaunchHostFunc(ANY_STREAM, run_host, draw(2) ? words : NULL);
  if (what == 12) return cudaStreamQuery(ANY_STREAM);
  return cudaEventQuery(ANY_EVENT);
}

static int use_memory(void) {
  cudaPointerAttributes attributes;
  size_t pitch;
  const uint32_t what = draw(15);
  if (what == 0) return cudaMalloc(fresh<void *>(MEMORY), size());
  if (what == 1) return cudaFree(ANY_MEMORY);
  if (what == 2) return cudaMallocAsync(fresh<void *>(MEMORY), size(), ANY_STREAM);
  if (what == 3) return cudaFreeAsync(ANY_MEMORY, ANY_STREAM);
  if (what == 4)
    return cudaMemcpyAsync(ANY_MEMORY, words, host_size(), cudaMemcpyHostToDevice, ANY_STREAM);
  if (what == 5) return cudaMemcpy(words, ANY_MEMORY, host_size(), cudaMemcpyDeviceToHost);
  if (what == 6) return cudaMemsetAsync(ANY_MEMORY, draw(256), size(), ANY_STREAM);
  if (what == 7)
    return cudaMemcpy2DAsync(ANY_MEMORY, size(), ANY_MEMORY, size(), size(), draw(9),
                             cudaMemcpyDeviceToDevice, ANY_STREAM);
  if (what == 8) return cudaMallocPitch(fresh<void *>(MEMORY), &pitch, size(), size());
  if (what == 9) return cudaPointerGetAttributes(&attributes, ANY_MEMORY);
  if (what == 10)
    return draw(2) ? cudaHostRegister(words, sizeof words, 0) : cudaHostUnregister(words);
  return cudaMallocManaged(fresh<void *>(MEMORY), size(), 1 + draw(2));
}

static int launch(void) {
  void *arguments[2];
  char *at;
  int way;
  cudaKernelNodeParams kernel = kernel_node(arguments, &at, &way);
  switch (draw(4)) {
    case 0:
      return draw(6) ? cudaGetLastError() : cudaDeviceReset();
    default:
      if (!kernel.kernelParams) return 0; /* reads through NULL on a GPU, too */
      return cudaLaunchKernel(kernel.func, kernel.gridDim, kernel.blockDim, arguments,
                              kernel.sharedMemBytes, ANY_STREAM);
  }
}

/* A handle of each kind in every slot: few calls refuse these. */
static void fill_slots(void) {
  for (uint32_t i = 0; i < SLOTS; i++) {
    void *handles[KINDS];
    for (int kind = 0; kind < KINDS; kind++) handles[kind] = slot(kind, i);
    cudaStreamCreate((cudaStream_t *)(void *)&handles[STREAM]);
    cudaEventCreate((cudaEvent_t *)(void *)&handles[EVENT]);
    cudaStreamBeginCapture((cudaStream_t)handles[STREAM], cudaStreamCaptureModeRelaxed);
    cudaStreamEndCapture((cudaStream_t)handles[STREAM], (cudaGraph_t *)(void *)&handles[GRAPH]);
    cudaMalloc(&handles[MEMORY], (size_t)4096 << i);
    for (int kind = 0; kind < KINDS; kind++) fill_slot(kind, i, handles[kind]);
  }
}

/* A forked child may use nothing, and must not crash or hang either. */
static int fork_and_use(void) {
  pid_t child = fork();
  if (child == 0) {
    void *memory;
    int result = cudaMalloc(&memory, 4);
    result |= cudaDeviceSynchronize();
    _exit(result != 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) abort();
  return 0;
}

static void *run_calls(void *seed) {
  state = (uint64_t)(uintptr_t)seed * 0x9e3779b97f4a7c15ull;
  int calls = 10 + (int)draw(CALLS_MOST - 10);
  for (int i = 0; i < calls; i++) {
    uint32_t which = draw(100);
    int result = which < 30   ? use_memory()
                 : which < 50 ? use_stream()
                 : which < 85 ? use_graph()
                 : which < 99 ? launch()
                              : fork_and_use();
    keep_made();
    if (show) printf("%s\n", cudaGetErrorName((cudaError_t)result));
    /* After a kernel's fault all calls fail until the device is reset. */
    if (cudaStreamQuery(cudaStreamLegacy) != cudaErrorNotReady && cudaPeekAtLastError() &&
        draw(2)) {
      if (cudaDeviceSynchronize()) cudaDeviceReset();
      if (cudaGetLastError()) fill_slots();
    }
  }
  cudaDeviceSynchronize();
  return NULL;
}

/* ---- Programs ---- */
static void run_program(unsigned long long seed) {
  for (int i = 0; i < HOST_WORDS; i++) before[i] = after[i] = CANARY;
  fill_slots();
  pthread_t other;
  bool two = seed % 2 &&
             !pthread_create(&other, NULL, run_calls, (void *)(uintptr_t)(seed + (1ull << 40)));
  run_calls((void *)(uintptr_t)seed);
  if (two) pthread_join(other, NULL);
  for (int i = 0; i < HOST_WORDS; i++)
    if (before[i] != CANARY || after[i] != CANARY) abort();
}

/* What the program printed goes nowhere: kernels and the checker say a lot. */
static bool fails(unsigned long long seed) {
  pid_t child = fork();
  if (child == 0) {
    if (!freopen("/dev/null", "w", stdout)) _exit(1);
    if (!getenv("RANDOM_CALLS_STDERR") && !freopen("/dev/null", "w", stderr)) _exit(1);
    alarm(SECONDS_MOST);
    run_program(seed);
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) exit(2);
  if (WIFSIGNALED(status))
    printf("seed %llu: signal %d\n", seed, WTERMSIG(status));
  else if (status)
    printf("seed %llu: exit code %d\n", seed, WEXITSTATUS(status));
  return status != 0;
}

static bool is_number(const char *text) {
  return *text && strspn(text, "0123456789") == strlen(text);
}

int main(int argc, char **argv) {
  if (argc == 3 && !strcmp(argv[1], "--show") && is_number(argv[2])) {
    show = true;
    run_program(strtoull(argv[2], NULL, 10));
    return 0;
  }
  if (argc > 3 || (argc > 1 && !is_number(argv[1])) || (argc > 2 && !is_number(argv[2]))) {
    fprintf(stderr, "usage: random_calls [PROGRAMS [FIRST_SEED]], or --show SEED\n");
    return 2;
  }
  unsigned long long programs = argc > 1 ? strtoull(argv[1], NULL, 10) : 100;
  unsigned long long first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, failures = 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (unsigned long long seed = first; seed < first + programs; seed++) failures += fails(seed);
  printf("%llu programs, %llu failures\n", programs, failures);
  return failures ? 1 : 0;
}
