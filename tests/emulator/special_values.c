/* special_values.c: are the sines, cosines and powers of two of all lanes at once (special_values.h) those of libm,
 * bit for bit?
 *
 *   special_values [STEP]    every STEP-th f32 of all, and those around special values; default 10007 */
#include "arithmetic/special_values.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
  const char *name;
  void (*of_lanes)(const float *x, LaneMask wanted, uint32_t *result);
  float (*of_one)(float x);
} Special;

static const Special specials[] = {{"sin", sin_of_lanes, approximate_sin},
                                   {"cos", cos_of_lanes, approximate_cos},
                                   {"ex2", ex2_of_lanes, approximate_ex2}};
/* Zeros, ones, limits of the exponents, quarters of turns, infinities; their neighbours are tried, too. */
static const uint32_t around[] = {0x00000000, 0x00800000, 0x34000000, 0x3f000000, 0x3f800000,
                                  0x3fc90fdb, 0x40490fdb, 0x40c90fdb, 0x42fc0000, 0x43000000,
                                  0x43150000, 0x43960000, 0x7f7fffff, 0x7f800000, 0x7fc00000};

/* The number of lanes that differ. */
static int try_lanes(const Special *special, const uint32_t *bits) {
  float x[LANES];
  uint32_t result[LANES];
  int differing = 0;
  for (int lane = 0; lane < LANES; lane++) x[lane] = float_of(bits[lane]);
  special->of_lanes(x, UINT32_MAX, result);
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t one = float_result(special->of_one(x[lane]));
    if (one == result[lane]) continue;
    if (!differing++)
      printf("%s of 0x%08x: 0x%08x of all lanes at once, 0x%08x alone\n", special->name, bits[lane],
             result[lane], one);
  }
  return differing;
}

static long try_all(const Special *special, uint32_t step, long *tried) {
  uint32_t bits[LANES];
  long differing = 0;
  for (uint64_t first = 0; first < 1ull << 32; first += (uint64_t)step * LANES, *tried += LANES) {
    for (uint32_t lane = 0; lane < LANES; lane++) bits[lane] = (uint32_t)first + lane * step;
    differing += try_lanes(special, bits);
  }
  for (size_t i = 0; i < sizeof around / sizeof *around; i++, *tried += LANES) {
    for (uint32_t lane = 0; lane < LANES; lane++)
      bits[lane] = (around[i] + lane / 2 - 8) ^ lane << 31;
    differing += try_lanes(special, bits);
  }
  return differing;
}

int main(int count, char **arguments) {
  int step = count == 2 ? atoi(arguments[1]) : 10007;
  if (count > 2 || step <= 0) {
    fprintf(stderr, "usage: special_values [STEP]\n");
    return 2;
  }
  long differing = 0, tried = 0;
  for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
    differing += try_all(&specials[i], (uint32_t)step, &tried);
  printf("special_values: %ld values, %ld differ\n", tried, differing);
  return differing != 0;
}
