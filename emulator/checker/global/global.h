/* global.h: who has used which bytes of global memory, and what of it is wrong; and the order of launches, copies and
 * the host.
 *
 * The question is the same as for shared memory: who else touched these bytes, and is that access
 * ordered with this one? global_shadow.c keeps, for all memory that is
 * touched, who touched it last. order/ knows what each warp knows about the warps of other
 * clusters. global_races.c decides
 * whether two accesses race, by the PTX memory model, and global_report.c says so.
 *
 * Who touched these bytes last? An access is a GlobalAccess, which has a number. The shadow has
 * two numbers for each word: of the last writes and of the reads since then. If it needs more than
 * one, the number is that of a list (global_list). Numbers only grow. Everything below
 * `launch->settled` is known to be ordered before all that the launch does, so the shadow is never
 * cleared: the end of a kernel moves that limit.
 *
 * The state of a launch is GlobalLaunch, that of a cluster GlobalState (global_state.h); the shadow and the numbers
 * belong to the process.
 *
 * Holds always: each launch, copy and access by the host is an operation with a number; an access of an operation that
 * is ordered before all that runs is settled and forgotten. Whether one operation is ordered before another (streams,
 * events, graph edges) only the runtime knows. It passes functions that answer this in the event operations_ordered; until then
 * all operations are ordered as they begin. */
#pragma once

#include "checker/order/order.h"

/* The values of a plain store: are these bytes of the lane's value the same as those in memory? Do
 * two lanes store the same value? */
typedef struct GlobalStored {
  bool (*same)(const struct GlobalStored *stored, int lane, uint32_t offset, uint32_t bytes);
  bool (*alike)(const struct GlobalStored *stored, int lane, int other);
} GlobalStored;
/* Before the effect. `run`: all 32 lanes, consecutive from addresses[0] on. Addresses of other
 * spaces are skipped. stored: NULL unless it is a plain store. */
void check_global(Warp *warp, const Instruction *in, LaneMask mask, const uint64_t *addresses,
                  bool run, uint32_t bytes, const GlobalKind *kind, const GlobalStored *stored);
/* Before an atomic access, whatever it does: do its lanes meet bytes that nothing has written? exchanges: it does not
 * use the old value. */
void check_unwritten_atomic(Warp *warp, const Instruction *in, LaneMask mask, uint8_t *const *at,
                            uint32_t bytes, bool exchanges);
/* The same as check_global for a plain access in whole words: of all 32 lanes, whose bytes follow each
 * other (step: how many each has), or of any lanes at one place (step 0). False: nothing was reported; call
 * that. */
bool check_global_quickly(Warp *warp, const Instruction *in, LaneMask mask, uint64_t first,
                          uint32_t step, uint32_t bytes, const GlobalKind *kind);
/* A load of these lanes: does it read what the thread's own bulk stores may not have written yet? */
void check_reads_written(Warp *warp, const Instruction *in, LaneMask mask,
                         const uint64_t *addresses, uint32_t bytes);
/* Global memory that holds or held a tensor map was written (tensormap.replace, ordinary stores). */
void check_tensor_map_written(const Instruction *in, uint64_t address, uint32_t bytes);

/* A bulk or tensor copy or reduce is about to be issued, which the checker watches; one has been issued. */
void global_copy_issues(const AsyncOperation *operation);
void global_copy_issued(AsyncOperation *operation);

/* A cluster begins: the order of its launch, or NULL; and then its state. */
struct OrderLaunch *global_order_of(const Launch *launch);
void global_begin_cluster(const Cluster *cluster, bool times_begin_again);
void global_end_cluster(ClusterCheck *check);
