#!/usr/bin/env bats
# make check-page: the page of ten recordings, each at 200 moments, forward and back.

load ../helpers
load ../page_helpers

setup() {
  begin_test
}

@test "page: 01_tiledcopy_baseline/tiledcopy_baseline, 200 moments" { page_passes 01_tiledcopy_baseline/tiledcopy_baseline 200; }
@test "page: 02_tma_load/tma_load, 200 moments" { page_passes 02_tma_load/tma_load 200; }
@test "page: 03_tma_store/tma_store, 200 moments" { page_passes 03_tma_store/tma_store 200; }
@test "page: 04_store_reduce/store_reduce, 200 moments" { page_passes 04_store_reduce/store_reduce 200; }
@test "page: 05_multicast/multicast, 200 moments" { page_passes 05_multicast/multicast 200; }
@test "page: 06_swizzle_3d/swizzle_3d, 200 moments" { page_passes 06_swizzle_3d/swizzle_3d 200; }
@test "page: 07_pipelined_gemm/serial, 200 moments" { page_passes 07_pipelined_gemm/serial 200; }
@test "page: 02_tma_load/pitfalls/too_many_bytes, 200 moments" { page_passes 02_tma_load/pitfalls/too_many_bytes 200; }
@test "page: 03_tma_store/pitfalls/missing_proxy_fence, 200 moments" { page_passes 03_tma_store/pitfalls/missing_proxy_fence 200; }
@test "page: emulator/tests/foreign_gemm, 200 moments" { page_passes emulator/tests/foreign_gemm 200; }

@test "page: a slider over more than 200,000 events does not stutter" {
  need_browser
  local page=$BATS_TEST_TMPDIR/page.html tested=$BATS_TEST_TMPDIR/tested.html
  EMULATOR_CHECK=off run -0 emulator/emulate --page "$page" build/emulator/tests/clock_ladder \
    --rung 3 --m 128 --n 256 --k 49152
  sed '/^<\/body>/,$d' "$page" >"$tested"
  { echo '<script>' && cat emulator/tests/page_scrub.js && printf '</script>\n</body>\n</html>\n'; } >>"$tested"
  "$browser" --headless --no-sandbox --disable-gpu --window-size=1400,900 --timeout=300000 \
    --user-data-dir="$BATS_TEST_TMPDIR/profile" --dump-dom "file://$tested" >"$BATS_TEST_TMPDIR/dom" 2>/dev/null
  result=$(grep -o '<pre id="scrub-result"[^<]*' "$BATS_TEST_TMPDIR/dom")
  echo "$result" | tee -a /dev/fd/3
  [[ $result =~ \>([0-9]+)\ events:\ median\ ([0-9]+)\ ms ]]
  [ "${BASH_REMATCH[1]}" -gt 200000 ]
  # Three frames of 60 a second. A busy machine takes longer.
  [ "${BASH_REMATCH[2]}" -lt 50 ]
}
