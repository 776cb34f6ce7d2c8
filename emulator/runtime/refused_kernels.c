/* refused_kernels.c: when a program uses a kernel for the first time, it is told which others it cannot use, and not
 * only when it comes to them, which may be after minutes. Of a module that is loaded all that is refused is known, of
 * the others what the names of their instructions show. One kernel of each is named. */
#include <stdio.h>
#include <stdlib.h>

#include "base/report.h"
#include "ptx/opcodes.h"
#include "runtime/fatbin.h"
#include "runtime/runtime.h"

static const char ENDS[] = "a kernel is refused, and the program ends where it launches it";

static void announce_loaded(const Image *image) {
  const uint32_t count = module_entries(image->module, NULL, 0);
  const char **names = new_zeros(count, sizeof *names);
  const char *refusal = NULL;
  module_entries(image->module, names, count);
  for (uint32_t i = 0; i < count && !refusal; i++)
    refusal = function_refusal(module_entry(image->module, names[i]));
  if (refusal) fprintf(stderr, "emulator: %s: %s\n", ENDS, refusal);
  free(names);
}

static void announce_text(const Image *image, const char *text) {
  RefusedName found;
  if (!find_refused_name(text, &found)) return;
  fprintf(stderr, "emulator: %s: %s: %s: %s: %s\n", ENDS, image->name,
          kernel_name(found.kernel).text, found.opcode, found.why);
}

static void announce_container(const Image *image, const void *container, size_t most) {
  char *text, error[512];
  size_t bytes;
  if (!fatbin_find_ptx(container, most, &text, &bytes, error, sizeof error)) return;
  announce_text(image, text);
  free(text);
}

void runtime_announce_refused(const Image *image) {
  size_t bytes;
  if (image->unloaded || image->refusal) return;
  if (image->module) {
    announce_loaded(image);
  } else if (image->linked) {
    for (const void *const *file = image->linked; *file; file++)
      if (fatbin_size(*file, &bytes)) announce_container(image, *file, bytes);
  } else if (image->ptx) {
    announce_text(image, image->ptx);
  } else if (image->container) {
    announce_container(image, image->container, image->container_bytes);
  }
}
