/* instructions.h: the functions that decode instructions. */
#ifndef EMULATOR_INSTRUCTIONS_H
#define EMULATOR_INSTRUCTIONS_H

#include "ptx/opcodes.h"

Decode *decoder_of(const Opcode *opcode);

#endif
