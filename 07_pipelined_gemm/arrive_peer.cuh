/* arrive_peer.cuh: "this stage is free", said to another CTA's barrier. */
#ifndef PIPELINED_GEMM_ARRIVE_PEER_CUH
#define PIPELINED_GEMM_ARRIVE_PEER_CUH

#include <stdint.h>

/* PTX ISA: mbarrier.arrive on a barrier of a CTA of the cluster (address from mapa_shared), without
 * the cluster scope that chapter 05's mbarrier_arrive_cluster has. That one promises the peer to
 * see what this thread wrote, and to keep it the compiler puts a MEMBAR.ALL.GPU before the arrive:
 * in the main loop it cost a third of the speed (NOTES.md). A consumer that frees a stage has
 * written nothing; it has read, through wgmma, and wgmma_wait says that this is over. */
static __device__ __forceinline__ void mbarrier_arrive_peer(uint32_t cluster_barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(cluster_barrier) : "memory");
}

#endif
