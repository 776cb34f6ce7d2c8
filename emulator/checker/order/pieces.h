/* pieces.h: vectors of times, piece by piece. */
#pragma once

#if defined(__AVX2__)
#include "base/intrinsics.h"
#endif

#include "checker/order/order.h"

/* A piece of a vector that fits into one register of the host. Loops over whole pieces need no
 * tail. Every vector starts at a multiple of the piece size. */
#if defined(__AVX512F__)
enum { AT_ONCE = 16 };
#elif defined(__AVX__)
enum { AT_ONCE = 8 };
#else
enum { AT_ONCE = 4 };
#endif
typedef uint32_t Piece __attribute__((vector_size(AT_ONCE * sizeof(uint32_t))));
static inline Piece *piece_at(uint32_t *vector, uint32_t place) {
  return (Piece *)(void *)(vector + place);
}
static inline const Piece *const_piece_at(const uint32_t *vector, uint32_t place) {
  return (const Piece *)(const void *)(vector + place);
}
static inline uint32_t whole_pieces(uint32_t places) {
  return (places + AT_ONCE - 1) / AT_ONCE * AT_ONCE;
}

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
