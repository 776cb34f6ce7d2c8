/* unwritten_global.c: reads of global memory that nothing has written.
 *
 * base/written.c knows which bytes have been written. A load of others marks their bits as
 * undefined in the register, a copy into shared memory marks them there, and propagate.c
 * follows them. A store of such bytes as they are makes its destination unwritten again: kernels
 * may copy padding. What is computed from them must not go to global memory, and no atomic operation
 * but an exchange may meet them there. */
#include <stdio.h>

#include "base/events.h"
#include "base/fault.h"
#include "base/memory.h"
#include "base/tma_map.h"
#include "base/written.h"
#include "checker/undefined/marks.h"
#include "trial/trial.h"

enum { CHUNK = 16, TEXT = 128 };

void unwritten_describe(uint64_t address, char *text, size_t capacity) {
  const Allocation *found = memory_find(address);
  if (!found)
    snprintf(text, capacity, "global memory at 0x%llx", (unsigned long long)address);
  else
    snprintf(text, capacity, "global memory at byte %llu of an allocation of %llu bytes",
             (unsigned long long)(address - found->first),
             (unsigned long long)(found->end - found->first));
}

static bool is_written(uint64_t first, uint64_t bytes) {
  return written_all(first, bytes) || written_by_host(first, bytes);
}

/* ---- Loads and stores of threads ---- */

void check_unwritten(Warp *warp, LaneMask mask, const uint64_t *addresses, bool run, uint32_t bytes,
                     Access access) {
  if (!written_map.bytes) return;
  if (run && access == ACCESS_WRITE) {
    written_set(addresses[0], (uint64_t)LANES * bytes);
  } else if (run) {
    if (!is_written(addresses[0], (uint64_t)LANES * bytes)) warp->watched |= WATCH_UNDEFINED;
  } else {
    for (LaneMask left = mask; left; left &= left - 1) {
      uint64_t address = addresses[first_lane(left)];
      if (written_here(address, bytes)) continue;
      if (access == ACCESS_WRITE)
        written_set(address, bytes);
      else if (!written_by_host(address, bytes))
        warp->watched |= WATCH_UNDEFINED;
    }
  }
}

/* An atomic or a reduction reads what it changes. Have an earlier launch's findings left something there?
 * In the trial it finds other values. */
static bool changes_pending(Warp *warp, const Instruction *in, int lane, uint64_t first,
                            uint64_t bytes) {
  const PendingNumber left = trial_reads_unwritten(warp->cta->cluster->launch, first, bytes, true);
  if (left)
    trial_finding(&(Doubt){.warp = warp,
                           .in = in,
                           .lanes = 1u << lane,
                           .what = &(const Finding){.rule = NULL},
                           .left = left,
                           .may_wait = true});
  return left != 0;
}

void check_unwritten_atomic(Warp *warp, const Instruction *in, LaneMask mask, uint8_t *const *at,
                            uint32_t bytes, bool exchanges) {
  if (!written_map.bytes) return;
  for (LaneMask left = mask; left; left &= left - 1) {
    uint64_t address = (uint64_t)(uintptr_t)at[first_lane(left)];
    if (written_here(address, bytes)) continue;
    bool by_host = written_by_host(address, bytes);
    bool waits = !by_host && changes_pending(warp, in, first_lane(left), address, bytes);
    written_set(address, bytes);
    if (exchanges || by_host || waits) continue;
    char memory[TEXT];
    unwritten_describe(address, memory, sizeof memory);
    finding(warp, in, 1u << first_lane(left), "unwritten-memory-read",
            "atomically changes %s, which nothing has written.\n"
            "Fresh memory is not zeroed: set it before the kernel (cudaMemset), or in a kernel "
            "before.",
            memory);
  }
}

OriginNumber check_unwritten_bits(Warp *warp, const Instruction *in, int lane, uint64_t address,
                                  uint32_t bytes, uint8_t *bits) {
  if (is_written(address, bytes)) return 0;
  uint32_t written = written_bits(address, bytes), first = 0;
  for (uint32_t i = 0; i < bytes; i++) bits[i] = written >> i & 1 ? 0 : 0xff;
  while (written >> first & 1) first++;
  OriginPlace place = {
      .part = PART_GLOBAL,
      .index = (int)trial_reads_unwritten(warp->cta->cluster->launch, address, bytes, false),
      .address = address + first};
  return undefined_origin(check_of(warp), warp, in, lane, place);
}

void unwritten_stored(const Warp *warp, uint64_t address, const uint8_t *bits, uint32_t bytes) {
  uint32_t stored = 0;
  for (uint32_t i = 0; i < bytes; i++) {
    if (bits[i] != 0xff) continue;
    written_clear(address + i, 1);
    stored |= 1u << i;
  }
  if (stored) emit_undefined_stored(warp->cta->cluster->launch, address, stored);
}

/* ---- Copies into shared memory ---- */

static void put_chunk(Warp *warp, const Instruction *in, int lane, uint64_t from, uint32_t bytes,
                      uint32_t to, uint32_t ctas) {
  uint8_t bits[CHUNK] = {0};
  OriginNumber origin = check_unwritten_bits(warp, in, lane, from, bytes, bits);
  for (uint32_t left = origin ? ctas : 0; left; left &= left - 1)
    check_undefined_put(warp, (uint32_t)__builtin_ctz(left) << 24 | SHARED_OFFSET(to), bytes, bits,
                        origin);
}

/* Bytes that follow each other in both memories, before swizzling. */
static void put_row(const AsyncOperation *operation, uint64_t from, uint32_t bytes, uint32_t offset,
                    uint32_t span) {
  if (is_written(from, bytes)) return;
  for (uint32_t done = 0; done < bytes;) {
    uint32_t at = offset + done, part = CHUNK - at % CHUNK;
    uint32_t ahead = CHUNK - (uint32_t)((from + done) % CHUNK); /* for written_here */
    if (part > ahead) part = ahead;
    if (part > bytes - done) part = bytes - done;
    put_chunk(operation->warp, operation->in, operation->lane, from + done, part,
              tma_swizzle(span, at), operation->cta_mask);
    done += part;
  }
}

void unwritten_loaded(const AsyncOperation *operation) {
  if (!written_map.bytes) return;
  uint32_t offset = SHARED_OFFSET(operation->shared);
  if (operation->kind == ASYNC_BULK_LOAD) {
    put_row(operation, (uint64_t)(uintptr_t)operation->global, operation->bytes, offset, 0);
    return;
  }
  TmaWalk walk;
  TmaRows rows;
  tma_walk_begin(&walk, &operation->tensor.map, &operation->tensor.place);
  while (tma_walk_next(&walk, &rows))
    for (uint32_t i = 0; i < rows.count && rows.bytes; i++)
      put_row(operation, rows.global + i * rows.step, rows.bytes,
              offset + rows.offset + i * walk.pitch + rows.left,
              operation->tensor.map.swizzle_span);
}

void unwritten_copied(Warp *warp, const Instruction *in, LaneMask mask,
                      const uint8_t *const *sources, const uint32_t *bytes,
                      const uint32_t *shared) {
  if (!written_map.bytes) return;
  for (LaneMask left = mask; left; left &= left - 1) {
    int lane = first_lane(left);
    if (bytes[lane])
      put_chunk(warp, in, lane, (uint64_t)(uintptr_t)sources[lane], bytes[lane], shared[lane],
                1u << SHARED_RANK(shared[lane]));
  }
}

/* ---- Copies to global memory ---- */

void unwritten_overwritten(const AsyncOperation *operation, uint64_t first, uint64_t bytes,
                           bool reduces) {
  if (is_written(first, bytes)) return;
  if (reduces && !changes_pending(operation->warp, operation->in, operation->lane, first, bytes)) {
    char memory[TEXT];
    uint64_t at = first;
    while (written_here(at, 1)) at++;
    unwritten_describe(at, memory, sizeof memory);
    finding(operation->warp, operation->in, 1u << operation->lane, "unwritten-memory-read",
            "reduces into %s, which nothing has written.\n"
            "Fresh memory is not zeroed: set it before the kernel (cudaMemset), or store the "
            "first tile instead of reducing it.",
            memory);
  }
  written_set(first, bytes);
}
