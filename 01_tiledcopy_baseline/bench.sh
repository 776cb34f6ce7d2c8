#!/usr/bin/env bash
# bench.sh: what chapter 01 measures. make bench runs it; tables to stdout, CSV under build/.
#   copy_speed.csv   what the threads' own copies reach, against cudaMemcpy
#   price.csv        registers and instructions of a fetched tile (where ncu and cuobjdump are)
set -eu
cd "$(dirname "$0")/.."
chapter=build/01_tiledcopy_baseline
source common/make/bench-tools

"$chapter/copy_speed" --bench
stamp_tables "$chapter/copy_speed.csv"

printf '\n==== price of a tile\n'
01_tiledcopy_baseline/price.sh
