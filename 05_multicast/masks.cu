// 05 multicast, aside: the mask, for clusters of 2, 4, 8 and 16.
//
// Bit r of the mask selects the block of rank r. Here every block s of a cluster sends one line of
// 16 bytes to slot s of each block in its mask, and the picture shows who received what: one row for
// each receiver, one column for each sender, with its rank where its line arrived and '.' elsewhere.
// A receiver expects 16 bytes for every sender whose mask names it. If it expects one line too few
// or too many, it waits forever.
//
// A sender need not be in its own mask ("neighbours" below). A cluster of more than 8
// blocks is called non-portable: the host must allow it for the kernel
// (cudaFuncAttributeNonPortableClusterSizeAllowed), and the chip must have 16 free SMs in one
// group.
#include <stdio.h>
#include <string.h>

#include "../02_tma_load/tma_load.cuh"
#include "check.h"
#include "cluster.cuh"
#include "tensor_map.h"
#include "tma_multicast.cuh"

enum {
  MOST_BLOCKS = 16,
  LINE_WORDS = 4,
  LINE_BYTES = LINE_WORDS * 4,  // the least a box can hold
  SLOT_BYTES = 128,             // a destination must be a multiple of 128 bytes, line or not
  SLOT_WORDS = SLOT_BYTES / 4,
  PORTABLE_BLOCKS = 8,
};

typedef struct {
  uint16_t of[MOST_BLOCKS];  // of[s]: where sender s sends
} Masks;

__global__ void masks_kernel(const __grid_constant__ CUtensorMap lines, const Masks masks,
                             uint32_t *received) {
  __shared__ __align__(128) uint32_t slots[MOST_BLOCKS][SLOT_WORDS];
  __shared__ uint64_t full;
  uint32_t rank = cluster_rank();
  uint32_t size = cluster_size();

  for (int i = threadIdx.x; i < MOST_BLOCKS * SLOT_WORDS; i += blockDim.x) {
    slots[i / SLOT_WORDS][i % SLOT_WORDS] = 0;
  }
  fence_proxy_async();
  if (threadIdx.x == 0) {
    uint32_t senders = 0;
    for (uint32_t s = 0; s < size; s++) senders += masks.of[s] >> rank & 1;
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&full, senders * LINE_BYTES);
  }
  cluster_sync();

  if (threadIdx.x == 0 && masks.of[rank] != 0) {
    tma_load_2d_multicast(slots[rank], &lines, 0, rank, &full, masks.of[rank]);
  }
  mbarrier_wait_parity(&full, 0);

  for (uint32_t i = threadIdx.x; i < size * LINE_WORDS; i += blockDim.x) {
    received[rank * MOST_BLOCKS * LINE_WORDS + i] = slots[i / LINE_WORDS][i % LINE_WORDS];
  }
  cluster_sync();  // no block ends while a peer's line may be on its way to it (multicast.cu, step 5)
}

// The size of the cluster is chosen at launch, not by __cluster_dims__: one kernel for all sizes.
static void launch(CUtensorMap lines, Masks masks, uint32_t *received, int blocks) {
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = (unsigned)blocks;
  cluster.val.clusterDim.y = 1;
  cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)blocks);
  config.blockDim = dim3(32);
  config.attrs = &cluster;
  config.numAttrs = 1;
  if (blocks > PORTABLE_BLOCKS) {
    CUDA_CHECK(cudaFuncSetAttribute((const void *)masks_kernel,
                                    cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  }
  void *arguments[] = {&lines, &masks, &received};
  CUDA_CHECK(cudaLaunchKernelExC(&config, (const void *)masks_kernel, arguments));
  CUDA_CHECK(cudaGetLastError());
}

typedef uint16_t MaskOf(int sender, int blocks);

static uint16_t everyone(int sender, int blocks) {
  (void)sender;
  return (uint16_t)((1u << blocks) - 1);
}

static uint16_t neighbours(int sender, int blocks) {
  return (uint16_t)(1u << (sender + 1) % blocks | 1u << (sender + blocks - 1) % blocks);
}

// As in a GEMM: the blocks form a grid of two rows, and all blocks of a row need the same tile of A.
static uint16_t own_row(int sender, int blocks) {
  int columns = blocks / 2;
  return (uint16_t)(((1u << columns) - 1) << sender / columns * columns);
}

// And the column needs my tile of B.
static uint16_t own_column(int sender, int blocks) {
  int columns = blocks / 2;
  return (uint16_t)(1u << sender % columns | 1u << (sender % columns + columns));
}

static void send(const char *name, MaskOf *mask_of, const CUtensorMap *lines, uint32_t *on_device,
                 int blocks) {
  Masks masks = {};
  for (int s = 0; s < blocks; s++) masks.of[s] = mask_of(s, blocks);

  static uint32_t received[MOST_BLOCKS][MOST_BLOCKS][LINE_WORDS], expected[MOST_BLOCKS][LINE_WORDS];
  CUDA_CHECK(cudaMemset(on_device, 0xFF, sizeof received));
  launch(*lines, masks, on_device, blocks);
  CUDA_CHECK(cudaMemcpy(received, on_device, sizeof received, cudaMemcpyDeviceToHost));

  printf("cluster of %2d, %-10s  masks of ranks 0, 1, ...:", blocks, name);
  for (int s = 0; s < blocks && s < 4; s++) printf(" 0x%0*x", (blocks + 3) / 4, masks.of[s]);
  printf("%s\n", blocks > 4 ? " ..." : "");
  for (int r = 0; r < blocks; r++) {
    printf("  rank %2d received ", r);
    for (int s = 0; s < blocks; s++) printf("%c", received[r][s][0] ? "0123456789abcdef"[s] : '.');
    printf("\n");
    for (int s = 0; s < blocks; s++) {
      for (int i = 0; i < LINE_WORDS; i++) {
        expected[s][i] = masks.of[s] >> r & 1 ? (uint32_t)(1000 + 10 * s + i) : 0;
      }
    }
    char what[64];
    snprintf(what, sizeof what, "cluster of %d, %s, rank %d", blocks, name, r);
    check_tile(what, ELEMENT_U32, received[r], expected, blocks, LINE_WORDS, 0);
  }
}

int main(int argc, char **argv) {
  program_begin("masks", argc, argv, NULL, 0);
  uint32_t host[MOST_BLOCKS][LINE_WORDS];
  for (int s = 0; s < MOST_BLOCKS; s++) {
    for (int i = 0; i < LINE_WORDS; i++) host[s][i] = (uint32_t)(1000 + 10 * s + i);
  }
  uint32_t *lines, *received;
  CUDA_CHECK(cudaMalloc(&lines, sizeof host));
  CUDA_CHECK(cudaMalloc(&received, MOST_BLOCKS * sizeof host));
  CUDA_CHECK(cudaMemcpy(lines, host, sizeof host, cudaMemcpyHostToDevice));
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                   .dimensions = 2,
                   .address = lines,
                   .size = {LINE_WORDS, MOST_BLOCKS},
                   .box = {LINE_WORDS, 1}};
  CUtensorMap encoded = tensor_map_encode("the lines", &map);

  for (int blocks = 2; blocks <= MOST_BLOCKS; blocks *= 2) {
    send("everyone", everyone, &encoded, received, blocks);
    if (blocks > 4) detail_begin();
    if (blocks > 2) {
      send("neighbours", neighbours, &encoded, received, blocks);
      send("own row", own_row, &encoded, received, blocks);
      send("own column", own_column, &encoded, received, blocks);
    }
    if (blocks > 4) detail_end();
    if (blocks < MOST_BLOCKS) printf("\n");
  }
  CUDA_CHECK(cudaFree(lines));
  CUDA_CHECK(cudaFree(received));
  return program_end("clusters of 2 to %d blocks, every line in every block", MOST_BLOCKS);
}
