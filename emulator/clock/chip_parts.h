/* chip_parts.h: the parts of the chip that warps share, as the clock models them (CLOCK.md). */
#pragma once

#include "clock/trace.h"

/* The measured parameters; h200.def has the values, CLOCK.md what they mean. */
typedef struct {
#define CLOCK(name, value) double name;
#include "clock/h200.def"
#undef CLOCK
} ChipParameters;
extern const ChipParameters chip_parameters;

enum { MOST_STORES = 64 };

typedef struct {
  double issue[CHIP_PARTITIONS], tensor[CHIP_PARTITIONS]; /* when each is free again */
  double shared_pipe, threads_pipe;       /* shared memory; global accesses by threads */
  double copy_engine, store_engine, port; /* port: what comes in from L2 */
  double stores[MOST_STORES]; /* when the last stores of its threads have entered L2, in a ring */
  uint32_t store_count, store_slots;
  bool has_map;                  /* it has fetched a tensor map in this launch */
  uint32_t ctas, next_partition; /* next_partition: of the next block's first warp */
} Sm;

typedef struct {
  uint64_t tag;
  double ready;
  double answered; /* when L2 sends it */
  uint32_t used;
  uint32_t askers; /* groups of SMs that share this answer */
  bool dirty;
} L2Line;

typedef struct {
  /* l2_read: out of L2, and into it from device memory; shared: one answer for several SMs */
  double l2_read_bytes, dram_bytes, shared_bytes;
  double l2_busy, copy_busy, store_busy, tensor_busy, waited[WAIT_CAUSES], warp_time;
} ChipUse;

typedef struct {
  Sm sm[CHIP_MULTIPROCESSORS];
  double l2, l2_read, l2_written, dram; /* when each is free again; l2: what the two share */
  L2Line *lines;
  uint32_t line_sets, clock_hand;
  ChipUse use;
} Chip;

/* The one chip: what is in L2 stays from launch to launch. */
Chip *chip_begin(void);
/* These rows are read or written from `now` on. Returns when the last byte can leave or has entered
 * L2. */
double chip_rows(Chip *chip, double now, uint32_t sm, const ClockRun *runs, uint32_t count,
                 bool write);
/* Sectors of 32 bytes, and lines of 128, that these rows touch, each row for itself. */
typedef struct {
  uint32_t sectors, lines;
} RowCount;
RowCount chip_count(const ClockRun *runs, uint32_t count);

/* ---- The sums of a kernel's launches, printed when the program ends (clock_report.c) ---- */
typedef struct {
  double clocks, microseconds; /* microseconds: with the gap between launches */
  uint32_t failed;             /* launches that a fault or a hang ended */
  ChipUse use;
} LaunchTime;
void clock_add_launch(const char *kernel, const LaunchTime *time);
