/* wrong_launches.cu: what launches, their attributes and module texts answer that are wrong in one thing.
 *
 *   wrong_launches            all of them, one a line
 *   wrong_launches WILD       one call with a pointer that leads nowhere: the process ends by SIGSEGV
 *
 * emulator/tests/recorded/wrong_launches.txt holds what an H100 80GB HBM3 answered (driver 580.159.04,
 * 26 November 2026). Not in it is what ends a program there, and an event's state just after a launch. */
#include <cudaTypedefs.h>
#include <string.h>

#include "driver_call.cuh"

#define cuLaunchKernel DRIVER_OF(cuLaunchKernel, 4000)
#define cuLaunchKernelEx DRIVER_OF(cuLaunchKernelEx, 11060)
#define cuLaunchCooperativeKernel DRIVER_OF(cuLaunchCooperativeKernel, 9000)
#define cuLaunchHostFunc DRIVER_OF(cuLaunchHostFunc, 10000)
#define cuModuleLoadData DRIVER_OF(cuModuleLoadData, 2000)
#define cuModuleLoadDataEx DRIVER_OF(cuModuleLoadDataEx, 2010)
#define cuModuleLoadFatBinary DRIVER_OF(cuModuleLoadFatBinary, 2000)
#define cuLibraryLoadData DRIVER_OF(cuLibraryLoadData, 12000)
#define cuLibraryGetKernelCount DRIVER_OF(cuLibraryGetKernelCount, 12040)
#define cuLibraryGetModule DRIVER_OF(cuLibraryGetModule, 12000)
#define cuTensorMapEncodeTiled DRIVER_OF(cuTensorMapEncodeTiled, 12000)

__global__ void few(int *p) {
  if (p && blockIdx.x == 0) *p = 1;
}
__global__ void none() {}

static int *memory;
static void *arguments[] = {&memory}, *nothing[5];
static CUfunction of_few, of_none;
static cudaLaunchAttribute attributes[100];
static cudaLaunchConfig_t config = {dim3(2), dim3(1), 0, 0, attributes, 1};
static CUlaunchConfig driver_config = {
    2, 1, 1, 1, 1, 1, 0, 0, (CUlaunchAttribute *)(void *)attributes, 1};

static void start(void) {
  cudaMalloc(&memory, sizeof *memory);
  cudaGetFuncBySymbol((cudaFunction_t *)&of_few, (const void *)few);
  cudaGetFuncBySymbol((cudaFunction_t *)&of_none, (const void *)none);
}

static void answer(int error) {
  printf(": %d\n", error);
  cudaGetLastError();
}

static void set_attribute(int i, int id, const int *words, int count) {
  memset(&attributes[i], 0, sizeof attributes[i]);
  attributes[i].id = (cudaLaunchAttributeID)id;
  memcpy(&attributes[i].val, words, (size_t)count * sizeof *words);
}
static int launch(unsigned count) {
  config.numAttrs = driver_config.numAttrs = count;
  return cudaLaunchKernelExC(&config, (const void *)few, arguments);
}
static int driver_launch(unsigned count) {
  config.numAttrs = driver_config.numAttrs = count;
  return cuLaunchKernelEx(&driver_config, of_few, arguments, NULL);
}

/* ---- Attributes of every kind, filled with one byte ---- */

static int of_stream(int id) {
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  return cudaStreamSetAttribute(stream, (cudaLaunchAttributeID)id, &attributes->val);
}
static void show_kind(int id, int byte) {
  memset(attributes, byte, sizeof *attributes);
  attributes->id = (cudaLaunchAttributeID)id;
  bool is_event =
      id == cudaLaunchAttributeProgrammaticEvent || id == cudaLaunchAttributeLaunchCompletionEvent;
  if (byte == 0 || !is_event)
    printf("launch with attribute %d of bytes %02x", id, byte), answer(launch(1));
  if (byte != 0 && !is_event)
    printf("driver's launch with attribute %d of bytes %02x", id, byte), answer(driver_launch(1));
  printf("stream attribute %d of bytes %02x", id, byte), answer(of_stream(id));
}

static void show_kinds(void) {
  for (int id = -3; id <= 18; id++) show_kind(id, 0), show_kind(id, 0xa5);
  show_kind(100, 0), show_kind(100, 0xa5);
}

/* ---- Their values ---- */

static void show_values(int id, const int *values, int count) {
  for (int i = 0; i < count; i++) {
    set_attribute(0, id, &values[i], 1);
    printf("launch with attribute %d of %d", id, values[i]), answer(launch(1));
  }
}
#define SHOW_VALUES(id, ...)                                 \
  do {                                                       \
    const int values[] = {__VA_ARGS__};                      \
    show_values(id, values, sizeof values / sizeof *values); \
  } while (0)

static void show_cluster(int x, int y, int z) {
  const int cluster[] = {x, y, z};
  set_attribute(0, cudaLaunchAttributeClusterDimension, cluster, 3);
  printf("launch of two blocks with a cluster of %d,%d,%d", x, y, z), answer(launch(1));
  set_attribute(0, cudaLaunchAttributePreferredClusterDimension, cluster, 3);
  printf("launch of two blocks with a preferred cluster of %d,%d,%d", x, y, z), answer(launch(1));
}

static void show_preferred(int regular, int preferred) {
  const int first[] = {regular, 1, 1}, second[] = {preferred, 1, 1};
  set_attribute(0, cudaLaunchAttributeClusterDimension, first, 3);
  set_attribute(1, cudaLaunchAttributePreferredClusterDimension, second, 3);
  printf("launch of two blocks with a cluster of %d, preferred %d", regular, preferred);
  answer(launch(2));
}

static void show_event(int id, unsigned flags) {
  cudaEvent_t event;
  cudaEventCreateWithFlags(&event, flags);
  memset(attributes, 0, sizeof *attributes);
  attributes->id = (cudaLaunchAttributeID)id;
  attributes->val.programmaticEvent.event = event;
  printf("launch with attribute %d, an event of flags %u", id, flags), answer(launch(1));
}

static void show_count(unsigned count) {
  memset(attributes, 0, sizeof attributes);
  printf("launch with %u attributes to ignore", count), answer(launch(count));
}

static void show_all_values(void) {
  SHOW_VALUES(cudaLaunchAttributeCooperative, 0, 1, 2, -1);
  SHOW_VALUES(cudaLaunchAttributeSynchronizationPolicy, 0, 1, 2, 3, 4, 5, -1);
  SHOW_VALUES(cudaLaunchAttributeClusterSchedulingPolicyPreference, 0, 1, 2, 3, 4, 5, -1);
  SHOW_VALUES(cudaLaunchAttributeProgrammaticStreamSerialization, 0, 1, 2, -1);
  SHOW_VALUES(cudaLaunchAttributePriority, 0, 1, -1, -5, -6, 5, 100);
  SHOW_VALUES(cudaLaunchAttributeMemSyncDomainMap, 0, 256, 257, 259, 260, 1024, 1028, 3, 4);
  SHOW_VALUES(cudaLaunchAttributeMemSyncDomain, 0, 1, 2, 3);
  SHOW_VALUES(cudaLaunchAttributeDeviceUpdatableKernelNode, 0, 1, 2, -1);
  SHOW_VALUES(cudaLaunchAttributePreferredSharedMemoryCarveout, -2, -1, 0, 50, 100, 101);
  SHOW_VALUES(cudaLaunchAttributeNvlinkUtilCentricScheduling, 0, 1, 2, -1);
  show_cluster(0, 0, 0), show_cluster(0, 1, 1), show_cluster(1, 1, 1), show_cluster(2, 1, 1);
  show_cluster(3, 1, 1), show_cluster(8, 1, 1), show_cluster(16, 1, 1), show_cluster(17, 1, 1);
  show_preferred(1, 1), show_preferred(1, 2), show_preferred(2, 1), show_preferred(2, 2);
  show_preferred(1, 3), show_preferred(1, 4);
  show_event(cudaLaunchAttributeProgrammaticEvent, cudaEventDefault);
  show_event(cudaLaunchAttributeProgrammaticEvent, cudaEventDisableTiming);
  show_event(cudaLaunchAttributeLaunchCompletionEvent, cudaEventDefault);
  show_event(cudaLaunchAttributeLaunchCompletionEvent, cudaEventDisableTiming);
  show_count(1), show_count(16), show_count(64);
}

/* ---- NULL ---- */

#define SHOW(text, call) (printf("%s", text), answer((int)(call)))

static void show_extra(void) {
  size_t bytes = sizeof memory;
  void *end[] = {CU_LAUNCH_PARAM_END};
  void *empty[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, NULL, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  void *sizeless[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &memory, CU_LAUNCH_PARAM_END};
  void *whole[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &memory, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  void *unknown[] = {(void *)77, &memory, CU_LAUNCH_PARAM_END};
#define EXTRA(function, arguments, extra) \
  cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, arguments, extra)
  SHOW("no buffer", EXTRA(of_few, NULL, end));
  SHOW("no buffer, for a kernel without parameters", EXTRA(of_none, NULL, end));
  SHOW("a buffer at NULL", EXTRA(of_few, NULL, empty));
  SHOW("a buffer without a size", EXTRA(of_few, NULL, sizeless));
  SHOW("a buffer and arguments", EXTRA(of_few, arguments, whole));
  SHOW("an unknown key", EXTRA(of_few, NULL, unknown));
  SHOW("an unknown key, for a kernel without parameters", EXTRA(of_none, NULL, unknown));
}

static void show_null_launches(void) {
  SHOW("cudaLaunchKernel, an argument at NULL",
       cudaLaunchKernel((const void *)few, dim3(1), dim3(1), nothing, 0, 0));
  SHOW("cudaLaunchKernel, NULL for no parameters",
       cudaLaunchKernel((const void *)none, dim3(1), dim3(1), NULL, 0, 0));
  SHOW("cudaLaunchKernelExC, no arguments",
       (config.numAttrs = 0, cudaLaunchKernelExC(&config, (const void *)few, NULL)));
  SHOW("cudaLaunchKernelExC, an argument at NULL",
       cudaLaunchKernelExC(&config, (const void *)few, nothing));
  SHOW("cudaLaunchCooperativeKernel, an argument at NULL",
       cudaLaunchCooperativeKernel((const void *)few, dim3(1), dim3(1), nothing, 0, 0));
  SHOW("cuLaunchKernel, no arguments", cuLaunchKernel(of_few, 1, 1, 1, 1, 1, 1, 0, 0, NULL, NULL));
  SHOW("cuLaunchKernel, an argument at NULL",
       cuLaunchKernel(of_few, 1, 1, 1, 1, 1, 1, 0, 0, nothing, NULL));
  SHOW("cuLaunchCooperativeKernel, no arguments",
       cuLaunchCooperativeKernel(of_few, 1, 1, 1, 1, 1, 1, 0, 0, NULL));
  SHOW("cuLaunchCooperativeKernel, an argument at NULL",
       cuLaunchCooperativeKernel(of_few, 1, 1, 1, 1, 1, 1, 0, 0, nothing));
  driver_config.numAttrs = 0;
  SHOW("cuLaunchKernelEx, an argument at NULL",
       cuLaunchKernelEx(&driver_config, of_few, nothing, NULL));
  SHOW("cuLaunchKernelEx, no configuration", cuLaunchKernelEx(NULL, of_few, arguments, NULL));
  cudaLaunchConfig_t listless = config;
  CUlaunchConfig driver_listless = driver_config;
  listless.attrs = NULL, listless.numAttrs = 1;
  driver_listless.attrs = NULL, driver_listless.numAttrs = 1;
  SHOW("cudaLaunchKernelExC, attributes at NULL",
       cudaLaunchKernelExC(&listless, (const void *)few, arguments));
  SHOW("cuLaunchKernelEx, attributes at NULL",
       cuLaunchKernelEx(&driver_listless, of_few, arguments, NULL));
}

static void show_null_functions(void) {
  SHOW("cudaLaunchHostFunc, no function", cudaLaunchHostFunc(0, NULL, NULL));
  SHOW("cuLaunchHostFunc, no function", cuLaunchHostFunc(0, NULL, NULL));
}

/* ---- Texts ---- */

#define HEAD ".version 8.0\n.target sm_90a\n"
#define KERNEL ".visible .entry k() { ret; }\n"
static const char *const TEXTS[] = {"",
                                    " ",
                                    "\n\n\t ",
                                    "/*",
                                    "/* closed */",
                                    "// comment",
                                    "// comment\n",
                                    "\n",
                                    "#",
                                    "\"",
                                    "garbage",
                                    "{}",
                                    "\x01\x02\x03\x04",
                                    ".target sm_90a\n",
                                    ".target sm_90a\n.version 8.0\n" KERNEL,
                                    KERNEL,
                                    ".version\n",
                                    ".version 8.0\n",
                                    ".version 8.0\n.target\n",
                                    ".version 8.0\n.target nonsense\n",
                                    ".version 8.0\n.target sm_5000\n",
                                    ".version 8.0\n.address_size 64\n" KERNEL,
                                    ".version 99.9\n.target sm_90a\n",
                                    HEAD,
                                    HEAD ".address_size 64\n",
                                    ".version 8.0 .target sm_90a .address_size 64",
                                    ".version 8.0\n.target sm_80\n",
                                    "/* a */ .version 8.0\n.target sm_90a // b\n" KERNEL};

static void show_text(const char *text) {
  CUmodule module;
  CUlibrary library;
  cudaLibrary_t runtime_library;
  unsigned count = 0;
  putchar('"');
  for (const char *at = text; *at; at++)
    *at < ' ' ? printf("\\x%02x", (unsigned)*at) : putchar(*at);
  printf("\": cuModuleLoadData %d", cuModuleLoadData(&module, text));
  printf(", Ex %d", cuModuleLoadDataEx(&module, text, 0, NULL, NULL));
  printf(", cuModuleLoadFatBinary %d", cuModuleLoadFatBinary(&module, text));
  printf(", cuLibraryLoadData %d", cuLibraryLoadData(&library, text, 0, 0, 0, 0, 0, 0));
  printf(" kernels %d", cuLibraryGetKernelCount(&count, library));
  printf(" module %d", cuLibraryGetModule(&module, library));
  printf(", cudaLibraryLoadData %d\n",
         cudaLibraryLoadData(&runtime_library, text, 0, 0, 0, 0, 0, 0));
}

/* ---- Pointers that lead nowhere ---- */

static void *nowhere; /* 64, which the compiler must not know */

static int call_with_wild_pointer(const char *name) {
  void *wild[] = {nowhere};
  cudaLaunchConfig_t wild_list = config;
  CUmodule module;
  CUtensorMap map;
  wild_list.attrs = (cudaLaunchAttribute *)nowhere;
  if (!strcmp(name, "list"))
    return cudaLaunchKernel((const void *)few, dim3(1), dim3(1), (void **)nowhere, 0, 0);
  if (!strcmp(name, "argument"))
    return cudaLaunchKernel((const void *)few, dim3(1), dim3(1), wild, 0, 0);
  if (!strcmp(name, "attributes"))
    return cudaLaunchKernelExC(&wild_list, (const void *)few, arguments);
  if (!strcmp(name, "configuration"))
    return cuLaunchKernelEx((CUlaunchConfig *)nowhere, of_few, arguments, NULL);
  if (!strcmp(name, "extra"))
    return cuLaunchKernel(of_few, 1, 1, 1, 1, 1, 1, 0, 0, NULL, (void **)nowhere);
  if (!strcmp(name, "cooperative"))
    return cuLaunchCooperativeKernel(of_few, 1, 1, 1, 1, 1, 1, 0, 0, wild);
  if (!strcmp(name, "text")) return cuModuleLoadData(&module, nowhere);
  if (!strcmp(name, "sizes"))
    return cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1, memory,
                                  (cuuint64_t *)nowhere, NULL, (cuuint32_t *)nowhere,
                                  (cuuint32_t *)nowhere, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                  CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (!strcmp(name, "answer")) return cudaMemGetInfo((size_t *)nowhere, (size_t *)nowhere);
  if (!strcmp(name, "function")) {
    cudaLaunchHostFunc(0, (cudaHostFn_t)nowhere, NULL);
    return cudaDeviceSynchronize();
  }
  if (!strcmp(name, "own")) return *(volatile int *)nowhere; /* not a call's */
  return -1;
}

int main(int argc, char **argv) {
  nowhere = (void *)(size_t)(32 * argc);
  start();
  if (argc > 1) {
    answer(call_with_wild_pointer(argv[1]));
    return 2; /* it should have ended before */
  }
  show_kinds();
  show_all_values();
  show_null_launches();
  show_extra();
  show_null_functions();
  for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) show_text(TEXTS[i]);
  return cudaDeviceSynchronize() != cudaSuccess;
}
