/* tile_order.cuh: an order of the tiles of C that makes good use of the L2 cache.
 *
 * All SMs together work on a window of consecutive tiles. The window reads one strip of A for each
 * of its rows and one strip of B for each of its columns. A square window reads the fewest strips. So
 * the tiles are cut into bands of `band` rows, and each band is computed column by column. Every second
 * band goes backwards, so that it begins with the columns of B that were used last:
 *
 *     band 0    0  2  4  6        (band = 2)
 *               1  3  5  7
 *     band 1   14 12 10  8
 *              15 13 11  9
 *
 * Consecutive tiles are in the same column and share B. If the blocks of a cluster already share B by
 * multicast, it is better for consecutive tiles to share A: by_columns swaps rows and columns. */
#ifndef PIPELINED_GEMM_TILE_ORDER_CUH
#define PIPELINED_GEMM_TILE_ORDER_CUH

typedef struct {
  int rows, columns; /* of tiles; with clusters, of the clusters' tiles */
  int band;          /* rows of a band, or columns if by_columns */
  int by_columns;
} TileOrder;

typedef struct {
  int row, column;
} TilePlace;

static inline __host__ __device__ TilePlace tile_place(TileOrder order, int index) {
  int across = order.by_columns ? order.columns : order.rows; /* what is cut into bands */
  int along = order.by_columns ? order.rows : order.columns;
  int band = index / (order.band * along);
  int first = band * order.band;
  int thickness = across - first < order.band ? across - first : order.band;
  int in_band = index - first * along;
  int step = in_band / thickness;
  if (band % 2 == 1) step = along - 1 - step;
  TilePlace place;
  place.row = order.by_columns ? step : first + in_band % thickness;
  place.column = order.by_columns ? first + in_band % thickness : step;
  return place;
}

#endif
