/* racing_steps.c: which steps depend on each other, and which of those could have come in the other
 * order.
 *
 * Every process has a clock: how many steps of each process must come before its next one. A step
 * that depends on an earlier one, and does not already come after it, races with it: another order
 * must try to make the later step first (source sets). Waits are different: the arrival that ends a
 * wait cannot come after it, so it orders without racing. */
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "explore/explore.h"

struct PriorSteps {
  uint32_t count;
  uint32_t steps[];
};

typedef struct {
  uint32_t process, own;   /* own: the number of the process's step, from 1 */
  const PriorSteps *clock; /* what it comes after, without the process's own steps */
} StepEvent;

typedef struct {
  uint32_t *items;
  uint32_t count, capacity;
} EventList;

/* Eight bytes of memory: the last writes, and the reads since. */
typedef struct {
  uint32_t event, next; /* next: number of another; 0: none */
  uint8_t mask, operation;
} Touch;
typedef struct {
  uint64_t key; /* address / 8 */
  uint32_t writes, reads;
} Granule;

typedef struct {
  uint64_t key; /* its address */
  uint32_t phase;
  const PriorSteps *before, *current; /* arrivals of completed phases, and of this one */
  const PriorSteps *released;
  EventList earlier, arrivals, raised, asked; /* of the last phase; of this one */
  bool full;                                  /* this phase has all its arrivals */
  uint32_t completed[2];                      /* the last two completions + 1; 0: none */
  uint32_t reset;                             /* the last initialisation + 1 */
} MeetingPlace;

struct Races {
  StepEvent *events;
  uint32_t event_capacity;
  Table granules, places; /* of Granule and MeetingPlace */
  Touch *touches;
  uint32_t touch_count, touch_capacity;
  EventList conflicts;
  struct {
    uint32_t process, since;
  } forgotten; /* what forget_read looks for */
};

static void list_add(EventList *list, uint32_t event) {
  if (list->count && list->items[list->count - 1] == event) return;
  list->items = grown_list(list->items, list->count, &list->capacity, sizeof *list->items);
  list->items[list->count++] = event;
}

static void list_add_all(EventList *list, const EventList *others) {
  for (uint32_t i = 0; i < others->count; i++) list_add(list, others->items[i]);
}

Races *races_new(void) {
  Races *races = new_zeros(1, sizeof *races);
  races->touch_count = 1; /* 0 means none */
  return races;
}

/* ---- Clocks: never changed once made ---- */
static bool clock_has(const PriorSteps *clock, uint32_t process, uint32_t own) {
  return clock && process < clock->count && clock->steps[process] >= own;
}

static bool clock_covers(const PriorSteps *clock, const PriorSteps *other) {
  if (!other || clock == other) return true;
  for (uint32_t i = 0; i < other->count; i++)
    if (other->steps[i] && !clock_has(clock, i, other->steps[i])) return false;
  return true;
}

static PriorSteps *clock_copy(const PriorSteps *clock, uint32_t count) {
  if (clock && clock->count > count) count = clock->count;
  PriorSteps *made = new_zeros(1, sizeof *made + count * sizeof made->steps[0]);
  made->count = count;
  if (clock) memcpy(made->steps, clock->steps, clock->count * sizeof clock->steps[0]);
  return made;
}

const PriorSteps *races_join(Order *order, const PriorSteps *one, const PriorSteps *other) {
  if (clock_covers(one, other)) return one;
  if (clock_covers(other, one)) return other;
  PriorSteps *made = clock_copy(one, order->count);
  for (uint32_t i = 0; i < other->count; i++)
    if (other->steps[i] > made->steps[i]) made->steps[i] = other->steps[i];
  return made;
}

static const PriorSteps *clock_with(const PriorSteps *clock, uint32_t process, uint32_t own) {
  if (own == 0 || clock_has(clock, process, own)) return clock;
  PriorSteps *made = clock_copy(clock, process + 1);
  made->steps[process] = own;
  return made;
}

const PriorSteps *races_clock_after(Order *order, uint32_t process) {
  const Process *self = &order->processes[process];
  return clock_with(self->clock, process, self->steps);
}

static bool event_before(const Races *races, uint32_t event, const PriorSteps *clock) {
  return clock_has(clock, races->events[event].process, races->events[event].own);
}

static const PriorSteps *join_event(Order *order, const PriorSteps *clock, uint32_t number) {
  const StepEvent *event = &order->races->events[number];
  if (clock_has(clock, event->process, event->own)) return clock;
  return clock_with(races_join(order, clock, event->clock), event->process, event->own);
}

/* ---- Races ---- */
/* Can the process's first step after this event be made right after the steps before it? */
static bool is_initial(const Order *order, uint32_t event, ProcessName name) {
  const Races *races = order->races;
  const Process *process = process_named((Order *)(uintptr_t)order, name);
  if (!process) return false;
  const uint32_t number = index_of_process(order, process);
  const StepEvent *first = &races->events[event];
  uint32_t step = event + 1;
  while (step < order->depth && races->events[step].process != number) step++;
  if (step == order->depth) return false;
  const PriorSteps *clock = races->events[step].clock;
  if (clock_has(clock, first->process, first->own)) return false;
  for (uint32_t k = event + 1; k < step; k++)
    if (event_before(races, k, clock)) return false;
  return true;
}

static bool already_covered(const Order *order, uint32_t event) {
  const Tree *tree = order->tree;
  for (uint32_t i = tree->nodes[event].alternatives; i; i = tree->alternatives[i].next)
    if (tree->alternatives[i].state != ALTERNATIVE_IMPOSSIBLE &&
        is_initial(order, event, tree->alternatives[i].process))
      return true;
  return false;
}

/* The step that the process is about to make, and which comes after `clock`, could also come before
 * this event: the first step on the way to it is tried there. */
static void add_reversal(Order *order, uint32_t event, uint32_t process, const PriorSteps *clock) {
  const Races *races = order->races;
  if (already_covered(order, event)) return;
  uint32_t first = process;
  for (uint32_t k = event + 1; k < order->depth; k++) {
    if (races->events[k].process != process && !event_before(races, k, clock)) continue;
    first = races->events[k].process;
    break;
  }
  tree_add(order->tree, event, order->processes[first].name);
}

static int later_first(const void *a, const void *b) {
  const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
  return left < right ? 1 : left > right ? -1 : 0;
}

/* The clock after all conflicting steps. Those that are not yet ordered race. */
static const PriorSteps *settle_conflicts(Order *order, uint32_t process, const PriorSteps *clock) {
  Races *races = order->races;
  EventList *list = &races->conflicts;
  if (list->count > 1) qsort(list->items, list->count, sizeof *list->items, later_first);
  for (uint32_t i = 0; i < list->count; i++) {
    const uint32_t event = list->items[i];
    if (races->events[event].process == process || event_before(races, event, clock)) continue;
    add_reversal(order, event, process, clock);
    clock = join_event(order, clock, event);
  }
  return clock;
}

/* ---- Memory ---- */
static uint32_t new_touch(Races *races, Touch touch) {
  races->touches = grown_list(races->touches, races->touch_count, &races->touch_capacity,
                              sizeof *races->touches);
  races->touches[races->touch_count] = touch;
  return races->touch_count++;
}

typedef void (*VisitGranule)(Order *order, Granule *granule, uint8_t mask, const Note *item);

static void visit_granules(Order *order, const Note *item, VisitGranule visit) {
  uint64_t at = (uint64_t)(uintptr_t)item->at, end = at + item->bytes;
  while (at < end) {
    const uint64_t next = (at | 7) + 1, stop = next < end ? next : end;
    const uint8_t mask = (uint8_t)(((1u << (stop - at)) - 1) << (at & 7));
    visit(order, table_entry(&order->races->granules, sizeof(Granule), at >> 3), mask, item);
    at = stop;
  }
}

static void find_conflicts(Order *order, Granule *granule, uint8_t mask, const Note *item) {
  Races *races = order->races;
  for (uint32_t i = granule->writes; i; i = races->touches[i].next) {
    const Touch *touch = &races->touches[i];
    const bool commute = item->kind == NOTE_UPDATE && touch->operation == item->operation;
    if ((touch->mask & mask) && !commute) list_add(&races->conflicts, touch->event);
  }
  if (item->kind == NOTE_READ) return;
  for (uint32_t i = granule->reads; i; i = races->touches[i].next)
    if (races->touches[i].mask & mask) list_add(&races->conflicts, races->touches[i].event);
}

static void forget_covered(Races *races, uint32_t *list, uint8_t mask) {
  for (uint32_t *link = list; *link;) {
    Touch *touch = &races->touches[*link];
    touch->mask &= (uint8_t)~mask;
    if (touch->mask)
      link = &touch->next;
    else
      *link = touch->next;
  }
}

static void remember_access(Order *order, Granule *granule, uint8_t mask, const Note *item) {
  Races *races = order->races;
  const bool reads = item->kind == NOTE_READ;
  uint32_t *list = reads ? &granule->reads : &granule->writes;
  if (item->kind == NOTE_WRITE) {
    forget_covered(races, &granule->writes, mask);
    forget_covered(races, &granule->reads, mask);
  }
  const uint8_t operation = item->kind == NOTE_UPDATE ? item->operation : 0;
  if (*list) {
    Touch *last = &races->touches[*list];
    if (last->event == order->depth && last->operation == operation) {
      last->mask |= mask;
      return;
    }
  }
  const uint32_t made = new_touch(races, (Touch){order->depth, *list, mask, operation});
  *list = made;
}

static void forget_read(Order *order, Granule *granule, uint8_t mask, const Note *item) {
  Races *races = order->races;
  (void)mask, (void)item;
  for (uint32_t *link = &granule->reads; *link;) {
    const Touch *touch = &races->touches[*link];
    if (touch->event >= races->forgotten.since &&
        races->events[touch->event].process == races->forgotten.process)
      *link = touch->next;
    else
      link = &races->touches[*link].next;
  }
}

/* ---- Barriers ---- */
static MeetingPlace *place_at(Races *races, const void *at) {
  return table_entry(&races->places, sizeof(MeetingPlace), (uint64_t)(uintptr_t)at);
}

/* The last to arrive at bar.sync completes the phase and passes in one step. */
static bool completes(const void *at, uint32_t before) {
  for (uint32_t i = 0; i < before; i++)
    if (notes.items[i].kind == NOTE_COMPLETE && notes.items[i].at == at) return true;
  return false;
}

/* What a wait comes after without racing: the arrivals of completed phases, and whatever it was
 * woken by. */
static const PriorSteps *clock_of_waits(Order *order, const Process *process,
                                        const PriorSteps *clock) {
  Races *races = order->races;
  if (process->woken_by) clock = join_event(order, clock, process->woken_by - 1);
  for (uint32_t i = 0; i < notes.count; i++) {
    const Note *item = &notes.items[i];
    if (item->kind == NOTE_AWAITED) {
      const Process *awaited = &order->processes[item->bytes];
      const bool read = item->at && awaited->read_steps;
      clock = races_join(order, clock, read ? awaited->read_clock : awaited->clock);
      clock = clock_with(clock, item->bytes, read ? awaited->read_steps : awaited->steps);
    } else if (item->kind == NOTE_PASS) {
      const MeetingPlace *place = place_at(races, item->at);
      clock = races_join(order, clock, place->before);
      if (completes(item->at, i)) clock = races_join(order, clock, place->current);
    } else if (item->kind == NOTE_ACQUIRE) {
      clock = races_join(order, clock, place_at(races, item->at)->released);
    }
  }
  return clock;
}

static void reverse_pass(Order *order, uint32_t process, uint32_t event, const PriorSteps *clock) {
  if (event && !event_before(order->races, event - 1, clock))
    add_reversal(order, event - 1, process, clock);
}

/* A wait could also have come before the initialisation. And if an earlier phase of the same parity
 * would have let it pass, it could have come before the phase after that one. */
static void reverse_passes(Order *order, uint32_t process, const PriorSteps *clock) {
  for (uint32_t i = 0; i < notes.count; i++) {
    if (notes.items[i].kind != NOTE_PASS) continue;
    const MeetingPlace *place = place_at(order->races, notes.items[i].at);
    reverse_pass(order, process, place->completed[1], clock);
    reverse_pass(order, process, place->reset, clock);
  }
}

static void conflicts_of_place(Races *races, const Note *item) {
  EventList *list = &races->conflicts;
  MeetingPlace *place = place_at(races, item->at);
  if (place->reset) list_add(list, place->reset - 1);
  switch ((NoteKind)item->kind) {
    case NOTE_EXPECT:
      list_add_all(list, &place->arrivals);
      list_add_all(list, &place->raised);
      list_add_all(list, &place->earlier);
      break;
    case NOTE_ARRIVE:
      if (place->full && item->operation != NOTE_BYTES) list_add_all(list, &place->arrivals);
      list_add_all(list, &place->raised);
      list_add_all(list, &place->earlier);
      break;
    case NOTE_COMPLETE: /* not those whose own arrivals the phase needs */
      for (uint32_t i = 0; i < place->asked.count; i++)
        if (!event_before(races, place->asked.items[i], place->current))
          list_add(list, place->asked.items[i]);
      break;
    case NOTE_ASK:
      list_add_all(list, &place->earlier); /* any of these could have come later */
      break;
    case NOTE_RESET:
      list_add_all(list, &place->arrivals);
      list_add_all(list, &place->raised);
      list_add_all(list, &place->earlier);
      list_add_all(list, &place->asked);
      break;
    default:
      break;
  }
}

static void remember_place(Order *order, const Note *item, const PriorSteps *after) {
  Races *races = order->races;
  const uint32_t event = order->depth;
  MeetingPlace *place = place_at(races, item->at);
  switch ((NoteKind)item->kind) {
    case NOTE_EXPECT:
    case NOTE_ARRIVE:
      list_add(item->kind == NOTE_EXPECT ? &place->raised : &place->arrivals, event);
      place->current = races_join(order, place->current, after);
      break;
    case NOTE_FULL:
      place->full = true;
      break;
    case NOTE_COMPLETE: {
      place->phase++;
      place->full = false;
      place->before = races_join(order, place->before, place->current);
      place->before = races_join(order, place->before, after);
      place->current = NULL;
      place->earlier.count = 0;
      list_add_all(&place->earlier, &place->arrivals);
      list_add_all(&place->earlier, &place->raised);
      place->arrivals.count = place->raised.count = place->asked.count = 0;
      place->completed[1] = place->completed[0];
      place->completed[0] = event + 1;
      break;
    }
    case NOTE_PASS:
    case NOTE_ASK:
      list_add(&place->asked, event);
      break;
    case NOTE_RESET:
      place->arrivals.count = place->raised.count = place->earlier.count = place->asked.count = 0;
      place->completed[0] = place->completed[1] = 0;
      place->full = false;
      place->before = place->current = after;
      place->reset = event + 1;
      break;
    case NOTE_RELEASE:
      place->released = races_join(order, place->released, after);
      break;
    default:
      break;
  }
}

/* ---- A step ---- */
static void remember_step(Order *order, uint32_t process) {
  Races *races = order->races;
  Process *self = &order->processes[process];
  const PriorSteps *after = races_clock_after(order, process);
  for (uint32_t i = 0; i < notes.count; i++) {
    Note *item = &notes.items[i];
    if (note_is_memory(item)) {
      visit_granules(order, item, remember_access);
    } else if (item->kind >= NOTE_ARRIVE && item->kind <= NOTE_RELEASE) {
      item->phase = place_at(races, item->at)->phase;
      remember_place(order, item, after);
    }
  }
  self->woken_by = 0;
}

void races_step(Order *order, uint32_t process) {
  Races *races = order->races;
  Process *self = &order->processes[process];
  races->events =
      grown_list(races->events, order->depth, &races->event_capacity, sizeof *races->events);
  const PriorSteps *before = clock_with(self->clock, process, self->steps);
  const PriorSteps *clock = clock_of_waits(order, self, before);
  reverse_passes(order, process, before);
  races->conflicts.count = 0;
  for (uint32_t i = 0; i < notes.count; i++) {
    const Note *item = &notes.items[i];
    if (note_is_memory(item))
      visit_granules(order, item, find_conflicts);
    else if (item->kind >= NOTE_ARRIVE && item->kind <= NOTE_RESET)
      conflicts_of_place(races, item);
  }
  clock = settle_conflicts(order, process, clock);
  self->clock = clock;
  self->steps++;
  races->events[order->depth] = (StepEvent){process, self->steps, clock};
  remember_step(order, process);
}

void races_forget_reads(Order *order, uint32_t process, uint32_t since) {
  order->races->forgotten.process = process;
  order->races->forgotten.since = since;
  const Tree *tree = order->tree;
  for (uint32_t step = since; step < order->depth; step++) {
    if (order->races->events[step].process != process) continue;
    const TreeNode *node = &tree->nodes[step];
    for (uint32_t i = 0; i < node->note_count; i++) {
      const Note *item = &tree->notes[node->note_first + i];
      if (note_is_memory(item)) visit_granules(order, item, forget_read);
      if (item->kind != NOTE_ASK) continue;
      EventList *asked = &place_at(order->races, item->at)->asked;
      for (uint32_t k = 0; k < asked->count;)
        if (asked->items[k] == step)
          asked->items[k] = asked->items[--asked->count];
        else
          k++;
    }
  }
}
