#!/usr/bin/env bats
# Recordings: what --record writes, and that it changes nothing else.
# builds: lessons

load helpers
load record_helpers

setup() {
  begin_test
  recording=$BATS_TEST_TMPDIR/recording.jsonl
  export EMULATOR_THREADS=1 # which block reports first depends on host threads otherwise
}

@test "recording: every chapter's program, in every order of landing" {
  for schedule in late early random:3; do
    for program in 01_tiledcopy_baseline/tiledcopy_baseline 02_tma_load/tma_load \
      03_tma_store/tma_store 04_store_reduce/store_reduce 05_multicast/multicast \
      06_swizzle_3d/swizzle_3d 07_pipelined_gemm/serial 07_pipelined_gemm/multicast; do
      records_faithfully "$program"
    done
  done
}

@test "recording: every side program of chapters 02 to 06" {
  schedule=late
  for source in 0[2-6]_*/*.cu; do
    case $source in *speed*|*bench*) continue ;; esac
    records_faithfully "${source%.cu}"
  done
}

@test "recording: all blocks, and chosen ones" {
  schedule=late
  blocks=all records_faithfully 03_tma_store/tma_store
  all=$(grep -c '^{"cluster"' "$recording")
  blocks=0,2-3 records_faithfully 03_tma_store/tma_store
  chosen=$(grep -c '^{"cluster"' "$recording")
  [ "$all" -gt "$chosen" ]
  [ "$chosen" -ge 3 ]
}

@test "recording: programs that fail are recorded up to the report" {
  schedule=late
  for pitfall in 03_tma_store/pitfalls/missing_proxy_fence 02_tma_load/pitfalls/read_without_wait; do
    records_faithfully "$pitfall"
    grep -q '^\["finding"' "$recording"
  done
}

@test "recording: in the order of the clock it holds the order of the run, too, where a finding is" {
  local clocked=$BATS_TEST_TMPDIR/clocked.jsonl pitfall=build/02_tma_load/pitfalls/read_without_wait
  emulator/emulate --record "$recording" $pitfall >/dev/null || true
  EMULATOR_CLOCK=h200 emulator/emulate --record "$clocked" $pitfall >/dev/null || true
  without_addresses() { sed 's/"global":"0x[0-9a-f]*"//g'; }
  grep '^\["' "$recording" | tr '\n' ',' | sed 's/.*/{"run": [&]}/; s/,]}$/]}\n/' | without_addresses >"$BATS_TEST_TMPDIR/expected"
  grep '^{"run"' "$clocked" | without_addresses | cmp - "$BATS_TEST_TMPDIR/expected"
  EMULATOR_CLOCK=h200 emulator/emulate --record "$clocked" build/02_tma_load/first_load >/dev/null
  run ! grep '^{"run"' "$clocked"
}

@test "recording: a hang is in it, with its rule" {
  schedule=late
  records_faithfully 02_tma_load/pitfalls/too_many_bytes
  grep -q '^\["fault".*"hang-too-many-bytes-expected"' "$recording"
}

# The names in the recording of a program, "a@1024[4]/8192", of its first launch.
members_of() { # RECORDING
  python3 - "$1" <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1]) if line.startswith('{"member"')]
print(*(f'{m["member"]}@{m["offset"]}{m["indices"]}/{m["stride"]}' for m in lines if m["launch"] == 0))
PYTHON
}

@test "recording: variables, tensors and the members of structs by the program's names" {
  emulator/emulate --record "$recording" build/02_tma_load/tma_load >/dev/null
  grep -q '^{"variable": "tile", "offset": 1024, "bytes": 16384}$' "$recording"
  grep -q '^\["copy".*{"name":"matrix",' "$recording"
  # An array of a type that is an array.
  emulator/emulate --record "$recording" build/02_tma_load/cp_async_ring >/dev/null
  [ "$(members_of "$recording")" = "box@1024[3]/512 picked@2560[3]/512" ]
  emulator/emulate --record "$recording" build/07_pipelined_gemm/ring >/dev/null
  [ "$(grep -o '^\["copy".*{"name":"[AB]"' "$recording" | sed 's/.*name//' | sort -u | tr -d '\n')" = '":"A"":"B"' ]
  [ "$(members_of "$recording")" = "a@1024[4]/8192 b@33792[4]/32768 full@164864[4]/8" ]
  emulator/emulate --record "$recording" build/07_pipelined_gemm/attention/attention >/dev/null
  [[ $(members_of "$recording") == "q@1024[2]/16384 k@33792[2, 2]/16384 "*" q_full@197632[]/8 k_full@197640[2]/8 "* ]]
}

@test "recording: a declaration that is not understood, or that the recording contradicts, names nothing" {
  local source=$PWD/07_pipelined_gemm/ring.cu other=07_pipelined_gemm/named_otherwise.cu change
  EMULATOR_RECORD=$recording emulator/emulate build/07_pipelined_gemm/ring >/dev/null
  sed "s|$source|$BATS_TEST_TMPDIR/$other|" "$recording" >"$recording.moved"
  mkdir "$BATS_TEST_TMPDIR/07_pipelined_gemm"
  names_after() { # CHANGE OF THE SOURCE: what sed is told
    sed "$1" "$source" >"$BATS_TEST_TMPDIR/$other"
    [ -z "$1" ] || run -1 cmp -s "$source" "$BATS_TEST_TMPDIR/$other"
    cp "$recording.moved" "$recording.named"
    python3 -B emulator/record/members.py "$recording.named"
    members_of "$recording.named"
  }
  [ "$(names_after "")" = "a@1024[4]/8192 b@33792[4]/32768 full@164864[4]/8" ]
  [ "$(names_after '/^  STAGES = 4,/d; s/^enum { SHARED_BYTES/constexpr int OTHER = 3, STAGES = 4;\n&/')" = "a@1024[4]/8192 b@33792[4]/32768 full@164864[4]/8" ]
  # Barriers that lie elsewhere, or under another name than the lines that initialise them say.
  [ "$(names_after 's/^  STAGES = 4,/  STAGES = 3,/')" = "" ]
  [ "$(names_after 's/uint64_t full\[STAGES\];/uint64_t other[STAGES];/')" = "" ]
  [ "$(names_after 's/uint64_t full\[STAGES\];/uint64_t other[2], full[2];/')" = "" ]
  # A copy that would reach from one member into the next.
  [ "$(names_after 's/uint16_t b\[STAGES\].*/uint16_t b[TILE_N * STEP_K], c[3][TILE_N * STEP_K - 8], d[24];/')" = "" ]
  # What is not understood: a type, an expression, a cast of another address, two values of a constant.
  [ "$(names_after 's/  uint64_t full\[/  Barrier full[/')" = "" ]
  [ "$(names_after 's/uint64_t full\[STAGES\]/uint64_t full[stages()]/')" = "" ]
  [ "$(names_after 's/align_1024(dynamic_shared)/(dynamic_shared + 0)/')" = "" ]
  [ "$(names_after 's/^enum { SHARED_BYTES.*/&\nenum { STAGES = 5 };/')" = "" ]
}

@test "recording: its limit is reported on stderr and in the file" {
  EMULATOR_RECORD=$recording EMULATOR_RECORD_LIMIT=1 \
    run -0 --separate-stderr emulator/emulate build/07_pipelined_gemm/serial
  [[ $stderr == *"the recording has reached 1 MB and stops here"* ]]
  grep -q '^{"stopped": ' "$recording"
  [ "$(stat -c %s "$recording")" -lt 2000000 ]
}

# The counters of one kernel, from stderr.
counted() { # PROGRAM KERNEL
  EMULATOR_COUNT=1 run -0 --separate-stderr emulator/emulate "build/$1"
  counters=$(sed -n "/^emulator: counted in kernel $2,/,/^emulator: /p" <<<"$stderr")
}

@test "counters: copies, what multicast saves, and passes over the banks" {
  counted 05_multicast/multicast multicast_kernel
  # 4 clusters of 2 blocks; each block sends 512 bytes to both
  grep -qx "  tensor load  *8 copies, 4,096 bytes, multicast saved 4,096 bytes" <<<"$counters"
  grep -qx "  cluster arrivals  *32 of warps" <<<"$counters"
  # the sums of two columns of the program's own table
  counted 06_swizzle_3d/bank_conflicts column_read_kernel
  reads=$(awk 'NF == 15 && $2 ~ /none|B$/ { reads += $12; passes += $13 } END { print reads, passes }' \
    tests/recorded/06_swizzle_3d/bank_conflicts.txt)
  [ "$reads" = "140 1960" ]
  grep -q "  shared reads  *140 by warps, .* bytes, 1,960 passes over the banks" <<<"$counters"
}

@test "counters: passes over the banks are those that ncu counts on an H200" {
  EMULATOR_COUNT=1 run -0 --separate-stderr emulator/emulate build/emulator/tests/bank_cases
  counted=$(sed -n 's/^emulator: counted in kernel \([a-z0-9_]*\).*/kernel \1/p
    s/^  shared \(reads\|writes\) .* \([0-9,]*\) passes.*/\1 \2/p' <<<"$stderr" |
    awk 'function show() { if (kernel != "") print kernel, reads + 0, writes + 0 }
      $1 == "kernel" { show(); kernel = $2; reads = writes = 0 } $1 == "reads" { reads = $2 }
      $1 == "writes" { writes = $2 } END { show() }')
  [ "$counted" = "$(grep -v "^#" emulator/tests/recorded/bank_cases.txt)" ]
}

@test "counters: what else uses the banks adds to ncu's passes and not to ours" {
  EMULATOR_COUNT=1 run -0 --separate-stderr emulator/emulate build/emulator/tests/bank_rivals
  for kind in reads writes; do
    counted=$(grep -A 12 "kernel ${kind}_" <<<"$stderr" | sed -n "s/^  shared $kind .* \([0-9,]*\) passes.*/\1/p" | uniq -d)
    [ "$(wc -l <<<"$counted")" -eq 1 ]
    field=3
    if [ "$kind" = reads ]; then field=2; fi
    alone=$(awk -v kernel="${kind}_alone" -v field=$field \
      '$1 == kernel { print $field }' emulator/tests/recorded/bank_rivals.txt | sort -u)
    [ "${counted/,/}" = "$alone" ]
  done
}

@test "counters: copies of other blocks that land add to ncu's passes and not to ours" {
  EMULATOR_COUNT=1 run -0 --separate-stderr emulator/emulate build/emulator/tests/bank_landing
  while read -r kernel first second; do
    ours=$(grep -A 12 "kernel $kernel," <<<"$stderr" | sed -n "s/^  shared reads .* \([0-9,]*\) passes.*/\1/p" | head -n 1)
    [ "${ours/,/}" -le "$first" ]
    [ "${ours/,/}" -le "$second" ]
    case $kernel in paused* | one_on_each) [ "${ours/,/}" -eq "$first" ] ;; esac
  done < <(grep -v '^#' emulator/tests/recorded/bank_landing.txt)
}

@test "counters: copied bytes, sectors and passes are ncu's, lesson by lesson" {
  run -0 python3 emulator/record/counters.py 02_descriptor 02_im2col 02_remainder 03_clip 03_dimensions \
    01_copy_speed 02_load_speed 03_copy_speed 04_accumulate 04_rounding 04_wrap 05_masks 05_shared_stream 07_two_consumers
  [[ $output == *"| bytes loaded by TMA | 13 | 13 |"* ]]
}

@test "counters: what was measured again replaces its lesson's rows, and no others" {
  local copied=$BATS_TEST_TMPDIR/emulator
  mkdir -p "$copied" "$BATS_TEST_TMPDIR/measured"
  mkdir -p "$BATS_TEST_TMPDIR/common/book"
  cp common/book/*.py "$BATS_TEST_TMPDIR/common/book/"
  cp -r emulator/record "$copied/"
  echo "an H200" >"$BATS_TEST_TMPDIR/measured/gpu.txt"
  printf '%s\n' '"ID","Kernel Name","Metric Name","Metric Value"' \
    '"0","load_one(CUtensorMap_st)","l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum","1,234"' \
    >"$BATS_TEST_TMPDIR/measured/02_first_load.csv"
  run -0 python3 "$copied/record/counters.py" --collect "$BATS_TEST_TMPDIR/measured"
  run diff emulator/record/counters.csv "$copied/record/counters.csv"
  [[ $output == *"> # 02_first_load: an H200"* ]]
  [[ $output == *"< 02_first_load,load_one,1,4,"*"> 02_first_load,load_one,1,,,,1234,"* ]]
  [ "$(grep -c '^[<>]' <<<"$output")" -eq 3 ]
}

@test "counters: multiply-adds are m n k, with tiles filled up" {
  counted 07_pipelined_gemm/serial serial_kernel
  # tiles of 64 x 256, steps of 64 k: twice 512^3, and 200 x 328 x 136 filled up to 256 x 512 x 192
  [ $((2 * 512 ** 3 + 256 * 512 * 192)) -eq 293601280 ]
  grep -qx "  multiply-adds  *293,601,280 by tensor cores" <<<"$counters"
}

@test "counters: they change nothing else, and do not depend on host threads" {
  run --separate-stderr emulator/emulate build/07_pipelined_gemm/ring
  local plain=$output
  EMULATOR_COUNT=1 run --separate-stderr emulator/emulate build/07_pipelined_gemm/ring
  [ "$output" = "$plain" ]
  local one=$stderr
  EMULATOR_THREADS=4 EMULATOR_COUNT=1     run --separate-stderr emulator/emulate build/07_pipelined_gemm/ring
  [ "$stderr" = "$one" ]
  EMULATOR_COUNT=yes run -2 emulator/emulate build/02_tma_load/tma_load
  [[ $output == *"EMULATOR_COUNT is 'yes', but must be 0 or 1"* ]]
}

@test "recording: bad settings are refused by name" {
  EMULATOR_RECORD=$recording EMULATOR_RECORD_BLOCKS=3-1 \
    run -2 emulator/emulate build/02_tma_load/tma_load
  [[ $output == *"--blocks (EMULATOR_RECORD_BLOCKS) is '3-1', but must be first, all, or numbers"* ]]
  EMULATOR_RECORD=$recording EMULATOR_RECORD_LIMIT=0 \
    run -2 emulator/emulate build/02_tma_load/tma_load
  [[ $output == *"EMULATOR_RECORD_LIMIT is '0', but must be 1 to 1000000"* ]]
  EMULATOR_RECORD=$BATS_TEST_TMPDIR/nowhere/file run -2 emulator/emulate build/02_tma_load/tma_load
  [[ $output == *"nowhere/file cannot be written: No such file or directory"* ]]
}

@test "trace: warps, waits, copies, wgmma and barriers in the Chrome format" {
  EMULATOR_RECORD=$recording EMULATOR_RECORD_BLOCKS=0-3 run -0 emulator/emulate build/05_multicast/multicast
  python3 -B emulator/record/trace.py "$recording" >"$BATS_TEST_TMPDIR/trace.json"
  run -0 python3 emulator/tests/check_trace.py "$BATS_TEST_TMPDIR/trace.json"
  [[ $output == *"counters, copy fence step wait: well-formed" ]]
}

@test "trace: names in quotes, a report of no warp, what never ends" {
  cat >"$recording" <<'END'
{"recording": 1, "schedule": "late", "blocks": "first"}
{"file": 0, "path": "/a/\u00e9 \"q\" \\ b.cu", "text": null}
{"place": 0, "file": 0, "line": 7, "inner_file": -1, "inner_line": 0, "ptx_line": 1, "text": "call \"x\""}
{"launch": 0, "kernel": "k<'\"', \"\\\\\">", "symbol": "k", "grid": [1,1,1], "block": [32,1,1], "cluster": [1,1,1], "static_shared": 0, "dynamic_shared": 0}
{"cluster": 0, "launch": 0, "blocks": [[0,0,0]], "warps_per_block": 1, "threads_per_block": 32, "shared_bytes": 0, "initial": 255}
["step",0,0,4294967295,0]
["copy",3,0,0,1,0,"bulk load",16,0,1,[],[],null]
["wait",4,0,4294967295,0,[]]
["finding",5,-1,0,-1,"a-rule","text"]
["fault",6,-1,0,-1,"hang","text"]
{"end": 9, "events": 5, "shared": []}
END
  python3 -B emulator/record/trace.py "$recording" >"$BATS_TEST_TMPDIR/trace.json"
  run -0 python3 emulator/tests/check_trace.py "$BATS_TEST_TMPDIR/trace.json"
  [[ $output == *"copy fault finding step wait: well-formed" ]]
}

@test "trace: of a GEMM, of a hang, beside a page and a recording" {
  run -0 emulator/emulate --trace "$BATS_TEST_TMPDIR/a.json" build/07_pipelined_gemm/serial
  run ! emulator/emulate --trace="$BATS_TEST_TMPDIR/b.json" --page "$BATS_TEST_TMPDIR/page.html" \
    --record "$recording" build/02_tma_load/pitfalls/too_many_bytes
  [ -s "$recording" ]
  [ -s "$BATS_TEST_TMPDIR/page.html" ]
  run -0 python3 emulator/tests/check_trace.py "$BATS_TEST_TMPDIR/a.json" "$BATS_TEST_TMPDIR/b.json"
  [[ ${lines[0]} == *", commit copy fence step wait wgmma: well-formed" ]]
  [[ ${lines[1]} == *", copy fault fence step wait: well-formed" ]]
}

@test "trace: a file that cannot be written is refused before the program runs" {
  run -2 emulator/emulate --trace "$BATS_TEST_TMPDIR/nowhere/trace.json" build/02_tma_load/tma_load
  [[ $output == *"nowhere/trace.json cannot be written"* ]]
}

# PTX has their bytes as octal escapes. The source's comment has half of a pair, an overlong form, Latin-1 and a
# character of four bytes.
@test "recording: a file whose name is not ASCII is found, and what is not UTF-8 in it becomes question marks" {
  source=$BATS_TEST_TMPDIR/ü.cu
  printf '// A \xed\xa0\x80 \xc0\xaf \xe0\x80\x80 \xfc \xf0\x9f\x98\x80 B\n' >"$source"
  cat >>"$source" <<'CUDA'
__global__ void shift(int *out) {
  __shared__ int tile[64];
  tile[threadIdx.x] = 1;
  out[threadIdx.x] = tile[63 - threadIdx.x];
}
int main() {
  int *out;
  cudaMalloc(&out, 256);
  shift<<<1, 64>>>(out);
  return cudaDeviceSynchronize();
}
CUDA
  run -3 --separate-stderr emulator/emulate --record "$recording" --findings "$BATS_TEST_TMPDIR/findings.sarif" "$source"
  [[ $stderr == *"  at ü.cu:4"* ]]
  [[ $(<"$BATS_TEST_TMPDIR/findings.sarif") == *'/%C3%BC.cu"'* ]]
  iconv -f UTF-8 -t UTF-8 "$recording" >"$BATS_TEST_TMPDIR/converted"
  grep -qF 'ü.cu' "$recording"
  grep -qF '// A ??? ?? ??? ? 😀 B' "$recording"
}
