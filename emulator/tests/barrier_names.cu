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
CASE(by_a_function, "empty[2]") {
  Ring *shared = (Ring *)dynamic;
  if (threadIdx.x == 0) {
    begin(shared->full);
    begin(shared->empty);
  }
  wait(&shared->empty[2]);
}
static __device__ void begin_two(int count, uint64_t *first, uint64_t second[] = nullptr) {
  for (int i = 0; i < STAGES; i++) {
    mbarrier_init(first + i, count);
    mbarrier_init(&second[i], count);
  }
}
CASE(second_parameter, "empty[1]") {
  Ring *shared = (Ring *)dynamic;
  if (threadIdx.x == 0) begin_two(1, &shared->full[0], shared->empty);
  wait(&shared->empty[1]);
}
static __device__ __noinline__ void begin_one(uint64_t *barrier) { mbarrier_init(barrier, 1); }
static __device__ void begin_further_out(uint64_t *barrier, uint32_t unused) { begin_one(barrier); }
CASE(through_two_functions, "full[3]") {
  uint64_t *full = (uint64_t *)(dynamic + BYTES);
  if (threadIdx.x == 0)
    for (int i = 0; i < STAGES; i++) begin_further_out(&full[i], 1);
  wait(&full[3]);
}
static __device__ void begin_stage(Stage *stage) { mbarrier_init(&stage->full, 1); }
CASE(member_of_a_parameter, "ring[1].full") {
  __shared__ Stage ring[2];
  if (threadIdx.x < 2) begin_stage(&ring[threadIdx.x]);
  wait(&ring[1].full);
}
static __device__ void begin_ring(Ring *ring) {
  for (int i = 0; i < STAGES; i++) mbarrier_init(&ring->empty[i], 1);
}
CASE(array_in_a_parameter, "empty[3]") {
  if (threadIdx.x == 0) begin_ring((Ring *)dynamic);
  wait(&((Ring *)dynamic)->empty[3]);
}
CASE(array_in_one_of_several, "") {
  Ring *rings = (Ring *)dynamic;
  if (threadIdx.x < 2) begin_ring(&rings[threadIdx.x]);
  wait(&rings[1].empty[3]);
}
static __device__ void begin_at(uint64_t *barriers, int i) { mbarrier_init(&barriers[i], 1); }
CASE(index_of_the_caller, "") {
  Ring *shared = (Ring *)dynamic;
  if (threadIdx.x == 0)
    for (int i = 1; i < STAGES; i++) begin_at(shared->full, i);
  wait(&shared->full[2]);
}
struct Barrier {
  uint64_t word;
  __device__ void init(uint32_t count) { mbarrier_init(&word, count); }
};
CASE(by_its_own_function, "") {
  Barrier *done = (Barrier *)(dynamic + BYTES);
  if (threadIdx.x == 0) done->init(1);
  wait(&done->word);
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
