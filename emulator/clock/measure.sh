#!/usr/bin/env bash
# measure.sh: measures on a GPU (make measure-clock).
#   measure.sh                        both of the following
#   measure.sh model                  the clock's parameters and the ladder:
#     emulator/clock/h200.def                the parameters
#     emulator/clock/measured/measure.txt    the parameters that measure and measure_load printed
#     emulator/clock/measured/share.csv      what two SMs read from L2 by turns (measure_share), by ncu
#     emulator/clock/measured/ladder*.csv    the rungs' times, clocks and traffic, by ncu
#   measure.sh counters [LESSON...]   ncu's counters of every lesson, or of those: 02_dimensions ...
#     build/counters/, emulator/record/counters.csv
set -euo pipefail
cd "$(dirname "$0")/../.."
here=emulator/clock
if ! nvidia-smi -L >/dev/null 2>&1 || ! command -v ncu >/dev/null; then
  echo "measure.sh needs an H200 and ncu (Nsight Compute comes with the CUDA Toolkit)" >&2
  exit 2
fi
source common/make/bench-tools
mkdir -p build/clock build/counters
echo "$stamp" | tee build/clock/gpu.txt >build/counters/gpu.txt

counted() {  # FILE METRICS COMMAND...
  ncu --clock-control none --cache-control none --csv --print-units base --log-file "$1" \
    --metrics "$2" "${@:3}" >/dev/null
}

measure_model() {
  local run program
  for run in 1 2 3; do
    echo "# ==== run $run ===="
    for program in measure measure_load; do build/emulator_clock/$program; done
  done | sed '/^PASS/d; /^# [^=]/d' | tee $here/measured/measure.txt
  counted build/clock/share.csv lts__t_sectors_op_read.sum build/emulator_clock/measure_share
  local ladder=build/emulator/tests/clock_ladder size m n k
  local metrics=sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed,sm__cycles_elapsed.max
  metrics+=,lts__t_sectors_op_read.sum,lts__t_sectors_op_write.sum,dram__bytes_read.sum
  for size in "8192 8192 8192" "4096 4096 4096" "2048 2048 2048" "2048 2048 512" "1024 1024 256" "512 512 4096"; do
    read -r m n k <<<"$size"
    $ladder --measure --m "$m" --n "$n" --k "$k" | grep '^[a-z_]*,' >"build/clock/times_${m}_$k.csv"
    counted "build/clock/ncu_${m}_$k.csv" $metrics -k regex:_kernel $ladder --m "$m" --n "$n" --k "$k"
  done
  python3 $here/parameters.py build/clock
}

measure_counters() {
  local reads=l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum
  local writes=l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma lsu=l1tex__t_sectors_pipe_lsu_mem_global_op
  local passes=l1tex__data_pipe_lsu_wavefronts_mem_shared_op tensor=sm__ops_path_tensor
  local metrics=smsp__thread_inst_executed.sum,$reads,${writes}_st.sum,${writes}_red.sum
  metrics+=,${lsu}_ld.sum,${lsu}_st.sum,${passes}_ld.sum,${passes}_st.sum
  metrics+=,${tensor}_src_bf16_dst_fp32.sum,${tensor}_op_hgmma_src_fp16.sum
  local source lesson chapter
  for source in [0-9][0-9]_*/*.cu 07_pipelined_gemm/{library,attention}/*.cu; do
    lesson=$(basename "$source" .cu) chapter=${source%%_*}
    # What only measures is no lesson, and one that launches no kernel, or one that fails, has no counters.
    case $lesson in bench_* | encode_by_hand | encode_after_fault) continue ;; esac
    [ $# -eq 0 ] || [[ " $* " == *" ${chapter}_$lesson "* ]] || continue
    counted "build/counters/${chapter}_$lesson.csv" "$metrics" "build/${source%.cu}"
  done
  python3 emulator/record/counters.py --collect build/counters
}

case ${1:-all} in
  all)
    measure_model
    measure_counters
    ;;
  model) measure_model ;;
  counters) measure_counters "${@:2}" ;;
  *)
    echo "measure.sh: '$1' is neither model nor counters" >&2
    exit 2
    ;;
esac
