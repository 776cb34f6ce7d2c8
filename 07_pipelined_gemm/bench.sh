#!/usr/bin/env bash
# bench.sh: what chapter 07 measures. make bench runs it; tables to stdout, CSV under build/.
#   gemm.csv     every rung, cuBLAS and cuBLASLt at every shape
#   versus.csv   pipelined_gemm against the libraries
#   ladder.csv   the rungs at 8192 x 8192 x 8192
#   trace.json   the pipeline's events, for chrome://tracing and ui.perfetto.dev, and timeline.svg
set -eu
cd "$(dirname "$0")/.."
chapter=build/07_pipelined_gemm
export LD_LIBRARY_PATH="${CUDA_LIBRARIES:-/usr/local/cuda/lib64}:${LD_LIBRARY_PATH:-}"
stamp="# $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1 |
  sed 's/, /, driver /'), $(date +%F)"
if [ -x "$chapter/bench_gemm" ]; then
  "$chapter/bench_gemm" --bench
  for table in gemm versus ladder; do sed -i "1i $stamp" "$chapter/$table.csv"; done
else
  echo "bench_gemm is not built: cuBLAS is not in this toolkit"
fi
"$chapter/small_shapes" --bench
"$chapter/pipelined_gemm" --trace "$chapter/trace.json"
python3 07_pipelined_gemm/timeline.py "$chapter/trace.json" "$chapter/timeline.svg"
echo "the timeline: $chapter/timeline.svg; make figures draws it for the README"
