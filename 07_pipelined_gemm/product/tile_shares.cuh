/* tile_shares.cuh: which worker (a cluster) of a persistent kernel computes which tiles, or which
 * parts of tiles.
 *
 * Each of n clusters takes every n-th tile. When all have taken the same number, fewer than n tiles are
 * left: 8192 x 8192 has 1024 tiles of 256 x 256 for 66 clusters, 15 each, and then 34. If 34 clusters
 * computed them while 32 are idle, that would cost half a tile's time. Instead, the steps of all the
 * left-over tiles are put in one sequence and cut into equal shares:
 *
 *     tiles      |        990         |        991         |        992    ...
 *     workers    |    0     |    1       |    2     |    3        |    4    ...
 *
 * If few tiles are left, each would be cut into many parts, which take long to sum. So the workers take one
 * whole tile less, and these tiles are shared too: then a share is longer than a tile, and no tile has more
 * than two parts. 5120 x 5120 has 400 tiles: 5 each, and 70 shared.
 *
 * The worker that has the end of a tile owns it and sums its parts: worker 1 above sums tile 990, but
 * first computes the beginning of tile 991, for worker 3. So that no worker waits long, each computes
 * its contribution first and what it owns last. Owners wait only for lower-numbered workers, which
 * were launched before them, so every wait ends. */
#ifndef PIPELINED_GEMM_TILE_SHARES_CUH
#define PIPELINED_GEMM_TILE_SHARES_CUH

#include <stdint.h>

typedef struct {
  int steps; /* of each tile */
  int workers;
  int whole, left; /* each worker's tiles, and what is left over: fewer tiles than two rounds */
  int sharers;     /* this many share what is left over; as many as that: each takes a whole tile */
} TileShares;

/* Steps [first, end) of a tile. A contribution ends before the end of its tile. A worker makes at
 * most one. */
typedef struct {
  int tile, first, end;
} TilePiece;

enum {
  SHARES_LEAST_STEPS = 4 /* of a piece: a cut nearer to a tile's edge than this moves there */
};

static inline __host__ __device__ bool shares_have_parts(const TileShares &shares) {
  return shares.sharers != shares.left;
}

/* Where a worker's share begins, in steps of the left-over tiles. */
static inline __host__ __device__ int share_begin(const TileShares &shares, int worker) {
  int all = shares.left * shares.steps;
  if (worker >= shares.sharers) return all;
  if (!shares_have_parts(shares)) return worker * shares.steps;
  int cut = (int)((int64_t)all * worker / shares.sharers);
  int in_tile = cut % shares.steps;
  if (in_tile < SHARES_LEAST_STEPS) return cut - in_tile;
  if (shares.steps - in_tile < SHARES_LEAST_STEPS) return cut - in_tile + shares.steps;
  return cut;
}

/* A worker's pieces, in its order: call it with index 0, 1, ... until it returns false. */
static inline __host__ __device__ bool tile_piece(const TileShares &shares, int worker, int index,
                                                  TilePiece *piece) {
  int steps = shares.steps;
  if (index < shares.whole) {
    piece->tile = worker + index * shares.workers;
    piece->first = 0;
    piece->end = steps;
    return true;
  }
  if (shares.left == 0) return false;
  int begin = share_begin(shares, worker), end = share_begin(shares, worker + 1);
  if (begin == end) return false;
  int first_tile = begin / steps,
      last_tile = (end - 1) / steps; /* the same, or one or two further */
  int tile = last_tile - (index - shares.whole);
  if (tile < first_tile) return false;
  piece->tile = shares.whole * shares.workers + tile;
  piece->first = tile == first_tile ? begin - tile * steps : 0;
  piece->end = tile == last_tile ? end - tile * steps : steps;
  return true;
}

/* How many workers before this one contribute to a piece: 0 unless it owns a shared tile. */
static inline __host__ __device__ int tile_contributions(const TileShares &shares, int worker,
                                                         TilePiece piece) {
  if (piece.first == 0 || piece.end < shares.steps) return 0;
  int begin = share_begin(shares, worker) - piece.first, count = 1; /* of the tile */
  while (share_begin(shares, worker - count) > begin) count++;
  return count;
}

/* What a worker's share costs beyond a round, if all share `left` tiles and a round of whole ones: its steps
 * and, at most, one part to hand over and one to add. */
static inline int shares_two_rounds(int left, int steps, int workers, int sum_steps) {
  return (left * steps + workers - 1) / workers + 2 * sum_steps;
}

/* Few parts take long to multiply, and many take long to sum. `sum_steps`: what handing over and
 * adding a part costs, in steps (NOTES.md). */
static inline TileShares tile_shares(int tiles, int steps, int workers, int sum_steps) {
  TileShares shares;
  shares.steps = steps;
  shares.workers = workers;
  shares.whole = tiles / workers;
  shares.left = shares.sharers = tiles % workers;
  int least = steps;
  for (int sharers = shares.left + 1; shares.left > 0 && sharers <= workers; sharers++) {
    int each = (shares.left * steps + sharers - 1) / sharers;
    int cost = each + (steps + each - 1) / each * sum_steps;
    if (each >= 2 * SHARES_LEAST_STEPS && cost < least) {
      least = cost;
      shares.sharers = sharers;
    }
  }
  if (shares.left > 0 && shares.whole > 0 &&
      shares_two_rounds(shares.left, steps, workers, sum_steps) < least) {
    shares.whole--;
    shares.left += workers;
    shares.sharers = workers;
  }
  return shares;
}

#endif
