# For tests of the page that shows a recording, in a headless browser; skipped where there is none.

need_browser() {
  browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    skip "no Chromium to show the page in (on Debian: apt-get install chromium)"
}

# What the browser makes of a page.
dom_of() { # PATH[#HASH] [OPTIONS...]
  "$browser" --headless --no-sandbox --disable-gpu --virtual-time-budget=100000 --user-data-dir="$BATS_TEST_TMPDIR/profile" \
    "${@:2}" --dump-dom "file://$1" 2>"$BATS_TEST_TMPDIR/log"
}

# What an expression is on a page that has just opened.
answer_of() { # PAGE EXPRESSION [HASH] [OPTIONS...]
  printf 'document.body.append(Object.assign(document.createElement("pre"), { id: "answer", textContent: %s }));\n' "$2" >"$BATS_TEST_TMPDIR/script"
  sed "/^beginPage();\$/r $BATS_TEST_TMPDIR/script" "$1" >"$BATS_TEST_TMPDIR/asked.html"
  dom_of "$BATS_TEST_TMPDIR/asked.html${3:-}" "${@:4}" | grep -zo '<pre id="answer">[^<]*' | tr -d '\0' | sed 's/^<pre id="answer">//'
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
  dom_of "$tested" --window-size=1400,900 --enable-logging=stderr >"$BATS_TEST_TMPDIR/dom"
  grep -o '<pre id="test-result"[^<]*' "$BATS_TEST_TMPDIR/dom"
  grep -q '<pre id="test-result"[^>]*>PASS' "$BATS_TEST_TMPDIR/dom"
  run grep CONSOLE "$BATS_TEST_TMPDIR/log"
  [ "$output" = "" ]
}
