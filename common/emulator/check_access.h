/* check_access.h: an access to shared memory, between the files that look at it. */
#ifndef EMULATOR_CHECK_ACCESS_H
#define EMULATOR_CHECK_ACCESS_H

#include "check_state.h"

typedef struct {
  ClusterCheck *check;
  Warp *warp;
  const Instruction *in;
  int lane;
  uint32_t agent;
  uint32_t time; /* of an access through the generic proxy */
  uint32_t rank; /* of the CTA whose memory it is */
  uint32_t word;
  uint8_t kind; /* EntryKind */
  uint8_t mask;
  bool strong;
  bool by_lane; /* the answer depended on which lane had written the word: it holds for no other */
  bool all_plain; /* all its words were written by threads, or are unknown */
  AsyncCheck *operation;
} AccessNow;

static inline bool access_writes(const AccessNow *now) {
  return now->kind == ENTRY_WRITE || now->kind == ENTRY_ASYNC_WRITE;
}

#define REPORT(now, rule, ...) finding((now)->warp, (now)->in, 1u << (now)->lane, rule, __VA_ARGS__)

/* check_past.c: false: they may not follow, and that has been said. */
bool past_allows(AccessNow *now, const Entry *entry);
void past_report_exited(const AccessNow *now);
/* It reads bytes that nothing had written. */
bool past_unwritten(const AccessNow *now, uint8_t written);

/* check_reads.c: who has read a word. */
/* Are all reads of these words by others ordered before this access? False: perhaps not. */
bool reads_all_seen(const AccessNow *now, const struct CtaCheck *notes, uint32_t word,
                    uint32_t count);
/* The same for one word, where reads before `since` are over; false: not, and that has been said. */
bool reads_allow(AccessNow *now, struct CtaCheck *notes, uint32_t since);
/* The agent's own, made when it first reads there. */
Reads *reads_make(const AccessNow *now, struct CtaCheck *notes);
void reads_note(const AccessNow *now, Reads *reads, uint32_t word, uint32_t since);
/* The agents that have read any of these words since then, a bit each, by their number modulo 64. */
uint64_t reads_since(const ClusterCheck *check, const struct CtaCheck *notes, uint32_t word,
                     uint32_t count, uint32_t since);

#endif
