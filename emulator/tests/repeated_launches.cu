/* repeated_launches.cu: launches a kernel until it is stopped, as a benchmark does a thousand times. */

__global__ void reduce(int *sum) { atomicAdd(sum, 1); }

int main(void) {
  int *sum;
  cudaMalloc(&sum, sizeof *sum);
  while (cudaGetLastError() == cudaSuccess) reduce<<<64, 1024>>>(sum);
  return 1;
}
