/* check_reads.c: which agents have read a word through the generic proxy, and when.
 *
 * Each agent has a table of its own: of every word the time when it last read it. Reads thus change
 * nothing that others look at, and one store of a vector notes those of a whole warp. Nothing is
 * ever taken out of the tables: a read that is ordered before all that come is as good as none, and
 * so is one that came before the word was last written. */
#include <stdlib.h>
#include <string.h>

#include "check_access.h"

static uint32_t line_count(const struct CtaCheck *notes) { return notes->words / LINE_WORDS + 1; }

Reads *reads_make(const AccessNow *now, struct CtaCheck *notes) {
  size_t lines = line_count(notes);
  Reads *reads = calloc(1, sizeof *reads + (lines * LINE_WORDS + lines) * sizeof *reads->words);
  if (!reads) abort();
  reads->lines = reads->words + lines * LINE_WORDS;
  notes->reads[now->agent] = reads;
  return reads;
}

void reads_forget_all(ClusterCheck *check) {
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    struct CtaCheck *notes = &check->ctas[rank];
    for (uint32_t agent = 0; agent < check->agents; agent++) {
      free(notes->reads[agent]);
      notes->reads[agent] = NULL;
    }
  }
}

void reads_note(const AccessNow *now, Reads *reads, uint32_t word, uint32_t since) {
  const ClusterCheck *check = now->check;
  uint32_t last = reads->words[word] >> 1;
  bool again = last > since && last > check->start && last < check->epoch[now->agent];
  reads->words[word] = now->time << 1 | again;
  reads->lines[word / LINE_WORDS] = clock_of(check, now->agent);
}

/* The table of an agent that has read here lately; NULL: this access knows all its reads. */
static const Reads *unseen_reads(const AccessNow *now, const struct CtaCheck *notes,
                                 uint32_t agent) {
  const ClusterCheck *check = now->check;
  bool seen = check->clocks[now->agent].seen[agent] >= check->last_read[agent];
  return seen || agent == now->agent ? NULL : notes->reads[agent];
}

bool reads_all_seen(const AccessNow *now, const struct CtaCheck *notes, uint32_t word,
                    uint32_t count) {
  const ClusterCheck *check = now->check;
  const uint32_t *seen = check->clocks[now->agent].seen, *last = check->last_read;
  bool all = true;
  for (uint32_t agent = 0; agent < check->agents; agent++) all &= seen[agent] >= last[agent];
  if (all) return true;
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    const Reads *reads = unseen_reads(now, notes, agent);
    if (!reads) continue;
    for (uint32_t at = word, end = word + count; at < end;) {
      uint32_t line_end = (at / LINE_WORDS + 1) * LINE_WORDS, newest = 0;
      if (line_end > end) line_end = end;
      if (reads->lines[at / LINE_WORDS] > seen[agent]) {
        for (uint32_t i = at; i < line_end; i++)
          newest = reads->words[i] > newest ? reads->words[i] : newest;
        if (newest >> 1 > seen[agent]) return false;
      }
      at = line_end;
    }
  }
  return true;
}

static void forget_word(const ClusterCheck *check, struct CtaCheck *notes, uint32_t word) {
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    if (notes->reads[agent]) notes->reads[agent]->words[word] = 0;
  }
}

bool reads_allow(AccessNow *now, struct CtaCheck *notes, uint32_t since) {
  const ClusterCheck *check = now->check;
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    const Reads *reads = unseen_reads(now, notes, agent);
    uint32_t read = reads ? reads->words[now->word] : 0, time = read >> 1;
    if (time <= since || time <= check->clocks[now->agent].seen[agent]) continue;
    Entry entry = {.kind = ENTRY_READ,
                   .mask = FULL_WORD,
                   .again = read & 1,
                   .agent = agent & AGENT_MOST,
                   .clock = time,
                   .in = order_place(check, time)};
    if (past_allows(now, &entry)) continue;
    forget_word(check, notes, now->word); /* one complaint about these bytes is enough */
    return false;
  }
  return true;
}

uint64_t reads_since(const ClusterCheck *check, const struct CtaCheck *notes, uint32_t word,
                     uint32_t count, uint32_t since) {
  uint64_t readers = 0;
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    const Reads *reads = notes->reads[agent];
    if (!reads || check->last_read[agent] <= since) continue;
    uint32_t newest = 0;
    for (uint32_t line = word / LINE_WORDS; line <= (word + count - 1) / LINE_WORDS; line++)
      newest = reads->lines[line] > newest ? reads->lines[line] : newest;
    if (newest > since) readers |= 1ull << (agent & 63);
  }
  return readers;
}
