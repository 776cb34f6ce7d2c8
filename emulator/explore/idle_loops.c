/* idle_loops.c: recognises a process that waits in a loop: it has come back to the same
 * instruction, has only read in between, and every register that the loop reads before writing it
 * has its old value. Such a round has no effect, so the process may as well have waited.
 *
 * state/polling.c looks for loops, too, but answers another question: may a warp that has seen nothing new spin for
 * ever? It follows values backwards, for each lane, and ignores what does not matter, such as a counter that nobody
 * reads, as no other order is lost if it stops too early. Here a round counts only if it can be left out. */
#include <stdlib.h>
#include <string.h>

#include "explore/explore.h"

/* Rounds in which something else changes, such as a counter, before the process is set aside. */
enum { MOST_ROUNDS = 64, MOST_INSTRUCTIONS = 4096, MOST_AWAY = 64 };

typedef struct {
  const Instruction *in;
  LaneMask lanes; /* 0: the guard was false in all */
} Executed;

struct PollWatch {
  const Instruction *anchor; /* NULL: the process has written since */
  uint32_t first_step, step; /* numbers in the order: at the anchor, of the step being made */
  const PriorSteps *clock;   /* at the anchor */
  LaneMask lanes;
  uint32_t rounds, away;
  uint8_t *registers;
  uint32_t *predicates;
  Executed *executed;
  uint32_t executed_count;
  NoteList seen;
};

static LaneMask lanes_of(const Process *process) { return current_group(process->warp)->mask; }

static struct PollWatch *watch_of(Process *process) {
  if (process->poll) return process->poll;
  const Module *module = module_of(process->warp->cta->cluster);
  struct PollWatch *watch = new_zeros(1, sizeof *watch);
  watch->registers = need_memory(malloc((size_t)module->slots * SLOT_BYTES));
  watch->predicates = need_memory(malloc((module->predicates + 1u) * sizeof(uint32_t)));
  watch->executed = need_memory(malloc(MOST_INSTRUCTIONS * sizeof *watch->executed));
  return process->poll = watch;
}

/* ---- Which registers does the loop read before writing them? ---- */
typedef struct {
  const Process *process;
  uint8_t *written; /* by slot, then by predicate */
  LaneMask lanes;
} LoopReads;

static bool slot_is_same(const LoopReads *reads, uint32_t slot, uint32_t bytes) {
  const Warp *warp = reads->process->warp;
  if (reads->written[slot]) return true;
  const uint32_t width = bytes < 4 ? 4 : bytes;
  const uint8_t *now = warp->registers + (size_t)slot * SLOT_BYTES;
  const uint8_t *before = reads->process->poll->registers + (size_t)slot * SLOT_BYTES;
  FOR_LANES(lane, reads->lanes) {
    const size_t at = (size_t)lane * width;
    if (memcmp(now + at, before + at, width) != 0) return false;
  }
  return true;
}

static bool predicate_is_same(const LoopReads *reads, uint32_t number) {
  const Process *process = reads->process;
  if (reads->written[module_of(process->warp->cta->cluster)->slots + number]) return true;
  return !((process->warp->predicates[number] ^ process->poll->predicates[number]) & reads->lanes);
}

static bool operand_is_same(const LoopReads *reads, const Operand *operand) {
  if (operand->kind == OPERAND_VECTOR) {
    for (uint32_t i = 0; i < operand->count; i++)
      if (!operand_is_same(reads, &operand->elements[i])) return false;
    return true;
  }
  if (operand->kind == OPERAND_PREDICATE) return predicate_is_same(reads, operand->slot);
  if (operand->kind != OPERAND_REGISTER && operand->kind != OPERAND_ADDRESS) return true;
  return operand->constant || slot_is_same(reads, operand->slot, operand->bytes);
}

static void set_written(const LoopReads *reads, const Operand *operand) {
  if (operand->kind == OPERAND_VECTOR)
    for (uint32_t i = 0; i < operand->count; i++) set_written(reads, &operand->elements[i]);
  else if (operand->kind == OPERAND_PREDICATE)
    reads->written[module_of(reads->process->warp->cta->cluster)->slots + operand->slot] = 1;
  else if (operand->kind == OPERAND_REGISTER && !operand->constant)
    reads->written[operand->slot] = 1;
}

static bool reads_the_same(const LoopReads *reads, const Executed *executed) {
  const Instruction *in = executed->in;
  if (in->guard >= 0 && !predicate_is_same(reads, (uint32_t)in->guard)) return false;
  if (executed->lanes == 0) return true; /* its guard was false */
  if (in->traits & (CALLS | RETURNS) || in->updates) return false;
  for (uint32_t i = in->results; i < in->operand_count; i++)
    if (!operand_is_same(reads, &in->operand[i])) return false;
  /* A result that not all lanes get leaves the old value in the others. */
  if (in->guard < 0 && !(reads->lanes & ~executed->lanes))
    for (uint32_t i = 0; i < in->results; i++) set_written(reads, &in->operand[i]);
  else
    for (uint32_t i = 0; i < in->results; i++)
      if (!operand_is_same(reads, &in->operand[i])) return false;
  return true;
}

static bool round_repeats(Process *process) {
  struct PollWatch *watch = process->poll;
  const Module *module = module_of(process->warp->cta->cluster);
  if (watch->executed_count == MOST_INSTRUCTIONS) return false;
  LoopReads reads = {process, new_zeros((size_t)module->slots + module->predicates + 1, 1),
                     watch->lanes};
  bool same = true;
  for (uint32_t i = 0; same && i < watch->executed_count; i++)
    same = reads_the_same(&reads, &watch->executed[i]);
  free(reads.written);
  return same;
}

/* ---- Steps ---- */
static void set_anchor(Process *process, const Instruction *in, uint32_t step) {
  struct PollWatch *watch = process->poll;
  const Module *module = module_of(process->warp->cta->cluster);
  watch->anchor = in;
  watch->first_step = step;
  watch->clock = process->clock;
  watch->lanes = lanes_of(process);
  watch->away = 0;
  watch->executed_count = 0;
  watch->seen.count = 0;
  memcpy(watch->registers, process->warp->registers, (size_t)module->slots * SLOT_BYTES);
  memcpy(watch->predicates, process->warp->predicates, module->predicates * sizeof(uint32_t));
}

void poll_before_step(Process *process, const Instruction *in, uint32_t depth) {
  struct PollWatch *watch = watch_of(process);
  watch->step = depth;
  if (watch->anchor == in && watch->lanes == lanes_of(process)) return;
  if (watch->anchor && ++watch->away < MOST_AWAY) return;
  set_anchor(process, in, depth);
  watch->rounds = 0;
}

void poll_instruction(Process *process, const Instruction *in, LaneMask lanes) {
  struct PollWatch *watch = process->poll;
  if (!watch || !watch->anchor || watch->executed_count == MOST_INSTRUCTIONS) return;
  watch->executed[watch->executed_count++] = (Executed){in, lanes};
}

static bool only_reads(void) {
  for (uint32_t i = 0; i < notes.count; i++)
    if (notes.items[i].kind != NOTE_READ && notes.items[i].kind != NOTE_KEEP &&
        notes.items[i].kind != NOTE_ASK)
      return false;
  return notes.count > 0;
}

static void remember_notes(NoteList *list) {
  if (list->capacity < list->count + notes.count) {
    list->capacity = (list->count + notes.count) * 2;
    list->items = need_memory(realloc(list->items, list->capacity * sizeof *list->items));
  }
  if (notes.count > 0)
    memcpy(&list->items[list->count], notes.items, notes.count * sizeof *notes.items);
  list->count += notes.count;
}

/* The process stands before its next visible instruction. */
PollAnswer poll_after_step(Process *process, uint32_t *first_step, const PriorSteps **clock) {
  struct PollWatch *watch = process->poll;
  const Group *group = NULL;
  const struct WarpFlow *flow = process->warp->flow;
  for (uint32_t i = 0; i < flow->count; i++)
    if (first_lane(flow->groups[i].mask) == (int)process->lane) group = &flow->groups[i];
  if (!only_reads() || !group || group->mask != watch->lanes) {
    watch->anchor = NULL;
    return POLL_NONE;
  }
  remember_notes(&watch->seen);
  if (group->function->code + group->place != watch->anchor) return POLL_NONE;
  *first_step = watch->first_step;
  *clock = watch->clock;
  if (round_repeats(process)) {
    watch->anchor = NULL;
    return POLL_SAME;
  }
  const uint32_t rounds = ++watch->rounds;
  if (rounds % MOST_ROUNDS == 0) return POLL_LONG;
  set_anchor(process, watch->anchor, watch->step + 1);
  return POLL_NONE;
}

bool poll_sees(const Process *process, const Note *items, uint32_t count) {
  const struct PollWatch *watch = process->poll;
  return notes_depend(watch->seen.items, watch->seen.count, items, count);
}

void poll_free(Process *process) {
  struct PollWatch *watch = process->poll;
  if (!watch) return;
  free(watch->registers);
  free(watch->predicates);
  free(watch->executed);
  free(watch->seen.items);
  free(watch);
  process->poll = NULL;
}
