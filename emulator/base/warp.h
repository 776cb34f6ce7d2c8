/* warp.h: the types that all folders of the emulator share: a running kernel's warps, blocks, clusters
 * and launch.
 *
 *   text of PTX --ptx.h--> statements --decode.c--> Instruction[] --machine.c--> effects
 *
 * The machine runs warps of 32 lanes. One Instruction acts on all lanes of a mask at once: its
 * `execute` function reads and writes the warp's register columns and returns what to do next. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/chip.h"
#include "base/instruction.h"

enum { MAX_CLUSTER_CTAS = CLUSTER_CTAS };

typedef struct Cta Cta;
typedef struct Cluster Cluster;
typedef struct Launch Launch;

typedef struct {
  uint32_t x, y, z;
} Index3;

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
  uint32_t index; /* warp of its block */
  LaneMask lanes; /* existing lanes (the last warp of a block may be partial) */
  LaneMask exited;
  uint8_t *local;                /* .local memory: lane n's bytes are at local + n * local_bytes */
  uint32_t local_bytes;          /* of each lane; valid .local addresses are 0 to local_bytes - 1 */
  LaneMask *local_written;       /* undefined_local.c: the lanes that have written each byte */
  uint32_t local_end;            /* no byte from there on has been written */
  struct WarpFlow *flow;         /* groups.h: groups of lanes, places, call stacks */
  struct WarpAsync *async;       /* operation.h: bulk groups, cp.async groups of each lane */
  struct WarpTensorCore *tensor; /* wgmma.c: groups in flight */
  struct WgmmaRegisters *wgmma_registers; /* wgmma_registers.c */
  struct WarpUndefined *undefined;        /* propagate.c: register bits that have never been set */
  uint8_t watched;                        /* who observes every instruction: WATCH_... */
  uint8_t not_yet; /* mbarrier.c: how many more waits of a row that answers "not yet" */
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
};

/* The allocation in which a load or store has found its bytes last (arithmetic/find_bytes.c): it is usually the next
 * one's, too. */
typedef struct {
  uint64_t first, end;
  uint32_t generation; /* of memory_generation then */
  bool read_only;
} KnownPlace;
enum { KNOWN_PLACES = 16 };

struct Cluster {
  Launch *launch;
  uint32_t number; /* in launch order */
  uint32_t cta_count;
  Cta *ctas;
  /* incremented whenever something happens that a blocked warp may be waiting for */
  uint64_t changes;
  uint64_t mbarrier_changes; /* mbarrier.c: incremented whenever a wait for an mbarrier may end */
  /* machine.c: nothing can run and nothing is in flight: a blocked try_wait returns false once,
   * for programs that limit their waits */
  bool waits_expire;
  bool waits_stop; /* machine.c: unfinished waits stay blocked, so that a report can name them */
  uint64_t random; /* state of the random schedule's generator */
  struct AsyncQueue *async;             /* async.c: what is in flight */
  struct ClusterCheck *check;           /* checker/order/order.h; NULL: nothing is checked */
  struct ClusterFlow *flow;             /* cluster.h */
  struct Recorder *recorder;            /* NULL: this cluster is not recorded; else its warps have
                                 WATCH_STEPS */
  const struct EventHandlers *handlers; /* of its warps' events (base/events.h) */
  KnownPlace places[KNOWN_PLACES];
};

/* Properties of a kernel that all folders may use. */
typedef struct {
  const char *name;
  uint32_t parameter_count;
  const uint32_t *parameter_offsets; /* offset of each parameter in Launch.parameters */
  const uint32_t *parameter_sizes;
  uint32_t parameter_bytes;
  bool parameter_gaps; /* some of these belong to no parameter */
  uint32_t static_shared_bytes;
  uint32_t local_bytes;
  uint32_t registers;      /* per thread, at most 255 */
  bool registers_known;    /* from machine code; otherwise an estimate */
  uint32_t loads_at_once;  /* of global memory, by a warp, in its machine code; 0: unknown */
  uint32_t max_threads;    /* from .maxntid, else 1024 */
  bool debug;              /* compiled with -G */
  bool asks_for_reserved;  /* its module reads %reserved_smem_offset_... */
  bool meets_blocks;       /* some instruction has Instruction.meets_blocks */
  Index3 required_cluster; /* .reqnctapercluster; {0,0,0}: none */
} FunctionTraits;

struct Launch {
  const Function *kernel;
  const FunctionTraits *traits; /* the kernel's */
  Index3 grid, block, cluster;  /* cluster: {1,1,1} without clusters */
  const uint8_t *parameters;    /* laid out as the entry's .param list */
  size_t parameter_bytes;
  uint32_t parameters_missing; /* bytes at their end that the host has not passed */
  uint32_t dynamic_shared_bytes;
  bool cooperative; /* all of the grid is resident at once: grid barriers may be used */
  /* scheduler.c: for a cooperative grid, the memory that %envreg1 and %envreg2 point to */
  uint64_t workspace;
  int recording;           /* its number in the recording; -1: not recorded */
  _Atomic int error;       /* the cudaError_t that ended it, 0: none; every host thread reads it */
  struct LaunchFlow *flow; /* scheduler.c */
  bool overlaps; /* it may begin before the launch before it ends: programmatic dependent launch */
  struct GlobalLaunch *global; /* global.h; NULL: global memory is not checked */
  /* Set while it runs. unique: it has read a clock, used the device's heap or the like, so that it may do
   * something else when it runs again (trial/). */
  bool unique;
  struct LaunchTrial *trial; /* trial/; NULL: it cannot be run again */
  uint32_t tried; /* a number of its own, the same when it runs again; 0: it is not tried */
};

/* Relaxed: it is read when all of the launch has ended. */
static inline void launch_is_unique(const Warp *warp) {
  __atomic_store_n(&warp->cta->cluster->launch->unique, true, __ATOMIC_RELAXED);
}

/* Something happened that a blocked warp may be waiting for. */
static inline void cluster_changed(Cluster *cluster) { cluster->changes++; }

static inline struct ClusterCheck *check_of(const Warp *warp) { return warp->cta->cluster->check; }
/* The warp's number in its cluster: those who watch call a warp an agent. */
static inline uint32_t agent_of(const Warp *warp) {
  return warp->cta->rank * warp->cta->warp_count + warp->index;
}
static inline uint32_t warp_count_of(const Cluster *cluster) {
  return cluster->cta_count * cluster->ctas[0].warp_count;
}
/* For each warp of the cluster. */
#define FOR_WARPS(warp, cluster)                                                           \
  for (Warp *warp = (cluster)->ctas[0].warps, *end_##warp = warp + warp_count_of(cluster); \
       warp < end_##warp; warp++)
static inline Warp *warp_of(const Cluster *cluster, uint32_t agent) {
  const uint32_t warps = cluster->ctas->warp_count;
  return &cluster->ctas[agent / warps].warps[agent % warps];
}

/* A wait for an mbarrier may end now. */
static inline void mbarrier_changed(Cluster *cluster) {
  cluster->mbarrier_changes++;
  cluster_changed(cluster);
}

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
