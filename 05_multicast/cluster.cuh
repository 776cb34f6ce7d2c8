/* cluster.cuh: the instructions with which the blocks of a cluster meet and reach each other.
 *
 * A cluster is up to 8 blocks (16 if the kernel allows a non-portable size) that run at the same
 * time on neighbouring SMs. Each block can access the shared memory of the others: mapa_shared()
 * turns the address of a variable in your own shared memory into the address of the same variable
 * in that of a peer. */
#ifndef MULTICAST_CLUSTER_CUH
#define MULTICAST_CLUSTER_CUH

#include <stdint.h>

#include "../02_tma_load/mbarrier.cuh"

/* PTX ISA: special registers %cluster_ctarank and %cluster_nctarank. The rank is the bit of this
 * block in a multicast mask and its number for mapa. */
static __device__ __forceinline__ uint32_t cluster_rank(void) {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

static __device__ __forceinline__ uint32_t cluster_size(void) {
  uint32_t size;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}

/* PTX ISA: barrier.cluster. Every thread of every block arrives, then waits. What a thread wrote
 * before its arrive (release) is visible to every thread after its wait (acquire). There is no
 * .aligned: the threads of a warp may arrive one by one. But if one of them arrives with .release and
 * the others with .relaxed, an H200 hangs (pitfalls/arrive_in_two_branches.cu). */
static __device__ __forceinline__ void cluster_arrive_release(void) {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}

/* Arrives without the release. It orders nothing: use it at the end of a kernel only, to report
 * that this thread is done. */
static __device__ __forceinline__ void cluster_arrive_relaxed(void) {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}

static __device__ __forceinline__ void cluster_wait_acquire(void) {
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

static __device__ __forceinline__ void cluster_sync(void) {
  cluster_arrive_release();
  cluster_wait_acquire();
}

/* PTX ISA: mapa. The shared::cluster address, in the block of that rank, of the variable at `own` in
 * this block's shared memory. Such an address is for instructions with "shared::cluster" only; it is
 * not a generic pointer. */
static __device__ __forceinline__ uint32_t mapa_shared(const void *own, uint32_t rank) {
  uint32_t address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(address)
               : "r"(shared_address(own)), "r"(rank));
  return address;
}

/* The same as a generic pointer, for ordinary C: *mapa_pointer(&own, rank) is the peer's variable, and
 * so is an atomicAdd on it. */
template <class Type>
static __device__ __forceinline__ Type *mapa_pointer(Type *own, uint32_t rank) {
  Type *peer;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(peer) : "l"(own), "r"(rank));
  return peer;
}

/* PTX ISA: ld with state space .shared::cluster. Reads a word of a peer's shared memory. */
static __device__ __forceinline__ uint32_t ld_shared_cluster(uint32_t cluster_address) {
  uint32_t value;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(cluster_address) : "memory");
  return value;
}

/* PTX ISA: mbarrier.arrive on a barrier in the shared memory of a peer, or of this block (address
 * from mapa_shared). There is no token: only the barrier's own block can wait on it. Use this form to
 * report "I have read the buffer, you may overwrite it". It orders nothing beyond the block and costs
 * little. The open GEMMs that we know release their stages this way. */
static __device__ __forceinline__ void mbarrier_arrive_cluster(uint32_t cluster_barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(cluster_barrier) : "memory");
}

/* The same with a release at cluster scope: what this thread *wrote* before is visible to a thread
 * that waits with mbarrier_wait_parity_cluster. The arrive waits for these writes first, including
 * those to global memory: in shared_stream.cu --bench a ring of stages that uses it runs at half
 * its speed. */
static __device__ __forceinline__ void mbarrier_arrive_release_cluster(uint32_t cluster_barrier) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(cluster_barrier)
               : "memory");
}

/* PTX ISA: mbarrier.arrive.expect_tx on a barrier in a peer: announces bytes that somebody sends to the
 * peer, and arrives there. */
static __device__ __forceinline__ void mbarrier_arrive_expect_tx_cluster(uint32_t cluster_barrier,
                                                                         uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%0], %1;" ::"r"(cluster_barrier),
               "r"(bytes)
               : "memory");
}

/* PTX ISA: mbarrier.try_wait with scope .cluster. Waits like mbarrier_wait_parity. Afterwards this
 * thread also sees what threads of peer blocks wrote before their mbarrier_arrive_release_cluster.
 * For what copies wrote, a plain mbarrier_wait_parity is enough. */
static __device__ __forceinline__ void mbarrier_wait_parity_cluster(uint64_t *barrier,
                                                                    uint32_t parity) {
  uint32_t complete;
  do {
    asm volatile(
        "{\n"
        "  .reg .pred complete;\n"
        "  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 complete, [%1], %2;\n"
        "  selp.u32 %0, 1, 0, complete;\n"
        "}"
        : "=r"(complete)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  } while (!complete);
}

/* PTX ISA: cp.async.bulk, shared::cta to shared::cluster. Copies `bytes` (a multiple of 16) of this
 * block's shared memory into a peer's. Destination and barrier are addresses from mapa_shared, both
 * in the same peer: the receiver expects the bytes on its own barrier and waits on it. The sender
 * must neither change its source nor exit before the copy is done: put a cluster barrier after the
 * receiver's wait. */
static __device__ __forceinline__ void bulk_copy_to_cluster(uint32_t cluster_destination,
                                                            const void *source, uint32_t bytes,
                                                            uint32_t cluster_barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
      " [%0], [%1], %2, [%3];" ::"r"(cluster_destination),
      "r"(shared_address(source)), "r"(bytes), "r"(cluster_barrier)
      : "memory");
}

/* PTX ISA: cp.reduce.async.bulk, shared::cta to shared::cluster. Adds the numbers in `bytes` of this
 * block to those in a peer, each atomically, and counts the bytes on the peer's barrier. Everything
 * else is as for bulk_copy_to_cluster. Only integers: there is no form for floats. */
#define DEFINE_BULK_REDUCE_TO_CLUSTER(operation, type, c_type)                             \
  static __device__ __forceinline__ void bulk_reduce_##operation##_##type##_to_cluster(    \
      uint32_t cluster_destination, const c_type *source, uint32_t bytes,                  \
      uint32_t cluster_barrier) {                                                          \
    asm volatile(                                                                          \
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::"         \
        "bytes." #operation "." #type " [%0], [%1], %2, [%3];" ::"r"(cluster_destination), \
        "r"(shared_address(source)), "r"(bytes), "r"(cluster_barrier)                      \
        : "memory");                                                                       \
  }

DEFINE_BULK_REDUCE_TO_CLUSTER(add, u32, uint32_t)
DEFINE_BULK_REDUCE_TO_CLUSTER(add, s32, int32_t)
DEFINE_BULK_REDUCE_TO_CLUSTER(add, u64, uint64_t)
DEFINE_BULK_REDUCE_TO_CLUSTER(min, u32, uint32_t)
DEFINE_BULK_REDUCE_TO_CLUSTER(min, s32, int32_t)
DEFINE_BULK_REDUCE_TO_CLUSTER(max, u32, uint32_t)
DEFINE_BULK_REDUCE_TO_CLUSTER(max, s32, int32_t)
DEFINE_BULK_REDUCE_TO_CLUSTER(or, b32, uint32_t)
#undef DEFINE_BULK_REDUCE_TO_CLUSTER

/* PTX ISA: st.async. Writes a word to the shared memory of a peer and counts 4 bytes on the peer's
 * barrier. Both addresses are from mapa_shared, of the same peer. The value has been read when the instruction returns;
 * the word may be written again when its reader has waited for the barrier and said so. */
static __device__ __forceinline__ void st_async(uint32_t cluster_address, uint32_t value,
                                                uint32_t cluster_barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(
                   cluster_address),
               "r"(value), "r"(cluster_barrier)
               : "memory");
}

/* PTX ISA: red.async. The same, but adds the value to what is there. */
static __device__ __forceinline__ void red_async_add(uint32_t cluster_address, uint32_t value,
                                                     uint32_t cluster_barrier) {
  asm volatile(
      "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32"
      " [%0], %1, [%2];" ::"r"(cluster_address),
      "r"(value), "r"(cluster_barrier)
      : "memory");
}

/* PTX ISA: fence.proxy.async for the shared memory of all blocks of the cluster: this thread has
 * written to a peer, and the peer's engine reads it. Cheaper, if one barrier of the cluster follows anyway: the
 * peer's own thread executes fence_proxy_async() after it. */
static __device__ __forceinline__ void fence_proxy_async_cluster(void) {
  asm volatile("fence.proxy.async.shared::cluster;" ::: "memory");
}

/* PTX ISA: st with state space .shared::cluster. Writes a word of a peer's shared memory. */
static __device__ __forceinline__ void st_shared_cluster(uint32_t cluster_address, uint32_t value) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(cluster_address), "r"(value) : "memory");
}

#endif
