/* larger.h: the larger ones of two pieces. Apart from order.h, because the host's header of vector
 * instructions takes longer to read than all others together. */
#ifndef CHECKER_LARGER_H
#define CHECKER_LARGER_H

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "checker/order/order.h"

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

static inline void join(uint32_t *into, const uint32_t *from, uint32_t width) {
  for (uint32_t at = 0; at < width; at += AT_ONCE)
    *piece_at(into, at) = larger(*piece_at(into, at), *const_piece_at(from, at));
}

#endif
