/* gather.h: two loops over the lanes that compilers do not vectorise well.
 *
 * They turn the plain gather into a load, a shift and an insertion for each lane, because some
 * processors have slow gathers. That takes three times as long. They turn the plain comparison into
 * a vector of ones that they then add up. */
#ifndef EMULATOR_GATHER_H
#define EMULATOR_GATHER_H

#include "base/warp.h"

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

static inline void gather(uint32_t *into, const uint32_t *table, const uint32_t *index) {
#if defined(__AVX512F__)
  for (int lane = 0; lane < LANES; lane += 16) {
    __m512i at = _mm512_loadu_si512(index + lane);
    _mm512_storeu_si512(into + lane, _mm512_i32gather_epi32(at, table, 4));
  }
#elif defined(__AVX2__)
  for (int lane = 0; lane < LANES; lane += 8) {
    __m256i at = _mm256_loadu_si256((const __m256i *)(const void *)(index + lane));
    __m256i found = _mm256_i32gather_epi32((const int *)(const void *)table, at, 4);
    _mm256_storeu_si256((__m256i *)(void *)(into + lane), found);
  }
#else
  for (int lane = 0; lane < LANES; lane++) into[lane] = table[index[lane]];
#endif
}

/* Is any of them more than `most`, after clearing the bits in `without` and subtracting `base`? */
static inline bool any_above(const uint32_t *values, uint32_t without, uint32_t base,
                             uint32_t most) {
#if defined(__AVX512F__)
  __mmask16 above = 0;
  for (int lane = 0; lane < LANES; lane += 16) {
    __m512i kept =
        _mm512_andnot_si512(_mm512_set1_epi32((int)without), _mm512_loadu_si512(values + lane));
    above |= _mm512_cmpgt_epu32_mask(_mm512_sub_epi32(kept, _mm512_set1_epi32((int)base)),
                                     _mm512_set1_epi32((int)most));
  }
  return above;
#else
  uint32_t above = 0;
  for (int lane = 0; lane < LANES; lane++) above |= (values[lane] & ~without) - base > most;
  return above;
#endif
}

#endif
