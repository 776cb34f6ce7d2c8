// choice: orders the configurations for products whose times were measured with each of them
// (measured/configurations.csv), and says what is lost by the first, and by the best of those that would be measured. No
// kernel is launched, so none is compiled.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#define PIPELINED_GEMM_FEW_KERNELS
#include "../../07_pipelined_gemm/library/gemm_measured.cuh"

enum { SMS = 132, MOST_CONFIGURATIONS = 24, MOST_WIDTHS = 8, MOST_TIMES = 16 };

typedef struct {
  int m, n, k, count;
  char names[MOST_TIMES][64];
  float times[MOST_TIMES];
} Product;

static GemmConfiguration every[MOST_CONFIGURATIONS];
static const void *every_width[MOST_WIDTHS];
static GemmConfigurations configurations = {every, 0};

static float time_of(const Product *p, const GemmConfiguration *c) {
  char name[64];
  gemm_name_of(c, name);
  for (int i = 0; i < p->count; i++) {
    if (strcmp(p->names[i], name) == 0) return p->times[i];
  }
  return 1.4f * p->times[0];  // at least: slower ones are not listed
}

static int products;
static double lost, lost_measured;  // sums of logarithms

static void judge(const Product *p) {
  GemmCandidates candidates;
  GemmShape shape = {p->m, p->n, p->k, 1, SMS, true, p->n % 8 != 0};
  gemm_candidates(configurations, &shape, &candidates);
  float best = time_of(p, &candidates.list[0]);
  for (int i = 1; i < GEMM_MEASURED && i < candidates.count; i++) {
    best = fminf(best, time_of(p, &candidates.list[i]));
  }
  products++;
  lost += log(time_of(p, &candidates.list[0]) / p->times[0]);  // the first is the best
  lost_measured += log(best / p->times[0]);
}

int main(int argc, char **argv) {
  program_begin("choice", argc, argv, NULL, 0);
  GemmConfigurations listed = gemm_configurations<GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR>();
  check_that(listed.count <= MOST_CONFIGURATIONS, "%d configurations", listed.count);
  for (int i = 0; i < MOST_WIDTHS; i++) every_width[i] = every;
  for (; configurations.count < listed.count; configurations.count++) {
    every[configurations.count] = listed.list[configurations.count];
    every[configurations.count].kernel = every;  // so that it can be chosen
    every[configurations.count].kernels = every_width;
  }
  FILE *csv = fopen("07_pipelined_gemm/library/measured/configurations.csv", "r");
  if (csv == NULL)
    program_fail("cannot read measured/configurations.csv: run this in the repository's root");
  static Product product;
  char line[4096];
  while (fgets(line, sizeof(line), csv)) {
    int read = 0;
    if (sscanf(line, "%d,%d,%d%n", &product.m, &product.n, &product.k, &read) != 3) continue;
    product.count = 0;
    for (const char *at = line + read; product.count < MOST_TIMES; product.count++, at += read) {
      if (sscanf(at, ",%63[^ ,] %f%n", product.names[product.count], &product.times[product.count],
                 &read) != 2) {
        break;
      }
    }
    judge(&product);
  }
  fclose(csv);
  double first = exp(lost / products), measured = exp(lost_measured / products);
  printf("%d products: the first is %.1f %% slower than the best, the best of %d %.1f %%\n",
         products, 100 * (first - 1), GEMM_MEASURED, 100 * (measured - 1));
  check_that(products > 90, "%d products", products);
  check_that(first < 1.08, "the first of the candidates loses %g", first - 1);
  check_that(measured < 1.01, "the best of those that are measured loses %g", measured - 1);
  return program_end("the choice and what would be measured lose little");
}
