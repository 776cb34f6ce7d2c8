/* instructions.c: which function decodes which instruction, from opcodes.def. */
#include "load/instructions.h"

#define OP(name, decode, traits) decode,
static Decode *const decoders[] = {
#include "ptx/opcodes.def"
};
#undef OP

Decode *decoder_of(const Opcode *opcode) { return decoders[opcode - opcodes]; }
