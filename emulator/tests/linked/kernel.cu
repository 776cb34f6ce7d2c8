// linked: two files of relocatable device code (nvcc -rdc=true) and what such programs use:
// functions and variables of the other file, names that both have for themselves, pointers to
// functions, the device's malloc and new.
#include <stdio.h>
#include <stdlib.h>

extern __device__ int scale;
extern __constant__ int table[4];
extern __device__ int scaled(int x);
extern __device__ int (*operations[2])(int);

static __device__ int own = 1;  // library.cu has another variable of this name
static __device__ int addend(void) { return own; }

__global__ void call_library(int *out) {
  int i = (int)threadIdx.x;
  out[i] = scaled(i) + addend() + table[i & 3] * scale + operations[i & 1](i);
}

struct Node {
  int value;
  struct Node *next;
};
__global__ void allocate(int *out, int count) {
  struct Node *first = NULL;
  for (int i = 0; i < count; i++) {
    struct Node *node = new Node;
    node->value = i * (int)threadIdx.x;
    node->next = first;
    first = node;
  }
  int sum = 0;
  while (first) {
    struct Node *next = first->next;
    sum += first->value;
    delete first;
    first = next;
  }
  int *array = (int *)malloc((size_t)count * sizeof(int));
  for (int i = 0; i < count; i++) array[i] = i;
  for (int i = 0; i < count; i++) sum += array[count - 1 - i];
  free(array);
  void *too_much = malloc((size_t)1 << 40);
  out[blockIdx.x * blockDim.x + threadIdx.x] = too_much ? -1 : sum;
}

static int failures;
static void check(const char *what, const int *device, int element, int expected) {
  int got = -1;
  cudaError_t error = cudaMemcpy(&got, device + element, sizeof got, cudaMemcpyDeviceToHost);
  if (error == cudaSuccess && got == expected) return;
  failures++;
  printf("%s, element %d: %d, expected %d (%s)\n", what, element, got, expected,
         cudaGetErrorName(error));
}

int main(void) {
  int *out;
  if (cudaMalloc(&out, 64 * sizeof(int)) != cudaSuccess) return 1;
  call_library<<<1, 32>>>(out);
  // scaled(i) = i * scale + 5; table[k] = 100 * k; operations: x + 1000, x - 1000
  check("call_library", out, 0, (0 * 3 + 5) + 1 + 0 * 3 + 1000);
  check("call_library", out, 7, (7 * 3 + 5) + 1 + 300 * 3 + (7 - 1000));
  int five = 50;
  if (cudaMemcpyToSymbol(scale, &five, sizeof five) != cudaSuccess) failures++;
  call_library<<<1, 32>>>(out);
  check("call_library after cudaMemcpyToSymbol", out, 7, (7 * 50 + 5) + 1 + 300 * 50 + (7 - 1000));
  allocate<<<2, 32>>>(out, 10);
  check("allocate", out, 0, 45);
  check("allocate", out, 32 + 31, 31 * 45 + 45);
  printf(failures ? "FAIL linked\n" : "PASS linked: two files, malloc, new\n");
  return failures != 0;
}
