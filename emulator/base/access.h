/* access.h: the host bytes behind an address.
 *
 * Each returns the host bytes behind an address, after bounds and alignment checks, or NULL when it
 * has ended the launch with a fault and its explanation (the caller returns STEP_FAULT). They do
 * not inform the checker: the caller must also call its hooks (checker.h). */
#pragma once

#include "base/warp.h"

uint8_t *shared_bytes_at(Warp *warp, const Instruction *in, int lane, uint32_t shared_address,
                         size_t bytes, size_t alignment, Access access);
uint8_t *global_bytes_at(Warp *warp, const Instruction *in, int lane, uint64_t address,
                         size_t bytes, size_t alignment, Access access);
/* The space that the instruction names. */
uint8_t *space_bytes_at(Warp *warp, const Instruction *in, int lane, Space space, uint64_t address,
                        size_t bytes, size_t alignment, Access access);
/* Any space. *space and *space_address, unless NULL, receive the space and the address within
 * it. */
uint8_t *generic_bytes_at(Warp *warp, const Instruction *in, int lane, uint64_t address,
                          size_t bytes, size_t alignment, Access access, Space *space,
                          uint64_t *space_address);
/* The block that a shared address belongs to, or NULL (no fault) when the rank is not in the cluster.
 */
static inline Cta *shared_address_cta(const Warp *warp, uint32_t shared_address) {
  Cluster *cluster = warp->cta->cluster;
  uint32_t rank = SHARED_RANK(shared_address);
  return rank < cluster->cta_count ? &cluster->ctas[rank] : NULL;
}
