/* instructions.h: the functions that decode instructions. */
#pragma once

#include "ptx/opcodes.h"

Decode *decoder_of(const Opcode *opcode);
