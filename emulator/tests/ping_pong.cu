// ping_pong: two blocks of one thread pass a number back and forth, each into the one inbox of the other. A thread
// overwrites that inbox only when it has got the answer, which was sent after the inbox had been read: by the same
// operation, whose complete-tx hands on what its thread had done before. pipelines.bats wants silence.
//   ping_pong CASE    prints "CASE: cudaError..., N", N being the last number
// In "unanswered", rank 0 sends twice before it waits for the answer. "vector" sends the number behind 1, 2 and 3.
#include "../../05_multicast/cluster.cuh"
#include "cases.cuh"
#include "copies.cuh"
#include "device_memory.cuh"
#include "ptx.cuh"

enum { ROUNDS = 10 };

static const char *const CASES[] = {"store", "vector", "reduce", "bulk", "unanswered"};
enum { STORE, VECTOR, REDUCE, BULK, UNANSWERED };

static __device__ void send(int which, uint32_t to, uint32_t value, uint32_t *source,
                            uint32_t barrier) {
  if (which == BULK) {
    source[0] = value;
    PTX("fence.proxy.async.shared::cta;");
    bulk_copy_to_cluster(to, source, 16, barrier);
  } else if (which == VECTOR) {
    PTX("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, "
        "[%5];",
        "r"(to), "r"(1), "r"(2), "r"(3), "r"(value), "r"(barrier));
  } else if (which == REDUCE) {
    PTX("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.u32 [%0], %1, "
        "[%2];",
        "r"(to), "r"(value), "r"(barrier));
  } else {
    PTX("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];", "r"(to),
        "r"(value), "r"(barrier));
  }
}

__global__ void __cluster_dims__(2, 1, 1) ping_pong(int which, uint32_t *out) {
  __shared__ alignas(16) uint32_t inbox[4], source[4];
  __shared__ uint64_t full;
  const uint32_t rank = cluster_rank(), bytes = which == BULK || which == VECTOR ? 16 : 4;
  uint32_t to = mapa_shared(inbox, rank ^ 1), barrier = mapa_shared(&full, rank ^ 1), value = 1;
  inbox[0] = 0;
  begin_barrier(&full, 1);
  mbarrier_arrive_expect_tx(&full, rank == 1 && which == UNANSWERED ? 2 * bytes : bytes);
  for (int i = 0; i < 4; i++) source[i] = 0;
  cluster_sync();
  if (rank == 0) send(which, to, value, source, barrier);
  if (rank == 0 && which == UNANSWERED) send(which, to, value + 1, source, barrier);
  for (int round = 0; round < ROUNDS; round++) {
    mbarrier_wait_parity_cluster(&full, round % 2);
    value = inbox[0] + 1;
    if (which == VECTOR) value += inbox[3] + 4 * inbox[1] - 3 * inbox[2];  // 1, 2, 3
    if (round + 1 < ROUNDS) mbarrier_arrive_expect_tx(&full, bytes);
    if (rank == 1 || round + 1 < ROUNDS) send(which, to, value, source, barrier);
  }
  cluster_sync();
  if (rank == 0) *out = value;
}

int main(int argc, char **argv) {
  const int which = choose_of(CASES, argc, argv);
  uint32_t *out = device_memory<uint32_t>(1), got = 0;
  ping_pong<<<2, 1>>>(which, out);
  cudaError_t error = cudaMemcpy(&got, out, sizeof got, cudaMemcpyDeviceToHost);
  printf("%s: %s, %u\n", CASES[which], cudaGetErrorName(error), got);
  return 0;
}
