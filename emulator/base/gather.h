/* gather.h: loops over the lanes that compilers do not vectorise well.
 *
 * They turn the plain gather into a load, a shift and an insertion for each lane, because some
 * processors have slow gathers. That takes three times as long. They turn the plain comparison into
 * a vector of ones that they then add up.
 *
 * The vectors here have 32 bytes, like those that the compiler makes: a load of 64 bytes has to wait
 * if the bytes have just been stored as two times 32. */
#pragma once

#include "base/warp.h"

#if defined(__AVX2__)
#include "base/intrinsics.h"
#endif

static inline void gather_words(uint32_t *into, const uint32_t *table, const uint32_t *index) {
#if defined(__AVX2__)
  for (int lane = 0; lane < LANES; lane += 8) {
    __m256i at = _mm256_loadu_si256((const __m256i *)(const void *)(index + lane));
    __m256i found = _mm256_i32gather_epi32((const int *)(const void *)table, at, 4);
    _mm256_storeu_si256((__m256i *)(void *)(into + lane), found);
  }
#else
  for (int lane = 0; lane < LANES; lane++) into[lane] = table[index[lane]];
#endif
}

static inline void gather_wide(uint64_t *into, const uint64_t *table, const uint32_t *index) {
#if defined(__AVX2__)
  for (int lane = 0; lane < LANES; lane += 4) {
    __m128i at = _mm_loadu_si128((const __m128i *)(const void *)(index + lane));
    __m256i found = _mm256_i32gather_epi64((const long long *)(const void *)table, at, 8);
    _mm256_storeu_si256((__m256i *)(void *)(into + lane), found);
  }
#else
  for (int lane = 0; lane < LANES; lane++) into[lane] = table[index[lane]];
#endif
}

/* Is any of them more than `most`, after clearing the bits in `without` and subtracting `base`? */
static inline bool any_above(const uint32_t *values, uint32_t without, uint32_t base,
                             uint32_t most) {
#if defined(__AVX512VL__)
  __mmask8 above = 0;
  for (int lane = 0; lane < LANES; lane += 8) {
    __m256i value = _mm256_loadu_si256((const __m256i *)(const void *)(values + lane));
    __m256i kept = _mm256_andnot_si256(_mm256_set1_epi32((int)without), value);
    above |= _mm256_cmpgt_epu32_mask(_mm256_sub_epi32(kept, _mm256_set1_epi32((int)base)),
                                     _mm256_set1_epi32((int)most));
  }
  return above;
#else
  uint32_t above = 0;
  for (int lane = 0; lane < LANES; lane++) above |= (values[lane] & ~without) - base > most;
  return above;
#endif
}

/* The lanes of the mask with another value than this one. */
static inline LaneMask lanes_that_differ(const uint64_t *values, LaneMask mask, uint64_t from) {
  LaneMask differing = 0;
#if defined(__AVX512VL__)
  __m256i same = _mm256_set1_epi64x((long long)from);
  for (int lane = 0; lane < LANES; lane += 4) {
    __m256i value = _mm256_loadu_si256((const __m256i *)(const void *)(values + lane));
    differing |= (LaneMask)_mm256_cmpneq_epu64_mask(value, same) << lane;
  }
#else
  for (int lane = 0; lane < LANES; lane++) differing |= (LaneMask)(values[lane] != from) << lane;
#endif
  return differing & mask;
}

/* Is each lane's value the first one, and `step` for each lane? */
static inline bool lanes_in_steps(const uint64_t *values, uint64_t first, uint32_t step) {
#if defined(__AVX2__)
  /* Made in registers: a vector that is read right after its parts are stored makes the host wait. */
  __m256i steps = _mm256_mul_epu32(_mm256_set1_epi64x(step), _mm256_set_epi64x(3, 2, 1, 0));
  __m256i wanted = _mm256_add_epi64(_mm256_set1_epi64x((long long)first), steps);
  __m256i next = _mm256_set1_epi64x(4 * (long long)step), differing = _mm256_setzero_si256();
  for (int lane = 0; lane < LANES; lane += 4) {
    __m256i value = _mm256_loadu_si256((const __m256i *)(const void *)(values + lane));
    differing = _mm256_or_si256(differing, _mm256_xor_si256(value, wanted));
    wanted = _mm256_add_epi64(wanted, next);
  }
  return _mm256_testz_si256(differing, differing);
#else
  uint64_t differing = 0;
  for (uint64_t lane = 0; lane < LANES; lane++) differing |= values[lane] ^ (first + lane * step);
  return !differing;
#endif
}

/* The same of 32-bit values; the compiler vectorises these loops. */
static inline bool narrow_lanes_differ(const uint32_t *values, LaneMask mask, uint32_t from) {
  uint32_t differing = 0;
  for (int lane = 0; lane < LANES; lane++)
    differing |= (values[lane] ^ from) & -(mask >> lane & 1u);
  return differing;
}
static inline bool narrow_lanes_in_steps(const uint32_t *values, uint32_t first, uint32_t step) {
  uint32_t differing = 0;
  for (uint32_t lane = 0; lane < LANES; lane++) differing |= values[lane] ^ (first + lane * step);
  return !differing;
}

/* The lanes whose value is not the one of the lane before; the first is one of them. */
static inline LaneMask lanes_that_change(const uint64_t *values) {
  LaneMask changes = 1;
  for (int lane = 1; lane < 4; lane++)
    changes |= (LaneMask)(values[lane] != values[lane - 1]) << lane;
  for (int lane = 4; lane < LANES; lane += 4) {
#if defined(__AVX512VL__)
    __m256i value = _mm256_loadu_si256((const __m256i *)(const void *)(values + lane));
    __m256i before = _mm256_loadu_si256((const __m256i *)(const void *)(values + lane - 1));
    changes |= (LaneMask)_mm256_cmpneq_epu64_mask(value, before) << lane;
#else
    for (int i = lane; i < lane + 4; i++) changes |= (LaneMask)(values[i] != values[i - 1]) << i;
#endif
  }
  return changes;
}

/* The lanes of the mask get their results. */
static inline void blend_u32(uint32_t *column, LaneMask mask, const uint32_t *results) {
#if defined(__AVX512VL__)
  for (int lane = 0; lane < LANES; lane += 8) {
    __m256i kept = _mm256_loadu_si256((const __m256i *)(const void *)(column + lane));
    __m256i made = _mm256_loadu_si256((const __m256i *)(const void *)(results + lane));
    _mm256_storeu_si256((__m256i *)(void *)(column + lane),
                        _mm256_mask_blend_epi32((__mmask8)(mask >> lane), kept, made));
  }
#else
  for (int lane = 0; lane < LANES; lane++)
    column[lane] = mask >> lane & 1 ? results[lane] : column[lane];
#endif
}
static inline void blend_u64(uint64_t *column, LaneMask mask, const uint64_t *results) {
#if defined(__AVX512VL__)
  for (int lane = 0; lane < LANES; lane += 4) {
    __m256i kept = _mm256_loadu_si256((const __m256i *)(const void *)(column + lane));
    __m256i made = _mm256_loadu_si256((const __m256i *)(const void *)(results + lane));
    _mm256_storeu_si256((__m256i *)(void *)(column + lane),
                        _mm256_mask_blend_epi64((__mmask8)(mask >> lane & 15), kept, made));
  }
#else
  for (int lane = 0; lane < LANES; lane++)
    column[lane] = mask >> lane & 1 ? results[lane] : column[lane];
#endif
}
