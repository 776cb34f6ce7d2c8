/* instructions.c: the one table of instructions, joined from every room's rows. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/program.h"

static const struct {
  const InstructionRow *rows;
  bool is_async;
} rooms[] = {{alu_rows, false},      {memory_rows, false}, {flow_rows, false},
             {mbarrier_rows, false}, {async_rows, true},   {tensor_core_rows, true}};
enum { ROOM_COUNT = sizeof rooms / sizeof rooms[0], BUCKETS = 256, MAX_ROWS = 2048 };

typedef struct {
  const InstructionRow *row;
  bool is_async;
  uint16_t next; /* 1 + the next of its bucket */
} TableRow;

static TableRow table[MAX_ROWS];
static uint16_t buckets[BUCKETS];
static pthread_once_t built = PTHREAD_ONCE_INIT;

/* Rows are found by the first word of the opcode. */
static uint32_t bucket_of(const char *name) {
  uint32_t hash = 2166136261u;
  for (; *name && *name != '.'; name++) hash = (hash ^ (uint8_t)*name) * 16777619u;
  return (hash ^ hash >> 11) % BUCKETS;
}

static void build_table(void) {
  uint16_t count = 0;
  for (int room = 0; room < ROOM_COUNT; room++)
    for (const InstructionRow *row = rooms[room].rows; row->name && row->name[0]; row++) {
      if (count == MAX_ROWS) {
        fprintf(stderr, "emulator: more than %d instruction rows\n", MAX_ROWS);
        abort();
      }
      uint16_t *bucket = &buckets[bucket_of(row->name)];
      table[count] = (TableRow){row, rooms[room].is_async, *bucket};
      *bucket = ++count;
    }
}

/* The longest row whose name is the whole opcode or ends where a modifier does. */
const InstructionRow *instruction_row(const PtxStatement *statement, bool *is_async) {
  pthread_once(&built, build_table);
  const InstructionRow *best = NULL;
  size_t best_length = 0;
  *is_async = false;
  for (uint16_t k = buckets[bucket_of(statement->opcode)]; k; k = table[k - 1].next) {
    const InstructionRow *row = table[k - 1].row;
    size_t length = strlen(row->name);
    if (strncmp(statement->opcode, row->name, length) != 0) continue;
    if (statement->opcode[length] != '\0' && statement->opcode[length] != '.') continue;
    if (best && length <= best_length) continue;
    best = row;
    best_length = length;
    *is_async = table[k - 1].is_async;
  }
  return best;
}
