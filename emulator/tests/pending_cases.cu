// pending_cases: a kernel leaves sums in temporary memory that include values without a meaning. What
// becomes of them later decides: if nobody looks the program must run silent, and its twin, in
// which somebody looks, must be reported (emulator/tests/trials.bats).
// What random_pending draws (kernels that store, move and add, copies and fills) is not among them.
//   pending_cases CASE        pending_cases --list
#include "cases.cuh"
#include "copies.cuh"
#include "check.h"

enum { THREADS = 128, VALID = 100, BYTES = THREADS * sizeof(int) };

// `temporary` gets the sums of all threads, `out` only those of the first VALID.
__global__ void leave_sums(const int *in, int *temporary, int *out) {
  __shared__ int tile[THREADS];
  if (threadIdx.x < VALID) tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  int sum = tile[threadIdx.x] + 1;
  temporary[threadIdx.x] = sum;
  if (threadIdx.x < VALID) out[threadIdx.x] = sum;
}

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
  __shared__ uint64_t barrier;
  if (threadIdx.x) return;
  mbarrier_init(&barrier, 1);
  fence_proxy_async();
  expect_and_load(tile, from, BYTES, &barrier);
  mbarrier_wait_parity(&barrier, 0);
  store_and_wait(to, tile, BYTES);
}

typedef void Run(void);
#define SILENT(name) CASE_OF(Run, name, "none", static void, (void))
#define REPORTED(name) CASE_OF(Run, name, "uninitialised-read", static void, (void))

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

SILENT(never_looked_at) { leave(), results(); }
REPORTED(looked_at) { leave(), copy_out(temporary, 0, THREADS); }
static void columns(int first) {
  leave();
  CUDA_CHECK(cudaMemcpy2D(host, 2 * sizeof(int), temporary + first, 50 * sizeof(int),
                          2 * sizeof(int), 2, cudaMemcpyDeviceToHost));
}
SILENT(columns_before) { columns(10); }
REPORTED(columns_with_one) { columns(VALID - 51); }
static void stream_copy(int first) {
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  leave_sums<<<1, THREADS, 0, stream>>>(in, temporary, out);
  CUDA_CHECK(cudaMemcpyAsync(host, temporary + first, sizeof(int), cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaStreamDestroy(stream));
}
SILENT(stream_copies_before) { stream_copy(VALID - 1); }
REPORTED(stream_copies_one) { stream_copy(VALID); }

// ---- Overwritten, freed ----

// Bytes that nobody has written at all lie there afterwards: the host may look at them.
SILENT(unwritten_bytes_over) {
  leave();
  move_all<<<1, THREADS>>>(other, temporary);
  copy_out(temporary, 0, THREADS);
}
SILENT(freed_and_made_anew) {
  leave();
  results();
  for (int i = 0; i < 8; i++) {
    CUDA_CHECK(cudaFree(temporary));
    CUDA_CHECK(cudaMalloc(&temporary, BYTES));
  }
  copy_out(temporary, 0, THREADS);
}

// ---- Passed on ----

__device__ int variable[THREADS];
static void copy_to_variable(int count) {
  leave();
  CUDA_CHECK(
      cudaMemcpyToSymbol(variable, temporary, count * sizeof(int), 0, cudaMemcpyDeviceToDevice));
  results();
}
SILENT(first_in_variable) { copy_to_variable(VALID); }
REPORTED(all_in_variable) { copy_to_variable(THREADS); }

// ---- Read by kernels ----

static void branch(int count) {
  leave();
  branch_on<<<1, THREADS>>>(temporary, out, 0, count);
  results();
}
SILENT(branched_and_dropped) { branch(VALID); }
REPORTED(branched_and_stored) {
  leave();
  branch_on<<<1, THREADS>>>(temporary, other, 0, THREADS);
  copy_out(other, 0, THREADS);
}
static void store_elsewhere(bool looks) {
  leave();
  CUDA_CHECK(cudaMemset(other, 0, BYTES));
  store_if<<<1, 1>>>(temporary, other);
  copy_out(looks ? other : out, 0, VALID);
}
SILENT(not_stored_elsewhere) { store_elsewhere(false); }
REPORTED(not_stored_elsewhere_and_looked_at) { store_elsewhere(true); }
// More launches than there can be groups of findings.
static void add_often(bool looks) {
  leave();
  for (int i = 0; i < 300; i++) add_to_all<<<1, THREADS>>>(temporary);
  copy_out(looks ? temporary : out, 0, looks ? THREADS : VALID);
}
SILENT(added_to_often) { add_often(false); }
REPORTED(added_to_often_and_looked_at) { add_often(true); }
static void exchange(int count) {
  leave();
  exchange_all<<<1, THREADS>>>(temporary, out, count);
  copy_out(out, 0, VALID);
  copy_out(temporary, 0, THREADS);
}
SILENT(exchanged_and_dropped) { exchange(VALID); }
REPORTED(exchanged_and_stored) {
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
SILENT(copied_in_bulk) { bulk(false); }
REPORTED(copied_in_bulk_and_looked_at) { bulk(true); }
static void print(int at) {
  leave();
  print_one<<<1, 32>>>(temporary, at);
  CUDA_CHECK(cudaDeviceSynchronize());
  results();
}
SILENT(printed_before) { print(VALID - 1); }
REPORTED(printed) { print(VALID); }

// ---- Again and again ----

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
SILENT(several_readers_drop) { other_reader(false); }
REPORTED(last_reader_stores) { other_reader(true); }

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
SILENT(graph_copies_before) { graph(VALID - 1); }
REPORTED(graph_copies_one) { graph(VALID); }

// ---- Memory that the host can read without a call ----

REPORTED(in_managed) {
  int *managed;
  CUDA_CHECK(cudaMallocManaged(&managed, BYTES));
  leave_sums<<<1, THREADS>>>(in, managed, out);
  CUDA_CHECK(cudaDeviceSynchronize());
  results();
  CUDA_CHECK(cudaFree(managed));
}
REPORTED(in_pinned) {
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
SILENT(first_to_managed) { copy_to_managed(VALID); }
REPORTED(all_to_managed) { copy_to_managed(THREADS); }

// ---- Programs that never look at any result ----

REPORTED(nothing_copied) { leave(), CUDA_CHECK(cudaDeviceSynchronize()); }
SILENT(nothing_copied_and_overwritten) {
  leave();
  CUDA_CHECK(cudaMemset(temporary, 0, BYTES));
}
REPORTED(nothing_copied_and_not_freed) {
  leave();
  CUDA_CHECK(cudaMalloc(&temporary, BYTES));
}
SILENT(only_managed_results) {
  int *managed;
  CUDA_CHECK(cudaMallocManaged(&managed, BYTES));
  leave_sums<<<1, THREADS>>>(in, temporary, managed);
  CUDA_CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < VALID; i++) host[i] = managed[i];
  CUDA_CHECK(cudaFree(managed));
}

int main(int argc, char **argv) {
  const Case<Run> *chosen = choose_case<Run>(argc, argv);
  for (int i = 0; i < THREADS; i++) host[i] = i % 7;
  CUDA_CHECK(cudaMalloc(&in, BYTES));
  CUDA_CHECK(cudaMalloc(&temporary, BYTES));
  CUDA_CHECK(cudaMalloc(&other, BYTES));
  CUDA_CHECK(cudaMalloc(&out, BYTES));
  CUDA_CHECK(cudaMemcpy(in, host, BYTES, cudaMemcpyHostToDevice));
  chosen->run();
  CUDA_CHECK(cudaFree(in));
  CUDA_CHECK(cudaFree(temporary));
  CUDA_CHECK(cudaFree(other));
  CUDA_CHECK(cudaFree(out));
  return 0;
}
