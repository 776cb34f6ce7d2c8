/* convert_nan.cu: what becomes of a NaN in cvt between floating formats: which bits of its payload stay.
 *
 *   emulate convert_nan      prints "instruction input result" for each form and each NaN
 *
 * recorded/convert_nan.txt.gz is what an H100 answered (26 November 2026, driver 580.159.04). */
#include "device_memory.cuh"

enum { NANS = 12 };

static const uint64_t nans_f64[NANS] = {0x7ff0000000000001, 0xfff0000000000001, 0x7ff0000010000000,
                                        0x7ff0000020000000, 0xfff0000020000000, 0x7ff0040000000000,
                                        0xfff0040000000000, 0x7ff0200000000000, 0xfff8000000000000,
                                        0x7fffffffffffffff, 0xffffffffffffffff, 0x7ff7ffffffffffff};
static const uint64_t nans_f32[NANS] = {0x7f800001, 0xff800001, 0x7f800002, 0x7f802000,
                                        0xff802000, 0x7f810000, 0xff810000, 0x7fc00000,
                                        0xffc00000, 0x7fffffff, 0xffffffff, 0x7fbfffff};
static const uint64_t nans_f16[NANS] = {0x7c01, 0xfc01, 0x7c02, 0x7c08, 0xfc08, 0x7c40,
                                        0xfc40, 0x7e00, 0xfe00, 0x7fff, 0xffff, 0x7dff};
static const uint64_t nans_bf16[NANS] = {0x7f81, 0xff81, 0x7f82, 0x7f84, 0xff84, 0x7f88,
                                         0xff88, 0x7fc0, 0xffc0, 0x7fff, 0xffff, 0x7fbf};

/* Letters as in inline assembly: the registers of the result and of the operand. */
#define OF_d(bits) __longlong_as_double((long long)(bits))
#define OF_r(bits) ((uint32_t)(bits))
#define OF_h(bits) ((uint16_t)(bits))
#define TO_d(value) ((uint64_t)__double_as_longlong(value))
#define TO_r(value) (value)
#define TO_h(value) (value)
typedef double type_d;
typedef uint32_t type_r;
typedef uint16_t type_h;

#define FORMS(FORM)                      \
  FORM(f64, "cvt.f64.f64", d, d)         \
  FORM(f64, "cvt.sat.f64.f64", d, d)     \
  FORM(f64, "cvt.rni.f64.f64", d, d)     \
  FORM(f64, "cvt.rn.f32.f64", r, d)      \
  FORM(f64, "cvt.rz.f32.f64", r, d)      \
  FORM(f64, "cvt.rm.f32.f64", r, d)      \
  FORM(f64, "cvt.rp.ftz.f32.f64", r, d)  \
  FORM(f64, "cvt.rn.sat.f32.f64", r, d)  \
  FORM(f64, "cvt.rn.f16.f64", h, d)      \
  FORM(f64, "cvt.rz.f16.f64", h, d)      \
  FORM(f64, "cvt.rp.f16.f64", h, d)      \
  FORM(f64, "cvt.rn.sat.f16.f64", h, d)  \
  FORM(f64, "cvt.rn.bf16.f64", h, d)     \
  FORM(f64, "cvt.rm.bf16.f64", h, d)     \
  FORM(f32, "cvt.f32.f32", r, r)         \
  FORM(f32, "cvt.ftz.f32.f32", r, r)     \
  FORM(f32, "cvt.rni.f32.f32", r, r)     \
  FORM(f32, "cvt.f64.f32", d, r)         \
  FORM(f32, "cvt.ftz.f64.f32", d, r)     \
  FORM(f32, "cvt.rn.f16.f32", h, r)      \
  FORM(f32, "cvt.rn.bf16.f32", h, r)     \
  FORM(f32, "cvt.rn.ftz.bf16.f32", h, r) \
  FORM(f16, "cvt.f16.f16", h, h)         \
  FORM(f16, "cvt.f32.f16", r, h)         \
  FORM(f16, "cvt.f64.f16", d, h)         \
  FORM(bf16, "cvt.f32.bf16", r, h)       \
  FORM(bf16, "cvt.ftz.f32.bf16", r, h)   \
  FORM(bf16, "cvt.f64.bf16", d, h)       \
  FORM(bf16, "cvt.rn.f16.bf16", h, h)

enum {
#define COUNT_ONE(from, text, to_register, from_register) +1
  FORM_COUNT = FORMS(COUNT_ONE)
};

__global__ void convert_all(const uint64_t *in, uint64_t *out) {
  int nan = (int)threadIdx.x, form = 0;
#define CONVERT(from, text, to_register, from_register)       \
  {                                                           \
    type_##to_register result;                                \
    uint64_t bits = in[form * NANS + nan];                    \
    asm volatile(text " %0, %1;"                              \
                 : "=" #to_register(result)                   \
                 : #from_register(OF_##from_register(bits))); \
    out[form++ * NANS + nan] = TO_##to_register(result);      \
  }
  FORMS(CONVERT)
}

int main(void) {
  static const struct {
    const char *text;
    const uint64_t *nans;
  } forms[] = {
#define NAME(from, text, to_register, from_register) {text, nans_##from},
      FORMS(NAME)};
  static uint64_t in[FORM_COUNT][NANS], out[FORM_COUNT][NANS];
  for (int form = 0; form < FORM_COUNT; form++)
    for (int nan = 0; nan < NANS; nan++) in[form][nan] = forms[form].nans[nan];
  uint64_t *device_out = device_memory<uint64_t>(FORM_COUNT * NANS);
  convert_all<<<1, NANS>>>(device_copy(in[0], FORM_COUNT * NANS), device_out);
  cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost);
  for (int form = 0; form < FORM_COUNT; form++)
    for (int nan = 0; nan < NANS; nan++)
      printf("%s %llx %llx\n", forms[form].text, (unsigned long long)in[form][nan],
             (unsigned long long)out[form][nan]);
  return cudaDeviceSynchronize() != cudaSuccess;
}
