/* result.c: what an order has changed in global memory and printed, so that orders can be
 * compared. Pages are kept before they are first written; the words that differ at the end count. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/mix.h"
#include "base/table.h"
#include "explore/explore.h"

enum { PAGE = 4096, WORD = 8, WORDS_COMPARED = 1 << 24 };

typedef struct {
  uint64_t page; /* its address; 0: free */
  uint8_t *before;
} KeptPage;

static Table kept; /* of KeptPage; in the process of an order, which has one thread */

static void keep_pages(const void *at, size_t bytes) {
  const uint64_t first = (uint64_t)(uintptr_t)at;
  if (!memory_find(first)) return; /* shared memory */
  for (uint64_t page = first / PAGE * PAGE; page < first + bytes; page += PAGE) {
    KeptPage *own = table_entry(&kept, sizeof *own, page);
    if (own->before) continue;
    own->before = need_memory(malloc(PAGE));
    memcpy(own->before, (const void *)(uintptr_t)page, PAGE);
  }
}

void result_begin(void) { notes.keeper = keep_pages; }

static int page_by_address(const void *a, const void *b) {
  const uint64_t left = ((const KeptPage *)a)->page, right = ((const KeptPage *)b)->page;
  return left < right ? -1 : left > right;
}

/* The words that differ from before, by address. */
static ChangedWord *changed_words(uint32_t *count) {
  uint32_t used = 0, capacity = 0;
  ChangedWord *words = NULL;
  const KeptPage *pages = kept.entries;
  if (kept.size) qsort(kept.entries, kept.size, sizeof *pages, page_by_address);
  for (uint32_t i = 0; i < kept.size; i++) {
    for (uint32_t at = 0; pages[i].page && at < PAGE; at += WORD) {
      const uint8_t *now = (const uint8_t *)(uintptr_t)(pages[i].page + at);
      if (memcmp(now, pages[i].before + at, WORD) == 0) continue;
      words = grown_list(words, used, &capacity, sizeof *words);
      words[used].address = pages[i].page + at;
      memcpy(&words[used++].value, now, WORD);
    }
  }
  *count = used;
  return words;
}

/* The lines of a cluster in any order: it does not matter which warp prints first. */
static uint64_t hash_of_output(const Order *order) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < order->context_count; i++) {
    const struct ClusterFlow *flow = &order->contexts[i]->flow;
    uint64_t line = mix(i + 1);
    for (size_t k = 0; k < flow->output_used; k++) {
      line = mix(line + (uint8_t)flow->output[k]);
      if (flow->output[k] != '\n' && k + 1 != flow->output_used) continue;
      sum += line;
      line = mix(i + 1);
    }
  }
  return sum;
}

static uint64_t word_before(uint64_t address) {
  uint64_t value;
  const KeptPage wanted = {address / PAGE * PAGE, NULL};
  const KeptPage *page = bsearch(&wanted, kept.entries, kept.size, sizeof wanted, page_by_address);
  memcpy(&value, page ? page->before + address % PAGE : (const uint8_t *)(uintptr_t)address, WORD);
  return value;
}

static void describe_difference(uint64_t address, uint64_t first, uint64_t here, char *text) {
  uint32_t byte = 0;
  while ((first >> 8 * byte & 0xff) == (here >> 8 * byte & 0xff)) byte++;
  byte = byte / 4 * 4; /* as words of 32 bits, which most programs use */
  const Allocation *found = memory_find(address + byte);
  if (!found) found = memory_find(address);
  snprintf(
      text, DIFFERENCE_TEXT,
      "the 32 bits at global address 0x%llx (byte %llu of an allocation of %llu) are 0x%08x in "
      "the first order and 0x%08x in this one",
      (unsigned long long)address + byte,
      found ? (unsigned long long)(address + byte - found->first) : 0,
      found ? (unsigned long long)(found->end - found->first) : 0, (uint32_t)(first >> 8 * byte),
      (uint32_t)(here >> 8 * byte));
}

/* The first word that has another value than after the first order. */
static void compare_words(const Tree *tree, const ChangedWord *words, uint32_t count, char *text) {
  uint32_t a = 0, b = 0;
  while (a < tree->word_count || b < count) {
    const uint64_t first = a < tree->word_count ? tree->words[a].address : UINT64_MAX;
    const uint64_t here = b < count ? words[b].address : UINT64_MAX;
    const uint64_t address = first < here ? first : here;
    const uint64_t before = word_before(address);
    const uint64_t value = first == address ? tree->words[a++].value : before;
    const uint64_t other = here == address ? words[b++].value : before;
    if (value == other) continue;
    describe_difference(address, value, other, text);
    return;
  }
  snprintf(text, DIFFERENCE_TEXT, "the printed text differs");
}

void result_end(const Order *order, OrderResult *result) {
  uint32_t count;
  Tree *tree = order->tree;
  ChangedWord *words = changed_words(&count);
  result->hash = hash_of_output(order);
  for (uint32_t i = 0; i < count; i++) result->hash += mix(mix(words[i].address) + words[i].value);
  notes.keeper = NULL;
  if (tree->word_count == UINT32_MAX) { /* this is the first order */
    tree->word_count = count < WORDS_COMPARED ? count : 0;
    if (tree->word_count) memcpy(tree->words, words, count * sizeof *words);
  } else {
    compare_words(tree, words, count, result->difference);
  }
  free(words);
}
