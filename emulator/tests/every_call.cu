/* every_call.cu: every call of the runtime and the driver with invalid arguments.
 *
 *   every_call          each call in a process of its own, in each of the ways below
 *   every_call NAME     that call alone
 *
 * A call may refuse or accept what it is given; it may end the program with a message; but no
 * signal may end the process, and it may not hang. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <cuda.h>
#include <cudaProfiler.h>
#include <cuda_profiler_api.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <type_traits>
#include <unistd.h>

enum Way {
  ZEROS,      /* NULL and 0 for everything */
  GARBAGE,    /* handles that never were, memory that is there, numbers of all ones */
  STALE,      /* handles that were destroyed, memory that is there, small numbers */
  WRONG_KIND, /* handles that live, but are of another kind */
  LIVING,     /* live handles, and NULL for everything else */
  WAYS
};
static const char *const WAY_NAMES[WAYS] = {"zeros", "garbage", "stale", "wrong kind", "living"};
static Way way;

/* ---- Handles of each kind ---- */
static cudaStream_t stream, old_stream;
static cudaEvent_t event, old_event;
static cudaGraph_t graph, old_graph;
static cudaGraphExec_t exec, old_exec;
static cudaMemPool_t pool;
static CUcontext context, old_context;
static CUmodule module, old_module;
static CUfunction function;

static const char KERNEL[] =
    ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry kernel() { ret; }\n";

static cudaGraph_t captured(void) {
  cudaGraph_t made = NULL;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
  cudaMemsetAsync(NULL, 0, 0, stream);
  cudaStreamEndCapture(stream, &made);
  return made;
}

static void make_handles(void) {
  cudaStreamCreate(&stream);
  cudaEventCreate(&event);
  graph = captured();
  cudaGraphInstantiate(&exec, graph, 0);
  cudaDeviceGetDefaultMemPool(&pool, 0);
  cudaStreamCreate(&old_stream);
  cudaEventCreate(&old_event);
  old_graph = captured();
  cudaGraphInstantiate(&old_exec, old_graph, 0);
  typedef CUresult (*Load)(CUmodule *, const void *);
  typedef CUresult (*Unload)(CUmodule);
  typedef CUresult (*Find)(CUfunction *, CUmodule, const char *);
  typedef CUresult (*Current)(CUcontext *);
  typedef CUresult (*Create)(CUcontext *, unsigned, CUdevice);
  typedef CUresult (*Destroy)(CUcontext);
  Load load = (Load)dlsym(RTLD_DEFAULT, "cuModuleLoadData");
  Find find = (Find)dlsym(RTLD_DEFAULT, "cuModuleGetFunction");
  load(&module, KERNEL);
  load(&old_module, KERNEL);
  find(&function, module, "kernel");
  ((Current)dlsym(RTLD_DEFAULT, "cuCtxGetCurrent"))(&context);
  ((Unload)dlsym(RTLD_DEFAULT, "cuModuleUnload"))(old_module);
  ((Create)dlsym(RTLD_DEFAULT, "cuCtxCreate_v2"))(&old_context, 0, 0);
  ((Destroy)dlsym(RTLD_DEFAULT, "cuCtxDestroy_v2"))(old_context);
  cudaStreamDestroy(old_stream);
  cudaEventDestroy(old_event);
  cudaGraphExecDestroy(old_exec);
  cudaGraphDestroy(old_graph);
}

/* ---- Arguments, by their type ---- */
static unsigned char scratch[1 << 16] __attribute__((aligned(4096)));
static const uintptr_t NEVER = 0x1235; /* no handle, and no memory */

template <class T>
static T handle(T living, T old) {
  if (way == GARBAGE) return (T)NEVER;
  if (way == STALE) return old;
  if (way == WRONG_KIND)
    return std::is_same<T, cudaEvent_t>::value ? (T)(void *)stream : (T)(void *)event;
  if (way == LIVING) return living;
  return T();
}

template <class T>
struct Argument { /* numbers, enumerations, structures by value */
  static T make() {
    T value;
    memset((void *)&value, way == GARBAGE ? 0xff : 0, sizeof value);
    if (std::is_integral<T>::value && way == STALE) memset((void *)&value, 1, 1);
    return value;
  }
};
template <class T>
struct Argument<T *> { /* memory, or a handle that no line below knows */
  static T *make() { return way == ZEROS || way == LIVING ? NULL : (T *)(void *)scratch; }
};
template <class... A>
struct Argument<void (*)(A...)> {
  static void (*make())(A...) { return NULL; }
};
#define HANDLE(type, living, old)                            \
  template <>                                                \
  struct Argument<type> {                                    \
    static type make() { return handle<type>(living, old); } \
  };
HANDLE(cudaStream_t, stream, old_stream)
HANDLE(cudaEvent_t, event, old_event)
HANDLE(cudaGraph_t, graph, old_graph)
HANDLE(cudaGraphExec_t, exec, old_exec)
HANDLE(cudaMemPool_t, pool, (cudaMemPool_t)NEVER)
HANDLE(CUcontext, context, old_context)
HANDLE(CUmodule, module, old_module)
HANDLE(CUfunction, function, (CUfunction)NEVER)
HANDLE(CUlibrary, (CUlibrary)module, (CUlibrary)old_module)
HANDLE(CUkernel, (CUkernel)function, (CUkernel)NEVER)

template <class... A>
static void call(void (*symbol)(A...)) {
  symbol(Argument<A>::make()...);
}
template <class R, class... A>
static void call(R (*symbol)(A...)) {
  (void)symbol(Argument<A>::make()...);
}

typedef struct {
  const char *name;
  void (*run)(void *symbol);
} Call;
#define CALL_AS(name, type) {#name, [](void *symbol) { call((type)symbol); }},
#define CALL(name) CALL_AS(name, decltype(&name))
static const Call CALLS[] = {
#include "every_call.inc"
#include "exported_calls.inc"
};
enum { CALL_COUNT = sizeof CALLS / sizeof *CALLS };

/* ---- One process a call ---- */
static void child(const Call *tried) {
  void *symbol = dlsym(RTLD_DEFAULT, tried->name);
  if (!symbol) _exit(0); /* a call that this library has not */
  alarm(20);
  close(1);
  make_handles();
  tried->run(symbol);
  _exit(0);
}

static int try_call(const Call *tried) {
  int failures = 0;
  for (int each = 0; each < WAYS; each++) {
    int status;
    way = (Way)each;
    fflush(stdout);
    pid_t process = fork();
    if (process == 0) child(tried);
    if (process < 0 || waitpid(process, &status, 0) < 0) return 1;
    if (!WIFSIGNALED(status)) continue;
    printf("%s, %s: %s\n", tried->name, WAY_NAMES[way],
           WTERMSIG(status) == SIGALRM ? "no end" : strsignal(WTERMSIG(status)));
    failures++;
  }
  return failures;
}

int main(int argc, char **argv) {
  int failures = 0, tried = 0;
  for (int i = 0; i < CALL_COUNT; i++) {
    if (argc == 2 && strcmp(argv[1], CALLS[i].name) != 0) continue;
    failures += try_call(&CALLS[i]);
    tried++;
  }
  printf("%d calls in %d ways, %d failures\n", tried, WAYS, failures);
  return failures ? 1 : 0;
}
