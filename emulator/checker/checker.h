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
 * Every hook is called after the effect took place unless its comment says otherwise, and only for clusters that are
 * checked (checker_events.c), so that unchecked runs cost nothing. */
#pragma once

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

/* warp_accesses.c: an access of a warp, before its effect; after a strong read of global memory: others may have
 * written meanwhile. */
void check_access(Warp *warp, WarpAccess *access);
void check_access_moves(Warp *warp, WarpAccess *access);
void check_access_done(Warp *warp, WarpAccess *access);
/* accesses.c: a wgmma is issued. */
void check_wgmma(Warp *warp, const Instruction *in, struct PendingWgmma *flight);

/* wgmma_registers.c: a wgmma is issued, which uses these registers; the slots must outlive the warp's data. And each
 * instruction of a warp that has WATCH_REGISTERS, before it takes effect. */
AsyncCheck *check_wgmma_issue(Warp *warp, const Instruction *in, const uint16_t *slots, int count);
void check_registers(Warp *warp, const Instruction *in, LaneMask mask);
/* Before any other operation on an mbarrier. True: for no lane of the warp would anything be found now. */
bool check_mbarrier_use(Warp *warp, const Instruction *in, int lane, uint32_t address);

/* The checker's data of a warp are no longer needed. */
void check_warp_end(Warp *warp);
void registers_end(Warp *warp); /* wgmma_registers.c: those about its registers */
