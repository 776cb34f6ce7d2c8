// peer_order: does what a thread has stored in a peer's shared memory come before its arrival at the
// peer's barrier? Prints how many of the words that the peer reads after its wait are old, for arrivals and
// waits of scope .cta and .cluster.
//
// An H200 (23 November 2026, 16 clusters of 8 blocks, 200 rounds, three launches): of 39,312,000 words
//   arrive .cta,     wait .cta      2,407,724 old
//   arrive .cta,     wait .cluster  2,362,939 old
//   arrive .cluster, with either            0 old
// In clusters of 2, 72,987 of 39,321,600. With stores in order, none. The emulator never loses a store; it
// reports the arrivals of scope .cta (scope-too-narrow).

#include "../../05_multicast/cluster.cuh"
#include "copies.cuh"
#include "device_memory.cuh"

enum { BLOCKS = 8, CLUSTERS = 16, THREADS = 256, WORDS = 4096, ROUNDS = 200, STEP = 37 };
enum { WRITERS = BLOCKS - 1, WORDS_EACH = WORDS / WRITERS };

__global__ void __cluster_dims__(BLOCKS, 1, 1)
    publish(bool wide_arrival, bool wide_wait, int rounds, unsigned long long *old) {
  __shared__ uint32_t words[WORDS];
  __shared__ uint64_t barrier;
  uint32_t rank = cluster_rank(), stale = 0;
  begin_by_first(&barrier, WRITERS * THREADS);
  for (uint32_t i = threadIdx.x; i < WORDS; i += THREADS) words[i] = 0;
  cluster_sync();
  for (int round = 1; round <= rounds; round++) {
    if (rank > 0) {
      for (uint32_t i = threadIdx.x; i < WORDS_EACH; i += THREADS) {
        uint32_t *own = &words[(rank - 1) * WORDS_EACH + i * STEP % WORDS_EACH];
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(mapa_shared(own, 0)), "r"(round)
                     : "memory");
      }
      uint32_t there = mapa_shared(&barrier, 0);
      if (wide_arrival)
        mbarrier_arrive_release_cluster(there);
      else
        mbarrier_arrive_cluster(there);
    } else {
      if (wide_wait)
        mbarrier_wait_parity_cluster(&barrier, (round - 1) & 1);
      else
        mbarrier_wait_parity(&barrier, (round - 1) & 1);
      for (uint32_t i = threadIdx.x; i < WRITERS * WORDS_EACH; i += THREADS)
        stale += words[WRITERS * WORDS_EACH - 1 - i] != (uint32_t)round;
    }
    cluster_sync();
  }
  if (stale) atomicAdd(old, stale);
}

int main(int argc, char **argv) {
  int rounds = argc == 2 ? atoi(argv[1]) : ROUNDS;
  for (int form = 0; form < 4; form++) {
    unsigned long long *old = device_filled<unsigned long long>(1, 0), found;
    publish<<<BLOCKS * CLUSTERS, THREADS>>>(form & 2, form & 1, rounds, old);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(&found, old, sizeof found, cudaMemcpyDeviceToHost));
    printf("arrive %s, wait %s: %llu old\n", form & 2 ? ".cluster" : ".cta",
           form & 1 ? ".cluster" : ".cta", found);
  }
  return 0;
}
