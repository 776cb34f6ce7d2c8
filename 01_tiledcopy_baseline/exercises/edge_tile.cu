// exercise edge_tile: copy a tile that reaches over the edge of the matrix
//
// One block of 32 threads copies the 8x16 tile whose first element is row y, column x of a row-major
// matrix to `tile`. x and y may be negative, and the tile may reach past the last row or column.
// Elements outside the matrix become 0. Nothing outside the matrix may be read.
enum { TILE_ROWS = 8, TILE_COLUMNS = 16 };

extern "C" __global__ void edge_tile(const int *matrix, int rows, int columns, int x, int y,
                                     int *tile) {
  // Write here.
}
