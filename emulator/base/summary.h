/* summary.h: one line at the end of a program that says what was checked, what was not, and what was let pass, so
 * that silence has a meaning: with EMULATOR_SUMMARY=1 on stderr, and always in the file of EMULATOR_FINDINGS. */
#pragma once

#include <stdint.h>

typedef enum {
#define NOTE(name, kind, text) NOTE_##name,
#include "base/summary.def"
#undef NOTE
  NOTE_COUNT
} SummaryNote;
typedef enum { GAP, LENIENT, COUNTED } SummaryKind;

/* Written by all host threads. Relaxed: they are read when the program ends, and nothing depends on their order. */
extern uint64_t summary_notes[NOTE_COUNT] __attribute__((visibility("hidden")));
/* It has happened. Often called, so that most calls only read. */
static inline void summary_note(SummaryNote note) {
  if (!__atomic_load_n(&summary_notes[note], __ATOMIC_RELAXED))
    __atomic_store_n(&summary_notes[note], 1, __ATOMIC_RELAXED);
}
static inline void summary_add(SummaryNote note, uint64_t count) {
  __atomic_fetch_add(&summary_notes[note], count, __ATOMIC_RELAXED);
}

/* What was checked, and what was not because of a setting: by number from 0 on; NULL: there are no more. */
const char *summary_checked(int number);
const char *summary_left_out(int number);
/* A note of this kind that was met, from `*note` on, which is moved behind it; NULL: there are no more. */
const char *summary_next(SummaryKind kind, int *note);

/* The program ends, and nothing more will be found. Later calls do nothing. */
void summary_end(void);
