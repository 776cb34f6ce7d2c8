/* intrinsics.h: the host's AVX2 without the rest of immintrin, which takes gcc half a second in every file. Its parts
 * insist on that file's guard; other compilers, versions that were not tried, and AVX-512 get the whole. */
#pragma once

#if defined(__clang__) || defined(__AVX512F__) || __GNUC__ < 9 || __GNUC__ > 14
#include <immintrin.h>
#else
#define _IMMINTRIN_H_INCLUDED
#include <smmintrin.h>

#include <avxintrin.h>
/* Uses what the one before defines. */
#include <avx2intrin.h>
#include <fmaintrin.h>
#endif
