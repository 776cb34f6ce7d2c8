/* tile_shares.cuh: which cluster of a persistent kernel computes which tiles, or which parts of tiles.
 *
 * Each of n clusters takes every n-th tile, until fewer than n are left. 8192 x 8192 has 1,024 tiles of
 * 256 x 256 for 66 clusters: 15 for each, and then 34 clusters would compute one more while 32 are idle.
 * So the steps of the last tiles, those of the last full round and those that are left, are put in one
 * row and cut into equal shares:
 *
 *     tiles      |        924         |        925         |        926    ...
 *     clusters   |         0              |         1               |     2 ...
 *
 * A share is at least as long as a tile, so at most two clusters compute a tile. The first of them gives
 * its sums to the second, which adds its own and stores the tile. Cluster 1 above computes the end of
 * tile 925 and the beginning of tile 926. Each cluster computes its pieces in this order:
 *   1. a whole tile, if its share has one: most clusters are then at the same k, and find each other's operands in L2;
 *   2. the beginning of its last tile, whose sums it gives away;
 *   3. the end of its first tile. By now the cluster before, which was launched earlier, has given its sums: a short wait.
 *
 * If there are fewer tiles than clusters, a share is at least half a tile. So a tile has up to three parts, and
 * the cluster in the middle takes sums, adds its own and gives them on. */
#ifndef PIPELINED_GEMM_TILE_SHARES_CUH
#define PIPELINED_GEMM_TILE_SHARES_CUH

#include <stdint.h>

typedef struct {
  int steps;    /* of a tile */
  int clusters; /* that compute: at most two for each tile */
  int whole;    /* tiles that each cluster computes first */
  int left;     /* tiles that come after those: */
  int shared;   /* shared by all clusters; or, if 0, one for each of the first */
} TileShares;

/* The steps [first, end) of a tile. If end < steps, the sums are given to the next cluster; if
 * first > 0, the cluster before gives its own. */
typedef struct {
  int tile, first, end;
} TilePiece;

enum { SHARE_LEAST_STEPS = 4 }; /* of a piece: a cut nearer to the edge of a tile moves there */

/* What it costs to share, in steps of 64 k: sums are passed on; and clusters that are at different k find less in
 * L2. */
static inline __host__ __device__ int share_cost(int steps) { return 6 + steps / 8; }

/* The work of `clusters` that run at once. They share the last tiles if that saves more steps than it costs, and if
 * each share is so long that cuts can move to the edges of tiles. */
static inline __host__ __device__ TileShares tile_shares(int tiles, int steps, int clusters,
                                                         int cost) {
  if (clusters - tiles > tiles) clusters = 2 * tiles;
  TileShares s = {steps, clusters, tiles / clusters, tiles % clusters, 0};
  int last = (int)((int64_t)s.left * steps / clusters), share = s.whole > 0 ? steps : last;
  if (s.left > 0 && steps - last > cost && share >= 2 * SHARE_LEAST_STEPS) {
    s.shared = 1;
    if (s.whole > 0) s.whole--, s.left += clusters;
  } else if (s.whole == 0) {
    s.clusters = tiles, s.whole = 1, s.left = 0;
  }
  return s;
}

/* Where a cluster's share begins, in steps of the row. */
static inline __host__ __device__ int share_begin(const TileShares &s, int cluster) {
  if (!s.shared) return (cluster < s.left ? cluster : s.left) * s.steps;
  int cut = (int)((int64_t)s.left * s.steps * cluster / s.clusters), in_tile = cut % s.steps;
  if (in_tile < SHARE_LEAST_STEPS) return cut - in_tile;
  return in_tile > s.steps - SHARE_LEAST_STEPS ? cut - in_tile + s.steps : cut;
}

/* Piece number 0, 1, ... of a cluster. Returns false if it has fewer. */
static inline __host__ __device__ bool tile_piece(const TileShares &s, int cluster, int number,
                                                  TilePiece *piece) {
  if (number < s.whole) {
    piece->tile = cluster + number * s.clusters, piece->first = 0, piece->end = s.steps;
    return true;
  }
  number -= s.whole;
  int begin = share_begin(s, cluster), end = share_begin(s, cluster + 1);
  int first = begin / s.steps, last = (end - 1) / s.steps, tile = last - number;
  if (begin == end || tile < first) return false;
  if (last == first + 2 && tile > first)
    tile = first + 1 + number; /* of three, the whole one first */
  begin -= tile * s.steps, end -= tile * s.steps;
  piece->tile = s.whole * s.clusters + tile;
  piece->first = begin > 0 ? begin : 0;
  piece->end = end < s.steps ? end : s.steps;
  return true;
}

#endif
