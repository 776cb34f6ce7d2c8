/* larger.h: the larger ones of two pieces. Apart from check_state.h, because the host's header of vector
 * instructions takes longer to read than all others together. */
#ifndef CHECKER_LARGER_H
#define CHECKER_LARGER_H

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "checker/check_state.h"

/* One instruction, where the compiler makes three of the plain comparison. */
static inline Piece larger(Piece a, Piece b) {
#if defined(__AVX512F__)
  return (Piece)_mm512_max_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return (Piece)_mm256_max_epu32((__m256i)a, (__m256i)b);
#else
  Piece from_a = (Piece)(a > b);
  return (a & from_a) | (b & ~from_a);
#endif
}

#endif
