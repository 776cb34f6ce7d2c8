/* check_shadow.c: what every word of shared memory has been through, and whether the next access to
 * it may follow.
 *
 * A word's state is the number of a State: who wrote its bytes last, who has read them since, which
 * asynchronous operations read or write them. States are immutable and each exists once, so all the
 * words of a tile share a few, and moving a word on is looking up a number. */
#include <stdlib.h>
#include <string.h>

#include "check_state.h"

enum {
  ENTRIES_MOST = 40,     /* of a state; older readers are forgotten beyond it */
  STATES_MOST = 1 << 16, /* then those that no word is in are thrown away */
  FIRST_TABLE = 1 << 10,
  FULL_WORD = 15,
  ALIKE_BYTES_MOST = 1024,
  TEXT = 256
};

/* ---- States ---- */

static uint32_t hash_bytes(const void *bytes, size_t count) {
  const uint8_t *at = bytes;
  uint64_t hash = 0x9e3779b97f4a7c15ull;
  for (size_t i = 0; i + 8 <= count; i += 8) {
    uint64_t word;
    memcpy(&word, at + i, 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccdull;
    hash ^= hash >> 32;
  }
  return (uint32_t)(hash ^ hash >> 29);
}

static void grow_table(ClusterCheck *check, uint32_t size) {
  free(check->table);
  check->table = calloc(size, sizeof *check->table);
  if (!check->table) abort();
  check->table_size = size;
  for (uint32_t i = FIRST_STATE; i < check->state_count; i++) {
    uint32_t at = check->states[i]->hash & (size - 1);
    while (check->table[at]) at = (at + 1) & (size - 1);
    check->table[at] = i;
  }
}

/* The number of the state with these entries; makes it if there is none. */
static uint32_t find_state(ClusterCheck *check, const Entry *entries, unsigned count,
                           uint8_t written) {
  uint32_t hash = hash_bytes(entries, count * sizeof *entries) ^ (count * 31 + written);
  uint32_t at = hash & (check->table_size - 1);
  for (; check->table[at]; at = (at + 1) & (check->table_size - 1)) {
    const State *state = check->states[check->table[at]];
    if (state->hash == hash && state->count == count && state->written == written &&
        !memcmp(state->entries, entries, count * sizeof *entries)) {
      return check->table[at];
    }
  }
  if (check->state_count == check->state_room) {
    check->state_room *= 2;
    check->states = realloc(check->states, check->state_room * sizeof(State *));
    if (!check->states) abort();
  }
  State *state = malloc(sizeof *state + count * sizeof *entries);
  if (!state) abort();
  state->hash = hash;
  state->count = (uint16_t)count;
  state->written = written;
  memcpy(state->entries, entries, count * sizeof *entries);
  check->states[check->state_count] = state;
  check->table[at] = check->state_count++;
  if (check->state_count * 2 > check->table_size) {
    grow_table(check, check->table_size * 2);
  }
  return check->state_count - 1;
}

static void free_states(ClusterCheck *check) {
  for (uint32_t i = FIRST_STATE; i < check->state_count; i++) free(check->states[i]);
  check->state_count = FIRST_STATE;
}

/* Throws away the states that no word is in, and the operations that no state names. */
static void collect(ClusterCheck *check) {
  uint32_t *moved = calloc(check->state_count, sizeof *moved);
  if (!moved) abort();
  moved[STATE_UNKNOWN] = STATE_UNKNOWN;
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    const struct CtaCheck *notes = &check->ctas[rank];
    for (uint32_t i = 0; i < notes->words; i++) moved[notes->states[i]] = 1;
  }
  moved[STATE_NEVER_WRITTEN] = STATE_NEVER_WRITTEN;
  uint32_t kept = FIRST_STATE;
  for (AsyncCheck *each = check->operations; each; each = each->next_allocated) {
    each->marked = false;
  }
  for (uint32_t i = FIRST_STATE; i < check->state_count; i++) {
    State *state = check->states[i];
    if (!moved[i]) {
      free(state);
      continue;
    }
    for (unsigned k = 0; k < state->count; k++) {
      const Entry *entry = &state->entries[k];
      if (entry->kind == ENTRY_ASYNC_READ || entry->kind == ENTRY_ASYNC_WRITE) {
        entry->operation->marked = true;
      }
    }
    moved[i] = kept;
    check->states[kept++] = state;
  }
  check->state_count = kept;
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    struct CtaCheck *notes = &check->ctas[rank];
    for (uint32_t i = 0; i < notes->words; i++) notes->states[i] = moved[notes->states[i]];
  }
  free(moved);
  grow_table(check, check->table_size);
  memset(check->memos, 0, MEMOS * sizeof *check->memos);
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    for (AsyncCheck *each = check->of_warp[agent]; each; each = each->next_of_warp) {
      each->marked = true;
    }
  }
  for (AsyncCheck **link = &check->operations; *link;) {
    AsyncCheck *each = *link;
    if (each->marked || !each->released) {
      link = &each->next_allocated;
    } else {
      *link = each->next_allocated;
      free(each);
    }
  }
  /* When nearly all are in use, collecting again at once would gain nothing. */
  if (check->state_count > STATES_MOST / 2) {
    for (uint32_t rank = 0; rank < check->cta_count; rank++) {
      struct CtaCheck *notes = &check->ctas[rank];
      for (uint32_t i = 0; i < notes->words; i++) {
        if (notes->states[i] >= FIRST_STATE) notes->states[i] = STATE_UNKNOWN;
      }
    }
    free_states(check);
    grow_table(check, FIRST_TABLE);
  }
}

/* ---- Begin and end of a cluster ---- */

static _Thread_local ClusterCheck *free_checks;

static ClusterCheck *take_check(const Cluster *cluster) {
  uint32_t agents = cluster->cta_count * cluster->ctas[0].warp_count;
  uint32_t words = (cluster->ctas[0].shared_bytes + 3) / 4;
  for (ClusterCheck **link = &free_checks; *link; link = &(*link)->next_free) {
    ClusterCheck *check = *link;
    if (check->agents != agents || check->cta_count != cluster->cta_count) continue;
    if (check->ctas[0].words != words) continue;
    *link = check->next_free;
    return check;
  }
  ClusterCheck *check = calloc(1, sizeof *check);
  if (!check) abort();
  check->agents = agents;
  check->room = agents + BARRIER_PLACES;
  check->warps_per_cta = cluster->ctas[0].warp_count;
  check->cta_count = cluster->cta_count;
  check->clocks = calloc(agents, sizeof *check->clocks);
  check->of_warp = calloc(agents, sizeof(AsyncCheck *));
  check->wgmma_group = calloc(agents, sizeof *check->wgmma_group);
  check->state_room = 64;
  check->state_count = FIRST_STATE;
  check->states = calloc(check->state_room, sizeof(State *));
  check->memos = calloc(MEMOS, sizeof *check->memos);
  if (!check->clocks || !check->of_warp || !check->wgmma_group || !check->states || !check->memos) {
    abort();
  }
  grow_table(check, FIRST_TABLE);
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    struct CtaCheck *notes = &check->ctas[rank];
    notes->words = words;
    notes->states = calloc(words + 1, sizeof *notes->states);
    notes->last_lane = calloc(words + 1, 1);
    notes->layouts = calloc(words / 32 + 2, 1);
    if (!notes->states || !notes->last_lane || !notes->layouts) abort();
  }
  return check;
}

static void free_operations(ClusterCheck *check) {
  while (check->operations) {
    AsyncCheck *next = check->operations->next_allocated;
    free(check->operations);
    check->operations = next;
  }
  memset(check->of_warp, 0, check->agents * sizeof(AsyncCheck *));
}

void check_cluster_begin(Cluster *cluster) {
  ClusterCheck *check = take_check(cluster);
  cluster->check = check;
  order_begin(check);
  maps_begin(cluster);
  for (uint32_t rank = 0; rank < cluster->cta_count; rank++) {
    Cta *cta = &cluster->ctas[rank];
    for (uint32_t i = 0; i < cta->warp_count; i++) registers_begin(&cta->warps[i]);
  }
}

/* Leaves the notes clean for the next cluster, which is mostly of the same shape. */
void check_cluster_end(Cluster *cluster) {
  ClusterCheck *check = cluster->check;
  if (!check) return;
  if (check->state_count > FIRST_STATE) {
    free_states(check);
    if (check->table_size > FIRST_TABLE) {
      grow_table(check, FIRST_TABLE);
    } else {
      memset(check->table, 0, check->table_size * sizeof *check->table);
    }
    memset(check->memos, 0, MEMOS * sizeof *check->memos);
  }
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    struct CtaCheck *notes = &check->ctas[rank];
    memset(notes->states, 0, notes->words * sizeof *notes->states);
    memset(notes->layouts, 0, notes->words / 32 + 1);
  }
  free_operations(check);
  maps_end(check);
  check->next_free = free_checks;
  free_checks = check;
  cluster->check = NULL;
}

/* ---- Words about the past ---- */

static const char *source_name(const Instruction *in) {
  if (!in->source_file) return NULL;
  const char *slash = strrchr(in->source_file, '/');
  return slash ? slash + 1 : in->source_file;
}

static void describe_place(const Instruction *in, char *text, size_t room) {
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

static const char *const KIND_NAMES[] = {
    [ASYNC_TENSOR_LOAD] = "tensor load",
    [ASYNC_BULK_LOAD] = "bulk load",
    [ASYNC_TENSOR_STORE] = "tensor store",
    [ASYNC_BULK_STORE] = "bulk store",
    [ASYNC_TENSOR_REDUCE] = "tensor reduce",
    [ASYNC_BULK_REDUCE] = "bulk reduce",
    [ASYNC_CTA_TO_CTA] = "CTA-to-CTA copy",
    [ASYNC_CP_ASYNC] = "cp.async",
    [ASYNC_WGMMA] = "wgmma",
};

static void describe_operation(const ClusterCheck *check, const AsyncCheck *operation, char *text,
                               size_t room) {
  char who[64], where[128];
  describe_agent(check, operation->agent, operation->kind == ASYNC_WGMMA ? -1 : operation->lane,
                 who, sizeof who);
  describe_place(operation->in, where, sizeof where);
  snprintf(text, room, "the %s issued by %s %s", KIND_NAMES[operation->kind], who, where);
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

static bool by_group(const AsyncCheck *operation) { return operation->barrier == 0; }

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
    case ENTRY_ASYNC_READ:
      return now->operation->kind == ASYNC_WGMMA ? "multiplies from" : "copies from";
    default:
      return "starts a copy into";
  }
}

#define REPORT(now, rule, ...) finding((now)->warp, (now)->in, 1u << (now)->lane, rule, __VA_ARGS__)

/* The copy's barrier in the CTA whose memory it is. */
static const MbarrierCheck *barrier_of(const ClusterCheck *check, const AsyncCheck *operation,
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
  const MbarrierCheck *barrier = barrier_of(check, past, now->rank);
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

static bool check_after_write(const AccessNow *now, const Entry *entry) {
  const ClusterCheck *check = now->check;
  if (now->strong && entry->strong) return true;
  bool asynchronous = now->kind == ENTRY_ASYNC_READ || now->kind == ENTRY_ASYNC_WRITE;
  bool seen = has_seen(check, now->agent, entry->agent, entry->clock);
  if (seen && !asynchronous) return true;
  if (seen && check->clocks[now->agent].fenced[entry->agent] >= entry->clock) return true;
  if (now->operation && now->operation->kind == ASYNC_CP_ASYNC && seen) return true; /* generic */
  char place[TEXT], who[64], where[128];
  bytes_place(now, place, sizeof place);
  int lane = check->ctas[now->rank].last_lane[now->word];
  describe_agent(check, entry->agent, lane, who, sizeof who);
  describe_place(entry->in, where, sizeof where);
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
           "%s %s, written by %s %s, and nothing orders the two.\n"
           "Put __syncthreads() (or a barrier that both take part in) between them.",
           verb(now), place, who, where);
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
  const MbarrierCheck *barrier = barrier_of(now->check, now->operation, now->rank);
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
  describe_place(entry->in, where, sizeof where);
  REPORT(now, now->kind == ENTRY_ASYNC_WRITE ? "stage-reused-too-early" : "shared-race",
         "%s %s, which %s read %s, and nothing orders the two.\n%s", verb(now), place, who, where,
         now->kind == ENTRY_ASYNC_WRITE
             ? "Let the readers say that they are done (arrive on a barrier that this thread waits "
               "for, or __syncthreads) before the next copy is issued."
             : "Put __syncthreads() (or a barrier that both take part in) between them.");
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

static void report_unwritten_reads(Cta *cta) {
  ClusterCheck *check = cta->cluster->check;
  struct CtaCheck *notes = &check->ctas[cta->rank];
  if (!notes->unwritten_reads) return;
  for (uint32_t word = 0; word < notes->words; word++) {
    if (notes->states[word] < FIRST_STATE) continue;
    const State *state = check->states[notes->states[word]];
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
    const MbarrierCheck *barrier = barrier_of(now->check, entry->operation, now->rank);
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
  const State *state = number == STATE_NEVER_WRITTEN ? &NEVER_WRITTEN : check->states[number];
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
    Entry left = *entry;
    /* What a write follows in good order need not be remembered. */
    if (writing && overlaps && entry->kind != ENTRY_BARRIER) left.mask &= (uint8_t)~now->mask;
    if (left.mask && count < ENTRIES_MOST) entries[count++] = left;
  }
  if (!*clean) return STATE_UNKNOWN; /* one complaint about these bytes is enough */
  Entry own;
  memset(&own, 0, sizeof own); /* padding too: states are compared as bytes */
  own.kind = now->kind;
  own.mask = now->mask;
  own.strong = now->strong;
  own.unwritten = unwritten;
  own.again = again;
  if (unwritten) check->ctas[now->rank].unwritten_reads = true;
  own.agent = (uint16_t)now->agent;
  if (now->operation) {
    own.operation = now->operation;
  } else {
    own.clock = clock;
    own.in = now->in;
  }
  entries[count++] = own;
  uint8_t written = number == STATE_UNKNOWN ? FULL_WORD : state->written;
  if (writing) written |= now->mask;
  return find_state(check, entries, count, written);
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

/* The usual access: a whole warp, whole words, close together, all with the same past. One look-up
 * serves it; false: look at each word. */
static bool touch_alike(AccessNow *now, const uint32_t *addresses, uint32_t words) {
  ClusterCheck *check = now->check;
  uint32_t least = addresses[0], most = addresses[0], out_of_line = 0;
  for (uint32_t lane = 0; lane < LANES; lane++) {
    least = addresses[lane] < least ? addresses[lane] : least;
    most = addresses[lane] > most ? addresses[lane] : most;
    out_of_line |= addresses[lane] ^ (addresses[0] + lane * words * 4);
  }
  uint32_t rank = SHARED_RANK(least), first = SHARED_OFFSET(least) / 4;
  if (most - least > ALIKE_BYTES_MOST || rank != now->warp->cta->rank || ((least | most) & 3)) {
    return false;
  }
  struct CtaCheck *notes = &check->ctas[rank];
  uint32_t count = (most - least) / 4 + words;
  if (first + count > notes->words) return false;
  uint32_t *states = notes->states + first, state = states[0], differing = 0;
  for (uint32_t i = 1; i < count; i++) differing |= states[i] ^ state;
  if (differing) return false;
  now->rank = rank;
  now->word = first;
  now->lane = 0;
  now->mask = FULL_WORD;
  uint32_t next = next_state(now, state);
  if (next != state && !out_of_line) {
    for (uint32_t i = 0; i < count; i++) states[i] = next;
  } else if (next != state) {
    for (int lane = 0; lane < LANES; lane++) {
      uint32_t *at = states + (addresses[lane] - least) / 4;
      at[0] = next;
      for (uint32_t k = 1; k < words; k++) at[k] = next;
    }
  }
  if (now->kind == ENTRY_WRITE) {
    uint8_t *lanes = notes->last_lane + first;
    if (!out_of_line && words == 1) {
      for (int lane = 0; lane < LANES; lane++) lanes[lane] = (uint8_t)lane;
    } else {
      for (int lane = 0; lane < LANES; lane++) {
        uint8_t *at = lanes + (addresses[lane] - least) / 4;
        at[0] = (uint8_t)lane;
        for (uint32_t k = 1; k < words; k++) at[k] = (uint8_t)lane;
      }
    }
    notes->layouts[first / 32] = 0;
    for (uint32_t i = first / 32 + 1; i <= (first + count - 1) / 32; i++) notes->layouts[i] = 0;
  }
  return true;
}

void check_shared(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                  uint32_t bytes, AccessKind kind) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp);
  AccessNow now = {
      .check = check,
      .warp = warp,
      .in = in,
      .agent = agent,
      .kind = kind.access == ACCESS_READ ? ENTRY_READ : ENTRY_WRITE,
      .strong = kind.strong || kind.access == ACCESS_ATOMIC,
  };
  if (now.strong) {
    bool reads = kind.access != ACCESS_WRITE, writes = kind.access != ACCESS_READ;
    for (LaneMask left = mask; left; left &= left - 1) {
      order_location(check, agent, addresses[first_lane(left)], false, reads);
    }
    for (LaneMask left = mask; writes && left; left &= left - 1) {
      order_location(check, agent, addresses[first_lane(left)], true, false);
    }
  }
  if (check->state_count > STATES_MOST) collect(check);
  uint32_t words = bytes < 4 ? 1 : bytes / 4;
  if (mask == UINT32_MAX && bytes >= 4 && touch_alike(&now, addresses, words)) return;
  uint32_t last = UINT32_MAX, last_next = 0, last_how = UINT32_MAX;
  bool writing = now.kind == ENTRY_WRITE;
  for (LaneMask left = mask; left; left &= left - 1) {
    int lane = first_lane(left);
    uint32_t address = addresses[lane], rank = SHARED_RANK(address);
    uint32_t word = SHARED_OFFSET(address) / 4;
    if (rank >= check->cta_count || word + words > check->ctas[rank].words) continue;
    struct CtaCheck *notes = &check->ctas[rank];
    now.mask = bytes < 4 ? (uint8_t)(((1u << bytes) - 1) << (address & 3)) : FULL_WORD;
    uint32_t how = rank << 8 | now.mask;
    if (notes->exited && rank != warp->cta->rank) {
      now.rank = rank;
      now.lane = lane;
      REPORT(&now, "peer-exited",
             "%s shared memory of CTA %u of the cluster, which has exited.\n"
             "Keep every CTA until its peers are done with it: barrier.cluster.arrive and .wait "
             "before the end of the kernel.",
             verb(&now), rank);
    }
    for (uint32_t k = 0; k < words; k++, word++) {
      uint32_t state = notes->states[word];
      if (state != last || how != last_how) {
        now.rank = rank;
        now.word = word;
        now.lane = lane;
        last_next = next_state(&now, state);
        last = state;
        last_how = how;
      }
      notes->states[word] = last_next;
      if (writing) {
        notes->last_lane[word] = (uint8_t)lane;
        notes->layouts[word / 32] = 0;
      }
    }
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
  uint32_t number = barrier ? find_state(check, &entry, 1, FULL_WORD) : STATE_UNKNOWN;
  check->ctas[rank].states[word] = check->ctas[rank].states[word + 1] = number;
}

/* ---- Asynchronous operations ---- */

static void touch_part(AccessNow *now, struct CtaCheck *notes, uint32_t word, uint8_t mask) {
  if (word >= notes->words) return;
  now->mask = mask & FULL_WORD;
  now->word = word;
  notes->states[word] = next_state(now, notes->states[word]);
}

/* Moves the words from `word` on that are in `state` to `next`; returns the first that is not. */
static uint32_t fill_run(uint32_t *states, uint32_t word, uint32_t end, uint32_t state,
                         uint32_t next) {
  enum { BATCH = 32 };
  while (end - word >= BATCH) {
    uint32_t differing = 0;
    for (uint32_t i = 0; i < BATCH; i++) differing |= states[word + i] ^ state;
    if (differing) break;
    for (uint32_t i = 0; i < BATCH; i++) states[word + i] = next;
    word += BATCH;
  }
  while (word < end && states[word] == state) states[word++] = next;
  return word;
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
      uint32_t state = notes->states[word];
      if (state != last || rank != last_rank) {
        now->word = word;
        last_next = next_state(now, state);
        last = state;
        last_rank = rank;
      }
      word = fill_run(notes->states, word, whole_end, state, last_next);
    }
    if (word * 4 < end && word < notes->words) {
      touch_part(now, notes, word, (uint8_t)((1u << (end & 3)) - 1));
    }
  }
}

static AsyncCheck *new_operation(Warp *warp, const Instruction *in, int lane, AsyncKind kind,
                                 uint32_t barrier) {
  ClusterCheck *check = check_of(warp);
  if (check->state_count > STATES_MOST) collect(check);
  AsyncCheck *operation = calloc(1, sizeof *operation);
  if (!operation) abort();
  operation->in = in;
  operation->kind = kind;
  operation->agent = (uint16_t)agent_of(warp);
  operation->lane = (uint8_t)lane;
  operation->barrier = barrier;
  operation->issue_clock = clock_of(check, operation->agent);
  for (uint32_t rank = 0; rank < check->cta_count && barrier; rank++) {
    const MbarrierCheck *counting = barrier_of(check, operation, rank);
    operation->issue_phase[rank] = counting ? counting->phase : 0;
  }
  operation->next_allocated = check->operations;
  check->operations = operation;
  operation->next_of_warp = check->of_warp[operation->agent];
  check->of_warp[operation->agent] = operation;
  return operation;
}

static void leave_list(ClusterCheck *check, AsyncCheck *operation) {
  AsyncCheck **link = &check->of_warp[operation->agent];
  while (*link && *link != operation) link = &(*link)->next_of_warp;
  if (*link) *link = operation->next_of_warp;
}

AsyncCheck *check_async_issue(Warp *warp, const Instruction *in, int lane, AsyncKind kind,
                              const SharedPiece *reads, int read_count, const SharedPiece *writes,
                              int write_count, uint32_t barrier) {
  AsyncCheck *operation = new_operation(warp, in, lane, kind, barrier);
  AccessNow now = {
      .check = check_of(warp),
      .warp = warp,
      .in = in,
      .lane = lane,
      .agent = agent_of(warp),
      .operation = operation,
  };
  now.kind = ENTRY_ASYNC_READ;
  touch_pieces(&now, reads, read_count);
  now.kind = ENTRY_ASYNC_WRITE;
  touch_pieces(&now, writes, write_count);
  return operation;
}

void check_async_source_read(Cluster *cluster, AsyncCheck *operation) {
  (void)cluster;
  if (operation) operation->source_read = true;
}

void check_async_landed(Cluster *cluster, AsyncCheck *operation) {
  if (!operation) return;
  ClusterCheck *check = cluster->check;
  operation->source_read = operation->landed = true;
  if (by_group(operation)) return;
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    uint32_t address = operation->barrier;
    if (operation->kind != ASYNC_CTA_TO_CTA) address = rank << 24 | SHARED_OFFSET(address);
    const MbarrierCheck *barrier = order_find_barrier(check, address);
    if (barrier) operation->landing_phase[rank] = barrier->phase;
  }
  leave_list(check, operation); /* whoever waits for it waits for its barrier */
}

void check_async_waited(Warp *warp, const Instruction *in, int lane, AsyncCheck *operation,
                        bool reads_only) {
  (void)in, (void)lane;
  if (!operation) return;
  ClusterCheck *check = check_of(warp);
  uint32_t clock = clock_of(check, agent_of(warp));
  if (!operation->read_waited_clock) operation->read_waited_clock = clock;
  if (!reads_only && !operation->waited_clock) operation->waited_clock = clock;
  leave_list(check, operation);
}

void check_async_committed(Warp *warp, int lane) {
  ClusterCheck *check = check_of(warp);
  for (AsyncCheck *each = check->of_warp[agent_of(warp)]; each; each = each->next_of_warp) {
    if (each->lane == lane && each->kind != ASYNC_CP_ASYNC && each->kind != ASYNC_WGMMA) {
      each->committed = true;
    }
  }
}

void check_async_waits_idly(Warp *warp, const Instruction *in, int lane) {
  struct CtaCheck *notes = &check_of(warp)->ctas[warp->cta->rank];
  if (notes->idle_wait) return;
  notes->idle_wait = in;
  notes->idle_thread = thread_of(warp, lane);
}

void check_async_release(AsyncCheck *operation) {
  if (operation) operation->released = true;
}

void check_warp_exit(Warp *warp, const Instruction *in, LaneMask exiting) {
  (void)warp, (void)in, (void)exiting;
}

/* A store that was issued and never waited for, at the end of its CTA. */
static void report_unread_store(Warp *warp, const AsyncCheck *store) {
  const struct CtaCheck *notes = &check_of(warp)->ctas[warp->cta->rank];
  LaneMask who = 1u << store->lane;
  const char *name = KIND_NAMES[store->kind];
  const char *luck = store->source_read ? " (it was read in time by luck)" : "";
  if (!store->committed) {
    finding(warp, store->in, who, "store-never-committed",
            "the CTA has ended, and this %s was never committed: no wait can have waited for it to "
            "have read its source in shared memory%s.\n"
            "Put cp.async.bulk.commit_group behind it, in the same thread, and then "
            "cp.async.bulk.wait_group.read 0.",
            name, luck);
  } else if (notes->idle_wait && notes->idle_thread != thread_of(warp, store->lane)) {
    char where[128];
    describe_place(notes->idle_wait, where, sizeof where);
    finding(
        warp, store->in, who, "wait-in-another-thread",
        "the CTA has ended, and nobody has waited for this %s to have read its source in shared "
        "memory%s: thread %u waited %s, but it had committed nothing, so there was nothing to "
        "wait for.\n"
        "Bulk groups belong to the thread that committed them: wait there, then __syncthreads().",
        name, luck, notes->idle_thread, where);
  } else {
    finding(warp, store->in, who, "exit-before-store-read",
            "the CTA has ended, and nobody has waited for this %s to have read its source in "
            "shared memory%s.\n"
            "The thread that issued it must commit it and wait before the kernel ends: "
            "cp.async.bulk.commit_group, cp.async.bulk.wait_group.read 0.",
            name, luck);
  }
}

/* The CTA's memory is gone: nothing may still read from it or write into it. */
void check_cta_exit(Cta *cta) {
  ClusterCheck *check = cta->cluster->check;
  if (cta->cluster->launch->error) return;
  check->ctas[cta->rank].exited = true;
  report_unwritten_reads(cta);
  exit_check(cta);
  for (uint32_t w = 0; w < cta->warp_count; w++) {
    uint32_t agent = cta->rank * check->warps_per_cta + w;
    for (AsyncCheck *each = check->of_warp[agent]; each; each = each->next_of_warp) {
      Warp *warp = &cta->warps[w];
      bool takes = each->kind == ASYNC_TENSOR_STORE || each->kind == ASYNC_BULK_STORE ||
                   each->kind == ASYNC_TENSOR_REDUCE || each->kind == ASYNC_BULK_REDUCE;
      if (takes && !each->read_waited_clock) {
        report_unread_store(warp, each);
      } else if (!each->landed && each->barrier) {
        finding(warp, each->in, 1u << each->lane, "exit-with-copy-in-flight",
                "the CTA has ended while this %s was on its way into shared memory.\n"
                "Wait for every copy that was issued before the kernel ends.",
                KIND_NAMES[each->kind]);
      }
    }
  }
}

/* ---- wgmma ---- */

void check_wgmma_fence(Warp *warp, const Instruction *in) {
  (void)in;
  registers_fence(warp);
}

void check_wgmma_issue(Warp *warp, const Instruction *in, const uint16_t *slots, int slot_count,
                       const SharedPiece *reads, int read_count) {
  AsyncCheck *operation =
      check_async_issue(warp, in, 0, ASYNC_WGMMA, reads, read_count, NULL, 0, 0);
  operation->group = check_of(warp)->wgmma_group[operation->agent];
  operation->released = true;
  registers_issue(warp, in, slots, slot_count, operation->group);
}

void check_wgmma_commit(Warp *warp, const Instruction *in) {
  (void)in;
  check_of(warp)->wgmma_group[agent_of(warp)]++;
}

/* All groups but the last `pending` are over, for the four warps of the group alike. */
void check_wgmma_wait(Warp *warp, const Instruction *in, int pending) {
  (void)in;
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp), clock = clock_of(check, agent);
  uint64_t open = check->wgmma_group[agent];
  registers_wait(warp, open, (uint64_t)pending);
  uint32_t own = warp->index % WARPS_OF_GROUP;
  for (uint32_t i = 0; i < WARPS_OF_GROUP; i++) {
    uint32_t index = warp->index - own + i;
    if (index >= check->warps_per_cta) break;
    AsyncCheck *next;
    for (AsyncCheck *each = check->of_warp[agent - own + i]; each; each = next) {
      next = each->next_of_warp;
      if (each->kind != ASYNC_WGMMA || each->group + (uint64_t)pending >= open) continue;
      each->source_read = each->landed = true;
      if (!each->group_waited[own]) each->group_waited[own] = clock;
      bool by_all = true;
      for (uint32_t k = 0; k < WARPS_OF_GROUP; k++) by_all &= each->group_waited[k] != 0;
      if (by_all) leave_list(check, each);
    }
  }
}

/* ---- Layouts: whoever reads a tile must use the swizzle it was written with ---- */

void check_tile_layout(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes,
                       int swizzle_span, bool written, Proxy proxy) {
  ClusterCheck *check = check_of(warp);
  uint32_t rank = SHARED_RANK(address), first = SHARED_OFFSET(address) / 128;
  if (rank >= check->cta_count || bytes == 0) return;
  struct CtaCheck *notes = &check->ctas[rank];
  uint32_t last = (SHARED_OFFSET(address) + bytes - 1) / 128;
  uint8_t layout = (uint8_t)(swizzle_span < 32 ? 1 : swizzle_span / 16 + 1);
  for (uint32_t block = first; block <= last && block <= notes->words / 32; block++) {
    if (written) {
      notes->layouts[block] = layout;
      continue;
    }
    uint8_t found = notes->layouts[block];
    if (!found || found == layout) continue;
    char was[32];
    if (found == 1)
      snprintf(was, sizeof was, "no swizzle");
    else
      snprintf(was, sizeof was, "a %u-byte swizzle", (found - 1) * 16u);
    char is[32];
    if (layout == 1)
      snprintf(is, sizeof is, "no swizzle");
    else
      snprintf(is, sizeof is, "a %u-byte swizzle", (layout - 1) * 16u);
    finding(
        warp, in, 0, "swizzle-mismatch",
        "%s shared memory at offset 0x%x with %s, but the copy that put the tile there used %s.\n"
        "The tensor map's swizzle and %s must be the same.",
        proxy == PROXY_TENSOR_CORE ? "multiplies from" : "reads", block * 128, is, was,
        proxy == PROXY_TENSOR_CORE ? "the layout bits of the matrix descriptor"
                                   : "the layout of the one that reads");
    return;
  }
}
