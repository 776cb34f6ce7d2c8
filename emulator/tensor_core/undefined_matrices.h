/* undefined_matrices.h: passes undefined bits through matrices (undefined_matrices.c). Called only when checks are on,
 * before the instruction changes any register. */
#ifndef EMULATOR_TENSOR_UNDEFINED_H
#define EMULATOR_TENSOR_UNDEFINED_H

#include "checker/checker.h"
#include "tensor_core/wgmma.h"

void undefined_mma(Warp *warp, const MmaForm *form, const uint16_t *a_slot, const uint16_t *b_slot,
                   const uint16_t *c_slot, const uint16_t *d_slot, LaneMask mask);

/* ldmatrix, stmatrix: the addresses of the rows, eight for each register. movmatrix. */
void undefined_matrix_load(Warp *warp, const uint32_t *addresses, const uint16_t *slots, int count,
                           bool transposed, LaneMask mask);
void undefined_matrix_store(const Warp *warp, const uint32_t *addresses, const uint16_t *slots,
                            int count, bool transposed);
void undefined_matrix_turn(Warp *warp, uint16_t from, uint16_t to, LaneMask mask);

/* What a wgmma reads and writes, when it is issued. */
typedef struct {
  const WgmmaForm *form;
  uint64_t descriptor_a, descriptor_b;
  const uint16_t *a_slot, *d_slot; /* a_slot: NULL if A is in shared memory */
  bool scale_d;
  bool undefined_tiles; /* some bytes of A or B in shared memory may be undefined */
  uint16_t unordered;   /* the origin of the products if a copy may be writing A's rows; or 0 */
} WgmmaIssue;
void undefined_wgmma(Warp *warp, const Instruction *in, const WgmmaIssue *issue);

/* descriptor_check.c */
void check_descriptor(Warp *warp, const Instruction *in, const WgmmaForm *form, Side side,
                      uint64_t bits);

#endif
