// ends_early: launches a kernel and then ends as programs do that were not written for a recording.
//
//   ends_early none | crash | abort | exit | interrupted | child | many
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static __global__ void fill(int *out) {
  __shared__ int tile[64];
  tile[threadIdx.x] = (int)threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}

static int *out;

static void launch(void) {
  fill<<<1, 64>>>(out);
  cudaDeviceSynchronize();
}

int main(int argc, char **argv) {
  const char *way = argc == 2 ? argv[1] : "";
  if (strcmp(way, "none") == 0) return 0;
  cudaMalloc(&out, 64 * sizeof *out);
  launch();
  if (strcmp(way, "crash") == 0) raise(SIGSEGV);
  if (strcmp(way, "abort") == 0) abort();
  if (strcmp(way, "exit") == 0) _exit(3);
  if (strcmp(way, "interrupted") == 0) {
    signal(SIGINT, SIG_DFL);  // a shell lets its background commands ignore it
    kill(getppid(), SIGINT);
    raise(SIGINT);
  }
  if (strcmp(way, "child") == 0) {
    if (fork() == 0) execl(argv[0], argv[0], "", (char *)NULL);
    wait(NULL);
    launch();
  }
  for (int i = 0; strcmp(way, "many") == 0 && i < 3000; i++) launch();
  return 0;
}
