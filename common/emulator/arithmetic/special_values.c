/* special_values.c: sin, cos and ex2 of f32 (special_values.h). The host's libm computes one value at a time.
 * For a warp, loops over all lanes compute a double that is off by less than MARGIN of itself. Where all
 * numbers within that margin round to one float, this is the float that libm's double rounds to. One lane in
 * some hundred thousand, and special values, are left to libm. */
/* Otherwise compilers leave the loops scalar. Nobody reads the host's exceptions. */
#pragma GCC optimize("-fno-trapping-math")
#ifdef __AVX512F__
#pragma GCC target("prefer-vector-width=512")
#endif

#include "arithmetic/special_values.h"

#include <math.h>

#define MARGIN 0x1p-44

/* ---- One value ---- */
/* The GPU multiplies by 1/(2 pi), rounded toward zero, and looks up the sine of that number of
 * turns. */
static inline double turns(float x) {
  double product = (double)x * (double)0x1.45f306p-3f;
  uint32_t turned = bits_of_float((float)product);
  turned -= fabs((double)float_of(turned)) > fabs(product); /* the next one toward zero */
  double all = (double)flushed(turned);
  return all - trunc(all);
}
static const double WHOLE_TURN = 6.283185307179586477;
float approximate_sin(float x) {
  double part = turns(x);
  return part == 0 ? copysignf(0.0f, x) : (float)sin(part * WHOLE_TURN);
}
float approximate_cos(float x) { return (float)cos(turns(x) * WHOLE_TURN); }
/* The argument is truncated to 23 fraction bits. */
static inline double truncated(float x) {
  return fabsf(x) < 1.0f ? trunc((double)x * 0x1p23) * 0x1p-23 : (double)x;
}
float approximate_ex2(float x) { return (float)exp2(truncated(x)); }

/* ---- All lanes ---- */
static void round_lanes(const double *exact, const float *x, LaneMask wanted, float (*one)(float),
                        uint32_t *result) {
  LANE_ARRAY uint32_t unknown[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    double value = exact[lane];
    float low = (float)(value - value * MARGIN), high = (float)(value + value * MARGIN);
    result[lane] = bits_of_float(low);
    unknown[lane] = !(low == high) | (value == 0);
  }
  LaneMask left = 0;
  for (int lane = 0; lane < LANES; lane++) left |= unknown[lane] << lane;
  for (left &= wanted; left; left &= left - 1)
    result[first_lane(left)] = float_result(one(x[first_lane(left)]));
}

/* Rounded once where the host can: both are within the margin. */
static inline double product_and(double a, double b, double c) {
#ifdef __FMA__
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

/* Their Taylor series, up to a quarter of pi. */
static inline double sine_of(double x) {
  double z = x * x;
  double sum = product_and(z, 2.8114572543455206e-15, -7.6471637318198164e-13);
  sum = product_and(z, sum, 1.6059043836821613e-10);
  sum = product_and(z, sum, -2.5052108385441720e-08);
  sum = product_and(z, sum, 2.7557319223985893e-06);
  sum = product_and(z, sum, -1.9841269841269841e-04);
  sum = product_and(z, sum, 8.3333333333333332e-03);
  sum = product_and(z, sum, -1.6666666666666666e-01);
  return product_and(x * z, sum, x);
}
static inline double cosine_of(double x) {
  double z = x * x;
  double sum = product_and(z, 4.7794773323873853e-14, -1.1470745597729725e-11);
  sum = product_and(z, sum, 2.0876756987868100e-09);
  sum = product_and(z, sum, -2.7557319223985888e-07);
  sum = product_and(z, sum, 2.4801587301587302e-05);
  sum = product_and(z, sum, -1.3888888888888889e-03);
  sum = product_and(z, sum, 4.1666666666666664e-02);
  return product_and(z * z, sum, product_and(z, -0.5, 1.0));
}

/* The angle less a multiple of half pi, which is the sum of three numbers: products with the first two are
 * exact. */
static inline void circle_lanes(const float *x, LaneMask wanted, uint32_t quarter,
                                float (*one)(float), uint32_t *result) {
  LANE_ARRAY double exact[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    double angle = turns(x[lane]) * WHOLE_TURN;
    double count = rint(angle * 0.63661977236758134);
    count = count == count ? count : 0.0;
    double rest = angle - count * 0x1.921fb544p+0;
    rest = rest - count * 0x1.0b4611a6p-34;
    rest = rest - count * 0x1.3198a2e037073p-69;
    uint32_t quadrant = (uint32_t)(int32_t)count + quarter;
    uint64_t sine = bits_of_double(sine_of(rest)), cosine = bits_of_double(cosine_of(rest));
    uint64_t odd = -(uint64_t)(quadrant & 1);
    exact[lane] = double_of(((cosine & odd) | (sine & ~odd)) ^ (uint64_t)(quadrant & 2) << 62);
  }
  round_lanes(exact, x, wanted, one, result);
}
void sin_of_lanes(const float *x, LaneMask wanted, uint32_t *result) {
  circle_lanes(x, wanted, 0, approximate_sin, result);
}
void cos_of_lanes(const float *x, LaneMask wanted, uint32_t *result) {
  circle_lanes(x, wanted, 1, approximate_cos, result);
}

/* 2 to the power of x, for at most a half of 1: the Taylor series of e to the power of x ln 2. */
static inline double power_of(double x) {
  double y = x * 0.69314718055994531;
  double sum = product_and(y, 1.6059043836821613e-10, 2.0876756987868099e-09);
  sum = product_and(y, sum, 2.5052108385441720e-08);
  sum = product_and(y, sum, 2.7557319223985888e-07);
  sum = product_and(y, sum, 2.7557319223985893e-06);
  sum = product_and(y, sum, 2.4801587301587302e-05);
  sum = product_and(y, sum, 1.9841269841269841e-04);
  sum = product_and(y, sum, 1.3888888888888889e-03);
  sum = product_and(y, sum, 8.3333333333333332e-03);
  sum = product_and(y, sum, 4.1666666666666664e-02);
  sum = product_and(y, sum, 1.6666666666666666e-01);
  sum = product_and(y, sum, 0.5);
  sum = product_and(y, sum, 1.0);
  return product_and(y, sum, 1.0);
}
void ex2_of_lanes(const float *x, LaneMask wanted, uint32_t *result) {
  LANE_ARRAY double exact[LANES];
  for (int lane = 0; lane < LANES; lane++) {
    double all = truncated(x[lane]);
    all = all > 300.0 ? 300.0 : all < -300.0 ? -300.0 : all; /* beyond it, all is 0 or infinite */
    double whole = rint(all);
    whole = whole == whole ? whole : 0.0;
    double scale = double_of((uint64_t)(uint32_t)((int32_t)whole + 1023) << 52);
    exact[lane] = power_of(all - whole) * scale;
  }
  round_lanes(exact, x, wanted, approximate_ex2, result);
}
