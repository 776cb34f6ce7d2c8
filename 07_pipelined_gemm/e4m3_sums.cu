// e4m3_sums: how far sums of e4m3 products are from the exact ones, and what it helps to promote them.
//
// Hopper's tensor cores keep only 14 bits of a sum of e4m3 products and cut off what is below. In a long sum of
// positive numbers, most of each product is lost in the end. GEMM_E4M3_PROMOTED lets them add 128 k at a time and
// adds these sums in fp32 registers (library/gemm_single.cuh):
//
//   GEMM_E4M3              d = ((d + 128 products) + 128 products) + ...          14 bits all the way
//   GEMM_E4M3_PROMOTED     sum = sum + (128 products); sum = sum + (128 products)    24 bits between
//
// The program computes 64 x 64 sums of products of random numbers, of both signs and positive, and compares them
// with the same sums in double. C is in fp32, so that nothing else is rounded. It prints the mean of all errors
// relative to the mean size of a sum, and by how much the sums are too small.
#include "check_product.cuh"

enum { M = 64, N = 64, LARGEST_K = 16384 };

static uint8_t *a, *b, host_a[M * LARGEST_K], host_b[N * LARGEST_K];
static float *c;

static void fill(uint8_t *host, uint8_t *device, size_t count, bool positive, uint64_t seed) {
  for (size_t i = 0; i < count; i++) {  // a sign, an exponent from -3 to 1, three bits of fraction
    uint64_t h = gemm_hash((seed << 40) + i);
    host[i] = (uint8_t)((positive ? 0 : h & 0x80) | (4 + (h >> 8) % 5) << 3 | (h & 7));
  }
  CUDA_CHECK(cudaMemcpy(device, host, count, cudaMemcpyHostToDevice));
}

template <int TYPE>
static void compute(int k, float *result) {
  static const GemmConfiguration small = gemm_single_configuration<
      GemmSingleTile<TYPE, GEMM_K_MAJOR, GEMM_K_MAJOR, 64, 64, 1, 1, 1, false> >("single_64x64", 1,
                                                                                 1);
  PipelinedGemm gemm;
  GemmProblem problem = gemm_problem(M, N, k, a, b, c);
  problem.c_type = GEMM_FP32;
  GemmStatus status = gemm_plan_with(&gemm, &problem, TYPE, GEMM_K_MAJOR, GEMM_K_MAJOR, &small);
  if (status.error != GEMM_OK)
    program_fail("the product cannot be planned: error %d", (int)status.error);
  CUDA_CHECK(pipelined_gemm_launch(&gemm, 0));
  CUDA_CHECK(cudaMemcpy(result, c, M * N * sizeof(*c), cudaMemcpyDeviceToHost));
  CUDA_CHECK(pipelined_gemm_end(&gemm));
}

typedef struct {
  double error, lost; /* percent of the mean size of a sum */
} Deviation;

static Deviation compare(const float *result, const double *exact) {
  double size = 0, error = 0, lost = 0;
  for (int i = 0; i < M * N; i++) {
    size += fabs(exact[i]);
    error += fabs(result[i] - exact[i]);
    lost += fabs(exact[i]) - fabs((double)result[i]);
  }
  Deviation deviation = {100 * error / size, 100 * lost / size};
  return deviation;
}

static void show(int k, bool positive) {
  static double exact[M * N];
  static float result[M * N];
  fill(host_a, a, (size_t)M * k, positive, 1);
  fill(host_b, b, (size_t)N * k, positive, 2);
  for (int i = 0; i < M * N; i++) {
    exact[i] = 0;
    for (int j = 0; j < k; j++) {
      exact[i] += (double)checked_float(GEMM_E4M3, host_a, (size_t)(i / N) * k + j) *
                  checked_float(GEMM_E4M3, host_b, (size_t)(i % N) * k + j);
    }
  }
  compute<GEMM_E4M3>(k, result);
  Deviation fast = compare(result, exact);
  compute<GEMM_E4M3_PROMOTED>(k, result);
  Deviation promoted = compare(result, exact);
  printf("%-10s %6d %12.4f %10.4f %14.4f %10.4f\n", positive ? "positive" : "both signs", k,
         fast.error, fast.lost, promoted.error, promoted.lost);
  check_that(promoted.error < fast.error / 2,
             "promoted sums of %d products are closer: %g %% and %g %%", k, promoted.error,
             fast.error);
}

int main(int argc, char **argv) {
  program_begin("e4m3_sums", argc, argv, NULL, 0);
  CUDA_CHECK(cudaMalloc(&a, sizeof(host_a)));
  CUDA_CHECK(cudaMalloc(&b, sizeof(host_b)));
  CUDA_CHECK(cudaMalloc(&c, M * N * sizeof(*c)));
  printf("                   GEMM_E4M3: percent        GEMM_E4M3_PROMOTED\n");
  printf("numbers         k        error   too small        error  too small\n");
  for (int positive = 0; positive < 2; positive++) {
    for (int k = 1024; k <= LARGEST_K; k *= 4) show(k, positive);
  }
  CUDA_CHECK(cudaFree(a));
  CUDA_CHECK(cudaFree(b));
  CUDA_CHECK(cudaFree(c));
  return program_end("promoted sums of e4m3 products are closer to the exact ones");
}
