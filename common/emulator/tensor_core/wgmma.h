/* wgmma.h: wgmma.mma_async as a function of shared memory and register columns, apart from warps
 * and text (wgmma_tile.c); wgmma.c issues, holds back and lands them. */
#ifndef EMULATOR_WGMMA_H
#define EMULATOR_WGMMA_H

#include "tensor_core/mma.h"

typedef struct {
  int columns, depth; /* n, k; m is 64, 16 rows for each of the four warps */
  NumberFormat a, b;
  ResultFormat d;
  bool sparse, saturate;
  bool a_in_registers;
  bool a_mn_major, b_mn_major; /* the "transposed" layouts of 16-bit types */
  bool negate_a, negate_b;
  int selector;
  int d_registers;
  FloatRule rule;
} WgmmaForm;

/* Reads the modifiers behind "wgmma.mma_async" or "wgmma.mma_async.sp". NULL: understood; else what
 * is wrong. The operands' part of the form (a_in_registers and below) is the caller's. */
const char *wgmma_read_form(const char *const *modifiers, int count, bool sparse, WgmmaForm *form);

/* What the 64 bits of a matrix descriptor say, in bytes. */
typedef struct {
  uint32_t start, leading, stride;
  uint32_t base; /* by how many 128-byte rows the swizzle's pattern is displaced */
  uint32_t span; /* of the swizzle: 16 (none), 32, 64 or 128 */
} MatrixDescriptor;
MatrixDescriptor matrix_descriptor(uint64_t bits);

/* A tile in shared memory is read in chunks of 16 bytes. Of a K-major tile, chunk `chunk` of row
 * (or column of B) `outer`; of an MN-major tile, chunk `chunk` along M or N at depth `outer`.

 * The building block is 8 rows of 16 bytes. Without swizzle it is 128 bytes in one piece; leading
 * and stride say how far apart blocks are. With swizzle, the rows of 8 x span bytes hold span / 16
 * blocks side by side, whose chunks trade places: bits 4 to 6 of an address are xored with bits 7
 * to 9, less the base. */
static inline uint32_t chunk_offset(const MatrixDescriptor *matrix, bool mn_major, int outer,
                                    int chunk) {
  const uint32_t in_block = (uint32_t)outer % 8u, block = (uint32_t)outer / 8u;
  const uint32_t side = (uint32_t)chunk;
  if (matrix->span == 16)
    return matrix->start + in_block * 16u +
           (mn_major ? side * matrix->stride + block * matrix->leading
                     : block * matrix->stride + side * matrix->leading);
  const uint32_t last = matrix->span / 16u - 1u; /* of the blocks side by side: 1, 3 or 7 */
  const uint32_t group = last == 7u ? side >> 3 : last == 3u ? side >> 2 : side >> 1;
  const uint32_t linear = matrix->start + in_block * matrix->span + block * matrix->stride +
                          (side & last) * 16u + group * matrix->leading;
  const uint32_t row = (linear >> 7) - matrix->base;
  return linear ^ ((row & last) << 4);
}

/* How many of both an operand has. */
typedef enum { SIDE_A, SIDE_B } Side;
typedef struct {
  int outer, chunks;
} ChunkCount;
ChunkCount wgmma_chunks(const WgmmaForm *form, Side side);

typedef struct {
  const uint8_t *shared;
  uint32_t shared_bytes;
  MatrixDescriptor a, b;
  const uint32_t *a_registers[4];
  const uint32_t *metadata;
  bool scale_d; /* false: D = A * B */
  bool fast;    /* plain float arithmetic */
  /* While this number stays the same (and is not 0), so does shared memory: a tile that was read
   * need not be read again. */
  uint64_t moment;
} WgmmaOperands;

/* One warp's 16 rows, `quarter` of the 64, in the order that the multiplication wants. To take them
 * out of the registers and to put them back costs as much as a fifth of a product, so that those
 * that follow each other on the same accumulators do it once. */
typedef struct {
  uint32_t numbers[16 * 256];
} WgmmaResults;
void wgmma_take(const WgmmaForm *form, uint32_t *const *d, WgmmaResults *results);
void wgmma_give(const WgmmaForm *form, const WgmmaResults *results, uint32_t *const *d);

/* False: a chunk lies outside of shared memory, its offset is in *outside. */
bool wgmma_multiply(const WgmmaForm *form, const WgmmaOperands *operands, int quarter,
                    WgmmaResults *results, uint32_t *outside);

/* Memory that a host thread keeps until it ends, zero at first. (Thread-local variables of that
 * size would be taken from the stack of every thread of the program.) */
typedef enum { MEMORY_TILES, MEMORY_LISTS, MEMORY_KINDS } ThreadMemory;
void *wgmma_thread_memory(ThreadMemory kind, size_t bytes);

#endif
