/* notes.c: collects what a step touches (notes.h). */
#include "state/notes.h"

#include "base/fault.h"

NoteList notes;

/* Neighbouring places become one. */
static bool extend_last(NoteKind kind, const uint8_t *at, size_t bytes, unsigned operation) {
  if (kind > NOTE_KEEP || notes.count == 0) return false;
  Note *last = &notes.items[notes.count - 1];
  if (last->kind != kind || last->operation != operation) return false;
  const uint8_t *first = last->at;
  if (at == first && bytes == last->bytes) return true;
  if (at != first + last->bytes || last->bytes + bytes > UINT32_MAX) return false;
  last->bytes += (uint32_t)bytes;
  return true;
}

void note_place(NoteKind kind, const void *at, size_t bytes, unsigned operation) {
  if (notes.keeper && kind >= NOTE_WRITE && kind <= NOTE_KEEP) notes.keeper(at, bytes);
  if (extend_last(kind, at, bytes, operation)) return;
  notes.items = grown_list(notes.items, notes.count, &notes.capacity, sizeof *notes.items);
  notes.items[notes.count++] = (Note){at, (uint32_t)bytes, (uint8_t)kind, (uint8_t)operation, 0};
}
