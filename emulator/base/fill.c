/* fill.c: see fill.h. Poison, or other values while a launch is tried again. */
#include "base/fill.h"

#include <string.h>

#include "base/mix.h"

/* The eight bytes from this place on, which is a multiple of 8. */
static uint64_t fill_word(Fill fill, uint64_t place) {
  switch (fill) {
    case FILL_ZEROS:
      return 0;
    case FILL_ONES:
      return 0x0000000100000001u; /* small integers */
    case FILL_LARGE:
      return 0x7b7b7b7b7b7b7b7bu; /* 1e36 as a float, 61,280 as a half */
    case FILL_LARGE_NEGATIVE:
      return 0xfbfbfbfbfbfbfbfbu;
    case FILL_RANDOM:
    case FILL_OTHER_RANDOM:
      return mix(place + ((uint64_t)fill << 56));
    default:
      return UINT64_MAX; /* a NaN in every floating format */
  }
}

void fill_unwritten(void *to, size_t bytes, uint64_t place) {
  const Fill fill = settings()->fill;
  if (fill == FILL_POISON) {
    memset(to, 0xff, bytes);
    return;
  }
  for (size_t done = 0; done < bytes;) {
    uint64_t at = place + done, word = fill_word(fill, at & ~7ull) >> at % 8 * 8;
    size_t part = 8 - at % 8 < bytes - done ? 8 - at % 8 : bytes - done;
    memcpy((uint8_t *)to + done, &word, part);
    done += part;
  }
}
