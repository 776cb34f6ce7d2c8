/* origins.c: where undefined values come from, and the reports when they matter.
 *
 * An origin is an instruction of a warp that reads bytes that nothing has written. For a matrix each
 * row of A and every eight columns of B have their own, because a kernel may multiply rows that it
 * never uses. A report needs two facts: the value matters somewhere, and the read is neither a race
 * nor a missing wait. The second is known when the block ends, or when an ordered write follows. */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/holds.h"
#include "base/instruction.h"
#include "base/memory.h"
#include "checker/undefined/marks.h"
#include "trial/trial.h"

enum { FIRST_ORIGINS = 64 };

struct Origin {
  Warp *warp;
  const Instruction *in, *user; /* user: where the value matters; NULL: nowhere yet */
  const struct Use *use;
  OriginPlace place;
  LaneMask lanes;
  uint32_t using_thread;
  uint32_t next;  /* 1 + the next origin with the same hash; 0: none */
  bool confirmed; /* no unordered write there, so it is neither a race nor a missing wait */
  bool reported;
};

/* "here it ..."; at_once: it decides something that no correct program leaves to chance, so it is reported without a
 * trial (trial/trial.h). */
static const struct Use {
  const char *how;
  bool at_once;
} uses[] = {
    [USED_STORED] = {"goes to global memory", false},
    [USED_AS_ADDRESS] = {"is an address", false},
    [USED_BY_BRANCH] = {"decides a branch", false},
    [USED_BY_GUARD] = {"decides whether this is executed", false},
    [USED_BY_INSTRUCTION] = {"decides what this instruction does", true},
    [USED_IN_VOTE] = {"decides what this instruction does", false},
    [USED_AS_LANE_MASK] = {"says which lanes take part", true},
    [USED_IN_MAP] = {"is part of a tensor map", false},
    [USED_BY_PRINTF] = {"is printed", false},
    [USED_BY_MALLOC] = {"is the size that malloc takes", false},
    [USED_BY_FREE] = {"is the address that free takes", false},
};

static void report_unordered(Warp *warp, const Instruction *in, const FindingPutAside *kept) {
  finding_of(warp, in, kept->lanes, &kept->what, "%s", kept->text);
}

static uint32_t *chain_of(struct UndefinedState *state, const Warp *warp, const Instruction *in,
                          const OriginPlace *place) {
  uintptr_t mixed = ((uintptr_t)warp >> 5) * 31 + ((uintptr_t)in >> 4) * 17 + place->part * 7u +
                    (uintptr_t)place->index;
  return &state->origin_chains[mixed % ORIGIN_CHAINS];
}

static bool is_ordered(OriginPart part) {
  return part == PART_GLOBAL || part == PART_LOCAL || part == PART_REGISTER ||
         part == PART_PARAMETER || part == PART_UPDATED || part == PART_UNORDERED;
}

/* Of those that read there as this does, the one that was there before keeps its finding. */
static OriginNumber known_origin(const struct UndefinedState *state, uint32_t first,
                                 const Warp *warp, const Instruction *in,
                                 const OriginPlace *place) {
  for (uint32_t i = first; i; i = state->origins[i - 1].next) {
    const struct Origin *origin = &state->origins[i - 1];
    if (origin->in == in && origin->warp == warp && origin->place.part == place->part &&
        origin->place.index == place->index)
      return (OriginNumber)i;
  }
  return 0;
}

OriginNumber undefined_origin(Warp *warp, const Instruction *in, int lane,
                              const OriginPlace *place) {
  struct UndefinedState *state = check_of(warp)->undefined;
  uint32_t *chain = chain_of(state, warp, in, place);
  OriginNumber known = known_origin(state, *chain, warp, in, place);
  if (known) {
    state->origins[known - 1].lanes |= 1u << lane;
    free(place->finding.text);
    return known;
  }
  if (state->origin_count == ORIGIN_MOST) {
    if (place->part == PART_UNORDERED) report_unordered(warp, in, &place->finding);
    free(place->finding.text);
    return 0;
  }
  if (state->origin_count == state->origin_capacity) {
    state->origin_capacity = state->origin_capacity ? 2 * state->origin_capacity : FIRST_ORIGINS;
    state->origins = realloc(state->origins, state->origin_capacity * sizeof *state->origins);
    if (!state->origins) out_of_memory();
  }
  state->origins[state->origin_count++] = (struct Origin){.warp = warp,
                                                          .in = in,
                                                          .place = *place,
                                                          .lanes = 1u << lane,
                                                          .next = *chain,
                                                          .confirmed = is_ordered(place->part)};
  *chain = state->origin_count;
  return (OriginNumber)state->origin_count;
}

static void forget_origins(struct UndefinedState *state, bool failed) {
  if (!state->origin_count) return;
  for (uint32_t i = 0; i < state->origin_count; i++) {
    struct Origin *origin = &state->origins[i];
    FindingPutAside *finding = &origin->place.finding;
    if (!finding->text) continue;
    /* A launch that has failed never got as far as to use the value. */
    if (failed && !origin->reported) report_unordered(origin->warp, origin->in, finding);
    free(finding->text);
  }
  memset(state->confirmed, 0, sizeof state->confirmed);
  state->origin_count = 0;
  memset(state->origin_chains, 0, sizeof state->origin_chains);
}

void undefined_end(ClusterCheck *check, bool failed) {
  if (check->any_undefined) undefined_forget_shared(check);
  forget_origins(check->undefined, failed);
}

/* ---- Reports ---- */

#define report_undefined(origin, in, lanes, what, ...) \
  trial_doubt(!(origin)->use->at_once, (origin)->warp, in, lanes, what, __VA_ARGS__)

static Phrase advise_read(const OriginPlace *place) {
  const bool behind = place->beside_first > place->offset;
  if (place->wait)
    return phrase(
        "The last wait of this warp before, %s, asked for parity %u of the mbarrier at "
        "shared-memory offset 0x%x and succeeded because of a phase that was over before: if it "
        "should wait for these bytes, ask for parity %u. ",
        place_of(place->wait).text, place->wait_asked, place->wait_offset, place->wait_asked ^ 1u);
  if (!place->beside) return NO_PHRASE;
  return phrase(
      "This is %u bytes %s the tile that the load %s fills, 0x%x to 0x%x: is one of the two "
      "addresses wrong? ",
      behind ? place->beside_first - place->offset : place->offset - place->beside_end,
      behind ? "before" : "behind", place_of(place->beside).text, place->beside_first,
      place->beside_end - 1);
}

static void report_read(const ClusterCheck *check, const struct Origin *origin) {
  const OriginPlace *place = &origin->place;
  const Phrase what = place->part == PART_A      ? phrase("multiplies row %d of A,", place->index)
                      : place->part == PART_B    ? phrase("multiplies columns %d to %d of B,",
                                                          place->index * 8, place->index * 8 + 7)
                      : place->part == PART_COPY ? phrase("copies")
                      : place->part == PART_UPDATED ? phrase("atomically changes")
                                                    : phrase("reads");
  const Finding about = {.rule = RULE(UNINITIALISED_READ),
                         .other = origin->user,
                         .memory = ABOUT_SHARED,
                         .rank = (uint8_t)place->rank,
                         .address = place->offset};
  report_undefined(
      origin, origin->in, origin->lanes, &about,
      "%s shared memory at offset 0x%x%s, which nothing has written, and the value matters: "
      "%s it %s (thread %u).\n"
      "%sShared memory does not start out as zeros: write it, or wait for the copy that fills it.",
      what.text, place->offset, rank_phrase(check->cta_count, place->rank).text,
      place_of(origin->user).text, origin->use->how, origin->using_thread, advise_read(place).text);
}

static void report_store(const struct Origin *origin) {
  const OriginPlace *place = &origin->place;
  Phrase rows = NO_PHRASE, partly = NO_PHRASE;
  const bool first = place->stored.first_offset == place->stored.from,
             last = place->stored.last_offset + 1 == place->stored.from_end;
  if (first != last)
    partly = phrase(
        "They are the %s of what it takes, 0x%x to 0x%x: is its address wrong, or that of who "
        "writes it? ",
        first ? "beginning" : "end", place->stored.from, place->stored.from_end - 1);
  if (place->stored.row_bytes)
    rows = phrase(" (in rows %u to %u of the box, which has rows of %u bytes)",
                  place->stored.first_row, place->stored.last_row, place->stored.row_bytes);
  const Finding about = {.rule = RULE(UNWRITTEN_BYTES_STORED),
                         .memory = ABOUT_SHARED,
                         .rank = (uint8_t)origin->place.rank,
                         .bytes = place->stored.bytes,
                         .address = place->stored.first_offset};
  report_undefined(
      origin, origin->in, origin->lanes, &about,
      "copies %u bytes to global memory that nothing has written: the first is in shared memory "
      "at offset 0x%x, the last at offset 0x%x%s.\n"
      "%s%s",
      place->stored.bytes, place->stored.first_offset, place->stored.last_offset, rows.text,
      partly.text,
      place->stored.row_bytes
          ? "Fill the whole tile, or give the store's tensor map a box of what is filled. Rows "
            "and columns beyond the tensor need no values."
          : "Fill all of these bytes before the copy, or copy fewer.");
}

static void report_global(const struct Origin *origin) {
  if (origin->place.index) {
    trial_finding(&(Doubt){.warp = origin->warp,
                           .in = origin->in,
                           .lanes = origin->lanes,
                           .what = &(const Finding){0},
                           .left = (PendingNumber)origin->place.index,
                           .may_wait = !origin->use->at_once});
    return;
  }
  report_undefined(
      origin, origin->in, origin->lanes,
      &(const Finding){.rule = RULE(UNWRITTEN_MEMORY_READ), .other = origin->user},
      "reads %s, which nothing has written, and the value matters: %s it %s (thread %u).\n"
      "Fresh memory is not zeroed: copy or set it first (cudaMemcpy, cudaMemset), and read "
      "no more than that.",
      memory_place(origin->place.address).text, place_of(origin->user).text, origin->use->how,
      origin->using_thread);
}

static void report_local(const struct Origin *origin) {
  report_undefined(
      origin, origin->in, origin->lanes,
      &(const Finding){.rule = RULE(UNINITIALISED_READ), .other = origin->user},
      "reads local memory that this thread has never written (an array, a struct or another "
      "variable of its own, at byte %u), and the value matters: %s it %s (thread %u).\n"
      "Variables of a function hold no zeros at the start: initialise what is read.",
      origin->place.offset, place_of(origin->user).text, origin->use->how, origin->using_thread);
}

/* At the instruction that uses it: nothing else names the register. */
static void report_register(const struct Origin *origin) {
  report_undefined(
      origin, origin->user, 1u << origin->using_thread % LANES,
      &(const Finding){.rule = RULE(UNINITIALISED_READ)},
      "reads a register that thread %u has never written, and the value matters: here it %s.\n"
      "A variable without an initial value holds what was left in its register: initialise it.",
      origin->using_thread, origin->use->how);
}

static void report_parameter(const struct Origin *origin) {
  const Launch *launch = origin->warp->cta->cluster->launch;
  bool missing = origin->place.offset >= launch->parameter_bytes - launch->parameters_missing;
  finding(origin->warp, origin->in, origin->lanes, RULE(UNINITIALISED_READ),
          "reads byte %u of the kernel's parameters, which %s, and the value matters: %s it %s "
          "(thread %u).\n%s",
          origin->place.offset, missing ? "the host has not passed" : "belongs to none of them",
          place_of(origin->user).text, origin->use->how, origin->using_thread,
          missing ? "CU_LAUNCH_PARAM_BUFFER_SIZE of this launch is smaller than the kernel's "
                    "parameters. The driver takes zeros for the rest."
                  : "It lies in a gap between two parameters: is an index beyond the end of the "
                    "one before?");
}

static void report_if_due(const ClusterCheck *check, struct Origin *origin) {
  if (!origin->confirmed || !origin->user || origin->reported) return;
  origin->reported = true;
  HOLDS(check->undefined->origin_count > 0 && origin->in); /* no report without an origin */
  if (origin->place.part == PART_STORE)
    report_store(origin);
  else if (origin->place.part == PART_GLOBAL)
    report_global(origin);
  else if (origin->place.part == PART_LOCAL)
    report_local(origin);
  else if (origin->place.part == PART_REGISTER)
    report_register(origin);
  else if (origin->place.part == PART_PARAMETER)
    report_parameter(origin);
  else if (origin->place.part == PART_UNORDERED)
    report_unordered(origin->warp, origin->in, &origin->place.finding);
  else
    report_read(check, origin);
}

static struct Origin *origin_at(const ClusterCheck *check, OriginNumber number) {
  uint32_t place = number & ORIGIN_MOST;
  return place && place <= check->undefined->origin_count ? &check->undefined->origins[place - 1]
                                                          : NULL;
}

bool undefined_is_pending(const Warp *warp, OriginNumber number) {
  const struct Origin *origin = origin_at(check_of(warp), number);
  return origin && origin->place.part == PART_GLOBAL && origin->place.index;
}

bool undefined_matters(Warp *warp, const Instruction *in, int lane, OriginNumber number,
                       UndefinedUse use) {
  const ClusterCheck *check = check_of(warp);
  struct Origin *origin = origin_at(check, number);
  if (!origin) return true;
  bool moved = !(number & ORIGIN_COMPUTED) && !undefined_is_pending(warp, number);
  if (use == USED_STORED && moved &&
      (origin->place.part == PART_GLOBAL || origin->place.part == PART_LOCAL))
    return false;
  if (!origin->user) {
    origin->user = in;
    origin->use = &uses[use];
    origin->using_thread = thread_of(warp, lane);
  }
  report_if_due(check, origin);
  return true;
}

void undefined_confirm(ClusterCheck *check, const Warp *reader, const Instruction *in) {
  uintptr_t mixed = ((uintptr_t)reader >> 5) * 31 + ((uintptr_t)in >> 4) * 17;
  ConfirmedRead *last = &check->undefined->confirmed[mixed % CONFIRMED_READS];
  if (last->in == in && last->reader == reader && last->origins == check->undefined->origin_count)
    return;
  *last = (ConfirmedRead){in, reader, check->undefined->origin_count};
  for (uint32_t i = 0; i < check->undefined->origin_count; i++) {
    struct Origin *origin = &check->undefined->origins[i];
    /* A word knows only the last wgmma of a warp that has read it. */
    bool alike = origin->in == in || (origin->in->updates && in->updates);
    if (!alike || origin->warp != reader) continue;
    origin->confirmed = true;
    report_if_due(check, origin);
  }
}
