/* undefined.h: where values come from that nothing has written, and where they matter.
 *
 * Reading memory or a register that nothing has written is no mistake; that the value decides something is. So
 * such bits are marked as undefined where they are read, in registers (propagate.c), in local memory
 * (undefined_local.c) and in shared memory (undefined_memory.c), with the number of an origin: which instruction
 * has read what (origins.c). Each instruction of a warp with marks passes them on. In global memory bytes count as
 * written or not (base/written.h, unwritten_global.c).
 *
 * The state of a cluster is UndefinedState, that of a warp WarpUndefined (marks.h).
 *
 * Holds always: while no cluster or warp has marks, nothing is called for its instructions (WATCH_UNDEFINED,
 * any_undefined). A mark without an origin is never reported. An origin is reported once, when its value matters
 * and it is known that the read is neither a race nor a missing wait. */
#ifndef EMULATOR_UNDEFINED_H
#define EMULATOR_UNDEFINED_H

#include "base/fault.h"
#include "checker/order/order.h"

/* Where undefined bits come from: the number of an origin, and whether they have been computed with
 * or only moved. 0: no origin. */
typedef uint16_t OriginNumber;
enum { ORIGIN_MOST = 0x7fff, ORIGIN_COMPUTED = 0x8000 };

/* ---- Instructions ---- */

/* While a warp has undefined values in its registers, WATCH_UNDEFINED is set in `watched`, and the machine calls
 * these for each instruction and each guard before they take effect, whichever lanes the guard enables. */
void check_undefined(Warp *warp, const Instruction *in, LaneMask mask);
void check_undefined_guard(Warp *warp, const Instruction *in, LaneMask group);
/* A load, store or atomic operation has moved bytes between memory, at host addresses, and
 * registers. For atomics these are the sources, and the old value counts as defined. */
typedef struct {
  uint16_t slot;
  uint8_t column_bytes, memory_bytes, offset;
  bool sign; /* a short value is sign-extended */
} MovedRegister;
void check_undefined_moved(Warp *warp, const Instruction *in, LaneMask mask, uint8_t *const *at,
                           const MovedRegister *registers, int count, Access access);
/* For instructions that exchange values between lanes: collects the undefined bits of a source (for
 * a predicate: in `yes`) and their origins, and sets those of the results. */
uint16_t check_undefined_sources(const Warp *warp, const Operand *operand, LaneMask lanes,
                                 uint64_t *bits, LaneMask *yes);
void check_undefined_results(Warp *warp, const Operand *d, const Operand *p, LaneMask lanes,
                             const uint64_t *bits, LaneMask yes, uint16_t origin);

/* Accesses to .local memory, at host addresses; addresses of other memory are ignored. Of those that
 * read, bytes that the thread has never written become undefined. */
void check_local(Warp *warp, const Instruction *in, LaneMask mask, uint8_t *const *at,
                 uint32_t bytes, Access access);
/* A call has copied an argument or a result within .local memory. */
void check_local_copied(Warp *warp, int lane, uint32_t to, uint32_t from, uint32_t bytes);
/* An argument of a function that the runtime provides, and what happens to it: "is printed". */
void check_undefined_argument(Warp *warp, const Instruction *in, int lane, const uint8_t *at,
                              uint32_t bytes, const char *how);
/* These lanes begin this function: registers that it may read before it writes them are undefined. */
void check_unwritten_registers(Warp *warp, const Function *function, LaneMask lanes);
/* Kernel parameters are read from byte `first` to `last`: bytes that belong to no parameter are undefined. */
void check_parameters(Warp *warp, uint64_t first, uint64_t last);
/* A recursive call saves the registers of its caller: their undefined bits are forgotten. */
void check_undefined_forget(Warp *warp);

/* Matrices in registers. The undefined bits of a register, in the layout of its column; NULL: all
 * are defined. */
const void *check_undefined_column(const Warp *warp, uint16_t slot);
uint16_t check_undefined_origin(const Warp *warp, uint16_t slot, int lane);
/* The origin of unwritten bytes that a matrix multiplication reads: row `index` of A, or the eighth
 * columns from 8 * index on of B. */
uint16_t check_matrix_origin(Warp *warp, const Instruction *in, bool of_a, uint32_t index,
                             uint32_t address);
/* Sets the undefined bits of a register of `bytes` bytes in these lanes. bits NULL: all lanes have written it. */
void check_undefined_set(Warp *warp, uint16_t slot, uint32_t bytes, LaneMask lanes,
                         const void *bits, const uint16_t *origins);

/* ---- Global memory ---- */

/* Before a plain or strong access, and before an atomic one, which `at` points to. exchanges: it does not use
 * the old value. */
void check_unwritten(Warp *warp, LaneMask mask, const uint64_t *addresses, bool run, uint32_t bytes,
                     Access access);
void check_unwritten_atomic(Warp *warp, const Instruction *in, LaneMask mask, uint8_t *const *at,
                            uint32_t bytes, bool exchanges);
/* The undefined bits of these bytes of global memory, and their origin; 0: all are written. */
uint16_t check_unwritten_bits(Warp *warp, const Instruction *in, int lane, uint64_t address,
                              uint32_t bytes, uint8_t *bits);
/* What a copy reads; and bytes that one writes or reduces into. */
void unwritten_loaded(const AsyncOperation *operation);
void unwritten_copied(Warp *warp, const Instruction *in, LaneMask mask,
                      const uint8_t *const *sources, const uint32_t *bytes, const uint32_t *shared);
void unwritten_overwritten(const AsyncOperation *operation, uint64_t first, uint64_t bytes,
                           bool reduces);
/* "global memory at byte 4 of an allocation of 64 bytes" */
void unwritten_describe(uint64_t address, char *text, size_t capacity);

/* ---- Shared memory ---- */

/* The undefined bits of what has been written there, and the origin of the first (0: there are none); and a
 * write of such bits. */
OriginNumber check_undefined_bits(const Warp *warp, uint32_t address, uint32_t bytes,
                                  uint8_t *bits);
void check_undefined_put(const Warp *warp, uint32_t address, uint32_t bytes, const uint8_t *bits,
                         OriginNumber origin);
/* A plain load of this lane has read the bytes in `mask` of this word, or an atomic changes them, which nothing
 * has written. */
void undefined_read(Warp *warp, const Instruction *in, int lane, uint32_t rank, uint32_t word,
                    uint32_t mask, bool updates);
/* These bytes are written. */
void undefined_written(ClusterCheck *check, uint32_t address, uint32_t bytes);
/* Are some of these bytes marked? */
bool undefined_any(const ClusterCheck *check, uint32_t rank, uint32_t offset, uint32_t bytes);
/* Bytes of shared memory that nothing has written are copied to shared memory: their origin. */
OriginNumber undefined_copied(Warp *warp, const Instruction *in, int lane, uint32_t address);
/* What a copy takes to global memory. */
typedef struct {
  uint32_t bytes; /* that nothing has written */
  uint32_t first_offset, last_offset;
  uint32_t first_row, last_row, row_bytes; /* of the box; row_bytes 0: there is no box */
  OriginNumber origin;                     /* of a written byte with undefined bits */
} CopiedBytes;
void undefined_goes_out(Warp *warp, const Instruction *in, int lane, const CopiedBytes *copied);
/* A value with undefined bits decides something. `how` completes "here it ...". */
void undefined_matters(Warp *warp, const Instruction *in, int lane, OriginNumber origin,
                       const char *how);
/* What this instruction of the warp has read came before every write, so it is neither a race nor a missing
 * wait. */
void undefined_confirm(ClusterCheck *check, const Warp *reader, const Instruction *in);
/* Rows of A that a wgmma multiplies while a copy may be writing them. Takes the finding, which is
 * reported when a product of these rows matters. */
OriginNumber undefined_origin_of_rows(Warp *warp, const Instruction *in, FindingKept finding);

/* ---- Tensor maps ---- */

/* An instruction uses all 128 bytes of a map, in global memory. `how` says what it does: "changes a field of". */
void check_map_in_global(Warp *warp, const Instruction *in, int lane, uint64_t address,
                         const char *how);
/* Of such a map, in this memory, nothing has written so many bytes. */
void unwritten_in_map(Warp *warp, const Instruction *in, int lane, const Finding *what,
                      const char *how, const char *memory, uint32_t unwritten, uint32_t first);

/* ---- Begin and end ---- */

void undefined_begin(Cluster *cluster);
void undefined_end(ClusterCheck *check, bool failed);
/* The warp's data are no longer needed. */
void undefined_end_warp(Warp *warp);

#endif
