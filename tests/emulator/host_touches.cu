/* host_touches.cu: the host reads and writes managed, pinned and registered memory while the device
 * may be using it, with and without having waited (emulator_host.bats).
 *
 *   host_touches CASE */
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime.h>

#define CHECK(call)                                                           \
  do {                                                                        \
    cudaError_t error_of_call = (call);                                       \
    if (error_of_call != cudaSuccess)                                         \
      return printf("%s: %s\n", #call, cudaGetErrorString(error_of_call)), 1; \
  } while (0)

enum { COUNT = 4096, BYTES = COUNT * sizeof(int), HALF = 500 };

__global__ void fill(int *data, int count, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] = value;
}
__global__ void take(const int *data, int *to) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = data[i];
}
__global__ void fill_and_tell(int *data, volatile int *flag) {
  data[threadIdx.x] = 3;
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) *flag = 1;
}
__global__ void count_for_host(int *counter) { atomicAdd_system(counter, 1); }
__managed__ int variable;
__global__ void set_variable(int value) { variable = value; }

static cudaStream_t one, two;
static cudaEvent_t event;
static int *managed, *pinned, *registered, *device;
static unsigned sum;

__attribute__((noinline)) static int first_element(const int *data) {
  return ((const volatile int *)data)[0];
}
static void run(int *data) { fill<<<COUNT / 256, 256, 0, one>>>(data, COUNT, 7); }

/* ---- Too early ---- */

static int managed_read(void) {
  run(managed);
  sum = first_element(managed);
  return 0;
}
static int managed_write(void) {
  run(managed);
  managed[COUNT - 1] = 1;
  return 0;
}
static int managed_variable(void) {
  set_variable<<<1, 1>>>(5);
  return variable == 6;
}
static int write_over_what_is_read(void) {
  take<<<COUNT / 256, 256, 0, one>>>(pinned, device);
  pinned[100] = 4;
  return 0;
}
static int pinned_read(void) {
  run(pinned);
  sum = first_element(pinned);
  return 0;
}
static int registered_read(void) {
  run(registered);
  sum = first_element(registered + 2048);
  return 0;
}
static int library_reads(void) {
  static int copy[COUNT];
  run(managed);
  memcpy(copy, managed, BYTES);
  return copy[5] == 8;
}
static int one_element(void) {
  fill<<<1, 32, 0, one>>>(managed + 300, 1, 7);
  sum = managed[299] + managed[301];
  sum += managed[300];
  return 0;
}
static int copied_too_early(void) {
  CHECK(cudaMemcpyAsync(pinned, device, BYTES, cudaMemcpyDeviceToHost, one));
  sum = first_element(pinned);
  return 0;
}
static int source_changed(void) {
  CHECK(cudaMemcpyAsync(device, pinned, BYTES, cudaMemcpyHostToDevice, one));
  pinned[9] = 1;
  return 0;
}
static int other_stream_awaited(void) {
  run(managed);
  CHECK(cudaStreamSynchronize(two));
  sum = first_element(managed);
  return 0;
}
static int second_kernel_not_awaited(void) {
  run(managed);
  CHECK(cudaEventRecord(event, one));
  run(pinned);
  CHECK(cudaEventSynchronize(event));
  sum = first_element(managed);
  sum += first_element(pinned);
  return 0;
}
static int system_call_reads(void) {
  int ends[2];
  if (pipe(ends) != 0) return 1;
  run(managed);
  return write(ends[1], managed, 64) != 64;
}
// The same, and of the frame of write(), 48 bytes, the lower part lies in another page than the rest.
// Under AddressSanitizer alloca() would pad each byte and never come to such a place.
__attribute__((no_sanitize("address"))) static int system_call_at_page_end(void) {
  enum { PAGE = 4096, LEAST = 16, MOST = 32 };
  volatile char *shift;
  do {
    shift = (volatile char *)alloca(1);
  } while ((uintptr_t)shift % PAGE < LEAST || (uintptr_t)shift % PAGE > MOST);
  int ends[2];
  if (pipe(ends) != 0) return 1;
  fill<<<COUNT / 256, 256, 0, one>>>(managed, COUNT, 7);
  shift[0] = write(ends[1], managed, 64) == 64;
  return !shift[0];
}
static int in_a_graph(void) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed));
  run(managed);
  CHECK(cudaStreamEndCapture(one, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, one));
  sum = first_element(managed);
  return 0;
}

/* ---- In order ---- */

static int after_waiting(void) {
  run(managed);
  CHECK(cudaStreamSynchronize(one));
  sum = managed[0];
  managed[1] = 2;
  run(pinned);
  CHECK(cudaEventRecord(event, one));
  CHECK(cudaEventSynchronize(event));
  sum += pinned[0];
  run(registered);
  while (cudaStreamQuery(one) == cudaErrorNotReady) continue;
  sum += registered[0];
  set_variable<<<1, 1>>>(5);
  CHECK(cudaDeviceSynchronize());
  return variable != 5 || sum != 21;
}
static int other_parts(void) {
  fill<<<2, 256, 0, one>>>(managed, HALF, 7);
  for (int i = HALF; i < COUNT; i++) managed[i] = i;
  take<<<COUNT / 256, 256, 0, one>>>(pinned, device);
  for (int i = 0; i < COUNT; i++) sum += pinned[i];
  CHECK(cudaStreamSynchronize(one));
  for (int i = HALF; i < COUNT; i++)
    if (managed[i] != i) return 1;
  return 0;
}
/* The kernel refuses to read protected pages. */
static int system_calls_beside(void) {
  int ends[2], got[16];
  FILE *file = tmpfile();
  if (pipe(ends) != 0 || !file) return 1;
  for (int i = 0; i < COUNT; i++) managed[i] = i;
  for (int round = 0; round < 3; round++) {
    fill<<<2, 256, 0, one>>>(managed, HALF, 7);
    if (write(ends[1], managed + HALF, 64) != 64) return 2;
    if (read(ends[0], managed + HALF + 16, 64) != 64) return 3;
    fill<<<2, 256, 0, one>>>(managed, HALF, 7);
    if (fwrite(managed + HALF, sizeof(int), COUNT - HALF, file) != COUNT - HALF) return 4;
    if (fflush(file) != 0) return 5;
    CHECK(cudaStreamSynchronize(one));
  }
  rewind(file);
  if (fread(got, sizeof(int), 16, file) != 16 || got[0] != HALF) return 6;
  return managed[HALF + 16] != HALF;
}
static int kernel_tells(void) {
  volatile int *flag = pinned + 1024;
  *flag = 0;
  fill_and_tell<<<1, 256, 0, one>>>(pinned, flag);
  while (*flag == 0) continue;
  for (int i = 0; i < 256; i++) sum += pinned[i];
  *(int *)managed = 0;
  count_for_host<<<4, 32, 0, two>>>(managed);
  while (((volatile int *)managed)[0] < 128) continue;
  return sum != 768;
}
static volatile int called;
static void note_call(void *unused) {
  (void)unused;
  called = 1;
}
static int host_function(void) {
  run(managed);
  CHECK(cudaLaunchHostFunc(one, note_call, NULL));
  while (!called) continue;
  return managed[3] != 7;
}
static int cleared(void) {
  CHECK(cudaMemset(managed, 0, BYTES));
  CHECK(cudaMemset(pinned, 0, BYTES));
  return managed[7] + pinned[7];
}
static int pageable_copy(void) {
  static int plain[COUNT];
  run(device);
  CHECK(cudaMemcpyAsync(plain, device, BYTES, cudaMemcpyDeviceToHost, one));
  return plain[4] != 7;
}

/* ---- The program's own signals, threads and processes ---- */

static sigjmp_buf back;
static volatile int faults;
static void on_fault(int signal) {
  (void)signal;
  faults++;
  siglongjmp(back, 1);
}
static volatile int *nothing = (volatile int *)4096;  // in no page
static void touch_nothing(void) { *nothing = 1; }
static int own_handler(void) {
  signal(SIGSEGV, on_fault);
  run(pinned);
  if (sigsetjmp(back, 1) == 0) touch_nothing();
  run(pinned);
  signal(SIGSEGV, on_fault); /* between the launch and its end */
  if (sigsetjmp(back, 1) == 0) touch_nothing();
  fill<<<2, 256, 0, one>>>(managed, HALF, 7);
  for (int i = HALF; i < COUNT; i++) managed[i] = i;
  if (sigsetjmp(back, 1) == 0) touch_nothing();
  CHECK(cudaStreamSynchronize(one));
  struct sigaction now;
  sigaction(SIGSEGV, NULL, &now);
  return faults != 3 || now.sa_handler != on_fault || managed[COUNT - 1] != COUNT - 1;
}
static int default_action(void) { /* the program dies of its own fault */
  pid_t child = fork();
  int status;
  if (child == 0) {
    run(managed);
    touch_nothing();
    _exit(0);
  }
  waitpid(child, &status, 0);
  return !WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV;
}
static volatile int ticks;
static void on_alarm(int signal) {
  (void)signal;
  ticks++;
}
static int alarms(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, NULL);
  ualarm(1000, 1000);
  for (int round = 0; ticks < 20; round++) {
    fill<<<2, 256, 0, one>>>(managed, HALF, 7);
    for (int i = HALF; i < COUNT; i++) managed[i] = i;
    if (round % 8 == 0) usleep(500);
    CHECK(cudaStreamSynchronize(one));
  }
  ualarm(0, 0);
  return 0;
}
static int handler_blocks_all(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_alarm;
  sigfillset(&action.sa_mask);
  sigaction(SIGUSR1, &action, NULL);
  for (int round = 0; round < 50; round++) {
    fill<<<2, 256, 0, one>>>(managed, HALF, 7);
    for (int i = HALF; i < COUNT; i++) managed[i] = i;
    raise(SIGUSR1);
    CHECK(cudaStreamSynchronize(one));
  }
  ualarm(1000, 1000);
  sigaction(SIGALRM, &action, NULL);
  while (ticks < 70) {
    fill<<<2, 256, 0, one>>>(managed, HALF, 7);
    for (int i = HALF; i < COUNT; i++) managed[i] = i;
    CHECK(cudaStreamSynchronize(one));
  }
  ualarm(0, 0);
  return 0;
}
static int program_blocks_all(void) {
  sigset_t all, old;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &old);
  for (int round = 0; round < 20; round++) {
    fill<<<2, 256, 0, one>>>(managed, HALF, 7);
    for (int i = HALF; i < COUNT; i++) managed[i] = i;
    usleep(100);
    CHECK(cudaStreamSynchronize(one));
  }
  sigprocmask(SIG_SETMASK, &old, NULL);
  return 0;
}
// A signal that all of the program's threads have blocked stays pending: no other thread takes it.
static int blocked_signal(void) {
  fill<<<COUNT / 256, 256, 0, one>>>(managed, COUNT, 7);
  CHECK(cudaStreamSynchronize(one));
  sigset_t mask, pending;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &mask, NULL);
  kill(getpid(), SIGUSR1);
  fill<<<COUNT / 256, 256, 0, one>>>(managed, COUNT, 8);
  CHECK(cudaStreamSynchronize(one));
  sigpending(&pending);
  return !sigismember(&pending, SIGUSR1);
}
static void *thread_body(void *argument) {
  int *ends = (int *)argument;
  for (int i = 0; i < 50; i++)
    if (write(ends[1], managed + HALF, 64) != 64) return argument;
  return NULL;
}
static int threads(void) {
  int ends[2];
  pthread_t thread;
  void *failed;
  if (pipe(ends) != 0) return 1;
  fill<<<2, 256, 0, one>>>(managed, HALF, 7);
  pthread_create(&thread, NULL, thread_body, ends);
  for (int i = 0; i < 50; i++) fill<<<2, 256, 0, one>>>(managed, HALF, 7);
  pthread_join(thread, &failed);
  CHECK(cudaStreamSynchronize(one));
  return failed != NULL;
}
static int processes(void) {
  fill<<<2, 256, 0, one>>>(managed, HALF, 7);
  pid_t child = fork();
  if (child == 0) _exit(managed[HALF + 1] + managed[0] == 12345);
  int status;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return 1;
  fill<<<2, 256, 0, one>>>(managed, HALF, 7);
  FILE *shell = popen("echo hello", "r");
  char line[16];
  if (!shell || !fgets(line, sizeof line, shell) || strcmp(line, "hello\n") != 0) return 2;
  pclose(shell);
  CHECK(cudaStreamSynchronize(one));
  return 0;
}
static int memory_of_the_stack(void) {
  static int page_of_globals[2048] __attribute__((aligned(4096)));
  int here[4096];
  memset(here, 0, sizeof here);
  CHECK(cudaHostRegister(here, sizeof here, 0));
  CHECK(cudaHostRegister(page_of_globals, sizeof page_of_globals, 0));
  fill<<<16, 256, 0, one>>>(here, 4096, 7);
  fill<<<8, 256, 0, one>>>(page_of_globals, 2048, 7);
  CHECK(cudaStreamSynchronize(one));
  int right = here[9] == 7 && page_of_globals[9] == 7;
  fill<<<8, 256, 0, one>>>(page_of_globals, 2048, 8);
  CHECK(cudaHostUnregister(here));
  CHECK(cudaHostUnregister(page_of_globals));
  return !right || page_of_globals[3] != 8;
}
static int freed(void) {
  int *more, *host;
  CHECK(cudaMallocManaged(&more, BYTES));
  CHECK(cudaMallocHost(&host, BYTES));
  run(more);
  run(host);
  CHECK(cudaFree(more));
  CHECK(cudaFreeHost(host));
  void *again = aligned_alloc(4096, BYTES);
  memset(again, 1, BYTES);
  free(again);
  return 0;
}

static const struct {
  const char *name;
  int (*run)(void);
} cases[] = {
    {"managed-read", managed_read},
    {"managed-write", managed_write},
    {"managed-variable", managed_variable},
    {"write-over-what-is-read", write_over_what_is_read},
    {"pinned-read", pinned_read},
    {"registered-read", registered_read},
    {"library-reads", library_reads},
    {"one-element", one_element},
    {"copied-too-early", copied_too_early},
    {"source-changed", source_changed},
    {"other-stream-awaited", other_stream_awaited},
    {"second-kernel-not-awaited", second_kernel_not_awaited},
    {"system-call-reads", system_call_reads},
    {"system-call-at-page-end", system_call_at_page_end},
    {"in-a-graph", in_a_graph},
    {"after-waiting", after_waiting},
    {"other-parts", other_parts},
    {"system-calls-beside", system_calls_beside},
    {"kernel-tells", kernel_tells},
    {"host-function", host_function},
    {"cleared", cleared},
    {"pageable-copy", pageable_copy},
    {"own-handler", own_handler},
    {"default-action", default_action},
    {"alarms", alarms},
    {"handler-blocks-all", handler_blocks_all},
    {"program-blocks-all", program_blocks_all},
    {"blocked-signal", blocked_signal},
    {"threads", threads},
    {"processes", processes},
    {"memory-of-the-stack", memory_of_the_stack},
    {"freed", freed},
};

int main(int argc, char **argv) {
  CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&event));
  CHECK(cudaMallocManaged(&managed, BYTES));
  CHECK(cudaMallocHost(&pinned, BYTES));
  CHECK(cudaMalloc(&device, BYTES));
  registered = (int *)malloc(BYTES + 8192);
  memset(registered, 0, BYTES + 8192);
  CHECK(cudaHostRegister(registered, BYTES + 8192, 0));
  CHECK(cudaMemset(device, 0, BYTES));
  CHECK(cudaDeviceSynchronize());
  for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++) {
    if (strcmp(cases[i].name, argv[1]) != 0) continue;
    int result = cases[i].run();
    if (result) printf("%s: %d\n", cases[i].name, result);
    return result;
  }
  fprintf(stderr, "usage: host_touches CASE\n");
  return 2;
}
