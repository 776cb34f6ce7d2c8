#!/bin/bash
# debuggers.sh: what cuda-gdb and ncu print for mistakes of the chapters, on the H200 of this machine. Run in the
# repository's root; writes emulator/tests/compare/debuggers.txt, from which emulator/DEBUGGING.md quotes.
set -m # job control: else a background job ignores SIGINT, and so does the program under the debugger
cd "$(dirname "$0")/../../.." || exit 2
for tool in cuda-gdb ncu nvidia-smi; do
  command -v $tool >/dev/null || { echo "debuggers.sh: $tool is not on PATH" >&2; exit 2; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
DEVICE=gpu make build/02_tma_load/pitfalls/{too_many_bytes,phase_missed,misaligned_coordinate,barrier_not_initialised} \
  build/06_swizzle_3d/pitfalls/buffer_sized_by_the_byte_count build/06_swizzle_3d/bank_conflicts >"$work/log" || exit 2

hang() { # PROGRAM: interrupted after 6 seconds
  echo "==== cuda-gdb, hang: ${1##*/}"
  timeout -k 3 30 cuda-gdb -q -batch -ex run -ex 'info cuda kernels' -ex 'info cuda blocks' -ex 'info cuda warps' \
    -ex bt -ex 'x/3i $pc' -ex 'x/4xg (@shared unsigned long long *)0x1000' -ex kill "$1" </dev/null 2>&1 &
  sleep 6
  pkill -INT -x -n "$(basename "$1" | cut -c1-15)"
  wait
}
fault() { # PROGRAM
  echo "==== cuda-gdb, fault: ${1##*/}"
  timeout -k 3 30 cuda-gdb -q -batch -ex run -ex 'info cuda kernels' -ex 'info cuda warps' -ex bt -ex 'x/3i $pc' -ex kill "$1" 2>&1
}
dump_on_request() { # PROGRAM
  echo "==== ${1##*/}, a core dump on request (CUDA_ENABLE_USER_TRIGGERED_COREDUMP=1)"
  local program=$PWD/$1
  cd "$work" || return
  CUDA_ENABLE_USER_TRIGGERED_COREDUMP=1 CUDA_COREDUMP_PIPE=pipe CUDA_COREDUMP_FILE=core.gpu \
    timeout -k 3 12 "$program" >/dev/null 2>&1 &
  sleep 4
  [ ! -p pipe ] || timeout 4 bash -c 'echo x >pipe'
  sleep 3
  timeout 15 cuda-gdb -q -batch -ex 'target cudacore core.gpu' -ex 'info cuda kernels' -ex bt 2>&1
  cd - >/dev/null || return
}
{
  cuda-gdb --version | grep NVIDIA
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  hang build/02_tma_load/pitfalls/too_many_bytes
  hang build/02_tma_load/pitfalls/phase_missed
  fault build/02_tma_load/pitfalls/barrier_not_initialised
  fault build/06_swizzle_3d/pitfalls/buffer_sized_by_the_byte_count
  fault build/02_tma_load/pitfalls/misaligned_coordinate
  dump_on_request build/02_tma_load/pitfalls/too_many_bytes
  echo "==== ncu: bank_conflicts, two launches"
  timeout 40 ncu --clock-control none --launch-count 2 --section MemoryWorkloadAnalysis_Tables --section SourceCounters \
    --metrics l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum,smsp__inst_executed.sum \
    build/06_swizzle_3d/bank_conflicts 2>&1
} | grep -vE '^(\[(Thread debugging|New Thread|Detaching)|Using host libthread_db|Kill the program|Unrecognized option|No locals)' |
  grep -vE '^(No symbol |device: |exit code |   0x|$)|-----|Branch|Metric Name|Guide$|docs\.nvidia|on reducing|has an example on' |
  sed "s|$PWD/||g; s|pitfalls/\.\./||g; s/[ \t]*\$//" | cut -c1-180 >emulator/tests/compare/debuggers.txt
