/* map_bytes.c: tensor maps that are not wholly written.
 *
 * A map is valid if cuTensorMapEncode has filled it and all of its 128 bytes have been copied;
 * tensormap.replace changes one field and keeps the others. So bytes that nothing has written, or
 * that hold undefined values, are a mistake as soon as an instruction takes the bytes for a map. */

#include "base/memory.h"
#include "base/written.h"
#include "checker/checker.h"

enum { MAP_BYTES = 128, CHUNK = 32 };

typedef struct {
  uint32_t bytes, first; /* how many there are; the first */
} Unwritten;

static void add_unwritten(Unwritten *unwritten, uint32_t at, uint32_t mask) {
  if (mask && !unwritten->bytes) unwritten->first = at + (uint32_t)__builtin_ctz(mask);
  unwritten->bytes += (uint32_t)__builtin_popcount(mask);
}

static void report_unwritten_map(Warp *warp, const Instruction *in, int lane, const Finding *what,
                                 const char *how, const char *memory, const Unwritten *unwritten) {
  finding_of(warp, in, 1u << lane, what,
             "%s a tensor map in %s, of which nothing has written %u of %d bytes: the first is "
             "byte %u.\n"
             "Only a map that cuTensorMapEncode has filled is valid: copy all of its 128 bytes "
             "there, and then replace fields.",
             how, memory, unwritten->bytes, MAP_BYTES, unwritten->first);
}

static void look_in_global(Warp *warp, const Instruction *in, int lane, uint64_t address,
                           const char *how) {
  if (!written_map.bytes || written_or_by_host(address, MAP_BYTES)) return;
  Unwritten unwritten = {0, 0};
  for (uint32_t i = 0; i < MAP_BYTES; i += CHUNK)
    add_unwritten(&unwritten, i, ~written_bits(address + i, CHUNK));
  report_unwritten_map(warp, in, lane, &(const Finding){.rule = RULE(UNWRITTEN_MEMORY_READ)}, how,
                       memory_place(address).text, &unwritten);
  written_set(address, MAP_BYTES); /* so that it is reported once */
}

static void look_in_shared(Warp *warp, const Instruction *in, int lane, uint32_t address,
                           const char *how) {
  Unwritten unwritten = {0, 0};
  for (uint32_t i = 0; i < MAP_BYTES; i += CHUNK) {
    UndefinedBytes found = check_undefined_bytes(warp, address + i, CHUNK);
    add_unwritten(&unwritten, i, found.unwritten);
    if (found.undefined & ~found.unwritten)
      undefined_matters(warp, in, lane, found.origin, USED_IN_MAP);
  }
  const Finding what = {.rule = RULE(UNINITIALISED_READ),
                        .memory = ABOUT_SHARED,
                        .rank = (uint8_t)SHARED_RANK(address),
                        .bytes = MAP_BYTES,
                        .address = SHARED_OFFSET(address)};
  const Phrase memory = phrase("shared memory at offset 0x%x", SHARED_OFFSET(address));
  if (unwritten.bytes) report_unwritten_map(warp, in, lane, &what, how, memory.text, &unwritten);
}

static void map_read(Warp *warp, const Instruction *in, int lane, Space space, uint64_t address,
                     const char *how) {
  if (space == SPACE_SHARED) look_in_shared(warp, in, lane, (uint32_t)address, how);
  if (space == SPACE_GLOBAL) look_in_global(warp, in, lane, address, how);
}

static void map_used(Warp *warp, const Instruction *in, int lane, uint64_t address) {
  look_in_global(warp, in, lane, address, "uses");
}

static const Subscriber MAP_BYTES_LOOKED_AT = {.map_read = map_read, .map_used = map_used};
SUBSCRIBE(MAP_BYTES_EVENTS, MAP_BYTES_LOOKED_AT)
