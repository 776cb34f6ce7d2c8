/* copy_windows.cu: how long a copy uses global memory: cp.async until its wait_group. Kernels with and without
 * races, and their known answers.
 *
 *   copy_windows          prints the name of each case and the rule that it breaks ("-": none)
 *   copy_windows NAME     runs one */
#include <cuda_pipeline.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

enum { THREADS = 64, COUNT = 4 * THREADS };

#define KERNEL(name) __global__ void name(int *data)
#define ME threadIdx.x

static __device__ void copy_4(int *to, const int *from) {
  asm volatile(
      "cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
      "l"(from)
      : "memory");
}
static __device__ void copy_16(int *to, const int *from) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
      "l"(from)
      : "memory");
}
static __device__ void commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING>
static __device__ void wait(void) {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
#define SHARED __shared__ __align__(128) int tile[COUNT]

/* ---- cp.async ---- */
KERNEL(own_source_before_wait) {
  SHARED;
  copy_4(&tile[ME], &data[ME]);
  commit();
  data[ME] = 5;
  wait<0>();
}
KERNEL(own_source_after_wait) {
  SHARED;
  copy_4(&tile[ME], &data[ME]);
  commit();
  wait<0>();
  data[ME] = tile[ME] + 5;
}
KERNEL(wide_source_before_wait) {
  SHARED;
  copy_16(&tile[4 * ME], &data[4 * ME]);
  commit();
  data[4 * ME + 3] = 5;
  wait<0>();
}
KERNEL(wide_source_beside) {
  SHARED;
  if (ME % 2 == 0) copy_16(&tile[4 * ME], &data[4 * ME]);
  commit();
  if (ME % 2 == 0) data[4 * ME + 4] = 5;
  wait<0>();
}
KERNEL(other_warp_before_wait) {
  SHARED;
  if (ME < 32) {
    copy_4(&tile[ME], &data[ME]);
    commit();
  }
  __syncthreads();
  if (ME >= 32) data[ME - 32] = 5;
  if (ME < 32) wait<0>();
}
KERNEL(other_warp_after_wait) {
  SHARED;
  if (ME < 32) {
    copy_4(&tile[ME], &data[ME]);
    commit();
    wait<0>();
  }
  __syncthreads();
  if (ME >= 32) data[ME - 32] = 5;
}
KERNEL(other_warp_without_barrier) {
  SHARED;
  if (ME < 32) {
    copy_4(&tile[ME], &data[ME]);
    commit();
    wait<0>();
  } else {
    data[ME - 32] = 5;
  }
}
KERNEL(older_group_after_wait_1) {
  SHARED;
  copy_4(&tile[ME], &data[ME]);
  commit();
  copy_4(&tile[THREADS + ME], &data[THREADS + ME]);
  commit();
  wait<1>();
  data[ME] = 5;
  wait<0>();
}
KERNEL(newer_group_after_wait_1) {
  SHARED;
  copy_4(&tile[ME], &data[ME]);
  commit();
  copy_4(&tile[THREADS + ME], &data[THREADS + ME]);
  commit();
  wait<1>();
  data[THREADS + ME] = 5;
  wait<0>();
}
KERNEL(never_committed) {
  SHARED;
  copy_4(&tile[ME], &data[ME]);
  wait<0>();
  data[ME] = 5;
}
KERNEL(wait_all) {
  SHARED;
  copy_4(&tile[ME], &data[ME]);
  asm volatile("cp.async.wait_all;" ::: "memory");
  data[ME] = 5;
}
KERNEL(by_mbarrier) {
  SHARED;
  __shared__ unsigned long long barrier;
  unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
  if (ME == 0) asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(at) : "memory");
  __syncthreads();
  if (ME < 32) {
    copy_4(&tile[ME], &data[ME]);
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at) : "memory");
  } else {
    asm volatile(
        "{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n\t"
        "@!p bra again; }" ::"r"(at)
        : "memory");
    data[ME - 32] = tile[ME - 32] + 5;
  }
}
KERNEL(in_place_in_stages) {
  SHARED;
  for (int stage = 0; stage < 3; stage++) {
    if (stage == 0) {
      copy_4(&tile[ME], &data[ME]);
      commit();
    }
    copy_4(&tile[(stage + 1) % 2 * THREADS + ME], &data[(stage + 1) * THREADS + ME]);
    commit();
    wait<1>();
    data[stage * THREADS + ME] = tile[stage % 2 * THREADS + ME] * 2;
  }
  wait<0>();
}
KERNEL(lanes_wait_apart) {
  SHARED;
  copy_4(&tile[ME], &data[ME]);
  commit();
  if (ME % 2) {
    wait<0>();
    data[ME] = 5;
  } else {
    wait<0>();
    data[ME] = 6;
  }
}
KERNEL(pipeline_awaited) {
  SHARED;
  __pipeline_memcpy_async(&tile[ME], &data[ME], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  data[ME] = 5;
}
KERNEL(pipeline_not_awaited) {
  SHARED;
  __pipeline_memcpy_async(&tile[ME], &data[ME], 4);
  __pipeline_commit();
  data[ME] = 5;
  __pipeline_wait_prior(0);
}
KERNEL(atomic_into_source) {
  SHARED;
  copy_4(&tile[ME], &data[ME]);
  commit();
  atomicAdd(&data[(ME + 32) % THREADS], 1);
  wait<0>();
}
KERNEL(read_beside_the_copy) {
  SHARED;
  copy_4(&tile[ME], &data[ME]);
  commit();
  int seen = data[(ME + 32) % THREADS];
  wait<0>();
  data[THREADS + ME] = seen;
}

typedef struct {
  const char *name;
  void (*kernel)(int *);
  const char *rule;
} Case;
#define CASE(name, rule) \
  { #name, name, rule }
static const Case CASES[] = {
    CASE(own_source_before_wait, "global-race"),
    CASE(own_source_after_wait, "-"),
    CASE(wide_source_before_wait, "global-race"),
    CASE(wide_source_beside, "-"),
    CASE(other_warp_before_wait, "global-race"),
    CASE(other_warp_after_wait, "-"),
    CASE(other_warp_without_barrier, "global-race"),
    CASE(older_group_after_wait_1, "-"),
    CASE(newer_group_after_wait_1, "global-race"),
    CASE(never_committed, "global-race"),
    CASE(wait_all, "-"),
    CASE(by_mbarrier, "-"),
    CASE(in_place_in_stages, "-"),
    CASE(lanes_wait_apart, "-"),
    CASE(pipeline_awaited, "-"),
    CASE(pipeline_not_awaited, "global-race"),
    CASE(atomic_into_source, "global-race"),
    CASE(read_beside_the_copy, "-"),
};

int main(int argc, char **argv) {
  int *data, ran = 0;
  CUDA_CHECK(cudaMalloc(&data, COUNT * sizeof *data));
  for (const Case &test : CASES) {
    if (argc > 1 && strcmp(argv[1], test.name) != 0) continue;
    CUDA_CHECK(cudaMemset(data, 0, COUNT * sizeof *data));
    test.kernel<<<1, THREADS>>>(data);
    CUDA_CHECK(cudaDeviceSynchronize());
    printf("%s %s\n", test.name, test.rule);
    ran++;
  }
  if (ran) return 0;
  fprintf(stderr, "copy_windows: there is no case %s\n", argv[1]);
  return 2;
}
