/* emulator.h: the types that all folders of the emulator share.
 *
 *   text of PTX --ptx.h--> statements --decode.c--> Instruction[] --machine.c--> effects
 *
 * The machine runs warps of 32 lanes. One Instruction acts on all lanes of a mask at once: its
 * `execute` function reads and writes the warp's register columns and returns what to do next. */
#ifndef EMULATOR_H
#define EMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/chip.h"
#include "base/traits.h"

enum {
  LANES = CHIP_WARP_THREADS,
  MAX_CLUSTER_CTAS = CLUSTER_CTAS,
  SHARED_RESERVED_BYTES = CTA_SHARED_RESERVED
};
typedef uint32_t LaneMask;
/* For arrays with one element per lane: aligned for the host's vector instructions. */
#define LANE_ARRAY __attribute__((aligned(64)))

typedef struct Module Module;     /* module.h: one PTX text, loaded */
typedef struct Function Function; /* module.h: an entry or a device function */
typedef struct Instruction Instruction;
typedef struct Warp Warp;
typedef struct Cta Cta;
typedef struct Cluster Cluster;
typedef struct Launch Launch;

typedef struct {
  uint32_t x, y, z;
} Index3;

/* ---- Addresses ------------------------------------------------------------------------------
 *
 * Global memory: the device address IS the host address (memory.h keeps the list of allocations).
 * Shared memory: 32 bits, rank of the CTA in its cluster << 24 | offset. A CTA addresses its own
 * memory with its own rank. As on the GPU, offsets 0 to 1023 are reserved and variables start at
 * 1024. Generic addresses of the other spaces carry a tag in the top byte, the space's address
 * below. */
#define GENERIC_TAG_MASK 0xff00000000000000ull
#define GENERIC_SHARED 0x0100000000000000ull
#define GENERIC_LOCAL 0x0200000000000000ull
#define GENERIC_PARAM 0x0300000000000000ull
#define SHARED_RANK(address) ((uint32_t)(address) >> 24)
#define SHARED_OFFSET(address) ((uint32_t)(address)&0xffffffu)

typedef enum {
  SPACE_GENERIC,
  SPACE_GLOBAL,
  SPACE_CONST,
  SPACE_SHARED, /* shared::cta and shared::cluster alike: the rank is in the address */
  SPACE_LOCAL,
  SPACE_PARAM
} Space;

typedef enum { ACCESS_READ, ACCESS_WRITE, ACCESS_ATOMIC } Access;

typedef struct {
  uint32_t address; /* shared: rank << 24 | offset */
  uint32_t bytes;
} SharedPiece;

/* ---- Registers and operands -----------------------------------------------------------------
 *
 * A register is a column of 32 lanes. 8-, 16- and 32-bit values take one slot (128 bytes: 32 x
 * uint32_t, short values zero-extended), 64-bit values two neighbouring slots (32 x uint64_t),
 * 128-bit values four (32 x 16 bytes). Constants have slots as well, filled once, so an immediate
 * is read like a register. A predicate is one uint32_t with one bit per lane. */
enum { SLOT_BYTES = LANES * 4 };

typedef enum {
  OPERAND_NONE,
  OPERAND_REGISTER,  /* a register or a constant: slot, bytes */
  OPERAND_PREDICATE, /* slot is the predicate's number; negated for "!p" */
  OPERAND_ADDRESS,   /* [slot + offset]; bytes is the width of the base, 4 or 8 */
  OPERAND_VECTOR,    /* {a, b, ...}: count operands at elements */
  OPERAND_LABEL,     /* target: index of an instruction of the same function */
  OPERAND_FUNCTION,  /* callee */
  OPERAND_SINK       /* "_": the result is discarded */
} OperandKind;

typedef struct Operand Operand;
struct Operand {
  uint8_t kind;
  uint8_t bytes;    /* declared width of the register: 1, 2, 4, 8, 16; a literal's is said below */
  bool negated;     /* "!p"; of video instructions also "-%r1" */
  const char *part; /* of video instructions: "h1" of %r1.h1; else NULL */
  bool constant; /* its value is known at decode time: constant_value (a predicate's: 0 or not) */
  bool floating; /* a floating literal: constant_value is f32 bits when bytes is 4 (0f...), f64 bits
                    when bytes is 8 (0d... and decimals). Integer literals have 8 bytes. */
  uint16_t slot;
  uint16_t count;
  uint32_t target;
  int64_t offset;
  uint64_t constant_value;
  const Operand *elements;
  Function *callee;
};

/* ---- Instructions --------------------------------------------------------------------------- */
typedef enum {
  STEP_NEXT, /* done: continue with the next instruction */
  /* the instruction has set the lanes' next instruction itself (branches, call, ret, exit) */
  STEP_JUMPED,
  STEP_BLOCKED, /* nothing was done: try the same instruction again after cluster->changes moved */
  STEP_YIELD,   /* done, but other warps should run first (after a failed poll) */
  STEP_FAULT    /* the launch has ended; fault() returned this */
} StepResult;

typedef StepResult (*Execute)(Warp *warp, const Instruction *in, LaneMask mask);

struct Instruction {
  Execute execute;
  uint16_t d, a, b, c; /* the first four operands' slots, for the fast register-only handlers */
  int16_t guard;       /* the guarding predicate; -1: none */
  bool guard_negated;
  bool leader; /* has a label: groups of lanes may merge here */
  uint8_t operand_count;
  const Operand *operand; /* all operands, in the order of the text */
  const void *decoded;    /* the decoded modifiers, in the form that the decoder's folder chose */
  const char *text;       /* the statement as written, for messages */
  uint32_t traits;        /* traits.h */
  uint8_t kind;           /* InstructionKind */
  uint32_t line;          /* its line in the PTX */
  uint32_t source_line;   /* its line in the .cu, from .loc; 0: unknown */
  const char *source_file;
  uint32_t inner_line; /* the line in the wrapper that was inlined there; 0: none */
  const char *inner_file;
};

/* ---- The machine's state -------------------------------------------------------------------- */
enum {
  WATCH_REGISTERS = 1, /* checker: check_registers */
  WATCH_STEPS = 2,     /* record: record_step */
  WATCH_POLLING = 4,   /* state: polling_step */
  WATCH_UNDEFINED = 8  /* checker: check_undefined */
};

struct Warp {
  uint8_t *registers; /* slots of SLOT_BYTES each, 64-byte aligned */
  uint32_t *predicates;
  uint32_t carry; /* the condition code of add.cc and similar instructions: one bit per lane */
  Cta *cta;
  uint32_t index; /* warp of its CTA */
  LaneMask lanes; /* existing lanes (the last warp of a block may be partial) */
  LaneMask exited;
  uint8_t *local;                /* .local memory: lane n's bytes are at local + n * local_bytes */
  uint32_t local_bytes;          /* of each lane; valid .local addresses are 0 to local_bytes - 1 */
  struct WarpFlow *flow;         /* groups.h: groups of lanes, places, call stacks */
  struct WarpAsync *async;       /* operation.h: bulk groups, cp.async groups of each lane */
  struct WarpTensorCore *tensor; /* wgmma.c: groups in flight */
  struct WarpCheck *check;       /* check_registers.c */
  struct WarpUndefined *undefined; /* check_undefined.c: register bits that have never been set */
  uint8_t watched;                 /* who observes every instruction: WATCH_... */
};

struct Cta {
  Cluster *cluster;
  uint32_t rank;   /* in its cluster */
  Index3 index;    /* ctaid */
  uint8_t *shared; /* shared_bytes bytes; index with SHARED_OFFSET */
  uint32_t shared_bytes;
  uint32_t warp_count;
  Warp *warps;
  uint32_t running_warps;       /* warps with lanes that have not exited */
  struct CtaBarriers *barriers; /* flow.h: named barriers */
  struct CtaCheck *check;       /* check_state.h: the checker's state of shared memory */
};

struct Cluster {
  Launch *launch;
  uint32_t number; /* in launch order */
  uint32_t cta_count;
  Cta *ctas;
  /* incremented whenever something happens that a blocked warp may be waiting for */
  uint64_t changes;
  /* machine.c: nothing can run and nothing is in flight: a blocked try_wait returns false once,
   * for programs that limit their waits */
  bool waits_expire;
  bool waits_stop; /* machine.c: unfinished waits stay blocked, so that a report can name them */
  uint64_t random; /* state of the random schedule's generator */
  struct AsyncQueue *async;   /* async.c: what is in flight */
  struct ClusterCheck *check; /* check_state.h; NULL: nothing is checked */
  struct ClusterFlow *flow;   /* cluster.h */
  struct Recorder *recorder;  /* NULL: this cluster is not recorded; else its warps have
                                 WATCH_STEPS */
};

/* Properties of a kernel that all folders may use. */
typedef struct {
  const char *name;
  uint32_t parameter_count;
  const uint32_t *parameter_offsets; /* offset of each parameter in Launch.parameters */
  const uint32_t *parameter_sizes;
  uint32_t parameter_bytes;
  uint32_t static_shared_bytes;
  uint32_t local_bytes;
  uint32_t registers;      /* per thread, at most 255 */
  bool registers_known;    /* from machine code; otherwise an estimate */
  uint32_t max_threads;    /* from .maxntid, else 1024 */
  bool debug;              /* compiled with -G */
  Index3 required_cluster; /* .reqnctapercluster; {0,0,0}: none */
} FunctionTraits;

struct Launch {
  const Function *kernel;
  const FunctionTraits *traits; /* the kernel's */
  Index3 grid, block, cluster;  /* cluster: {1,1,1} without clusters */
  const uint8_t *parameters;    /* laid out as the entry's .param list */
  size_t parameter_bytes;
  uint32_t dynamic_shared_bytes;
  bool cooperative; /* all of the grid is resident at once: grid barriers may be used */
  /* scheduler.c: for a cooperative grid, the memory that %envreg1 and %envreg2 point to */
  uint64_t workspace;
  int recording;           /* its number in the recording; -1: not recorded */
  int error;               /* the cudaError_t that ended it, 0: none */
  struct LaunchFlow *flow; /* scheduler.c */
};

/* ---- Settings, from the environment, read once (settings.c) ---------------------------------- */
/* Numbers of blocks in a grid, x first; the last range of a list has UINT64_MAX for both. */
typedef struct {
  uint64_t first, last;
} BlockRange;
typedef enum { SCHEDULE_LATE, SCHEDULE_EARLY, SCHEDULE_RANDOM } Schedule;
typedef struct {
  Schedule schedule; /* EMULATOR_SCHEDULE=late|early|random:SEED */
  uint64_t seed;
  bool check;              /* EMULATOR_CHECK=on|off|errors|strict|layout: false for off alone */
  bool check_errors_only;  /* errors: strict findings are left out */
  bool check_strict;       /* strict: exit code 3 for strict findings too */
  bool check_layout;       /* layout: strict, and check_layout.c too */
  bool fast_math;          /* EMULATOR_MATH=exact|fast */
  uint64_t steps;          /* EMULATOR_STEPS: warp instructions of one cluster without progress */
  int threads;             /* EMULATOR_THREADS: host threads, default all cores */
  const char *record_file; /* EMULATOR_RECORD; NULL: nothing is recorded */
  const char *record_blocks_text;  /* EMULATOR_RECORD_BLOCKS as written; "first" */
  const BlockRange *record_blocks; /* the same; NULL: the first cluster of each launch */
  bool count;                      /* EMULATOR_COUNT=1 */
  uint64_t record_limit;           /* EMULATOR_RECORD_LIMIT, in bytes */
} Settings;
/* an invalid value prints a message with the value and the choices, exit code 2 */
const Settings *settings(void);

/* ---- Reading and writing registers ---------------------------------------------------------- */
static inline uint32_t *column_u32(const Warp *warp, unsigned slot) {
  return (uint32_t *)(void *)(warp->registers + (size_t)slot * SLOT_BYTES);
}
static inline uint64_t *column_u64(const Warp *warp, unsigned slot) {
  return (uint64_t *)(void *)(warp->registers + (size_t)slot * SLOT_BYTES);
}
static inline uint64_t lane_value(const Warp *warp, const Operand *operand, int lane) {
  return operand->bytes == 8 ? column_u64(warp, operand->slot)[lane]
                             : column_u32(warp, operand->slot)[lane];
}
static inline void set_lane_value(Warp *warp, const Operand *operand, int lane, uint64_t value) {
  if (operand->kind == OPERAND_SINK) return;
  if (operand->bytes == 8)
    column_u64(warp, operand->slot)[lane] = value;
  else
    column_u32(warp, operand->slot)[lane] = (uint32_t)value;
}
static inline bool lane_predicate(const Warp *warp, const Operand *operand, int lane) {
  return ((warp->predicates[operand->slot] >> lane) & 1u) != (operand->negated ? 1u : 0u);
}
static inline void set_lane_predicate(Warp *warp, const Operand *operand, int lane, bool value) {
  if (operand->kind == OPERAND_SINK) return;
  uint32_t bit = 1u << lane;
  warp->predicates[operand->slot] =
      value ? warp->predicates[operand->slot] | bit : warp->predicates[operand->slot] & ~bit;
}
/* The address that a [register + offset] operand names, in the space that the instruction
 * states. */
static inline uint64_t lane_address(const Warp *warp, const Operand *operand, int lane) {
  uint64_t sum = lane_value(warp, operand, lane) + (uint64_t)operand->offset;
  return operand->bytes == 8 ? sum : (uint32_t)sum;
}
static inline int first_lane(LaneMask mask) { return __builtin_ctz(mask); }

/* ---- Memory accesses (access.c) ---------------------------------------------------------------
 *
 * Each returns the host bytes behind an address, after bounds and alignment checks, or NULL when it
 * has ended the launch with a fault and its explanation (the caller returns STEP_FAULT). They do
 * not inform the checker: the caller must also call its hooks (checker.h). */
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
/* The CTA that a shared address belongs to, or NULL (no fault) when the rank is not in the cluster.
 */
Cta *shared_address_cta(const Warp *warp, uint32_t shared_address);

/* ---- Ends and reports (report.c) -------------------------------------------------------------
 *
 * fault: an error that the hardware reports too, with the explanation that the hardware does not
 * give. Ends the launch with `error` (a cudaError_t: 700 illegal address, 702 time-out, 710 assert,
 * 715 illegal instruction, 716 misaligned address, 719 launch failure) and prints, on stderr: rule,
 * kernel, block, threads of the mask, source line, PTX line, message. Only the first fault of a
 * launch is printed. finding: a mistake that the hardware would not report (the checker). The
 * launch continues. Findings of one cause are printed once and counted (findings.c). `rule` is a
 * short fixed name such as "missing-proxy-fence". */
StepResult fault(Warp *warp, const Instruction *in, LaneMask lanes, int error, const char *rule,
                 const char *format, ...) __attribute__((format(printf, 6, 7)));
void finding(Warp *warp, const Instruction *in, LaneMask lanes, const char *rule,
             const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Called for every fault and finding, including those that are not printed because they were
 * printed before. NULL: no listener. */
typedef struct {
  Warp *warp;
  const Instruction *in;
  LaneMask lanes;
  bool ends_launch;
  const char *rule, *text;
} ReportNote;
extern void (*report_listener)(const ReportNote *note);
/* The emulator cannot get the memory that it needs: prints a message and ends the program with exit
 * code 1. */
_Noreturn void out_of_memory(void);
uint32_t thread_of(const Warp *warp, int lane); /* linear thread number in its CTA */

/* Something happened that a blocked warp may be waiting for. */
static inline void cluster_changed(Cluster *cluster) { cluster->changes++; }

#endif
