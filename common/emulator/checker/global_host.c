/* global_host.c: which bytes of memory that the host can touch itself a launch has read or written,
 * so that the runtime can notice a host that touches them too early (runtime/host_watch.c). */
#include <string.h>

#include "checker/check_global.h"

/* The last launch that has executed a fence of .sys scope. */
static uint32_t fenced_for_host;

void global_note_system_fence(const GlobalLaunch *launch) {
  __atomic_store_n(&fenced_for_host, launch->operation, __ATOMIC_RELAXED);
}

typedef struct {
  const GlobalNow *now;
  HostPageUse *use;
} Look;

static void mark(uint64_t *bits, uint64_t address, uint32_t bytes) {
  uint32_t first = (uint32_t)(address % HOST_PAGE_BYTES);
  for (uint32_t i = first; i < first + bytes; i++) bits[i / 64] |= 1ull << i % 64;
}

/* Strong accesses of .sys scope are how a kernel and the host talk to each other. */
static bool look_at_cell(void *context, uint64_t address, uint32_t bytes, GlobalCell cell) {
  const Look *look = context;
  const GlobalNow *now = look->now;
  HostPageUse *use = look->use;
  FOR_GLOBAL_NUMBERS(number, cell.writes) {
    const GlobalAccess *access = global_access(number);
    if (access->operation != now->launch->operation) continue;
    use->talks |= access->reach == REACH_SYSTEM;
    use->writer = access->in;
    mark(use->written, address, bytes);
    break;
  }
  FOR_GLOBAL_NUMBERS(number, cell.reads) {
    const GlobalAccess *access = global_access(number);
    if (access->operation != now->launch->operation || access->reach == REACH_SYSTEM) continue;
    use->reader = access->in;
    mark(use->read, address, bytes);
    break;
  }
  return true;
}

bool check_host_page(uint32_t operation, uint64_t page, HostPageUse *use) {
  memset(use, 0, sizeof *use);
  GlobalLaunch launch = {.operation = operation};
  global_limits(&launch);
  GlobalNow now = {.launch = &launch};
  Look look = {&now, use};
  use->talks = __atomic_load_n(&fenced_for_host, __ATOMIC_RELAXED) == operation;
  if (!use->talks) global_shadow_each(operation, page, page + HOST_PAGE_BYTES, look_at_cell, &look);
  return use->talks || use->writer || use->reader;
}
