/* host_watch.c: which bytes of managed, pinned and registered memory the host must leave alone until
 * it has waited, and what it does with them (host_watch.h). */
#include "runtime/host_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/memory.h"
#include "base/report.h"
#include "checker/checker.h"
#include "machine/launch.h"
#include "runtime/host_traps.h"

enum {
  USES_MOST = 8192,     /* pages times operations; more are not looked at */
  PAGES_OF_EACH = 1024, /* of one allocation and operation */
  STEPS_MOST = 4096,    /* accesses beside what is in use, until the pages stay open */
  ALL_STEPS_MOST = 1 << 18,
  NOTES_MOST = 16
};
#define PAGE ((uint64_t)HOST_PAGE_BYTES)

/* What one operation does with one page. */
typedef struct {
  uint64_t page;
  uint32_t timeline, point; /* the operation's stamp */
  uint32_t number;
  bool is_copy;
  bool open; /* nothing more is looked at here */
  HostPageUse bytes;
} Use;

typedef struct {
  uint32_t number;
  bool writes, conflict_wrote, is_copy;
  uint64_t address, place;
  const Instruction *in;
} HostConflict;

static Use *uses; /* in pages of its own: registered memory may share pages with anything else */
static int use_count;
static pid_t owner;
static bool protected;
static int steps;
static long all_steps;
static HostConflict notes[NOTES_MOST];
static volatile int note_count;

/* ---- What is in use ---- */

static Use *new_use(void) {
  if (!uses) {
    void *made = mmap(NULL, USES_MOST * sizeof *uses, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) return NULL;
    uses = made;
    atexit(host_watch_open);
    report_before_end = host_watch_open;
  }
  if (owner != getpid()) use_count = 0; /* those of the process that has forked */
  owner = getpid();
  return use_count < USES_MOST ? &uses[use_count++] : NULL;
}

static bool is_watched(const Allocation *place) {
  return (place->kind == MEMORY_OF_HOST || place->kind == MEMORY_MANAGED) && !place->read_only;
}

/* Registered memory may share its first and last page with other things, and the pages of the stack
 * must stay open, because signals need them. */
static void watched_pages(const Allocation *place, uint64_t *first, uint64_t *end) {
  const uint64_t near = 64 << 20;
  uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
  bool own_pages = place->first % PAGE == 0 && place->own_pages;
  *first = (place->first + PAGE - 1) / PAGE * PAGE;
  *end = (own_pages ? place->end + PAGE - 1 : place->end) / PAGE * PAGE;
  bool by_the_stack = place->first < here + near && here < place->end + near;
  if (by_the_stack && !own_pages) *end = *first;
}

static void stamp_use(Use *use, uint64_t page, uint32_t number, const StreamStamp *stamp) {
  use->page = page;
  use->timeline = stamp->timeline;
  use->point = stamp->point;
  use->number = number;
  use->open = false;
}

static bool add_launch(uint32_t number, const StreamStamp *stamp, const Allocation *place) {
  uint64_t first, end;
  watched_pages(place, &first, &end);
  if (end > first + PAGES_OF_EACH * PAGE) end = first + PAGES_OF_EACH * PAGE;
  for (uint64_t page = first; page < end; page += PAGE) {
    HostPageUse bytes;
    if (!check_host_page(number, page, &bytes)) continue;
    if (bytes.talks) return false;
    Use *use = new_use();
    if (!use) return true;
    stamp_use(use, page, number, stamp);
    use->is_copy = false;
    use->bytes = bytes;
  }
  return true;
}

typedef struct {
  uint32_t number;
  const StreamStamp *stamp;
  bool talks;
} Launched;

static void look_at_allocation(const Allocation *place, void *context) {
  Launched *launched = context;
  if (!launched->talks && is_watched(place))
    launched->talks = !add_launch(launched->number, launched->stamp, place);
}

void host_watch_launch(uint32_t number, const StreamStamp *stamp) {
  if (!stamp || stamp->timeline == NO_TIMELINE || number == 0) return;
  int before = use_count;
  Launched launched = {number, stamp, false};
  memory_each(look_at_allocation, &launched);
  if (launched.talks && use_count > before) use_count = before; /* they order themselves */
}

void host_watch_copy(uint32_t number, const StreamStamp *stamp, uint64_t first, uint64_t bytes,
                     bool writes) {
  const Allocation *place = memory_find(first);
  if (!stamp || stamp->timeline == NO_TIMELINE || !place || !is_watched(place)) return;
  uint64_t page, end;
  watched_pages(place, &page, &end);
  if (page < first / PAGE * PAGE) page = first / PAGE * PAGE;
  if (end > page + PAGES_OF_EACH * PAGE) end = page + PAGES_OF_EACH * PAGE;
  for (; page < end && page < first + bytes; page += PAGE) {
    Use *last = use_count ? &uses[use_count - 1] : NULL; /* rows share pages */
    Use *use = last && last->number == number && last->page == page ? last : new_use();
    if (!use) return;
    if (use != last) memset(&use->bytes, 0, sizeof use->bytes);
    stamp_use(use, page, number, stamp);
    use->is_copy = true;
    uint64_t *bits = writes ? use->bytes.written : use->bytes.read;
    for (uint64_t i = page > first ? page : first; i < page + PAGE && i < first + bytes; i++)
      bits[i % PAGE / 64] |= 1ull << i % 64;
  }
}

void host_watch_forget(uint64_t first, uint64_t end) {
  if (!use_count) return;
  host_watch_open();
  int kept = 0;
  for (int i = 0; i < use_count; i++)
    if (uses[i].page + PAGE <= first || uses[i].page >= end) uses[kept++] = uses[i];
  use_count = kept;
}

static void drop_awaited(void) {
  const StreamClock *host = order_of_host();
  int kept = 0;
  for (int i = 0; i < use_count; i++) {
    if (host->seen[uses[i].timeline] >= uses[i].point) continue;
    if (kept != i) uses[kept] = uses[i];
    kept++;
  }
  use_count = owner == getpid() ? kept : 0;
}

/* ---- Protection ---- */

static bool any_bit(const uint64_t *bits) {
  for (int i = 0; i < HOST_PAGE_BYTES / 64; i++)
    if (bits[i]) return true;
  return false;
}

/* Neighbouring pages in one call. */
static void protect(int wanted, bool (*chosen)(const Use *use)) {
  for (int i = 0; i < use_count;) {
    int next = i + 1;
    if (chosen(&uses[i])) {
      while (next < use_count && uses[next].page == uses[next - 1].page + PAGE &&
             chosen(&uses[next]))
        next++;
      mprotect((void *)(uintptr_t)uses[i].page, (size_t)(next - i) * PAGE, wanted);
    }
    i = next;
  }
}
static bool every(const Use *use) { return use->page != 0; }
static bool is_closed(const Use *use) { return !use->open; }
static bool is_written(const Use *use) { return !use->open && any_bit(use->bytes.written); }

void host_watch_close(void) {
  if (!use_count || protected) return;
  drop_awaited();
  if (!use_count || all_steps > ALL_STEPS_MOST) return;
  if (!launch_host_is_alone()) return; /* others could use the pages in system calls */
  steps = 0;
  protected = true;
  protect(PROT_READ, is_closed);
  protect(PROT_NONE, is_written);
  if (!host_traps_begin()) host_watch_unprotect();
}

void host_watch_unprotect(void) {
  if (!protected) return;
  protect(PROT_READ | PROT_WRITE, every);
  protected = false;
}

bool host_watch_covers(uint64_t first, uint64_t bytes) {
  for (int i = 0; i < use_count; i++)
    if (uses[i].page < first + bytes && first < uses[i].page + PAGE) return true;
  return false;
}

/* ---- What the host does ---- */

static bool in_use(const Use *use, uint64_t address, bool writes, bool *wrote) {
  uint64_t i = address % PAGE, bit = 1ull << i % 64;
  *wrote = use->bytes.written[i / 64] & bit;
  return *wrote || (writes && use->bytes.read[i / 64] & bit);
}

static void note(const Use *use, uint64_t address, bool writes, bool wrote, uint64_t place) {
  if (note_count == NOTES_MOST) return;
  notes[note_count] = (HostConflict){use->number,
                                     writes,
                                     wrote,
                                     use->is_copy,
                                     address,
                                     place,
                                     wrote ? use->bytes.writer : use->bytes.reader};
  note_count++;
}

void host_watch_access(uint64_t address, bool writes, uint64_t place) {
  for (int i = 0; i < use_count; i++) {
    bool wrote;
    Use *use = &uses[i];
    if (use->open || use->page != address / PAGE * PAGE || !in_use(use, address, writes, &wrote))
      continue;
    note(use, address, writes, wrote, place);
    for (int k = 0; k < use_count; k++) uses[k].open |= uses[k].number == use->number;
    return;
  }
}

bool host_watch_step(uint64_t address) {
  uint64_t page = address / PAGE * PAGE;
  bool closed = false;
  for (int i = 0; i < use_count; i++) closed |= uses[i].page == page && !uses[i].open;
  mprotect((void *)(uintptr_t)page, PAGE, PROT_READ | PROT_WRITE);
  all_steps++;
  return closed && ++steps < STEPS_MOST;
}

void host_watch_stepped(uint64_t address) {
  uint64_t page = address / PAGE * PAGE;
  bool closed = false, written = false;
  for (int i = 0; i < use_count; i++) {
    if (uses[i].page != page || uses[i].open) continue;
    closed = true;
    written |= any_bit(uses[i].bytes.written);
  }
  if (closed) mprotect((void *)(uintptr_t)page, PAGE, written ? PROT_NONE : PROT_READ);
}

/* ---- Reports ---- */

static void report_note(const HostConflict *note) {
  char operation[160], place[256], where[160] = "", memory[96];
  order_describe(note->number, operation, sizeof operation);
  order_memory_text(note->address, memory, sizeof memory);
  host_symbol(note->place, place, sizeof place);
  if (note->is_copy) {
    order_forget_host(note->address);
    finding_of_host("host-touches-copy",
                    "the host has %s the %s of an asynchronous %s without waiting for it: %s, %s.\n"
                    "The call only starts the copy. Wait first (cudaStreamSynchronize, or "
                    "cudaEventSynchronize of an event recorded after it), or use another buffer.",
                    note->writes ? "changed" : "read",
                    note->conflict_wrote ? "destination" : "source",
                    strncmp(operation, "the ", 4) == 0 ? operation + 4 : operation, memory, place);
    return;
  }
  if (note->in) past_describe_place(note->in, where, sizeof where);
  finding_of_host("host-race",
                  "the host %s %s %s, which %s %s%s%s, and the host has not waited for it.\n"
                  "A launch only starts the kernel. Wait first (cudaDeviceSynchronize, "
                  "cudaStreamSynchronize, or cudaEventSynchronize of an event recorded after it).",
                  note->writes ? "writes" : "reads", memory, place, operation,
                  note->conflict_wrote ? "wrote" : "read", *where ? " " : "", where);
}

void host_watch_open(void) {
  if (protected) {
    host_traps_end();
    host_watch_unprotect();
  }
  int count = note_count;
  note_count = 0;
  for (int i = 0; i < count; i++) report_note(&notes[i]);
}
