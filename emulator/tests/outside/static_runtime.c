/* static_runtime.c: carries NVIDIA's runtime, which finds no driver here.
 *
 * build: -cudart static
 */
#include <cuda_runtime_api.h>

int main(void) { return cudaFree(0) != cudaSuccess; }
