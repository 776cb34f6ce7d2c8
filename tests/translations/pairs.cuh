// A wrapper of the chapters and another library's for the same instruction, as two kernels whose PTX pairs.py compares.
#include "../../02_tma_load/tensormap.cuh"
#include "../../02_tma_load/tma_load.cuh"
#include "../../03_tma_store/tma_store.cuh"
#include "../../04_store_reduce/tma_reduce.cuh"
#include "../../05_multicast/cluster.cuh"
#include "../../05_multicast/tma_multicast.cuh"

struct Arguments {
  void *tile;
  uint64_t *barrier;
  CUtensorMap *map;
  int x, y, z;
  uint32_t bytes;
  uint16_t mask;
};

#define PAIR(NAME, OURS, THEIRS)                                                        \
  extern "C" __global__ void ours_##NAME(const __grid_constant__ Arguments a) { OURS; } \
  extern "C" __global__ void theirs_##NAME(const __grid_constant__ Arguments a) { THEIRS; }
