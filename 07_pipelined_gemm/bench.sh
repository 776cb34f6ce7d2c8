#!/usr/bin/env bash
# bench.sh: what chapter 07 measures. make bench runs it; tables to stdout, CSV under build/.
#   ladder.csv             every rung and the libraries at four sizes
#   old.csv, versus.csv    pipelined_gemm and the libraries at the products of tools/shapes_old.txt
#   shapes.csv, shapes.svg             pipelined_gemm and the libraries at the products of SHAPES (a file of
#                                      lines "m n k"; default: the 411 of tools/shapes_unseen*.txt), in turn
#   rested.csv, rested.svg             the same with a rest before each measurement
set -eu
cd "$(dirname "$0")/.."
chapter=build/07_pipelined_gemm
export LD_LIBRARY_PATH="${CUDA_LIBRARIES:-/usr/local/cuda/lib64}:${LD_LIBRARY_PATH:-}"
stamp="# $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1 |
  sed 's/, /, driver /'), $(date +%F)"
if [ -x "$chapter/bench_ladder" ]; then
  "$chapter/bench_ladder" --bench
  "$chapter/bench_shapes" --shapes 07_pipelined_gemm/tools/shapes_old.txt --csv "$chapter/old.csv"
  python3 07_pipelined_gemm/tools/versus_table.py "$chapter/old.csv" "$chapter/versus.csv"
  if [ -n "${SHAPES:-}" ]; then list=("$SHAPES"); else list=(07_pipelined_gemm/tools/shapes_unseen*.txt); fi
  cat "${list[@]}" >"$chapter/shapes.txt"
  echo "$(grep -c . "$chapter/shapes.txt") products, each in turn and with rests"
  "$chapter/bench_shapes" --shapes "$chapter/shapes.txt" --csv "$chapter/shapes.csv"
  "$chapter/bench_shapes" --shapes "$chapter/shapes.txt" --csv "$chapter/rested.csv" \
    --rest 15 --milliseconds 20 --rounds 3
  "$chapter/bench_features" --bench
  for table in shapes rested; do
    python3 07_pipelined_gemm/tools/plot_shapes.py "$chapter/$table.csv" "$chapter/$table.svg"
  done
  for table in versus ladder shapes rested; do sed -i "1i $stamp" "$chapter/$table.csv"; done
else
  echo "bench_ladder is not built: cuBLAS is not in this toolkit"
fi
