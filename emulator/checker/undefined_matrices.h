/* undefined_matrices.h: passes undefined bits through matrices (undefined_matrices.c, undefined_wgmma.c), before the
 * instruction changes any register. */
#pragma once

#include "checker/checker.h"
#include "tensor_core/wgmma.h"

void undefined_mma(Warp *warp, const Instruction *in, LaneMask mask);
/* ldmatrix, stmatrix: the addresses of the rows, eight for each register. movmatrix: NULL. */
void undefined_matrices_move(Warp *warp, const Instruction *in, const uint32_t *addresses,
                             LaneMask mask);
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
/* descriptor_check.c: its matrix descriptors. */
void check_descriptors(Warp *warp, const Instruction *in, const PendingWgmma *flight);
