/* opcodes.c: the names and traits of all instructions, from opcodes.def. */
#include "ptx/opcodes.h"

#include <pthread.h>
#include <string.h>

#define OP(name, decode, operand_use, traits) {name, NULL, operand_use, traits, 0},
#define SECTION(kind) {NULL, NULL, READS, 0, kind},
#define REFUSED(name, why) {name, why, READS, 0, 0},
static Opcode table[] = {
#include "ptx/opcodes.def"
};
#undef OP
#undef SECTION
#undef REFUSED
const Opcode *const opcodes = table;
enum { OPCODE_COUNT = sizeof table / sizeof table[0], BUCKETS = 256 };

/* Opcodes are found by their first word. */
static struct {
  pthread_once_t built;           /* written once, and then only read; so is `table` */
  uint16_t buckets[BUCKETS];      /* 1 + the first of a bucket; 0: none */
  uint16_t next_of[OPCODE_COUNT]; /* 1 + the next of its bucket */
} names = {.built = PTHREAD_ONCE_INIT};

static uint32_t bucket_of(const char *name) {
  uint32_t hash = 2166136261u;
  for (; *name && *name != '.'; name++) hash = (hash ^ (uint8_t)*name) * 16777619u;
  return (hash ^ hash >> 11) % BUCKETS;
}

static void build_buckets(void) {
  uint8_t kind = KIND_ARITHMETIC;
  for (uint16_t i = 0; i < OPCODE_COUNT; i++) {
    if (!table[i].name) {
      kind = table[i].kind;
      continue;
    }
    table[i].kind = kind;
    uint16_t *bucket = &names.buckets[bucket_of(table[i].name)];
    names.next_of[i] = *bucket;
    *bucket = (uint16_t)(i + 1);
  }
}

const Opcode *find_opcode(const char *opcode) {
  pthread_once(&names.built, build_buckets);
  const Opcode *best = NULL;
  size_t best_length = 0;
  for (uint16_t k = names.buckets[bucket_of(opcode)]; k; k = names.next_of[k - 1]) {
    const Opcode *candidate = &table[k - 1];
    size_t length = strlen(candidate->name);
    if (strncmp(opcode, candidate->name, length) != 0) continue;
    if (opcode[length] != '\0' && opcode[length] != '.') continue;
    if (best && length <= best_length) continue;
    best = candidate;
    best_length = length;
  }
  return best;
}
