// facts FILE: what gemm_choose.cuh knows of each configuration and product, for fit_model.py.
// The first line of the output names the configurations, the next ones have each configuration's traits. FILE gets,
// for each line "m n k" of the input and each configuration that fits, these floats: the product's number, the
// configuration's, its rough estimate, its terms, what the networks see of the product alone, and what they
// see of both, with a base of zero.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../product/gemm_configurations.cuh"

#ifdef SWEEP_CANDIDATES
int sweep_candidates(GemmConfiguration *list);
static GemmConfigurations listed(void) {
  static GemmConfiguration list[256];
  GemmConfigurations all = {list, sweep_candidates(list)};
  return all;
}
#else
static GemmConfigurations listed(void) {
  return gemm_configurations<GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR>();
}
#endif

static void print_traits(const GemmConfiguration *c) {
  const float traits[GEMM_TRAITS] = {
      (float)c->carries,          (float)c->persistent,       log2f((float)c->split_k),
      (float)c->swapped,          log2f((float)c->groups),    log2f((float)c->tile_m),
      log2f((float)c->cluster_m), log2f((float)c->cluster_n), log2f((float)c->ctas)};
  for (int i = 0; i < GEMM_TRAITS; i++) printf(" %.7g", traits[i]);
  printf("\n");
}

int main(int argc, char **argv) {
  FILE *file = argc == 2 ? fopen(argv[1], "wb") : NULL;
  if (file == NULL) {
    fprintf(stderr, "usage: facts FILE\n");
    return EXIT_FAILURE;
  }
  GemmConfigurations all = listed();
  for (int i = 0; i < all.count; i++) printf("%s%s", i ? " " : "", all.list[i].name);
  printf("\n");
  for (int i = 0; i < all.count; i++) print_traits(&all.list[i]);
  enum { BEFORE = 3 };
  long m, n, k;
  for (int product = 0; scanf("%ld %ld %ld", &m, &n, &k) == 3; product++) {
    const GemmSides sides = gemm_sides(m, n, k, 1, 132);
    GemmCarried carried = n % 8 == 0 ? GEMM_BY_ALL_THAT_CARRY : GEMM_BY_SHORT;  // gemm_can_carry()
    for (int i = 0; i < all.count; i++) {
      const GemmConfiguration *c = &all.list[i];
      if (c->direct || !gemm_fits(c, k, carried)) continue;
      const GemmSide *side = &sides.list[gemm_side_of(c)];
      GemmFacts facts = gemm_facts(c, side);
      float row[BEFORE + GEMM_TERMS + GEMM_ASIDE + GEMM_FEATURES] = {(float)product, (float)i,
                                                                     gemm_reckon(&facts)};
      memcpy(row + BEFORE, facts.terms, sizeof(facts.terms));
      gemm_aside(side, row + BEFORE + GEMM_TERMS);
      gemm_features(&facts, 0, row + BEFORE + GEMM_TERMS + GEMM_ASIDE);
      fwrite(row, sizeof(row), 1, file);
    }
  }
  return fclose(file);
}
