// run_straight FILE.ptx... OUT: runs the kernels k0, k1, ... of the modules that emulator/tests/long/fuzz_arithmetic has
// made, one warp pair each, and writes all that they store, module by module, to OUT. On a GPU and on the emulator.
#include <stdint.h>
#include <string.h>

#include "../base/mix.h"
#include "driver_call.cuh"

// As in fuzz_arithmetic: threads, values that each reads, values that each stores.
enum { THREADS = 64, INPUTS = 36, STEPS = 50, KERNELS = 50 };

#define CHECK(call)                                                           \
  do {                                                                        \
    int error = (int)(call);                                                  \
    if (error) {                                                              \
      printf("FAIL run_straight: line %d: %s: %d\n", __LINE__, #call, error); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

static uint64_t state;
static uint64_t random_bits(void) { return mix(state += 0x9e3779b97f4a7c15ull); }
// Random bits, floats of every width near 1, and their special values.
static uint64_t input(void) {
  static const uint64_t edges[] = {0,
                                   ~0ull,
                                   0x7f8000007f800000,
                                   0xff800000ff800000,
                                   0x8000000080000000,
                                   0x3f8000003f800000,
                                   0x7fffffff7fc00000,
                                   0x0000000100000001,
                                   0x7ff0000000000000,
                                   0x8000000000000000,
                                   0x3ff0000000000000,
                                   0x7c007c007c007c00,
                                   0x3c00bc000001fc00,
                                   0x007fffff00800000,
                                   0x4b0000004effffff,
                                   0x000fffffffffffff};
  uint64_t bits = random_bits(), kind = random_bits();
  switch (kind % 6) {
    case 0:
      return bits;
    case 1:
      return edges[kind / 6 % (sizeof edges / sizeof *edges)];
    case 2:  // two f32
      return (bits & 0x83ffffff83ffffff) + 0x3e0000003e000000;
    case 3:  // f64
      return (bits & 0x807fffffffffffff) + 0x3fc0000000000000;
    case 4:  // four f16
      return (bits & 0x8fff8fff8fff8fff) + 0x3400340034003400;
    default:  // four bf16
      return (bits & 0x81ff81ff81ff81ff) + 0x3f003f003f003f00;
  }
}

static void run_module(const char *path, uint64_t *host, CUdeviceptr in, CUdeviceptr out,
                       FILE *to) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    fprintf(stderr, "run_straight: cannot read %s\n", path);
    exit(2);
  }
  fseek(file, 0, SEEK_END);
  size_t bytes = (size_t)ftell(file);
  rewind(file);
  char *text = (char *)calloc(bytes + 1, 1);
  CHECK(fread(text, 1, bytes, file) != bytes);
  fclose(file);
  CUmodule module;
  CHECK(DRIVER(cuModuleLoadData)(&module, text));
  for (int k = 0; k < KERNELS; k++) {
    char name[16];
    snprintf(name, sizeof name, "k%d", k);
    CUfunction kernel;
    CHECK(DRIVER(cuModuleGetFunction)(&kernel, module, name));
    state = (uint64_t)k;
    for (int i = 0; i < THREADS * INPUTS; i++) host[i] = input();
    CHECK(DRIVER(cuMemcpyHtoD)(in, host, THREADS * INPUTS * 8));
    CHECK(DRIVER(cuMemsetD8)(out, 0, THREADS * STEPS * 8));
    void *arguments[] = {&in, &out};
    CHECK(DRIVER(cuLaunchKernel)(kernel, 1, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL));
    CHECK(DRIVER(cuMemcpyDtoH)(host, out, THREADS * STEPS * 8));
    fwrite(host, 8, THREADS * STEPS, to);
  }
  CHECK(DRIVER(cuModuleUnload)(module));
  free(text);
}

int main(int argc, char **argv) {
  FILE *to = argc >= 3 ? fopen(argv[argc - 1], "wb") : NULL;
  if (!to) {
    fprintf(stderr, "usage: run_straight FILE.ptx... OUT\n");
    return 2;
  }
  CHECK(cudaFree(NULL));
  static uint64_t host[THREADS * STEPS];
  CUdeviceptr in, out;
  CHECK(DRIVER(cuMemAlloc)(&in, sizeof host));
  CHECK(DRIVER(cuMemAlloc)(&out, sizeof host));
  for (int i = 1; i < argc - 1; i++) run_module(argv[i], host, in, out, to);
  fclose(to);
  printf("PASS run_straight: %d kernels\n", (argc - 2) * KERNELS);
  return 0;
}
