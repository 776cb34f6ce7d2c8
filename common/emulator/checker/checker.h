/* checker.h: the interface of the checker, which verifies that every access is ordered.
 *
 * Every hook is called after the effect took place unless its comment says otherwise, and only when
 * settings()->checks is on (the caller tests it, so that unchecked runs cost nothing). */
#ifndef EMULATOR_CHECKER_H
#define EMULATOR_CHECKER_H

#include "base/events.h"
#include "state/operation.h"

typedef enum { PROXY_GENERIC, PROXY_ASYNC, PROXY_TENSOR_CORE } Proxy;

/* Generic-proxy accesses to shared memory, before the effect: addresses[lane] are shared addresses
 * (rank << 24 | offset) of `bytes` bytes each. volatile, relaxed, acquire and release accesses and
 * atomics are `strong`: they do not race with each other and may order others. */
typedef struct {
  Access access;
  bool strong;
  bool is_volatile;
  bool updates; /* an atomic whose result depends on what was there */
  /* The bytes that a lane is about to store, at most 16; NULL: not known. */
  void (*lane_bytes)(const Warp *warp, const Instruction *in, int lane, uint8_t *bytes);
  /* A lane's compare-and-swap of a word: the bytes that it would leave as they are; NULL: it is none. */
  uint8_t (*kept)(const Warp *warp, const Instruction *in, int lane);
} AccessKind;
void check_shared(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                  uint32_t bytes, const AccessKind *kind);
/* The same for all 32 lanes of a warp, consecutive from `address` on. */
void check_shared_run(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes,
                      const AccessKind *kind);
/* The same for 32 lanes that all read at one address. */
void check_shared_one(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes,
                      const AccessKind *kind);
/* Which number of a matrix each lane has: its row, and its place in the row. */
typedef struct {
  uint8_t row[LANES], place[LANES];
} MatrixPlaces;
/* A matrix in shared memory that the lanes of a warp read together, in whole words. Each of `count` of
 * the places, `apart` from one to the next, says where one word of each lane begins; they must live as
 * long as the kernel. */
typedef struct {
  uint32_t address, pitch, rows, words; /* words of each row; pitch: bytes from row to row */
  uint32_t number_bytes;
  const MatrixPlaces *places;
  uint32_t count, apart;
} SharedMatrix;
/* The words of the lanes at number `index` of the places. */
static inline void matrix_addresses(const SharedMatrix *matrix, uint32_t index,
                                    uint32_t *addresses) {
  const MatrixPlaces *places = &matrix->places[index * matrix->apart];
  for (int lane = 0; lane < LANES; lane++)
    addresses[lane] = matrix->address + places->row[lane] * matrix->pitch +
                      places->place[lane] * matrix->number_bytes;
}
/* False: nothing was checked. Look at the words at each of the places by themselves. */
bool check_shared_matrix(Warp *warp, const Instruction *in, const SharedMatrix *matrix);

enum { GLOBAL_VOLATILE = 1, GLOBAL_NON_COHERENT = 2 };
typedef struct {
  uint8_t access; /* Access */
  uint8_t reach;  /* Reach */
  uint8_t flags;  /* GLOBAL_... */
  uint8_t size;   /* bytes of each element of a strong access */
  bool acquire, release;
  bool swaps;   /* a compare-and-swap */
  bool updates; /* an atomic whose result depends on what was there */
  bool blind;   /* an atomic without a result: it cannot acquire */
  bool unread;  /* an atomic whose result nobody reads, or that has none */
  uint8_t kept; /* a compare-and-swap of a word: the bytes that it would leave as they are */
} GlobalKind;
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
/* The same, with check_unwritten, for a plain access in whole words: of all 32 lanes, whose bytes follow each
 * other (step: how many each has), or of any lanes at one place (step 0). False: nothing was reported; call
 * those. */
bool check_global_quickly(Warp *warp, const Instruction *in, LaneMask mask, uint64_t first,
                          uint32_t step, uint32_t bytes, const GlobalKind *kind);
/* Strong accesses, which may synchronise: before a write; before a read, and after it again, because
 * others may write meanwhile. */
void check_global_release(Warp *warp, LaneMask mask, const uint64_t *addresses,
                          const GlobalKind *kind);
void check_global_acquire(Warp *warp, LaneMask mask, const uint64_t *addresses,
                          const GlobalKind *kind);
/* Accesses to global memory by something else than a kernel: the host, a copy or a fill in a stream.
 * Every launch, copy and host access is an operation with a number; numbers grow with the order in
 * which operations begin. Safe to call from any host thread. */
uint32_t check_operation_begin(void);
uint32_t check_operation_of(const Launch *launch); /* 0: global memory is not checked */
/* What the operation's bytes were last used for by an operation that is not ordered before it. */
typedef struct {
  uint32_t operation;
  bool wrote;            /* else it read */
  const Instruction *in; /* by a kernel; NULL: by no kernel */
  uint64_t address;      /* of the first such byte */
} OperationConflict;
/* Notes that the operation reads or writes these bytes. True: there is a conflict. */
bool check_operation_touch(uint32_t operation, uint64_t first, uint64_t bytes, bool writes,
                           OperationConflict *conflict);
/* How operations are ordered among each other. Until this is called, each is ordered before all
 * later ones. */
typedef struct {
  bool (*ordered)(uint32_t earlier, uint32_t later);
  /* Are all operations before this one ordered before it, and before all that will come? Then they
   * are forgotten, so this should be true as often as possible: with one stream it always is. */
  bool (*settled)(uint32_t operation);
  /* "the copy in stream 2", for reports by kernels; writes into text and returns it */
  const char *(*describe)(uint32_t operation, char *text, size_t capacity);
  /* One of them has waited for what the other one wrote. */
  void (*talk)(uint32_t one, uint32_t other);
} OperationOrder;
void check_operations_are(const OperationOrder *order);
/* Which bytes have been written (unwritten_global.c): before a plain or strong access, and before an
 * atomic one, which `at` points to. exchanges: it does not use the old value. */
void check_unwritten(Warp *warp, LaneMask mask, const uint64_t *addresses, bool run, uint32_t bytes,
                     Access access);
void check_unwritten_atomic(Warp *warp, const Instruction *in, LaneMask mask, uint8_t *const *at,
                            uint32_t bytes, bool exchanges);
/* The undefined bits of these bytes of global memory, and their origin; 0: all are written. */
uint16_t check_unwritten_bits(Warp *warp, const Instruction *in, int lane, uint64_t address,
                              uint32_t bytes, uint8_t *bits);

/* Orders. */
/* Strong accesses of these lanes to global memory. */
void check_strong_global(Warp *warp, const Instruction *in, LaneMask lanes);

/* Before any other operation on it. False: it is not a usable barrier, and this was reported. */
bool check_mbarrier_use(Warp *warp, const Instruction *in, int lane, uint32_t barrier);
/* Would check_mbarrier_use() find nothing for any lane of the warp? */
bool check_mbarrier_known(const Warp *warp, const Instruction *in, uint32_t barrier);
/* The phase that this warp should wait for next, given the answers so far. If these do not lead to this
 * parity, what it has learnt of the barrier from others may. */
uint32_t check_mbarrier_next_phase(Warp *warp, uint32_t barrier, uint32_t parity);
/* Has the barrier been initialised again since this warp used it, without an order between the two? */
bool check_mbarrier_lost(Warp *warp, uint32_t barrier);
/* Did this thread, when it announced bytes last, know that another one had done so in the same phase? */
bool check_mbarrier_announced_again(Warp *warp, uint32_t barrier);
/* Has this warp waited for a barrier of its block at which only threads of another block have arrived? */
bool check_mbarrier_freed_by_others(Warp *warp, uint32_t *offset, uint32_t *other);
/* The phases that went by without a wait of this warp for them. */
uint32_t check_mbarrier_missed_phases(Warp *warp, uint32_t barrier);

/* A tensor copy put a tile into shared memory (or took one) with this layout: to check that it is
 * read with the same swizzle. */
void check_tile_layout(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes,
                       int swizzle_span, bool written, Proxy proxy);
/* A tensor load writes this tile, with rows of row_bytes bytes; and the last such tile that contains
 * this address. */
typedef struct {
  uint32_t first, end; /* offsets */
  uint32_t row_bytes;
  char where[96]; /* "at gemm.cu:40" */
} TileNote;
void check_tile_loaded(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes,
                       uint32_t row_bytes);
bool check_tile_at(const Warp *warp, uint32_t address, TileNote *tile);

void check_reads_written(Warp *warp, const Instruction *in, LaneMask mask,
                         const uint64_t *addresses, uint32_t bytes);

/* Uninitialised values (propagate.c). While a warp has some in its registers, WATCH_UNDEFINED
 * is set in `watched`, and the machine calls these for each instruction and each guard before they
 * take effect, whichever lanes the guard enables. */
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
/* Global memory that holds or held a tensor map was written (tensormap.replace, ordinary stores).
 */
void check_tensor_map_written(const Instruction *in, uint64_t address, uint32_t bytes);
/* A call has copied an argument or a result within .local memory. */
void check_local_copied(Warp *warp, int lane, uint32_t to, uint32_t from, uint32_t bytes);
/* An argument of a function that the runtime provides, and what happens to it: "is printed". */
void check_undefined_argument(Warp *warp, const Instruction *in, int lane, const uint8_t *at,
                              uint32_t bytes, const char *how);
/* These lanes begin this function: registers that it may read before it writes them are undefined. */
void check_unwritten_registers(Warp *warp, const Function *function, LaneMask lanes);
/* undefined_parameters.c. Kernel parameters are read from byte `first` to `last`: bytes that
 * belong to no parameter are undefined. */
void check_parameters(Warp *warp, uint64_t first, uint64_t last);
/* A recursive call saves the registers of its caller: their undefined bits are forgotten. */
void check_undefined_forget(Warp *warp);

/* Undefined bytes of a tile in shared memory, one bit for each byte (at most 32). */
typedef struct {
  uint32_t unwritten; /* nothing has written them */
  uint32_t undefined; /* some of their bits are undefined */
  uint16_t origin;    /* of the first of the latter */
} UndefinedBytes;
UndefinedBytes check_undefined_bytes(const Warp *warp, uint32_t address, uint32_t bytes);
/* The undefined bits of what has been written there; and a write of such bits. */
void check_undefined_bits(const Warp *warp, uint32_t address, uint32_t bytes, uint8_t *bits);
void check_undefined_put(const Warp *warp, uint32_t address, uint32_t bytes, const uint8_t *bits,
                         uint16_t origin);

/* What a copy takes to global memory: add all its bytes, at most 32 at a time, and then report.
 * whole_only: unwritten bytes beside written ones may be the padding of a struct. */
typedef struct {
  uint32_t bytes; /* that nothing has written */
  uint32_t first_offset, last_offset;
  uint32_t first_row, last_row, row_bytes; /* of the box; row_bytes 0: there is no box */
  uint16_t origin;                         /* of a written byte with undefined bits */
} CopiedBytes;

/* Matrices in registers. The undefined bits of a register, in the layout of its column; NULL: all
 * are defined. */
const void *check_undefined_column(const Warp *warp, uint16_t slot);
uint16_t check_undefined_origin(const Warp *warp, uint16_t slot, int lane);
/* The origin of unwritten bytes that a matrix multiplication reads: row `index` of A, or the eighth
 * columns from 8 * index on of B. */
uint16_t check_matrix_origin(Warp *warp, const Instruction *in, bool of_a, uint32_t index,
                             uint32_t address);
/* Sets the undefined bits of a register of `bytes` bytes in these lanes. */
void check_undefined_set(Warp *warp, uint16_t slot, uint32_t bytes, LaneMask lanes,
                         const void *bits, const uint16_t *origins);
/* All lanes have written the register. */
void check_undefined_clear(Warp *warp, uint16_t slot, uint32_t bytes);
/* A value with this origin goes to global memory. */
void check_undefined_stored(Warp *warp, const Instruction *in, int lane, uint16_t origin);
enum { ORIGIN_COMPUTED = 0x8000 }; /* added to an origin: the value is a result of arithmetic */

/* wgmma: registers of a warp that an operation in flight uses. */
/* Called before each instruction of a warp that has WATCH_REGISTERS. */
void check_registers(Warp *warp, const Instruction *in, LaneMask mask);
/* Frees the data about a warp's registers. */
void registers_end(Warp *warp);
/* The register slots must outlive the warp's data. */
AsyncCheck *check_wgmma_issue(Warp *warp, const Instruction *in, const uint16_t *slots,
                              int slot_count);
/* What it reads next is of an operand that begins at this address. */
void check_wgmma_operand(AsyncCheck *operation, uint32_t address);
/* True: some of these bytes may be undefined. */
bool check_wgmma_reads(Warp *warp, AsyncCheck *operation, const SharedPiece *pieces, int count);
/* The same for the rows of A that this warp multiplies. A kernel may multiply rows that a copy is
 * writing and never use their products, so such findings wait until a product matters. Sets
 * `unordered` to the origin of such products. 0: there are none. */
bool check_wgmma_rows(Warp *warp, AsyncCheck *operation, const SharedPiece *pieces, int count,
                      uint16_t *unordered);

#endif
