/* nvrtc_cubin.c: NVRTC's calls that return a cubin. The emulator runs PTX, so these return the PTX,
 * which NVRTC keeps along with the cubin, after a line that says so. They replace NVRTC's functions when the emulator's
 * library is loaded first (emulate ensures that). */
#include "runtime/nvrtc_cubin.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef int NvrtcCall(void *program, void *answer);
enum { NVRTC_ERROR_INTERNAL = 11 };

/* A comment of PTX. */
static const char MARK[] = "// The emulator runs this PTX in place of NVRTC's cubin.\n";
enum { MARK_BYTES = sizeof MARK - 1 };

static void *nvrtc_call(const char *name) {
  void *library = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_NOLOAD);
  return dlsym(library ? library : RTLD_NEXT, name);
}
static int call_nvrtc(const char *name, void *program, void *result) {
  NvrtcCall *call = (NvrtcCall *)nvrtc_call(name);
  return call ? call(program, result) : NVRTC_ERROR_INTERNAL;
}

int nvrtcGetCUBINSize(void *program, size_t *bytes);
int nvrtcGetCUBINSize(void *program, size_t *bytes) {
  int error = call_nvrtc("nvrtcGetCUBINSize", program, bytes);
  if (error || !bytes || *bytes == 0) return error; /* compiled for compute_...: no cubin */
  error = call_nvrtc("nvrtcGetPTXSize", program, bytes);
  if (!error) *bytes += MARK_BYTES;
  return error;
}
int nvrtcGetCUBIN(void *program, char *cubin);
int nvrtcGetCUBIN(void *program, char *cubin) {
  int error = call_nvrtc("nvrtcGetPTX", program, cubin ? cubin + MARK_BYTES : NULL);
  if (error) return error;
  memcpy(cubin, MARK, MARK_BYTES);
  return error;
}

/* ---- Which texts the device can run ---- */

/* Behind blanks and comments. A comment that is not closed goes on to the end. */
static const char *skip_blanks(const char *at) {
  for (;;) {
    at += strspn(at, " \t\r\n\v\f");
    bool to_end_of_line = strncmp(at, "//", 2) == 0;
    if (!to_end_of_line && strncmp(at, "/*", 2) != 0) return at;
    const char *end = strstr(at + 2, to_end_of_line ? "\n" : "*/");
    if (!end) return at + strlen(at);
    at = end + (to_end_of_line ? 1 : 2);
  }
}

static bool has_open_comment(const char *text) {
  for (const char *at = text; *at; at++) {
    if (*at == '"') {
      at = strchr(at + 1, '"');
      if (!at) return false;
    } else if (strncmp(at, "//", 2) == 0) {
      at += strcspn(at, "\n") - 1;
    } else if (strncmp(at, "/*", 2) == 0) {
      at = strstr(at + 2, "*/");
      if (!at) return true;
      at++;
    }
  }
  return false;
}

/* Behind this directive, or NULL. */
static const char *skip_directive(const char *at, const char *name) {
  at = skip_blanks(at);
  size_t length = strlen(name);
  return strncmp(at, name, length) == 0 ? skip_blanks(at + length) : NULL;
}

/* ".version 8.0" and the blanks behind it. NULL: the number is wrong. */
static const char *skip_version(const char *at, unsigned *major) {
  char *end;
  if (*at < '0' || *at > '9') return NULL;
  *major = (unsigned)strtoul(at, &end, 10);
  if (end[0] != '.' || end[1] < '0' || end[1] > '9') return NULL;
  strtoul(end + 1, &end, 10);
  return end;
}

/* A cubin runs on devices with the same major number and this minor number or a higher one, as NVIDIA's compatibility
 * guides say; PTX on this device and all later ones. What else is wrong with a text is said with a reason when it is
 * parsed. */
CUresult nvrtc_text_runs_here(const char *text) {
  enum { DEVICE = 90, NEWEST_MAJOR = 9 };
  unsigned major = 0;
  const char *at = skip_directive(text, ".version");
  if (!at) return CUDA_ERROR_INVALID_IMAGE;
  at = skip_version(at, &major);
  if (at && major > NEWEST_MAJOR) return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  at = at ? skip_directive(at, ".target") : NULL;
  if (!at || strncmp(at, "sm_", 3) != 0 || has_open_comment(at)) return CUDA_ERROR_INVALID_PTX;
  unsigned target = (unsigned)strtoul(at + 3, NULL, 10);
  if (strncmp(text, MARK, MARK_BYTES) == 0)
    return target / 10 == DEVICE / 10 && target <= DEVICE ? CUDA_SUCCESS
                                                          : CUDA_ERROR_NO_BINARY_FOR_GPU;
  return target <= DEVICE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}
