/* layouts.c: with which swizzle a tile was written, and whether it is read with the same one.
 *
 * Copies and wgmma name theirs. Plain loads of a swizzled tile must undo the swizzle.
 * Only the author knows which element a thread should read: a tile may be read in any order, for
 * example to copy it byte by byte or to sum it. So this check is optional (EMULATOR_CHECK=layout)
 * and goes by the order of addresses. Code that undoes the swizzle reads a row's elements in
 * ascending order across the lanes, by rows and by columns. In code that does not, or that starts
 * from the wrong base, the addresses jump back and forth within the row. */
#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "base/settings.h"
#include "base/tma_map.h"
#include "checker/shared/shared_state.h"

enum { CHUNK_BYTES = 16, ROW_CHUNKS = 8, LINE_BYTES = 128 };

/* Where the bytes at this address would lie without the swizzle. */
static uint32_t unswizzled(uint32_t offset, uint32_t span) {
  return offset ^ (offset >> 3 & (span - CHUNK_BYTES));
}

static void report_order(Warp *warp, const Instruction *in, uint32_t first, uint32_t span,
                         const char *order) {
  const uint32_t pattern = span * 8;
  const LoadedTile *tile = check_tile_at(warp, first);
  const bool shifted = tile && tile->first % pattern != 0;
  const Finding what = {.rule = shifted ? RULE(SWIZZLE_BASE) : RULE(SWIZZLE_IGNORED),
                        .memory = ABOUT_SHARED,
                        .rank = (uint8_t)SHARED_RANK(first),
                        .address = SHARED_OFFSET(first)};
  finding_of(
      warp, in, 0, &what,
      "reads a row of a tile, from shared memory at offset 0x%x on, in the order%s of its 16-byte "
      "chunks: the copy put them there with a %u-byte swizzle.\n"
      "%sIn a tile that begins at a multiple of %u bytes, byte b lies at b ^ (b >> 3 & 0x%x). "
      "If the order does not matter here, nothing is wrong.",
      SHARED_OFFSET(first), order, span,
      shifted ? phrase("The tile begins at offset 0x%x: let it begin at a multiple of %u bytes. ",
                       tile->first, pattern)
                    .text
              : "",
      pattern, span - CHUNK_BYTES);
}

void layouts_read(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses) {
  ClusterCheck *check = check_of(warp);
  uint32_t row = UINT32_MAX, column = 0, steps_back = 0, span_found = 0, first = 0;
  char order[ROW_CHUNKS * 8] = "";
  size_t used = 0;
  FOR_LANES(lane, mask) {
    uint32_t address = addresses[lane];
    uint32_t rank = SHARED_RANK(address), offset = SHARED_OFFSET(address);
    if (rank >= check->cta_count || offset / 4 >= check->shared->memory[rank].words) return;
    uint8_t layout = check->shared->memory[rank].layouts[offset / (LINE_WORDS * 4)];
    if (layout <= 1) return;
    uint32_t span = (layout - 1) * 16u, place = unswizzled(offset, span);
    uint32_t chunk = place % span / CHUNK_BYTES;
    if (place / span != row) {
      if (steps_back > 1) break;
      row = place / span;
      steps_back = 0;
      used = 0;
      first = address;
      span_found = span;
    } else if (chunk == column) {
      continue;
    } else if (chunk < column) {
      steps_back++;
    }
    column = chunk;
    if (used + 4 < sizeof order)
      used += (size_t)snprintf(order + used, sizeof order - used, " %u", chunk);
  }
  if (steps_back <= 1) return; /* a rotated row has one */
  report_order(warp, in, first, span_found, order);
}

static uint8_t layout_of(uint32_t swizzle_span) {
  return (uint8_t)(swizzle_span < 32 ? 1 : swizzle_span / 16 + 1);
}

static Phrase layout_name(uint8_t layout) {
  return layout == 1 ? phrase("no swizzle") : phrase("a %u-byte swizzle", (layout - 1) * 16u);
}

/* The lines of 128 bytes that a tile takes. False: none that the checker watches. */
static bool find_lines(const ClusterCheck *check, uint32_t address, uint32_t bytes, uint32_t *first,
                       uint32_t *last) {
  if (SHARED_RANK(address) >= check->cta_count || bytes == 0) return false;
  *first = SHARED_OFFSET(address) / LINE_BYTES;
  *last = (SHARED_OFFSET(address) + bytes - 1) / LINE_BYTES;
  if (*last > check->words / LINE_WORDS) *last = check->words / LINE_WORDS;
  return *first <= *last;
}

static void tile_written(const ClusterCheck *check, const Instruction *in, uint32_t address,
                         uint32_t bytes, uint32_t swizzle_span, uint32_t row_bytes) {
  uint32_t first, last, offset = SHARED_OFFSET(address);
  if (SHARED_RANK(address) >= check->cta_count) return;
  struct CheckedMemory *memory = &check->shared->memory[SHARED_RANK(address)];
  memory->tiles[memory->tile_count++ % LOADED_TILES] =
      (LoadedTile){offset, offset + bytes, row_bytes, in};
  if (!find_lines(check, address, bytes, &first, &last)) return;
  memory->any_layout = true;
  memset(memory->layouts + first, layout_of(swizzle_span), last - first + 1);
}

void layouts_read_by(Warp *warp, const Instruction *in, const SharedOperand *tile,
                     bool multiplied) {
  /* A store with another swizzle is well defined, and may be there to look at the layout. */
  if (!multiplied && !settings()->check_layout) return;
  const ClusterCheck *check = check_of(warp);
  uint32_t first, last, line = UINT32_MAX;
  if (!find_lines(check, tile->first, tile->bytes, &first, &last)) return;
  const uint8_t *layouts = check->shared->memory[SHARED_RANK(tile->first)].layouts;
  const uint8_t layout = layout_of(tile->swizzle_span);
  for (uint32_t i = last + 1; i-- > first;) {
    /* Threads have put a part of the tile there. If they are not done, that is another mistake. */
    if (!layouts[i] && !multiplied) return;
    if (layouts[i] && layouts[i] != layout) line = i;
  }
  if (line == UINT32_MAX) return;
  const Finding what = {.rule = multiplied ? RULE(SWIZZLE_MISMATCH) : RULE(SWIZZLE_IGNORED),
                        .memory = ABOUT_SHARED,
                        .rank = (uint8_t)warp->cta->rank,
                        .bytes = LINE_BYTES,
                        .address = line * LINE_BYTES};
  finding_of(warp, in, 0, &what,
             "%s shared memory at offset 0x%x with %s, but the copy that put the tile there used "
             "%s.\n%s",
             multiplied ? "multiplies from" : "stores from", line * LINE_BYTES,
             layout_name(layout).text, layout_name(layouts[line]).text,
             multiplied ? "The tensor map's swizzle and the layout bits of the matrix descriptor "
                          "must be the same."
                        : "Name the same swizzle in both tensor maps. If the tile is stored as it "
                          "lies to look at it, nothing is wrong.");
}

const LoadedTile *check_tile_at(const Warp *warp, uint32_t address) {
  const struct CheckedMemory *memory = &check_of(warp)->shared->memory[SHARED_RANK(address)];
  uint32_t offset = SHARED_OFFSET(address);
  for (uint32_t i = memory->tile_count; i-- > 0 && memory->tile_count - i <= LOADED_TILES;) {
    const LoadedTile *loaded = &memory->tiles[i % LOADED_TILES];
    if (offset >= loaded->first && offset < loaded->end && loaded->row_bytes) return loaded;
  }
  return NULL;
}

const LoadedTile *tile_beside(const ClusterCheck *check, uint32_t address) {
  enum { LITTLE = 128 };
  const struct CheckedMemory *memory = &check->shared->memory[SHARED_RANK(address)];
  const uint32_t offset = SHARED_OFFSET(address);
  for (uint32_t i = 0; i < memory->tile_count && i < LOADED_TILES; i++) {
    const LoadedTile *tile = &memory->tiles[i];
    if (tile->first - offset - 1 < LITTLE || offset - tile->end < LITTLE) return tile;
  }
  return NULL;
}

/* ---- Copies ---- */

/* How far the pieces reach in each block's memory. */
static uint32_t end_of_pieces(const SharedPiece *pieces, int count) {
  uint32_t end = 0;
  for (int i = 0; i < count; i++) {
    uint32_t end_of_piece = SHARED_OFFSET(pieces[i].address) + pieces[i].bytes;
    end = end_of_piece > end ? end_of_piece : end;
  }
  return end;
}

static void load_issues(const AsyncOperation *operation, const SharedPiece *writes, int count) {
  const TmaMap *map = &operation->tensor.map;
  const uint32_t bytes = end_of_pieces(writes, count) - SHARED_OFFSET(operation->shared);
  const TmaWalk walk = tma_walk(map, &operation->tensor.place);
  for (uint32_t left = operation->cta_mask; left; left &= left - 1)
    tile_written(check_of(operation->warp), operation->in,
                 (uint32_t)__builtin_ctz(left) << 24 | SHARED_OFFSET(operation->shared), bytes,
                 map->swizzle_span, walk.pitch);
}

static void bulk_load_issues(const ClusterCheck *check, const AsyncOperation *operation,
                             const SharedPiece *writes, int count) {
  for (int i = 0; i < count; i++) {
    const uint32_t first = SHARED_OFFSET(writes[i].address);
    struct CheckedMemory *memory = &check->shared->memory[SHARED_RANK(writes[i].address)];
    memory->tiles[memory->tile_count++ % LOADED_TILES] =
        (LoadedTile){.first = first, .end = first + writes[i].bytes, .in = operation->in};
  }
}

static void store_issues(Warp *warp, const AsyncOperation *operation, const SharedPiece *reads,
                         int count) {
  const SharedOperand tile = {
      .first = operation->shared,
      .bytes = end_of_pieces(reads, count) - SHARED_OFFSET(operation->shared),
      .swizzle_span = operation->tensor.map.swizzle_span};
  layouts_read_by(warp, operation->in, &tile, false);
}

static void operation_issues(Warp *warp, AsyncOperation *operation, const CopiedPieces *pieces) {
  if (operation->kind == ASYNC_TENSOR_LOAD)
    load_issues(operation, pieces->writes, pieces->write_count);
  else if (operation->kind == ASYNC_BULK_LOAD)
    bulk_load_issues(check_of(warp), operation, pieces->writes, pieces->write_count);
  else if (operation->kind == ASYNC_TENSOR_STORE || operation->kind == ASYNC_TENSOR_REDUCE)
    store_issues(warp, operation, pieces->reads, pieces->read_count);
}

static const Subscriber TILES = {.operation_issues = operation_issues};
SUBSCRIBE(TILE_EVENTS, TILES)
