// handoff_of_a_library.cuh: a kernel that does no more than call what it is given, and functions that call themselves
// until all of it is inlined in one place.
#pragma once
#include <stdint.h>

template <typename Pipeline>
__global__ void call(const Pipeline pipeline) {
  extern __shared__ unsigned char bytes[];
  pipeline(bytes);
}

template <int LEFT = 12>
__device__ __forceinline__ void deep_arrive(uint32_t barrier, uint32_t rank) {
  if constexpr (LEFT > 0)
    deep_arrive<LEFT - 1>(barrier, rank);
  else
    asm volatile(
        "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }" ::"r"(barrier),
        "r"(rank)
        : "memory");
}

template <int BYTES, int LEFT = 12>
__device__ __forceinline__ void deep_load(uint32_t to, const uint32_t *from, uint32_t barrier) {
  if constexpr (LEFT > 0)
    deep_load<BYTES, LEFT - 1>(to, from, barrier);
  else
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1], %2, [%3], %4;" ::"r"(to),
        "l"(from), "r"(BYTES), "r"(barrier), "h"((uint16_t)3)
        : "memory");
}
