// C = ReLU(A * transpose(B) + bias), checked against the same sums on the host.
//   nvcc -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]' pipelined_gemm_example.cu && ./a.out
#include <stdio.h>
#include <stdlib.h>

#include "pipelined_gemm.cuh"

using namespace tma;

enum { M = 100, N = 72, DEPTH = 136 };

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
  exit(1);
}

// Small integers are exact in bf16: the upper half of a float's bits.
static uint16_t bf16(int value) {
  float number = (float)value;
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  return (uint16_t)(bits >> 16);
}

static int small(int i) { return i * 7 % 5 - 2; }

int main(void) {
  static uint16_t a[M * DEPTH], b[N * DEPTH];
  static float c[M * N], bias[N];
  uint16_t *device_a, *device_b;
  float *device_c, *device_bias;
  for (int i = 0; i < M * DEPTH; i++) a[i] = bf16(small(i));
  for (int i = 0; i < N * DEPTH; i++) b[i] = bf16(small(i + 3));
  for (int i = 0; i < N; i++) bias[i] = (float)small(i + 1);
  check(cudaMalloc((void **)&device_a, sizeof a));
  check(cudaMalloc((void **)&device_b, sizeof b));
  check(cudaMalloc((void **)&device_c, sizeof c));
  check(cudaMalloc((void **)&device_bias, sizeof bias));
  check(cudaMemcpy(device_a, a, sizeof a, cudaMemcpyHostToDevice));
  check(cudaMemcpy(device_b, b, sizeof b, cudaMemcpyHostToDevice));
  check(cudaMemcpy(device_bias, bias, sizeof bias, cudaMemcpyHostToDevice));

  GemmProblem problem = gemm_problem(M, N, DEPTH, device_a, device_b, device_c);
  problem.c_type = GEMM_FP32;
  problem.bias = device_bias;  // of C's type
  problem.activation = GEMM_RELU;
  PipelinedGemm gemm;
  GemmStatus status = pipelined_gemm_plan<GEMM_BF16>(&gemm, &problem);
  if (status.error != GEMM_OK) {
    char text[256];
    pipelined_gemm_explain(status, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
  }
  check(pipelined_gemm_launch(&gemm, 0));
  check(cudaMemcpy(c, device_c, sizeof c, cudaMemcpyDeviceToHost));
  check(pipelined_gemm_end(&gemm));

  int wrong = 0;
  for (int row = 0; row < M; row++) {
    for (int column = 0; column < N; column++) {
      int sum = small(column + 1);
      for (int i = 0; i < DEPTH; i++) sum += small(row * DEPTH + i) * small(column * DEPTH + i + 3);
      wrong += c[row * N + column] != (float)(sum > 0 ? sum : 0);
    }
  }
  printf("%d x %d sums of %d products, %d wrong\n", (int)M, (int)N, (int)DEPTH, wrong);
  return wrong != 0;
}
