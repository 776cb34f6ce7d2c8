// nested.cu: a kernel that launches another one, and with an argument one that does not.
// build: -rdc=true -gencode arch=compute_90a,code=compute_90a -cudart shared --no-compress -lcudadevrt
__global__ void child(int *number) { *number += 1; }
__global__ void parent(int *number) { child<<<1, 1>>>(number); }

int main(int argc, char **) {
  int *number;
  if (cudaMalloc(&number, sizeof(int)) != cudaSuccess) return 1;
  if (cudaMemset(number, 0, sizeof(int)) != cudaSuccess) return 1;
  if (argc > 1)
    child<<<1, 1>>>(number);
  else
    parent<<<1, 1>>>(number);
  return cudaDeviceSynchronize() != cudaSuccess;
}
