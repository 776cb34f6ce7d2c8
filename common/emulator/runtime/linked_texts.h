/* linked_texts.h: what cuLinkComplete returns and cuModuleLoadData takes. */
#ifndef EMULATOR_LINKED_TEXTS_H
#define EMULATOR_LINKED_TEXTS_H

#include "load/module.h"

#define LINKED_TEXTS_MARK \
  "\x7f"                  \
  "PTXLINK"
typedef struct {
  char mark[8];
  size_t count, bytes; /* `count` texts, each ended by a zero, stand behind this */
} LinkedTexts;

/* Fills in the first `most` texts; returns how many there are. */
size_t linked_texts_read(const LinkedTexts *linked, ModuleText *texts, size_t most);

#endif
