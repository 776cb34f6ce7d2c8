// random_pending: random sequences of kernels, copies and fills on a few buffers, some of whose words get
// values without a meaning. A word-by-word account says whether the host ever copies such a value; the
// emulator must report the sequences in which it does, and no other (emulator/tests/trials.bats).
//   random_pending SEED       prints "reported" or "silent", as the emulator should be
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { BUFFERS = 4, WORDS = 64, STEPS = 14 };

// Every `apart`-th word gets a value without a meaning.
__global__ void leave(int *to, int first, int end, int apart) {
  __shared__ int tile[WORDS];
  int i = threadIdx.x;
  if (i % apart != 0) tile[i] = i;
  __syncthreads();
  int value = tile[i] + 3;
  if (i >= first && i < end) to[i] = value;
}
__global__ void set(int *to, int first, int end, int value) {
  if ((int)threadIdx.x >= first && (int)threadIdx.x < end) to[threadIdx.x] = value;
}
__global__ void move(const int *from, int *to, int first, int end) {
  if ((int)threadIdx.x >= first && (int)threadIdx.x < end) to[threadIdx.x] = from[threadIdx.x];
}
__global__ void add(const int *from, int *to, int first, int end) {
  int sum = from[threadIdx.x] + to[threadIdx.x];
  if ((int)threadIdx.x >= first && (int)threadIdx.x < end) to[threadIdx.x] = sum;
}
__global__ void count_if(const int *from, int *to, int first, int end) {
  if ((int)threadIdx.x >= first && (int)threadIdx.x < end && from[threadIdx.x] % 3 == 0)
    atomicAdd(&to[first], 1);
}

static int *buffers[BUFFERS], host[WORDS];
static bool meaningless[BUFFERS][WORDS]; /* the account */
static uint64_t state;

static int draw(int count) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int)((state >> 33) % (uint64_t)count);
}

typedef struct {
  int to, from, first, end;
} Step;

static bool any_in(int buffer, int first, int end) {
  for (int i = first; i < end; i++)
    if (meaningless[buffer][i]) return true;
  return false;
}

static void run_kernel(int which, Step step) {
  int *to = buffers[step.to], *from = buffers[step.from];
  bool *marks = meaningless[step.to], *source = meaningless[step.from];
  int apart = 2 + draw(9);
  if (which == 0) leave<<<1, WORDS>>>(to, step.first, step.end, apart);
  if (which == 1) set<<<1, WORDS>>>(to, step.first, step.end, draw(99));
  if (which == 2) move<<<1, WORDS>>>(from, to, step.first, step.end);
  if (which == 3) add<<<1, WORDS>>>(from, to, step.first, step.end);
  if (which == 4) count_if<<<1, WORDS>>>(from, to, step.first, step.end);
  CUDA_CHECK(cudaGetLastError());
  for (int i = step.first; i < step.end; i++)
    marks[i] = which == 0   ? i % apart == 0
               : which == 1 ? false
               : which == 2 ? source[i]
               : which == 3 ? marks[i] || source[i]
                            : marks[i] || (i == step.first && any_in(step.from, i, step.end));
}

/* True: the host has copied a value without a meaning. */
static bool run_copy(int which, Step step) {
  size_t bytes = (size_t)(step.end - step.first) * sizeof(int);
  int *to = buffers[step.to] + step.first, *from = buffers[step.from] + step.first;
  bool *marks = meaningless[step.to] + step.first;
  if (which == 0) CUDA_CHECK(cudaMemcpy(host, to, bytes, cudaMemcpyDeviceToHost));
  if (which == 0) return any_in(step.to, step.first, step.end);
  if (which == 1) CUDA_CHECK(cudaMemset(to, 0, bytes));
  if (which == 2) CUDA_CHECK(cudaMemcpy(to, host, bytes, cudaMemcpyHostToDevice));
  if (which == 3) CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice));
  if (which == 3) memcpy(marks, meaningless[step.from] + step.first, step.end - step.first);
  if (which != 3) memset(marks, 0, step.end - step.first);
  return false;
}

static void make_anew(int buffer) {
  if (buffers[buffer]) CUDA_CHECK(cudaFree(buffers[buffer]));
  CUDA_CHECK(cudaMalloc(&buffers[buffer], sizeof host));
  CUDA_CHECK(cudaMemset(buffers[buffer], 0, sizeof host));
  memset(meaningless[buffer], 0, sizeof meaningless[buffer]);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: random_pending SEED\n");
    return 2;
  }
  state = strtoull(argv[1], NULL, 10) * 977 + 5;
  bool seen = false, looks = draw(5) != 0;
  for (int i = 0; i < BUFFERS; i++) make_anew(i);
  if (looks) CUDA_CHECK(cudaMemcpy(host, buffers[0], sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < STEPS && !seen; i++) {
    int first = draw(WORDS), kind = draw(10);
    Step step = {.to = draw(BUFFERS), .first = first, .end = first + 1 + draw(WORDS - first)};
    step.from = (step.to + 1 + draw(BUFFERS - 1)) % BUFFERS;
    if (kind < 6)
      run_kernel(kind % 5, step);
    else if (kind < 9)
      seen = run_copy(looks ? draw(4) : 1 + draw(3), step);
    else if (looks)
      make_anew(step.to);
  }
  for (int i = 0; i < BUFFERS && !looks; i++) seen |= any_in(i, 0, WORDS);
  for (int i = 0; i < BUFFERS; i++) CUDA_CHECK(cudaFree(buffers[i]));
  puts(seen ? "reported" : "silent");
  return 0;
}
