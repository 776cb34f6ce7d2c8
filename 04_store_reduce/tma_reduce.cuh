/* tma_reduce.cuh: stores that combine with what memory holds, instead of replacing it.
 *
 * Three families, fewest instructions first:
 *   tma_reduce_OP_Nd      a whole tile from shared memory into a tensor, one instruction
 *   bulk_reduce_OP_TYPE   a run of bytes from shared memory to global memory, no tensor map
 *   red_add_f32[_v4]      4 or 16 bytes from a thread's registers
 * All three combine element by element at the L2 cache, atomically for each element, in no
 * particular order. The first two read shared memory through the async proxy, exactly like
 * tma_store: fence_proxy_async before, bulk_commit_group and a wait after. */
#ifndef STORE_REDUCE_TMA_REDUCE_CUH
#define STORE_REDUCE_TMA_REDUCE_CUH

#include <cuda.h>
#include <stdint.h>

#include "../02_tma_load/mbarrier.cuh"

/* PTX ISA: cp.reduce.async.bulk.tensor. The element type is the tensor map's; the operation is
 * part of the instruction. One definition gives the operation for tensors of 1 to 5 dimensions.
 *   tma_reduce_add_2d(map, source, x, y): tensor[y..][x..] += tile at source. */
#define DEFINE_TMA_REDUCE(operation)                                                            \
  static __device__ __forceinline__ void tma_reduce_##operation##_1d(                           \
      const CUtensorMap *map, const void *source, int32_t x) {                                  \
    asm volatile("cp.reduce.async.bulk.tensor.1d.global.shared::cta." #operation                \
                 ".tile.bulk_group [%0, {%2}], [%1];" ::"l"(map),                               \
                 "r"(shared_address(source)), "r"(x)                                            \
                 : "memory");                                                                   \
  }                                                                                             \
  static __device__ __forceinline__ void tma_reduce_##operation##_2d(                           \
      const CUtensorMap *map, const void *source, int32_t x, int32_t y) {                       \
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta." #operation                \
                 ".tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),                           \
                 "r"(shared_address(source)), "r"(x), "r"(y)                                    \
                 : "memory");                                                                   \
  }                                                                                             \
  static __device__ __forceinline__ void tma_reduce_##operation##_3d(                           \
      const CUtensorMap *map, const void *source, int32_t x, int32_t y, int32_t z) {            \
    asm volatile("cp.reduce.async.bulk.tensor.3d.global.shared::cta." #operation                \
                 ".tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),                       \
                 "r"(shared_address(source)), "r"(x), "r"(y), "r"(z)                            \
                 : "memory");                                                                   \
  }                                                                                             \
  static __device__ __forceinline__ void tma_reduce_##operation##_4d(                           \
      const CUtensorMap *map, const void *source, int32_t x, int32_t y, int32_t z, int32_t w) { \
    asm volatile("cp.reduce.async.bulk.tensor.4d.global.shared::cta." #operation                \
                 ".tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),                   \
                 "r"(shared_address(source)), "r"(x), "r"(y), "r"(z), "r"(w)                    \
                 : "memory");                                                                   \
  }                                                                                             \
  static __device__ __forceinline__ void tma_reduce_##operation##_5d(                           \
      const CUtensorMap *map, const void *source, int32_t x, int32_t y, int32_t z, int32_t w,   \
      int32_t v) {                                                                              \
    asm volatile("cp.reduce.async.bulk.tensor.5d.global.shared::cta." #operation                \
                 ".tile.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(map),               \
                 "r"(shared_address(source)), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v)            \
                 : "memory");                                                                   \
  }

DEFINE_TMA_REDUCE(add)
DEFINE_TMA_REDUCE(min)
DEFINE_TMA_REDUCE(max)
DEFINE_TMA_REDUCE(inc) /* old >= new ? 0 : old + 1, as atomicInc */
DEFINE_TMA_REDUCE(dec) /* old == 0 || old > new ? new : old - 1, as atomicDec */
DEFINE_TMA_REDUCE(and)
DEFINE_TMA_REDUCE(or)
DEFINE_TMA_REDUCE(xor)
#undef DEFINE_TMA_REDUCE

/* Of these the one that split-K uses, with a hint of how long L2 should keep the lines. */
static __device__ __forceinline__ void tma_reduce_add_2d_cache_hint(const CUtensorMap *map,
                                                                    const void *source, int32_t x,
                                                                    int32_t y, uint64_t policy) {
  asm volatile(
      "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group.L2::cache_hint"
      " [%0, {%2, %3}], [%1], %4;" ::"l"(map),
      "r"(shared_address(source)), "r"(x), "r"(y), "l"(policy)
      : "memory");
}

/* PTX ISA: cp.reduce.async.bulk, shared::cta to global. Without a tensor map the instruction names
 * the type. `bytes` is a multiple of 16, both addresses are 16-byte aligned. f16 and bf16, whose
 * pointers are void, keep subnormal numbers (.noftz). */
#define DEFINE_BULK_REDUCE(name, operation_and_type, c_type)                              \
  static __device__ __forceinline__ void name(c_type *destination, const c_type *source,  \
                                              uint32_t bytes) {                           \
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." operation_and_type \
                 " [%0], [%1], %2;" ::"l"(destination),                                   \
                 "r"(shared_address(source)), "r"(bytes)                                  \
                 : "memory");                                                             \
  }

DEFINE_BULK_REDUCE(bulk_reduce_add_f32, "add.f32", float)
DEFINE_BULK_REDUCE(bulk_reduce_add_f64, "add.f64", double)
DEFINE_BULK_REDUCE(bulk_reduce_add_f16, "add.noftz.f16", void)
DEFINE_BULK_REDUCE(bulk_reduce_add_bf16, "add.noftz.bf16", void)
DEFINE_BULK_REDUCE(bulk_reduce_add_u32, "add.u32", uint32_t)
DEFINE_BULK_REDUCE(bulk_reduce_add_s32, "add.s32", int32_t)
DEFINE_BULK_REDUCE(bulk_reduce_add_u64, "add.u64", uint64_t)
DEFINE_BULK_REDUCE(bulk_reduce_min_u32, "min.u32", uint32_t)
DEFINE_BULK_REDUCE(bulk_reduce_min_s32, "min.s32", int32_t)
DEFINE_BULK_REDUCE(bulk_reduce_max_u32, "max.u32", uint32_t)
DEFINE_BULK_REDUCE(bulk_reduce_max_s32, "max.s32", int32_t)
DEFINE_BULK_REDUCE(bulk_reduce_or_b32, "or.b32", uint32_t)
#undef DEFINE_BULK_REDUCE

/* PTX ISA: cp.async.bulk.prefetch.L2. Fetches a run of bytes from device memory into L2 and no
 * further. There is nothing to wait for. `bytes` is a multiple of 16, the address 16-byte aligned.
 * A reduce is faster when its destination is in L2 already: accumulate.cu measures how much. */
static __device__ __forceinline__ void bulk_prefetch_l2(const void *source, uint32_t bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(source), "r"(bytes) : "memory");
}

/* PTX ISA: cp.async.bulk.prefetch.tensor. The same for the box of a tensor. */
static __device__ __forceinline__ void tma_prefetch_1d(const CUtensorMap *map, int32_t x) {
  asm volatile("cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%0, {%1}];" ::"l"(map), "r"(x)
               : "memory");
}

static __device__ __forceinline__ void tma_prefetch_2d(const CUtensorMap *map, int32_t x,
                                                       int32_t y) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" ::"l"(map), "r"(x),
               "r"(y)
               : "memory");
}

static __device__ __forceinline__ void tma_prefetch_3d(const CUtensorMap *map, int32_t x, int32_t y,
                                                       int32_t z) {
  asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%0, {%1, %2, %3}];" ::"l"(map),
               "r"(x), "r"(y), "r"(z)
               : "memory");
}

static __device__ __forceinline__ void tma_prefetch_4d(const CUtensorMap *map, int32_t x, int32_t y,
                                                       int32_t z, int32_t w) {
  asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1, %2, %3, %4}];" ::"l"(map),
               "r"(x), "r"(y), "r"(z), "r"(w)
               : "memory");
}

static __device__ __forceinline__ void tma_prefetch_5d(const CUtensorMap *map, int32_t x, int32_t y,
                                                       int32_t z, int32_t w, int32_t v) {
  asm volatile(
      "cp.async.bulk.prefetch.tensor.5d.L2.global.tile [%0, {%1, %2, %3, %4, %5}];" ::"l"(map),
      "r"(x), "r"(y), "r"(z), "r"(w), "r"(v)
      : "memory");
}

/* PTX ISA: red. An atomic add that does not return the old value. */
static __device__ __forceinline__ void red_add_f32(float *destination, float value) {
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(destination), "f"(value)
               : "memory");
}

/* PTX ISA: red with .v4, new in sm_90: four adds to 16 aligned bytes in one instruction. Each float
 * is updated atomically; the four together are not. */
static __device__ __forceinline__ void red_add_f32_v4(float *destination, float4 value) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(destination),
               "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w)
               : "memory");
}

#endif
