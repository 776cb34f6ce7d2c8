/* linked_texts.h: the data that cuLinkComplete returns and cuModuleLoadData accepts. */
#ifndef EMULATOR_LINKED_TEXTS_H
#define EMULATOR_LINKED_TEXTS_H

#include "load/module.h"

#define LINKED_TEXTS_MARK \
  "\x7f"                  \
  "PTXLINK"
typedef struct {
  char mark[8];
  size_t count, bytes; /* `count` zero-terminated texts follow */
} LinkedTexts;

/* Fills in the first `most` texts. Returns the number of texts. */
size_t linked_texts_read(const LinkedTexts *linked, ModuleText *texts, size_t most);

#endif
