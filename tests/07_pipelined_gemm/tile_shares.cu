// tile_shares: the pieces of all clusters, for 20,000 products, cover each step of each tile once; and what
// tile_shares.cuh promises about them holds.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../07_pipelined_gemm/tile_shares.cuh"
#include "check.h"

enum { PRODUCTS = 20000, MOST_TILES = 300, MOST_STEPS = 200, MOST_CLUSTERS = 80 };

static int parts[MOST_TILES], covered[MOST_TILES], giver[MOST_TILES], owner[MOST_TILES];

static void check_product(int tiles, int steps, int clusters) {
  TileShares shares = tile_shares(tiles, steps, clusters);
  memset(parts, 0, sizeof(parts));
  memset(covered, 0, sizeof(covered));
  int longest = 0;
  for (int cluster = 0; cluster < clusters; cluster++) {
    TilePiece piece = {0, 0, 0};
    int length = 0;
    for (int i = 0; tile_piece(shares, cluster, i, &piece); i++) {
      bool whole = piece.first == 0 && piece.end == steps;
      check_that(piece.tile >= 0 && piece.tile < tiles, "tile %d of %d", piece.tile, tiles);
      check_that(whole || piece.end - piece.first >= SHARE_LEAST_STEPS,
                 "%d tiles of %d steps for %d clusters: a piece of steps %d to %d", tiles, steps,
                 clusters, piece.first, piece.end);
      check_that(piece.first == 0 || piece.end == steps, "a piece in the middle of a tile");
      parts[piece.tile]++;
      covered[piece.tile] += piece.end - piece.first;
      length += piece.end - piece.first;
      if (piece.end < steps) giver[piece.tile] = cluster;
      if (piece.first > 0) owner[piece.tile] = cluster;
    }
    check_that(length > 0, "%d tiles of %d steps: cluster %d of %d has none", tiles, steps, cluster,
               clusters);
    check_that(piece.end == steps, "cluster %d ends with a piece that it gives", cluster);
    if (length > longest) longest = length;
  }
  for (int tile = 0; tile < tiles; tile++) {
    check_that(covered[tile] == steps && parts[tile] <= 2, "tile %d: %d of %d steps, in %d parts",
               tile, covered[tile], steps, parts[tile]);
    check_that(parts[tile] == 1 || owner[tile] == giver[tile] + 1,
               "tile %d is begun by cluster %d and ended by %d", tile, giver[tile], owner[tile]);
  }
  int rounds = (tiles + clusters - 1) / clusters;
  check_that(longest <= rounds * steps, "a share of %d steps, for %d rounds of %d", longest, rounds,
             steps);
}

int main(int argc, char **argv) {
  program_begin("tile_shares", argc, argv, NULL, 0);
  srand(1);
  for (int i = 0; i < PRODUCTS; i++) {
    int tiles = 1 + rand() % MOST_TILES, clusters = 1 + rand() % MOST_CLUSTERS;
    check_product(tiles, SHARE_LEAST_STEPS + rand() % MOST_STEPS,
                  clusters < tiles ? clusters : tiles);
  }
  return program_end("the pieces of %d products", PRODUCTS);
}
