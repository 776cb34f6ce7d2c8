// exercise load_3d: load a box of a 3D tensor
//
// The tensor has 8 columns, 4 rows and any number of slices. Block b, 32 threads, loads the box of 2
// slices that begins at slice 2 * b and writes it to result + b * 64, slice after slice. The last
// box may reach past the last slice: what then arrives is 0.
#include "../tma_load.cuh"

enum { BOX_X = 8, BOX_Y = 4, BOX_Z = 2, BOX = BOX_X * BOX_Y * BOX_Z };

extern "C" __global__ void load_3d(const __grid_constant__ CUtensorMap map, int *result) {
  __shared__ alignas(128) int box[BOX];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    // Write the load here.
  }
  __syncthreads();
  // Write the wait here, and then write the box to result.
}
