/* tile_order.cuh: in which order the tiles of C are computed, so that the L2 cache serves them.
 *
 * All SMs together work on a window of consecutive tiles. The window reads one strip of A for each
 * of its rows and one strip of B for each of its columns; a square window reads the fewest. Hence
 * bands of `band_rows` rows of tiles, walked column by column, every second band backwards, so
 * that the next band begins with the columns of B that were used last:
 *
 *     band 0    0  2  4  6        (band_rows = 2)
 *               1  3  5  7
 *     band 1   14 12 10  8
 *              15 13 11  9 */
#ifndef PIPELINED_GEMM_TILE_ORDER_CUH
#define PIPELINED_GEMM_TILE_ORDER_CUH

typedef struct {
  int rows, columns; /* of tiles; with clusters, of the clusters' tiles */
  int band_rows;
} TileOrder;

typedef struct {
  int row, column;
} TilePlace;

static inline __host__ __device__ TilePlace tile_place(TileOrder order, int index) {
  int band_tiles = order.band_rows * order.columns;
  int band = index / band_tiles;
  int first_row = band * order.band_rows;
  int rows_left = order.rows - first_row;
  int rows = rows_left < order.band_rows ? rows_left : order.band_rows;
  int in_band = index - band * band_tiles;
  TilePlace place;
  place.row = first_row + in_band % rows;
  place.column = in_band / rows;
  if (band % 2 == 1) place.column = order.columns - 1 - place.column;
  return place;
}

#endif
