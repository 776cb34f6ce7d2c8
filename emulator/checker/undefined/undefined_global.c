/* undefined_global.c: undefined bits and global memory, where bytes have no marks but count as written or not
 * (base/written.c).
 *
 * A load of bytes that nothing has written marks their bits as undefined in the register, a copy into shared memory
 * marks them there, and propagate.c follows them. A store of such bytes as they are makes its destination unwritten
 * again: kernels may copy padding. What is computed from them must not go to global memory. */
#include "base/events.h"
#include "base/tma_map.h"
#include "base/written.h"
#include "checker/undefined/marks.h"
#include "trial/trial.h"

OriginNumber undefined_from_global(Warp *warp, const Instruction *in, int lane, uint64_t address,
                                   uint32_t bytes, uint8_t *bits) {
  if (written_or_by_host(address, bytes)) return 0;
  uint32_t written = written_bits(address, bytes), first = 0;
  for (uint32_t i = 0; i < bytes; i++) bits[i] = written >> i & 1 ? 0 : 0xff;
  while (written >> first & 1) first++;
  const OriginPlace place = {
      .part = PART_GLOBAL,
      .index = trial_reads_unwritten(warp->cta->cluster->launch, address, bytes, false),
      .address = address + first};
  return undefined_origin(warp, in, lane, &place);
}

void undefined_to_global(const Warp *warp, uint64_t address, const uint8_t *bits, uint32_t bytes) {
  uint32_t stored = 0;
  for (uint32_t i = 0; i < bytes; i++) {
    if (bits[i] != 0xff) continue;
    written_clear(address + i, 1);
    stored |= 1u << i;
  }
  if (stored) trial_undefined_stored(warp->cta->cluster->launch, address, stored);
}

/* ---- Copies into shared memory ---- */

enum { CHUNK = 16 };

static void put_chunk(const AsyncOperation *operation, int lane, uint64_t from, uint32_t bytes,
                      uint32_t to, uint32_t ctas) {
  uint8_t bits[CHUNK] = {0};
  OriginNumber origin =
      undefined_from_global(operation->warp, operation->in, lane, from, bytes, bits);
  for (uint32_t left = origin ? ctas : 0; left; left &= left - 1)
    undefined_put(check_of(operation->warp),
                  (uint32_t)__builtin_ctz(left) << 24 | SHARED_OFFSET(to), bytes, bits, origin);
}

/* Bytes that follow each other in both memories, before swizzling. */
static void put_row(const AsyncOperation *operation, uint64_t from, uint32_t bytes, uint32_t offset,
                    uint32_t span) {
  if (written_or_by_host(from, bytes)) return;
  for (uint32_t done = 0; done < bytes;) {
    uint32_t at = offset + done, part = CHUNK - at % CHUNK;
    uint32_t ahead = CHUNK - (uint32_t)((from + done) % CHUNK); /* for written_here */
    if (part > ahead) part = ahead;
    if (part > bytes - done) part = bytes - done;
    put_chunk(operation, operation->lane, from + done, part, tma_swizzle(span, at),
              operation->cta_mask);
    done += part;
  }
}

static void put_tensor(const AsyncOperation *operation) {
  TmaRows rows;
  TmaWalk walk = tma_walk(&operation->tensor.map, &operation->tensor.place);
  while (tma_walk_next(&walk, &rows))
    for (uint32_t i = 0; i < rows.count && rows.bytes; i++)
      put_row(operation, rows.global + i * rows.step, rows.bytes,
              SHARED_OFFSET(operation->shared) + rows.offset + i * walk.pitch + rows.left,
              operation->tensor.map.swizzle_span);
}

static void put_of_lanes(const AsyncOperation *operation) {
  FOR_LANES(lane, operation->copy.lanes) {
    uint32_t to = operation->copy.shared[lane], bytes = operation->copy.source_bytes[lane];
    const uint64_t from = (uint64_t)(uintptr_t)operation->copy.source[lane];
    if (bytes && !written_here(from, bytes))
      put_chunk(operation, lane, from, bytes, to, 1u << SHARED_RANK(to));
  }
}

/* What the copy has written there is known: now it is marked. */
static void operation_issued(Warp *warp, AsyncOperation *operation, const CopiedPieces *pieces) {
  (void)pieces;
  const Launch *launch = warp->cta->cluster->launch;
  if (!written_map.bytes || !operation->checked || !launch->global) return;
  if (operation->kind == ASYNC_TENSOR_LOAD)
    put_tensor(operation);
  else if (operation->kind == ASYNC_BULK_LOAD)
    put_row(operation, (uint64_t)(uintptr_t)operation->global, operation->bytes,
            SHARED_OFFSET(operation->shared), 0);
  else if (operation->kind == ASYNC_CP_ASYNC)
    put_of_lanes(operation);
}

static const Subscriber UNDEFINED = {.operation_issued = operation_issued};
SUBSCRIBE(UNDEFINED_EVENTS, UNDEFINED)
