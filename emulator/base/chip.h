/* chip.h: what an H200 is, as far as programs can tell. All code that depends on a property of the
 * chip takes it from here. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
  CHIP_MULTIPROCESSORS = 132,
  CHIP_WARP_THREADS = 32,

  /* Limits of one multiprocessor */
  CHIP_THREADS = 2048,
  CHIP_CTAS = 32,
  CHIP_REGISTERS = 65536,
  CHIP_PARTITIONS = 4,      /* a warp stays in one; each has a quarter of the registers */
  CHIP_REGISTER_STEP = 256, /* a warp gets registers in multiples of this: 8 per thread */
  CHIP_SHARED_BYTES = 233472,
  CHIP_SHARED_STEP = 128,

  /* Limits of one block */
  CTA_THREADS = 1024,
  CTA_THREADS_Z = 64,
  CTA_SHARED_BYTES = 232448,
  CTA_SHARED_BYTES_UNASKED = 49152, /* without cudaFuncSetAttribute */
  CTA_SHARED_RESERVED = 1024,       /* reserved bytes in front of the block's variables */
  THREAD_REGISTERS = 255,

  CLUSTER_CTAS_PORTABLE = 8,
  CLUSTER_CTAS = 16,
  GRID_X = 2147483647,
  GRID_YZ = 65535
};

static inline uint32_t chip_round_up(uint32_t value, uint32_t step) {
  return (value + step - 1) / step * step;
}

/* How many blocks of `warps` warps fit into a multiprocessor's registers. 0: not even one. */
static inline uint32_t chip_ctas_by_registers(uint32_t warps, uint32_t registers) {
  uint32_t of_warp = chip_round_up(registers * CHIP_WARP_THREADS, CHIP_REGISTER_STEP);
  if (of_warp == 0) of_warp = CHIP_REGISTER_STEP;
  /* A launch is checked as if a block's warps were spread evenly over the partitions. */
  if (of_warp * chip_round_up(warps, CHIP_PARTITIONS) > CHIP_REGISTERS) return 0;
  return CHIP_REGISTERS / CHIP_PARTITIONS / of_warp * CHIP_PARTITIONS / warps;
}

/* How many blocks are on a multiprocessor at once, by threads, registers and shared memory (static
 * and dynamic together). 0: not even one fits. */
static inline uint32_t chip_resident_ctas(uint32_t threads, uint32_t registers,
                                          size_t shared_bytes) {
  if (threads == 0 || threads > CTA_THREADS || shared_bytes > CTA_SHARED_BYTES) return 0;
  uint32_t warps = (threads + CHIP_WARP_THREADS - 1) / CHIP_WARP_THREADS;
  uint32_t shared = chip_round_up((uint32_t)shared_bytes + CTA_SHARED_RESERVED, CHIP_SHARED_STEP);
  uint32_t ctas = CHIP_CTAS;
  uint32_t by_threads = CHIP_THREADS / (warps * CHIP_WARP_THREADS);
  uint32_t by_registers = chip_ctas_by_registers(warps, registers);
  uint32_t by_shared = CHIP_SHARED_BYTES / shared;
  if (by_threads < ctas) ctas = by_threads;
  if (by_registers < ctas) ctas = by_registers;
  if (by_shared < ctas) ctas = by_shared;
  return ctas;
}
