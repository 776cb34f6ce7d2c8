/* hostile.cu: kernels and calls that misuse memory, the device's heap, printf and the runtime.
 *
 *   hostile CASE
 *
 * Each case is a process of its own; it prints what the calls answer. Nothing may crash, and
 * nothing of the host's memory may change that no kernel was given. */
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
  malloc(64);
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

int main(int argc, char **argv) {
  const char *name = argc == 2 ? argv[1] : "";
  if (strncmp(name, "print", 5) == 0)
    print_case(name);
  else if (strcmp(name, "heap-and-host") == 0)
    heap_and_host();
  else
    heap_case(name);
  return 0;
}
