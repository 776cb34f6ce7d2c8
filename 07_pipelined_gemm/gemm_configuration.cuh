/* gemm_configuration.cuh: what the two kernels of pipelined_gemm have in common: their arguments,
 * their entry in the table, the store of a tile, the trace. */
#ifndef PIPELINED_GEMM_GEMM_CONFIGURATION_CUH
#define PIPELINED_GEMM_GEMM_CONFIGURATION_CUH

#include <cuda.h>
#include <stdint.h>

#include "../02_tma_load/mbarrier.cuh"
#include "../02_tma_load/tma_load.cuh"
#include "../03_tma_store/tma_store.cuh"
#include "../05_multicast/cluster.cuh"
#include "../05_multicast/tma_multicast.cuh"
#include "accumulator.cuh"
#include "arrive_peer.cuh"
#include "tile_order.cuh"
#include "tile_shares.cuh"
#include "wgmma.cuh"

#define GEMM_STEP_K 64 /* a row of 64 bf16 is 128 bytes: one swizzle span */

/* What one actor of the traced CTA did, and when by its SM's clock. */
typedef enum {
  GEMM_LOAD_ISSUED,
  GEMM_LANDED,
  GEMM_CONSUMED, /* and freed: the arrive follows at once */
  GEMM_STORE_BEGUN,
  GEMM_STORE_ISSUED
} GemmEventKind;

typedef struct {
  int64_t clock;
  int32_t kind, step;
} GemmEvent;

enum { GEMM_ACTORS = 3, GEMM_EVENTS = 4096 }; /* the producer and two consumers */

typedef struct {
  TileOrder order;   /* of the clusters' tiles */
  int steps;         /* of 64 k */
  TileShares shares; /* persistent kernels: who computes what */
  float4 *parts;     /* room for contributions to shared tiles, */
  uint32_t *flags;   /* and which of them are there: gemm_large.cuh */
  uint32_t *pace;    /* NULL, or how far all clusters have come together */
  int m, n;
  uint16_t *c; /* NULL: TMA stores C; else rows of C are no multiple of 16 bytes, and threads do */
  GemmEvent *trace; /* [GEMM_ACTORS][GEMM_EVENTS], for the traced kernel alone */
} GemmWork;

typedef struct {
  const char *name;
  const void *kernel;
  int tile_m, tile_n;       /* of a CTA */
  int cluster_m, cluster_n; /* CTAs in a cluster that share loads */
  int split_k;              /* CTAs in a cluster that share the k range of one tile */
  int threads;
  int shared_bytes;
  int box_n;       /* columns of the store's box */
  bool persistent; /* as many clusters as fit, each doing several tiles; else one for each tile */
} GemmConfiguration;

/* PTX ISA: griddepcontrol. Kernels launched with the attribute "programmatic stream serialization"
 * start while the kernel before them in the stream is still ending: their barriers are set up,
 * their tensor maps fetched when its last tile is written. Before the first access to memory that
 * an earlier kernel may still write or read, wait for its end. Launched otherwise, both do nothing.
 */
static __device__ __forceinline__ void grid_dependency_wait(void) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

static __device__ __forceinline__ void grid_launch_dependents(void) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/* A kernel's first act: from cold memory a tensor map is 2,400 clocks away. */
static __device__ __forceinline__ void gemm_prefetch_maps(const CUtensorMap *a,
                                                          const CUtensorMap *b,
                                                          const CUtensorMap *c) {
  if (threadIdx.x != 32) return; /* not the thread that sets up the barriers meanwhile */
  prefetch_tensor_map(a);
  prefetch_tensor_map(b);
  prefetch_tensor_map(c);
}

/* Changes nothing; but now the compiler knows that all lanes of the warp have the same value, and
 * keeps what follows from it, the descriptors, in uniform registers. */
static __device__ __forceinline__ uint32_t gemm_uniform(uint32_t value) {
  return __shfl_sync(0xFFFFFFFF, value, 0);
}

/* A warp writes 16 rows of its accumulator, `columns` of them from (row, column) of C on, through
 * `out`: columns / box boxes of 16 x box elements in shared memory, which no store may be reading
 * any more. */
static __device__ __forceinline__ void gemm_store(uint16_t *out, const float *d, int columns,
                                                  int box, const CUtensorMap *map_c,
                                                  const GemmWork &work, int row, int column) {
  uint32_t lane = threadIdx.x % 32;
  uint32_t swizzle_mask = box / 8 - 1; /* 128, 64 or 32-byte swizzle: as wide as the box */
#pragma unroll
  for (int at = 0; at < columns; at += 16) {
    uint32_t offset = lane % 16 * (box * 2) + (at % box + lane / 16 * 8) * 2;
    offset ^= (offset >> 7 & swizzle_mask) << 4;
    const float *v = d + at / 2;
    stmatrix_x4(shared_address(out + at / box * 16 * box) + offset, pack_bf16(v[0], v[1]),
                pack_bf16(v[2], v[3]), pack_bf16(v[4], v[5]), pack_bf16(v[6], v[7]));
  }
  if (work.c == NULL) {
    fence_proxy_async();
    __syncwarp();
    if (lane == 0) {
      for (int at = 0; at < columns; at += box) {
        tma_store_2d(map_c, out + at * 16, column + at, row);
      }
      bulk_commit_group();
    }
  } else {
    __syncwarp();
#pragma unroll 1
    for (int i = lane; i < 16 * columns; i += 32) {
      int in_box = i % (16 * box);
      uint32_t offset = in_box * 2;
      offset ^= (offset >> 7 & swizzle_mask) << 4;
      int r = row + in_box / box, c = column + i / (16 * box) * box + in_box % box;
      if (r < work.m && c < work.n) {
        work.c[(size_t)r * work.n + c] = out[i / (16 * box) * 16 * box + offset / 2];
      }
    }
  }
}

#define GEMM_JOIN_AGAIN(a, b) a##b
#define GEMM_JOIN(a, b) GEMM_JOIN_AGAIN(a, b)
#define GEMM_STRING_AGAIN(a) #a
#define GEMM_STRING(a) GEMM_STRING_AGAIN(a)

#endif
