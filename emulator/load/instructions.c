/* instructions.c: which function decodes which instruction, from opcodes.def. */
#include "load/instructions.h"

#include <stddef.h>

#define OP(name, decode, traits) decode,
#define SECTION(kind) NULL,
static Decode *const decoders[] = {
#include "ptx/opcodes.def"
};
#undef OP
#undef SECTION

Decode *decoder_of(const Opcode *opcode) { return decoders[opcode - opcodes]; }
