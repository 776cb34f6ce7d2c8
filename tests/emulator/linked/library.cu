// The other file of kernel.cu.
#include <alloca.h>

__device__ int scale = 3;
__constant__ int table[4] = {0, 100, 200, 300};

static __device__ int own = 5;
static __device__ int addend(void) { return own; }

__device__ int scaled(int x) { return x * scale + addend(); }

static __device__ int up(int x) { return x + 1000; }
static __device__ int down(int x) { return x - 1000; }
__device__ int (*operations[2])(int) = {up, down};

__device__ int sum_on_stack(int count) {
  int *numbers = (int *)alloca((size_t)count * sizeof(int));
  for (int i = 0; i < count; i++) numbers[i] = i;
  int sum = 0;
  for (int i = count - 1; i >= 0; i--) sum += numbers[i];
  return sum;
}
