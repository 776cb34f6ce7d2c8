/* tensormap.cuh: a kernel changes a tensor map.
 *
 *   1. The map's 128 bytes lie in shared memory, and one thread replaces fields of it.
 *   2. The whole warp publishes it: tensormap_publish copies it to global memory, where the copy
 *      engine can read it, and releases it to the tensormap proxy.
 *   3. The thread that issues the copy acquires it: fence_proxy_tensormap_acquire. A map that the host wrote to global
 *      memory is acquired, too, by fence_proxy_tensormap_acquire_sys.
 *
 * The copy engine reads maps through a proxy of their own, with a cache of their own. Without the
 * release and the acquire it may use what the map was before. */
#ifndef TMA_LOAD_TENSORMAP_CUH
#define TMA_LOAD_TENSORMAP_CUH

#include <cuda.h>
#include <stdint.h>

#include "mbarrier.cuh" /* shared_address */

/* PTX ISA: tensormap.replace. Writes one field of a map that lies in shared memory. .b1024 is the
 * size of a map. Dimension and box are counted as in the encoder, the field names differ. */
static __device__ __forceinline__ void tensormap_replace_address(CUtensorMap *shared_map,
                                                                 const void *address) {
  asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(
                   shared_address(shared_map)),
               "l"(address)
               : "memory");
}

template <int DIMENSION>
static __device__ __forceinline__ void tensormap_replace_size(CUtensorMap *shared_map,
                                                              uint32_t size) {
  asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], %1, %2;" ::"r"(
                   shared_address(shared_map)),
               "n"(DIMENSION), "r"(size)
               : "memory");
}

/* The bytes from one row to the next are the stride of dimension 1, as in the encoder, where it is the
 * first of the strides; the instruction counts from 0. */
template <int DIMENSION>
static __device__ __forceinline__ void tensormap_replace_stride(CUtensorMap *shared_map,
                                                                uint64_t bytes) {
  asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], %1, %2;" ::"r"(
                   shared_address(shared_map)),
               "n"(DIMENSION - 1), "l"(bytes)
               : "memory");
}

/* PTX ISA: tensormap.cp_fenceproxy. Copies the map to global memory and releases it to the
 * tensormap proxy. All threads of the warp execute it together. */
static __device__ __forceinline__ void tensormap_publish(CUtensorMap *global_map,
                                                         const CUtensorMap *shared_map) {
  asm volatile(
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
      " [%0], [%1], 128;" ::"l"(global_map),
      "r"(shared_address(shared_map))
      : "memory");
}

/* PTX ISA: fence.proxy.tensormap. Copies that this thread issues after it see the map that was released above, by a
 * thread of the same GPU. */
static __device__ __forceinline__ void fence_proxy_tensormap_acquire(
    const CUtensorMap *global_map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(global_map)
               : "memory");
}

/* The same for a map that the host wrote: the scope must reach the host. */
static __device__ __forceinline__ void fence_proxy_tensormap_acquire_sys(
    const CUtensorMap *global_map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.sys [%0], 128;" ::"l"(global_map)
               : "memory");
}

#endif
