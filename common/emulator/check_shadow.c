/* check_shadow.c: what every word of shared memory has been through, and whether the next access to
 * it may follow.
 *
 * A word's state is the number of a State: who wrote its bytes last, who has read them since, which
 * asynchronous operations read or write them (check_states.c). */
#include <stdlib.h>
#include <string.h>

#include "check_state.h"

enum {
  ENTRIES_MOST = 40, /* of a state; older readers are forgotten beyond it */
  ALIKE_BYTES_MOST = 1024,
  TEXT = 256
};

/* ---- Words about the past ---- */

static const char *source_name(const Instruction *in) {
  if (!in->source_file) return NULL;
  const char *slash = strrchr(in->source_file, '/');
  return slash ? slash + 1 : in->source_file;
}

void shadow_describe_place(const Instruction *in, char *text, size_t room) {
  if (in->source_line && in->source_file) {
    snprintf(text, room, "at %s:%u", source_name(in), in->source_line);
  } else {
    snprintf(text, room, "at PTX line %u", in->line);
  }
}

static void describe_agent(const ClusterCheck *check, uint32_t agent, int lane, char *text,
                           size_t room) {
  uint32_t warp = agent % check->warps_per_cta;
  size_t used;
  if (lane >= 0) {
    used = (size_t)snprintf(text, room, "thread %u", warp * LANES + (uint32_t)lane);
  } else {
    used = (size_t)snprintf(text, room, "a thread of warp %u", warp);
  }
  if (check->cta_count > 1 && used < room) {
    snprintf(text + used, room - used, " of CTA %u", agent / check->warps_per_cta);
  }
}

const char *const shadow_kind_names[] = {
    [ASYNC_TENSOR_LOAD] = "tensor load",     [ASYNC_BULK_LOAD] = "bulk load",
    [ASYNC_TENSOR_STORE] = "tensor store",   [ASYNC_BULK_STORE] = "bulk store",
    [ASYNC_TENSOR_REDUCE] = "tensor reduce", [ASYNC_BULK_REDUCE] = "bulk reduce",
    [ASYNC_CTA_TO_CTA] = "CTA-to-CTA copy",  [ASYNC_CP_ASYNC] = "cp.async",
    [ASYNC_RED_ASYNC] = "red.async",         [ASYNC_WGMMA] = "wgmma",
};

static void describe_operation(const ClusterCheck *check, const AsyncCheck *operation, char *text,
                               size_t room) {
  char who[64], where[128];
  describe_agent(check, operation->agent, operation->kind == ASYNC_WGMMA ? -1 : operation->lane,
                 who, sizeof who);
  shadow_describe_place(operation->in, where, sizeof where);
  snprintf(text, room, "the %s issued by %s %s", shadow_kind_names[operation->kind], who, where);
}

/* ---- May this access follow? ---- */

typedef struct {
  ClusterCheck *check;
  Warp *warp;
  const Instruction *in;
  int lane;
  uint32_t agent;
  uint32_t rank; /* of the CTA whose memory it is */
  uint32_t word;
  uint8_t kind; /* EntryKind */
  uint8_t mask;
  bool strong;
  AsyncCheck *operation;
} AccessNow;

bool shadow_knows_landed(const ClusterCheck *check, uint32_t agent, const AsyncCheck *operation,
                         uint32_t rank) {
  if (!operation->landed) return false;
  if (operation->waited_clock &&
      has_seen(check, agent, operation->agent, operation->waited_clock)) {
    return true;
  }
  if (by_group(operation)) return false;
  uint32_t address = operation->barrier;
  if (operation->kind != ASYNC_CTA_TO_CTA) address = rank << 24 | SHARED_OFFSET(address);
  const MbarrierCheck *barrier = order_find_barrier(check, address);
  if (!barrier || barrier->place == UINT32_MAX) return true; /* not told apart: no complaint */
  return check->clocks[agent].seen[barrier->place] > operation->landing_phase[rank];
}

/* Is the reading of its source known to be over? */
static bool knows_source_read(const ClusterCheck *check, uint32_t agent,
                              const AsyncCheck *operation) {
  if (operation->kind == ASYNC_CTA_TO_CTA) {
    return shadow_knows_landed(check, agent, operation, SHARED_RANK(operation->barrier));
  }
  if (operation->kind == ASYNC_WGMMA) {
    /* One operation of four warps: the wait of any of them tells that it is over. */
    uint32_t rank = operation->agent / check->warps_per_cta;
    uint32_t first = operation->agent % check->warps_per_cta / WARPS_OF_GROUP * WARPS_OF_GROUP;
    for (uint32_t i = 0; i < WARPS_OF_GROUP; i++) {
      if (operation->group_waited[i] &&
          has_seen(check, agent, rank * check->warps_per_cta + first + i,
                   operation->group_waited[i])) {
        return true;
      }
    }
    return false;
  }
  return operation->source_read && operation->read_waited_clock &&
         has_seen(check, agent, operation->agent, operation->read_waited_clock);
}

static const char *bytes_place(const AccessNow *now, char *text, size_t room) {
  int used = snprintf(text, room, "shared memory at offset 0x%x", now->word * 4);
  if (now->check->cta_count > 1 && used > 0 && (size_t)used < room) {
    snprintf(text + used, room - (size_t)used, " of CTA %u", now->rank);
  }
  return text;
}

static const char *verb(const AccessNow *now) {
  switch (now->kind) {
    case ENTRY_READ:
      return "reads";
    case ENTRY_WRITE:
      return "writes";
    case ENTRY_ASYNC_WRITE:
      return now->operation->kind == ASYNC_RED_ASYNC ? "reduces into" : "starts a copy into";
    case ENTRY_ASYNC_READ:
      return now->operation->kind == ASYNC_WGMMA ? "multiplies from" : "copies from";
    default:
      return "overwrites";
  }
}

#define REPORT(now, rule, ...) finding((now)->warp, (now)->in, 1u << (now)->lane, rule, __VA_ARGS__)

const MbarrierCheck *shadow_barrier_of(const ClusterCheck *check, const AsyncCheck *operation,
                                       uint32_t rank) {
  if (by_group(operation)) return NULL;
  uint32_t address = operation->barrier;
  if (operation->kind != ASYNC_CTA_TO_CTA) address = rank << 24 | SHARED_OFFSET(address);
  return order_find_barrier(check, address);
}

/* Bytes of a copy that this agent does not know to have landed. */
static void report_not_landed(const AccessNow *now, const AsyncCheck *past, const char *verb_now) {
  const ClusterCheck *check = now->check;
  bool reading = now->kind == ENTRY_READ || now->kind == ENTRY_ASYNC_READ;
  char place[TEXT], what[TEXT];
  bytes_place(now, place, sizeof place);
  describe_operation(check, past, what, sizeof what);
  const char *landed =
      past->landed ? "has landed by luck: this thread has not waited for it" : "has not landed";
  const MbarrierCheck *barrier = shadow_barrier_of(check, past, now->rank);
  uint32_t phase = barrier && past->landed ? past->landing_phase[now->rank]
                   : barrier               ? barrier->phase
                                           : 0;
  uint32_t next;
  /* It was issued in an earlier phase, or counts in one that nobody has announced bytes for. */
  if (barrier && (past->issue_phase[now->rank] < phase ||
                  (phase > 0 && barrier->armed && barrier->armed <= phase))) {
    REPORT(
        now, "too-few-bytes-expected",
        "%s %s, where %s %s: phase %u of its barrier ended without these bytes.\n"
        "Announce in a phase all bytes that arrive in this CTA's shared memory in that phase, from "
        "every copy%s (mbarrier.arrive.expect_tx).",
        verb_now, place, what, landed, phase - 1,
        check->cta_count > 1 ? ", also from those that other CTAs of the cluster send here" : "");
    return;
  }
  if (reading && order_answered_stale(barrier, now->agent, phase, &next)) {
    char over[64];
    if (next)
      snprintf(over, sizeof over, "phase %u is over", next - 1);
    else
      snprintf(over, sizeof over, "the phase before the first is over");
    REPORT(
        now, "waited-for-wrong-phase",
        "%s %s, where %s %s: its bytes count in phase %u of the barrier, and the last wait of this "
        "warp was answered because %s.\n"
        "Wait for parity %u here: the first phase has parity 0, and it flips with every phase.",
        verb_now, place, what, landed, phase, over, phase & 1);
    return;
  }
  /* It has waited for what stood here before, and had not read it yet when this copy was issued. */
  if (reading && past->replaced_place &&
      check->clocks[now->agent].seen[past->replaced_place] > past->replaced_phase &&
      !(past->replaced_readers >> (now->agent & 63) & 1)) {
    REPORT(
        now, "stage-reused-too-early",
        "%s %s: this warp has waited for the copy that filled it, but meanwhile %s was started "
        "over "
        "it.\n"
        "Let the readers say that they are done (arrive on a barrier that the issuing thread waits "
        "for, or __syncthreads) before the next copy is issued.",
        verb_now, place, what);
    return;
  }
  if (now->kind == ENTRY_ASYNC_WRITE && barrier && past->agent == now->agent &&
      past->lane == now->lane) {
    REPORT(
        now, "stage-reused-too-early",
        "%s %s, where %s %s.\n"
        "Wait before the next copy is issued until the readers have said that they are done with "
        "the last one%s: arrivals on a barrier that this thread waits for, or __syncthreads.",
        verb_now, place, what, landed,
        check->cta_count > 1 ? ", in every CTA that the copy writes to" : "");
    return;
  }
  REPORT(now, reading ? "read-without-wait" : "overwrite-without-wait", "%s %s, where %s %s.\n%s",
         verb_now, place, what, landed,
         past->kind == ASYNC_CP_ASYNC ? "Wait first: cp.async.wait_group, then __syncthreads()."
         : by_group(past)             ? "Wait for its group first."
                                      : "Wait first for the phase of its barrier that counts these "
                                        "bytes, in this thread or before a barrier that orders it.");
}

static bool check_after_operation(const AccessNow *now, const Entry *entry) {
  const ClusterCheck *check = now->check;
  const AsyncCheck *past = entry->operation;
  bool reading = now->kind == ENTRY_READ || now->kind == ENTRY_ASYNC_READ;
  if (entry->kind == ENTRY_ASYNC_WRITE) {
    if (past->kind == ASYNC_RED_ASYNC && now->strong) return true;
    if (shadow_knows_landed(check, now->agent, past, now->rank)) return true;
    report_not_landed(now, past, verb(now));
    return false;
  }
  if (reading || knows_source_read(check, now->agent, past)) return true;
  char place[TEXT], what[TEXT];
  bytes_place(now, place, sizeof place);
  describe_operation(check, past, what, sizeof what);
  if (past->kind == ASYNC_WGMMA) {
    REPORT(now, "stage-released-before-wgmma",
           "%s %s, which %s may still be reading.\n"
           "Wait for that wgmma (wgmma.wait_group) before telling others that the stage is free.",
           verb(now), place, what);
  } else if (!has_seen(check, now->agent, past->agent, past->issue_clock)) {
    REPORT(now, "copy-not-ordered",
           "%s %s, from where %s copies, and nothing orders the two.\n"
           "Put __syncthreads() between the writes and the thread that issues the copy.",
           verb(now), place, what);
  } else {
    REPORT(now, "source-reused-before-read",
           "%s %s, which %s may still be reading%s.\n"
           "The thread that issued it must commit it and wait (cp.async.bulk.commit_group, "
           "cp.async.bulk.wait_group.read), and then tell the others (__syncthreads).",
           verb(now), place, what, past->source_read ? " (it was read in time by luck)" : "");
  }
  return false;
}

static const char *barrier_between(const AccessNow *now, const Entry *entry) {
  uint32_t warps = now->check->warps_per_cta;
  return entry->agent / warps == now->agent / warps
             ? "Put __syncthreads() (or a barrier that both take part in) between them."
             : "Put a cluster barrier between them (barrier.cluster.arrive and .wait), or an "
               "mbarrier that the other CTA arrives on.";
}

static bool check_after_write(const AccessNow *now, const Entry *entry) {
  const ClusterCheck *check = now->check;
  if (now->strong && entry->strong) return true;
  bool asynchronous = now->kind == ENTRY_ASYNC_READ || now->kind == ENTRY_ASYNC_WRITE;
  bool seen = has_seen(check, now->agent, entry->agent, entry->clock);
  if (seen && !asynchronous) return true;
  if (seen && check->clocks[now->agent].fenced[entry->agent] >= entry->clock) return true;
  if (now->operation && is_generic(now->operation) && seen) return true;
  char place[TEXT], who[64], where[128];
  bytes_place(now, place, sizeof place);
  int lane = check->ctas[now->rank].last_lane[now->word];
  describe_agent(check, entry->agent, lane, who, sizeof who);
  shadow_describe_place(entry->in, where, sizeof where);
  if (seen) {
    REPORT(
        now, "missing-proxy-fence",
        "%s %s through the asynchronous proxy; written by %s %s through the generic proxy, and no "
        "fence.proxy.async lies between that and this.\n"
        "Put fence.proxy.async.shared::cta behind the writes, in each thread that writes and "
        "before the barrier that orders them%s.",
        verb(now), place, who, where,
        now->operation->kind == ASYNC_WGMMA ? "" : " (or in this thread, after that barrier)");
  } else {
    REPORT(now, asynchronous ? "copy-not-ordered" : "shared-race",
           "%s %s, written by %s %s, and nothing orders the two.\n%s", verb(now), place, who, where,
           barrier_between(now, entry));
  }
  return false;
}

static void report_unwritten(Warp *warp, const Instruction *in, uint32_t word) {
  finding(
      warp, in, warp->lanes, "uninitialised-read",
      "reads shared memory at offset 0x%x, which nothing has written.\n"
      "Shared memory holds no zeros at the start: write it, or wait for the copy that fills it.",
      word * 4);
}

static Warp *warp_of(const AccessNow *now, uint32_t agent) {
  uint32_t per_cta = now->check->warps_per_cta;
  return &now->warp->cta->cluster->ctas[agent / per_cta].warps[agent % per_cta];
}

/* Has the reader of these bytes read them before, and then waited for the barrier of the copy that
 * is issued now, and been told of a phase that it knew? Then it was this copy that it meant to wait
 * for. */
static bool read_again_unasked(const AccessNow *now, const Entry *entry) {
  uint32_t next;
  const MbarrierCheck *barrier = shadow_barrier_of(now->check, now->operation, now->rank);
  return entry->again && barrier &&
         order_answered_stale(barrier, entry->agent, barrier->phase, &next);
}

static bool check_after_read(const AccessNow *now, const Entry *entry) {
  const ClusterCheck *check = now->check;
  if (now->kind == ENTRY_READ || now->kind == ENTRY_ASYNC_READ) return true;
  if (now->strong && entry->strong) return true;
  if (has_seen(check, now->agent, entry->agent, entry->clock)) {
    if (entry->unwritten) report_unwritten(warp_of(now, entry->agent), entry->in, now->word);
    return !entry->unwritten;
  }
  if (now->kind == ENTRY_ASYNC_WRITE && (entry->unwritten || read_again_unasked(now, entry))) {
    /* The reader came even before the copy was issued: told as if it came right after. */
    AccessNow reader = {.check = now->check,
                        .warp = warp_of(now, entry->agent),
                        .in = entry->in,
                        .agent = entry->agent,
                        .rank = now->rank,
                        .word = now->word,
                        .kind = ENTRY_READ};
    report_not_landed(&reader, now->operation, "reads");
    return false;
  }
  char place[TEXT], who[64], where[128];
  bytes_place(now, place, sizeof place);
  describe_agent(check, entry->agent, -1, who, sizeof who);
  shadow_describe_place(entry->in, where, sizeof where);
  REPORT(now, now->kind == ENTRY_ASYNC_WRITE ? "stage-reused-too-early" : "shared-race",
         "%s %s, which %s read %s, and nothing orders the two.\n%s", verb(now), place, who, where,
         now->kind == ENTRY_ASYNC_WRITE
             ? "Let the readers say that they are done (arrive on a barrier that this thread waits "
               "for, or __syncthreads) before the next copy is issued."
             : barrier_between(now, entry));
  return false;
}

static bool check_after_barrier(const AccessNow *now, const Entry *entry) {
  if (now->kind == ENTRY_READ || now->kind == ENTRY_ASYNC_READ) return true;
  if (!entry->barrier->valid) return true;
  char place[TEXT];
  bytes_place(now, place, sizeof place);
  REPORT(now, "barrier-overwritten",
         "%s %s, where a live mbarrier stands (initialised at line %u of the source).\n"
         "The buffer is larger than the room it has, or the barrier must be invalidated first "
         "(mbarrier.inval).",
         verb(now), place, entry->barrier->init_in ? entry->barrier->init_in->source_line : 0);
  return false;
}

static bool check_entry(const AccessNow *now, const Entry *entry) {
  switch (entry->kind) {
    case ENTRY_WRITE:
      return check_after_write(now, entry);
    case ENTRY_READ:
      return check_after_read(now, entry);
    case ENTRY_BARRIER:
      return check_after_barrier(now, entry);
    default:
      return check_after_operation(now, entry);
  }
}

/* Reading what nothing has written is a mistake, unless it is a whole fragment (ldmatrix) or a
 * tile of which only a part matters: only plain loads are held to it. Which mistake it is shows
 * when somebody writes there later, or nobody: a missing wait, a race, or memory never set. */
static bool is_unwritten(const AccessNow *now, uint8_t written) {
  if (now->kind != ENTRY_READ || (written & now->mask) == now->mask || now->strong) return false;
  return !now->in->text || !strstr(now->in->text, "ldmatrix");
}

void shadow_report_unwritten_reads(Cta *cta) {
  ClusterCheck *check = cta->cluster->check;
  struct CtaCheck *notes = &check->ctas[cta->rank];
  if (!notes->unwritten_reads) return;
  for (uint32_t word = 0; word < notes->words; word = states_next(notes, word)) {
    uint32_t number = states_of(notes, word);
    if (number < FIRST_STATE) continue;
    const State *state = state_at(check, number);
    for (unsigned i = 0; i < state->count; i++) {
      const Entry *entry = &state->entries[i];
      if (entry->kind != ENTRY_READ || !entry->unwritten) continue;
      uint32_t per_cta = check->warps_per_cta;
      Cta *reader = &cta->cluster->ctas[entry->agent / per_cta];
      report_unwritten(&reader->warps[entry->agent % per_cta], entry->in, word);
      return; /* one for each CTA */
    }
  }
}

/* ---- The next state ---- */

static bool same_actor(const Entry *entry, const AccessNow *now) {
  if (entry->kind != now->kind || entry->mask != now->mask) return false;
  if (entry->kind == ENTRY_READ) {
    return entry->agent == now->agent && entry->strong == now->strong;
  }
  /* Operations of one warp on the tensor cores are over in order: the newest stands for all. */
  return entry->kind == ENTRY_ASYNC_READ && entry->operation->agent == now->agent &&
         entry->operation->kind == ASYNC_WGMMA && now->operation->kind == ASYNC_WGMMA;
}

static void note_replaced(const AccessNow *now, const Entry *entry) {
  AsyncCheck *load = now->operation;
  if (entry->kind == ENTRY_READ) {
    load->replaced_readers |= 1ull << (entry->agent & 63);
  } else if (entry->kind == ENTRY_ASYNC_WRITE && entry->operation->landed) {
    const MbarrierCheck *barrier = shadow_barrier_of(now->check, entry->operation, now->rank);
    if (!barrier || barrier->place == UINT32_MAX) return;
    load->replaced_place = barrier->place;
    load->replaced_phase = entry->operation->landing_phase[now->rank];
  }
}

/* Checks the access against the word's past and returns its new state; *clean tells whether there
 * was nothing to report. */
static uint32_t move_on(const AccessNow *now, uint32_t number, bool *clean) {
  static const State NEVER_WRITTEN = {0};
  ClusterCheck *check = now->check;
  *clean = true;
  const State *state = number == STATE_NEVER_WRITTEN ? &NEVER_WRITTEN : state_at(check, number);
  if (number == STATE_UNKNOWN && now->kind == ENTRY_READ) return number;
  if (number == STATE_UNKNOWN) state = &NEVER_WRITTEN;
  bool unwritten = number != STATE_UNKNOWN && is_unwritten(now, state->written);

  bool writing = now->kind == ENTRY_WRITE || now->kind == ENTRY_ASYNC_WRITE;
  Entry entries[ENTRIES_MOST + 1];
  unsigned count = 0;
  bool again = false;
  uint32_t clock = clock_of(check, now->agent);
  for (unsigned i = 0; i < state->count; i++) {
    const Entry *entry = &state->entries[i];
    bool overlaps = entry->mask & now->mask;
    if (overlaps && *clean && !check_entry(now, entry)) *clean = false;
    if (overlaps && now->kind == ENTRY_ASYNC_WRITE) note_replaced(now, entry);
    if (entry->kind == ENTRY_READ && same_actor(entry, now) && entry->clock == clock) {
      return *clean ? number : STATE_UNKNOWN; /* the same again changes nothing */
    }
    if (same_actor(entry, now)) {
      again |= entry->kind == ENTRY_READ;
      continue;
    }
    /* What a write follows in good order need not be remembered. */
    bool replaced = writing && overlaps && entry->kind != ENTRY_BARRIER;
    if ((replaced && !(entry->mask & ~now->mask)) || count == ENTRIES_MOST) continue;
    entries[count] = *entry;
    if (replaced) entries[count].mask &= (uint32_t)~now->mask;
    count++;
  }
  if (!*clean) return STATE_UNKNOWN; /* one complaint about these bytes is enough */
  if (unwritten) check->ctas[now->rank].unwritten_reads = true;
  Entry *own = &entries[count++];
  *own = (Entry){.kind = now->kind,
                 .mask = now->mask,
                 .strong = now->strong,
                 .unwritten = unwritten,
                 .again = again,
                 .agent = now->agent};
  if (now->operation) {
    own->operation = now->operation;
  } else {
    own->clock = clock;
    own->in = now->in;
  }
  uint8_t written = number == STATE_UNKNOWN ? FULL_WORD : state->written;
  if (writing) written |= now->mask;
  return states_find(check, entries, count, written);
}

static uint32_t next_state(const AccessNow *now, uint32_t number) {
  ClusterCheck *check = now->check;
  const void *what = now->operation ? (const void *)now->operation : (const void *)now->in;
  uint32_t clock = clock_of(check, now->agent);
  uint32_t how =
      (uint32_t)now->kind | (uint32_t)now->mask << 4 | (uint32_t)now->strong << 8 | now->rank << 12;
  uint64_t mixed = ((uint64_t)number * 0x9e3779b1u) ^ ((uintptr_t)what >> 4) ^ how * 0x85ebca6bu ^
                   ((uint64_t)clock << 7) ^ ((uint64_t)now->agent << 17);
  mixed ^= mixed >> 29;
  Memo *memo = &check->memos[(mixed ^ mixed >> 13) & (MEMOS - 1)];
  if (memo->what == what && memo->state == number && memo->clock == clock &&
      memo->agent == now->agent && memo->how == how) {
    return memo->next;
  }
  bool clean;
  uint32_t next = move_on(now, number, &clean);
  /* An access that was in order stays so: what a warp has seen it never forgets. */
  if (clean) *memo = (Memo){number, next, now->agent, clock, what, how};
  return next;
}

/* ---- Accesses ---- */

/* Does each of these lanes have `words` words of its own, so that together they are all of the
 * `LANES * words` words from `least` on? */
static bool covers_all(const uint32_t *addresses, uint32_t least, uint32_t words) {
  uint32_t covered = 0, shift = (uint32_t)__builtin_ctz(words * 4);
  for (uint32_t lane = 0; lane < LANES; lane++) {
    covered |= 1u << ((addresses[lane] - least) >> shift & (LANES - 1));
  }
  return covered == ~0u;
}

static void forget_layouts(struct CtaCheck *notes, uint32_t first, uint32_t count) {
  for (uint32_t i = first / LINE_WORDS; i <= (first + count - 1) / LINE_WORDS; i++) {
    notes->layouts[i] = 0;
  }
}

/* Where these words all have the same past, one look-up serves them; false: they have not. */
static bool look_up_once(AccessNow *now, uint32_t address, uint32_t count, uint32_t *state,
                         uint32_t *next) {
  struct CtaCheck *notes = &now->check->ctas[SHARED_RANK(address)];
  uint32_t first = SHARED_OFFSET(address) / 4;
  if (first + count > notes->words || !states_alike(notes, first, count, state)) return false;
  now->rank = SHARED_RANK(address);
  now->word = first;
  now->lane = 0;
  now->mask = FULL_WORD;
  *next = next_state(now, *state);
  return true;
}

/* The usual access: a whole warp, whole words one behind the other, all with the same past. False:
 * look at each word. */
static bool touch_run(AccessNow *now, uint32_t address, uint32_t words) {
  uint32_t count = LANES * words, first = SHARED_OFFSET(address) / 4, state, next;
  if (SHARED_RANK(address) != now->warp->cta->rank) return false;
  if (!look_up_once(now, address, count, &state, &next)) return false;
  struct CtaCheck *notes = &now->check->ctas[now->rank];
  if (next != state) states_fill(notes, first, count, next);
  if (now->kind != ENTRY_WRITE) return true;
  uint8_t *lanes = notes->last_lane + first;
  if (words == 1) {
    for (int lane = 0; lane < LANES; lane++) lanes[lane] = (uint8_t)lane;
  } else {
    for (int lane = 0; lane < LANES; lane++) {
      for (uint32_t k = 0; k < words; k++) *lanes++ = (uint8_t)lane;
    }
  }
  forget_layouts(notes, first, count);
  return true;
}

/* The next usual one: close together, in any order. */
static bool touch_alike(AccessNow *now, const uint32_t *addresses, uint32_t words) {
  uint32_t least = addresses[0], most = addresses[0], state, next;
  for (uint32_t lane = 0; lane < LANES; lane++) {
    least = addresses[lane] < least ? addresses[lane] : least;
    most = addresses[lane] > most ? addresses[lane] : most;
  }
  if (most - least > ALIKE_BYTES_MOST || SHARED_RANK(least) != now->warp->cta->rank ||
      ((least | most) & 3)) {
    return false;
  }
  uint32_t first = SHARED_OFFSET(least) / 4, count = (most - least) / 4 + words;
  if (!look_up_once(now, least, count, &state, &next)) return false;
  struct CtaCheck *notes = &now->check->ctas[now->rank];
  bool all = next != state && count == LANES * words && covers_all(addresses, least, words);
  if (all) states_fill(notes, first, count, next);
  for (int lane = 0; lane < LANES && next != state && !all; lane++) {
    uint32_t word = SHARED_OFFSET(addresses[lane]) / 4;
    for (uint32_t k = 0; k < words; k++) states_set(notes, word + k, next);
  }
  if (now->kind != ENTRY_WRITE) return true;
  for (int lane = 0; lane < LANES; lane++) {
    uint8_t *at = notes->last_lane + SHARED_OFFSET(addresses[lane]) / 4;
    for (uint32_t k = 0; k < words; k++) at[k] = (uint8_t)lane;
  }
  forget_layouts(notes, first, count);
  return true;
}

static void touch_lanes(AccessNow *now, LaneMask mask, const uint32_t *addresses, uint32_t bytes) {
  ClusterCheck *check = now->check;
  uint32_t words = bytes < 4 ? 1 : bytes / 4;
  uint32_t last = UINT32_MAX, last_next = 0, last_how = UINT32_MAX;
  bool writing = now->kind == ENTRY_WRITE;
  for (LaneMask left = mask; left; left &= left - 1) {
    int lane = first_lane(left);
    uint32_t address = addresses[lane], rank = SHARED_RANK(address);
    uint32_t word = SHARED_OFFSET(address) / 4;
    if (rank >= check->cta_count || word + words > check->ctas[rank].words) continue;
    struct CtaCheck *notes = &check->ctas[rank];
    now->mask = bytes < 4 ? (uint8_t)(((1u << bytes) - 1) << (address & 3)) : FULL_WORD;
    uint32_t how = rank << 8 | now->mask;
    if (notes->exited && rank != now->warp->cta->rank) {
      now->rank = rank;
      now->lane = lane;
      REPORT(now, "peer-exited",
             "%s shared memory of CTA %u of the cluster, which has exited.\n"
             "Keep every CTA until its peers are done with it: barrier.cluster.arrive and .wait "
             "before the end of the kernel.",
             verb(now), rank);
    }
    for (uint32_t k = 0; k < words; k++, word++) {
      uint32_t state = states_of(notes, word);
      if (state != last || how != last_how) {
        now->rank = rank;
        now->word = word;
        now->lane = lane;
        last_next = next_state(now, state);
        last = state;
        last_how = how;
      }
      if (last_next != state) states_set(notes, word, last_next);
      if (writing) {
        notes->last_lane[word] = (uint8_t)lane;
        notes->layouts[word / LINE_WORDS] = 0;
      }
    }
  }
}

static AccessNow access_of(Warp *warp, const Instruction *in, AccessKind kind) {
  ClusterCheck *check = check_of(warp);
  states_make_room(check);
  return (AccessNow){
      .check = check,
      .warp = warp,
      .in = in,
      .agent = agent_of(warp),
      .kind = kind.access == ACCESS_READ ? ENTRY_READ : ENTRY_WRITE,
      .strong = kind.strong || kind.access == ACCESS_ATOMIC,
  };
}

void check_shared(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                  uint32_t bytes, AccessKind kind) {
  AccessNow now = access_of(warp, in, kind);
  if (settings()->check_layout && kind.access == ACCESS_READ)
    check_plain_layout(warp, in, mask, addresses);
  if (now.strong) {
    bool reads = kind.access != ACCESS_WRITE, writes = kind.access != ACCESS_READ;
    for (LaneMask left = mask; left; left &= left - 1) {
      order_location(now.check, now.agent, addresses[first_lane(left)], false, reads);
    }
    for (LaneMask left = mask; writes && left; left &= left - 1) {
      order_location(now.check, now.agent, addresses[first_lane(left)], true, false);
    }
  }
  if (mask == UINT32_MAX && bytes >= 4 && touch_alike(&now, addresses, bytes / 4)) return;
  touch_lanes(&now, mask, addresses, bytes);
}

void check_shared_run(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes,
                      AccessKind kind) {
  AccessNow now = access_of(warp, in, kind);
  bool layout = settings()->check_layout && kind.access == ACCESS_READ;
  if (!layout && !now.strong && bytes >= 4 && touch_run(&now, address, bytes / 4)) return;
  uint32_t addresses[LANES];
  for (uint32_t lane = 0; lane < LANES; lane++) addresses[lane] = address + lane * bytes;
  if (layout || now.strong) {
    check_shared(warp, in, UINT32_MAX, addresses, bytes, kind);
  } else {
    touch_lanes(&now, UINT32_MAX, addresses, bytes);
  }
}

void shadow_set_barrier(Cluster *cluster, uint32_t address, MbarrierCheck *barrier) {
  ClusterCheck *check = cluster->check;
  uint32_t rank = SHARED_RANK(address), word = SHARED_OFFSET(address) / 4;
  if (rank >= check->cta_count || word + 2 > check->ctas[rank].words) return;
  Entry entry;
  memset(&entry, 0, sizeof entry);
  entry.kind = ENTRY_BARRIER;
  entry.mask = FULL_WORD;
  entry.barrier = barrier;
  uint32_t number = barrier ? states_find(check, &entry, 1, FULL_WORD) : STATE_UNKNOWN;
  states_set(&check->ctas[rank], word, number);
  states_set(&check->ctas[rank], word + 1, number);
}

/* ---- Accesses of asynchronous operations ---- */

static void touch_part(AccessNow *now, struct CtaCheck *notes, uint32_t word, uint8_t mask) {
  if (word >= notes->words) return;
  now->mask = mask & FULL_WORD;
  now->word = word;
  states_set(notes, word, next_state(now, states_of(notes, word)));
}

static void touch_pieces(AccessNow *now, const SharedPiece *pieces, int count) {
  ClusterCheck *check = now->check;
  uint32_t last = UINT32_MAX, last_next = 0, last_rank = 0;
  for (int i = 0; i < count; i++) {
    uint32_t rank = SHARED_RANK(pieces[i].address);
    uint32_t offset = SHARED_OFFSET(pieces[i].address), end = offset + pieces[i].bytes;
    if (rank >= check->cta_count) continue;
    struct CtaCheck *notes = &check->ctas[rank];
    now->rank = rank;
    if (notes->exited && rank != now->warp->cta->rank) {
      REPORT(now, "peer-exited",
             "%s shared memory of CTA %u of the cluster, which has exited.\n"
             "Keep every CTA until its peers are done with it: barrier.cluster.arrive and .wait "
             "before the end of the kernel.",
             verb(now), rank);
    }
    uint32_t word = offset / 4, whole_end = end / 4 < notes->words ? end / 4 : notes->words;
    if (offset & 3) {
      touch_part(now, notes, word,
                 (uint8_t)(FULL_WORD << (offset & 3)) &
                     (uint8_t)(end < word * 4 + 4 ? (1u << (end & 3)) - 1 : 15));
      word++;
    }
    now->mask = FULL_WORD;
    while (word < whole_end) {
      uint32_t state = states_of(notes, word);
      if (state != last || rank != last_rank) {
        now->word = word;
        last_next = next_state(now, state);
        last = state;
        last_rank = rank;
      }
      if (whole_end - word == TWO_CHUNKS && states_move_two_chunks(notes, word, state, last_next))
        word = whole_end;
      else
        word = states_move_run(notes, word, whole_end, state, last_next);
    }
    if (word * 4 < end && word < notes->words) {
      touch_part(now, notes, word, (uint8_t)((1u << (end & 3)) - 1));
    }
  }
}

void shadow_touch(Warp *warp, AsyncCheck *operation, bool writes, const SharedPiece *pieces,
                  int count) {
  AccessNow now = {
      .check = check_of(warp),
      .warp = warp,
      .in = operation->in,
      .lane = operation->lane,
      .agent = operation->agent,
      .kind = writes ? ENTRY_ASYNC_WRITE : ENTRY_ASYNC_READ,
      .operation = operation,
      .strong = operation->kind == ASYNC_RED_ASYNC,
  };
  touch_pieces(&now, pieces, count);
}
