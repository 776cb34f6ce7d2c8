/* global_shadow.c: what is known about each byte of global memory: cells by address.
 *
 * A page of the shadow stands for 64 KiB of memory and is allocated when they are first touched.
 * It has a cell for each line of 128 bytes. When parts of a line have different pasts, the line
 * gets a cell for each word, and a word can get one for each byte. Each page has a lock: clusters
 * run on several host threads. */
#include <sched.h>
#include <stdlib.h>

#include "base/holds.h"
#include "base/fault.h"
#include "checker/global/global_state.h"
#include "trial/trial.h"

enum {
  LINE_BYTES = 128,
  PAGE_SHIFT = 16,
  PAGE_LINES = (1 << PAGE_SHIFT) / LINE_BYTES,
  BOOK_SHIFT = 30, /* a book holds the pages of 1 GiB */
  BOOK_PAGES = 1 << (BOOK_SHIFT - PAGE_SHIFT),
  BOOKS = 1 << (47 - BOOK_SHIFT),
  LINE_CELLS = LINE_BYTES / 4
};

typedef struct {
  GlobalCell words[LINE_CELLS];
  GlobalCell *bytes; /* four for each word; NULL: no word is split */
} SplitLine;

typedef struct GlobalPage {
  uint32_t locked;
  uint32_t operation;           /* the last one that has touched it */
  uint32_t saved;               /* the last launch that was told so (Launch.tried) */
  uint32_t shared_by;           /* the operation for which `shared` was noted */
  uint32_t shared[PAGE_LINES];  /* a bit for each word that many_have_read */
  GlobalCell lines[PAGE_LINES]; /* writes GLOBAL_SPLIT: see the split line */
  SplitLine *split[PAGE_LINES]; /* NULL: has never been split */
} Page;

typedef struct {
  uint32_t count; /* of its pages that exist */
  Page *pages[BOOK_PAGES];
} Book;
static Book *books[BOOKS];

/* count: grows by what is made; NULL: not counted */
static void *find_or_make(void **place, size_t bytes, uint32_t *count) {
  void *found = __atomic_load_n(place, __ATOMIC_ACQUIRE);
  if (found) return found;
  void *made = new_zeros(1, bytes);
  if (!__atomic_compare_exchange_n(place, &found, made, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    free(made);
    return found;
  }
  if (count) __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
  return made;
}

static Page *page_of(uint64_t address) {
  if (address >> 47) return NULL;
  Book *book = find_or_make((void **)(void *)&books[address >> BOOK_SHIFT], sizeof(Book), NULL);
  return find_or_make((void **)(void *)&book->pages[(address >> PAGE_SHIFT) % BOOK_PAGES],
                      sizeof(Page), &book->count);
}

static void free_page(Page *page) {
  for (uint32_t i = 0; i < PAGE_LINES; i++) {
    if (page->split[i]) free(page->split[i]->bytes);
    free(page->split[i]);
  }
  free(page);
}

void global_shadow_forget(uint64_t first, uint64_t bytes) {
  for (uint64_t at = first >> PAGE_SHIFT; at <= (first + bytes - 1) >> PAGE_SHIFT; at++) {
    Book **book = &books[at / BOOK_PAGES];
    Page **page = *book ? &(*book)->pages[at % BOOK_PAGES] : NULL;
    if (!page || !*page) continue;
    HOLDS(!(*page)->locked && (*book)->count > 0); /* no kernel uses what is freed */
    free_page(*page);
    *page = NULL;
    if (--(*book)->count) continue;
    free(*book);
    *book = NULL;
  }
}

static void lock_page(Page *page) {
  for (uint32_t tries = 0; __atomic_exchange_n(&page->locked, 1, __ATOMIC_ACQUIRE); tries++)
    if (tries > 100) sched_yield();
}
static void unlock_page(Page *page) {
  HOLDS_DEARLY(__atomic_load_n(&page->locked, __ATOMIC_RELAXED));
  __atomic_store_n(&page->locked, 0, __ATOMIC_RELEASE);
}

static inline void touch_cell(GlobalNow *now, GlobalCell *cell, uint64_t address, uint32_t bytes) {
  if (cell->writes == now->before.writes && cell->reads == now->before.reads) {
    *cell = now->after;
    return;
  }
  now->address = address;
  now->bytes = bytes;
  *cell = global_next(now, *cell);
  HOLDS(cell->writes != GLOBAL_SPLIT); /* only lines and words are split, here */
}

static SplitLine *split_line(Page *page, uint32_t line) {
  SplitLine *split = page->split[line];
  if (page->lines[line].writes == GLOBAL_SPLIT) return split;
  if (!split) {
    split = page->split[line] = calloc(1, sizeof *split);
    if (!split) out_of_memory();
  }
  for (int i = 0; i < LINE_CELLS; i++) split->words[i] = page->lines[line];
  page->lines[line].writes = GLOBAL_SPLIT;
  return split;
}

static GlobalCell *split_word(SplitLine *split, uint32_t word) {
  if (!split->bytes) split->bytes = new_zeros((size_t)LINE_CELLS * 4, sizeof *split->bytes);
  GlobalCell *bytes = &split->bytes[word * 4];
  if (split->words[word].writes == GLOBAL_SPLIT) return bytes;
  for (int i = 0; i < 4; i++) bytes[i] = split->words[word];
  split->words[word].writes = GLOBAL_SPLIT;
  return bytes;
}

/* If all bytes have the same past again, one cell is enough. */
static void join_bytes(SplitLine *split, uint32_t word, const GlobalCell *bytes) {
  for (int i = 1; i < 4; i++)
    if (bytes[i].writes != bytes[0].writes || bytes[i].reads != bytes[0].reads) return;
  split->words[word] = bytes[0];
}

static void touch_word(GlobalNow *now, SplitLine *split, uint64_t address, uint32_t bytes) {
  uint32_t word = (uint32_t)(address / 4 % LINE_CELLS), first = (uint32_t)(address & 3);
  if (bytes == 4 && split->words[word].writes != GLOBAL_SPLIT) {
    touch_cell(now, &split->words[word], address, 4);
    return;
  }
  GlobalCell *cells = split_word(split, word);
  for (uint32_t i = 0; i < bytes; i++) touch_cell(now, &cells[first + i], address + i, 1);
  join_bytes(split, word, cells);
}

static void join_words(Page *page, uint32_t line, const GlobalCell *words) {
  for (int i = 0; i < LINE_CELLS; i++)
    if (words[i].writes != words[0].writes || words[i].reads != words[0].reads ||
        words[i].writes == GLOBAL_SPLIT)
      return;
  HOLDS_DEARLY(page->lines[line].writes == GLOBAL_SPLIT && words == page->split[line]->words);
  page->lines[line] = words[0];
}

/* ---- What many blocks have read ----
 *
 * `shared_by` publishes the zeros in `shared` (release), and a bit there stands for nothing but
 * itself (relaxed). A write clears bits: a read that is ordered after it sees that, and any other
 * read races with it. `operation` only says that a launch has not been in a page (relaxed). */

static void forget_readers(Page *page, uint32_t line) {
  __atomic_store_n(&page->shared[line], 0, __ATOMIC_RELAXED);
}

/* Are these writes of an operation that has ended before the launch began? */
static bool are_before(const GlobalLaunch *launch, uint32_t writes) {
  if (!writes || global_is_settled(launch, writes)) return true;
  if (writes & GLOBAL_LIST || launch->dependency) return false;
  const OperationOrder *order = global_operation_order();
  uint32_t past = global_access(writes)->operation;
  return past != launch->operation && (!order || order->ordered(past, launch->operation));
}

static bool many_have_read(const GlobalLaunch *launch, GlobalCell cell) {
  if (!(cell.reads & GLOBAL_LIST) || cell.writes == GLOBAL_SPLIT ||
      global_is_settled(launch, cell.reads))
    return false;
  const GlobalList *readers = global_list(cell.reads);
  return readers->several && readers->operation == launch->operation &&
         are_before(launch, cell.writes);
}

static bool many_have_read_words(const GlobalLaunch *launch, const SplitLine *split, uint64_t first,
                                 uint64_t end) {
  GlobalCell known = {GLOBAL_SPLIT, 0};
  for (uint64_t at = first; at < end; at += 4) {
    GlobalCell cell = split->words[at / 4 % LINE_CELLS];
    if (cell.writes == known.writes && cell.reads == known.reads) continue;
    if (!many_have_read(launch, cell)) return false;
    known = cell;
  }
  return true;
}

/* The words of a line from `first` to `end`. */
static uint32_t words_in_line(uint64_t first, uint64_t end) {
  uint32_t count = (uint32_t)(end - first) / 4, at = (uint32_t)(first / 4 % LINE_CELLS);
  return (count == LINE_CELLS ? UINT32_MAX : (1u << count) - 1) << at;
}

/* Without the lock: whoever writes there meanwhile races with all of these readers anyway. */
static bool are_noted(const Page *page, uint32_t line, uint32_t words, uint32_t operation) {
  return __atomic_load_n(&page->shared_by, __ATOMIC_ACQUIRE) == operation &&
         !(words & ~__atomic_load_n(&page->shared[line], __ATOMIC_RELAXED));
}

static void note_readers(Page *page, uint32_t line, uint32_t words, uint32_t operation) {
  if (page->shared_by != operation) {
    for (uint32_t i = 0; i < PAGE_LINES; i++) forget_readers(page, i);
    __atomic_store_n(&page->shared_by, operation, __ATOMIC_RELEASE);
  }
  __atomic_store_n(&page->shared[line], page->shared[line] | words, __ATOMIC_RELAXED);
}

/* Noted here, they are found without the lock. */
static void note_many(const GlobalLaunch *launch, Page *page, uint64_t first, uint64_t end) {
  uint32_t line = (uint32_t)(first / LINE_BYTES % PAGE_LINES);
  if ((first | end) & 3) return;
  bool many = page->lines[line].writes == GLOBAL_SPLIT
                  ? many_have_read_words(launch, page->split[line], first, end)
                  : many_have_read(launch, page->lines[line]);
  if (many) note_readers(page, line, words_in_line(first, end), launch->operation);
}

/* ---- Accesses ---- */

static void touch_words_of_line(GlobalNow *now, Page *page, uint64_t first, uint64_t end) {
  uint32_t line = (uint32_t)(first / LINE_BYTES % PAGE_LINES);
  SplitLine *split = split_line(page, line);
  for (uint64_t at = first, next; at < end; at = next) {
    next = (at & ~3ull) + 4;
    if (next > end) next = end;
    touch_word(now, split, at, (uint32_t)(next - at));
  }
  if (end - first == LINE_BYTES) join_words(page, line, split->words);
}

static void touch_in_line(GlobalNow *now, Page *page, uint64_t first, uint64_t end) {
  uint32_t line = (uint32_t)(first / LINE_BYTES % PAGE_LINES);
  if (now->kind != ACCESS_READ) forget_readers(page, line);
  bool whole = end - first == LINE_BYTES;
  if (whole && page->lines[line].writes != GLOBAL_SPLIT)
    touch_cell(now, &page->lines[line], first, LINE_BYTES);
  else
    touch_words_of_line(now, page, first, end);
  if (now->kind == ACCESS_READ && now->launch->apart) note_many(now->launch, page, first, end);
}

static void release_page(GlobalHeldPage *held) {
  if (held->page) unlock_page(held->page);
  held->page = NULL;
}

/* The page is locked. */
static inline void note_change(Page *page, const Launch *launch, uint64_t address) {
  if (page->saved == launch->tried) return;
  page->saved = launch->tried;
  trial_page_changes(launch, address);
}

static bool hold_page(GlobalHeldPage *held, const GlobalNow *now, uint64_t address) {
  uint64_t number = address >> PAGE_SHIFT;
  if (held->page && held->number == number) return true;
  release_page(held);
  *held = (GlobalHeldPage){page_of(address), number};
  if (!held->page) return false;
  lock_page(held->page);
  __atomic_store_n(&held->page->operation, now->launch->operation, __ATOMIC_RELAXED);
  if (now->kind != ACCESS_READ && now->launch->of)
    note_change(held->page, now->launch->of, address);
  return true;
}

static void touch_bytes(GlobalNow *now, GlobalHeldPage *held, uint64_t first, uint64_t bytes) {
  for (uint64_t end = first + bytes; first < end && hold_page(held, now, first);) {
    uint64_t next = (first / LINE_BYTES + 1) * LINE_BYTES;
    if (next > end) next = end;
    touch_in_line(now, held->page, first, next);
    first = next;
  }
}

void global_shadow_touch(GlobalNow *now, uint64_t first, uint64_t bytes) {
  global_shadow_touch_rows(now, first, bytes, 1, 0);
}

void global_shadow_touch_rows(GlobalNow *now, uint64_t first, uint64_t bytes, uint32_t rows,
                              uint64_t step) {
  GlobalHeldPage held = {NULL, 0};
  for (uint32_t row = 0; row < rows; row++) touch_bytes(now, &held, first + row * step, bytes);
  release_page(&held);
}

void global_shadow_touch_more(GlobalNow *now, GlobalHeldPage *held, uint64_t first,
                              uint64_t bytes) {
  touch_bytes(now, held, first, bytes);
}

void global_shadow_release(GlobalHeldPage *held) { release_page(held); }

/* ---- Quick accesses ---- */

static Page *page_again(struct GlobalState *own, uint64_t address) {
  uint64_t number = address >> PAGE_SHIFT;
  if (own->page && own->page_number == number) return own->page;
  own->page_number = number;
  return own->page = page_of(address);
}

static bool quick_words(GlobalQuick *quick, Page *page, uint64_t first, uint64_t end) {
  uint32_t line = (uint32_t)(first / LINE_BYTES % PAGE_LINES);
  SplitLine *split = split_line(page, line);
  for (uint64_t at = first; at < end; at += 4)
    if (!global_quick_next(quick, at, &split->words[at / 4 % LINE_CELLS])) return false;
  if (end - first == LINE_BYTES) join_words(page, line, split->words);
  return true;
}

bool global_shadow_quickly(GlobalQuick *quick, uint64_t first, uint64_t bytes) {
  const GlobalLaunch *launch = quick->own->launch;
  uint64_t end = first + bytes, next;
  Page *page = page_again(quick->own, first);
  if (!page || (first ^ (end - 1)) >> PAGE_SHIFT) return false;
  lock_page(page);
  __atomic_store_n(&page->operation, launch->operation, __ATOMIC_RELAXED);
  if (quick->writes && launch->of) note_change(page, launch->of, first);
  bool done = true;
  for (; first < end && done; first = next) {
    next = (first / LINE_BYTES + 1) * LINE_BYTES;
    if (next > end) next = end;
    GlobalCell *line = &page->lines[first / LINE_BYTES % PAGE_LINES];
    if (quick->writes) forget_readers(page, (uint32_t)(first / LINE_BYTES % PAGE_LINES));
    done = next - first == LINE_BYTES && line->writes != GLOBAL_SPLIT
               ? global_quick_next(quick, first, line)
               : quick_words(quick, page, first, next);
  }
  unlock_page(page);
  return done;
}

static bool line_was_read(const GlobalLaunch *launch, Page *page, uint64_t first, uint64_t end) {
  uint32_t line = (uint32_t)(first / LINE_BYTES % PAGE_LINES), words = words_in_line(first, end);
  if (are_noted(page, line, words, launch->operation)) return true;
  lock_page(page);
  note_many(launch, page, first, end);
  unlock_page(page);
  return are_noted(page, line, words, launch->operation);
}

bool global_shadow_is_noted(struct GlobalState *own, uint64_t first, uint64_t bytes) {
  uint64_t end = first + bytes, next;
  uint32_t operation = own->launch->operation;
  const Page *page = page_again(own, first);
  if (!page || (first ^ (end - 1)) >> PAGE_SHIFT || (first | bytes) & 3 ||
      __atomic_load_n(&page->operation, __ATOMIC_RELAXED) != operation)
    return false;
  for (; first < end; first = next) {
    uint32_t line = (uint32_t)(first / LINE_BYTES % PAGE_LINES);
    next = (first / LINE_BYTES + 1) * LINE_BYTES;
    if (next > end) next = end;
    if (!are_noted(page, line, words_in_line(first, next), operation)) return false;
  }
  return true;
}

bool global_shadow_many_have_read(struct GlobalState *own, uint64_t first, uint64_t bytes) {
  uint64_t end = first + bytes, next;
  Page *page = page_again(own, first);
  if (!page || (first ^ (end - 1)) >> PAGE_SHIFT ||
      __atomic_load_n(&page->operation, __ATOMIC_RELAXED) != own->launch->operation)
    return false;
  for (; first < end; first = next) {
    next = (first / LINE_BYTES + 1) * LINE_BYTES;
    if (next > end) next = end;
    if (!line_was_read(own->launch, page, first, next)) return false;
  }
  return true;
}
