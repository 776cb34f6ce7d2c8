/* nvjitlink.c: nvJitLink's calls, for a program whose compiler hands it one text of PTX and takes a cubin, as Numba's
 * does: what it takes is that text. They stand in for those of the package cuda.bindings (python/sitecustomize.py). The
 * types are here, as nvJitLink's documentation has them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"

enum { LINKED = 0, INVALID_INPUT = 3, PTX_COMPILE = 4, INPUT_PTX = 2 };

typedef struct {
  char *text; /* with a zero byte at its end; NULL: none was added */
  size_t bytes;
  const char *error;
} Linker;

#define NVJITLINK(call, parameters) \
  int call parameters;              \
  int call parameters

static int fail_link(Linker *linker, const char *why) {
  linker->error = why;
  return PTX_COMPILE;
}

NVJITLINK(nvJitLinkVersion, (unsigned *major, unsigned *minor)) {
  *major = 13;
  *minor = 0;
  return LINKED;
}
NVJITLINK(nvJitLinkCreate, (Linker * *linker, uint32_t count, const char **options)) {
  (void)count, (void)options;
  *linker = new_zeros(1, sizeof **linker);
  (*linker)->error = "";
  return LINKED;
}
NVJITLINK(nvJitLinkDestroy, (Linker * *linker)) {
  if (!*linker) return INVALID_INPUT;
  free((*linker)->text);
  free(*linker);
  *linker = NULL;
  return LINKED;
}
NVJITLINK(nvJitLinkAddData,
          (Linker * linker, int type, const void *data, size_t bytes, const char *name)) {
  (void)name;
  if (type != INPUT_PTX)
    return fail_link(
        linker,
        "emulator: only PTX can be linked, and no machine code, library or LTO-IR. "
        "Numba hands over PTX with a signature and lto=False: @cuda.jit(SIGNATURE, lto=False)");
  if (linker->text) return fail_link(linker, "emulator: of texts of PTX only one can be linked");
  linker->bytes = strnlen(data, bytes);
  linker->text = need_memory(strndup(data, linker->bytes));
  return LINKED;
}
NVJITLINK(nvJitLinkAddFile, (Linker * linker, int type, const char *path)) {
  (void)type, (void)path;
  return fail_link(linker, "emulator: no files can be linked, only one text of PTX");
}
NVJITLINK(nvJitLinkComplete, (Linker * linker)) {
  return linker->text ? LINKED : fail_link(linker, "emulator: no PTX was added");
}

static int size_of_text(const Linker *linker, size_t *bytes) {
  if (!linker->text) return INVALID_INPUT;
  *bytes = linker->bytes + 1;
  return LINKED;
}
static int copy_ptx(const Linker *linker, char *to) {
  if (!linker->text) return INVALID_INPUT;
  memcpy(to, linker->text, linker->bytes + 1);
  return LINKED;
}
NVJITLINK(nvJitLinkGetLinkedCubinSize, (Linker * linker, size_t *bytes)) {
  return size_of_text(linker, bytes);
}
NVJITLINK(nvJitLinkGetLinkedCubin, (Linker * linker, void *to)) { return copy_ptx(linker, to); }
NVJITLINK(nvJitLinkGetLinkedPtxSize, (Linker * linker, size_t *bytes)) {
  return size_of_text(linker, bytes);
}
NVJITLINK(nvJitLinkGetLinkedPtx, (Linker * linker, char *to)) { return copy_ptx(linker, to); }

NVJITLINK(nvJitLinkGetErrorLogSize, (Linker * linker, size_t *bytes)) {
  *bytes = strlen(linker->error) + 1;
  return LINKED;
}
NVJITLINK(nvJitLinkGetErrorLog, (Linker * linker, char *to)) {
  strcpy(to, linker->error);
  return LINKED;
}
NVJITLINK(nvJitLinkGetInfoLogSize, (Linker * linker, size_t *bytes)) {
  (void)linker;
  *bytes = 1;
  return LINKED;
}
NVJITLINK(nvJitLinkGetInfoLog, (Linker * linker, char *to)) {
  (void)linker;
  *to = '\0';
  return LINKED;
}
