/* launch_trial.c: what is kept of a launch for a trial (launch_trial.h). */
#include "trial/launch_trial.h"

#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/fill.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/written.h"
#include "trial/pending.h"

enum {
  SPARE_PAGES = 512, /* kept from launch to launch */
  UNWRITTEN_MOST = 1 << 16,
  FINDINGS_MOST = 4096,
  READS_MOST = 1 << 16,
  READ_CHAINS = 1 << 10,
  WORD_BITS = 64,
  CHUNK = 32 /* bytes that one UnwrittenBytes stands for */
};
/* Bytes and pieces: more would take too much time and memory. */
static const uint64_t SAVED_MOST = 32ull << 20;
enum { PIECES_MOST = 1 << 12 };

typedef struct {
  uint64_t chunk;   /* address of the first of CHUNK bytes; 0: free */
  uint32_t missing; /* bytes that the launch has read and nothing had ever written */
  uint32_t stored;  /* bytes that the launch itself has stored without a meaning */
} UnwrittenBytes;

struct LaunchTrial {
  pthread_mutex_t lock;
  uint32_t number;
  bool ruled_out;
  TrialPiece *pieces;
  uint32_t count, capacity;
  size_t count_before; /* in a trial: the launch itself had so many */
  uint64_t saved_bytes;
  UnwrittenBytes *unwritten; /* a hash table; NULL: nothing so far */
  size_t unwritten_count;
  RacingRead *reads;
  size_t read_count;
  uint32_t *read_chains; /* READ_CHAINS: 1 + the first read of each; 0: none */
  KeptFinding *findings;
  uint32_t finding_count, finding_capacity;
};

static struct {
  pthread_mutex_t lock;
  uint32_t number, spare_count;
  uint8_t *spare[SPARE_PAGES];
  /* in the process of a trial, which has one thread */
  int distinct_before;
  bool fails;
} trials = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint8_t *memory_at(uint64_t address) { return (uint8_t *)(uintptr_t)address; }

/* ---- One launch ---- */

LaunchTrial *trial_new(void) {
  LaunchTrial *made = new_zeros(1, sizeof *made);
  pthread_mutex_init(&made->lock, NULL);
  HOLD_LOCK(&trials.lock);
  if (++trials.number == 0) trials.number = 1;
  made->number = trials.number;
  return made;
}

static uint8_t *take_page(void) {
  HOLD_LOCK(&trials.lock);
  uint8_t *page = trials.spare_count ? trials.spare[--trials.spare_count] : NULL;
  return page ? page : need_memory(malloc(TRIAL_PAGE));
}

static void give_page(uint8_t *page) {
  pthread_mutex_lock(&trials.lock);
  bool kept = trials.spare_count < SPARE_PAGES;
  if (kept) trials.spare[trials.spare_count++] = page;
  pthread_mutex_unlock(&trials.lock);
  if (!kept) free(page);
}

static void forget_pieces(LaunchTrial *trial) {
  for (size_t i = 0; i < trial->count; i++) {
    TrialPiece *piece = &trial->pieces[i];
    if (piece->bytes == TRIAL_PAGE)
      give_page(piece->held);
    else
      free(piece->held);
    free(piece->defined);
  }
  trial->count = 0;
}

void trial_free(LaunchTrial *trial) {
  if (!trial) return;
  forget_pieces(trial);
  for (size_t i = 0; i < trial->finding_count; i++) kept_finding_free(&trial->findings[i]);
  free(trial->pieces);
  free(trial->unwritten);
  free(trial->reads);
  free(trial->read_chains);
  free(trial->findings);
  pthread_mutex_destroy(&trial->lock);
  free(trial);
}

/* Relaxed: seen late, some more is kept in vain. */
bool trial_is_ruled_out(const LaunchTrial *trial) {
  return __atomic_load_n(&trial->ruled_out, __ATOMIC_RELAXED);
}

/* ---- Memory before it changes ---- */

/* Has nothing here been written so far? */
static bool is_fresh(uint64_t first, uint64_t end) {
  if (!written_is_watched(first)) return false;
  uint64_t from = (first - written_map.first) / WORD_BITS, found = 0;
  uint64_t to = (end - written_map.first + WORD_BITS - 1) / WORD_BITS;
  for (; from < to && !found; from++)
    found = __atomic_load_n(&written_map.bits[from], __ATOMIC_RELAXED);
  return !found && !written_by_host(first, 1);
}

static void add_saved(LaunchTrial *trial, uint64_t first, uint64_t end, bool may_wait) {
  if (trial->saved_bytes + (end - first) > SAVED_MOST || trial->count == PIECES_MOST)
    trial->ruled_out = true;
  if (trial->ruled_out) return;
  trial->pieces = grown_list(trial->pieces, trial->count, &trial->capacity, sizeof *trial->pieces);
  TrialPiece piece = {.first = first, .bytes = (uint32_t)(end - first), .may_wait = may_wait};
  if (is_tried_again() || !is_fresh(first, end)) {
    piece.held = need_memory(piece.bytes == TRIAL_PAGE ? take_page() : malloc(piece.bytes));
    memcpy(piece.held, memory_at(first), piece.bytes);
    trial->saved_bytes += piece.bytes;
  }
  trial->pieces[trial->count++] = piece;
}

typedef struct {
  LaunchTrial *trial;
  uint64_t page;
} PageToSave;

/* Host memory may be shared with other processes, so a trial must not change it. Kernels cannot change
 * constants. */
static void save_part(const Allocation *place, void *context) {
  const PageToSave *to_save = context;
  uint64_t first = to_save->page, end = first + TRIAL_PAGE;
  if (place->end <= first || place->first >= end || place->read_only || place->absent) return;
  if (place->kind == MEMORY_OF_HOST || place->kind == MEMORY_OF_HEAP)
    __atomic_store_n(&to_save->trial->ruled_out, true, __ATOMIC_RELAXED);
  add_saved(to_save->trial, place->first > first ? place->first : first,
            place->end < end ? place->end : end,
            place->kind == MEMORY_OF_DEVICE && written_is_watched(place->first));
}

uint32_t trial_number(const LaunchTrial *trial) { return trial->number; }

void trial_save(LaunchTrial *trial, uint64_t address) {
  PageToSave to_save = {trial, address >> TRIAL_PAGE_SHIFT << TRIAL_PAGE_SHIFT};
  HOLD_LOCK(&trial->lock);
  /* Allocations of the device are far from each other; variables of modules are not. */
  const Allocation *found = written_is_watched(address) ? memory_find(address) : NULL;
  if (trial->ruled_out)
    forget_pieces(trial);
  else if (found)
    save_part(found, &to_save);
  else
    memory_each(save_part, &to_save);
}

/* ---- Reads of what nothing has written ---- */

static UnwrittenBytes *find_unwritten(LaunchTrial *trial, uint64_t chunk) {
  uint64_t at = (chunk / CHUNK * 0x9e3779b97f4a7c15ull) >> 47;
  while (trial->unwritten[at % (2 * UNWRITTEN_MOST)].chunk &&
         trial->unwritten[at % (2 * UNWRITTEN_MOST)].chunk != chunk)
    at++;
  return &trial->unwritten[at % (2 * UNWRITTEN_MOST)];
}

/* The bytes of the chunk; NULL: there are too many. */
static UnwrittenBytes *chunk_of(LaunchTrial *trial, uint64_t chunk) {
  if (!trial->unwritten) trial->unwritten = new_zeros(2 * UNWRITTEN_MOST, sizeof *trial->unwritten);
  UnwrittenBytes *bytes = find_unwritten(trial, chunk);
  if (bytes->chunk) return bytes;
  if (++trial->unwritten_count > UNWRITTEN_MOST) trial->ruled_out = true;
  if (trial->ruled_out) return NULL;
  *bytes = (UnwrittenBytes){.chunk = chunk};
  return bytes;
}

static void note_bytes(LaunchTrial *trial, uint64_t address, uint32_t mask, bool stored) {
  uint64_t chunk = address / CHUNK * CHUNK, wide = (uint64_t)mask << (address % CHUNK);
  HOLD_LOCK(&trial->lock);
  for (; wide && !trial->ruled_out; wide >>= CHUNK, chunk += CHUNK) {
    UnwrittenBytes *bytes = (uint32_t)wide ? chunk_of(trial, chunk) : NULL;
    if (!bytes) continue;
    if (stored)
      bytes->stored |= (uint32_t)wide;
    else
      bytes->missing |= (uint32_t)wide & ~bytes->stored;
  }
}

void trial_note_unwritten(LaunchTrial *trial, uint64_t address, uint32_t missing) {
  if (!trial_is_ruled_out(trial)) note_bytes(trial, address, missing, false);
}

void trial_note_stored(LaunchTrial *trial, uint64_t address, uint32_t mask) {
  if (!trial_is_ruled_out(trial)) note_bytes(trial, address, mask, true);
}

/* ---- Reads that race ---- */

static uint32_t *chain_of(const LaunchTrial *trial, uint32_t cluster, uint32_t agent,
                          const Instruction *in) {
  uintptr_t mixed = ((uintptr_t)in >> 4) * 31 + cluster * 7u + agent;
  return &trial->read_chains[mixed % READ_CHAINS];
}

static bool same_read(const RacingRead *a, const RacingRead *b) {
  return a->cluster == b->cluster && a->rank == b->rank && a->word == b->word &&
         a->agent == b->agent && a->time == b->time && a->stamp == b->stamp && a->in == b->in;
}

static bool add_read(LaunchTrial *trial, const RacingRead *read) {
  if (!trial->reads) {
    trial->reads = need_memory(malloc(READS_MOST * sizeof *trial->reads));
    trial->read_chains = new_zeros(READ_CHAINS, sizeof *trial->read_chains);
  }
  uint32_t *chain = chain_of(trial, read->cluster, read->agent, read->in);
  for (uint32_t i = *chain; i; i = trial->reads[i - 1].next)
    if (same_read(&trial->reads[i - 1], read)) {
      trial->reads[i - 1].lanes |= read->lanes;
      return true;
    }
  if (trial->read_count == READS_MOST) return false;
  RacingRead *made = &trial->reads[trial->read_count++];
  *made = *read;
  made->next = *chain;
  *chain = (uint32_t)trial->read_count;
  return true;
}

bool trial_note_read(LaunchTrial *trial, const RacingRead *read) {
  HOLD_LOCK(&trial->lock);
  return !trial->ruled_out && add_read(trial, read);
}

const RacingRead *trial_next_read(const LaunchTrial *trial, const RacingRead *last,
                                  uint32_t cluster, uint32_t agent, const Instruction *in) {
  if (!trial->reads) return NULL;
  uint32_t i = last ? last->next : *chain_of(trial, cluster, agent, in);
  for (; i; i = trial->reads[i - 1].next) {
    const RacingRead *read = &trial->reads[i - 1];
    if (read->cluster == cluster && read->agent == agent && read->in == in) return read;
  }
  return NULL;
}

/* ---- Findings ---- */

bool trial_hold(LaunchTrial *trial, KeptFinding *kept) {
  HOLD_LOCK(&trial->lock);
  bool held = !trial->ruled_out;
  if (held && trial->finding_count < FINDINGS_MOST) {
    trial->findings = grown_list(trial->findings, trial->finding_count, &trial->finding_capacity,
                                 sizeof *trial->findings);
    trial->findings[trial->finding_count++] = *kept;
  } else if (held) {
    kept_finding_free(kept);
  }
  return held;
}

const KeptFinding *trial_findings(const LaunchTrial *trial, size_t *count) {
  *count = trial->finding_count;
  return trial->findings;
}

void trial_report(LaunchTrial *trial, Launch *launch) {
  for (size_t i = 0; i < trial->finding_count; i++) {
    KeptFinding *each = &trial->findings[i];
    each->cluster.launch = launch;
    if (each->pending)
      pending_report(each->pending);
    else
      kept_finding_report(each);
  }
}

void trial_hold_back(LaunchTrial *trial, Launch *launch) {
  for (size_t i = 0; i < trial->finding_count; i++) {
    trial->findings[i].cluster.launch = launch;
    kept_finding_held_back(&trial->findings[i]);
  }
}

static size_t masks_of(const TrialPiece *piece) {
  return (piece->bytes + PENDING_CHUNK - 1) / PENDING_CHUNK;
}

size_t trial_differences_bytes(const LaunchTrial *trial) {
  size_t count = 0;
  for (size_t i = 0; i < trial->count; i++) count += masks_of(&trial->pieces[i]);
  return sizeof(TrialDifferences) + count * sizeof(uint32_t);
}

bool trial_keep_pending(LaunchTrial *trial, const Launch *launch,
                        const TrialDifferences *differences) {
  PendingNumber number = pending_group(trial->findings, trial->finding_count, launch);
  bool kept = number != 0;
  const uint32_t *masks = differences->masks;
  for (size_t i = 0; i < trial->count && kept; i++) {
    const TrialPiece *piece = &trial->pieces[i];
    for (size_t k = 0; k < masks_of(piece) && kept; k++, masks++)
      if (*masks) kept = pending_add(number, piece->first + k * PENDING_CHUNK, *masks);
  }
  for (uint32_t i = 0; i < differences->other_count && kept; i++)
    kept = pending_add(number, differences->others[i].chunk, differences->others[i].mask);
  if (number && !kept) pending_report(number);
  return number != 0;
}

/* ---- In the process of a trial ---- */

/* The bytes have never been written, or not before the launch. */
static void fill_fresh(uint64_t first, uint32_t bytes) {
  const Allocation *place = memory_find(first);
  if (place) fill_unwritten(memory_at(first), bytes, first - place->first);
}

static void put_back(TrialPiece *piece) {
  const uint8_t *memory = memory_at(piece->first);
  if (written_is_watched(piece->first)) {
    uint64_t from = (piece->first - written_map.first) / WORD_BITS;
    uint64_t end = (piece->first + piece->bytes - written_map.first + WORD_BITS - 1) / WORD_BITS;
    piece->defined = need_memory(malloc((end - from) * sizeof *piece->defined));
    memcpy(piece->defined, written_map.bits + from, (end - from) * sizeof *piece->defined);
  }
  uint8_t *before = piece->held;
  piece->held = need_memory(malloc(piece->bytes));
  memcpy(piece->held, memory, piece->bytes);
  if (before)
    memcpy(memory_at(piece->first), before, piece->bytes);
  else
    fill_fresh(piece->first, piece->bytes);
  free(before);
}

void trial_begin(LaunchTrial *trial) {
  trials.distinct_before = findings_distinct();
  trials.fails = false;
  trial->count_before = trial->count;
  for (size_t i = 0; i < trial->count; i++) put_back(&trial->pieces[i]);
  for (size_t i = 0; trial->unwritten && i < 2 * UNWRITTEN_MOST; i++) {
    const UnwrittenBytes *bytes = &trial->unwritten[i];
    for (uint32_t left = bytes->missing; left; left &= left - 1)
      fill_fresh(bytes->chunk + (uint64_t)__builtin_ctz(left), 1);
  }
}

/* Does byte i have a value with a meaning that the launch left otherwise? */
static bool byte_differs(const TrialPiece *piece, uint32_t i) {
  uint64_t bit = (piece->first - written_map.first) % WORD_BITS + i;
  return memory_at(piece->first)[i] != piece->held[i] &&
         (!piece->defined || piece->defined[bit / WORD_BITS] >> bit % WORD_BITS & 1);
}

/* The bytes of this chunk that differ. */
static uint32_t differing_in(const TrialPiece *piece, size_t chunk) {
  uint32_t first = (uint32_t)chunk * PENDING_CHUNK, mask = 0;
  for (uint32_t i = 0; i < PENDING_CHUNK && first + i < piece->bytes; i++)
    mask |= (uint32_t)byte_differs(piece, first + i) << i;
  return mask;
}

static bool add_other(TrialDifferences *differences, uint64_t chunk, uint32_t mask) {
  if (differences->other_count == TRIAL_OTHERS_MOST) return false;
  differences->others[differences->other_count++] = (TrialChunk){chunk, mask};
  return true;
}

/* masks: NULL if the launch itself has not changed anything there. */
static TrialResult result_of(const TrialPiece *piece, TrialDifferences *differences,
                             uint32_t *masks) {
  TrialResult result = TRIAL_ALIKE;
  if (memcmp(memory_at(piece->first), piece->held, piece->bytes) == 0) return TRIAL_ALIKE;
  for (size_t k = 0; k < masks_of(piece); k++) {
    uint32_t mask = differing_in(piece, k);
    if (!mask) continue;
    result = TRIAL_WAITS;
    if (!piece->may_wait) return TRIAL_DIFFERS;
    if (masks)
      masks[k] |= mask;
    else if (!add_other(differences, piece->first + k * PENDING_CHUNK, mask))
      return TRIAL_DIFFERS;
  }
  return result;
}

TrialResult trial_result(const LaunchTrial *trial, TrialDifferences *differences) {
  bool differs = trials.fails || findings_distinct() != trials.distinct_before || trial->ruled_out;
  TrialResult result = differs ? TRIAL_DIFFERS : TRIAL_ALIKE;
  uint32_t *masks = differences->masks;
  for (size_t i = 0; i < trial->count && result != TRIAL_DIFFERS; i++) {
    bool has_masks = i < trial->count_before;
    TrialResult own = result_of(&trial->pieces[i], differences, has_masks ? masks : NULL);
    if (own > result) result = own;
    if (has_masks) masks += masks_of(&trial->pieces[i]);
  }
  return result;
}

void trial_fail(void) { trials.fails = true; }
