/* dependent_steps.c: which steps depend on each other, from what they touch; and sleep sets: processes
 * whose next step another order has tried here, and that would lead to nothing new. */

#include "explore/explore.h"

/* ---- Dependence of two steps, from their notes ---- */
static bool places_depend(const Note *one, const Note *other) {
  if (one->at != other->at) return false;
  const uint8_t a = one->kind, b = other->kind;
  if (a == NOTE_RESET || b == NOTE_RESET) return true;
  if (a == NOTE_COMPLETE || b == NOTE_COMPLETE) return true;
  if (a == NOTE_FULL || b == NOTE_FULL) {
    const Note *arrival = a == NOTE_FULL ? other : one;
    return arrival->kind == NOTE_ARRIVE && arrival->operation != NOTE_BYTES;
  }
  /* any arrival may be the one that the answer depends on */
  if (a == NOTE_ASK || b == NOTE_ASK) return a == NOTE_ARRIVE || b == NOTE_ARRIVE;
  if (a == NOTE_EXPECT || b == NOTE_EXPECT)
    return (a == NOTE_EXPECT || a == NOTE_ARRIVE) && (b == NOTE_EXPECT || b == NOTE_ARRIVE);
  return a == NOTE_ARRIVE && b == NOTE_ARRIVE && one->phase != other->phase;
}

static bool note_depends(const Note *one, const Note *other) {
  if (note_is_memory(one) != note_is_memory(other)) return false;
  if (!note_is_memory(one)) {
    const bool both = one->kind >= NOTE_ARRIVE && one->kind <= NOTE_RESET &&
                      other->kind >= NOTE_ARRIVE && other->kind <= NOTE_RESET;
    return both && places_depend(one, other);
  }
  if (one->kind == NOTE_READ && other->kind == NOTE_READ) return false;
  if (one->kind == NOTE_UPDATE && other->kind == NOTE_UPDATE && one->operation == other->operation)
    return false;
  const uintptr_t a = (uintptr_t)one->at, b = (uintptr_t)other->at;
  return a < b + other->bytes && b < a + one->bytes;
}

bool notes_depend(const Note *one, uint32_t count, const Note *other, uint32_t other_count) {
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < other_count; k++)
      if (note_depends(&one[i], &other[k])) return true;
  return false;
}

/* ---- Sleep sets ---- */
void sleep_at_node(Order *order, uint32_t number) {
  SleepSet *set = &order->sleep;
  const Tree *tree = order->tree;
  for (uint32_t i = tree->nodes[number].alternatives; i; i = tree->alternatives[i].next) {
    const Alternative *done = &tree->alternatives[i];
    if (done->state != ALTERNATIVE_DONE) continue;
    set->items = grown_list(set->items, set->count, &set->capacity, sizeof *set->items);
    set->items[set->count++] = (Sleeper){done->process, done->note_first, done->note_count};
  }
}

bool sleep_holds(const Order *order, ProcessName process) {
  for (uint32_t i = 0; i < order->sleep.count; i++)
    if (order->sleep.items[i].process == process) return true;
  return false;
}

bool sleep_empty(const Order *order) { return order->sleep.count == 0; }

void sleep_step(Order *order) {
  SleepSet *set = &order->sleep;
  for (uint32_t i = 0; i < set->count;) {
    const Sleeper *sleeper = &set->items[i];
    const Note *kept = &order->tree->kept_notes[sleeper->note_first];
    if (notes_depend(kept, sleeper->note_count, notes.items, notes.count))
      set->items[i] = set->items[--set->count];
    else
      i++;
  }
}
