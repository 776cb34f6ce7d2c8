/* tensor_names.c: the names that the program gave to its tensor maps, for the recording. */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/lock.h"
#include "base/settings.h"
#include "record/record.h"

typedef struct TensorName TensorName;
struct TensorName {
  TensorName *before;
  TmaMap map;
  char name[];
};
/* None is freed: a program has few names, and a recording may still need them. */
static struct {
  pthread_mutex_t lock;
  TensorName *last;
} names = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_same_map(const TmaMap *a, const TmaMap *b) {
  return a->address == b->address && a->dimensions == b->dimensions && a->type == b->type &&
         a->swizzle_span == b->swizzle_span && a->interleave == b->interleave &&
         !memcmp(a->dimension, b->dimension, sizeof a->dimension) &&
         !memcmp(a->stride, b->stride, sizeof a->stride) &&
         !memcmp(a->box, b->box, sizeof a->box) &&
         !memcmp(a->element_stride, b->element_stride, sizeof a->element_stride);
}

/* The last name counts: memory may be freed and have another tensor later. */
const char *record_tensor_name(const TmaMap *map) {
  HOLD_LOCK(&names.lock);
  const TensorName *entry = names.last;
  while (entry && !is_same_map(&entry->map, map)) entry = entry->before;
  return entry ? entry->name : NULL;
}

void tensor_map_named(const void *map, const char *name) {
  uint64_t words[16];
  memcpy(words, map, sizeof words);
  TmaMap decoded;
  const char *problem;
  if (!settings()->record_file || !tma_map_read(words, &decoded, &problem)) return;
  const char *known = record_tensor_name(&decoded);
  if (known && !strcmp(known, name)) return;
  TensorName *entry = need_memory(malloc(sizeof *entry + strlen(name) + 1));
  entry->map = decoded;
  strcpy(entry->name, name);
  HOLD_LOCK(&names.lock);
  entry->before = names.last;
  names.last = entry;
}
