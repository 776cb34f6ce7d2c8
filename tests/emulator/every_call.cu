/* every_call.cu: every call of the runtime and the driver with invalid arguments.
 *
 *   every_call          each call in a process of its own, in each of the ways below
 *   every_call NAME     that call alone
 *   every_call --list   the names, one a line
 *   every_call --forked what each answers, with valid arguments, in a child process whose parent
 *                       uses the device
 *   every_call --forked-null the same with NULL and 0 for everything
 *   every_call --uninitialised [NAME...] what each call of the driver answers before cuInit;
 *                   those that are named in one process
 *   every_call --without-context [NAME...] the same in a thread that has no context
 *   every_call --destroyed-context [NAME...] the same if another thread has destroyed its context
 *
 * A call may refuse or accept what it is given; it may end the program with a message; but no
 * signal may end the process, and it may not hang. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <cuda.h>
#include <cudaProfiler.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <type_traits>
#include <unistd.h>

enum Way {
  ZEROS,      /* NULL and 0 for everything */
  GARBAGE,    /* handles that never were, memory that is there, numbers of all ones */
  STALE,      /* handles that were destroyed, memory that is there, small numbers */
  WRONG_KIND, /* handles that live, but are of another kind */
  LIVING,     /* live handles, and NULL for everything else */
  WAYS,
  VALID = WAYS /* live handles, and memory that is there */
};
static const char *const WAY_NAMES[WAYS] = {"zeros", "garbage", "stale", "wrong kind", "living"};
static Way way;

/* ---- Handles of each kind ---- */
static cudaStream_t stream, old_stream;
static cudaEvent_t event, old_event;
static cudaGraph_t graph, old_graph;
static cudaGraphNode_t node, old_node;
static cudaGraphExec_t exec, old_exec;
static cudaMemPool_t pool, old_pool;
static CUcontext context, old_context;
static CUmodule module, old_module;
static CUfunction function;

static const char KERNEL[] =
    ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry kernel() { ret; }\n";

static void make_handles(void) {
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  cudaStreamCreate(&stream);
  cudaEventCreate(&event);
  cudaGraphCreate(&graph, 0);
  cudaGraphAddEmptyNode(&node, graph, NULL, 0);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaMemPoolCreate(&pool, &properties);
  cudaStreamCreate(&old_stream);
  cudaEventCreate(&old_event);
  cudaGraphCreate(&old_graph, 0);
  cudaGraphAddEmptyNode(&old_node, old_graph, NULL, 0);
  cudaGraphInstantiate(&old_exec, old_graph, 0);
  cudaMemPoolCreate(&old_pool, &properties);
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
  cudaMemPoolDestroy(old_pool);
}

/* ---- Arguments, by their type ---- */
static unsigned char scratch[1 << 16] __attribute__((aligned(4096)));
static const uintptr_t NEVER = 0x1235; /* no handle, and no memory */

template <class T>
static T handle(T living, T old) {
  switch (way) {
    case GARBAGE:
      return (T)NEVER;
    case STALE:
      return old;
    case WRONG_KIND:
      return std::is_same<T, cudaEvent_t>::value ? (T)(void *)stream : (T)(void *)event;
    case LIVING:
    case VALID:
      return living;
    default:
      return T();
  }
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
HANDLE(cudaGraphNode_t, node, old_node)
HANDLE(cudaGraphExec_t, exec, old_exec)
HANDLE(cudaMemPool_t, pool, old_pool)
HANDLE(CUcontext, context, old_context)
HANDLE(CUmodule, module, old_module)
HANDLE(CUfunction, function, (CUfunction)NEVER)
HANDLE(CUlibrary, (CUlibrary)module, (CUlibrary)old_module)
HANDLE(CUkernel, (CUkernel)function, (CUkernel)NEVER)
HANDLE(cudaUserObject_t, (cudaUserObject_t)NEVER, (cudaUserObject_t)NEVER)

static int *answer; /* of the last call, in memory that forked processes share */
template <class R>
static void keep(R answered) {
  *answer = (int)(long)answered;
}
template <class... A>
static void call(void (*symbol)(A...)) {
  symbol(Argument<A>::make()...);
}
template <class R, class... A>
static void call(R (*symbol)(A...)) {
  keep(symbol(Argument<A>::make()...));
}

typedef struct {
  const char *name;
  void (*run)(void *symbol);
} Call;
#define CALL_AS(name, type) {#name, [](void *symbol) { call((type)symbol); }},
#define CALL_LIKE(name, other) CALL_AS(name, decltype(&other))
#define CALL(name) CALL_LIKE(name, name)
static const Call CALLS[] = {
#include "every_call.inc"
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

/* ---- A child process whose parent uses the device ---- */
static void ask_forked(Way arguments) {
  dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  way = VALID;
  make_handles();
  way = arguments;
  for (int i = 0; i < CALL_COUNT; i++) {
    void *symbol = dlsym(RTLD_DEFAULT, CALLS[i].name);
    if (!symbol) continue;
    *answer = -1;
    fflush(stdout);
    pid_t process = fork();
    if (process == 0) {
      alarm(20);
      CALLS[i].run(symbol);
      _exit(0);
    }
    if (process < 0 || waitpid(process, NULL, 0) < 0) exit(1);
    printf("%s %d\n", CALLS[i].name, *answer);
  }
}

/* ---- Calls of the driver without a context that can be used ---- */
static void *destroy_current(void *current) {
  typedef CUresult (*Destroy)(CUcontext);
  ((Destroy)dlsym(RTLD_DEFAULT, "cuCtxDestroy_v2"))((CUcontext)current);
  return NULL;
}
static void without_context(void) {
  typedef CUresult (*Set)(CUcontext);
  make_handles();
  ((Set)dlsym(RTLD_DEFAULT, "cuCtxSetCurrent"))(NULL);
}
static void with_destroyed_context(void) {
  typedef CUresult (*Create)(CUcontext *, unsigned, CUdevice);
  CUcontext created = NULL;
  pthread_t thread;
  make_handles();
  ((Create)dlsym(RTLD_DEFAULT, "cuCtxCreate_v2"))(&created, 0, 0);
  if (pthread_create(&thread, NULL, destroy_current, created) != 0) _exit(1);
  pthread_join(thread, NULL);
}

/* Calls in one process, until one of them ends it. */
static void ask_in_process(void (*prepare)(void), const Call *const *calls, int count) {
  fflush(stdout);
  pid_t process = fork();
  if (process == 0) {
    alarm(20);
    way = VALID;
    if (prepare) prepare();
    for (int i = 0; i < count; i++) {
      *answer = -1;
      calls[i]->run(dlsym(RTLD_DEFAULT, calls[i]->name));
      printf("%s %d\n", calls[i]->name, *answer);
      fflush(stdout);
    }
    _exit(0);
  }
  if (process < 0 || waitpid(process, NULL, 0) < 0) exit(1);
}

/* Those with these names in one process; without names each in a process of its own. */
static void ask_driver(void (*prepare)(void), char **names, int name_count) {
  const Call *chosen[CALL_COUNT];
  int count = 0;
  dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  for (int i = 0; i < CALL_COUNT; i++) {
    bool is_chosen = name_count == 0 && strncmp(CALLS[i].name, "cuda", 4) != 0;
    for (int k = 0; k < name_count; k++) is_chosen |= strcmp(CALLS[i].name, names[k]) == 0;
    if (is_chosen && dlsym(RTLD_DEFAULT, CALLS[i].name)) chosen[count++] = &CALLS[i];
  }
  if (name_count > 0) return ask_in_process(prepare, chosen, count);
  for (int i = 0; i < count; i++) ask_in_process(prepare, &chosen[i], 1);
}

/* Whether the first argument was one of these. */
static bool ask_without(const char *mode, char **names, int name_count) {
  static const struct {
    const char *mode;
    void (*prepare)(void);
  } situations[] = {{"--uninitialised", NULL},
                    {"--without-context", without_context},
                    {"--destroyed-context", with_destroyed_context}};
  for (const auto &situation : situations)
    if (strcmp(mode, situation.mode) == 0)
      return ask_driver(situation.prepare, names, name_count), true;
  return false;
}

int main(int argc, char **argv) {
  int failures = 0, tried = 0;
  answer =
      (int *)mmap(NULL, sizeof *answer, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (answer == MAP_FAILED) return 1;
  if (argc >= 2 && ask_without(argv[1], argv + 2, argc - 2)) return 0;
  if (argc == 2 && strcmp(argv[1], "--forked") == 0) return ask_forked(VALID), 0;
  if (argc == 2 && strcmp(argv[1], "--forked-null") == 0) return ask_forked(ZEROS), 0;
  if (argc == 2 && strcmp(argv[1], "--list") == 0) {
    for (int i = 0; i < CALL_COUNT; i++) puts(CALLS[i].name);
    return 0;
  }
  for (int i = 0; i < CALL_COUNT; i++) {
    if (argc == 2 && strcmp(argv[1], CALLS[i].name) != 0) continue;
    failures += try_call(&CALLS[i]);
    tried++;
  }
  printf("%d calls in %d ways, %d failures\n", tried, WAYS, failures);
  return failures ? 1 : 0;
}
