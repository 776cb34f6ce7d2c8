/* repeat_cases.cu: launches that come again, so that the emulator may skip them, and what must be reported
 * or happen all the same (emulator_repeat.bats).
 *
 *   repeat_cases CASE */
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

#define CHECK(call)                                                           \
  do {                                                                        \
    cudaError_t error_of_call = (call);                                       \
    if (error_of_call != cudaSuccess)                                         \
      return printf("%s: %s\n", #call, cudaGetErrorString(error_of_call)), 1; \
  } while (0)

enum { COUNT = 1024, BYTES = COUNT * sizeof(int), TIMES = 4 };

__global__ void triple(const int *from, int *to) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = 3 * from[i];
}
/* Neighbouring words are written by different instructions. */
__global__ void write_members(int *data, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  data[4 * i] = i;
  data[4 * i + 1] = i + 1;
  data[4 * i + 2] = i + 2;
  data[4 * i + 3] = i + 3;
}
__global__ void add_one(int *data) { data[blockIdx.x * blockDim.x + threadIdx.x]++; }
__global__ void count_blocks(int *counter) {
  if (threadIdx.x == 0) atomicAdd(counter, 1);
}
__global__ void race(int *data) { data[threadIdx.x % 64] = (int)threadIdx.x; }
/* Each thread reads what another one has copied, and nobody waits. */
__global__ void read_without_waiting(const int *data, int *out) {
  __shared__ int copied[128];
  unsigned to = (unsigned)__cvta_generic_to_shared(&copied[threadIdx.x]);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(data + threadIdx.x));
  __syncthreads();
  out[threadIdx.x] = copied[threadIdx.x ^ 1] == 123456789;
}
/* What the next kernels access, and in which order, is the same in each launch. Some lanes add what nothing has
 * set, and drop it. */
__global__ void sum_neighbours(int *data) {
  __shared__ volatile int copied[256];
  copied[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  int sum = copied[threadIdx.x] + copied[(threadIdx.x + 1) % 256];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  data[threadIdx.x] = 3 * sum + (int)threadIdx.x;
}
__global__ void add_wide(unsigned long long *data) {
  unsigned long long *at = &data[2 * threadIdx.x], dropped;
  asm volatile("{.reg .b64 undefined; mul.lo.u64 %0, undefined, 3;}" : "=l"(dropped));
  if (threadIdx.x == gridDim.x * 1000) *data = dropped;
  asm("add.cc.u64 %0, %0, %2; addc.u64 %1, %1, 7;" : "+l"(at[0]), "+l"(at[1]) : "l"(~0ull));
}
/* Here memory decides: where a thread writes, whether it waits, which way it goes, what it shuffles, whether a
 * value is stored, and which of two equal stores is the last. */
__global__ void write_where_said(int *data, const int *where) {
  data[COUNT / 2 + where[blockIdx.x * 64 + threadIdx.x]]++;
}
__global__ void wait_if_said(int *data, const int *waits) {
  __shared__ int copied[128];
  copied[threadIdx.x] = data[threadIdx.x];
  if (*waits) __syncthreads();
  data[threadIdx.x] = copied[threadIdx.x ^ 64] + 1;
}
__global__ void store_if_said(int *data, const int *who) {
  bool stores = *who < 0 ? threadIdx.x == 0 : *who == (int)threadIdx.x / 64;
  if (stores) data[0]++;
  if (*who == 0 && threadIdx.x == 64) data[0] = 7;
}
__global__ void store_the_same(int *data, const int *values) {
  data[0] = values[threadIdx.x];
  data[1 + threadIdx.x]++;
}
__global__ void store_the_same_to_shared(int *data, const int *values) {
  __shared__ int last;
  last = values[threadIdx.x];
  __syncthreads();
  data[1 + threadIdx.x] += last;
}
__global__ void keep_undefined_bits(int *data, const int *which) {
  int kept;
  asm volatile("{.reg .b32 undefined; and.b32 %0, %1, undefined;}" : "=r"(kept) : "r"(*which));
  data[threadIdx.x] += kept;
}
__global__ void carry_to_address(unsigned *data) {
  unsigned high;
  asm("{.reg .u32 low; add.cc.u32 low, %1, %2; addc.u32 %0, 0, 0;}"
      : "=r"(high)
      : "r"(data[COUNT - 1]), "r"(~0u));
  data[threadIdx.x * (1 - high)]++;
}
__global__ void say(int number) { printf("kernel %d\n", number); }
__global__ void read_clock(long long *time) { *time += clock64(); }
__global__ void pass_time(long long clocks) {
  long long start = clock64();
  while (clock64() - start < clocks) continue;
}
__global__ void fail_in_block(unsigned block) {
  if (blockIdx.x == block) asm("trap;");
}
__global__ void fail_on_processor(unsigned processor) {
  unsigned own;
  asm("mov.u32 %0, %%smid;" : "=r"(own));
  if (own == processor) asm("trap;");
}
__global__ void allocate(void **place) { *place = malloc(64); }
__global__ void fail(const int *data) {
  if (data[0] == 7) asm("trap;");
}

static cudaStream_t one, two;
static int *input, *output, *more, *managed, *pinned;

static void run(cudaStream_t stream) { triple<<<COUNT / 256, 256, 0, stream>>>(input, output); }
/* From the second time on, it need not run. */
static int run_often(void) {
  for (int i = 0; i < TIMES; i++) run(one);
  CHECK(cudaStreamSynchronize(one));
  return 0;
}
static int show(const int *data) {
  int values[4];
  CHECK(cudaMemcpy(values, data, sizeof values, cudaMemcpyDefault));
  printf("%d %d %d %d\n", values[0], values[1], values[2], values[3]);
  return 0;
}

/* ---- What comes later does not wait for the launch that was skipped ---- */

static int copied_without_waiting(void) {
  run_often();
  run(one);
  CHECK(cudaMemcpyAsync(more, output, BYTES, cudaMemcpyDeviceToDevice, two));
  return 0;
}
static int input_overwritten(void) {
  run_often();
  run(one);
  CHECK(cudaMemsetAsync(input, 0, BYTES, two));
  return 0;
}
static int read_by_other_stream(void) {
  run_often();
  run(one);
  triple<<<COUNT / 256, 256, 0, two>>>(output, more);
  return 0;
}
static int freed_in_other_stream(void) {
  int *memory;
  CHECK(cudaMallocAsync(&memory, BYTES, one));
  for (int i = 0; i < TIMES; i++) triple<<<COUNT / 256, 256, 0, one>>>(input, memory);
  CHECK(cudaStreamSynchronize(one));
  triple<<<COUNT / 256, 256, 0, one>>>(input, memory);
  CHECK(cudaFreeAsync(memory, two));
  return 0;
}

/* ---- Its results have been overwritten, but it reads the same ---- */

static int overwrite_and_run(void) {
  CHECK(cudaMemsetAsync(output, 0, BYTES, one));
  run(one);
  return 0;
}
static int results_overwritten(void) {
  for (int i = 0; i < TIMES; i++)
    if (overwrite_and_run()) return 1;
  CHECK(cudaStreamSynchronize(one));
  return show(output);
}
static int results_in_turns(void) {
  for (int i = 0; i < TIMES; i++) {
    run(one);
    triple<<<COUNT / 256, 256, 0, one>>>(more, output);
  }
  run(one);
  CHECK(cudaStreamSynchronize(one));
  return show(output);
}
/* From the second time on it is known what becomes of that input. */
static int input_changed_back(void) {
  for (int i = 0; i < TIMES; i++) {
    CHECK(cudaMemcpyAsync(output, input, BYTES, cudaMemcpyDeviceToDevice, one));
    add_one<<<COUNT / 256, 256, 0, one>>>(output);
  }
  CHECK(cudaStreamSynchronize(one));
  return show(output);
}
static int other_input(void) {
  for (int i = 0; i < TIMES; i++) {
    if (overwrite_and_run()) return 1;
    CHECK(cudaMemsetAsync(input, i, sizeof(int), one));
    CHECK(cudaStreamSynchronize(one));
    if (show(output)) return 1;
  }
  return 0;
}
static int allocated_again(void) {
  for (int i = 0; i < TIMES; i++) {
    if (overwrite_and_run()) return 1;
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaFree(output));
    CHECK(cudaMalloc(&output, BYTES));
  }
  return 0;
}
static int results_copied_without_waiting(void) {
  results_overwritten();
  overwrite_and_run();
  CHECK(cudaMemcpyAsync(more, output, BYTES, cudaMemcpyDeviceToDevice, two));
  return 0;
}
static int overwritten_without_waiting(void) {
  results_overwritten();
  CHECK(cudaMemsetAsync(output, 0, BYTES, two));
  run(one);
  return 0;
}

static int results_freed(void) {
  int *memory;
  CHECK(cudaMalloc(&memory, BYTES));
  for (int i = 0; i < TIMES; i++) {
    CHECK(cudaMemsetAsync(memory, 0, BYTES, one));
    triple<<<COUNT / 256, 256, 0, one>>>(input, memory);
    CHECK(cudaStreamSynchronize(one));
  }
  CHECK(cudaFree(memory));
  triple<<<COUNT / 256, 256, 0, one>>>(input, memory);
  puts(cudaGetErrorName(cudaStreamSynchronize(one)));
  return 0;
}

/* More than a million places, of which none is like its neighbour. */
static int members_apart(void) {
  const int count = 300001;
  int *memory;
  CHECK(cudaMalloc(&memory, count * 4 * sizeof *memory));
  for (int i = 0; i < TIMES; i++) write_members<<<count / 256 + 1, 256, 0, one>>>(memory, count);
  CHECK(cudaMemcpyAsync(more, memory + 4096, BYTES, cudaMemcpyDeviceToDevice, two));
  CHECK(cudaDeviceSynchronize());
  return show(memory + 4 * count - 4);
}

/* ---- The launch does not wait for what came before ---- */

static int input_copied_without_waiting(void) {
  CHECK(cudaMemcpy(more, input, BYTES, cudaMemcpyDeviceToDevice));
  run_often();
  CHECK(cudaMemcpyAsync(input, more, BYTES, cudaMemcpyDeviceToDevice, two)); /* the same values */
  run(one);
  return 0;
}
static int output_read_without_waiting(void) {
  run_often();
  CHECK(cudaMemcpyAsync(more, output, BYTES, cudaMemcpyDeviceToDevice, two));
  run(one);
  return 0;
}

/* ---- Memory of the host ---- */

static int managed_read_without_waiting(void) {
  for (int i = 0; i < TIMES; i++) triple<<<COUNT / 256, 256, 0, one>>>(input, managed);
  CHECK(cudaStreamSynchronize(one));
  triple<<<COUNT / 256, 256, 0, one>>>(input, managed);
  return ((const volatile int *)managed)[3] != 9;
}
static int pinned_written_without_waiting(void) {
  for (int i = 0; i < TIMES; i++) triple<<<COUNT / 256, 256, 0, one>>>(pinned, output);
  CHECK(cudaStreamSynchronize(one));
  triple<<<COUNT / 256, 256, 0, one>>>(pinned, output);
  pinned[3] = 4;
  return 0;
}
static int managed_changed(void) {
  for (int i = 0; i < TIMES; i++) {
    managed[1] = i;
    triple<<<COUNT / 256, 256, 0, one>>>(managed, output);
    CHECK(cudaStreamSynchronize(one));
    if (show(output)) return 1;
  }
  return 0;
}

/* ---- Launches that do more than write the same again ---- */

static int in_place(void) {
  for (int i = 0; i < TIMES; i++) add_one<<<COUNT / 256, 256>>>(output);
  for (int i = 0; i < TIMES; i++) count_blocks<<<5, 32>>>(more);
  return show(output) || show(more);
}
static int prints(void) {
  for (int i = 0; i < TIMES; i++) say<<<1, 1>>>(5);
  return 0;
}
static int reads_clock(void) {
  long long times[2];
  for (int i = 0; i < 2; i++) {
    read_clock<<<1, 1>>>((long long *)more);
    CHECK(cudaMemcpy(&times[i], more, sizeof times[i], cudaMemcpyDeviceToHost));
  }
  printf("%s\n", times[1] > times[0] ? "later" : "the same time");
  return 0;
}
static int allocates(void) {
  void *places[TIMES] = {NULL};
  for (int i = 0; i < TIMES; i++) {
    allocate<<<1, 1>>>((void **)more);
    CHECK(cudaMemcpy(&places[i], more, sizeof places[i], cudaMemcpyDeviceToHost));
    for (int k = 0; k < i; k++)
      if (places[k] == places[i]) return printf("one block twice\n"), 1;
  }
  return 0;
}
static int races_each_time(void) {
  for (int i = 0; i < TIMES; i++) race<<<1, 128>>>(output);
  return 0;
}
static int mistakes_in_shared_memory(void) {
  for (int i = 0; i < TIMES; i++) {
    read_without_waiting<<<2, 128>>>(input, output);
    race<<<1, 128>>>(more);
  }
  return 0;
}
static int fails_at_last(void) {
  int seven = 7;
  for (int i = 0; i < TIMES; i++) fail<<<1, 1>>>(input);
  CHECK(cudaMemcpy(input, &seven, sizeof seven, cudaMemcpyHostToDevice));
  fail<<<1, 1>>>(input);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}

/* ---- Memory that is not what it was ---- */

/* The second time the graph's memory is at the same address, and nothing has written it. */
static int unwritten_again(void) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  int *memory;
  CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  CHECK(cudaMallocAsync(&memory, BYTES, one));
  CHECK(cudaMemcpyAsync(memory, pinned, BYTES / 2, cudaMemcpyHostToDevice, one));
  triple<<<COUNT / 512, 256, 0, one>>>(memory, output);
  CHECK(cudaMemsetAsync(memory + COUNT / 2, 0xff, BYTES / 2, one));
  triple<<<COUNT / 256, 256, 0, one>>>(memory, output);
  CHECK(cudaFreeAsync(memory, one));
  CHECK(cudaStreamEndCapture(one, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < TIMES; i++) CHECK(cudaGraphLaunch(exec, one));
  CHECK(cudaStreamSynchronize(one));
  return show(output);
}
/* The same bytes as before, but unwritten ones. */
static int unwritten_copied(void) {
  int *fresh;
  CHECK(cudaMalloc(&fresh, BYTES));
  CHECK(cudaMemset(input, 0xff, BYTES));
  CHECK(cudaDeviceSynchronize());
  run_often();
  CHECK(cudaMemcpy(input, fresh, BYTES, cudaMemcpyDeviceToDevice));
  CHECK(cudaDeviceSynchronize());
  run(one);
  CHECK(cudaStreamSynchronize(one));
  return show(output);
}
static int freed(void) {
  run_often();
  CHECK(cudaFree(input));
  run(one);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}

/* A pointer to what was freed three allocations ago, when addresses come again. */
static int freed_in_a_loop(void) {
  int *memory[2 * TIMES];
  for (int i = 0; i < 2 * TIMES; i++) {
    CHECK(cudaMalloc(&memory[i], BYTES));
    triple<<<COUNT / 256, 256, 0, one>>>(input, memory[i]);
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaFree(memory[i]));
  }
  CHECK(cudaMalloc(&memory[0], BYTES));
  triple<<<COUNT / 256, 256, 0, one>>>(input, memory[2 * TIMES - 3]);
  puts(cudaGetErrorName(cudaStreamSynchronize(one)));
  return 0;
}

/* ---- Nothing to report ---- */

/* Results in memory that is allocated and freed each time. */
static int allocated_in_turns(void) {
  long sum = 0;
  for (int i = 0; i < 3 * TIMES; i++) {
    int *memory, numbers[COUNT];
    CHECK(cudaMalloc(&memory, BYTES));
    triple<<<COUNT / 256, 256, 0, one>>>(input, memory);
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaMemcpy(numbers, memory, BYTES, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(memory));
    for (int k = 0; k < COUNT; k++) sum += numbers[k];
  }
  printf("%ld\n", sum);
  return 0;
}

static int in_order(void) {
  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  run_often();
  for (int i = 0; i < TIMES; i++) {
    run(one);
    CHECK(cudaEventRecord(event, one));
    CHECK(cudaStreamWaitEvent(two, event, 0));
    triple<<<COUNT / 256, 256, 0, two>>>(output, more);
    CHECK(cudaEventRecord(event, two));
    CHECK(cudaStreamWaitEvent(one, event, 0));
  }
  CHECK(cudaStreamSynchronize(one));
  return show(more);
}
static int in_several_streams(void) {
  for (int i = 0; i < TIMES; i++) {
    run(one);
    CHECK(cudaStreamSynchronize(one));
    run(two);
    CHECK(cudaStreamSynchronize(two));
  }
  return show(output);
}

/* ---- Blocks that all do the same ---- */

/* If all blocks ran, it would take hours. */
static int blocks_alike(void) {
  for (int i = 0; i < TIMES; i++) pass_time<<<1 << 22, 512, 0, one>>>(1000000);
  CHECK(cudaStreamSynchronize(one));
  puts("all blocks have ended");
  return 0;
}
static int blocks_differ(void) {
  fail_in_block<<<100, 32, 0, one>>>(99);
  puts(cudaGetErrorName(cudaStreamSynchronize(one)));
  return 0;
}
static int processors_differ(void) {
  fail_on_processor<<<100, 32, 0, one>>>(99);
  puts(cudaGetErrorName(cudaStreamSynchronize(one)));
  return 0;
}

/* ---- Launches that run, though nothing is to be checked ---- */

static int same_accesses(void) {
  for (int i = 0; i < TIMES; i++) {
    sum_neighbours<<<1, 256, 0, one>>>(input);
    add_wide<<<1, 128, 0, one>>>((unsigned long long *)output);
  }
  CHECK(cudaStreamSynchronize(one));
  return show(input) | show(output);
}
static int same_accesses_copied_without_waiting(void) {
  same_accesses();
  sum_neighbours<<<1, 256, 0, one>>>(input);
  CHECK(cudaMemcpyAsync(more, input, BYTES, cudaMemcpyDeviceToDevice, two));
  return 0;
}
static int same_accesses_before_others_wait(void) {
  same_accesses();
  CHECK(cudaMemsetAsync(input, 1, BYTES, two));
  sum_neighbours<<<1, 256, 0, one>>>(input);
  return 0;
}
static int same_accesses_to_unwritten_memory(void) {
  int *fresh;
  CHECK(cudaMalloc(&fresh, BYTES));
  same_accesses();
  CHECK(cudaMemcpy(input, fresh, BYTES, cudaMemcpyDeviceToDevice));
  sum_neighbours<<<1, 256, 0, one>>>(input);
  CHECK(cudaStreamSynchronize(one));
  return show(input);
}
/* Twice all is right, with other numbers each time; then something in memory makes the launch wrong. */
typedef void Kernel(int *data, const int *decides);
static int decided(Kernel *kernel, unsigned blocks, unsigned threads, const int *right,
                   const int *wrong) {
  for (int i = 0; i < TIMES; i++) {
    CHECK(cudaMemcpy(more, i + 1 < TIMES ? right : wrong, threads * blocks * sizeof *right,
                     cudaMemcpyHostToDevice));
    kernel<<<blocks, threads>>>(input, more);
  }
  return show(input);
}
static int numbered[COUNT], equal[COUNT], zeros[COUNT], first[COUNT];
static int memory_decides_place(void) { return decided(write_where_said, 2, 64, numbered, zeros); }
static int memory_decides_waiting(void) { return decided(wait_if_said, 1, 128, equal, zeros); }
static int memory_decides_branch(void) { return decided(store_if_said, 1, 128, first, zeros); }
static int memory_decides_value(void) { return decided(store_the_same, 1, 128, equal, numbered); }
static int memory_decides_shared_value(void) {
  return decided(store_the_same_to_shared, 1, 32, equal, numbered);
}
static int memory_decides_undefined_bits(void) {
  return decided(keep_undefined_bits, 1, 128, zeros, equal);
}
static int memory_decides_by_carry(void) {
  for (int i = 0; i < TIMES; i++) {
    CHECK(cudaMemset(input + COUNT - 1, i + 1 < TIMES ? 0 : 1, sizeof *input));
    carry_to_address<<<1, 64>>>((unsigned *)input);
  }
  return show(input);
}

static const struct {
  const char *name;
  int (*run)(void);
} cases[] = {{"copied-without-waiting", copied_without_waiting},
             {"input-overwritten", input_overwritten},
             {"read-by-other-stream", read_by_other_stream},
             {"freed-in-other-stream", freed_in_other_stream},
             {"results-overwritten", results_overwritten},
             {"results-in-turns", results_in_turns},
             {"input-changed-back", input_changed_back},
             {"other-input", other_input},
             {"allocated-again", allocated_again},
             {"results-copied-without-waiting", results_copied_without_waiting},
             {"overwritten-without-waiting", overwritten_without_waiting},
             {"results-freed", results_freed},
             {"members-apart", members_apart},
             {"blocks-alike", blocks_alike},
             {"blocks-differ", blocks_differ},
             {"processors-differ", processors_differ},
             {"input-copied-without-waiting", input_copied_without_waiting},
             {"output-read-without-waiting", output_read_without_waiting},
             {"managed-read-without-waiting", managed_read_without_waiting},
             {"pinned-written-without-waiting", pinned_written_without_waiting},
             {"managed-changed", managed_changed},
             {"in-place", in_place},
             {"prints", prints},
             {"reads-clock", reads_clock},
             {"allocates", allocates},
             {"races-each-time", races_each_time},
             {"mistakes-in-shared-memory", mistakes_in_shared_memory},
             {"fails-at-last", fails_at_last},
             {"unwritten-again", unwritten_again},
             {"unwritten-copied", unwritten_copied},
             {"freed", freed},
             {"freed-in-a-loop", freed_in_a_loop},
             {"allocated-in-turns", allocated_in_turns},
             {"in-order", in_order},
             {"in-several-streams", in_several_streams},
             {"same-accesses", same_accesses},
             {"same-accesses-copied-without-waiting", same_accesses_copied_without_waiting},
             {"same-accesses-before-others-wait", same_accesses_before_others_wait},
             {"same-accesses-to-unwritten-memory", same_accesses_to_unwritten_memory},
             {"memory-decides-place", memory_decides_place},
             {"memory-decides-waiting", memory_decides_waiting},
             {"memory-decides-branch", memory_decides_branch},
             {"memory-decides-value", memory_decides_value},
             {"memory-decides-shared-value", memory_decides_shared_value},
             {"memory-decides-undefined-bits", memory_decides_undefined_bits},
             {"memory-decides-by-carry", memory_decides_by_carry}};

int main(int argc, char **argv) {
  const int CASES = sizeof cases / sizeof cases[0];
  int which = 0, numbers[COUNT];
  while (which < CASES && (argc != 2 || strcmp(argv[1], cases[which].name))) which++;
  if (which == CASES) return fprintf(stderr, "usage: repeat_cases CASE\n"), 2;
  for (int i = 0; i < COUNT; i++) {
    numbers[i] = numbered[i] = i;
    equal[i] = 5;
    first[i] = -1;
  }
  CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  CHECK(cudaMalloc(&input, BYTES));
  CHECK(cudaMalloc(&output, BYTES));
  CHECK(cudaMalloc(&more, BYTES));
  CHECK(cudaMallocManaged(&managed, BYTES));
  CHECK(cudaMallocHost(&pinned, BYTES));
  memcpy(managed, numbers, BYTES);
  memcpy(pinned, numbers, BYTES);
  CHECK(cudaMemcpy(input, numbers, BYTES, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(output, 0, BYTES));
  CHECK(cudaMemset(more, 0, BYTES));
  CHECK(cudaDeviceSynchronize());
  if (cases[which].run()) return 1;
  cudaDeviceSynchronize();
  return 0;
}
