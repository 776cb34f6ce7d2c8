/* process.c: the processes of an order: their names, and how they come and go. */
#include <stdlib.h>

#include "base/holds.h"
#include "explore/explore.h"

/* ---- Names ---- */
ProcessName process_name(NameParts parts) {
  return (ProcessName)parts.cluster << NAME_CLUSTER_AT | (ProcessName)parts.warp << NAME_WARP_AT |
         (ProcessName)parts.lane << NAME_LANE_AT | parts.copy;
}

NameParts name_parts(ProcessName name) {
  name &= ~NAME_EXPIRED;
  return (NameParts){.cluster = (uint32_t)(name >> NAME_CLUSTER_AT),
                     .warp = (uint32_t)(name >> NAME_WARP_AT) & ((1u << NAME_WARP_BITS) - 1),
                     .lane = (uint32_t)(name >> NAME_LANE_AT) & (LANES - 1),
                     .copy = (uint32_t)name & ((1u << NAME_COPY_BITS) - 1)};
}

/* ---- Processes ---- */
static uint32_t process_slot(const Order *order, ProcessName name) {
  uint32_t slot = (uint32_t)(name * 0x9e3779b97f4a7c15ull >> 32) & (order->table_size - 1);
  while (order->table[slot] && order->processes[order->table[slot] - 1].name != name)
    slot = (slot + 1) & (order->table_size - 1);
  return slot;
}

Process *process_named(Order *order, ProcessName name) {
  const uint32_t found = order->table[process_slot(order, name & ~NAME_EXPIRED)];
  return found ? &order->processes[found - 1] : NULL;
}

static Process *new_process(Order *order, ProcessName name) {
  order->processes =
      grown_list(order->processes, order->count, &order->capacity, sizeof *order->processes);
  if (order->count * 2 >= order->table_size) {
    order->table_size = order->table_size ? order->table_size * 2 : 256;
    free(order->table);
    order->table = new_zeros(order->table_size, sizeof *order->table);
    for (uint32_t i = 0; i < order->count; i++)
      order->table[process_slot(order, order->processes[i].name)] = i + 1;
  }
  HOLDS(!process_named(order, name));
  Process *made = &order->processes[order->count];
  *made = (Process){.name = name};
  order->table[process_slot(order, name)] = ++order->count;
  return made;
}

ProcessName name_of_lanes(const Context *context, const Warp *warp, uint32_t lane) {
  return process_name((NameParts){context->cluster.number, agent_of(warp), lane, 0});
}

int number_of_group(const Warp *warp, uint32_t lane) {
  for (uint32_t i = 0; i < warp->flow->count; i++)
    if (warp->flow->groups[i].mask >> lane & 1u) return (int)i;
  return -1;
}

/* After a step of the warp: groups have split, merged and ended. New ones come after the step, and
 * merged ones after the steps of both. */
void update_processes(Order *order, Context *context, Warp *warp, const PriorSteps *clock) {
  const struct WarpFlow *flow = warp->flow;
  for (uint32_t i = 0; i < flow->count; i++) {
    const uint32_t lane = (uint32_t)first_lane(flow->groups[i].mask);
    const ProcessName name = name_of_lanes(context, warp, lane);
    Process *process = process_named(order, name);
    if (process && !process->gone) continue;
    if (!process) process = new_process(order, name);
    process->context = context;
    process->warp = warp;
    process->lane = lane;
    process->gone = process->polls = process->blocked = false;
    if (order->races) process->clock = races_join(order, process->clock, clock);
  }
  for (uint32_t lane = 0; lane < LANES; lane++) {
    Process *process = process_named(order, name_of_lanes(context, warp, lane));
    if (!process || process->gone) continue;
    const int group = number_of_group(warp, lane);
    const uint32_t first = group < 0 ? LANES : (uint32_t)first_lane(flow->groups[group].mask);
    if (first == lane) continue;
    process->gone = true;
    if (group < 0 || !order->races) continue;
    const PriorSteps *own = races_clock_after(order, index_of_process(order, process));
    Process *merged = process_named(order, name_of_lanes(context, warp, first));
    HOLDS(merged && !merged->gone);
    merged->clock = races_join(order, merged->clock, own);
  }
}

void add_copy_process(Order *order, AsyncOperation *operation, const PriorSteps *clock) {
  Context *context = (Context *)(void *)operation->warp->cta->cluster; /* its first member */
  const uint32_t warp = agent_of(operation->warp);
  uint32_t all = 0;
  for (uint32_t i = 0; i < order->context_count && order->contexts[i] != context; i++)
    all += order->contexts[i]->warp_count;
  const uint32_t number = ++order->issued[(all + warp) * LANES + operation->lane];
  Process *made = new_process(
      order, process_name((NameParts){context->cluster.number, warp, operation->lane, number}));
  made->context = context;
  made->warp = operation->warp;
  made->lane = operation->lane;
  made->operation = operation;
  made->clock = clock;
  operation->process = index_of_process(order, made);
}
