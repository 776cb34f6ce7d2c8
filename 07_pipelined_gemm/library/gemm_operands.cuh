/* gemm_operands.cuh: how a tile of A or B comes from global to shared memory and how wgmma finds it
 * there, K-major or MN-major.
 *
 *   K-major    lines of 64 k, one line for each row: one box of 64 x rows
 *   MN-major   lines of 64 rows, one line for each k: boxes of 64 x 64, one for every 64 rows
 *
 * Either way, 64 rows by 64 k take 8 KiB, and the next 64 rows are 8 KiB further. Only the
 * descriptor differs, and the operand of wgmma that says "transposed". Operands of 8 bits are K-major only, with
 * 128 k where those of 16 bits have 64. */
#ifndef PIPELINED_GEMM_GEMM_OPERANDS_CUH
#define PIPELINED_GEMM_GEMM_OPERANDS_CUH

#include "../../02_tma_load/mbarrier.cuh"
#include "../../02_tma_load/tma_load.cuh"
#include "../../05_multicast/cluster.cuh"
#include "../../05_multicast/tma_multicast.cuh"
#include "../../common/tma_encode.h"
#include "../accumulator.cuh"
#include "gemm_wgmma.cuh"

constexpr int GEMM_BLOCK_BYTES = 64 * GEMM_ROW_BYTES;

/* The shared memory of a tile begins at a multiple of 1024 bytes. */
template <int MAJOR>
static __device__ __forceinline__ uint64_t gemm_descriptor(const void *tile) {
  return MAJOR == GEMM_K_MAJOR ? wgmma_descriptor_k_major(tile)
                               : wgmma_descriptor_mn_major(tile, GEMM_BLOCK_BYTES);
}

/* Loads ROWS rows by 64 k, from (row, k) of the matrix number `batch` on, into the blocks of `mask`
 * (SHARED), or into this block. */
template <int MAJOR, int ROWS, bool SHARED>
static __device__ __forceinline__ void gemm_load(uint8_t *tile, const CUtensorMap *map, int row,
                                                 int k, int batch, uint64_t *full, uint16_t mask) {
  enum { LOADS = MAJOR == GEMM_K_MAJOR ? 1 : ROWS / 64 };
#pragma unroll
  for (int i = 0; i < LOADS; i++) {
    int x = MAJOR == GEMM_K_MAJOR ? k : row + 64 * i, y = MAJOR == GEMM_K_MAJOR ? row : k;
    if (SHARED) {
      tma_load_3d_multicast(tile + i * GEMM_BLOCK_BYTES, map, x, y, batch, full, mask);
    } else {
      tma_load_3d(tile + i * GEMM_BLOCK_BYTES, map, x, y, batch, full);
    }
  }
}

/* Where this block is in its cluster, and who else loads into it or needs what it loads.
 *
 * The same rows of A are needed by the blocks of this cluster_m, each of which loads a slice of them
 * for all; the same columns of B by those of this cluster_n. */
template <int CLUSTER_M, int CLUSTER_N>
struct GemmCluster {
  enum { PEERS = CLUSTER_M + CLUSTER_N - 1 }; /* blocks that load into this one, itself included */
  uint32_t m, n, first; /* place in the grid of tiles; the rank where the grid begins */

  static __device__ __forceinline__ GemmCluster of(uint32_t rank) {
    GemmCluster cluster;
    cluster.m = rank % CLUSTER_M;
    cluster.n = rank / CLUSTER_M % CLUSTER_N;
    cluster.first = rank - cluster.m - cluster.n * CLUSTER_M;
    return cluster;
  }

  __device__ __forceinline__ uint16_t mask_a() const {
    uint16_t mask = 0;
    for (int i = 0; i < CLUSTER_N; i++) mask |= 1u << (first + m + CLUSTER_M * i);
    return mask;
  }

  __device__ __forceinline__ uint16_t mask_b() const {
    uint16_t mask = 0;
    for (int i = 0; i < CLUSTER_M; i++) mask |= 1u << (first + i + CLUSTER_M * n);
    return mask;
  }

  /* The rank of peer number i of PEERS: those that share B first, then the others that share A. */
  __device__ __forceinline__ uint32_t peer(uint32_t i) const {
    uint32_t other = i - CLUSTER_M < n ? i - CLUSTER_M : i - CLUSTER_M + 1;
    return first + (i < CLUSTER_M ? i + CLUSTER_M * n : m + CLUSTER_M * other);
  }
};

/* The ring's next stage, and the parity of the phase that it is in. */
static __device__ __forceinline__ void gemm_advance(int stages, uint32_t *stage, uint32_t *parity) {
  if (++*stage == (uint32_t)stages) *stage = 0, *parity ^= 1;
}

/* Reports a stage as free: lane i of each warp to peer i, whose `empty` barriers are at `peer_empty`. */
template <int PEERS>
static __device__ __forceinline__ void gemm_free_stage(uint64_t *empty, uint32_t peer_empty,
                                                       uint32_t stage) {
  uint32_t lane = threadIdx.x % 32;
  if (PEERS == 1 && lane == 0) mbarrier_arrive(&empty[stage]);
  if (PEERS > 1 && lane < PEERS) {
    mbarrier_arrive_cluster(peer_empty + stage * (uint32_t)sizeof(uint64_t));
  }
}

/* Does not change the value, but now the compiler knows that all lanes of the warp have the same one.
 * It then keeps the descriptors that are computed from it in uniform registers. */
static __device__ __forceinline__ uint32_t gemm_uniform(uint32_t value) {
  return __shfl_sync(0xFFFFFFFF, value, 0);
}

/* Dynamic shared memory starts anywhere; tiles under the 128-byte swizzle start at multiples of
 * 1024 bytes of shared address. Ask for 1024 bytes more than is needed. */
static __device__ __forceinline__ uint8_t *gemm_align_1024(uint8_t *pointer) {
  uint32_t misalignment = shared_address(pointer) % 1024;
  return pointer + (1024 - misalignment) % 1024;
}

/* PTX ISA: griddepcontrol. Kernels launched with the attribute "programmatic stream serialization"
 * start while the kernel before them in the stream is still ending. Before the first access to memory that
 * an earlier kernel may still write or read, wait for its end. Launched otherwise, both do nothing. */
static __device__ __forceinline__ void gemm_wait_for_earlier_kernels(void) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

static __device__ __forceinline__ void gemm_let_next_kernel_start(void) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/* A kernel calls this first: fetching a tensor map from cold memory takes 2,400 clocks. */
static __device__ __forceinline__ void gemm_prefetch_maps(const CUtensorMap *a,
                                                          const CUtensorMap *b) {
  if (threadIdx.x != 32) return; /* not the thread that sets up the barriers meanwhile */
  prefetch_tensor_map(a);
  prefetch_tensor_map(b);
}

/* ---- The host's side: tensor maps ---- */

/* An operand as it lies in memory: lines of contiguous elements. */
typedef struct {
  const void *memory;
  int64_t line, lines;           /* elements in a line, lines in a matrix */
  int64_t line_stride;           /* elements from one line to the next */
  int64_t batches, batch_stride; /* batch_stride: elements from one matrix to the next */
} GemmLines;

/* TMA reads and writes lines whose address and distance are multiples of 16 bytes. `bytes`: of an element. */
static inline bool gemm_tma_can_reach(const GemmLines *lines, int bytes) {
  return (uintptr_t)lines->memory % 16 == 0 && lines->line_stride * bytes % 16 == 0 &&
         (lines->batches == 1 || lines->batch_stride * bytes % 16 == 0);
}

/* Boxes of 128 bytes by `box_lines` lines under the 128-byte swizzle. L2 fetches 256 bytes at a time; but only
 * 128 where lines do not start at multiples of 128 bytes: there it would cost up to a fifth of the speed. */
static inline cudaError_t gemm_encode_map(CUtensorMap *map, int type, const GemmLines *lines,
                                          int box_lines, int box_bytes = GEMM_ROW_BYTES) {
  int64_t bytes = gemm_element_bytes(type), line_bytes = lines->line_stride * bytes;
  int64_t batch_bytes =
      lines->batches == 1 ? line_bytes /* not used */ : lines->batch_stride * bytes;
  const uint64_t sizes[] = {(uint64_t)lines->line, (uint64_t)lines->lines,
                            (uint64_t)lines->batches};
  const uint64_t strides[] = {(uint64_t)line_bytes, (uint64_t)batch_bytes};
  const uint32_t box[] = {(uint32_t)(box_bytes / bytes), (uint32_t)box_lines, 1};
  CUtensorMapDataType data_type = gemm_is_e4m3(type)  ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                  : type == GEMM_FP16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                      : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  TmaMapOptions options = {};
  options.swizzle = box_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                    : box_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                      : CU_TENSOR_MAP_SWIZZLE_32B;
  options.l2_promotion = line_bytes % 128 == 0 ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B
                                               : CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
  return tma_encode_tiled_with(map, data_type, 3, (void *)(uintptr_t)lines->memory, sizes, strides,
                               box, &options);
}

#endif
