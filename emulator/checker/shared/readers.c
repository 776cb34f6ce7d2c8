/* readers.c: records which agents have read a word through the generic proxy, and when.
 *
 * Each agent has a separate table with the time of its last read of every word. So a read changes
 * nothing that other agents use, and one vector store notes the reads of a whole warp. Nothing is
 * ever removed from the tables: a read that is ordered before all later accesses does no harm, and
 * neither does one from before the word was last written. */
#include <stdlib.h>
#include <string.h>

#include "base/holds.h"
#include "base/fault.h"
#include "checker/shared/shared_access.h"
#include "base/gather.h"

enum { NEAR_WORDS = 64 /* words of a warp that are checked as one run first */ };

ReadClocks *reads_make(const AccessNow *now, struct CheckedMemory *memory) {
  size_t lines = memory->words / LINE_WORDS + 1, words = lines * LINE_WORDS;
  ReadClocks *reads = new_zeros(1, sizeof *reads + (words + lines) * sizeof *reads->words);
  reads->lines = reads->words + words;
  HOLDS(!memory->reads[now->agent] && now->agent < now->check->agents);
  memory->reads[now->agent] = reads;
  return reads;
}

void reads_forget_all(ClusterCheck *check) {
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    struct CheckedMemory *memory = &check->shared->memory[rank];
    for (uint32_t agent = 0; agent < check->agents; agent++) {
      if (memory->reads[agent]) free(memory->reads[agent]->bytes);
      free(memory->reads[agent]);
      memory->reads[agent] = NULL;
    }
  }
}

void reads_note_bytes(const AccessNow *now, const struct CheckedMemory *memory, ReadClocks *reads,
                      uint32_t word, uint32_t mask, uint32_t since) {
  if (!reads->bytes) {
    size_t words = (memory->words / LINE_WORDS + 1) * LINE_WORDS;
    reads->bytes = new_zeros(words * WORD_BYTES, sizeof *reads->bytes);
  }
  uint32_t *bytes = reads->bytes + word * WORD_BYTES;
  for (uint32_t i = 0; i < WORD_BYTES; i++)
    if (mask >> i & 1) bytes[i] = reads_value(now, bytes[i], since);
}

/* The table of an agent that has read here recently; NULL: all its reads are ordered before this
 * access. */
static const ReadClocks *unseen_reads(const AccessNow *now, const struct CheckedMemory *memory,
                                      uint32_t agent) {
  const ClusterCheck *check = now->check;
  return has_seen(check, now->agent, agent, order_last_read(check, agent)) ? NULL
                                                                           : memory->reads[agent];
}

static uint32_t newest_of(const uint32_t *noted, uint32_t count) {
  uint32_t newest = 0;
  for (uint32_t i = 0; i < count; i++) newest = noted[i] > newest ? noted[i] : newest;
  return newest;
}

/* Has an agent read any of these words after that time? */
static bool read_after(const ReadClocks *reads, uint32_t word, uint32_t end, uint32_t time) {
  while (word < end) {
    uint32_t line_end = (word / LINE_WORDS + 1) * LINE_WORDS;
    if (line_end > end) line_end = end;
    if (reads->lines[word / LINE_WORDS] > time) {
      const uint32_t *bytes = reads->bytes;
      if (newest_of(reads->words + word, line_end - word) >> 1 > time) return true;
      if (bytes && newest_of(bytes + word * WORD_BYTES, (line_end - word) * WORD_BYTES) >> 1 > time)
        return true;
    }
    word = line_end;
  }
  return false;
}

/* Has nobody else read these lines at all? */
static bool reads_alone(const AccessNow *now, const struct CheckedMemory *memory, uint32_t word,
                        uint32_t end) {
  for (uint32_t line = word / LINE_WORDS; line <= (end - 1) / LINE_WORDS; line++)
    if (memory->readers[line] != 0 && memory->readers[line] != now->agent + 1) return false;
  return true;
}

bool reads_all_seen(const AccessNow *now, const struct CheckedMemory *memory, uint32_t word,
                    uint32_t count) {
  const ClusterCheck *check = now->check;
  if (order_all_reads_seen(now->check, now->agent) || reads_alone(now, memory, word, word + count))
    return true;
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    const ReadClocks *reads = unseen_reads(now, memory, agent);
    uint32_t seen = order_of(check, now->agent)->clock.seen[agent];
    if (reads && read_after(reads, word, word + count, seen)) return false;
  }
  return true;
}

bool reads_all_seen_at(const AccessNow *now, const struct CheckedMemory *memory,
                       const uint32_t *words, uint32_t each, uint32_t least, uint32_t most) {
  const ClusterCheck *check = now->check;
  uint32_t end = most + each;
  if (order_all_reads_seen(now->check, now->agent) || reads_alone(now, memory, least, end))
    return true;
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    const ReadClocks *reads = unseen_reads(now, memory, agent);
    uint32_t seen = order_of(check, now->agent)->clock.seen[agent];
    if (!reads || (end - least <= NEAR_WORDS && !read_after(reads, least, end, seen))) continue;
    for (uint32_t k = 0; k < each; k++) {
      LANE_ARRAY uint32_t noted[LANES];
      gather_words(noted, reads->words + k, words);
      if (any_above(noted, 0, 0, seen << 1 | 1)) return false;
    }
    for (int lane = 0; lane < LANES && reads->bytes; lane++) {
      const uint32_t *bytes = reads->bytes + words[lane] * WORD_BYTES;
      if (newest_of(bytes, each * WORD_BYTES) >> 1 > seen) return false;
    }
  }
  return true;
}

static void forget_word(const ClusterCheck *check, struct CheckedMemory *memory, uint32_t word) {
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    ReadClocks *reads = memory->reads[agent];
    if (!reads) continue;
    reads->words[word] = 0;
    if (reads->bytes)
      memset(reads->bytes + word * WORD_BYTES, 0, WORD_BYTES * sizeof *reads->bytes);
  }
}

static bool read_allows(AccessNow *now, uint32_t agent, uint32_t read, uint8_t mask,
                        uint32_t since) {
  const ClusterCheck *check = now->check;
  uint32_t time = read >> 1;
  if (time <= since || has_seen(check, now->agent, agent, time)) return true;
  AccessSite place = order_site(check, time);
  AccessRecord entry = {.kind = ENTRY_READ,
                        .mask = mask & FULL_WORD,
                        .strong = place.strong,
                        .again = read & 1,
                        .agent = agent & AGENT_MOST,
                        .clock = time,
                        .in = place.in};
  return past_allows(now, &entry);
}

bool reads_allow(AccessNow *now, struct CheckedMemory *memory, uint32_t since) {
  const ClusterCheck *check = now->check;
  bool allowed = true;
  for (uint32_t agent = 0; agent < check->agents && allowed; agent++) {
    const ReadClocks *reads = unseen_reads(now, memory, agent);
    if (!reads) continue;
    allowed = read_allows(now, agent, reads->words[now->word], FULL_WORD, since);
    for (uint32_t i = 0; i < WORD_BYTES && reads->bytes && allowed; i++) {
      uint8_t mask = (uint8_t)(1u << i);
      if (now->mask & mask)
        allowed = read_allows(now, agent, reads->bytes[now->word * WORD_BYTES + i], mask, since);
    }
  }
  if (!allowed) forget_word(check, memory, now->word); /* one report about these bytes is enough */
  return allowed;
}

uint64_t reads_since(const ClusterCheck *check, const struct CheckedMemory *memory, uint32_t word,
                     uint32_t count, uint32_t since) {
  uint64_t readers = 0;
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    const ReadClocks *reads = memory->reads[agent];
    if (reads && order_last_read(check, agent) > since &&
        read_after(reads, word, word + count, since))
      readers |= 1ull << (agent & 63);
  }
  return readers;
}

uint32_t reads_last(const struct CheckedMemory *memory, uint32_t word, uint32_t agent) {
  const ReadClocks *reads = memory->reads[agent];
  uint32_t time = reads ? reads->words[word] >> 1 : 0;
  for (uint32_t i = 0; i < WORD_BYTES && reads && reads->bytes; i++) {
    uint32_t read = reads->bytes[word * WORD_BYTES + i] >> 1;
    time = read > time ? read : time;
  }
  return time;
}
