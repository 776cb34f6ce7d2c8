#!/usr/bin/env bash
# bench.sh: what chapter 02 measures. make bench runs it; tables to stdout, CSV under build/.
#   load_speed.csv   TMA on the way in, threads on the way out
#   overlap.csv      copies and computation, apart and together
#   l2_promotion.csv, l2_hints.csv   what L2 promotion and cache hints are worth
#   map_cost.csv, paged_rows.csv   what a map costs a small matrix, and pages of a cache
#   price.csv        registers and instructions of a fetched tile (where ncu and cuobjdump are)
set -eu
cd "$(dirname "$0")/.."
chapter=build/02_tma_load
source common/make/bench-tools

"$chapter/load_speed" --bench
"$chapter/overlap" --bench
"$chapter/l2_hints" --bench
"$chapter/map_in_memory" --bench
"$chapter/paged_rows" --bench
stamp_tables "$chapter"/{load_speed,overlap,l2_promotion,l2_hints,map_cost,paged_rows}.csv

printf '\n==== price of a tile\n'
02_tma_load/price.sh
