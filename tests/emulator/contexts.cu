/* contexts.cu: contexts of the driver: a handle each, a stack of them in each thread, and errors for those that are
 * destroyed or missing. The runtime uses the current one, or the primary one.
 *
 *   contexts CASE      each case is a process of its own
 *
 * Without CASE it prints the names of the cases. tests/emulator/recorded/contexts.txt holds what an H200 answered. */
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By the driver's own call, because the runtime's would initialise the driver. */
static void *version_of(const char *name, int version) {
  static PFN_cuGetProcAddress_v12000 find;
  void *call = NULL;
  if (!find)
    find =
        (PFN_cuGetProcAddress_v12000)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2");
  if (find(name, &call, version, 0, NULL) != CUDA_SUCCESS || !call) {
    fprintf(stderr, "the driver has no %s of version %d\n", name, version);
    exit(1);
  }
  return call;
}
#define DRIVER(name, version) ((PFN_##name##_v##version)version_of(#name, version))

static void show(const char *what, const char *arguments, int answer) {
  printf("%s(%s) -> %d\n", what, arguments, answer);
  fflush(stdout);
}
#define ASK(name, version, ...) \
  show(#name, #__VA_ARGS__, (int)((PFN_##name##_v##version)version_of(#name, version))(__VA_ARGS__))
#define ASK_RUNTIME(name, ...) show(#name, #__VA_ARGS__, (int)name(__VA_ARGS__))
#define SAY(what)                                     \
  do {                                                \
    printf("%s: %s\n", #what, (what) ? "yes" : "no"); \
    fflush(stdout);                                   \
  } while (0)

static const char PTX[] =
    ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .global .u32 number;\n"
    ".visible .entry kernel() { ret; }\n";

static CUcontext current(void) {
  CUcontext context = (CUcontext)1;
  DRIVER(cuCtxGetCurrent, 4000)(&context);
  return context;
}
static CUcontext create(void) {
  CUcontext context = NULL;
  ASK(cuCtxCreate, 3020, &context, 0, 0);
  return context;
}
static CUcontext pop(void) {
  CUcontext context = (CUcontext)1;
  ASK(cuCtxPopCurrent, 4000, &context);
  return context;
}
static bool is_active(void) {
  unsigned flags;
  int active = -1;
  DRIVER(cuDevicePrimaryCtxGetState, 7000)(0, &flags, &active);
  return active != 0;
}

static CUdeviceptr address;
static CUstream stream;
static CUevent event;
static CUmodule module;

/* Calls that work in a context. */
static void ask_calls(void) {
  CUdevice device;
  size_t free_bytes, bytes;
  unsigned flags, version;
  unsigned long long id;
  ASK(cuMemAlloc, 3020, &address, 256);
  ASK(cuMemsetD8, 3020, address, 0, 16);
  ASK(cuStreamCreate, 2000, &stream, 0);
  ASK(cuEventCreate, 2000, &event, 0);
  ASK(cuCtxSynchronize, 2000);
  ASK(cuStreamSynchronize, 2000, CU_STREAM_LEGACY);
  ASK(cuCtxGetDevice, 2000, &device);
  ASK(cuCtxGetFlags, 7000, &flags);
  ASK(cuCtxGetId, 12000, NULL, &id);
  ASK(cuCtxGetApiVersion, 3020, NULL, &version);
  ASK(cuMemGetInfo, 3020, &free_bytes, &bytes);
  ASK(cuModuleLoadData, 2000, &module, PTX);
}

static void *fresh_thread(void *used) {
  SAY(current() == NULL);
  ask_calls();
  ASK(cuCtxPopCurrent, 4000, NULL);
  ASK(cuCtxSetCurrent, 4000, NULL);
  if (!used) return NULL;
  ASK(cuCtxPushCurrent, 4000, (CUcontext)used);
  ask_calls();
  SAY(pop() == (CUcontext)used);
  SAY(current() == NULL);
  return NULL;
}
static void in_a_thread(void *(*function)(void *), void *argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, function, argument) != 0) exit(1);
  pthread_join(thread, NULL);
}

/* ---- The cases ---- */

static void before_initialisation(void) {
  int count;
  CUcontext context;
  CUdeviceptr memory;
  ASK(cuDeviceGetCount, 2000, &count);
  ASK(cuCtxCreate, 3020, &context, 0, 0);
  ASK(cuCtxGetCurrent, 4000, &context);
  ASK(cuCtxPopCurrent, 4000, &context);
  ASK(cuMemAlloc, 3020, &memory, 256);
  ASK(cuMemAlloc, 3020, NULL, 0);
  ASK(cuDevicePrimaryCtxRetain, 7000, &context, 0);
  ASK_RUNTIME(cudaGetDeviceCount, &count);
  ASK(cuDeviceGetCount, 2000, &count);
  ASK(cuMemAlloc, 3020, &memory, 256);
}

static void none(void) {
  ASK(cuInit, 2000, 0);
  SAY(current() == NULL);
  ask_calls();
  ASK(cuCtxPopCurrent, 4000, NULL);
  ASK(cuCtxPushCurrent, 4000, NULL);
  ASK(cuCtxDestroy, 4000, NULL);
  in_a_thread(fresh_thread, NULL);
}

static void stacks(void) {
  ASK(cuInit, 2000, 0);
  CUcontext first = create(), second = create(), third = create();
  unsigned long long ids[2] = {0, 0};
  SAY(first && first != second && second != third && first != third);
  ASK(cuCtxGetId, 12000, first, &ids[0]);
  ASK(cuCtxGetId, 12000, NULL, &ids[1]);
  SAY(ids[0] != ids[1]);
  SAY(pop() == third);
  ASK(cuCtxPushCurrent, 4000, first);
  ASK(cuCtxPushCurrent, 4000, first);
  SAY(pop() == first);
  SAY(pop() == first);
  SAY(pop() == second);
  SAY(current() == first);
  ASK(cuCtxSetCurrent, 4000, third);
  SAY(current() == third);
  ASK(cuCtxSetCurrent, 4000, NULL);
  SAY(current() == NULL);
  in_a_thread(fresh_thread, first);
  ASK(cuCtxDestroy, 4000, first);
  ASK(cuCtxDestroy, 4000, second);
  ASK(cuCtxDestroy, 4000, third);
}

static void destroyed(void) {
  ASK(cuInit, 2000, 0);
  CUcontext below = create(), above = create();
  ASK(cuCtxDestroy, 4000, above);
  SAY(current() == below);
  ASK(cuCtxDestroy, 4000, below);
  SAY(current() == NULL);
  ask_calls();
}

/* The same handle once more, and one that never was. */
static void destroyed_twice(void) {
  ASK(cuInit, 2000, 0);
  CUcontext below = create(), above = create();
  ASK(cuCtxDestroy, 4000, above);
  ASK(cuCtxDestroy, 4000, above);
  SAY(current() == below);
}
static void destroyed_pushed(void) {
  ASK(cuInit, 2000, 0);
  CUcontext below = create(), above = create();
  ASK(cuCtxDestroy, 4000, above);
  ASK(cuCtxPushCurrent, 4000, above);
  SAY(current() == below);
  ask_calls();
}
static void destroyed_set(void) {
  ASK(cuInit, 2000, 0);
  CUcontext below = create(), above = create();
  ASK(cuCtxDestroy, 4000, above);
  ASK(cuCtxSetCurrent, 4000, above);
  SAY(current() == below);
  ask_calls();
}
static void never_there(void) {
  static char memory[4096];
  ASK(cuInit, 2000, 0);
  ASK(cuCtxPushCurrent, 4000, (CUcontext)memory);
  SAY(current() == NULL);
  ASK(cuCtxSetCurrent, 4000, (CUcontext)memory);
  SAY(current() == NULL);
  ASK(cuCtxDestroy, 4000, (CUcontext)memory);
}

static void destroyed_below(void) {
  ASK(cuInit, 2000, 0);
  CUcontext below = create(), above = create();
  ASK(cuCtxDestroy, 4000, below);
  SAY(current() == above);
  SAY(pop() == above);
  SAY(current() == below);
  ask_calls();
  SAY(pop() == below);
  SAY(current() == NULL);
}

static void *destroy_it(void *context) {
  ASK(cuCtxDestroy, 4000, (CUcontext)context);
  return NULL;
}
static void destroyed_elsewhere(void) {
  ASK(cuInit, 2000, 0);
  CUcontext context = create();
  ask_calls();
  in_a_thread(destroy_it, context);
  SAY(current() == context);
  ask_calls();
  ASK_RUNTIME(cudaFree, NULL);
  ASK_RUNTIME(cudaGetLastError);
  ASK_RUNTIME(cudaDeviceSynchronize);
  SAY(pop() == context);
  SAY(current() == NULL);
}

static void primary_and_own(void) {
  ASK(cuInit, 2000, 0);
  CUcontext own = create(), primary = NULL, of_stream = NULL;
  void *memory = NULL;
  SAY(is_active());
  ASK_RUNTIME(cudaMalloc, &memory, 256);
  SAY(current() == own);
  SAY(is_active());
  ASK_RUNTIME(cudaFree, memory);
  ASK(cuStreamCreate, 2000, &stream, 0);
  ASK(cuCtxSetCurrent, 4000, NULL);
  SAY(current() == NULL);
  ASK_RUNTIME(cudaFree, NULL);
  ASK(cuDevicePrimaryCtxRetain, 7000, &primary, 0);
  SAY(primary && primary == current());
  ASK(cuStreamGetCtx, 9020, stream, &of_stream);
  SAY(of_stream == own);
  ASK(cuStreamGetCtx, 9020, CU_STREAM_LEGACY, &of_stream);
  SAY(of_stream == primary);
  ASK(cuCtxSetCurrent, 4000, own);
  ASK_RUNTIME(cudaSetDevice, 0);
  SAY(current() == primary);
  ASK(cuCtxDestroy, 4000, primary);
  SAY(current() == primary);
  ASK(cuDevicePrimaryCtxRelease, 11000, 0);
  ASK(cuCtxDestroy, 4000, own);
}

static void retained(void) {
  ASK(cuInit, 2000, 0);
  CUcontext primary = NULL, again = NULL;
  SAY(is_active());
  ASK(cuDevicePrimaryCtxRelease, 11000, 0);
  ASK(cuDevicePrimaryCtxRetain, 7000, &primary, 0);
  SAY(is_active());
  SAY(current() == NULL);
  ASK(cuDevicePrimaryCtxRetain, 7000, &again, 0);
  SAY(again == primary);
  ASK(cuCtxPushCurrent, 4000, primary);
  ask_calls();
  ASK(cuDevicePrimaryCtxRelease, 11000, 0);
  SAY(is_active());
  ASK(cuDevicePrimaryCtxRelease, 11000, 0);
  SAY(is_active());
  ASK(cuDevicePrimaryCtxRelease, 11000, 0);
  SAY(current() == primary);
  ask_calls();
  SAY(pop() == primary);
  ASK(cuCtxPushCurrent, 4000, primary);
  ask_calls();
}

static void reset(void) {
  ASK_RUNTIME(cudaFree, NULL);
  CUcontext primary = current(), again = NULL;
  SAY(primary != NULL);
  ask_calls();
  ASK_RUNTIME(cudaDeviceReset);
  SAY(current() == primary);
  SAY(is_active());
  ask_calls();
  ASK_RUNTIME(cudaFree, NULL);
  SAY(is_active());
  SAY(current() == primary);
  ask_calls();
  ASK_RUNTIME(cudaDeviceReset);
  ASK(cuDevicePrimaryCtxRetain, 7000, &again, 0);
  SAY(again == primary);
  SAY(is_active());
  ASK(cuDevicePrimaryCtxRelease, 11000, 0);
  SAY(is_active());
  ASK(cuDevicePrimaryCtxRelease, 11000, 0);
  SAY(is_active());
}

/* What belongs to a context, used and destroyed in another one or in none. */
static void belongings(void) {
  CUfunction function;
  ASK(cuInit, 2000, 0);
  CUcontext first = create();
  ask_calls();
  CUcontext second = create();
  ASK(cuMemsetD8, 3020, address, 0, 16);
  ASK(cuModuleGetFunction, 2000, &function, module, "kernel");
  ASK(cuEventRecord, 2000, event, stream);
  ASK(cuStreamSynchronize, 2000, stream);
  ASK(cuCtxDestroy, 4000, second);
  SAY(current() == first);
  ASK(cuCtxPopCurrent, 4000, NULL);
  ASK(cuEventRecord, 2000, event, stream);
  ASK(cuStreamSynchronize, 2000, stream);
  ASK(cuModuleGetFunction, 2000, &function, module, "kernel");
  ASK(cuStreamDestroy, 4000, stream);
  ASK(cuModuleUnload, 2000, module);
  ASK(cuMemFree, 3020, address);
}

static void flags(void) {
  CUcontext context;
  unsigned given = 99;
  ASK(cuInit, 2000, 0);
  ASK(cuCtxCreate, 3020, &context, CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD, 0);
  ASK(cuCtxCreate, 3020, &context, 1u << 30, 0);
  ASK(cuCtxCreate, 3020, &context, 0, 99);
  ASK(cuCtxCreate, 3020, &context, 0, -1);
  ASK(cuCtxCreate, 3020, NULL, 0, 0);
  ASK(cuCtxCreate, 3020, &context, CU_CTX_SCHED_BLOCKING_SYNC, 0);
  ASK(cuCtxGetFlags, 7000, &given);
  SAY(given & CU_CTX_SCHED_BLOCKING_SYNC);
  CUctxCreateParams none = {}, shares = {}, graphics = {};
  CUexecAffinityParam eight_sms = {CU_EXEC_AFFINITY_TYPE_SM_COUNT, {{8}}};
  CUctxCigParam shared_data = {CIG_DATA_TYPE_D3D12_COMMAND_QUEUE, &given};
  shares.execAffinityParams = &eight_sms, shares.numExecAffinityParams = 1;
  graphics.cigParams = &shared_data;
  ASK(cuCtxCreate, 12050, &context, NULL, 0, 0);
  ASK(cuCtxCreate, 12050, &context, &none, 0, 0);
  ASK(cuCtxCreate, 12050, &context, &shares, 0, 0);
  ASK(cuCtxCreate, 12050, &context, &graphics, 0, 0);
  ASK(cuDevicePrimaryCtxSetFlags, 11000, 0, CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD);
  ASK(cuDevicePrimaryCtxSetFlags, 11000, 0, 1u << 30);
  ASK(cuDevicePrimaryCtxSetFlags, 11000, 0, CU_CTX_SCHED_YIELD);
  ASK(cuDevicePrimaryCtxSetFlags, 11000, 99, 0);
  ASK(cuDevicePrimaryCtxRelease, 11000, 99);
  ASK(cuDevicePrimaryCtxReset, 11000, 99);
  ASK(cuDevicePrimaryCtxReset, 11000, 0);
}

static void nothing(void *data) { (void)data; }
/* Work in a stream, which may be the program's own or a default stream. */
static void ask_work(CUfunction function, CUstream used) {
  char memory[16] = {0};
  CUdeviceptr pooled = 0;
  ASK(cuMemsetD8Async, 3020, address, 0, 16, used);
  ASK(cuMemcpyHtoDAsync, 3020, address, memory, 16, used);
  ASK(cuMemcpyAsync, 4000, address, address + 64, 16, used);
  ASK(cuLaunchKernel, 4000, function, 1, 1, 1, 32, 1, 1, 0, used, NULL, NULL);
  ASK(cuEventRecord, 2000, event, used);
  ASK(cuStreamWaitEvent, 3020, used, event, 0);
  ASK(cuLaunchHostFunc, 10000, used, nothing, NULL);
  ASK(cuMemAllocAsync, 11020, &pooled, 64, used);
  if (pooled) ASK(cuMemFreeAsync, 11020, pooled, used);
  ASK(cuStreamQuery, 2000, used);
  ASK(cuStreamSynchronize, 2000, used);
}
static void *destroy_it_too(void *context) {
  DRIVER(cuCtxDestroy, 4000)((CUcontext)context);
  return NULL;
}
static void work(void) {
  CUfunction function = NULL;
  ASK(cuInit, 2000, 0);
  create();
  ask_calls();
  ASK(cuModuleGetFunction, 2000, &function, module, "kernel");
  ASK(cuCtxPopCurrent, 4000, NULL);
  ask_work(function, stream);
  ask_work(function, NULL);
  CUcontext other = create();
  in_a_thread(destroy_it_too, other);
  ask_work(function, stream);
  ask_work(function, NULL);
}

/* Valid questions about modules, libraries and memory, without a context. */
static void questions(void) {
  CUfunction function;
  CUlibrary library = NULL;
  CUkernel kernel = NULL;
  CUmodule of_library;
  CUdeviceptr found;
  size_t bytes;
  ASK(cuInit, 2000, 0);
  create();
  ask_calls();
  ASK(cuCtxPopCurrent, 4000, NULL);
  ASK(cuModuleGetFunction, 2000, &function, module, "kernel");
  ASK(cuModuleGetGlobal, 3020, &found, &bytes, module, "number");
  ASK(cuLibraryLoadData, 12000, &library, PTX, NULL, NULL, 0, NULL, NULL, 0);
  ASK(cuLibraryGetKernel, 12000, &kernel, library, "kernel");
  ASK(cuKernelGetFunction, 12000, &function, kernel);
  ASK(cuLibraryGetModule, 12000, &of_library, library);
  ASK(cuLibraryGetGlobal, 12000, &found, &bytes, library, "number");
  ASK(cuMemAllocManaged, 6000, &found, 64, CU_MEM_ATTACH_GLOBAL);
  ASK(cuMemFree, 3020, address);
}

/* The runtime's use of the primary context counts as one retain. */
static void released(void) {
  ASK_RUNTIME(cudaFree, NULL);
  ASK(cuDevicePrimaryCtxRelease, 11000, 0);
  SAY(is_active());
  SAY(current() != NULL);
  ask_calls();
  ASK(cuDevicePrimaryCtxRelease, 11000, 0);
  ASK_RUNTIME(cudaDeviceSynchronize);
  ASK_RUNTIME(cudaFree, NULL);
  SAY(is_active());
}

/* Valid calls that only compute on the host. */
static CUresult encode_at(void *map, void *memory) {
  const cuuint64_t size[1] = {1024}, strides[1] = {};
  const cuuint32_t box[1] = {32}, steps[1] = {1};
  return DRIVER(cuTensorMapEncodeTiled, 12000)(
      (CUtensorMap *)map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1, memory, size, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}
static void ask_maps(int first_past) {
  alignas(64) static char memory[1024];
  CUtensorMap map;
  for (int past = first_past; past > 0; past /= 2) {
    printf("cuTensorMapEncodeTiled, %d bytes past 64 -> %d\n", past,
           (int)encode_at(memory + past, memory));
    fflush(stdout);
  }
  printf("cuTensorMapEncodeTiled -> %d\n", (int)encode_at(&map, memory));
  printf("cuTensorMapReplaceAddress -> %d\n",
         (int)DRIVER(cuTensorMapReplaceAddress, 12000)(&map, memory));
  fflush(stdout);
}
static void maps(void) {
  ask_maps(0);
  ASK(cuInit, 2000, 0);
  ask_maps(0);
  create();
  ask_maps(32);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } cases[] = {{"before", before_initialisation},
               {"none", none},
               {"stacks", stacks},
               {"destroyed", destroyed},
               {"twice", destroyed_twice},
               {"pushed", destroyed_pushed},
               {"set", destroyed_set},
               {"never", never_there},
               {"below", destroyed_below},
               {"elsewhere", destroyed_elsewhere},
               {"primary", primary_and_own},
               {"retained", retained},
               {"reset", reset},
               {"belongings", belongings},
               {"flags", flags},
               {"maps", maps},
               {"work", work},
               {"questions", questions},
               {"released", released}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (argc == 2 && strcmp(argv[1], cases[i].name) == 0) return cases[i].run(), 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) printf("%s\n", cases[i].name);
  return argc == 1 ? 0 : 2;
}
