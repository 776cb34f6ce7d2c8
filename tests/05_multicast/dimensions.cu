// Every load of tma_multicast.cuh: tensors of 1 to 5 dimensions and the run of bytes without a map,
// from rank 1 of a cluster of four into ranks 0, 1 and 3; rank 2 receives nothing.
#include <stdio.h>
#include <string.h>

#include "../../05_multicast/cluster.cuh"
#include "../../05_multicast/tma_multicast.cuh"
#include "check.h"
#include "tensor_map.h"

enum {
  BLOCKS = 4,
  SENDER = 1,
  MASK = 0xB,
  MOST_ELEMENTS = 8 * 5 * 4 * 3 * 3,
  MOST_BOX = 4 * 3 * 2 * 2 * 2
};

typedef struct {
  int at[5];
} Coordinates;

__global__ void __cluster_dims__(BLOCKS, 1, 1)
    load_kernel(const __grid_constant__ CUtensorMap map, const uint32_t *run, const Coordinates c,
                int dimensions, int elements, uint32_t *received) {
  __shared__ __align__(128) uint32_t tile[MOST_BOX];
  __shared__ uint64_t full;
  uint32_t rank = cluster_rank();
  bool receives = MASK >> rank & 1;
  for (int i = threadIdx.x; i < MOST_BOX; i += blockDim.x) tile[i] = 0;
  fence_proxy_async();
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    if (receives) mbarrier_arrive_expect_tx(&full, elements * 4);
  }
  cluster_sync();
  if (rank == SENDER && threadIdx.x == 0) {
    if (dimensions == 0) bulk_load_multicast(tile, run, elements * 4, &full, MASK);
    if (dimensions == 1) tma_load_1d_multicast(tile, &map, c.at[0], &full, MASK);
    if (dimensions == 2) tma_load_2d_multicast(tile, &map, c.at[0], c.at[1], &full, MASK);
    if (dimensions == 3) tma_load_3d_multicast(tile, &map, c.at[0], c.at[1], c.at[2], &full, MASK);
    if (dimensions == 4)
      tma_load_4d_multicast(tile, &map, c.at[0], c.at[1], c.at[2], c.at[3], &full, MASK);
    if (dimensions == 5)
      tma_load_5d_multicast(tile, &map, c.at[0], c.at[1], c.at[2], c.at[3], c.at[4], &full, MASK);
  }
  if (receives) mbarrier_wait_parity(&full, 0);
  for (int i = threadIdx.x; i < MOST_BOX; i += blockDim.x) received[rank * MOST_BOX + i] = tile[i];
  cluster_sync();
}

// A release at cluster scope, seen by a wait that acquires there: rank 0 reads what rank 1 wrote.
__global__ void __cluster_dims__(2, 1, 1) release_kernel(uint32_t *seen) {
  __shared__ uint32_t word;
  __shared__ uint64_t written;
  uint32_t rank = cluster_rank();
  if (threadIdx.x == 0) {
    mbarrier_init(&written, 1);
    fence_mbarrier_init();
  }
  cluster_arrive_release();
  cluster_wait_acquire();
  if (threadIdx.x == 0 && rank == 1) {
    word = 4711;
    mbarrier_arrive_release_cluster(mapa_shared(&written, 0));
  }
  if (threadIdx.x == 0 && rank == 0) {
    mbarrier_wait_parity_cluster(&written, 0);
    *seen = ld_shared_cluster(mapa_shared(&word, 1));
  }
  cluster_arrive_relaxed();
  cluster_wait_acquire();
}

int main(int argc, char **argv) {
  program_begin("multicast dimensions", argc, argv, NULL, 0);
  static const int size[5] = {8, 5, 4, 3, 3}, box[5] = {4, 3, 2, 2, 2};
  const Coordinates at = {{4, 1, 1, 0, 1}};
  static uint32_t host[MOST_ELEMENTS], got[BLOCKS][MOST_BOX], expected[BLOCKS][MOST_BOX];
  for (int i = 0; i < MOST_ELEMENTS; i++) host[i] = (uint32_t)(i + 1);
  uint32_t *tensor, *received;
  CUDA_CHECK(cudaMalloc(&tensor, sizeof host));
  CUDA_CHECK(cudaMalloc(&received, sizeof got));
  CUDA_CHECK(cudaMemcpy(tensor, host, sizeof host, cudaMemcpyHostToDevice));
  for (int count = 0; count <= 5; count++) {  // 0: no tensor
    int dimensions = count == 0 ? 1 : count;
    TensorMap map = {
        .type = CU_TENSOR_MAP_DATA_TYPE_UINT32, .dimensions = dimensions, .address = tensor};
    int box_elements = 1;
    for (int i = 0; i < dimensions; i++) {
      map.size[i] = (uint64_t)size[i];
      map.box[i] = (uint32_t)box[i];
      box_elements *= box[i];
    }
    memset(expected, 0, sizeof expected);
    for (int b = 0; b < box_elements; b++) {
      int rest = b, place = 0, step = 1;
      for (int i = 0; i < dimensions; i++) {
        place += (at.at[i] + rest % box[i]) * step;
        rest /= box[i];
        step *= size[i];
      }
      for (int r = 0; r < BLOCKS; r++) expected[r][b] = MASK >> r & 1 ? host[place] : 0;
    }
    load_kernel<<<BLOCKS, 32>>>(tensor_map_encode("the tensor", &map), tensor + at.at[0], at, count,
                                box_elements, received);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(got, received, sizeof got, cudaMemcpyDeviceToHost));
    char what[64];
    snprintf(what, sizeof what, "%d dimensions", count);
    check_tile(what, ELEMENT_U32, got, expected, BLOCKS, MOST_BOX, 0);
  }
  uint32_t seen = 0;
  CUDA_CHECK(cudaMemset(received, 0, 4));
  release_kernel<<<2, 32>>>(received);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(&seen, received, 4, cudaMemcpyDeviceToHost));
  check_that(seen == 4711, "rank 0 saw %u where rank 1 wrote 4711", seen);
  return program_end("loads of 0 to 5 dimensions into three of four blocks; a released word");
}
