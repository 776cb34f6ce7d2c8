/* tensor_core.h: what the decoders of the tensor cores' instructions share. */
#ifndef EMULATOR_TENSOR_CORE_H
#define EMULATOR_TENSOR_CORE_H

#include "ptx/form.h"

/* The columns of the registers of operand `index`: a vector, or a single register. Literals get a
 * column of their own. False, with a message, when it is not `count` registers of this type. */
bool register_list(Form *form, int index, Type type, int count, bool written, uint16_t *slots);
/* A literal that must be one of two values. */
bool literal_choice(Form *form, int index, int64_t first, int64_t second, const char *what,
                    int64_t *value);

/* wmma.c */
bool decode_wmma(Decoder *decoder, const PtxStatement *statement, Instruction *out);
bool decode_wmma_move(Decoder *decoder, const PtxStatement *statement, Instruction *out);

/* wgmma.c */
bool decode_wgmma(Decoder *decoder, const PtxStatement *statement, Instruction *out);
bool decode_wgmma_sparse(Decoder *decoder, const PtxStatement *statement, Instruction *out);
bool decode_wgmma_fence(Decoder *decoder, const PtxStatement *statement, Instruction *out);
bool decode_wgmma_commit(Decoder *decoder, const PtxStatement *statement, Instruction *out);
bool decode_wgmma_wait(Decoder *decoder, const PtxStatement *statement, Instruction *out);

#endif
