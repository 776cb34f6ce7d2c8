#!/usr/bin/env bats
# The page that shows a recording, in a headless browser; skipped where there is none.

load helpers

setup() {
  bats_require_minimum_version 1.5.0
  begin_test
  browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    skip "no Chromium to show the page in (on Debian: apt-get install chromium)"
  export EMULATOR_THREADS=1
}

# The page of a program, with the test's script behind its own.
page_passes() { # PROGRAM TRIES
  local page=$BATS_TEST_TMPDIR/page.html tested=$BATS_TEST_TMPDIR/tested.html
  run common/emulator/emulate --page "$page" "build/$1"
  [ -s "$page" ]
  sed '/^<\/body>/,$d' "$page" >"$tested"
  { printf '<script data-tries="%s">\n' "$2"; cat tests/emulator/page_test.js; printf '</script>\n</body>\n</html>\n'; } >>"$tested"
  "$browser" --headless --no-sandbox --disable-gpu --window-size=1400,900 --virtual-time-budget=100000 \
    --user-data-dir="$BATS_TEST_TMPDIR/profile" --enable-logging=stderr --dump-dom "file://$tested" \
    >"$BATS_TEST_TMPDIR/dom" 2>"$BATS_TEST_TMPDIR/log"
  grep -o '<pre id="test-result"[^<]*' "$BATS_TEST_TMPDIR/dom"
  grep -q '<pre id="test-result"[^>]*>PASS' "$BATS_TEST_TMPDIR/dom"
  run grep CONSOLE "$BATS_TEST_TMPDIR/log"
  [ "$output" = "" ]
}

@test "page: a load, forward and back at 200 moments, every key, the address, the final memory" {
  page_passes 02_tma_load/tma_load 200
}

@test "page: a cluster with multicast" {
  page_passes 05_multicast/multicast 100
}

@test "page: a rung of the GEMM" {
  page_passes 07_pipelined_gemm/serial 40
}

@test "page: a pitfall and its finding" {
  page_passes 03_tma_store/pitfalls/missing_proxy_fence 40
}

@test "page: a hang" {
  page_passes 02_tma_load/pitfalls/too_many_bytes 40
}
