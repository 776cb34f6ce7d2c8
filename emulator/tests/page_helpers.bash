# For tests of the page that shows a recording, in a headless browser; skipped where there is none.

need_browser() {
  browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    skip "no Chromium to show the page in (on Debian: apt-get install chromium)"
}

# The page of a program, with the test's script behind its own.
page_passes() { # PROGRAM TRIES
  page_of_passes "build/$1" "$2"
}

page_of_passes() { # PATH TRIES [ARGUMENTS...]
  need_browser
  local page=$BATS_TEST_TMPDIR/page.html tested=$BATS_TEST_TMPDIR/tested.html
  EMULATOR_THREADS=1 run emulator/emulate --page "$page" "$1" "${@:3}"
  [ -s "$page" ]
  sed '/^<\/body>/,$d' "$page" >"$tested"
  { printf '<script data-tries="%s">\n' "$2"; cat emulator/tests/page_test.js; printf '</script>\n</body>\n</html>\n'; } >>"$tested"
  "$browser" --headless --no-sandbox --disable-gpu --window-size=1400,900 --virtual-time-budget=100000 \
    --user-data-dir="$BATS_TEST_TMPDIR/profile" --enable-logging=stderr --dump-dom "file://$tested" \
    >"$BATS_TEST_TMPDIR/dom" 2>"$BATS_TEST_TMPDIR/log"
  grep -o '<pre id="test-result"[^<]*' "$BATS_TEST_TMPDIR/dom"
  grep -q '<pre id="test-result"[^>]*>PASS' "$BATS_TEST_TMPDIR/dom"
  run grep CONSOLE "$BATS_TEST_TMPDIR/log"
  [ "$output" = "" ]
}
