/* barrier_names.cu: waits that never end, at mbarriers that lie wherever a kernel may put them. The second words are
 * what the report calls the barrier: "" if it cannot know.
 *
 *   barrier_names CASE    launches that kernel; --list prints their names and these words */
#include "../../02_tma_load/tma_load.cuh"
#include "cases.cuh"

typedef void Kernel(void);
#define CASE(name, says) CASE_OF(Kernel, name, says, __global__ void, (void))

enum { STAGES = 4, BYTES = 4096 };
struct Ring {
  alignas(128) unsigned char tile[BYTES];
  uint64_t full[STAGES], empty[STAGES], done;
};
struct Stage {
  alignas(128) unsigned char tile[BYTES];
  uint64_t full;
};
extern __shared__ __align__(128) unsigned char dynamic[];

static __device__ void wait(uint64_t *barrier) {
  __syncthreads();
  mbarrier_wait_parity(barrier, 0);
}

CASE(static_struct, "empty[2]") {
  __shared__ Ring ring;
  if (threadIdx.x == 0)
    for (int stage = 0; stage < STAGES; stage++) {
      mbarrier_init(&ring.full[stage], 1);
      mbarrier_init(&ring.empty[stage], 1);
    }
  wait(&ring.empty[2]);
}
CASE(dynamic_struct, "full[3]") {
  Ring *shared = (Ring *)dynamic;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; stage++) mbarrier_init(&shared->full[stage], 1);
    mbarrier_init(&shared->done, 1);
  }
  wait(&shared->full[3]);
}
CASE(member_of_its_own, "done") {
  Ring *shared = (Ring *)dynamic;
  if (threadIdx.x == 0) mbarrier_init(&shared->done, 1);
  wait(&shared->done);
}
CASE(static_array, "full[2]") {
  __shared__ uint64_t full[STAGES];
  if (threadIdx.x < STAGES) mbarrier_init(&full[threadIdx.x], 1);
  wait(&full[2]);
}
CASE(dynamic_array, "full[2]") {
  uint64_t *full = (uint64_t *)(dynamic + BYTES);
  if (threadIdx.x < STAGES) mbarrier_init(&full[threadIdx.x], 1);  // init(&each)
  wait(&full[2]);
}
CASE(dynamic_sum, "full[1]") {
  uint64_t *full = (uint64_t *)(dynamic + BYTES);
  const int i = threadIdx.x;
  if (i < STAGES) mbarrier_init(full + i, 1);
  wait(&full[1]);
}
CASE(struct_for_each_stage, "ring[1].full") {
  Stage *ring = (Stage *)dynamic;
  if (threadIdx.x == 0)
    for (int i = 0; i < 2; i++) mbarrier_init(&ring[i].full, 1);
  wait(&ring[1].full);
}
CASE(fixed_index, "full[3]") {
  Ring *shared = (Ring *)dynamic;
  if (threadIdx.x == 0) mbarrier_init(&shared->full[3], 1);
  wait(&shared->full[3]);
}
CASE(begins_at_one, "") {
  Ring *shared = (Ring *)dynamic;
  if (threadIdx.x == 0)
    for (int stage = 1; stage < STAGES; stage++) mbarrier_init(&shared->full[stage], 1);
  wait(&shared->full[3]);
}
CASE(begins_at_another_thread, "") {
  Ring *shared = (Ring *)dynamic;
  if (threadIdx.x > 0 && threadIdx.x < 4) mbarrier_init(&shared->full[threadIdx.x], 1);
  wait(&shared->full[3]);
}
CASE(every_other, "") {
  Ring *shared = (Ring *)dynamic;
  if (threadIdx.x == 0)
    for (int stage = 0; stage < STAGES; stage += 2) mbarrier_init(&shared->full[stage], 1);
  wait(&shared->full[2]);
}
CASE(one_again, "") {
  Ring *shared = (Ring *)dynamic;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; stage++) mbarrier_init(&shared->full[stage], 1);
    mbarrier_inval(&shared->full[0]);
    mbarrier_init(&shared->full[0], 1);
  }
  wait(&shared->full[2]);
}
static __device__ __noinline__ void begin(uint64_t *barriers) {
  for (int i = 0; i < STAGES; i++) mbarrier_init(&barriers[i], 1);
}
CASE(by_a_function, "") {
  Ring *shared = (Ring *)dynamic;
  if (threadIdx.x == 0) {
    begin(shared->full);
    begin(shared->empty);
  }
  wait(&shared->empty[2]);
}
CASE(two_on_a_line, "") {
  Ring *shared = (Ring *)dynamic;
  // clang-format off
  if (threadIdx.x == 0) { mbarrier_init(&shared->full[0], 1); mbarrier_init(&shared->done, 1); }
  // clang-format on
  wait(&shared->done);
}

int main(int argc, char **argv) {
  choose_case<Kernel>(argc, argv)->run<<<1, 32, 2 * sizeof(Ring)>>>();
  printf("%s: %s\n", argv[1], cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}
