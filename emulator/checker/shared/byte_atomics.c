/* byte_atomics.c: atomics of 8 or 16 bits in shared memory, as libcu++ makes them: a strong load of the word
 * around them, and compare-and-swaps of that word, which leave the other bytes as they are. A plain
 * access to one of those bytes is right without any order: if it comes between the load and the swap,
 * the swap fails and is tried again. (For global memory: global_guesses.c, global_races.c.) */
#include <string.h>

#include "base/address.h"
#include "base/fault.h"
#include "checker/shared/shared_access.h"

enum { SWAPPED = 1 << WORD_BYTES /* with the bytes that all swaps of the word have kept */ };

static uint8_t *swaps_of(struct CheckedMemory *memory) {
  if (!memory->swaps) memory->swaps = new_zeros(memory->words, 1);
  return memory->swaps;
}

/* The bytes of a word that an access touches. */
static uint32_t bytes_at(uint32_t address, uint32_t bytes) {
  uint32_t all = bytes < WORD_BYTES ? (1u << bytes) - 1 : FULL_WORD;
  return all << address % WORD_BYTES & FULL_WORD;
}

void swaps_note(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                uint32_t bytes, const AccessKind *kind) {
  ClusterCheck *check = check_of(warp);
  check->any_swaps = true;
  FOR_LANES(lane, mask) {
    uint32_t rank = SHARED_RANK(addresses[lane]);
    uint32_t word = SHARED_OFFSET(addresses[lane]) / WORD_BYTES;
    uint32_t end = word + (bytes + WORD_BYTES - 1) / WORD_BYTES;
    if (rank >= check->cta_count || end > check->shared->memory[rank].words) continue;
    struct CheckedMemory *memory = &check->shared->memory[rank];
    if (!kind->kept && !memory->swaps) continue;
    uint8_t *swaps = swaps_of(memory), kept = (uint8_t)~bytes_at(addresses[lane], bytes);
    if (kind->kept) kept = kind->kept(warp, in, lane);
    for (; word < end; word++)
      swaps[word] = SWAPPED | (swaps[word] & SWAPPED ? swaps[word] & kept : kept & FULL_WORD);
  }
}

void swaps_forget(struct CheckedMemory *memory) {
  if (memory->swaps) memset(memory->swaps, 0, memory->words);
}

bool swaps_keep(const ClusterCheck *check, uint32_t rank, uint32_t word, uint32_t mask) {
  const struct CheckedMemory *memory = &check->shared->memory[rank];
  return memory->swaps && memory->swaps[word] & SWAPPED && !(mask & ~(uint32_t)memory->swaps[word]);
}

bool swaps_allow(const AccessNow *now, const AccessRecord *past) {
  if (now->strong == past->strong) return false;
  EntryKind strong_kind = (EntryKind)(now->strong ? now->kind : past->kind);
  uint32_t strong_mask = now->strong ? now->mask : past->mask;
  uint32_t plain_mask = now->strong ? past->mask : now->mask;
  if (plain_mask == FULL_WORD) return false;
  if (strong_kind == ENTRY_READ) return strong_mask == FULL_WORD;
  return swaps_keep(now->check, now->rank, now->word, plain_mask);
}
