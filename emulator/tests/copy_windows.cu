/* copy_windows.cu: how long a copy uses global memory: cp.async until its wait_group. Kernels with and without
 * races, and their known answers.
 *
 *   copy_windows          prints the name of each case and the rule that it breaks ("-": none)
 *   copy_windows NAME     runs one */
#include "../../02_tma_load/mbarrier.cuh"
#include "cases.cuh"
#include "device_memory.cuh"
#include "ptx.cuh"

enum { THREADS = 64, COUNT = 4 * THREADS };

typedef void Kernel(int *data);
#define CASE(name, rule) CASE_OF(Kernel, name, rule, __global__ void, (int *data))
#define ME threadIdx.x

static __device__ void copy_4(int *to, const int *from) {
  PTX("cp.async.ca.shared.global [%0], [%1], 4;", "r"(shared_address(to)), "l"(from));
}
static __device__ void copy_16(int *to, const int *from) {
  PTX("cp.async.cg.shared.global [%0], [%1], 16;", "r"(shared_address(to)), "l"(from));
}
static __device__ void commit(void) { PTX("cp.async.commit_group;"); }
template <int PENDING>
static __device__ void wait(void) {
  PTX("cp.async.wait_group %0;", "n"(PENDING));
}
static __shared__ __align__(128) int tile[COUNT];
/* Each thread its own word, committed. */
static __device__ void copy_own(const int *data) {
  copy_4(&tile[ME], &data[ME]);
  commit();
}

/* ---- cp.async ---- */
CASE(own_source_before_wait, "global-race") {
  copy_own(data);
  data[ME] = 5;
  wait<0>();
}
CASE(own_source_after_wait, "-") {
  copy_own(data);
  wait<0>();
  data[ME] = tile[ME] + 5;
}
CASE(wide_source_before_wait, "global-race") {
  copy_16(&tile[4 * ME], &data[4 * ME]);
  commit();
  data[4 * ME + 3] = 5;
  wait<0>();
}
CASE(wide_source_beside, "-") {
  if (ME % 2 == 0) copy_16(&tile[4 * ME], &data[4 * ME]);
  commit();
  if (ME % 2 == 0) data[4 * ME + 4] = 5;
  wait<0>();
}
CASE(other_warp_before_wait, "global-race") {
  if (ME < 32) {
    copy_own(data);
  }
  __syncthreads();
  if (ME >= 32) data[ME - 32] = 5;
  if (ME < 32) wait<0>();
}
CASE(other_warp_after_wait, "-") {
  if (ME < 32) {
    copy_own(data);
    wait<0>();
  }
  __syncthreads();
  if (ME >= 32) data[ME - 32] = 5;
}
CASE(other_warp_without_barrier, "global-race") {
  if (ME < 32) {
    copy_own(data);
    wait<0>();
  } else {
    data[ME - 32] = 5;
  }
}
CASE(older_group_after_wait_1, "-") {
  copy_own(data);
  copy_4(&tile[THREADS + ME], &data[THREADS + ME]);
  commit();
  wait<1>();
  data[ME] = 5;
  wait<0>();
}
CASE(newer_group_after_wait_1, "global-race") {
  copy_own(data);
  copy_4(&tile[THREADS + ME], &data[THREADS + ME]);
  commit();
  wait<1>();
  data[THREADS + ME] = 5;
  wait<0>();
}
CASE(never_committed, "global-race") {
  copy_4(&tile[ME], &data[ME]);
  wait<0>();
  data[ME] = 5;
}
CASE(wait_all, "-") {
  copy_4(&tile[ME], &data[ME]);
  PTX("cp.async.wait_all;");
  data[ME] = 5;
}
CASE(by_mbarrier, "-") {
  __shared__ uint64_t barrier;
  if (ME == 0) mbarrier_init(&barrier, 32);
  __syncthreads();
  if (ME < 32) {
    copy_4(&tile[ME], &data[ME]);
    PTX("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];", "r"(shared_address(&barrier)));
  } else {
    mbarrier_wait_parity(&barrier, 0);
    data[ME - 32] = tile[ME - 32] + 5;
  }
}
CASE(in_place_in_stages, "-") {
  for (int stage = 0; stage < 3; stage++) {
    if (stage == 0) {
      copy_own(data);
    }
    copy_4(&tile[(stage + 1) % 2 * THREADS + ME], &data[(stage + 1) * THREADS + ME]);
    commit();
    wait<1>();
    data[stage * THREADS + ME] = tile[stage % 2 * THREADS + ME] * 2;
  }
  wait<0>();
}
CASE(lanes_wait_apart, "-") {
  copy_own(data);
  if (ME % 2) {
    wait<0>();
    data[ME] = 5;
  } else {
    wait<0>();
    data[ME] = 6;
  }
}
CASE(atomic_into_source, "global-race") {
  copy_own(data);
  atomicAdd(&data[(ME + 32) % THREADS], 1);
  wait<0>();
}
CASE(read_beside_the_copy, "-") {
  copy_own(data);
  int seen = data[(ME + 32) % THREADS];
  wait<0>();
  data[THREADS + ME] = seen;
}

static void run_case(const Case<Kernel> *test, int *data) {
  CUDA_CHECK(cudaMemset(data, 0, COUNT * sizeof *data));
  test->run<<<1, THREADS>>>(data);
  CUDA_CHECK(cudaDeviceSynchronize());
  printf("%s %s\n", test->name, test->says);
}

int main(int argc, char **argv) {
  const Case<Kernel> *chosen = choose_case<Kernel>(argc, argv, true);
  int *data = device_memory<int>(COUNT);
  if (chosen) run_case(chosen, data);
  for (const Case<Kernel> *test = Case<Kernel>::first; test && !chosen; test = test->next)
    run_case(test, data);
  return 0;
}
