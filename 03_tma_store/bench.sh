#!/usr/bin/env bash
# bench.sh: what chapter 03 measures. make bench runs it; tables to stdout, CSV under build/.
#   copy_speed.csv   all ways to copy, against cudaMemcpy

set -eu
cd "$(dirname "$0")/.."
chapter=build/03_tma_store
export LD_LIBRARY_PATH="${CUDA_LIBRARIES:-/usr/local/cuda/lib64}:${LD_LIBRARY_PATH:-}"
stamp="# $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1 |
  sed 's/, /, driver /'), $(date +%F)"

"$chapter/copy_speed" --bench
sed -i "1i $stamp" "$chapter/copy_speed.csv"
