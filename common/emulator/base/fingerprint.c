/* fingerprint.c: see fingerprint.h. Four chains of multiplications, each of which takes 16 bytes and
 * depends on all that its chain has taken before, so the order of the bytes counts. */
#include "base/fingerprint.h"

#include <string.h>

enum { CHAINS = 4, PIECE = 16, BLOCK = CHAINS * PIECE };
__extension__ typedef unsigned __int128 Wide;

/* Odd numbers without a pattern: the digits of pi. */
static const uint64_t KEYS[CHAINS + 1] = {0x243f6a8885a308d3, 0x13198a2e03707345,
                                          0xa4093822299f31d1, 0x082efa98ec4e6c89,
                                          0x452821e638d01377};

static inline uint64_t multiplied(uint64_t a, uint64_t b) {
  Wide product = (Wide)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t word_at(const uint8_t *bytes) {
  uint64_t word;
  memcpy(&word, bytes, sizeof word);
  return word;
}

static inline uint64_t take(uint64_t chain, const uint8_t *bytes, uint64_t key) {
  return multiplied(word_at(bytes) ^ key, word_at(bytes + 8) ^ chain) + chain;
}

uint64_t fingerprint(uint64_t before, const void *bytes, size_t count) {
  const uint8_t *at = bytes;
  uint64_t chain[CHAINS];
  for (int i = 0; i < CHAINS; i++) chain[i] = before ^ KEYS[i];
  size_t left = count;
  for (; left >= BLOCK; left -= BLOCK, at += BLOCK)
    for (int i = 0; i < CHAINS; i++) chain[i] = take(chain[i], at + i * PIECE, KEYS[i]);
  uint8_t rest[BLOCK] = {0};
  if (left) memcpy(rest, at, left);
  for (int i = 0; i < CHAINS; i++) chain[i] = take(chain[i], rest + i * PIECE, KEYS[i]);
  uint64_t all = count ^ KEYS[CHAINS];
  for (int i = 0; i < CHAINS; i++) all = multiplied(all ^ KEYS[i], chain[i] ^ KEYS[CHAINS]) + all;
  return all;
}
