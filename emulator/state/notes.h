/* notes.h: what one step of a warp or of a copy touched, for exploration (explore/explore.h).
 *
 * While notes.wanted is set, loads, stores, barriers and copies note every place that they touch.
 * Places are host addresses: of the bytes in global or shared memory, or of the barrier's state. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
  /* Memory */
  NOTE_READ,
  NOTE_WRITE,
  NOTE_UPDATE, /* an integer reduction: commutes with others of the same `operation` */
  NOTE_KEEP,   /* may be about to be written */
  /* Barriers. Arrivals of one phase commute; a phase that completes is noted after the arrival. */
  NOTE_ARRIVE,   /* `operation`: NOTE_BYTES if only bytes arrive */
  NOTE_EXPECT,   /* more arrivals or bytes are needed from now on */
  NOTE_COMPLETE, /* a phase completes */
  NOTE_FULL,     /* all arrivals have come, but not all bytes: one more would be a fault */
  NOTE_PASS,     /* a wait that blocks until the phase completes has ended */
  NOTE_ASK,      /* a test that answers at once */
  NOTE_RESET,    /* initialised or invalidated */
  /* Orders that cannot be reversed */
  NOTE_RELEASE, /* what follows at an acquire of the same place comes later */
  NOTE_ACQUIRE,
  NOTE_ISSUE,  /* `at` is the AsyncOperation */
  NOTE_AWAITED /* the operation has read its source, or has landed; `bytes`: its process */
} NoteKind;

/* Where the numbers of updates begin that atomics and copies make. */
enum { NOTE_ATOMIC = 1, NOTE_REDUCE = 192 };
enum { NOTE_BYTES = 1 };

typedef struct {
  const void *at;
  uint32_t bytes;
  uint8_t kind;      /* NoteKind */
  uint8_t operation; /* of an update */
  uint32_t phase;    /* explore/racing_steps.c: of a barrier */
} Note;

/* What has been noted since the list was last emptied. */
typedef struct {
  Note *items;
  uint32_t count, capacity;
  bool wanted;
  void (*keeper)(const void *at,
                 size_t bytes); /* called before bytes may be written; NULL: nobody keeps them */
} NoteList;

/* Exploration runs in one host thread, which owns this. */
extern NoteList notes __attribute__((visibility("hidden")));
void note_place(NoteKind kind, const void *at, size_t bytes, unsigned operation);

static inline void note(NoteKind kind, const void *at, size_t bytes) {
  if (__builtin_expect(notes.wanted, 0)) note_place(kind, at, bytes, 0);
}
