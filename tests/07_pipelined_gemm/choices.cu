// choices: every tile of every grid is computed exactly once, in bands of the promised thickness;
// and what the table picks for a shape can compute that shape.
#include <stdlib.h>
#include <string.h>

#include "../../07_pipelined_gemm/pipelined_gemm.cuh"

static bool covers_every_tile(TileOrder order) {
  static unsigned char seen[64 * 64];
  memset(seen, 0, sizeof(seen));
  for (int i = 0; i < order.rows * order.columns; i++) {
    TilePlace place = tile_place(order, i);
    if (place.row < 0 || place.row >= order.rows || place.column < 0 ||
        place.column >= order.columns || seen[place.row * 64 + place.column]++) {
      return false;
    }
  }
  return true;
}

// Every step of every tile is somebody's, once; who ends a tile that others began is told of each
// of them, and each of them has one place to leave its contribution.
static bool shares_every_step(TileShares shares) {
  static int steps[80 * 7], parts[80 * 7], owners[80 * 7];
  int tiles = shares.whole * shares.workers + shares.left;
  memset(steps, 0, sizeof(steps));
  memset(parts, 0, sizeof(parts));
  memset(owners, 0, sizeof(owners));
  for (int worker = 0; worker < shares.workers; worker++) {
    TilePiece piece;
    int given = 0;
    for (int i = 0; tile_piece(shares, worker, i, &piece); i++) {
      if (piece.tile < 0 || piece.tile >= tiles || piece.first < 0 || piece.end > shares.steps ||
          piece.end - piece.first < (shares.steps < 4 ? shares.steps : 4)) {
        return false;
      }
      steps[piece.tile] += piece.end - piece.first;
      int others = tile_contributions(shares, worker, piece);
      if (piece.end == shares.steps) {
        if (owners[piece.tile]++) return false;
        parts[piece.tile] += others;
        // The others are the workers just before this one, in the same tile.
        for (int j = 1; j <= others; j++) {
          TilePiece other;
          bool found = false;
          for (int k = 0; tile_piece(shares, worker - j, k, &other); k++) {
            found = found || (other.tile == piece.tile && other.end < shares.steps);
          }
          if (!found) return false;
        }
      } else {
        parts[piece.tile]--;
        if (others != 0 || ++given > 1) return false;
      }
    }
  }
  for (int tile = 0; tile < tiles; tile++) {
    if (steps[tile] != shares.steps || parts[tile] != 0 || owners[tile] != 1) return false;
  }
  return true;
}

int main(int argc, char **argv) {
  program_begin("choices", argc, argv, NULL, 0);
  long grids = 0, shapes = 0, shared = 0;
  for (int workers = 1; workers <= 74; workers += workers < 8 ? 1 : 11) {
    for (int tiles = workers; tiles <= 3 * workers; tiles++) {
      for (int steps = 2; steps <= 300; steps += steps < 20 ? 1 : 31) {
        TileShares shares = tile_shares(tiles, steps, workers);
        check_that(shares_every_step(shares), "%d tiles of %d steps for %d workers: each step once",
                   tiles, steps, workers);
        if (shares.sharers > shares.left) shared++;
      }
    }
  }
  check_that(shared > 1000, "%ld of these cases have shared tiles", shared);
  for (int rows = 1; rows <= 24; rows++) {
    for (int columns = 1; columns <= 24; columns++) {
      for (int band = 1; band <= 17; band += 2) {
        for (int by_columns = 0; by_columns < 2; by_columns++) {
          TileOrder order = {rows, columns, band, by_columns};
          check_that(covers_every_tile(order), "%d x %d tiles in bands of %d%s: each once", rows,
                     columns, band, by_columns ? " columns" : "");
          grids++;
        }
      }
    }
  }
  // Neighbours in a band: the next tile is the next row of the same column, or the first of the
  // next.
  TileOrder order = {4, 5, 2, 0};
  TilePlace first = tile_place(order, 0), second = tile_place(order, 1),
            back = tile_place(order, 10);
  check_that(first.row == 0 && first.column == 0 && second.row == 1 && second.column == 0,
             "a band is walked column by column");
  check_that(back.row == 2 && back.column == 4, "the second band goes backwards");

  static const int sizes[] = {1, 8, 63, 64, 65, 127, 128, 129, 500, 1024, 2048, 4096, 5000, 16384};
  enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
  uint16_t *memory;
  CUDA_CHECK(cudaMalloc(&memory, 16));
  for (int i = 0; i < SIZES; i++) {
    for (int j = 0; j < SIZES; j++) {
      for (int k = 8; k <= 16384; k += k < 256 ? 8 : k) {
        int m = sizes[i], n = sizes[j];
        PipelinedGemm gemm;
        const char *wrong = pipelined_gemm_plan(&gemm, memory, memory, memory, m, n, k, NULL);
        check_that(wrong == NULL, "%d x %d x %d: %s", m, n, k, wrong ? wrong : "");
        if (wrong) continue;
        const GemmConfiguration *c = gemm.configuration;
        check_that(gemm.work.order.rows * c->tile_m * c->cluster_m >= m &&
                       gemm.work.order.columns * c->tile_n * c->cluster_n >= n,
                   "%d x %d x %d: %s covers C", m, n, k, c->name);
        check_that(gemm.work.order.band >= 1, "%d x %d x %d: a band of %d", m, n, k,
                   gemm.work.order.band);
        check_that(c->shared_bytes <= 227 * 1024, "%s: %d bytes of shared memory", c->name,
                   c->shared_bytes);
        pipelined_gemm_end(&gemm);
        shapes++;
      }
    }
  }
  CUDA_CHECK(cudaFree(memory));
  return program_end("%ld grids, %ld shapes", grids, shapes);
}
