#!/usr/bin/env bash
# bench.sh: what chapter 01 measures. make bench runs it; tables to stdout, CSV under build/.
#   copy_speed.csv   what the threads' own copies reach, against cudaMemcpy
#   price.csv        registers and instructions of a fetched tile (where ncu and cuobjdump are)
set -eu
cd "$(dirname "$0")/.."
chapter=build/01_tiledcopy_baseline
export LD_LIBRARY_PATH="${CUDA_LIBRARIES:-/usr/local/cuda/lib64}:${LD_LIBRARY_PATH:-}"
stamp="# $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1 |
  sed 's/, /, driver /'), $(date +%F)"

"$chapter/copy_speed" --bench
sed -i "1i $stamp" "$chapter/copy_speed.csv"

printf '\n==== price of a tile\n'
01_tiledcopy_baseline/price.sh
