/* descriptor_check.c: matrix descriptors of wgmma that do not fit the tile that a tensor load has put
 * there. Offsets that put two numbers of the operand into the same bytes of such a tile are an
 * error, and so is a base offset: the engine swizzles by addresses. What may be meant is reported with EMULATOR_CHECK=layout only: other distances between the
 * groups of 8 rows, and overlaps in tiles that the threads have written, which may be a window that
 * slides over its data.
 */

#include "base/fault.h"
#include "base/settings.h"
#include "checker/undefined_matrices.h"

enum { CHUNK = 16, MAX_CHUNKS = 1 << 14, GROUP = 8 };

/* Where two numbers of the operand share bytes. */
typedef struct {
  int first_outer, first_chunk, outer, chunk;
  uint32_t offset;
} SharedPlace;

static bool numbers_overlap(const MatrixDescriptor *matrix, bool mn_major, ChunkCount count,
                            SharedPlace *place) {
  uint64_t taken[MAX_CHUNKS / 64] = {0};
  for (int outer = 0; outer < count.outer; outer++)
    for (int chunk = 0; chunk < count.chunks; chunk++) {
      const uint32_t offset = chunk_offset(matrix, mn_major, outer, chunk);
      const uint32_t at = offset / CHUNK % MAX_CHUNKS;
      if (!(taken[at / 64] >> at % 64 & 1)) {
        taken[at / 64] |= 1ull << at % 64;
        continue;
      }
      *place = (SharedPlace){.outer = outer, .chunk = chunk, .offset = offset};
      for (int i = 0; i < count.outer * count.chunks; i++) {
        place->first_outer = i / count.chunks;
        place->first_chunk = i % count.chunks;
        if (chunk_offset(matrix, mn_major, place->first_outer, place->first_chunk) == offset)
          return true;
      }
    }
  return false;
}

/* "; the tensor load at gemm.cu:40 wrote rows of 128 bytes there, so ..." */
static Phrase describe_tile(const LoadedTile *tile) {
  if (!tile) return NO_PHRASE;
  return phrase(
      "The tensor load %s wrote rows of %u bytes there, so groups of 8 rows are %u bytes "
      "apart.\n",
      place_of(tile->in).text, tile->row_bytes, GROUP * tile->row_bytes);
}

static void report_overlap(Warp *warp, const Instruction *in, char side,
                           const MatrixDescriptor *matrix, bool mn_major, const SharedPlace *place,
                           const LoadedTile *tile) {
  const char *line = mn_major ? "k" : side == 'A' ? "row" : "column";
  const Finding what = {.rule = RULE(MATRIX_DESCRIPTOR_OVERLAP),
                        .memory = ABOUT_SHARED,
                        .rank = (uint8_t)warp->cta->rank,
                        .address = place->offset};
  finding_of(
      warp, in, warp->lanes, &what,
      "the descriptor of %c takes its %s %d (bytes %d to %d) and its %s %d (bytes %d to %d) from "
      "the same place, shared memory at offset 0x%x: its stride offset is %u bytes, its leading "
      "offset %u, its swizzle %u.\n"
      "%s%s",
      side, line, place->first_outer, place->first_chunk * CHUNK,
      place->first_chunk * CHUNK + CHUNK - 1, line, place->outer, place->chunk * CHUNK,
      place->chunk * CHUNK + CHUNK - 1, place->offset, matrix->stride, matrix->leading,
      matrix->span == CHUNK ? 0 : matrix->span, describe_tile(tile).text,
      matrix->span == CHUNK
          ? "Without a swizzle each block of 8 rows by 16 bytes takes 128 bytes. Are the two "
            "offsets exchanged?"
          : "With a swizzle the stride offset is the distance from one group of 8 rows to the "
            "next, 8 times the swizzle, if they follow each other.");
}

static void report_stride(Warp *warp, const Instruction *in, char side,
                          const MatrixDescriptor *matrix, const LoadedTile *tile) {
  finding(warp, in, warp->lanes, RULE(MATRIX_DESCRIPTOR_STRIDE),
          "the descriptor of %c has a stride offset of %u bytes between groups of 8 rows, but the "
          "tensor load %s wrote rows of %u bytes there, %u rows in all: groups of 8 are %u bytes "
          "apart.\n"
          "Set the stride offset to %u, unless the tile is meant to be read in this way.",
          side, matrix->stride, place_of(tile->in).text, tile->row_bytes,
          (tile->end - tile->first) / tile->row_bytes, GROUP * tile->row_bytes,
          GROUP * tile->row_bytes);
}

static void report_base(Warp *warp, const Instruction *in, char side,
                        const MatrixDescriptor *matrix, uint32_t base, const LoadedTile *tile) {
  const Finding what = {.rule = RULE(SWIZZLE_MISMATCH),
                        .memory = ABOUT_SHARED,
                        .rank = (uint8_t)warp->cta->rank,
                        .address = matrix->start};
  finding_of(
      warp, in, warp->lanes, &what,
      "the descriptor of %c has a base offset of %u, so that it takes each row's %u-byte swizzle "
      "for that of a row %u further up, but the tensor load %s swizzled by addresses.\n"
      "Set the base offset to 0, wherever such a tile begins.",
      side, matrix->base, matrix->span, base, place_of(tile->in).text);
}

static void check_descriptor(Warp *warp, const Instruction *in, const WgmmaForm *form, Side side,
                             uint64_t bits) {
  enum { START_BITS = 0x3fff };
  static _Thread_local struct {
    uint64_t bits;
    ChunkCount count;
    bool mn_major;
  } known[2]; /* the last one of each side without a mistake */
  const bool all = settings()->check_layout;
  const uint64_t shape = bits & ~(uint64_t)START_BITS;
  const bool mn_major = side == SIDE_A ? form->a_mn_major : form->b_mn_major;
  const ChunkCount count = wgmma_chunks(form, side);
  if (!all && known[side].bits == shape && known[side].mn_major == mn_major &&
      known[side].count.outer == count.outer && known[side].count.chunks == count.chunks)
    return;
  const MatrixDescriptor matrix = matrix_descriptor(bits);
  const char name = side == SIDE_A ? 'A' : 'B';
  const LoadedTile *tile = check_tile_at(warp, warp->cta->rank << 24 | matrix.start);
  if (tile && tile->row_bytes != matrix.span) tile = NULL;
  SharedPlace place;
  /* An offset of 0 repeats the same numbers, which may be meant. */
  if ((tile || all) && matrix.stride && numbers_overlap(&matrix, mn_major, count, &place) &&
      (matrix.leading || place.first_chunk == place.chunk)) {
    report_overlap(warp, in, name, &matrix, mn_major, &place, tile);
    return;
  }
  const uint32_t base = matrix.base & (matrix.span / CHUNK - 1);
  if (tile && base) {
    report_base(warp, in, name, &matrix, base, tile);
    return;
  }
  known[side].bits = tile ? shape : 0;
  known[side].count = count;
  known[side].mn_major = mn_major;
  const uint32_t needed = (uint32_t)count.outer * matrix.span;
  if (all && tile && !mn_major && matrix.span > CHUNK && count.outer > GROUP &&
      tile->end - tile->first >= needed && matrix.stride != GROUP * matrix.span)
    report_stride(warp, in, name, &matrix, tile);
}

static void look_at_descriptor(Warp *warp, const Instruction *in, const char *side, uint64_t bits) {
  const uint64_t unused = 0x3ff1c000c000c000ull; /* 14-15, 30-31, 46-48, 52-61 */
  if (bits & unused)
    finding(warp, in, warp->lanes, RULE(MATRIX_DESCRIPTOR_BITS),
            "the matrix descriptor of %s is 0x%016llx: bits 0x%llx have no meaning. Each field "
            "takes its value in 16-byte units, cut to 14 bits: (bytes & 0x3ffff) >> 4",
            side, (unsigned long long)bits, (unsigned long long)(bits & unused));
}

void check_descriptors(Warp *warp, const Instruction *in, const PendingWgmma *flight) {
  const WgmmaForm *form = &((const Wgmma *)in->decoded)->form;
  if (!form->a_in_registers) look_at_descriptor(warp, in, "A", flight->descriptor_a);
  look_at_descriptor(warp, in, "B", flight->descriptor_b);
  if (!form->a_in_registers) check_descriptor(warp, in, form, SIDE_A, flight->descriptor_a);
  check_descriptor(warp, in, form, SIDE_B, flight->descriptor_b);
}
