// 05 multicast, aside: what each form of fence.proxy.async is for.
//
//   beside dsmem; chapter 03 explains why there is a fence
//
// The fence orders what *this thread* did through ordinary loads and stores before what the engine
// does later. Its suffix says in which memory. It must name the memory that both touch:
//
//   .shared::cta       I wrote my block's tile, and the engine stores it           (own tile)
//   .shared::cluster   I wrote a peer's tile, and the peer has it stored           (peer's tile)
//   .global            I wrote global memory, and a load in this kernel reads it   (list)
//   none               all of these: when in doubt. --bench shows the price
//   ::generic.release.sync_restrict::shared::cta.cluster, and its ::generic.acquire
//                      one direction only; libcu++ has it. Nothing here needs it
//
// A fence for another memory is none (../03_tma_store/pitfalls/fence_of_the_other_memory). Two fences
// have "proxy" or "mbarrier" in their names for other reasons: fence.proxy.tensormap is for maps that
// were changed (02 tensormap_replace), and fence.mbarrier_init for barriers.
//
// Each of two blocks fills its own tile, its peer's other tile, and a list in global memory. Then it
// stores both tiles, and loads the list. All of it is done twice: with the form that fits, and with
// the fence for all memory.
#include <stdio.h>

#include "../02_tma_load/tma_load.cuh"
#include "../03_tma_store/tma_store.cuh"
#include "check.h"
#include "cluster.cuh"

enum { BLOCKS = 2, WORDS = 64, BYTES = WORDS * 4, OWN = 0, FROM_PEER, LIST, PARTS };

// results[rank][part][i] = 1000 (rank + 1) + 100 part + i, where the rank is that of the writer.
__global__ void __cluster_dims__(BLOCKS, 1, 1)
    write_fence_copy(bool for_all, uint32_t *list, uint32_t *results) {
  __shared__ alignas(128) uint32_t own[WORDS], from_peer[WORDS], loaded[WORDS];
  __shared__ uint64_t full;
  uint32_t rank = cluster_rank(), value = 1000 * (rank + 1) + threadIdx.x;
  uint32_t *result = &results[rank * PARTS * WORDS];
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
  }
  cluster_sync();  // the peer has begun: its shared memory can be written
  own[threadIdx.x] = value + 100 * OWN;
  st_shared_cluster(mapa_shared(&from_peer[threadIdx.x], rank ^ 1), value + 100 * FROM_PEER);
  list[rank * WORDS + threadIdx.x] = value + 100 * LIST;
  if (for_all) {
    fence_proxy_async_all();
  } else {
    fence_proxy_async();          // own
    fence_proxy_async_cluster();  // from_peer, of the peer
    fence_proxy_async_global();   // list
  }
  cluster_sync();  // everybody has written and fenced
  if (threadIdx.x == 0) {
    bulk_store(&result[OWN * WORDS], own, BYTES);
    bulk_store(&result[FROM_PEER * WORDS], from_peer, BYTES);
    bulk_commit_group();
    mbarrier_arrive_expect_tx(&full, BYTES);
    bulk_load(loaded, &list[rank * WORDS], BYTES, &full);
    bulk_wait_group_read<0>();
  }
  mbarrier_wait_parity(&full, 0);
  result[LIST * WORDS + threadIdx.x] = loaded[threadIdx.x];
}

enum { ROUNDS = 1000, FORMS = 5 };
static const char *const forms[FORMS] = {"none", ".shared::cta", ".shared::cluster", ".global",
                                         "all memory"};

// Clocks of ROUNDS times a store of 4 bytes by each thread, to shared or to global memory, and a fence.
__global__ void time_fences(int form, bool to_global, uint32_t *memory, int64_t *clocks) {
  __shared__ uint32_t words[128];
  volatile uint32_t *word = to_global ? &memory[threadIdx.x] : &words[threadIdx.x];
  int64_t start = clock64();
  for (int round = 0; round < ROUNDS; round++) {
    *word = round;
    if (form == 1) fence_proxy_async();
    if (form == 2) fence_proxy_async_cluster();
    if (form == 3) fence_proxy_async_global();
    if (form == 4) fence_proxy_async_all();
  }
  if (threadIdx.x == 0) *clocks = clock64() - start;
}

static void bench(uint32_t *memory) {
  int64_t *clocks, took;
  CUDA_CHECK(cudaMalloc(&clocks, sizeof *clocks));
  FILE *csv = fopen("build/05_multicast/proxy_fences.csv", "w");
  if (!csv) program_fail("cannot write build/05_multicast/proxy_fences.csv: run it at the root");
  fprintf(csv, "fence,clocks after a store to shared memory,to global memory\n");
  for (int form = 0; form < FORMS; form++) {
    fprintf(csv, "%s", forms[form]);
    for (int to_global = 0; to_global < 2; to_global++) {
      time_fences<<<1, 128>>>(form, to_global, memory, clocks);
      CUDA_CHECK(cudaGetLastError());
      CUDA_CHECK(cudaMemcpy(&took, clocks, sizeof took, cudaMemcpyDeviceToHost));
      fprintf(csv, ",%.1f", (double)took / ROUNDS);
    }
    fprintf(csv, "\n");
  }
  fclose(csv);
  CUDA_CHECK(cudaFree(clocks));
}

int main(int argc, char **argv) {
  long timed = 0;
  Option options[] = {{"--bench", "time it, and write a table as CSV", &timed, 0, 0}};
  program_begin("proxy_fences", argc, argv, options, 1);
  uint32_t got[BLOCKS][PARTS][WORDS], expected[BLOCKS][PARTS][WORDS], *list, *results;
  CUDA_CHECK(cudaMalloc(&list, BLOCKS * BYTES));
  CUDA_CHECK(cudaMalloc(&results, sizeof got));
  if (timed) {
    bench(list);
    return program_end("clocks of %d fences", FORMS);
  }
  for (int i = 0; i < BLOCKS * PARTS * WORDS; i++) {
    int rank = i / WORDS / PARTS, part = i / WORDS % PARTS;
    int writer = part == FROM_PEER ? rank ^ 1 : rank;
    expected[rank][part][i % WORDS] = (uint32_t)(1000 * (writer + 1) + 100 * part + i % WORDS);
  }
  printf("first words of each block: own tile, peer's tile, list\n");
  for (int for_all = 0; for_all < 2; for_all++) {
    CUDA_CHECK(cudaMemset(results, 0xff, sizeof got));
    write_fence_copy<<<BLOCKS, WORDS>>>(for_all == 1, list, results);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(got, results, sizeof got, cudaMemcpyDeviceToHost));
    printf("  %-12s", for_all ? "all memory" : "each its own");
    for (int rank = 0; rank < BLOCKS; rank++)
      printf("   %u %u %u", got[rank][OWN][0], got[rank][FROM_PEER][0], got[rank][LIST][0]);
    printf("\n");
    check_tile("the results", ELEMENT_U32, got, expected, BLOCKS * PARTS, WORDS, 0);
  }
  CUDA_CHECK(cudaFree(list));
  CUDA_CHECK(cudaFree(results));
  return program_end("%d forms of the fence, every word that the engine copied", FORMS - 1);
}
