#!/usr/bin/env bash
# bench.sh: what chapter 07 measures. make bench runs it; tables to stdout, CSV under build/.
#   ladder.csv, small.csv    every rung and the libraries at four sizes; small_shapes at small ones
#   evidence.csv             the rungs by the emulator's clock, on this GPU and by ncu, if that is installed
#   attention.csv            the attention programs, and PyTorch's where it is installed
#   versus.csv, rested.csv   library/, cuBLAS and cuBLASLt at the eight products of the README, hot and with rests
#   shapes.csv, shapes.svg   the same, hot, at the products of SHAPES (a file of lines "m n k"; default: 100, drawn from
#                            a seed)
#   features.csv             what epilogues, types and layouts cost
set -euo pipefail
cd "$(dirname "$0")/.."
chapter=build/07_pipelined_gemm tools=07_pipelined_gemm/tools
export LD_LIBRARY_PATH="${CUDA_LIBRARIES:-/usr/local/cuda/lib64}:${LD_LIBRARY_PATH:-}"
stamp="# $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1 |
  sed 's/, /, driver /'), $(date +%F)"
{
  echo "$stamp"
  python3 $tools/attention.py "$chapter"/attention_serial "$chapter"/attention_overlap "$chapter"/attention
} | tee "$chapter/attention.csv"
if [ -x "$chapter/bench_ladder" ]; then
  "$chapter/bench_ladder" --bench
  "$chapter/bench_shapes" --shapes $tools/eight.txt --csv "$chapter/eight.csv"
  python3 $tools/shapes.py table "$chapter/eight.csv" "$chapter/versus.csv"
  "$chapter/bench_shapes" --shapes $tools/eight.txt --csv "$chapter/eight.csv" --rest 20 --milliseconds 15 --rounds 5
  python3 $tools/shapes.py table "$chapter/eight.csv" "$chapter/rested.csv"
  python3 $tools/shapes.py draw 48 >"$chapter/drawn.txt"
  "$chapter/bench_shapes" --shapes "${SHAPES:-$chapter/drawn.txt}" --csv "$chapter/shapes.csv"
  python3 $tools/shapes.py plot "$chapter/shapes.csv" "$chapter/shapes.svg"
  "$chapter/bench_features" --bench | sed -n '/^feature,/,$p' | grep , | tee "$chapter/features.csv"
  if command -v ncu >/dev/null; then python3 $tools/evidence.py "$chapter/evidence.csv"; fi
  for table in versus rested ladder small evidence shapes features; do
    if [ -e "$chapter/$table.csv" ]; then sed -i "1i $stamp" "$chapter/$table.csv"; fi
  done
else
  echo "bench_ladder is not built: cuBLAS is not in this toolkit"
fi
