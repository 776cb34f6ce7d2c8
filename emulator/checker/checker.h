/* checker.h: the checker, for those who execute: it hears of every access, and finds what the hardware would not report.
 *
 * Each access and event goes to five folders, each of which has a question of its own, a state of its own and one
 * header, whose head says more: order/ who has seen what, undefined/ where values come from that nothing has written,
 * shared/ who has used which word of shared memory, lanes/ the same among the lanes of a warp, global/ the same for
 * global memory. A folder calls only those named before it, and offers at most 15 functions; order/ and lanes/ also
 * have inline ones in their headers, because each access asks what their vectors and stamps say. Here are the functions
 * that hand on to several of them (accesses.c), the events that concern several (checker_events.c), and what needs no
 * folder: the registers of a wgmma (wgmma_registers.c), the bytes of tensor maps (map_bytes.c).
 *
 * Every hook is called after the effect took place unless its comment says otherwise, and only when
 * settings()->checks is on (the caller tests it, so that unchecked runs cost nothing). */
#ifndef EMULATOR_CHECKER_H
#define EMULATOR_CHECKER_H

#include "checker/global/global.h"
#include "checker/lanes/lanes.h"
#include "checker/order/order.h"
#include "checker/shared/shared.h"
#include "checker/undefined/undefined.h"

/* Generic-proxy accesses to shared memory, before the effect: addresses[lane] are shared addresses
 * (rank << 24 | offset) of `bytes` bytes each. */
void check_shared(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                  uint32_t bytes, const AccessKind *kind);
/* The same for all 32 lanes of a warp, consecutive from `address` on. */
void check_shared_run(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes,
                      const AccessKind *kind);
/* The same for 32 lanes that all read at one address. */
void check_shared_one(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes,
                      const AccessKind *kind);

/* wgmma_registers.c: a wgmma is issued, which uses these registers; the slots must outlive the warp's data. And each
 * instruction of a warp that has WATCH_REGISTERS, before it takes effect. */
AsyncCheck *check_wgmma_issue(Warp *warp, const Instruction *in, const uint16_t *slots, int count);
void check_registers(Warp *warp, const Instruction *in, LaneMask mask);
/* What a wgmma reads of an operand. True: some of these bytes may be undefined.
 * unordered: NULL for B. For the rows of A that this warp multiplies: a kernel may multiply rows that a copy is
 * writing and never use their products, so such findings wait until a product matters; the origin of such products;
 * 0: there are none. */
bool check_wgmma_reads(Warp *warp, const Instruction *in, AsyncCheck *operation,
                       const SharedOperand *operand, const SharedPiece *pieces, int count,
                       uint16_t *unordered);

/* Before any other operation on an mbarrier. True: for no lane of the warp would anything be found now. */
bool check_mbarrier_use(Warp *warp, const Instruction *in, int lane, uint32_t address);

/* The checker's data of a warp are no longer needed. */
void check_warp_end(Warp *warp);
void registers_end(Warp *warp); /* wgmma_registers.c: those about its registers */

#endif
