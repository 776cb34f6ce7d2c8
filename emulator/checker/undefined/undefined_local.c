/* undefined_local.c: reads of .local memory that the thread has never written: arrays that
 * are indexed at run time, structs, variables whose address is taken, arguments of calls. And bytes of the kernel's
 * parameters that the host has not passed: in gaps between parameters, where a kernel gets by an index beyond the end
 * of a parameter, and beyond the end of a packed buffer that was too short.
 *
 * A mask for each byte has a bit for each lane that has written its own byte. A read of others
 * marks them as undefined, once, and propagate.c follows the marks. Threads copy structs with
 * the padding between their members, so such bytes may go to global memory as they are; they then
 * count as unwritten there. The memory of a function that has returned counts as written for the
 * next function that is called. */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "checker/undefined/marks.h"

void undefined_make_local(Warp *warp) {
  struct WarpUndefined *table = undefined_table(warp);
  size_t bytes = (size_t)warp->local_bytes * LANES;
  if (table->local || !warp->local) return;
  table->local = calloc(bytes + 16, 1);
  table->local_origins = calloc(bytes + 16, sizeof *table->local_origins);
  if (!table->local || !table->local_origins) out_of_memory();
}

void undefined_begin_local(Warp *warp) {
  if (warp->local_written)
    memset(warp->local_written, 0, warp->local_end * sizeof *warp->local_written);
  warp->local_end = 0;
}

void undefined_end_local(Warp *warp) {
  free(warp->local_written);
  warp->local_written = NULL;
}

static LaneMask *written_by(Warp *warp) {
  if (!warp->local_written)
    warp->local_written = new_zeros(warp->local_bytes + 1u, sizeof *warp->local_written);
  return warp->local_written;
}

/* Is this host address in the lane's own memory, and at which byte? */
static bool find_byte(const Warp *warp, int lane, const uint8_t *at, uint32_t *byte) {
  const uint8_t *first = warp->local + (size_t)lane * warp->local_bytes;
  if (!warp->local || at < first || at >= first + warp->local_bytes) return false;
  *byte = (uint32_t)(at - first);
  return true;
}

static void set_written(Warp *warp, int lane, uint32_t byte, uint32_t bytes) {
  LaneMask *written = written_by(warp);
  for (uint32_t i = 0; i < bytes; i++) written[byte + i] |= 1u << lane;
  if (byte + bytes > warp->local_end) warp->local_end = byte + bytes;
}

static void write_bytes(Warp *warp, int lane, uint32_t byte, uint32_t bytes) {
  set_written(warp, lane, byte, bytes);
  struct WarpUndefined *table = warp->undefined;
  if (table && table->local)
    memset(table->local + (size_t)lane * warp->local_bytes + byte, 0, bytes);
}

static bool all_written(Warp *warp, int lane, uint32_t byte, uint32_t bytes) {
  const LaneMask *written = written_by(warp);
  LaneMask by_all = ~0u;
  for (uint32_t i = 0; i < bytes; i++) by_all &= written[byte + i];
  return by_all >> lane & 1;
}

static void mark_unwritten(Warp *warp, const Instruction *in, int lane, uint32_t byte,
                           uint32_t bytes) {
  undefined_make_local(warp);
  struct WarpUndefined *table = warp->undefined;
  const LaneMask *written = warp->local_written;
  size_t place = (size_t)lane * warp->local_bytes + byte;
  OriginNumber origin = 0;
  for (uint32_t i = 0; i < bytes; i++) {
    if (written[byte + i] >> lane & 1) continue;
    const OriginPlace where = {.part = PART_LOCAL, .offset = byte + i};
    if (!origin) origin = undefined_origin(warp, in, lane, &where);
    table->local[place + i] = 0xff;
    table->local_origins[place + i] = origin;
  }
  set_written(warp, lane, byte, bytes); /* so that each byte is marked once */
}

static void read_bytes(Warp *warp, const Instruction *in, int lane, uint32_t byte, uint32_t bytes,
                       UndefinedUse use) {
  if (!all_written(warp, lane, byte, bytes)) mark_unwritten(warp, in, lane, byte, bytes);
  const struct WarpUndefined *table = warp->undefined;
  if (!table || !table->local) return;
  size_t place = (size_t)lane * warp->local_bytes + byte;
  for (uint32_t i = 0; i < bytes; i++) {
    if (!table->local[place + i]) continue;
    warp->watched |= WATCH_UNDEFINED;
    if (use) undefined_matters(warp, in, lane, table->local_origins[place + i], use);
    return;
  }
}

static bool is_passed(const Launch *launch, uint64_t byte) {
  const FunctionTraits *traits = launch->traits;
  if (byte >= launch->parameter_bytes - launch->parameters_missing) return false;
  for (uint32_t i = 0; i < traits->parameter_count; i++)
    if (byte - traits->parameter_offsets[i] < traits->parameter_sizes[i]) return true;
  return false;
}

uint32_t parameter_gaps(const Launch *launch, const uint8_t *at, uint32_t bytes) {
  uint32_t gaps = 0;
  if (!launch->traits->parameter_gaps && !launch->parameters_missing) return 0;
  if (at < launch->parameters || at >= launch->parameters + launch->parameter_bytes) return 0;
  for (uint32_t i = 0; i < bytes; i++)
    if (!is_passed(launch, (uint64_t)(at - launch->parameters) + i)) gaps |= 1u << i;
  return gaps;
}

void check_local(Warp *warp, const Instruction *in, LaneMask mask, uint8_t *const *at,
                 uint32_t bytes, Access access, UndefinedUse use) {
  FOR_LANES(lane, mask) {
    uint32_t byte;
    if (!find_byte(warp, lane, at[lane], &byte)) {
      if (parameter_gaps(warp->cta->cluster->launch, at[lane], bytes))
        warp->watched |= WATCH_UNDEFINED;
    } else if (access == ACCESS_WRITE) {
      write_bytes(warp, lane, byte, bytes);
    } else {
      read_bytes(warp, in, lane, byte, bytes, use);
    }
  }
}

void check_local_copied(Warp *warp, int lane, uint32_t to, uint32_t from, uint32_t bytes) {
  LaneMask *written = written_by(warp), own = 1u << lane;
  for (uint32_t i = 0; i < bytes; i++)
    written[to + i] = (written[to + i] & ~own) | (written[from + i] & own);
  if (to + bytes > warp->local_end) warp->local_end = to + bytes;
  const struct WarpUndefined *table = warp->undefined;
  if (!table || !table->local) return;
  size_t first = (size_t)lane * warp->local_bytes;
  memmove(table->local + first + to, table->local + first + from, bytes);
  memmove(table->local_origins + first + to, table->local_origins + first + from,
          bytes * sizeof *table->local_origins);
}
