/* nvrtc_cubin.c: NVRTC's calls that return a cubin. The emulator runs PTX, so these return the PTX,
 * which NVRTC keeps along with the cubin. They replace NVRTC's functions when the emulator's
 * library is loaded first (emulate ensures that). */
#include <dlfcn.h>
#include <stddef.h>

typedef int NvrtcCall(void *program, void *result);
enum { NVRTC_ERROR_INTERNAL = 11 };

static int call_nvrtc(const char *name, void *program, void *result) {
  void *library = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_NOLOAD);
  NvrtcCall *call = library ? (NvrtcCall *)dlsym(library, name) : NULL;
  return call ? call(program, result) : NVRTC_ERROR_INTERNAL;
}

int nvrtcGetCUBINSize(void *program, size_t *bytes);
int nvrtcGetCUBINSize(void *program, size_t *bytes) {
  int error = call_nvrtc("nvrtcGetCUBINSize", program, bytes);
  if (error || !bytes || *bytes == 0) return error; /* compiled for compute_...: no cubin */
  return call_nvrtc("nvrtcGetPTXSize", program, bytes);
}
int nvrtcGetCUBIN(void *program, char *cubin);
int nvrtcGetCUBIN(void *program, char *cubin) { return call_nvrtc("nvrtcGetPTX", program, cubin); }
