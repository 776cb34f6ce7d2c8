/* wgmma.cuh: the warpgroup matrix multiply, and the descriptor that says how a tile is laid out in
 * shared memory.
 *
 * One wgmma of shape m64nNk16 adds A (64 x 16) times B (16 x N), bf16, to an accumulator of 64 x N
 * fp32 values in the registers of the 128 threads of a warpgroup: warp w holds rows 16w to 16w+15.
 * It reads A and B straight from shared memory, asynchronously, through the same async proxy as
 * TMA. So no fence is needed once a full-barrier has reported that TMA's bytes are there.
 *
 *   wgmma_fence();                          registers are ready to be accumulated into
 *   wgmma_m64n256k16(d, a, b, accumulate);  as often as needed: they run in order
 *   wgmma_commit();                         puts those so far into one group
 *   wgmma_wait_all();                       or _all_but_one: until 0, or 1, groups are pending
 *
 * Until that wait, you must not touch the accumulator or overwrite the tiles in shared memory. The compiler does not
 * know that: wgmma_registers_changed(d) (wgmma_registers.cuh) after the wait keeps arithmetic on d behind it. The rungs
 * do without: CUDA 13.0 moves none, and if a compiler did, ptxas would print C7514 and wait for each wgmma: slow, but right.
 *
 * The descriptor, 64 bits (addresses and offsets in units of 16 bytes):
 *
 *   63 62 | 51..49      | 45..32        | 29..16         | 13..0
 *   mode  | base offset | stride offset | leading offset | start address
 *
 * Under the 128-byte swizzle a tile consists of groups of 8 lines of 128 bytes, 1024 bytes each,
 * which is how TMA with CU_TENSOR_MAP_SWIZZLE_128B writes a box whose inner side is 128 bytes.
 *
 * K-major (a line holds 64 consecutive k of one row; "row-major A, B given as [N, K]"):
 *
 *     row 0..7    | 64 k of each: one group of 1024 bytes |
 *     row 8..15   | the next group                         |     stride offset: 1024, from 8 rows
 *     ...                                                        to the next 8 rows
 *
 *   - The leading offset is not used: a line holds all the values along k that one instruction reads.
 *   - The next 16 k: start address + 32 bytes. That is inside the line, and the hardware applies
 *     the swizzle to the resulting address, as TMA did. Nothing else changes.
 *
 * MN-major (a line holds 64 consecutive rows, that is m or n, of one k; "B given as [K, N]"):
 *
 *     k 0..7      | 64 n of each: one group |  | the next 64 n |    leading offset: from 64 n to
 *     k 8..15     | the next group          |  |               |    the next 64 n
 *                                                                  stride offset: 1024, from 8 k
 *                                                                  to the next 8 k
 *   - One instruction spans 16 k: two groups, "stride offset" apart.
 *   - The next 16 k: start address + 2048 bytes.
 *
 * The base offset is 0 if every group starts at a multiple of 1024 bytes: address bits 9:7 are then
 * the line in the group. For groups that start elsewhere, it says how far off they are. */
#ifndef PIPELINED_GEMM_WGMMA_CUH
#define PIPELINED_GEMM_WGMMA_CUH

#include <stdint.h>

#include "../02_tma_load/mbarrier.cuh"

/* Not the numbers of CUtensorMapSwizzle: here a wider swizzle has a smaller number. */
typedef enum {
  WGMMA_SWIZZLE_NONE = 0,
  WGMMA_SWIZZLE_128B = 1,
  WGMMA_SWIZZLE_64B = 2,
  WGMMA_SWIZZLE_32B = 3
} WgmmaSwizzle;

typedef struct {
  uint32_t start_bytes;   /* shared-memory address of the tile's first element */
  uint32_t leading_bytes; /* see above */
  uint32_t stride_bytes;
  uint32_t base_offset;
  WgmmaSwizzle swizzle;
} WgmmaTile;

/* PTX ISA: "matrix descriptor" of wgmma. */
static __host__ __device__ __forceinline__ uint64_t wgmma_descriptor(WgmmaTile tile) {
  enum { ADDRESS_MASK = 0x3FFFF, UNIT_SHIFT = 4 }; /* 18 bits, stored without the low 4 */
  enum { LEADING_BIT = 16, STRIDE_BIT = 32, BASE_OFFSET_BIT = 49, SWIZZLE_BIT = 62 };
  return (uint64_t)((tile.start_bytes & ADDRESS_MASK) >> UNIT_SHIFT) |
         (uint64_t)((tile.leading_bytes & ADDRESS_MASK) >> UNIT_SHIFT) << LEADING_BIT |
         (uint64_t)((tile.stride_bytes & ADDRESS_MASK) >> UNIT_SHIFT) << STRIDE_BIT |
         (uint64_t)tile.base_offset << BASE_OFFSET_BIT | (uint64_t)tile.swizzle << SWIZZLE_BIT;
}

/* The descriptor of a K-major tile that TMA loaded with the 128-byte swizzle and whose inner side is
 * 64 bf16. `tile` must be a multiple of 1024 bytes. */
static __device__ __forceinline__ uint64_t wgmma_descriptor_k_major(const void *tile) {
  WgmmaTile fields = {};
  fields.start_bytes = shared_address(tile);
  fields.leading_bytes = 16; /* not read in this layout */
  fields.stride_bytes = 8 * 128;
  fields.base_offset = 0;
  fields.swizzle = WGMMA_SWIZZLE_128B;
  return wgmma_descriptor(fields);
}

/* Added to a K-major descriptor: 16 k further. */
enum { WGMMA_K_STEP = 16 * 2 / 16 };

/* The descriptor of an MN-major tile that TMA loaded with the 128-byte swizzle: lines of 64 m (or
 * n), one line for each k. The next 64 m (or n) are `next_bytes` further. */
static __device__ __forceinline__ uint64_t wgmma_descriptor_mn_major(const void *tile,
                                                                     uint32_t next_bytes) {
  WgmmaTile fields = {};
  fields.start_bytes = shared_address(tile);
  fields.leading_bytes = next_bytes;
  fields.stride_bytes = 8 * 128;
  fields.base_offset = 0;
  fields.swizzle = WGMMA_SWIZZLE_128B;
  return wgmma_descriptor(fields);
}

/* PTX ISA: wgmma.fence. Before the first wgmma of a batch: orders it after the warp's accesses to
 * the accumulator's registers (and to shared memory, together with fence.proxy.async). */
static __device__ __forceinline__ void wgmma_fence(void) {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* PTX ISA: wgmma.commit_group. */
static __device__ __forceinline__ void wgmma_commit(void) {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* PTX ISA: wgmma.wait_group. Waits until at most the last 0 (or 1) committed groups are pending. */
static __device__ __forceinline__ void wgmma_wait_all(void) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

static __device__ __forceinline__ void wgmma_wait_all_but_one(void) {
  asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
}

/* The accumulator of thread t of the warpgroup, for columns 8c to 8c+7 (see fragment_layout.cu):
 *
 *   row = 16 * (t / 32) + (t % 32) / 4           d[4c+0], d[4c+1]: columns 8c + 2 * (t % 4) + 0, 1
 *   row + 8                                      d[4c+2], d[4c+3]: the same columns
 *
 * With accumulate == 0 the old content of d is not added: the first step of a tile needs no zeros.
 */
#define WGMMA_INOUT_8(d, i)                                                                       \
  "+f"((d)[(i)]), "+f"((d)[(i) + 1]), "+f"((d)[(i) + 2]), "+f"((d)[(i) + 3]), "+f"((d)[(i) + 4]), \
      "+f"((d)[(i) + 5]), "+f"((d)[(i) + 6]), "+f"((d)[(i) + 7])

/* PTX ISA: wgmma.mma_async, bf16 inputs, fp32 accumulator, A and B K-major in shared memory. The
 * numbers after `accumulate`: the signs of A and B (1, 1), then whether A and B are MN-major. */
static __device__ __forceinline__ void wgmma_m64n64k16(float d[32], uint64_t a, uint64_t b,
                                                       uint32_t accumulate) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %34, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16\n"
      "    {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,\n"
      "     %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31},\n"
      "    %32, %33, accumulate, 1, 1, 0, 0;\n"
      "}"
      : WGMMA_INOUT_8(d, 0), WGMMA_INOUT_8(d, 8), WGMMA_INOUT_8(d, 16), WGMMA_INOUT_8(d, 24)
      : "l"(a), "l"(b), "r"(accumulate));
}

static __device__ __forceinline__ void wgmma_m64n128k16(float d[64], uint64_t a, uint64_t b,
                                                        uint32_t accumulate) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %66, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16\n"
      "    {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,\n"
      "     %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,\n"
      "     %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,\n"
      "     %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63},\n"
      "    %64, %65, accumulate, 1, 1, 0, 0;\n"
      "}"
      : WGMMA_INOUT_8(d, 0), WGMMA_INOUT_8(d, 8), WGMMA_INOUT_8(d, 16), WGMMA_INOUT_8(d, 24),
        WGMMA_INOUT_8(d, 32), WGMMA_INOUT_8(d, 40), WGMMA_INOUT_8(d, 48), WGMMA_INOUT_8(d, 56)
      : "l"(a), "l"(b), "r"(accumulate));
}

static __device__ __forceinline__ void wgmma_m64n256k16(float d[128], uint64_t a, uint64_t b,
                                                        uint32_t accumulate) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %130, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16\n"
      "    {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,\n"
      "     %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,\n"
      "     %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,\n"
      "     %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63,\n"
      "     %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79,\n"
      "     %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95,\n"
      "     %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, "
      "%111,\n"
      "     %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, "
      "%126, %127},\n"
      "    %128, %129, accumulate, 1, 1, 0, 0;\n"
      "}"
      : WGMMA_INOUT_8(d, 0), WGMMA_INOUT_8(d, 8), WGMMA_INOUT_8(d, 16), WGMMA_INOUT_8(d, 24),
        WGMMA_INOUT_8(d, 32), WGMMA_INOUT_8(d, 40), WGMMA_INOUT_8(d, 48), WGMMA_INOUT_8(d, 56),
        WGMMA_INOUT_8(d, 64), WGMMA_INOUT_8(d, 72), WGMMA_INOUT_8(d, 80), WGMMA_INOUT_8(d, 88),
        WGMMA_INOUT_8(d, 96), WGMMA_INOUT_8(d, 104), WGMMA_INOUT_8(d, 112), WGMMA_INOUT_8(d, 120)
      : "l"(a), "l"(b), "r"(accumulate));
}

/* The same with B MN-major: for [K, N] matrices, and for the lesson's fragment_layout.cu. */
static __device__ __forceinline__ void wgmma_m64n64k16_b_mn_major(float d[32], uint64_t a,
                                                                  uint64_t b, uint32_t accumulate) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %34, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16\n"
      "    {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,\n"
      "     %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31},\n"
      "    %32, %33, accumulate, 1, 1, 0, 1;\n"
      "}"
      : WGMMA_INOUT_8(d, 0), WGMMA_INOUT_8(d, 8), WGMMA_INOUT_8(d, 16), WGMMA_INOUT_8(d, 24)
      : "l"(a), "l"(b), "r"(accumulate));
}

#endif
