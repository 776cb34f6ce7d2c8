// out_of_memory.cu: what happens when the host has no memory left. A child process does some work
// with the runtime, and the n-th allocation of its memory fails; there is one child for each n.
// Either the work succeeds all the same, or a call returns cudaErrorMemoryAllocation and the same
// work succeeds afterwards, or the emulator prints its message and ends the program with exit
// code 1. Nothing else may happen.
//
// out_of_memory [--first N] [--last N] [--step N]    which allocations fail, default: all
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../common/check.h"
#include "copies.cuh"

// ---- Allocations that fail ----

// The functions here take the place of the C library's, in the emulator too.
extern "C" {
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
}

static long allocations;       // how many there have been
static long failing = -1;      // the one that fails; -1: none
static bool all_from_then_on;  // the later ones fail too

static bool fails(void) {
  long number = __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
  if (failing < 0 || number < failing || (number > failing && !all_from_then_on)) return false;
  errno = ENOMEM;
  return true;
}

// By other names: in CUDA C, malloc is also the kernel's.
extern "C" {
void *host_malloc(size_t bytes) __asm__("malloc");
void *host_calloc(size_t count, size_t bytes) __asm__("calloc");
void *host_realloc(void *old, size_t bytes) __asm__("realloc");
void *host_aligned_alloc(size_t alignment, size_t bytes) __asm__("aligned_alloc");
void *host_malloc(size_t bytes) { return fails() ? NULL : __libc_malloc(bytes); }
void *host_calloc(size_t count, size_t bytes) {
  return fails() ? NULL : __libc_calloc(count, bytes);
}
void *host_realloc(void *old, size_t bytes) { return fails() ? NULL : __libc_realloc(old, bytes); }
void *host_aligned_alloc(size_t alignment, size_t bytes) {
  return fails() ? NULL : __libc_memalign(alignment, bytes);
}
}

// ---- The work ----

enum { WORDS = 1024, BLOCKS = 3, THREADS = 128 };

__device__ int total;

__global__ void add_tiles(int *sums, const int *numbers) {
  __shared__ alignas(16) int tile[WORDS];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) init_and_load(tile, numbers + blockIdx.x * WORDS, sizeof tile, &barrier);
  __syncthreads();
  mbarrier_wait_parity(&barrier, 0);
  int sum = 0;
  for (int i = threadIdx.x; i < WORDS; i += THREADS) sum += tile[i];
  int *scratch = (int *)malloc(sizeof *scratch);
  if (scratch) *scratch = sum;
  atomicAdd(&sums[blockIdx.x], scratch ? *scratch : sum);
  atomicAdd(&total, sum);
  free(scratch);
  if (threadIdx.x == 0) printf("block %d\n", blockIdx.x);
}

#define TRY(call)                           \
  do {                                      \
    cudaError_t error = (call);             \
    if (error != cudaSuccess) return error; \
  } while (0)

static cudaError_t launch(cudaStream_t stream, int *sums, const int *numbers) {
  void *arguments[] = {&sums, &numbers};
  return cudaLaunchKernel((const void *)add_tiles, dim3(BLOCKS), dim3(THREADS), arguments, 0,
                          stream);
}

static cudaError_t work_in_graph(cudaStream_t stream, int *sums, const int *numbers) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  cudaError_t launched = launch(stream, sums, numbers);
  cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  TRY(launched);
  TRY(ended);
  TRY(cudaGraphInstantiate(&executable, graph, 0));
  TRY(cudaGraphLaunch(executable, stream));
  TRY(cudaStreamSynchronize(stream));
  TRY(cudaGraphExecDestroy(executable));
  return cudaGraphDestroy(graph);
}

// The error of the call that failed. *right: what was computed.
static cudaError_t work(bool *right) {
  static int numbers[BLOCKS * WORDS];
  int sums[BLOCKS], zero = 0, sum_of_all = 0, *device_numbers, *device_sums;
  for (int i = 0; i < BLOCKS * WORDS; i++) numbers[i] = i % 1000;
  cudaStream_t stream;
  cudaEvent_t done;
  TRY(cudaStreamCreate(&stream));
  TRY(cudaEventCreate(&done));
  TRY(cudaMalloc(&device_numbers, sizeof numbers));
  TRY(cudaMallocAsync((void **)&device_sums, sizeof sums, stream));
  TRY(cudaMemcpyToSymbol(total, &zero, sizeof zero));
  TRY(cudaMemcpyAsync(device_numbers, numbers, sizeof numbers, cudaMemcpyHostToDevice, stream));
  TRY(cudaMemsetAsync(device_sums, 0, sizeof sums, stream));
  TRY(launch(stream, device_sums, device_numbers));
  TRY(cudaEventRecord(done, stream));
  TRY(cudaEventSynchronize(done));
  TRY(work_in_graph(stream, device_sums, device_numbers));
  TRY(cudaMemcpy(sums, device_sums, sizeof sums, cudaMemcpyDeviceToHost));
  TRY(cudaMemcpyFromSymbol(&sum_of_all, total, sizeof sum_of_all));
  *right = true;
  for (int block = 0; block < BLOCKS; block++) {
    int expected = 0;
    for (int i = 0; i < WORDS; i++) expected += 2 * numbers[block * WORDS + i];
    *right = *right && sums[block] == expected;
    sum_of_all -= expected;
  }
  *right = *right && sum_of_all == 0;
  TRY(cudaFreeAsync(device_sums, stream));
  TRY(cudaFree(device_numbers));
  TRY(cudaEventDestroy(done));
  return cudaStreamDestroy(stream);
}

// ---- A child for each allocation ----

enum { CHILD_RIGHT = 40, CHILD_WRONG, CHILD_ERROR, CHILD_NOT_AGAIN, CHILD_REFUSED };

static int child(long n, bool all) {
  bool right = false;
  failing = n < 0 ? -1 : allocations + n;
  all_from_then_on = all;
  cudaError_t error = work(&right);
  failing = -1;
  if (error == cudaSuccess) return right ? CHILD_RIGHT : CHILD_WRONG;
  if (error != cudaErrorMemoryAllocation) {
    fprintf(stderr, "the error is %s\n", cudaGetErrorName(error));
    return CHILD_ERROR;
  }
  cudaGetLastError();
  error = work(&right);
  if (error != cudaSuccess) fprintf(stderr, "again: %s\n", cudaGetErrorName(error));
  return error == cudaSuccess && right ? CHILD_REFUSED : CHILD_NOT_AGAIN;
}

typedef struct {
  int status;
  long allocations;
  char text[4096];  // what the child printed on stderr
} Outcome;

static Outcome run_child(long n, bool all) {
  Outcome outcome = {};
  int text[2], count[2];
  fflush(stdout);
  if (pipe(text) != 0 || pipe(count) != 0) program_fail("no pipe: %s", strerror(errno));
  pid_t process = fork();
  if (process < 0) program_fail("no child: %s", strerror(errno));
  if (process == 0) {
    alarm(60);
    dup2(text[1], STDERR_FILENO);
    close(text[0]), close(text[1]), close(count[0]);
    if (!freopen("/dev/null", "w", stdout)) _exit(CHILD_ERROR);
    long before = allocations;
    int code = child(n, all);
    before = allocations - before;
    if (write(count[1], &before, sizeof before) != (ssize_t)sizeof before) _exit(CHILD_ERROR);
    _exit(code);
  }
  close(text[1]), close(count[1]);
  size_t used = 0;
  char rest[512];
  for (ssize_t got; (got = read(text[0], rest, sizeof rest)) > 0;) {
    size_t kept = sizeof outcome.text - 1 - used;
    if (kept > (size_t)got) kept = (size_t)got;
    memcpy(outcome.text + used, rest, kept);
    used += kept;
  }
  if (read(count[0], &outcome.allocations, sizeof outcome.allocations) < 0) outcome.allocations = 0;
  close(text[0]), close(count[0]);
  if (waitpid(process, &outcome.status, 0) != process) program_fail("the child is gone");
  return outcome;
}

static bool acceptable(const Outcome *outcome) {
  if (!WIFEXITED(outcome->status)) return false;
  int code = WEXITSTATUS(outcome->status);
  if (code == 1) {
    return strstr(outcome->text, "memory") && strncmp(outcome->text, "emulator: ", 10) == 0;
  }
  return (code == CHILD_RIGHT || code == CHILD_REFUSED) && outcome->text[0] == '\0';
}

int main(int argc, char **argv) {
  long first = 1, last = 0, step = 1;
  const Option options[] = {{"--first", "the first allocation that fails", &first, 1, 1000000},
                            {"--last", "the last one, default: all", &last, 1, 1000000},
                            {"--step", "every n-th one", &step, 1, 1000000}};
  Outcome whole = run_child(-1, false);
  check_that(WIFEXITED(whole.status) && WEXITSTATUS(whole.status) == CHILD_RIGHT,
             "with enough memory: status 0x%x, %s", whole.status, whole.text);
  program_begin("out_of_memory", argc, argv, options, 3);
  if (!last) last = whole.allocations;
  int right = 0, refused = 0, ended = 0;
  for (long n = first; n <= last; n += step) {
    for (int all = 0; all < 2; all++) {
      Outcome outcome = run_child(n, all != 0);
      check_that(acceptable(&outcome), "allocation %ld%s: status 0x%x, \"%s\"", n,
                 all ? " and all later ones" : "", outcome.status, outcome.text);
      if (!WIFEXITED(outcome.status)) continue;
      right += WEXITSTATUS(outcome.status) == CHILD_RIGHT;
      refused += WEXITSTATUS(outcome.status) == CHILD_REFUSED;
      ended += WEXITSTATUS(outcome.status) == 1;
    }
  }
  return program_end(
      "%ld allocations: %d times right all the same, %d times refused, %d times ended",
      whole.allocations, right, refused, ended);
}
