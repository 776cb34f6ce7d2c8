// tile_shares: the pieces of all clusters, for 20,000 products, cover each step of each tile once; and what
// tile_shares.cuh promises about them holds.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../07_pipelined_gemm/tile_shares.cuh"
#include "check.h"

enum { PRODUCTS = 20000, MOST_TILES = 300, MOST_STEPS = 200, MOST_CLUSTERS = 80 };

static int parts[MOST_TILES], covered[MOST_TILES];
static int reached[MOST_TILES], last[MOST_TILES];  // up to which step, and by which cluster

static void check_product(int tiles, int steps, int clusters, int cost) {
  TileShares shares = tile_shares(tiles, steps, clusters, cost);
  memset(parts, 0, sizeof(parts));
  memset(covered, 0, sizeof(covered));
  memset(reached, 0, sizeof(reached));
  check_that(shares.clusters <= clusters && shares.clusters <= 2 * tiles, "%d clusters of %d",
             shares.clusters, clusters);
  int most_parts = tiles < clusters ? 3 : 2, rounds = (tiles + clusters - 1) / clusters;
  clusters = shares.clusters;
  int longest = 0;
  for (int cluster = 0; cluster < clusters; cluster++) {
    TilePiece piece = {0, 0, 0};
    int length = 0, pieces = 0;
    for (; tile_piece(shares, cluster, pieces, &piece); pieces++) {
      bool whole = piece.first == 0 && piece.end == steps;
      check_that(piece.tile >= 0 && piece.tile < tiles, "tile %d of %d", piece.tile, tiles);
      check_that(whole || piece.end - piece.first >= SHARE_LEAST_STEPS,
                 "%d tiles of %d steps for %d clusters: a piece of steps %d to %d", tiles, steps,
                 clusters, piece.first, piece.end);
      check_that(piece.first == reached[piece.tile], "tile %d: step %d follows step %d", piece.tile,
                 piece.first, reached[piece.tile]);
      check_that(piece.first == 0 || last[piece.tile] == cluster - 1,
                 "tile %d: cluster %d follows cluster %d", piece.tile, cluster, last[piece.tile]);
      reached[piece.tile] = piece.end, last[piece.tile] = cluster;
      parts[piece.tile]++;
      covered[piece.tile] += piece.end - piece.first;
      length += piece.end - piece.first;
    }
    check_that(length > 0, "%d tiles of %d steps: cluster %d of %d has none", tiles, steps, cluster,
               clusters);
    check_that(piece.end == steps || pieces == 1, "cluster %d ends with a piece that it gives",
               cluster);
    if (length > longest) longest = length;
  }
  for (int tile = 0; tile < tiles; tile++) {
    check_that(covered[tile] == steps && parts[tile] <= most_parts,
               "tile %d: %d of %d steps, in %d parts", tile, covered[tile], steps, parts[tile]);
  }
  check_that(longest <= rounds * steps, "a share of %d steps, for %d rounds of %d", longest, rounds,
             steps);
}

int main(int argc, char **argv) {
  program_begin("tile_shares", argc, argv, NULL, 0);
  srand(1);
  for (int i = 0; i < PRODUCTS; i++) {
    int tiles = 1 + rand() % MOST_TILES, clusters = 1 + rand() % MOST_CLUSTERS;
    int steps = SHARE_LEAST_STEPS + rand() % MOST_STEPS;
    check_product(tiles, steps, clusters, rand() % 2 ? 0 : share_cost(steps));
  }
  return program_end("the pieces of %d products", PRODUCTS);
}
