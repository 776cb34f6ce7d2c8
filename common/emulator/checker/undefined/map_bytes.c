/* map_bytes.c: tensor maps that are not wholly written.
 *
 * A map is valid if cuTensorMapEncode has filled it and all of its 128 bytes have been copied;
 * tensormap.replace changes one field and keeps the others. So bytes that nothing has written, or
 * that hold undefined values, are a mistake as soon as an instruction takes the bytes for a map. */
#include <stdio.h>

#include "base/fault.h"
#include "base/written.h"
#include "checker/undefined/marks.h"

enum { MAP_BYTES = 128, CHUNK = 32 };

static const char ADVICE[] =
    "Only a map that cuTensorMapEncode has filled is valid: copy all of its 128 bytes there, and "
    "then replace fields.";

void unwritten_in_map(Warp *warp, const Instruction *in, int lane, const Finding *what,
                      const char *how, const char *memory, uint32_t unwritten, uint32_t first) {
  finding_of(
      warp, in, 1u << lane, what,
      "%s a tensor map in %s, of which nothing has written %u of %d bytes: the first is byte "
      "%u.\n%s",
      how, memory, unwritten, MAP_BYTES, first, ADVICE);
}

void check_map_in_global(Warp *warp, const Instruction *in, int lane, uint64_t address,
                         const char *how) {
  enum { TEXT = 128 };
  if (!written_map.bytes || written_all(address, MAP_BYTES) || written_by_host(address, MAP_BYTES))
    return;
  uint32_t unwritten = 0, first = 0;
  for (uint32_t i = 0; i < MAP_BYTES; i += CHUNK) {
    uint32_t missing = ~written_bits(address + i, CHUNK);
    if (missing && !unwritten) first = i + (uint32_t)__builtin_ctz(missing);
    unwritten += (uint32_t)__builtin_popcount(missing);
  }
  char memory[TEXT];
  unwritten_describe(address, memory, sizeof memory);
  unwritten_in_map(warp, in, lane, &(const Finding){.rule = "unwritten-memory-read"}, how, memory,
                   unwritten, first);
  written_set(address, MAP_BYTES); /* so that it is reported once */
}
