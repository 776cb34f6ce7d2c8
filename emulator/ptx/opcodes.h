/* opcodes.h: the instructions of opcodes.def. */
#pragma once

#include "ptx/ptx.h"

typedef struct Opcode {
  const char *name;
  const char *refusal; /* why it is refused; NULL: it is not */
  uint8_t operand_use; /* OperandUse */
  uint32_t traits;
  uint8_t kind; /* InstructionKind */
} Opcode;

extern const Opcode *const opcodes; /* in the order of opcodes.def */

static inline bool has_trait(const PtxStatement *statement, uint32_t trait) {
  return statement->known && (statement->known->traits & trait);
}

/* The longest name that equals the opcode or its first dotted parts. NULL: none. */
const Opcode *find_opcode(const char *opcode);

/* refused_names.c: the first instruction of a text that is refused by its name; false: there is none. */
typedef struct {
  char kernel[256],
      opcode[128]; /* kernel: the last entry before it; "": none, or too long a name */
  const char *why;
} RefusedName;
bool find_refused_name(const char *text, RefusedName *found);
