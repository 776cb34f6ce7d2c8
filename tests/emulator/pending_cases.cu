// pending_cases: a kernel leaves sums in temporary memory that include values without a meaning. What
// becomes of them later decides: if nobody looks the program must run silent, and its twin, in
// which somebody looks, must be reported (tests/emulator_trials.bats).
//   pending_cases CASE        pending_cases --list
#include <stdio.h>
#include <string.h>

#include "check.h"

enum { THREADS = 128, VALID = 100, FIRST_BAD = VALID, BYTES = THREADS * sizeof(int) };

// `temporary` gets the sums of all threads, `out` only those of the first VALID.
__global__ void leave_sums(const int *in, int *temporary, int *out) {
  __shared__ int tile[THREADS];
  if (threadIdx.x < VALID) tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  int sum = tile[threadIdx.x] + 1;
  temporary[threadIdx.x] = sum;
  if (threadIdx.x < VALID) out[threadIdx.x] = sum;
}

__global__ void store_all(int *to, int value) { to[threadIdx.x] = value; }
__global__ void move_all(const int *from, int *to) { to[threadIdx.x] = from[threadIdx.x]; }
__global__ void move_first(const int *from, int *to, int count) {
  int value = from[threadIdx.x];
  if ((int)threadIdx.x < count) to[threadIdx.x] = value;
}
__global__ void branch_on(const int *from, int *out, int what, int count) {
  int result = 0;
  for (int i = 0; i < (from[threadIdx.x] & 7); i++) result = result * 3 ^ i;
  if ((int)threadIdx.x < count) out[threadIdx.x] = result + what;
}
__global__ void add_to_all(int *to) { atomicAdd(&to[threadIdx.x], 1); }
__global__ void exchange_all(int *with, int *to, int count) {
  int found = atomicExch(&with[threadIdx.x], 0);
  if ((int)threadIdx.x < count) to[threadIdx.x] = found;
}
__global__ void store_if(const int *from, int *to) {
  if (from[VALID] == 1) to[7] = 5;
}
__global__ void print_one(const int *from, int at) {
  if (threadIdx.x == 0) printf("%d\n", from[at]);
}
// The copy engine's way: to shared memory and back.
__global__ void copy_bulk(const int *from, int *to) {
  __shared__ alignas(16) int tile[THREADS];
  __shared__ unsigned long long barrier;
  unsigned shared = (unsigned)__cvta_generic_to_shared(tile);
  unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
  if (threadIdx.x) return;
  asm volatile("mbarrier.init.shared.b64 [%0], 1;\nfence.proxy.async;" ::"r"(bar) : "memory");
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"((int)BYTES));
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared),
      "l"(from), "r"((int)BYTES), "r"(bar)
      : "memory");
  asm volatile(
      "{\n.reg .pred p;\nagain: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n@!p bra "
      "again;\n}" ::"r"(bar)
      : "memory");
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared),
               "r"((int)BYTES)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}

static int host[THREADS], *in, *temporary, *other, *out;

static void leave(void) {
  leave_sums<<<1, THREADS>>>(in, temporary, out);
  CUDA_CHECK(cudaGetLastError());
}
static void copy_out(const int *from, int first, int count) {
  CUDA_CHECK(cudaMemcpy(host + first, from + first, count * sizeof(int), cudaMemcpyDeviceToHost));
}
static void results(void) { copy_out(out, 0, VALID); }

// ---- Copies to the host ----

static void never_looked_at(void) { leave(), results(); }
static void looked_at(void) { leave(), copy_out(temporary, 0, THREADS); }
static void first_looked_at(void) { leave(), copy_out(temporary, 0, VALID); }
static void last_looked_at(void) { leave(), copy_out(temporary, THREADS - 1, 1); }
static void columns(int first) {
  leave();
  CUDA_CHECK(cudaMemcpy2D(host, 2 * sizeof(int), temporary + first, 50 * sizeof(int),
                          2 * sizeof(int), 2, cudaMemcpyDeviceToHost));
}
static void columns_before(void) { columns(10); }
static void columns_with_one(void) { columns(VALID - 51); }
static void stream_copy(int first) {
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  leave_sums<<<1, THREADS, 0, stream>>>(in, temporary, out);
  CUDA_CHECK(cudaMemcpyAsync(host, temporary + first, sizeof(int), cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaStreamDestroy(stream));
}
static void stream_copies_before(void) { stream_copy(VALID - 1); }
static void stream_copies_one(void) { stream_copy(VALID); }

// ---- Overwritten, freed ----

static void fill_and_look(int count) {
  leave();
  CUDA_CHECK(cudaMemset(temporary + FIRST_BAD, 0, count * sizeof(int)));
  copy_out(temporary, 0, THREADS);
}
static void filled(void) { fill_and_look(THREADS - FIRST_BAD); }
static void filled_in_part(void) { fill_and_look(THREADS - FIRST_BAD - 1); }
static void copy_and_look(int count) {
  leave();
  CUDA_CHECK(cudaMemcpy(temporary + FIRST_BAD, host, count * sizeof(int), cudaMemcpyHostToDevice));
  copy_out(temporary, 0, THREADS);
}
static void copied_over(void) { copy_and_look(THREADS - FIRST_BAD); }
static void copied_over_in_part(void) { copy_and_look(THREADS - FIRST_BAD - 1); }
static void store_and_look(int threads) {
  leave();
  store_all<<<1, threads>>>(temporary, 3);
  copy_out(temporary, 0, THREADS);
}
static void stored_over(void) { store_and_look(THREADS); }
static void stored_over_in_part(void) { store_and_look(THREADS - 1); }
// Bytes that nobody has written at all lie there afterwards: the host may look at them.
static void unwritten_bytes_over(void) {
  leave();
  move_all<<<1, THREADS>>>(other, temporary);
  copy_out(temporary, 0, THREADS);
}
static void made_anew(bool launches) {
  leave();
  results();
  for (int i = 0; i < 8; i++) {
    CUDA_CHECK(cudaFree(temporary));
    CUDA_CHECK(cudaMalloc(&temporary, BYTES));
  }
  if (launches) leave();
  copy_out(temporary, 0, THREADS);
}
static void freed_and_made_anew(void) { made_anew(false); }
static void made_anew_and_left_again(void) { made_anew(true); }

// ---- Passed on ----

static void pass_on(int first) {
  leave();
  CUDA_CHECK(cudaMemcpy(other + 5, temporary + first, 20 * sizeof(int), cudaMemcpyDeviceToDevice));
  copy_out(other, 5, 20);
}
static void passed_on_before(void) { pass_on(FIRST_BAD - 20); }
static void passed_on_with_one(void) { pass_on(FIRST_BAD - 19); }
static void passed_on_to_nobody(void) {
  leave();
  CUDA_CHECK(cudaMemcpy(other, temporary, BYTES, cudaMemcpyDeviceToDevice));
  results();
}
__device__ int variable[THREADS];
static void copy_to_variable(int count) {
  leave();
  CUDA_CHECK(
      cudaMemcpyToSymbol(variable, temporary, count * sizeof(int), 0, cudaMemcpyDeviceToDevice));
  results();
}
static void first_in_variable(void) { copy_to_variable(VALID); }
static void all_in_variable(void) { copy_to_variable(THREADS); }

// ---- Read by kernels ----

static void moved_to_nobody(void) {
  leave();
  move_all<<<1, THREADS>>>(temporary, other);
  results();
}
static void moved_and_looked_at(void) {
  leave();
  move_all<<<1, THREADS>>>(temporary, other);
  copy_out(other, 0, THREADS);
}
static void moved_twice(void) {
  int *third;
  CUDA_CHECK(cudaMalloc(&third, BYTES));
  leave();
  move_all<<<1, THREADS>>>(temporary, other);
  CUDA_CHECK(cudaMemset(temporary, 0, BYTES));
  move_all<<<1, THREADS>>>(other, third);
  CUDA_CHECK(cudaMemset(other, 0, BYTES));
  copy_out(third, 0, THREADS);
  CUDA_CHECK(cudaFree(third));
}
static void move_in_part(int count) {
  leave();
  CUDA_CHECK(cudaMemset(other, 0, BYTES));
  move_first<<<1, THREADS>>>(temporary, other, count);
  copy_out(other, 0, THREADS);
}
static void read_and_dropped(void) { move_in_part(VALID); }
static void read_and_stored(void) { move_in_part(VALID + 1); }
static void branch(int count) {
  leave();
  branch_on<<<1, THREADS>>>(temporary, out, 0, count);
  results();
}
static void branched_and_dropped(void) { branch(VALID); }
static void branched_and_stored(void) {
  leave();
  branch_on<<<1, THREADS>>>(temporary, other, 0, THREADS);
  copy_out(other, 0, THREADS);
}
static void added_to(void) {
  leave();
  add_to_all<<<1, THREADS>>>(temporary);
  results();
}
static void added_to_and_looked_at(void) {
  leave();
  add_to_all<<<1, THREADS>>>(temporary);
  copy_out(temporary, 0, THREADS);
}
static void store_elsewhere(bool looks) {
  leave();
  CUDA_CHECK(cudaMemset(other, 0, BYTES));
  store_if<<<1, 1>>>(temporary, other);
  copy_out(looks ? other : out, 0, VALID);
}
static void not_stored_elsewhere(void) { store_elsewhere(false); }
static void not_stored_elsewhere_and_looked_at(void) { store_elsewhere(true); }
// More launches than there can be groups of findings.
static void add_often(bool looks) {
  leave();
  for (int i = 0; i < 300; i++) add_to_all<<<1, THREADS>>>(temporary);
  copy_out(looks ? temporary : out, 0, looks ? THREADS : VALID);
}
static void added_to_often(void) { add_often(false); }
static void added_to_often_and_looked_at(void) { add_often(true); }
static void exchange(int count) {
  leave();
  exchange_all<<<1, THREADS>>>(temporary, out, count);
  copy_out(out, 0, VALID);
  copy_out(temporary, 0, THREADS);
}
static void exchanged_and_dropped(void) { exchange(VALID); }
static void exchanged_and_stored(void) {
  leave();
  exchange_all<<<1, THREADS>>>(temporary, other, THREADS);
  copy_out(other, 0, THREADS);
}
static void bulk(bool looks) {
  leave();
  copy_bulk<<<1, 32>>>(temporary, other);
  if (looks)
    copy_out(other, 0, THREADS);
  else
    results();
}
static void copied_in_bulk(void) { bulk(false); }
static void copied_in_bulk_and_looked_at(void) { bulk(true); }
static void print(int at) {
  leave();
  print_one<<<1, 32>>>(temporary, at);
  CUDA_CHECK(cudaDeviceSynchronize());
  results();
}
static void printed_before(void) { print(VALID - 1); }
static void printed(void) { print(VALID); }

// ---- Again and again ----

static void loop(bool looks) {
  for (int i = 0; i < 20; i++) leave();
  copy_out(looks ? temporary : out, 0, THREADS - (looks ? 0 : THREADS - VALID));
}
static void launched_often(void) { loop(false); }
static void launched_often_and_looked_at(void) { loop(true); }
// The third reader is the first whose result depends on the values.
static void readers(int last) {
  leave();
  for (int i = 0; i < 3; i++) branch_on<<<1, THREADS>>>(temporary, out, i, i == 2 ? last : VALID);
  copy_out(out, 0, THREADS);
}
static void other_reader(bool looks) {
  CUDA_CHECK(cudaMemset(out, 0, BYTES));
  readers(VALID);
  move_first<<<1, THREADS>>>(temporary, out, looks ? THREADS : VALID);
  copy_out(out, 0, THREADS);
}
static void several_readers_drop(void) { other_reader(false); }
static void last_reader_stores(void) { other_reader(true); }

// A graph of the kernel and a copy to the host, launched twice.
static void graph(int first) {
  cudaStream_t stream;
  cudaGraph_t made;
  cudaGraphExec_t ready;
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  leave_sums<<<1, THREADS, 0, stream>>>(in, temporary, out);
  CUDA_CHECK(cudaMemcpyAsync(host, temporary + first, sizeof(int), cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamEndCapture(stream, &made));
  CUDA_CHECK(cudaGraphInstantiate(&ready, made, 0));
  for (int i = 0; i < 2; i++) CUDA_CHECK(cudaGraphLaunch(ready, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaGraphExecDestroy(ready));
  CUDA_CHECK(cudaGraphDestroy(made));
  CUDA_CHECK(cudaStreamDestroy(stream));
}
static void graph_copies_before(void) { graph(VALID - 1); }
static void graph_copies_one(void) { graph(VALID); }

// ---- Memory that the host can read without a call ----

static void in_managed(void) {
  int *managed;
  CUDA_CHECK(cudaMallocManaged(&managed, BYTES));
  leave_sums<<<1, THREADS>>>(in, managed, out);
  CUDA_CHECK(cudaDeviceSynchronize());
  results();
  CUDA_CHECK(cudaFree(managed));
}
static void in_pinned(void) {
  int *pinned;
  CUDA_CHECK(cudaMallocHost(&pinned, BYTES));
  leave_sums<<<1, THREADS>>>(in, pinned, out);
  CUDA_CHECK(cudaDeviceSynchronize());
  results();
  CUDA_CHECK(cudaFreeHost(pinned));
}
static void copy_to_managed(int count) {
  int *managed;
  CUDA_CHECK(cudaMallocManaged(&managed, BYTES));
  leave();
  CUDA_CHECK(cudaMemcpy(managed, temporary, count * sizeof(int), cudaMemcpyDefault));
  results();
  CUDA_CHECK(cudaFree(managed));
}
static void first_to_managed(void) { copy_to_managed(VALID); }
static void all_to_managed(void) { copy_to_managed(THREADS); }

// ---- Programs that never look at any result ----

static void nothing_copied(void) { leave(), CUDA_CHECK(cudaDeviceSynchronize()); }
static void nothing_copied_and_overwritten(void) {
  leave();
  CUDA_CHECK(cudaMemset(temporary, 0, BYTES));
}
static void nothing_copied_and_not_freed(void) {
  leave();
  CUDA_CHECK(cudaMalloc(&temporary, BYTES));
}
static void only_managed_results(void) {
  int *managed;
  CUDA_CHECK(cudaMallocManaged(&managed, BYTES));
  leave_sums<<<1, THREADS>>>(in, temporary, managed);
  CUDA_CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < VALID; i++) host[i] = managed[i];
  CUDA_CHECK(cudaFree(managed));
}

static const struct {
  void (*run)(void);
  const char *name;
  bool reported;
} CASES[] = {
#define SILENT(name) \
  { name, #name, false }
#define REPORTED(name) \
  { name, #name, true }
    SILENT(never_looked_at),
    REPORTED(looked_at),
    SILENT(first_looked_at),
    REPORTED(last_looked_at),
    SILENT(columns_before),
    REPORTED(columns_with_one),
    SILENT(stream_copies_before),
    REPORTED(stream_copies_one),
    SILENT(filled),
    REPORTED(filled_in_part),
    SILENT(copied_over),
    REPORTED(copied_over_in_part),
    SILENT(stored_over),
    REPORTED(stored_over_in_part),
    SILENT(unwritten_bytes_over),
    SILENT(freed_and_made_anew),
    REPORTED(made_anew_and_left_again),
    SILENT(passed_on_before),
    REPORTED(passed_on_with_one),
    SILENT(passed_on_to_nobody),
    SILENT(first_in_variable),
    REPORTED(all_in_variable),
    SILENT(moved_to_nobody),
    REPORTED(moved_and_looked_at),
    REPORTED(moved_twice),
    SILENT(read_and_dropped),
    REPORTED(read_and_stored),
    SILENT(branched_and_dropped),
    REPORTED(branched_and_stored),
    SILENT(added_to),
    REPORTED(added_to_and_looked_at),
    SILENT(not_stored_elsewhere),
    REPORTED(not_stored_elsewhere_and_looked_at),
    SILENT(added_to_often),
    REPORTED(added_to_often_and_looked_at),
    SILENT(exchanged_and_dropped),
    REPORTED(exchanged_and_stored),
    SILENT(copied_in_bulk),
    REPORTED(copied_in_bulk_and_looked_at),
    SILENT(printed_before),
    REPORTED(printed),
    SILENT(launched_often),
    REPORTED(launched_often_and_looked_at),
    SILENT(several_readers_drop),
    REPORTED(last_reader_stores),
    SILENT(graph_copies_before),
    REPORTED(graph_copies_one),
    REPORTED(in_managed),
    REPORTED(in_pinned),
    SILENT(first_to_managed),
    REPORTED(all_to_managed),
    REPORTED(nothing_copied),
    SILENT(nothing_copied_and_overwritten),
    REPORTED(nothing_copied_and_not_freed),
    SILENT(only_managed_results),
};
enum { CASE_COUNT = sizeof CASES / sizeof *CASES };

int main(int argc, char **argv) {
  const char *name = argc == 2 ? argv[1] : "";
  for (int i = 0; i < CASE_COUNT && !strcmp(name, "--list"); i++)
    printf("%s %s\n", CASES[i].name, CASES[i].reported ? "uninitialised-read" : "none");
  if (!strcmp(name, "--list")) return 0;
  int chosen = 0;
  while (chosen < CASE_COUNT && strcmp(name, CASES[chosen].name) != 0) chosen++;
  if (chosen == CASE_COUNT) {
    fprintf(stderr, "usage: pending_cases CASE|--list\n");
    return 2;
  }
  for (int i = 0; i < THREADS; i++) host[i] = i % 7;
  CUDA_CHECK(cudaMalloc(&in, BYTES));
  CUDA_CHECK(cudaMalloc(&temporary, BYTES));
  CUDA_CHECK(cudaMalloc(&other, BYTES));
  CUDA_CHECK(cudaMalloc(&out, BYTES));
  CUDA_CHECK(cudaMemcpy(in, host, BYTES, cudaMemcpyHostToDevice));
  CASES[chosen].run();
  CUDA_CHECK(cudaFree(in));
  CUDA_CHECK(cudaFree(temporary));
  CUDA_CHECK(cudaFree(other));
  CUDA_CHECK(cudaFree(out));
  return 0;
}
