/* instructions.c: which function decodes which instruction, from opcodes.def. */
#include "load/instructions.h"

#include <stddef.h>

#define OP(name, decode, operand_use, traits) Decode decode;
#define SECTION(kind)
#define REFUSED(name, why)
#include "ptx/opcodes.def"
#undef OP
#undef SECTION
#undef REFUSED

#define OP(name, decode, operand_use, traits) decode,
#define SECTION(kind) NULL,
#define REFUSED(name, why) NULL,
static Decode *const decoders[] = {
#include "ptx/opcodes.def"
};
#undef OP
#undef SECTION
#undef REFUSED

Decode *decoder_of(const Opcode *opcode) { return decoders[opcode - opcodes]; }
