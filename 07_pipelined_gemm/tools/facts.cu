// facts: what gemm_choose.cuh knows of each configuration and product, for fit_model.py.
// From lines "m n k" of the input; a line of the output for each configuration that fits: the
// product's number, the configuration's, its terms and its features.
#include <stdio.h>

#include "../product/gemm_configurations.cuh"

int main(void) {
  GemmConfigurations all = gemm_configurations<GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR>();
  for (int i = 0; i < all.count; i++) printf("%s%s", i ? " " : "", all.list[i].name);
  printf("\n");
  long m, n, k;
  for (int product = 0; scanf("%ld %ld %ld", &m, &n, &k) == 3; product++) {
    for (int i = 0; i < all.count; i++) {
      GemmCarried carried = n % 8 == 0 ? GEMM_BY_ALL_THAT_CARRY : GEMM_BY_NONE;  // gemm_can_carry()
      if (!gemm_fits(&all.list[i], k, carried)) continue;
      GemmFacts facts = gemm_facts(&all.list[i], m, n, k, 1, 132);
      printf("%d %d", product, i);
      for (int j = 0; j < GEMM_TERMS; j++) printf(" %.7g", facts.terms[j]);
      for (int j = 0; j < GEMM_FEATURES; j++) printf(" %.7g", facts.features[j]);
      printf("\n");
    }
  }
  return 0;
}
