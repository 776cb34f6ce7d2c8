/* tma.c: cp.async.bulk.tensor, its prefetch, and cp.reduce.async.bulk.tensor.
 *
 * Issuing copies the map's 128 bytes and the coordinates, checks every address, and explains any
 * fault that the engine would report. Landing walks the rows of the box (tma_map.h). */
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include "base/intrinsics.h"
#endif

#include "async/async.h"
#include "base/access.h"
#include "base/fault.h"
#include "base/memory.h"
#include "base/settings.h"
#include "state/cluster.h"

typedef enum { TENSOR_LOAD, TENSOR_STORE, TENSOR_PREFETCH } TensorWay;
typedef struct {
  uint8_t way, dimensions, window, reduce;
  bool im2col, no_offsets;
  int8_t map, coordinates, shared, barrier, offsets, mask; /* operands; -1: none */
} TensorForm;

enum {
  MAX_ROW_BYTES = 256 * 32, /* of the widest box, in slices of 32 bytes */
  INLINE_BYTES_MOST = 512,
  ROWS_AHEAD = 16,
  ROWS_FIRST = 32,         /* fetched by the host while the copy is being issued */
  STREAMED_BYTES = 4 << 20 /* tensors larger than a core's cache */
};

/* ---- Landing --------------------------------------------------------------------------------- */
/* NaN fill is 0x7ff7 in every 16 bits, whatever the type. */
static void fill_row(const TmaMap *map, uint8_t *bytes, size_t count) {
  if (!map->fill_nan) {
    memset(bytes, 0, count);
    return;
  }
  for (size_t i = 0; i < count; i++) bytes[i] = i % 2 ? 0x7f : 0xf7;
}

/* Multiples of 16 bytes: most rows are too short for a memcpy call. */
static inline void copy_row(uint8_t *to, const uint8_t *from, uint32_t bytes) {
  if (bytes > INLINE_BYTES_MOST) {
    memcpy(to, from, bytes);
    return;
  }
  for (; bytes >= 64; to += 64, from += 64, bytes -= 64) memcpy(to, from, 64);
  for (; bytes; to += 16, from += 16, bytes -= 16) memcpy(to, from, 16);
}

enum { LINE = 128, CHUNK = 16 }; /* bytes */
#ifdef __AVX512F__
/* Chunk i of a line moves to chunk i ^ pattern / CHUNK, in both directions. */
static inline void swizzle_line(uint8_t *to, const uint8_t *from, uint32_t pattern) {
  static const uint64_t orders[4][8] = {{0, 1, 2, 3, 4, 5, 6, 7},
                                        {2, 3, 0, 1, 6, 7, 4, 5},
                                        {4, 5, 6, 7, 0, 1, 2, 3},
                                        {6, 7, 4, 5, 2, 3, 0, 1}};
  const __m512i order = _mm512_loadu_si512(orders[pattern / CHUNK % 4]);
  const uint32_t half = pattern & 64;
  const __m512i first = _mm512_loadu_si512(from), second = _mm512_loadu_si512(from + 64);
  _mm512_storeu_si512(to + half, _mm512_permutexvar_epi64(order, first));
  _mm512_storeu_si512(to + (64 - half), _mm512_permutexvar_epi64(order, second));
}
#else
static inline void swizzle_line(uint8_t *to, const uint8_t *from, uint32_t pattern) {
  for (uint32_t i = 0; i < LINE; i += CHUNK) memcpy(to + (i ^ pattern), from + i, CHUNK);
}
#endif

/* Copies between a linear row and its swizzled 16-byte chunks in shared memory. A swizzle moves
 * chunks within 128 bytes, so one pattern serves all of them. */
static inline void swizzle_row(uint8_t *cta, uint32_t offset, uint32_t span, uint8_t *row,
                               uint32_t bytes, bool put) {
  while (bytes) {
    uint32_t pattern = tma_swizzle(span, offset) ^ offset, part = LINE - offset % LINE;
    if (part > bytes) part = bytes;
    if (part == LINE)
      swizzle_line(put ? cta + offset : row, put ? row : cta + offset, pattern);
    else
      for (uint32_t i = 0; i < part; i += CHUNK) {
        uint8_t *chunk = cta + ((offset + i) ^ pattern);
        memcpy(put ? chunk : row + i, put ? row + i : chunk, CHUNK);
      }
    offset += part;
    row += part;
    bytes -= part;
  }
}

/* `count` rows of `bytes` bytes, `step` apart, to rows of shared memory, `pitch` apart. */
static void put_rows(uint8_t *cta, uint32_t offset, uint32_t pitch, uint32_t span,
                     const uint8_t *from, uint64_t step, uint32_t count, uint32_t bytes) {
  if (!span && pitch == bytes && step == bytes) {
    memcpy(cta + offset, from, (size_t)count * bytes);
    return;
  }
  for (; count; count--, offset += pitch, from += step) {
    /* The host's prefetcher cannot predict short rows that are far apart. */
    if (count > ROWS_AHEAD && bytes <= INLINE_BYTES_MOST)
      for (uint32_t i = 0; i < bytes; i += 64) __builtin_prefetch(from + ROWS_AHEAD * step + i);
    if (span)
      swizzle_row(cta, offset, span, (uint8_t *)(uintptr_t)from, bytes, true);
    else
      copy_row(cta + offset, from, bytes);
  }
}

static void take_rows(const uint8_t *cta, uint32_t offset, uint32_t pitch, uint32_t span,
                      uint8_t *to, uint32_t count, uint32_t bytes) {
  if (!span) {
    memcpy(to, cta + offset, (size_t)count * bytes); /* without a swizzle there are no gaps */
    return;
  }
  for (; count; count--, offset += pitch, to += bytes)
    swizzle_row((uint8_t *)(uintptr_t)cta, offset, span, to, bytes, false);
}

static void land_load(AsyncOperation *operation) {
  const Cluster *cluster = operation->warp->cta->cluster;
  const TmaMap *map = &operation->tensor.map;
  uint32_t offset = SHARED_OFFSET(operation->shared);
  uint8_t composed[MAX_ROW_BYTES];
  TmaRows rows;
  TmaWalk walk = tma_walk(map, &operation->tensor.place);
  while (tma_walk_next(&walk, &rows)) {
    const uint8_t *from = (const uint8_t *)(uintptr_t)rows.global;
    bool as_it_is = rows.bytes == walk.row_bytes && !map->converts;
    if (!rows.bytes) {
      fill_row(map, composed, walk.row_bytes);
      from = composed;
      rows.step = 0;
      as_it_is = true;
    }
    uint32_t at_once = as_it_is ? rows.count : 1;
    for (uint32_t i = 0; i < rows.count; i += at_once, from += rows.step) {
      if (!as_it_is) {
        uint32_t end = rows.left + rows.bytes;
        fill_row(map, composed, rows.left);
        memcpy(composed + rows.left, from, rows.bytes);
        tma_convert(map, composed + rows.left, rows.bytes);
        fill_row(map, composed + end, walk.row_bytes - end);
      }
      for (uint32_t left = operation->cta_mask; left; left &= left - 1)
        put_rows(cluster->ctas[__builtin_ctz(left)].shared, offset + rows.offset + i * walk.pitch,
                 walk.pitch, map->swizzle_span, as_it_is ? from : composed, rows.step, at_once,
                 walk.row_bytes);
    }
  }
}

static void read_tensor_source(AsyncOperation *operation) {
  const Cluster *cluster = operation->warp->cta->cluster;
  const TmaWalk walk = tma_walk(&operation->tensor.map, &operation->tensor.place);
  operation->staging = async_staging((size_t)walk.rows * walk.row_bytes);
  take_rows(cluster->ctas[SHARED_RANK(operation->shared)].shared, SHARED_OFFSET(operation->shared),
            walk.pitch, operation->tensor.map.swizzle_span, operation->staging, walk.rows,
            walk.row_bytes);
}

/* The engine clips a row's end to multiples of 16 bytes, so after a dimension 0 that is not such a
 * multiple it overwrites up to 15 bytes. We stop at the end of the allocation, because the GPU's
 * allocations are larger than requested. */
static uint32_t stored_bytes(const TmaRows *rows, uint64_t global, uint32_t row_bytes) {
  uint32_t bytes = (rows->bytes + 15) / 16 * 16;
  if (rows->left + bytes > row_bytes) bytes = row_bytes - rows->left;
  if (bytes == rows->bytes) return bytes;
  const Allocation *allocation = memory_find(global);
  if (allocation && global + bytes > allocation->end) bytes = (uint32_t)(allocation->end - global);
  return bytes;
}

/* Stores that bypass the host's caches: a large tensor is not read again soon, and the host need
 * not fetch lines that are overwritten completely. False if the host has no such stores. */
static bool stream_row(uint8_t *to, const uint8_t *from, uint32_t bytes) {
#ifdef __AVX512F__
  if (((uintptr_t)to | bytes) % 64 != 0) return false;
  for (uint32_t i = 0; i < bytes; i += 64)
    _mm512_stream_si512((__m512i *)(void *)(to + i), _mm512_loadu_si512(from + i));
  return true;
#elif defined(__SSE2__)
  if (((uintptr_t)to | bytes) % 64 != 0) return false;
  for (uint32_t i = 0; i < bytes; i += 16)
    _mm_stream_si128((__m128i *)(void *)(to + i),
                     _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
  return true;
#else
  (void)to, (void)from, (void)bytes;
  return false;
#endif
}

static void land_tensor_store(AsyncOperation *operation) {
  const TmaMap *map = &operation->tensor.map;
  const uint8_t *source = operation->staging;
  bool streams =
      map->dimension[map->dimensions - 1] * map->stride[map->dimensions - 1] >= STREAMED_BYTES;
  TmaRows rows;
  TmaWalk walk = tma_walk(map, &operation->tensor.place);
  while (tma_walk_next(&walk, &rows)) {
    uint64_t to = rows.global;
    for (; rows.count; rows.count--, source += walk.row_bytes, to += rows.step) {
      if (!rows.bytes) continue;
      uint8_t *bytes_to = (uint8_t *)(uintptr_t)to;
      uint32_t bytes = stored_bytes(&rows, to, walk.row_bytes);
      if (operation->reduce != REDUCE_NONE)
        reduce_elements((ReduceOp)operation->reduce, (TensorType)map->type, bytes_to,
                        source + rows.left, bytes);
      else if (bytes % 16)
        memcpy(bytes_to, source + rows.left, bytes);
      else if (!streams || !stream_row(bytes_to, source + rows.left, bytes))
        copy_row(bytes_to, source + rows.left, bytes);
    }
  }
#ifdef __SSE2__
  if (streams) _mm_sfence(); /* before anything that signals completion */
#endif
}

/* ---- Checks at issue ------------------------------------------------------------------------- */
enum { CACHED_MAPS = 16 };

static bool read_map(Warp *warp, const Instruction *in, int lane, TmaMap *map) {
  static _Thread_local struct {
    uint64_t words[16];
    TmaMap map;
    bool filled;
  } cache[CACHED_MAPS];
  const TensorForm *form = in->decoded;
  uint64_t address = lane_address(warp, &in->operand[form->map], lane), space_address;
  Space space;
  LaneMask who = 1u << lane;
  const uint8_t *bytes =
      generic_bytes_at(warp, in, lane, address, 128, 64, ACCESS_READ, &space, &space_address);
  if (!bytes) return false;
  if (space == SPACE_LOCAL || space == SPACE_SHARED) {
    fault(warp, in, who, 700, RULE(TENSOR_MAP_PLACE),
          "the tensor map at generic address 0x%llx lies in %s memory, where the copy engine "
          "cannot read it; pass it as a `const __grid_constant__ CUtensorMap` parameter of the "
          "kernel (without __grid_constant__ the compiler makes a local copy), or put it into "
          "__constant__ or global memory",
          (unsigned long long)address, space == SPACE_LOCAL ? "local" : "shared");
    return false;
  }
  if (space == SPACE_GLOBAL) launch_is_unique(warp); /* the checker does not know what it reads */
  emit_map_used(warp, in, lane, address);
  uint64_t words[16];
  memcpy(words, bytes, sizeof words);
  size_t slot = (size_t)((words[0] >> 8) ^ (address >> 6) ^ words[4]) % CACHED_MAPS;
  const char *problem = "";
  if (!cache[slot].filled || memcmp(cache[slot].words, words, sizeof words) != 0) {
    cache[slot].filled = false;
    if (!tma_map_read(words, &cache[slot].map, &problem)) {
      fault(
          warp, in, who, 715, RULE(TENSOR_MAP),
          "the 128 bytes at generic address 0x%llx are not a tensor map: %s; were they encoded by "
          "cuTensorMapEncodeTiled, and copied whole?",
          (unsigned long long)address, problem);
      return false;
    }
    memcpy(cache[slot].words, words, sizeof words);
    cache[slot].filled = true;
  }
  *map = cache[slot].map;
  if (map->dimensions != form->dimensions) {
    fault(warp, in, who, 715, RULE(TENSOR_MAP_DIMENSIONS),
          "the instruction is .%dd, the tensor map has %d dimension%s; use the form for "
          "as many, with a coordinate for each",
          form->dimensions, map->dimensions, map->dimensions == 1 ? "" : "s");
    return false;
  }
  if (map->im2col != form->im2col) {
    fault(warp, in, who, 715, RULE(TENSOR_MAP_MODE), "the instruction is .%s, the tensor map .%s",
          form->im2col ? "im2col" : "tile", map->im2col ? "im2col" : "tile");
    return false;
  }
  return true;
}

/* im2col begins inside its box of pixels, and a store's box lies inside the tensor. */
static bool check_pixel(Warp *warp, const Instruction *in, int lane, const TmaMap *map,
                        const TmaPlace *place) {
  const TensorForm *form = in->decoded;
  for (int i = 1; i < map->dimensions - 1; i++) {
    int64_t last = (int64_t)map->dimension[i] - 1 + map->upper[i - 1];
    if (place->coordinate[i] < map->lower[i - 1] || place->coordinate[i] > last) {
      fault(warp, in, 1u << lane, 715, RULE(IM2COL_COORDINATE),
            "coordinate %d of dimension %d is not in the map's box of pixels, which goes from %d "
            "(lower corner) to %lld (size - 1 + upper corner)",
            place->coordinate[i], i, map->lower[i - 1], (long long)last);
      return false;
    }
    if (form->way != TENSOR_STORE || (map->lower[i - 1] >= 0 && map->upper[i - 1] <= 0)) continue;
    fault(warp, in, 1u << lane, 715, RULE(IM2COL_STORE_BOX),
          "the map's box of pixels reaches beyond the tensor in dimension %d (lower corner %d, "
          "upper corner %d): a store needs a map with lower corners of at least 0 and upper "
          "corners of at most 0",
          i, map->lower[i - 1], map->upper[i - 1]);
    return false;
  }
  return true;
}

static bool read_place(Warp *warp, const Instruction *in, int lane, const TmaMap *map,
                       TmaPlace *place) {
  const TensorForm *form = in->decoded;
  const Operand *coordinates = &in->operand[form->coordinates];
  *place = (TmaPlace){.no_offsets = form->no_offsets};
  for (int i = 0; i < form->dimensions; i++)
    place->coordinate[i] = (int32_t)lane_value(warp, &coordinates->elements[i], lane);
  if (form->offsets >= 0)
    for (int i = 0; i < form->dimensions - 2; i++)
      place->offset[i] = (uint16_t)lane_value(warp, &in->operand[form->offsets].elements[i], lane);
  int64_t inner = (int64_t)place->coordinate[0] * map->element_bytes;
  if (inner % 16 && map->interleave == INTERLEAVE_NONE) {
    int64_t step = 16 / map->element_bytes;
    fault(warp, in, 1u << lane, 715, RULE(INNERMOST_COORDINATE),
          "innermost coordinate %d of elements of %u bytes is byte %lld: it must be a multiple of "
          "16 bytes (%lld elements), for loads and stores alike; start the box at %lld "
          "and skip what comes before, or use another map with its address moved",
          place->coordinate[0], map->element_bytes, (long long)inner, (long long)step,
          (long long)((place->coordinate[0] - (place->coordinate[0] % step + step) % step)));
    return false;
  }
  if (map->im2col && !check_pixel(warp, in, lane, map, place)) return false;
  if (form->way != TENSOR_STORE) return true;
  for (int i = 0; i < form->dimensions; i++)
    if (place->coordinate[i] < 0) {
      fault(warp, in, 1u << lane, 715, RULE(NEGATIVE_STORE_COORDINATE),
            "coordinate %d of dimension %d is negative: a store or reduce is clipped at the upper "
            "end of the tensor, never at the lower; start at 0 and shift the tile in shared memory",
            place->coordinate[i], i);
      return false;
    }
  return true;
}

/* "64 x 128 elements of 2 bytes": of the map's box, or of its tensor. */
static Phrase size_text(const TmaMap *map, bool box) {
  Phrase text = NO_PHRASE;
  for (int i = 0; i < map->dimensions; i++)
    text = phrase("%s%s%llu", text.text, i ? " x " : "",
                  (unsigned long long)(box ? map->box[i] : map->dimension[i]));
  return phrase("%s elements of %u bytes", text.text, map->element_bytes);
}

/* The tile must lie in the block's shared memory. If it does not, the reason may be the host's map. */
static bool tile_is_in_shared(Warp *warp, const Instruction *in, int lane, const TmaMap *map,
                              uint32_t address, uint32_t bytes, Access access) {
  const Cta *cta = shared_address_cta(warp, address);
  const uint32_t offset = SHARED_OFFSET(address);
  if (!cta || map->im2col || address % 128 || offset + bytes <= cta->shared_bytes)
    return shared_bytes_at(warp, in, lane, address, bytes, 128, access) != NULL;
  fault(warp, in, 1u << lane, 700, RULE(SHARED_OUT_OF_BOUNDS),
        "%s of %u bytes at shared address 0x%x: byte %u of the block's shared memory, which has %u "
        "bytes (static and dynamic). The tensor map's box has %s%s",
        access == ACCESS_READ ? "a read" : "a write", bytes, address,
        offset - SHARED_RESERVED_BYTES, cta->shared_bytes - SHARED_RESERVED_BYTES,
        size_text(map, true).text,
        map->swizzle_span > map->box[0] * map->element_bytes
            ? ", and under the swizzle its rows lie further apart"
            : "");
  return false;
}

static bool row_is_allocated(Warp *warp, const Instruction *in, int lane, const TmaMap *map,
                             uint64_t address, uint32_t bytes, Access access) {
  const Allocation *found = memory_find(address);
  if (found || map->im2col)
    return global_bytes_at(warp, in, lane, address, bytes, 1, access) != NULL;
  char where[256];
  const Rule *rule = memory_describe(address, where, sizeof where);
  fault(warp, in, 1u << lane, 700, rule,
        "%s of %u bytes: %s. The tensor map has the address 0x%llx and %s",
        access == ACCESS_READ ? "a read" : "a write", bytes, where,
        (unsigned long long)map->address, size_text(map, false).text);
  return false;
}

/* Checks that all rows are in allocated memory; false after a fault. */
static bool rows_are_allocated(Warp *warp, const Instruction *in, int lane, const TmaMap *map,
                               const TmaPlace *place, Access access) {
  TmaRows rows;
  uint64_t first, end;
  if (!tma_range(map, place, &first, &end)) return true;
  const Allocation *allocation = memory_find(first);
  if (allocation && allocation->end >= end && !(allocation->read_only && access != ACCESS_READ))
    return true;
  TmaWalk walk = tma_walk(map, place);
  while (tma_walk_next(&walk, &rows))
    for (uint32_t i = 0; i < rows.count && rows.bytes; i++)
      if (!row_is_allocated(warp, in, lane, map, rows.global + i * rows.step, rows.bytes, access))
        return false;
  return true;
}

typedef struct {
  SharedPiece *pieces;
  int count;
  uint32_t end; /* of the last byte */
} Pieces;

/* Where the swizzle puts `bytes` bytes at `start`, all within one span. If they do not fill it, there may be
 * gaps between them. */
static void add_part_of_span(Pieces *list, uint32_t start, uint32_t bytes, uint32_t span) {
  uint32_t chunks = 0;
  for (uint32_t j = 0; j < bytes; j += CHUNK)
    chunks |= 1u << ((tma_swizzle(span, start + j) & (span - 1)) / CHUNK);
  while (chunks) {
    const uint32_t first = (uint32_t)__builtin_ctz(chunks);
    const uint32_t length = (uint32_t)__builtin_ctz(~(chunks >> first));
    SharedPiece *piece = &list->pieces[list->count++];
    *piece = (SharedPiece){(start & ~(span - 1)) + first * CHUNK, length * CHUNK};
    if (piece->address + piece->bytes > list->end) list->end = piece->address + piece->bytes;
    chunks &= ~(((1u << length) - 1) << first);
  }
}

/* The bytes of a block's memory that the box occupies: one piece, or when rows are narrower than the
 * swizzle's span one or more for each row, or when rows without gaps end within a span one or more for
 * what is in it. The caller frees them. */
static SharedPiece *shared_pieces(const TmaMap *map, const TmaPlace *place, uint32_t shared,
                                  SharedPiece *single, int *count, uint32_t *end) {
  const TmaWalk walk = tma_walk(map, place);
  const uint32_t span = map->swizzle_span, bytes = walk.rows * walk.row_bytes;
  const bool gaps = walk.pitch != walk.row_bytes;
  const uint32_t rest = span && !gaps ? bytes % span : 0;
  if (!gaps && !rest) {
    *single = (SharedPiece){shared, bytes};
    *count = 1;
    *end = shared + bytes;
    return single;
  }
  Pieces list = {.end = shared};
  list.pieces = new_zeros((gaps ? walk.rows : 1) * (span / CHUNK) + 1, sizeof *list.pieces);
  if (bytes > rest && !gaps) list.pieces[list.count++] = (SharedPiece){shared, bytes - rest};
  for (uint32_t i = 0; gaps && i < walk.rows; i++)
    add_part_of_span(&list, shared + i * walk.pitch, walk.row_bytes, span);
  if (rest) add_part_of_span(&list, shared + bytes - rest, rest, span);
  *count = list.count;
  *end = list.end;
  return list.pieces;
}

/* The host needs longer for memory than the emulator for anything else that a copy does. */
static void prefetch_first_rows(const TmaMap *map, const TmaPlace *place) {
  TmaRows rows;
  TmaWalk walk = tma_walk(map, place);
  if (!tma_walk_next(&walk, &rows) || !rows.bytes || rows.bytes > INLINE_BYTES_MOST) return;
  uint32_t count = rows.count < ROWS_FIRST ? rows.count : ROWS_FIRST;
  const uint8_t *from = (const uint8_t *)(uintptr_t)rows.global;
  for (; count; count--, from += rows.step)
    for (uint32_t i = 0; i < rows.bytes; i += 64) __builtin_prefetch(from + i);
}

/* ---- Issue ----------------------------------------------------------------------------------- */
static bool issue_load(Warp *warp, const Instruction *in, int lane, AsyncOperation *operation) {
  const TensorForm *form = in->decoded;
  const TmaMap *map = &operation->tensor.map;
  const TmaPlace *place = &operation->tensor.place;
  uint32_t shared, barrier;
  if (!window_address(warp, in, lane, lane_address(warp, &in->operand[form->shared], lane),
                      form->window, &shared) ||
      !window_address(warp, in, lane, lane_address(warp, &in->operand[form->barrier], lane),
                      form->window, &barrier))
    return false;
  operation->cta_mask = 1u << SHARED_RANK(shared);
  if (form->mask >= 0 && !async_cta_mask(warp, in, lane, form->mask, &operation->cta_mask))
    return false;
  if (form->mask < 0) async_check_barrier(warp, in, lane, shared, barrier);
  SharedPiece single;
  int count;
  uint32_t end, start = SHARED_OFFSET(shared);
  SharedPiece *pieces = shared_pieces(map, place, start, &single, &count, &end);
  int ctas = __builtin_popcount(operation->cta_mask);
  SharedPiece few[MAX_CLUSTER_CTAS];
  SharedPiece *writes = count == 1 ? few : new_zeros((size_t)(count * ctas), sizeof *writes);
  int write_count = 0;
  bool good = true;
  for (uint32_t left = operation->cta_mask; left && good; left &= left - 1) {
    uint32_t rank = (uint32_t)__builtin_ctz(left) << 24;
    good = tile_is_in_shared(warp, in, lane, map, rank | start, end - start, ACCESS_WRITE);
    for (int i = 0; i < count; i++)
      writes[write_count++] = (SharedPiece){rank | pieces[i].address, pieces[i].bytes};
  }
  for (uint32_t left = operation->cta_mask; left && good; left &= left - 1)
    good = mbarrier_check_target(warp, in, lane,
                                 (uint32_t)__builtin_ctz(left) << 24 | SHARED_OFFSET(barrier));
  if (good) {
    prefetch_first_rows(map, place);
    operation->write = land_load;
    operation->shared = shared;
    operation->barrier = barrier;
    operation->bytes = tma_copy_bytes(map);
    async_submit(operation, NULL, 0, writes, write_count);
  }
  if (writes != few) free(writes);
  if (pieces != &single) free(pieces);
  return good;
}

static bool issue_store(Warp *warp, const Instruction *in, int lane, AsyncOperation *operation) {
  const TensorForm *form = in->decoded;
  const TmaMap *map = &operation->tensor.map;
  uint32_t shared;
  if (!window_address(warp, in, lane, lane_address(warp, &in->operand[form->shared], lane),
                      WINDOW_CTA, &shared))
    return false;
  if (form->reduce && !reduce_supported((ReduceOp)form->reduce, (TensorType)map->type)) {
    fault(warp, in, 1u << lane, 715, RULE(REDUCE_TYPE),
          "the copy engine has no reduce .%s for elements of type %s",
          reduce_names[form->reduce - 1], tensor_type_name((TensorType)map->type));
    return false;
  }
  SharedPiece single;
  int count;
  uint32_t end;
  SharedPiece *reads = shared_pieces(map, &operation->tensor.place, shared, &single, &count, &end);
  bool good = tile_is_in_shared(warp, in, lane, map, shared, end - shared, ACCESS_READ);
  if (good) {
    operation->read_source = read_tensor_source;
    operation->write = land_tensor_store;
    operation->shared = shared;
    operation->bytes = tma_copy_bytes(map);
    operation->reduce = form->reduce;
    async_submit(operation, reads, count, NULL, 0);
  }
  if (reads != &single) free(reads);
  return good;
}

static bool issue_tensor(Warp *warp, const Instruction *in, int lane, AsyncKind kind) {
  const TensorForm *form = in->decoded;
  AsyncOperation *operation = async_new(warp, in, lane, kind);
  TmaMap *map = &operation->tensor.map;
  TmaPlace *place = &operation->tensor.place;
  Access access = form->way != TENSOR_STORE ? ACCESS_READ
                  : form->reduce            ? ACCESS_ATOMIC
                                            : ACCESS_WRITE;
  bool good = read_map(warp, in, lane, map) && read_place(warp, in, lane, map, place) &&
              rows_are_allocated(warp, in, lane, map, place, access);
  if (good && form->way == TENSOR_LOAD) good = issue_load(warp, in, lane, operation);
  if (good && form->way == TENSOR_STORE) good = issue_store(warp, in, lane, operation);
  if (!good || form->way == TENSOR_PREFETCH) async_abandon(operation);
  return good;
}

static StepResult run_tensor(Warp *warp, const Instruction *in, LaneMask mask) {
  const TensorForm *form = in->decoded;
  AsyncKind kind = form->way != TENSOR_STORE ? ASYNC_TENSOR_LOAD
                   : form->reduce            ? ASYNC_TENSOR_REDUCE
                                             : ASYNC_TENSOR_STORE;
  if (form->reduce) {
    TmaMap map;
    if (!read_map(warp, in, first_lane(mask), &map)) return STEP_FAULT;
    if (reduce_needs_turn((ReduceOp)form->reduce, (TensorType)map.type) && !cluster_has_turn(warp))
      return STEP_BLOCKED;
  }
  FOR_LANES(lane, mask)
    if (!issue_tensor(warp, in, lane, kind)) return STEP_FAULT;
  return STEP_NEXT;
}

/* ---- Decoding -------------------------------------------------------------------------------- */
static const char *const dimension_names[] = {"1d", "2d", "3d", "4d", "5d", NULL};

static bool need_kind(Form *form, int index, OperandKind kind, const char *what) {
  if (form->failed) return false;
  return form_operand(form, index)->kind == kind || form_fail(form, "%s", what);
}

static bool finish_tensor(Form *form, TensorForm *made, bool offsets, bool multicast, bool policy) {
  int count = 0;
  made->shared = made->barrier = made->offsets = made->mask = -1;
  if (made->way == TENSOR_LOAD) made->shared = (int8_t)count++;
  made->map = (int8_t)count++;
  made->coordinates = (int8_t)count++;
  if (made->way == TENSOR_LOAD) made->barrier = (int8_t)count++;
  if (made->way == TENSOR_STORE) made->shared = (int8_t)count++;
  if (offsets) made->offsets = (int8_t)count++;
  if (multicast) made->mask = (int8_t)count++;
  count += policy;
  if (!form_operands(form, count, count)) return false;
  need_kind(form, made->map, OPERAND_ADDRESS, "the tensor map belongs in [map, {coordinates}]");
  need_kind(form, made->coordinates, OPERAND_VECTOR, "the coordinates belong in braces");
  if (made->shared >= 0)
    need_kind(form, made->shared, OPERAND_ADDRESS, "the tile's address must be in brackets");
  if (made->barrier >= 0)
    need_kind(form, made->barrier, OPERAND_ADDRESS, "the barrier's address must be in brackets");
  if (form->failed) return false;
  if (form->out->operand[made->coordinates].count != made->dimensions)
    return form_fail(form, "not as many coordinates as dimensions");
  if (offsets) {
    const Operand *operand = form_operand(form, made->offsets);
    if (operand->kind != OPERAND_VECTOR || operand->count != made->dimensions - 2)
      return form_fail(form, "im2col takes an offset for each dimension but channels and images");
  }
  const Operand *coordinates = form_operand(form, made->coordinates);
  for (int i = 0; i < made->dimensions; i++) form_value(form, &coordinates->elements[i], TYPE_S32);
  if (multicast) form_numbers(form, made->mask, 1, TYPE_U16);
  if (policy) form_numbers(form, count - 1, 1, TYPE_U64);
  form->out->decoded = made;
  return form_end(form, run_tensor);
}

static TensorForm *begin_tensor(Form *form, TensorWay way) {
  TensorForm *made = decoder_allocate(form->decoder, sizeof *made);
  made->way = (uint8_t)way;
  made->dimensions = (uint8_t)(form_choose(form, dimension_names) + 1);
  if (!made->dimensions) form_fail(form, "a tensor copy is .1d to .5d");
  if (form_prefixed(form, "tile::") || form_prefixed(form, "im2col::") ||
      form_prefixed(form, "cta_group::"))
    form_fail(form,
              "gather4, scatter4, im2col::w and cta_group need Blackwell (sm_100): on Hopper, copy "
              "each row, tap or block by itself");
  return made;
}

static void take_mode(Form *form, TensorForm *made) {
  const bool store = made->way == TENSOR_STORE;
  if (form_take(form, "tile")) return;
  made->im2col = form_take(form, store ? "im2col_no_offs" : "im2col");
  made->no_offsets = store && made->im2col;
  if (made->im2col && made->dimensions < 3) form_fail(form, "im2col needs 3 to 5 dimensions");
}

FORM_DECODER(decode_tensor, 4) {
  bool store = has_modifier(statement, "bulk_group");
  TensorForm *made = begin_tensor(&form, store ? TENSOR_STORE : TENSOR_LOAD);
  if (store) {
    if (!form_take(&form, "global") || !form_take(&form, "shared::cta"))
      return form_fail(&form, "a tensor store is .global.shared::cta");
    form_take(&form, "bulk_group");
    take_mode(&form, made);
    return finish_tensor(&form, made, false, false, form_take(&form, "L2::cache_hint"));
  }
  made->window = form_take(&form, "shared::cluster") ? WINDOW_CLUSTER : WINDOW_CTA;
  if (made->window == WINDOW_CTA && !form_take(&form, "shared::cta"))
    return form_fail(&form, "a tensor load goes to .shared::cluster or .shared::cta");
  if (!form_take(&form, "global") || !form_take(&form, "mbarrier::complete_tx::bytes"))
    return form_fail(&form,
                     "a tensor load is from .global and completes by "
                     ".mbarrier::complete_tx::bytes");
  take_mode(&form, made);
  bool multicast = made->window == WINDOW_CLUSTER && form_take(&form, "multicast::cluster");
  return finish_tensor(&form, made, made->im2col, multicast, form_take(&form, "L2::cache_hint"));
}

FORM_DECODER(decode_tensor_reduce, 5) {
  TensorForm *made = begin_tensor(&form, TENSOR_STORE);
  if (!form_take(&form, "global") || !form_take(&form, "shared::cta") ||
      !form_take(&form, "bulk_group"))
    return form_fail(&form, "a tensor reduce is .global.shared::cta and .bulk_group");
  made->reduce = (uint8_t)(form_choose(&form, reduce_names) + 1);
  if (!made->reduce) return form_fail(&form, "a tensor reduce names its operation");
  take_mode(&form, made);
  return finish_tensor(&form, made, false, false, form_take(&form, "L2::cache_hint"));
}

FORM_DECODER(decode_tensor_prefetch, 5) {
  TensorForm *made = begin_tensor(&form, TENSOR_PREFETCH);
  if (!form_take(&form, "L2") || !form_take(&form, "global"))
    return form_fail(&form, "the form is cp.async.bulk.prefetch.tensor.<n>d.L2.global");
  take_mode(&form, made);
  return finish_tensor(&form, made, made->im2col, false, form_take(&form, "L2::cache_hint"));
}
