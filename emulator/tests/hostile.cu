/* hostile.cu: kernels and calls that misuse memory, the device's heap, printf and the runtime.
 *
 *   hostile CASE
 *
 * Each case is a process of its own; it prints what the calls answer. Nothing may crash, and
 * nothing of the host's memory may change that no kernel was given. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver_call.cuh"

#define SHOW(call)                                                  \
  do {                                                              \
    cudaError_t error_ = (call);                                    \
    printf("%s: %d %s\n", #call, error_, cudaGetErrorName(error_)); \
    fflush(stdout);                                                 \
  } while (0)

__device__ char *kept;

/* ---- The device's heap ---- */
__global__ void use_after_free(long value) {
  long *block = (long *)malloc(64);
  free(block);
  block[0] = value; /* once the list of freed blocks stood here */
  kept = (char *)malloc(64);
  kept = (char *)malloc(64);
}
__global__ void free_twice(void) {
  char *block = (char *)malloc(64);
  free(block);
  free(block);
}
__global__ void free_inside(void) { free((char *)malloc(64) + 16); }
__global__ void free_foreign(char *memory) { free(memory); }
__global__ void overrun(int bytes, int at) {
  char *block = (char *)malloc(bytes);
  block[at] = 1;
}
__global__ void keep_block(void) {
  kept = (char *)malloc(64);
  memset(kept, 7, 64);
}
__global__ void count_kept(int *sum) { *sum = kept[0] + kept[63]; }
/* A heap that is used up and given back serves again, whatever the sizes. */
__global__ void fill_heap(int *blocks) {
  for (int round = 0; round < 4; round++) {
    char *first = NULL;
    int bytes = 1000 << (2 * round), count = 0;
    for (char *block; (block = (char *)malloc(bytes)) != NULL; first = block, count++) {
      memcpy(block, &first, sizeof first);
      block[bytes - 1] = (char)count;
    }
    blocks[round] = count;
    while (first) {
      char *next;
      memcpy(&next, first, sizeof next);
      free(first);
      first = next;
    }
  }
}

static void heap_case(const char *name) {
  char *host = (char *)malloc(4096), *device;
  int changed = 0, *counts, answer[4];
  memset(host, 'S', 4096);
  SHOW(cudaMalloc(&device, 64));
  SHOW(cudaMalloc(&counts, sizeof answer));
  if (strcmp(name, "use-after-free") == 0) use_after_free<<<1, 1>>>((long)(host + 1024));
  if (strcmp(name, "free-twice") == 0) free_twice<<<1, 1>>>();
  if (strcmp(name, "free-inside") == 0) free_inside<<<1, 1>>>();
  if (strcmp(name, "free-foreign") == 0) free_foreign<<<1, 1>>>(device);
  if (strcmp(name, "overrun") == 0) overrun<<<1, 1>>>(50, 50);
  if (strcmp(name, "underrun") == 0) overrun<<<1, 1>>>(50, -1);
  if (strcmp(name, "last-byte") == 0) overrun<<<1, 1>>>(50, 49);
  if (strcmp(name, "fill-heap") == 0) {
    fill_heap<<<1, 1>>>(counts);
    SHOW(cudaMemcpy(answer, counts, sizeof answer, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 4; i++)
      printf("%d bytes: %s\n", 1000 << (2 * i),
             (long)answer[i] * (1000 << (2 * i)) > 6 << 20 ? "most of 8 MiB" : "too few");
  }
  SHOW(cudaDeviceSynchronize());
  for (int i = 0; i < 4096; i++) changed += host[i] != 'S';
  printf("bytes of the host changed: %d\n", changed);
}

static void heap_and_host(void) {
  char *block;
  int *sum, answer = 0;
  SHOW(cudaMalloc(&sum, sizeof answer));
  keep_block<<<1, 1>>>();
  SHOW(cudaMemcpyFromSymbol(&block, kept, sizeof block));
  SHOW(cudaFree(block));
  for (int back = 16; back <= 64; back += 16)
    if (cudaFree(block - back) != cudaErrorInvalidValue) printf("the heap was freed\n");
  SHOW(cudaMemcpy(&answer, block, 4, cudaMemcpyDeviceToHost));
  SHOW(cudaMemset(block, 0, 4));
  count_kept<<<1, 1>>>(sum);
  SHOW(cudaMemcpy(&answer, sum, sizeof answer, cudaMemcpyDeviceToHost));
  printf("sum %d\n", answer);
}

/* ---- printf ---- */
__global__ void print_wide(int width) {
  char local[8] = {'l', 'o', 'c', 'a', 'l', 0, 0, 0};
  int taken = printf("[%600d]\n", 5);
  printf("%d [%.700f] [%-5s|%5s|%.2s] %c%c %%\n", taken, 1.0 / 3, "ab", "cd", "efgh", 'x', 'y');
  printf("[%*d] [%-*d] [%.*f]\n", 7, 1, 7, 2, 2, 3.14159);
  printf("[%s] [%s] [%hhd] [%hd] [%lld] [%zu]\n", local, (char *)NULL, 257, 65537, 1ll << 40,
         sizeof(int));
  if (width) printf("%*d\n", width, 1);
}
__global__ void print_damaged(const char *format, const char *string) { printf(format, string); }

static void print_case(const char *name) {
  char *format;
  SHOW(cudaMalloc(&format, 8));
  SHOW(cudaMemcpy(format, "%s %d %", 8, cudaMemcpyHostToDevice));
  if (strcmp(name, "print") == 0) print_wide<<<1, 1>>>(0);
  if (strcmp(name, "print-wide") == 0) print_wide<<<1, 1>>>(2147483647);
  if (strcmp(name, "print-wild-string") == 0) print_damaged<<<1, 1>>>(format, (char *)0x1234);
  if (strcmp(name, "print-wild-format") == 0) print_damaged<<<1, 1>>>((char *)0x1234, format);
  if (strcmp(name, "print-no-end") == 0) {
    SHOW(cudaMemset(format, '%', 8));
    print_damaged<<<1, 1>>>(format, format);
  }
  SHOW(cudaDeviceSynchronize());
}

/* ---- Graphs, memory of the host ---- */
__global__ void fill(int *words) { words[threadIdx.x] = threadIdx.x; }
__global__ void touch(char *byte) { *byte = 1; }

static void graph_memory(void) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStream_t stream;
  int words[32], *device;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  cudaMallocAsync(&device, sizeof words, stream);
  fill<<<1, 32, 0, stream>>>(device);
  cudaMemcpyAsync(words, device, sizeof words, cudaMemcpyDeviceToHost, stream);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  for (int i = 0; i < 3; i++) {
    int sum = 0;
    memset(words, 0, sizeof words);
    cudaGraphLaunch(exec, 0);
    cudaError_t error = cudaDeviceSynchronize();
    for (int k = 0; k < 32; k++) sum += words[k];
    printf("sum %d, launch %d\n", sum, error);
    error = cudaFree(device);
    printf("free %d, again %d\n", error, cudaFree(device));
  }
  fill<<<1, 32>>>(device);
  SHOW(cudaDeviceSynchronize());
}

static void host_memory(void) {
  char *device,
      *pages = (char *)mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  static const char constant[64] = "constant";
  void *wild = (void *)0x10;
  cudaMalloc(&device, 1 << 20);
  munmap(pages + 4096, 4096);
  printf("register wild %d, huge %d, plain %d\n", cudaHostRegister((void *)0x10000, 1 << 20, 0),
         cudaHostRegister((void *)0x10000, 0x7ffffffe0000, 0), cudaHostRegister(pages, 4096, 0));
  int to_wild = cudaMemcpy(wild, device, 16, cudaMemcpyDeviceToHost);
  int from_wild = cudaMemcpy(device, wild, 16, cudaMemcpyHostToDevice);
  int to_constant = cudaMemcpy((void *)constant, device, 64, cudaMemcpyDeviceToHost);
  int past_end = cudaMemcpy(device, pages + 100, 8000, cudaMemcpyHostToDevice);
  printf("copy to wild %d, from wild %d, to constant %d, past the end %d, async %d\n", to_wild,
         from_wild, to_constant, past_end,
         cudaMemcpyAsync(device, wild, 16, cudaMemcpyHostToDevice, 0));
  munmap(pages, 4096);
  touch<<<1, 1>>>(pages);
  printf("unmapped since: %d\n", cudaDeviceSynchronize());
}

/* ---- Where calls may not be made ---- */
static void calls_within(void *) {
  void *memory;
  int errors[] = {cudaDeviceSynchronize(), cudaMalloc(&memory, 16), cudaStreamQuery(0),
                  cudaMemset(&memory, 0, 4)};
  printf("in the callback: %d %d %d %d\n", errors[0], errors[1], errors[2], errors[3]);
}
static void callback(void) {
  cudaLaunchHostFunc(0, calls_within, NULL);
  printf("behind it: %d\n", cudaDeviceSynchronize());
}
static int work(const char *who) {
  void *memory;
  int first = cudaMalloc(&memory, 1 << 16);
  fill<<<8, 32>>>((int *)memory); /* several blocks: the host's threads */
  int second = cudaGetLastError(), third = cudaDeviceSynchronize();
  printf("%s: %d %d %d\n", who, first, second, third);
  fflush(stdout);
  return first;
}
static void fork_now(bool first) {
  int status;
  if (!first) work("before");
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    work("child");
    _exit(0);
  }
  waitpid(child, &status, 0);
  work("parent");
}

/* ---- Shared memory that is the system's ---- */
__global__ void empty_descriptors(float *out) {
  float d[4] = {};
  unsigned long long none = 0;
  asm volatile(
      "wgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3},%4,%4,1,1,1,0,0;\n"
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(none));
  out[threadIdx.x] = d[0];
}
static void descriptors(void) {
  float *out;
  cudaMalloc(&out, 128 * sizeof *out);
  empty_descriptors<<<1, 128>>>(out);
  SHOW(cudaDeviceSynchronize());
}

/* Two instructions in one line of PTX. */
__global__ void null_shared(void) {
  asm volatile("{ .reg .u32 v; ld.shared.u32 v, [%0]; st.shared.u32 [%0], v; }" ::"r"(0)
               : "memory");
}
static void shared_zero(void) {
  null_shared<<<1, 1>>>();
  SHOW(cudaDeviceSynchronize());
}

/* ---- Pointers of the host ---- */
static char in_program[4096];
__global__ void write_host(char *memory) { *memory = 1; }
static void give_to_kernel(char *memory) {
  write_host<<<1, 1>>>(memory);
  SHOW(cudaDeviceSynchronize());
}
/* Pinned memory and what the emulator keeps for __device__ variables are its neighbours. */
static void host_heap(void) {
  char *pinned;
  cudaMallocHost(&pinned, 100);
  give_to_kernel((char *)malloc(100));
}
static void host_variable(void) { give_to_kernel(in_program); }
static void past_pinned(void) {
  char *pinned;
  cudaMallocHost(&pinned, 100);
  give_to_kernel(pinned + 100);
}

/* What was registered, or is a variable of the device, is not what cudaHostAlloc has allocated. */
static void free_or_unregister(void) {
  char *pinned, *variable;
  char *pages =
      (char *)mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  cudaMallocHost(&pinned, 64);
  cudaHostRegister(pages, 8192, 0);
  cudaGetSymbolAddress((void **)&variable, kept);
  printf("free registered %d, variable %d; ", cudaFreeHost(pages), cudaFreeHost(variable));
  printf("unregister pinned %d, variable %d\n", cudaHostUnregister(pinned),
         cudaHostUnregister(variable));
  printf("register pinned %d, around %d; unregister NULL %d\n", cudaHostRegister(pinned, 64, 0),
         cudaHostRegister(pages, (size_t)-1, 0), cudaHostUnregister(NULL));
  char *still_there = pinned;
  printf("still there %d; ", cudaMemcpyToSymbol(kept, &still_there, sizeof still_there));
  printf("free pinned %d, unregister registered %d\n", cudaFreeHost(pinned),
         cudaHostUnregister(pages));
}

/* A CUtensorMap must begin at a multiple of 64. */
static void misaligned_map(void) {
  cudaFree(NULL);
  alignas(64) static char buffer[256];
  const cuuint64_t size[1] = {1024}, strides[1] = {};
  const cuuint32_t box[1] = {32}, element_strides[1] = {1};
  for (int past = 0; past <= 16; past += 16)
    printf("%d past: %d\n", past,
           DRIVER(cuTensorMapEncodeTiled)(
               (CUtensorMap *)(buffer + 64 + past), CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1, buffer,
               size, strides, box, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
               CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  printf("the map's address is %p\n", (void *)(buffer + 80));
}

int main(int argc, char **argv) {
  const char *name = argc == 2 ? argv[1] : "";
  static const struct {
    const char *name;
    void (*run)(void);
  } cases[] = {{"heap-and-host", heap_and_host},   {"graph-memory", graph_memory},
               {"host-memory", host_memory},       {"callback", callback},
               {"empty-descriptors", descriptors}, {"null-shared", shared_zero},
               {"host-heap", host_heap},           {"host-variable", host_variable},
               {"past-pinned", past_pinned},       {"free-or-unregister", free_or_unregister},
               {"misaligned-map", misaligned_map}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (strcmp(name, cases[i].name) == 0) return cases[i].run(), 0;
  if (strncmp(name, "fork", 4) == 0)
    fork_now(strcmp(name, "fork-first") == 0);
  else if (strncmp(name, "print", 5) == 0)
    print_case(name);
  else
    heap_case(name);
  return 0;
}
