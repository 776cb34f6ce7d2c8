/* opcodes.h: the instructions of opcodes.def. */
#ifndef EMULATOR_OPCODES_H
#define EMULATOR_OPCODES_H

#include "ptx/ptx.h"

typedef struct Opcode {
  const char *name;
  uint32_t traits;
  uint8_t kind; /* InstructionKind */
} Opcode;

extern const Opcode *const opcodes; /* in the order of opcodes.def */

static inline bool has_trait(const PtxStatement *statement, uint32_t trait) {
  return statement->known && (statement->known->traits & trait);
}

/* The longest name that equals the opcode or its first dotted parts. NULL: none. */
const Opcode *find_opcode(const char *opcode);

#define OP(name, decode, traits) \
  bool decode(Decoder *decoder, const PtxStatement *statement, Instruction *out);
#define SECTION(kind)
#include "ptx/opcodes.def"
#undef OP
#undef SECTION

#endif
