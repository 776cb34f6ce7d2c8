/* launch_clusters.cuh: launches a grid of clusters of the given size. */
#pragma once

#include <cuda_runtime.h>

static inline cudaError_t launch_clusters(const void *kernel, int blocks, int cluster, int threads,
                                          size_t shared_bytes, void **arguments) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = (unsigned)cluster;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)blocks);
  config.blockDim = dim3((unsigned)threads);
  config.dynamicSmemBytes = shared_bytes;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelExC(&config, kernel, arguments);
}
