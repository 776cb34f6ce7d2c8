#!/usr/bin/env bats
# The page that shows a recording, in a headless browser; skipped where there is none.
# builds: tests/joined/%

load helpers
load page_helpers

setup() {
  begin_test
}

@test "page: its script is without faults that eslint sees, and its modules are short" {
  run emulator/page/lint
  [ "$status" -ne 77 ] || skip "$output"
  echo "$output"
  [ "$status" -eq 0 ]
  for module in emulator/page/*.js; do
    [ "$(wc -l <"$module")" -le 300 ]
  done
}

@test "page: a program's name is text, whatever is in it" {
  local program="$BATS_TEST_TMPDIR/a<img src=x> &lt; \"b\""
  cp build/01_tiledcopy_baseline/first_copy "$program"
  run -0 emulator/emulate --page "$BATS_TEST_TMPDIR/page.html" "$program"
  grep -Fqx '<title>a&lt;img src=x> &amp;lt; "b"</title>' "$BATS_TEST_TMPDIR/page.html"
  grep -Fq '<h1 id="title">a&lt;img src=x> &amp;lt; "b"</h1>' "$BATS_TEST_TMPDIR/page.html"
}

@test "page: a load, forward and back at 60 moments, every key, the address, the final memory" { page_passes 02_tma_load/tma_load 60; }
@test "page: a cluster with multicast" { page_passes 05_multicast/multicast 100; }
@test "page: a rung of the GEMM" { page_passes 07_pipelined_gemm/serial 40; }
@test "page: attention, whose two warpgroups take turns" { page_passes 07_pipelined_gemm/attention/attention 10; }
@test "page: a pitfall and its finding" { page_passes 03_tma_store/pitfalls/missing_proxy_fence 40; }
@test "page: a copy over what a wgmma may still read" { page_passes 07_pipelined_gemm/pitfalls/stage_released_before_wgmma 20; }

@test "page: a hang is on it, and nothing happens after it" {
  local program=build/tests/joined/05_multicast/pitfalls/peer_barrier_not_armed # its two clusters both hang
  for _ in 1 2 3; do
    run -1 emulator/emulate --page "$BATS_TEST_TMPDIR/page.html" "$program"
    run grep '^\["' "$BATS_TEST_TMPDIR/page.html"
    [[ ${lines[-1]} == '["fault",'*'"hang-too-few-bytes-expected"'* ]]
  done
}

@test "page: one that is cut off in the recording or in the script says so, and a whole one does not" {
  need_browser
  local page=$BATS_TEST_TMPDIR/page.html part=$BATS_TEST_TMPDIR/part.html
  emulator/emulate --page "$page" build/02_tma_load/first_load >/dev/null
  for end in '^\["' '^function beginPage' '^<\/html>'; do
    sed "/$end/q" "$page" >"$part"
    dom_of "$part" | grep -o '<p id="incomplete"[^>]*>This page cannot be shown' >>"$BATS_TEST_TMPDIR/shown"
  done
  [ "$(grep -c hidden "$BATS_TEST_TMPDIR/shown")" -eq 1 ]
  tail -n 1 "$BATS_TEST_TMPDIR/shown" | grep hidden
  [ "$(wc -l <"$BATS_TEST_TMPDIR/shown")" -eq 3 ]
}

@test "page: nothing is cut off at the width of a phone" {
  need_browser
  # A headless browser has no window that narrow, but the page can be.
  local cut='(() => {
    document.documentElement.style.width = "390px";
    app.scrolledTo = null;
    showNow();
    const beyond = (element) => element.getBoundingClientRect().right > 391 || element.scrollWidth > element.clientWidth + 1;
    const cards = [...document.querySelectorAll("#moments li")].map((card) => card.getBoundingClientRect());
    if (cards.filter(({ left, right }) => right > 12 && left < 380).length !== 1) return "cards";
    if (app.model.wgmmas.length && app.lanes[0].kind !== "tensor") return "lanes";
    return [...document.querySelectorAll("header, #cluster, nav, section, p, #source ol, .side, .diff, #source, #barriers, #timeline-scroll")].filter(beyond)
      .map((element) => element.id || element.className).join(" ") || "nothing";
  })()'
  local fixed=tests/joined/02_tma_load/fixed/stage_reused
  for program in 02_tma_load/first_load 05_multicast/multicast 07_pipelined_gemm/ring "${fixed/fixed/pitfalls} -- build/$fixed"; do
    emulator/emulate --page "$BATS_TEST_TMPDIR/page.html" build/$program >/dev/null
    run answer_of "$BATS_TEST_TMPDIR/page.html" "$cut" "" --window-size=500,900
    [ "$output" = nothing ]
  done
}

@test "page: where it opens, by option and by address" {
  need_browser
  opened_at() { # HASH
    answer_of "$BATS_TEST_TMPDIR/page.html" 'document.querySelector("#moments [aria-pressed=true]").className' "$1"
  }
  run ! emulator/emulate --page "$BATS_TEST_TMPDIR/page.html" build/02_tma_load/pitfalls/read_without_wait
  [ "$(opened_at "")" = finding ]
  [ "$(opened_at "#m=landed")" = landed ]
  run ! emulator/emulate --page "$BATS_TEST_TMPDIR/page.html" --at copy build/02_tma_load/pitfalls/read_without_wait
  [ "$(opened_at "")" = copy ]
  emulator/emulate --page "$BATS_TEST_TMPDIR/page.html" build/02_tma_load/first_load
  [ "$(opened_at "")" = init ]
  emulate_refuses "--at is 'begin', but must be init, expect, copy, landed, phase, multiply, overlap, carried, refill, finding or end" --page "$BATS_TEST_TMPDIR/page.html" --at begin build/02_tma_load/first_load
  emulate_refuses "--at says where a page opens: add --page, or leave it out" --at end build/02_tma_load/first_load
}

@test "page: a mistake and its fix, with a switch that keeps the moment" {
  need_browser
  local joined=build/tests/joined/02_tma_load name=read_without_wait
  page_of_passes $joined/pitfalls/$name 20 -- $joined/fixed/$name
  run emulator/emulate --page "$BATS_TEST_TMPDIR/page.html" $joined/pitfalls/$name -- $joined/fixed/$name
  [ "$status" -eq 0 ] # the mistake ends with 1
  run answer_of "$BATS_TEST_TMPDIR/page.html" '(() => {
    const problems = [];
    const at = () => [app.view.side, app.view.event];
    for (const [i, { name, at: event }] of app.moments.entries()) {
      goToMoment(i + 1);
      showSide(1);
      const same = keyMoments(app.model).find((each) => each.name === (name === "wrong" ? "end" : name));
      if (["finding", "side"].includes(name) ? same : !same || same.at !== app.view.event) problems.push(`${name}: at ${at()}`);
      if (name === "finding" && placeText(app.model, currentPlace()) !== "read_without_wait.cu:39") problems.push(`finding: ${placeText(app.model, currentPlace())}`);
      showSide(0);
      if (name !== "finding" && app.view.event !== event) problems.push(`${name}: back at ${at()}`);
    }
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "s", bubbles: true }));
    writeAddress();
    if (!location.hash.includes("s=1")) problems.push(location.hash);
    showNow();
    const marked = [...document.querySelectorAll("#source .differs")].map((line) => line.textContent.trim());
    return `${problems.join("; ")}|${marked.join("|")}`;
  })()'
  [[ $output == "|"*"mbarrier_wait_parity(&amp;barrier, 0);"* ]]
  # The mistake says where the fix adds that line, and what becomes of a line of its own.
  local notes='[...document.querySelectorAll("#source [data-note]")].map((code) => `${code.textContent.trim()} ${code.dataset.note}`).join("|")'
  emulator/emulate --page "$BATS_TEST_TMPDIR/noted.html" $joined/pitfalls/$name -- $joined/fixed/$name || true
  run answer_of "$BATS_TEST_TMPDIR/noted.html" "$notes"
  [ "$output" = "} the fix adds: mbarrier_wait_parity(&amp;barrier, 0);" ]
  emulator/emulate --page "$BATS_TEST_TMPDIR/noted.html" $joined/pitfalls/arrival_count_too_high -- $joined/fixed/arrival_count_too_high || true
  run answer_of "$BATS_TEST_TMPDIR/noted.html" "$notes"
  [ "$output" = "mbarrier_init(&amp;barrier, blockDim.x); the fix: mbarrier_init(&amp;barrier, 1);" ]
  run answer_of "$BATS_TEST_TMPDIR/noted.html" '(showSide(1), showNow(), document.querySelector("#report .side").textContent)'
  [ "$output" = "① Warp 0 initialises barrier for 1 arrivalarrival_count_too_high.cu:30mbarrier_init(&amp;barrier, 1);" ]
  # A fault that begins with a barrier says what happens there.
  emulator/emulate --page "$BATS_TEST_TMPDIR/noted.html" $joined/pitfalls/arrival_count_too_low || true
  run answer_of "$BATS_TEST_TMPDIR/noted.html" 'byId("now").textContent'
  [ "$output" = "At barrier, thread 0 has announced bytes in phase 0 already, and this thread announces bytes as well, but mbarrier.init asks for 1 arrival a phase. This is reported as too-many-arrivals." ]
  # Also where the fix adds a line that is there already.
  emulator/emulate --page "$BATS_TEST_TMPDIR/noted.html" $joined/pitfalls/stage_reused -- $joined/fixed/stage_reused || true
  run answer_of "$BATS_TEST_TMPDIR/noted.html" "$notes"
  [ "$output" = "} the fix adds: __syncthreads();" ]
  # A statement that the fix breaks over two lines is one change.
  emulator/emulate --page "$BATS_TEST_TMPDIR/page.html" build/tests/joined/07_pipelined_gemm/pitfalls/descriptor_in_bytes -- build/tests/joined/07_pipelined_gemm/fixed/descriptor_in_bytes || true
  run answer_of "$BATS_TEST_TMPDIR/page.html" '(showSide(1), showNow(), document.querySelector("#report .rule").textContent)'
  [[ $output == "The fix: return start | (uint64_t)(STRIDE_BYTES / 16) "*" &lt;&lt; SWIZZLE_BIT" ]]
  # A report of a descriptor is about the one that leads out, and says what its fields count.
  run answer_of "$BATS_TEST_TMPDIR/page.html" '[document.querySelector("#report .side").textContent, document.querySelector("#report .advice").textContent, byId("now").textContent].join("|")'
  [[ $output == "① B's matrix descriptor leads to shared address 0x6400, but the block's shared memory ends at 0x4408descriptor_in_bytes.cu:45wgmma_m64n64k16(d, a_descriptor + i * WGMMA_K_STEP, b_descriptor + i * WGMMA_K_STEP, step &gt; 0 || i &gt; 0);|In bytes, it has start 0x2400, leading offset 0, stride offset 16384 and swizzle 128. Start and offsets are encoded in units of 16 bytes: was one of them not divided by 16?|At clock "*": B's matrix descriptor leads to shared address 0x6400, but the block's shared memory ends at 0x4408. This is reported now as shared-out-of-bounds." ]]
  # What faults is not done, and the kernel is stopped: it does not hang.
  run answer_of "$BATS_TEST_TMPDIR/page.html" '[app.model.events.filter(([kind]) => kind === "wgmma_done").length, byId("why").textContent].join()'
  [[ $output =~ ^"0,The report is about "[^|]*"Not done: wgmma "[^|]*" The kernel was stopped by the fault at clock "[0-9,]+"."$ ]]
  emulator/emulate --page "$BATS_TEST_TMPDIR/page.html" build/emulator/tests/descriptor_cases --stride 16384 || true
  run answer_of "$BATS_TEST_TMPDIR/page.html" 'byId("now").textContent'
  [[ $output =~ ^"At clock "[0-9,]+": A's matrix descriptor leads to shared address 0x4410, but the block's shared memory ends at 0x4410. This is reported now as shared-out-of-bounds."$ ]]
  # Mistake and fix stand side by side, with the lines around; how both ended is said, too.
  run answer_of "$BATS_TEST_TMPDIR/noted.html" '[...document.querySelectorAll(".diff tr")].map((row) => [...row.children].map((cell) => cell.textContent).join("|")).join("/")'
  [ "$output" = "the mistake|the fix/48}|48}/|49__syncthreads();/49}|50}" ]
  run answer_of "$BATS_TEST_TMPDIR/noted.html" 'byId("purpose").textContent'
  [[ $output == "The next load begins while others still read the tile. On the emulator the program printed “FAIL stage_reused: every element of 4 tiles”, “copy: row 1, column 0: expected 65, got "*"” and ended with exit code 1. "*" is what the emulator puts into undefined bytes. Seen on an H200: right results each time. Reading the tile takes less time than the first bytes of a load take to arrive. With the last warp delayed by 50 microseconds before it reads, the results were wrong." ]]
  run answer_of "$BATS_TEST_TMPDIR/noted.html" '[byId("purpose").querySelector("[title]").title, byId("busy").textContent, document.querySelector("#report .reason").textContent].join("|")'
  [[ $output == "21 November 2026, driver 580.159.04, three runs|Of the instructions shown: "*" Shown: block 0 of 2.|The last wait of warp 0 before its copy, for barriers[0] (line 45), shows that bytes have landed, not that warp 1 has read them." ]]
  run answer_of "$BATS_TEST_TMPDIR/noted.html" '(showSide(1), byId("purpose").textContent)'
  [ "$output" = "The fix of: the next load begins while others still read the tile. On the emulator the program printed “PASS stage_reused: every element of 4 tiles” and ended with exit code 0. The emulator reports nothing." ]
  # The two sides of the race, ① is the earlier in the order that is drawn: the load that is meant comes later in the order of the
  # clock, and earlier in the run, which is what is drawn first. The fix puts its barrier between them.
  local shown='[...document.querySelectorAll("#report .side, #report .between")].map((side) => side.textContent).join("|")'
  run answer_of "$BATS_TEST_TMPDIR/noted.html" "$shown"
  [[ $output == "① Thread 0 issues the tensor load of matrix at row 0, column 32 into tilestage_reused.cu:43tma_load_2d("*"|nothing orders these two|② Warp 1 reads tile[32]stage_reused.cu:47copy["*"] = tile[i];" ]]
  local orders='`${byId("axis").value}: ${document.querySelector("#report .orders").textContent} ${byId("bytes-of").textContent}`'
  run answer_of "$BATS_TEST_TMPDIR/noted.html" "$orders"
  [[ $output =~ ^"run: The run that printed “FAIL stage_reused: every element of 4 tiles”, drawn below, did ① first. The modelled H200 does ② first, by "[0-9,]+" clocks. Both orders are allowed. The bytes at event "[0-9]+" in the order of the run, which read and printed them."$ ]]
  run answer_of "$BATS_TEST_TMPDIR/noted.html" "(changeAxis('time'), showNow(), $orders)"
  [[ $output =~ ^"time: The run that printed “FAIL stage_reused: every element of 4 tiles” did ② first. The modelled H200, drawn below, does ① first, by "[0-9,]+" clocks. Both orders are allowed. The bytes at clock "[0-9,]+" of the modelled H200. The run had another order, and read others."$ ]]
  # So do the cards: who has not read the bytes that are written over, and what was printed.
  local cards='[...document.querySelectorAll("#moments .refill span, #moments .wrong span")].map((line) => line.textContent).join("|")'
  run answer_of "$BATS_TEST_TMPDIR/noted.html" "$cards"
  [[ $output == *"Warp 0 fills tile again, by the tensor load of matrix at row 0, column 32.|Warps 1-3 have not read the old bytes yet.|"[0-9]" The program then printed “"* ]]
  run answer_of "$BATS_TEST_TMPDIR/noted.html" "(changeAxis('time'), showNow(), $cards)"
  [[ $output == *" was the last to read the old bytes, "*" clocks before.|"[0-9]" In another order, the run printed “"* ]]
  # Each order is drawn as it says; where both are the same, nothing is said of two, and time is drawn.
  run answer_of "$BATS_TEST_TMPDIR/noted.html" '["run", "time"].map((axis) => (changeAxis(axis), letterOf(pictureShown().report, pictureShown().report.a))).join()'
  [ "$output" = "②,①" ]
  run answer_of "$BATS_TEST_TMPDIR/noted.html" "(showSide(1), showNow(), $shown)"
  [[ $output == "① Warp 1 reads "*"|__syncthreads() orders these two|② Thread 0 issues "* ]]
  run answer_of "$BATS_TEST_TMPDIR/noted.html" '(showSide(1), [pictureShown()].map(({ report: { a, b }, added }) => [a.event < added, added < b.event, describeEvent(app.model, added)].join("|")))'
  [[ $output == "true|true|warp "[0-3]" arrives at __syncthreads() (line 49): 128 threads, complete" ]]
  # Timeline and memory show both, in the colour of text: each of the other colours means something else.
  local is_side='((canvas, x, y) => [...canvas.getContext("2d").getImageData(x, y, 1, 1).data].slice(0, 3).join() === "22,25,29")'
  run answer_of "$BATS_TEST_TMPDIR/noted.html" "(setTheme(false), showNow(), ((x, { a, b }) => [a, b].map(({ event }) => $is_side(byId('timeline'), x(event) - 13,
    RULER_HEIGHT + (laneOfEvent(app.model, app.lanes, event) + 0.5) * laneHeight(app.lanes) + 2)))(timelineScale(app.model, { ...timelineView(), axis: app.view.axis },
    byId('timeline').clientWidth), pictureShown().report).concat($is_side(byId('memory'), app.geometry.left + 2, 1)).join())"
  [ "$output" = "true,true,true" ]
  # So are the lines of ① and ② in the source, whichever of them is shown, also in the fix. What the fix adds is green.
  local tones='["a", "b"].map((side) => pictureShown().report[side].event).concat(app.model.findings).flatMap((n) => (goTo(n), showNow(),
    [...document.querySelectorAll("#source .partner")].map((line) => getComputedStyle(line, "::after").color)))'
  run answer_of "$BATS_TEST_TMPDIR/noted.html" "(setTheme(false), showNow(), [...new Set($tones)].join())"
  [ "$output" = "rgb(22, 25, 29)" ]
  run answer_of "$BATS_TEST_TMPDIR/noted.html" "(setTheme(false), showSide(1), [...new Set($tones)].join())"
  [ "$output" = "rgb(22, 25, 29)" ]
  local drawn='[...byId("drawn").children].map((entry) => entry.textContent.trim()).join("|")'
  run answer_of "$BATS_TEST_TMPDIR/noted.html" "$drawn"
  [ "$output" = "runs|waits|in flight|ready, has not run yet|event|even phase|odd phase|this moment|a report|① and ②: nothing orders these two" ]
  # A warp that could go on is not one that waits.
  run answer_of "$BATS_TEST_TMPDIR/noted.html" '[[...document.querySelectorAll("#source .warps")].map((mark) => mark.textContent).filter(Boolean), textOf(explainWait(app.model, 2, app.view.event))].join("|")'
  [[ $output =~ ^"w2-3› w0‖,w1|warp 2, all lanes, is at stage_reused.cu:45 "[^|]*", ready to go on. The phase of barriers[0] is complete, but the warp has not run since. " ]]
  run answer_of "$BATS_TEST_TMPDIR/noted.html" "(showSide(1), showNow(), $drawn)"
  [ "$output" = "runs|waits|in flight|no event for 60 clocks or more: since which line|event|even phase|odd phase|this moment|① and ②: __syncthreads() orders these two" ]
  local color='getComputedStyle(document.querySelector("#source .differs"), "::after").color'
  run answer_of "$BATS_TEST_TMPDIR/noted.html" "(showSide(1), showNow(), setTheme(false), $color)"
  [ "$output" = "rgb(27, 122, 67)" ] # green: it is no error
  run answer_of "$BATS_TEST_TMPDIR/noted.html" '(document.querySelector("#report .side").click(), app.model.events[app.view.event].slice(0, 3).join())'
  [ "$output" = "copy,$(answer_of "$BATS_TEST_TMPDIR/noted.html" 'app.model.events[pictureShown().report.b.event].slice(1, 3).join()')" ]
  # The line of the fix leads to the event at which it has done its work.
  run answer_of "$BATS_TEST_TMPDIR/noted.html" '(document.querySelector(".diff button").click(), describeEvent(app.model, app.view.event) + " " + app.chosenFile)'
  [[ $output =~ "arrives at __syncthreads() (line 49): "[0-9]+" threads, complete null"$ ]]
  # Of reports of one rule and line, the reader goes from one to the next; another line has a button of its own.
  local others='`${[...document.querySelectorAll("#report .others")].map((each) => each.textContent)} at ${app.view.event}`'
  emulator/emulate --page "$BATS_TEST_TMPDIR/noted.html" build/tests/joined/01_tiledcopy_baseline/pitfalls/missing_syncthreads || true
  run answer_of "$BATS_TEST_TMPDIR/noted.html" "$others"
  [[ $output == " 1 of 8 reports of this rule at this line ⟨⟩ The same rule at missing_syncthreads.cu:29 at "* ]]
  run answer_of "$BATS_TEST_TMPDIR/noted.html" "[1, 0, 0, 2, 0].map((i) => (document.querySelectorAll('#report .others button')[i].click(), showNow(),
    [$others.slice(0, 3), app.model.findings.indexOf(app.view.event)].join())).join('|')"
  [ "$output" = " 2 ,1| 1 ,0| 8 ,7| Th,8| 1 ,0" ]
  emulator/emulate --page "$BATS_TEST_TMPDIR/noted.html" $joined/pitfalls/stage_reused || true
  run answer_of "$BATS_TEST_TMPDIR/noted.html" "$others"
  [[ $output == " at "* ]]
  # What a rule means may be two strings in rules.def.
  emulator/emulate --page "$BATS_TEST_TMPDIR/noted.html" build/02_tma_load/pitfalls/misaligned_destination || true
  run answer_of "$BATS_TEST_TMPDIR/noted.html" 'app.recording.rules.get("misaligned-address").documented_in'
  [ "$output" = "Addresses as operands" ]
  # It says so in words, also where the fix is a file of another name: that of its kernel is compared.
  emulator/emulate --page "$BATS_TEST_TMPDIR/page.html" $joined/pitfalls/$name -- $joined/fixed/$name || true
  awk '/class="recording"/ { side++ } side == 2 { gsub(/read_without_wait\.cu/, "repaired.cu") } { print }' \
    "$BATS_TEST_TMPDIR/page.html" >"$BATS_TEST_TMPDIR/renamed.html"
  run answer_of "$BATS_TEST_TMPDIR/renamed.html" 'document.querySelector(".diff .come").textContent'
  [ "$output" = "39mbarrier_wait_parity(&amp;barrier, 0);" ]
}

@test "page: the lines that a report is about, where it opens; polls folded; a stage is one bar" {
  need_browser
  local page=$BATS_TEST_TMPDIR/page.html joined=build/tests/joined/02_tma_load
  local partners='[...document.querySelectorAll("#source .partner")].map((line) => `${line.lastChild.textContent}=${line.dataset.partner}`).join("|")'
  emulator/emulate --page "$page" build/02_tma_load/pitfalls/too_many_bytes || true
  run answer_of "$page" "$partners"
  [ "$output" = "TILE_BYTES = TILE_ELEMENTS * sizeof(float),=①: TILE_BYTES is defined here|mbarrier_arrive_expect_tx(&amp;barrier, TILE_BYTES);=①: barrier is told to expect 4,096 bytes, 2,048 came|mbarrier_wait_parity(&amp;barrier, 0);=②: warps 0-3 wait for barrier" ]
  # Its story begins with the cause, and tells of the wait once.
  run answer_of "$page" '[...document.querySelectorAll("#moments li:first-child span, #moments .wait span")].map((line) => line.textContent).concat(
    app.model.warps[0].waits.filter(({ end }) => end === Infinity).map((wait) => noticeWait(app.model, app.model.events[wait.at], wait))).join("|")'
  [ "$output" = "1 ① The mbarrier 'barrier' now expects 4,096 bytes.|Phase 0 never ends.|It waits forever." ]
  # At the end of the lanes a sign says that the waits go on.
  run answer_of "$page" '[[...byId("drawn").children].filter((entry) => /∞/.test(entry.textContent)).length, ((write, texts) => (writeText = (context, color, text) => texts.push(text),
    lanesPicture.key = "", showTimeline(), writeText = write, texts.filter((text) => text === "∞").length))(writeText, [])].join()'
  [ "$output" = "1,4" ]
  # A card and the panels say the same of the bytes that a barrier still needs.
  run answer_of "$page" '(goToMoment(app.moments.findIndex(({ name }) => name === "landed") + 1), showNow(), document.querySelector("#moments .landed").lastChild.textContent + byId("why").textContent)'
  [[ $output == "The mbarrier 'barrier' has counted the bytes, and still needs 2,048 bytes."*"still needs 2,048 bytes"* ]]
  run answer_of "$page" 'textOf(explainWait(app.model, 0, app.model.events.findIndex(([kind]) => kind === "landed")))'
  [[ $output == *" has landed, and is counted next. The phase never completes. It never goes on." ]]
  run answer_of "$page" '[byId("barriers").textContent, byId("barrier-title").textContent, document.querySelector("#report .between").textContent].join("|")'
  [ "$output" = "barrierphase 0 lacks2,048 bytes|Barriers, and which arrivals and bytes a phase still lacks|so, forever," ]
  run answer_of "$page" 'app.model.events.length'
  [ "$output" -lt 80 ] # of 420
  # The fix says what it does, and how it went, in the colour of a fix.
  emulator/emulate --page "$BATS_TEST_TMPDIR/fixed.html" $joined/pitfalls/too_many_bytes -- $joined/fixed/too_many_bytes
  run answer_of "$BATS_TEST_TMPDIR/fixed.html" '(showSide(1), setTheme(false), showNow(), [...document.querySelectorAll("#report .rule, #report .side > span:first-child")].map((side) =>
    `${side.textContent} ${getComputedStyle(side.closest("#report").querySelector(".rule")).color}`).concat(linkColor(pictureShown())).join("|"))'
  [[ $output =~ ^"The fix: TILE_BYTES = TILE_ELEMENTS * sizeof(uint16_t) rgb(27, 122, 67)|① barrier is told to expect 2,048 bytes, and all came rgb(27, 122, 67)|② Warp 0 waits for barrier, and goes on after "[0-9,]+" clocks rgb(27, 122, 67)|fixed"$ ]]
  run answer_of "$page" '[byId("finding").disabled, document.querySelector("#report .rule").textContent, (goTo(0), showNow(), byId("finding").disabled)].join()'
  [ "$output" = "true,hang-too-many-bytes-expected (hang): More bytes expected than copies bring: warps 0-3 wait forever. Phase 0 of barrier expects 4,096 bytes, and 2,048 came.,false" ]
  # What is read once more is folded: the report takes few lines.
  run answer_of "$page" '[byId("report").clientHeight < 300, document.querySelector("#report details").open, document.querySelector("#report .advice").textContent.slice(0, 40)].join()'
  [ "$output" = "true,false,Correct expect_tx, or issue the copy. Li" ]
  emulator/emulate --page "$page" $joined/pitfalls/element_stride_bytes || true
  run answer_of "$page" 'document.querySelector("#moments .landed").lastChild.textContent'
  [ "$output" = "The mbarrier 'barrier' has counted 2,048 bytes more than it was told to expect." ]
  # A report that comes after the access says so, and why the wait to blame let it pass; that wait has a card.
  emulator/emulate --page "$page" $joined/pitfalls/parity_not_flipped || true
  run answer_of "$page" '[document.querySelector("#report .between").textContent, document.querySelector("#report .reason").textContent,
    byId("now").textContent, byId("why").textContent].join("|")'
  [[ $output =~ ^"the wait at line 44 is for phase 0|Warp 3 reads tile[96], where the tensor load that thread 0 issues later, at parity_not_flipped.cu:42, has not landed: "[^|]*" succeeded because phase 0 is over.|At instruction "[0-9]+": warp 3 reads tile[96]. This is reported now, when thread 0 issues the tensor load of "[^|]*", as waited-for-wrong-phase.|The report is about parity_not_flipped.cu:46, where warp 3 was at instruction "[0-9]+". Now warp 3, all lanes, waits "[^|]*"warp 2 at parity_not_flipped.cu:48, still leaving the barrier before. " ]]
  # Its access has a card of its own, as has the other side, which says that this was meant for its bytes.
  run answer_of "$page" '[...document.querySelectorAll("#moments li:not(:first-child, :last-child) span")].map((line) => line.textContent).join("|")'
  [ "$output" = "2 Warp 3 asks barrier for parity 0, and goes on.|That phase 0 is over is enough, and shows nothing new.|3 ① Warp 3 reads tile[96].|It comes 157 instructions before ②.|4 Reported here: waited-for-wrong-phase.|The wait at line 44 is for phase 0.|5 ② Warp 0 fills tile again, by the tensor load of matrix at row 0, column 32.|Warp 3 has read the old bytes instead, 157 instructions before." ]
  run answer_of "$page" '(changeAxis("time"), showNow(), document.querySelector("#report .reason").textContent)' # by 73 clocks it has
  [[ $output == "Warp 3 reads tile[96], where the tensor load "*" has not landed: "* ]]
  emulator/emulate --page "$page" build/02_tma_load/pitfalls/read_without_wait || true
  run answer_of "$page" '[byId("now").textContent, byId("why").textContent].join("|")'
  [[ $output == "At instruction "*": warp 3 reads tile[96]. This is reported now"*" as read-without-wait.|The report is about read_without_wait.cu:40, where "*". Now warp 3 has ended." ]]
  emulator/emulate --page "$page" $joined/pitfalls/stage_reused || true
  run answer_of "$page" '[byId("now").textContent, byId("why").textContent].join("|")'
  [[ $output == "Warp 1 reads tile[32]. This is reported as stage-reused-too-early.|warp 1, all lanes, is at stage_reused.cu:47 since "* ]]
  emulator/emulate --page "$page" build/02_tma_load/pitfalls/read_without_wait || true
  run answer_of "$page" "$partners"
  [[ $output == "tma_load_2d(tile, &amp;map, first_column, first_row, &amp;barrier);="[①②]": thread 0 issues the tensor load of matrix at row 0, column 0 into tile|"*"="[①②]": warp 3 reads tile[96]" ]]
  emulator/emulate --page "$page" build/07_pipelined_gemm/ring
  run answer_of "$page" 'app.moments.find(({ at }) => at === app.view.event).name'
  [ "$output" = "refill" ] # where there is no report
  # Of several launches, where a stage is used again, or in the longest. They are called by what they differ in.
  local launches='`${byId("cluster").selectedOptions[0].text}|${[...byId("cluster").options].map((option) => option.text).join("|")}`'
  emulator/emulate --page "$BATS_TEST_TMPDIR/launches.html" build/07_pipelined_gemm/attention/attention >/dev/null
  run answer_of "$BATS_TEST_TMPDIR/launches.html" '`${(app.moments.find(({ at }) => at === app.view.event) || {}).name} ${app.view.cluster}`'
  [ "$output" = "overlap 4" ]
  # Two warpgroups that take turns are seen by what they do, in any program.
  local overlap='[...document.querySelectorAll("#moments .overlap span")].map((line) => line.textContent).join("|")'
  run answer_of "$BATS_TEST_TMPDIR/launches.html" "$overlap"
  [[ $output =~ ^[0-9]" Warpgroup "[01]" multiplies while warpgroup "[01]" computes.|For "[0-9,]+" clocks, mostly in softmax(s, &amp;rows, scale_log2), between two products of its own."$ ]]
  # A run without a report has a headline that judges it, and says who allowed a stage to be used again.
  local headline='byId("headline").textContent.replace(/\d+\s%/g, "N %")'
  run answer_of "$BATS_TEST_TMPDIR/launches.html" "$headline"
  [[ $output =~ ^"The block leaves the tensor cores idle for N % of the run: N % between wgmmas (code: "[0-9,]+" of "[0-9,]+" clocks, softmax, lines "[0-9,]+"; never waiting for loads), N % before the first wgmma (waiting for loads: "[0-9,]+" of "[0-9,]+" clocks, mbarrier_wait_parity, line 117), N % after the last wgmma (other warps go on: "[0-9]+" of "[0-9]+" clocks; ".+"). Warp 8 loads Q (65 x 64 bf16: 1 box of 128 x 64), K (300 x 64: 3 boxes of 128 x 64) and V (300 x 64: 3 boxes of 128 x 64); warps 0-7 multiply (72 wgmmas) and store \"out\" (65 x 64 bf16). Shown: block 0 of 1, in clocks of a modelled H200, not measured."$ ]]
  run answer_of "$BATS_TEST_TMPDIR/launches.html" 'document.querySelector("#moments .refill").lastChild.textContent'
  [[ $output =~ ^"Warps 0-7 freed it: phase 0 of k_empty[0] ended "[0-9,]+" clocks before."$ ]]
  # Who has the turn at the tensor cores is seen: never two. Warps that only pass through share a lane.
  run answer_of "$BATS_TEST_TMPDIR/launches.html" '((turns) => [...app.allLanes.filter(({ keys = [], kind }) => keys.length > 1 || kind === "turn").map(({ name }) => name),
    turns.every((a) => turns.every((b) => a === b || a.end <= b.begin || b.end <= a.begin))].join("|"))(app.allLanes.filter(({ kind }) => kind === "turn").flatMap(({ spans }) => spans))'
  [ "$output" = "warps 9-11, ended|turn of warps 0-3|turn of warps 4-7|true" ]
  # The last turn, in which nothing is multiplied, is not drawn.
  run answer_of "$BATS_TEST_TMPDIR/launches.html" 'app.allLanes.filter(({ kind }) => kind === "turn").map(({ spans }) => spans.length).join()'
  [ "$output" = "2,2" ]
  run answer_of "$BATS_TEST_TMPDIR/launches.html" '[byId("range"), byId("marks"), byId("purpose").firstChild].map((each) => each.textContent).join("|")'
  [[ $output =~ ^"clocks "[1-9][0-9,]*" to "([0-9,]+)" of "([0-9,]+)"|w0: warp 0, ‖: waits|Fused attention; "[^:]+$ ]]
  [ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ] # a run without a report is shown whole
  run answer_of "$page" "$headline"
  [[ $output =~ ^"The block leaves the tensor cores idle for N % of the run: N % after the last wgmma (epilogue: "[0-9,]+" of "[0-9,]+" clocks, store_accumulator, line 90), N % between wgmmas (draining, with no other wgmma queued: "[0-9,]+" of "[0-9,]+" clocks, wgmma_wait_all, line 84; never waiting for loads), N % before the first wgmma (waiting for loads: "[0-9]+" of "[0-9,]+" clocks, line 76). Warp 0 loads A (512 x 512 bf16: 8 boxes of 64 x 64) and B (512 x 512: 8 boxes of 256 x 64) through 4 stages; warps 0-3 multiply (32 wgmmas of m64n256k16). Shown: block 0 of 16, in clocks of a modelled H200, not measured."$ ]]
  # Over the lanes stand the cards' numbers: a click goes there.
  run answer_of "$page" '((box, { left, at }) => (pointAtTimeline({ buttons: 1, clientX: box.left + left + 2, clientY: box.top + RULER_HEIGHT - 4 }), app.view.event === at))(
    byId("timeline").getBoundingClientRect(), cardBoxes(app.model, { ...timelineView(), axis: axisShown() }, byId("timeline").clientWidth).pop())'
  [ "$output" = true ]
  # The times in which the tensor cores idle are all that no wgmma covers, and what the warps do fills each of them.
  run answer_of "$page" '((gaps, all) => [gaps.length, Math.abs(gaps.reduce((sum, { begin, end }) => sum + timeOf(app.model, end) - timeOf(app.model, begin), 0) -
    (timeOf(app.model, all) - timeOf(app.model, 0)) + coveredShare(app.model, indexSpans(app.model.wgmmas.slice())) * (timeOf(app.model, all) - timeOf(app.model, 0))) < 1,
    gaps.every(({ begin, end, parts }) => Math.abs(parts.reduce((sum, { clocks }) => sum + clocks, 0) - timeOf(app.model, end) + timeOf(app.model, begin)) < 1),
    gaps.slice(-1).concat(gaps[1]).map((gap) => idleNames(app.model, gap).join("/").replace(/(^|\/| )[\d,]+(?!\d)/g, "$1 N ").replace(/  N/g, " N"))].join("|"))(idleOf(app.model, 0), app.model.events.length - 1)'
  [ "$output" = "9|true|true| N : epilogue N  L90/ N : epilogue/epilogue/L90, N : drain N  L84/ N : drain/drain/L84" ]
  EMULATOR_CLOCK=off emulator/emulate --page "$BATS_TEST_TMPDIR/untimed.html" build/07_pipelined_gemm/ring
  run answer_of "$BATS_TEST_TMPDIR/untimed.html" "$headline"
  [ "$output" = "Warp 0 loads A (512 x 512 bf16: 8 boxes of 64 x 64) and B (512 x 512: 8 boxes of 256 x 64) through 4 stages; warps 0-3 multiply (32 wgmmas of m64n256k16). Shown: block 0 of 16." ]
  # Where no thread does anything, or its instruction has no line, the source stays at the line that it belongs to.
  run answer_of "$page" 'app.model.events.map(([kind, , number], n) => (goTo(n), [currentPlace().file < 0 ? kind : "",
    kind !== "landed" ? "" : currentPlace() === placeOf(app.model, app.model.events[app.model.copies[number].begin]) ? "" : n])).flat().join("") + executed(-1)'
  [ "$output" = "" ]
  run answer_of "$page" "$overlap"
  [ "$output" = "" ]
  run answer_of "$BATS_TEST_TMPDIR/launches.html" 'document.querySelector("#moments .epilogue").lastChild.textContent' # the other warpgroup goes on
  [[ $output == "It takes "*" clocks. Stores are in flight meanwhile, and the tensor cores multiply for warps 4-7." ]]
  # A warpgroup computes under its own product, and waits for the turn that the other one hands on.
  run answer_of "$BATS_TEST_TMPDIR/launches.html" '[...document.querySelectorAll("#moments .own span, #moments .handover span")].map((line) => line.textContent).join("|")'
  [[ $output =~ ^[0-9]" Warps 4-7 can go on: warp "[0-3]" arrives at barrier 2.|The longest wait for it: "[0-9]+" clocks.|"[0-9]" Warpgroup "[01]" computes before it awaits a wgmma of its own.|For "[0-9,]+" clocks, mostly in softmax(s, &amp;rows, scale_log2)."$ ]]
  run answer_of "$BATS_TEST_TMPDIR/launches.html" "$launches"
  [[ $output == "attention_kernel&lt;64&gt;, grid 1, "*" clocks|attention_kernel&lt;128&gt;, grid 1, "*" clocks|attention_kernel&lt;64&gt;, grid 1 x 2 x 2, "*" clocks|"* ]]
  emulator/emulate --page "$BATS_TEST_TMPDIR/launches.html" build/01_tiledcopy_baseline/tiledcopy_baseline >/dev/null
  run answer_of "$BATS_TEST_TMPDIR/launches.html" '[app.recording.clusters.length > 1, app.recording.clusters.every(({ end }) => end.end <= app.model.cluster.end.end), app.view.cluster > 0].join()'
  [ "$output" = "true,true,true" ]
  run answer_of "$page" 'app.bars.map(({ offset, count }) => `${nameAt(app.model, offset).name} ${count}`).join()'
  [ "$output" = "a[0] 64,a[1] 64,a[2] 64,a[3] 64,b[0] 256,b[1] 256,b[2] 256,b[3] 256,full[0] 1" ]
  run answer_of "$page" 'app.allLanes.filter(({ kind }) => kind === "copy").map(({ name }) => name).join()'
  [ "$output" = "A → a[0],B → b[0],A → a[1],B → b[1],A → a[2],B → b[2],A → a[3],B → b[3]" ]
  run answer_of "$page" '[...document.querySelectorAll("#moments .epilogue span")].map((line) => line.textContent).join("|")'
  [[ $output == [0-9]" Warp "[0-9]" has all its results in registers: its epilogue begins.|It takes "*" clocks. No copy is in flight meanwhile, and the tensor cores have no work." ]]
  run answer_of "$page" '["multiply", "end"].map((name) => document.querySelector(`#moments .${name}`).lastChild.textContent.replace(/[0-9.,]*[0-9]/g, "N")).join("|")'
  [ "$output" = "It is done N clocks later, and awaited N clocks later. Copies in flight meanwhile: N.|Copies have moved N bytes, N a clock. No finding." ]
  emulator/emulate --page "$BATS_TEST_TMPDIR/picked.html" build/02_tma_load/cp_async_ring
  run answer_of "$BATS_TEST_TMPDIR/picked.html" 'app.bars.map(({ offset }) => rowLabel(app.model, offset)).join("|")'
  [ "$output" = "box[0]|box[1]|box[2]|picked[0]|picked[1]|picked[2]|full, empty" ]
  run answer_of "$BATS_TEST_TMPDIR/picked.html" 'app.model.events.map((e, n) => landedAt(app.model, e, n) && noticeLanded(app.model, e, n)).find((words) => /arrival,/.test(words))'
  [[ $output == "the mbarrier full[0] has counted the arrival, and still needs "*" arrivals"* ]] # no bytes came
  run answer_of "$BATS_TEST_TMPDIR/picked.html" "$headline"
  [ "$output" = "Warps 0-1 wait for data for N % of the run, on average (line 63). Warp 2, which loads, is at line 60 for N %. A load is in flight for N % of the run, at N % of the reads. Warp 2 loads \"boxes\" (80 x 16 s32: 10 boxes of 8 x 16) and 512 bytes 10 times by cp.async through 3 stages; warps 0-1 read. Shown: block 0 of 1, in clocks of a modelled H200, not measured." ]
  # What completes is what the barrier counts, also where the arrival of cp.async is counted before it is said to be complete.
  run answer_of "$BATS_TEST_TMPDIR/picked.html" 'app.model.events.map((e, n) => landedAt(app.model, e, n) && countsBytes(e) && e[11] !== landedAt(app.model, e, n).number).filter(Boolean).length +
    app.model.copies.map(({ kind, end }) => kind === "cp.async" && noticeLanded(app.model, app.model.events[end], end)).filter(Boolean)[0]'
  [ "$output" = "0the mbarrier full[0] counts an arrival that comes after it." ]
  # A wait uses an mbarrier, too; what ends its phase may be arrivals without bytes.
  run answer_of "$BATS_TEST_TMPDIR/picked.html" '["init", "wait", "expect"].map((name) => document.querySelector(`#moments .${name}`).lastChild.textContent.replace(/[0-9,]+ clocks/, "N clocks")).join("|")'
  [ "$output" = "It is first used N clocks later, by warp 0, after a fence and a barrier.|It waits N clocks, until the last of 32 arrivals of cp.async.mbarrier.arrive has come.|Phase 0 ends N clocks later, when the last of 32 arrivals of cp.async.mbarrier.arrive has come." ]
  run answer_of "$BATS_TEST_TMPDIR/picked.html" 'textOf(explainByte(app.model, 1024 + 512 + 48, 0))'
  [ "$output" = "byte 48 of box[1], stage 1 (offset 1584, bank 12): never written so far." ]
  run answer_of "$BATS_TEST_TMPDIR/picked.html" '(pointAtTimeline({ clientX: 5, clientY: byId("timeline").getBoundingClientRect().top + RULER_HEIGHT + 2 + 5.5 * laneHeight(app.lanes) }),
    byId("timeline").title)'
  [ "$output" = "arrivals → full[0]" ]
  emulator/emulate --page "$BATS_TEST_TMPDIR/sliced.html" build/05_multicast/multicast
  run answer_of "$BATS_TEST_TMPDIR/sliced.html" '[...document.querySelectorAll("#moments .multicast span")].map((line) => line.textContent).join("|")'
  [[ $output == [0-9]" Block 0 warp 0 loads "*" of blocks 0-"[0-9]" at once.|One read of "*" bytes fills all of them." ]]
  emulator/emulate --page "$BATS_TEST_TMPDIR/carried.html" build/07_pipelined_gemm/pipelined_gemm
  # Each stage has its lane, though the warps' stores have one together.
  run answer_of "$BATS_TEST_TMPDIR/carried.html" 'app.allLanes.filter(({ kind, name }) => kind === "copy" && name).map(({ name }) => name).join()'
  [ "$output" = "A → a[0],B → b[0],A → a[1],B → b[1],A → a[2],B → b[2],A → a[3],B → b[3],C store" ]
  # A wait that is known to end later takes its scheduler from nobody before that.
  run answer_of "$BATS_TEST_TMPDIR/carried.html" 'Math.max(...app.model.warps.flatMap(({ silent }) => silent.map(({ begin, end }) => timeOf(app.model, end) - timeOf(app.model, begin))))'
  [ "$output" -lt 600 ]
  run answer_of "$BATS_TEST_TMPDIR/carried.html" '[...document.querySelectorAll("#moments .carried span")].map((line) => line.textContent).join("|").replace(/\d+/g, "N")'
  [ "$output" = "N Block N warp N issues the tensor store of C at row N, column N: wgmmas run meanwhile.|For N % of the store's N clocks, wgmmas of the same warpgroup (line N) are in flight." ]
  run answer_of "$BATS_TEST_TMPDIR/carried.html" 'app.bars.map(({ offset }) => rowLabel(app.model, offset)).slice(4, 6).join()'
  [ "$output" = "b[0],b[0]+16,384" ] # the peer loads this half
  run answer_of "$BATS_TEST_TMPDIR/sliced.html" 'rowLabel(app.model, app.bars[1].offset)'
  [ "$output" = "tile[2] to [3]" ]
  # By the element, each row is shown.
  run answer_of "$page" '((app.view.label = "element"), showNow(), app.bars.length)'
  [ "$output" -eq 1281 ]
}

@test "page: a copy over bytes that a peer still reads: the other side is the reader, and an arrival of the fix orders them" {
  need_browser
  local page=$BATS_TEST_TMPDIR/page.html joined=build/tests/joined/05_multicast name=buffer_still_read_by_a_peer
  local shown='[...document.querySelectorAll("#report .side, #report .between")].map((side) => side.textContent).join("|")'
  emulator/emulate --page "$page" $joined/pitfalls/$name -- $joined/fixed/$name
  run answer_of "$page" "$shown"
  [[ $output == "① Block 0 warp 0 starts a copy into tile of block 1$name.cu:41"*"|nothing orders these two|② Block 1 warp 0 reads tile of block 1$name.cu:46"* ]]
  # What is shown is the block whose bytes they are; why they may be read still is what the other block's barrier counts.
  run answer_of "$page" '[document.querySelector("#report .reason").textContent, document.querySelector("#report .words").textContent.replace(/[^]*copy writes to/, ""), byId("barrier-title").textContent.slice(0, 19),
    byId("block").value, [...document.querySelectorAll("#moments .finding span, #moments .init span, #moments .refill span, #moments .side span")].map((line) => line.textContent)].join("|")'
  [ "$output" = "Block 0 waits for its own reader only (empty of block 0 counts 1 arrival a phase, line 32). Block 1 may still read its bytes.|: arrivals on a barrier that this thread waits for, or a cluster barrier.|Barriers of block 0|1|4 ① Block 0 warp 0 starts a copy into tile of block 1: stage-reused-too-early.,Block 1 warp 0 has not read the old bytes yet. Nothing orders ① and ②.,5 ② Block 1 warp 0 reads tile of block 1.,It comes 13 instructions after ①." ]
  run answer_of "$page" 'document.querySelector("#report .others").textContent'
  [ "$output" = " The same rule at $name.cu:46, 64 times" ]
  run answer_of "$page" "(showSide(1), showNow(), [$shown, app.view.event === pictureShown().added, describeEvent(app.model, app.view.event)].join())"
  [[ $output == *"|lines 32 and 51 order these two|"*",true,empty of block 0: arrival; phase 1, 2 of 2 arrivals and 0 bytes pending" ]]
  run answer_of "$page" "app.view.event === pictureShown().added" "#s=1"
  [ "$output" = true ]
  # Where both are of one thread, they are in order: what lacks is a wait.
  emulator/emulate --page "$page" build/tests/joined/07_pipelined_gemm/pitfalls/no_wait_for_a_free_stage || true
  run answer_of "$page" "$shown"
  [[ $output == "① The same thread expected bytes there before"*"|no wait for ① in between|② Warp 4 expects bytes at full[0] for another copy"* ]]
}

@test "page: how the program ended, what the recording lacks, and links that say where they lead" {
  need_browser
  local page=$BATS_TEST_TMPDIR/page.html joined=build/tests/joined
  local told='`${[...byId("purpose").children].map(({ textContent }) => textContent).join("")}|${byId("report").hidden ? "" : document.querySelector("#report .rule").textContent}`'
  emulator/emulate --page "$page" $joined/01_tiledcopy_baseline/pitfalls/freed_while_in_use || true
  run answer_of "$page" "$told"
  [[ $output == " On the emulator the program printed “PASS freed_while_in_use: "*"” and ended with exit code 3, the emulator's for an error. Nothing guarantees the order in which it passed. Seen on an H200: right results each time.|freed-while-in-use (error): Memory is freed while a stream uses it" ]]
  # What an H200 did with it, in the author's words; why what stands between the two sides is not enough; the advice is not what the program does already.
  emulator/emulate --page "$page" $joined/03_tma_store/pitfalls/source_reused || true
  run answer_of "$page" '`${byId("purpose").textContent}|${document.querySelector("#report .reason").textContent}|${document.querySelector("#report .advice").textContent}|${byId("busy").textContent}`'
  [[ $output == *"Seen on an H200: right results each time, also on a matrix of 4096 x 4096. "*"|__syncthreads() (line 38) stands between ① and ②, but does not show that the tensor store has read its source.|The thread that issued it must wait until "*"in clocks of a modelled H200, not measured. The real H200, which gave right results, had different timing." ]]
  # Lanes that wait for a lane of their own warp are at no barrier yet; a wait for the source is none for the completion.
  emulator/emulate --page "$page" $joined/03_tma_store/pitfalls/source_reused -- $joined/03_tma_store/fixed/source_reused || true
  run answer_of "$page" '(showSide(1), showNow(), [explainWait(app.model, 0, app.view.event), explainWait(app.model, 1, app.view.event)].map(textOf).join())'
  [[ $output == *"bar.sync waits for other lanes of the warp: lane 0 at source_reused.cu:37."*" Not arrived: warp 0 lane 0 at source_reused.cu:37. "* ]]
  run answer_of "$page" '(showSide(1), showNow(), document.querySelector("#moments .landed").lastChild.textContent)'
  [ "$output" = "No mbarrier counts it. Warp 0 waits until its source is read (line 37)." ]
  emulator/emulate --page "$page" build/02_tma_load/first_load
  run answer_of "$page" "$told"
  [[ $output == " On the emulator the program printed “PASS first_load: "*"” and ended with exit code 0. The emulator reports nothing.|" ]]
  # What happens is told by who does what when.
  run answer_of "$page" '[...document.querySelectorAll("#moments span + span")].map((line) => line.textContent.replace(/[0-9,]+ clocks/g, "N clocks")).join("|")'
  [ "$output" = "It is first used N clocks later, by warp 0, after a fence.|Phase 0 ends N clocks later, when the last bytes have come.|It takes N clocks. Its bytes can be read only after a wait has seen the phase of barrier end.|It waits N clocks, until the last bytes have come.|The mbarrier '"'barrier'"' counts the bytes next, and needs no more.|Warp 0, which waited for parity 0, can go on. Phase 1, of parity 1, begins.|It takes 1 pass over the 32 banks of shared memory.|Copies have moved 512 bytes, 0.4 a clock. No finding." ]
  run answer_of "$page" '((app.view.focus = "warp:0"), goTo(app.model.warps[0].waits.find(({ begin }) => app.model.events[begin][5][1]).begin), showNow(),
    [...byId("why").querySelectorAll("a")].map((link) => link.textContent).join("|"))'
  [[ $output =~ ^"clock "[0-9,]+"|the tensor load of matrix at row 8, column 16 into tile|the end of the tensor load of matrix at row 8, column 16 into tile|clock "[0-9,]+$ ]]
}

@test "page: a wrong value without a report: what EMULATOR_CHECK=layout says, what was printed, and what the fix changes" {
  need_browser
  local page=$BATS_TEST_TMPDIR/page.html joined=build/tests/joined/06_swizzle_3d name=base_not_1024_aligned
  local told='`${[...byId("purpose").children].map(({ textContent }) => textContent).join("")}|${[...byId("report").children].slice(0, 1).map((line) => line.textContent)}|${[...app.moments].pop().name}|${app.view.event}`'
  local card='[...document.querySelectorAll("#moments .wrong span")].map((line) => line.textContent).join("|")'
  run --separate-stderr -1 emulator/emulate --page "$page" --record "$BATS_TEST_TMPDIR/recording" $joined/pitfalls/$name
  [[ $stderr == "emulate: the program failed without a report; the page shows another run, with EMULATOR_CHECK=layout, which has one" ]]
  run ! grep '"rule": "swizzle-base"' "$BATS_TEST_TMPDIR/recording" # the run whose output is shown is recorded
  run answer_of "$page" "$told"
  [[ $output == " On the emulator the program printed “FAIL $name: "*", “the tile: row 0, column 0: expected 1, got 5” and ended with exit code 1. The default checks do not see this; EMULATOR_CHECK=layout does, in another run. What was printed is of the first run, and what is shown below is of the other one. "*"|swizzle-base (strict): A swizzled tile is not aligned to its pattern|wrong|"* ]]
  run answer_of "$page" "$card"
  [[ $output == [0-9]" The first run printed “the tile: row 0, column 0: expected 1, got 5”.|At clock "*" the kernel has ended. The first report shows where it first went wrong." ]]
  # What was printed is of a chunk of the row that is read there.
  run answer_of "$page" '[byId("now").textContent, document.querySelector("#report .reason").textContent.split(" swizzle.").pop()].join("|")'
  [ "$output" = "Warp 0 reads a row of the tile from buffer[128] on. This is reported as swizzle-base.| At row 0, column 0 it reads chunk 1, which begins with column 4: “the tile: row 0, column 0: expected 1, got 5”." ]
  # Without any report it opens at what the fix changes, or at what comes next.
  EMULATOR_CHECK=errors emulator/emulate --page "$page" $joined/pitfalls/$name -- $joined/fixed/$name
  run answer_of "$page" "$told"
  [[ $output == *" The emulator reports nothing: no access, wait or fence breaks a rule here. Look for a wrong address, "*"|What the fix changes|wrong|"[0-9]* ]]
  run answer_of "$page" '[placeText(app.model, currentPlace()), document.querySelector(".diff .come").textContent, byId("report").className].join()'
  [[ $output == "$name.cu:33,32uint32_t *tile = (uint32_t *)buffer; "*",fixed" ]]
  run answer_of "$page" '(showSide(1), showNow(), `${byId("report").firstChild.textContent}|${byId("report").className}`)'
  [ "$output" = "The fix: uint32_t *tile = (uint32_t *)buffer|fixed" ]
  # A run that EMULATOR_CHECK=layout finds nothing in, either; and what passed runs once.
  printf '#!/bin/sh\necho run >>%s\n%s >/dev/null\necho "sum: got 3, expected 4"\n' "$BATS_TEST_TMPDIR/runs" $PWD/build/02_tma_load/first_load >"$BATS_TEST_TMPDIR/script"
  cp "$BATS_TEST_TMPDIR/script" "$BATS_TEST_TMPDIR/fails"
  echo 'echo FAIL' >>"$BATS_TEST_TMPDIR/fails"
  chmod +x "$BATS_TEST_TMPDIR/script" "$BATS_TEST_TMPDIR/fails"
  run -0 emulator/emulate --page "$page" "$BATS_TEST_TMPDIR/script"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/runs")" -eq 1 ]
  run -0 emulator/emulate --page "$page" "$BATS_TEST_TMPDIR/fails"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/runs")" -eq 3 ]
  run answer_of "$page" "$told"
  [[ $output == " On the emulator the program printed “FAIL”, “sum: got 3, expected 4” and ended with exit code 0. The emulator reports nothing, nor does EMULATOR_CHECK=layout: "*"||wrong|"* ]]
}

@test "page: two programs that are right are compared: clocks, when the tensor cores idle, and lines that the other one lacks" {
  need_browser
  local page=$BATS_TEST_TMPDIR/page.html rungs=build/07_pipelined_gemm headline='byId("headline").textContent'
  page_of_passes $rungs/ring 10 -- $rungs/producer_consumer
  run answer_of "$page" '[app.view.side, document.title, ...[...byId("sides").children].map((each) => each.textContent), byId("report").hidden,
    /mistake|fix/i.test(document.body.innerText), byId("purpose").firstChild.textContent].join("|")'
  [ "$output" = "1|producer_consumer|ring|producer_consumer|true|false|A GEMM with one warp for the loads and a warpgroup for the multiplication." ]
  # The times are those of the clusters, and the tensor cores idle for most of the difference. s stays at the moment.
  run answer_of "$page" '(() => {
    const numbers = () => byId("headline").textContent.replace(/,(?=\d)/g, "").match(/[\d]+|less than|more than/g).slice(0, 6);
    const [ring, other] = app.recordings.map(({ clusters }) => clusters[0].end.end);
    const [second, first] = [numbers(), (KEYS.s(), writeAddress(), numbers())];
    return [second.join() === [other, Math.round(100 - (100 * other) / ring), "less than", ring, first[5], first[4]].join(),
      first.slice(0, 4).join() === [ring, Math.round((100 * ring) / other - 100), "more than", other].join(),
      (first[4] - first[5]) / (ring - other) > 0.8, location.hash.includes("s=0"),
      keyMoments(app.model).find(({ at }) => at === app.view.event).name].join();
  })()'
  [ "$output" = true,true,true,true,refill ]
  run answer_of "$page" "$headline"
  [[ $output == *" instead of "*" between wgmmas (there mostly draining, with no other wgmma queued: wgmma_wait_all, its line 84). "* ]]
  # Underlined is what only this file has, without notes; where most of it is, nothing is.
  local underlined='[...document.querySelectorAll("#source .differs")].map((code) => code.textContent.trim()).concat(
    document.querySelectorAll("#source [data-note]").length, byId("marks").textContent).join("|")'
  run answer_of "$page" "$underlined"
  [[ $output == *"|uint64_t empty[STAGES];|"*"|0|w0: warp 0, ‖: waits, underlined: not in ring" ]]
  emulator/emulate --page "$page" $rungs/tiled -- $rungs/producer_consumer
  run answer_of "$page" "$underlined + $headline"
  # Nor are launches compared that differ, or that the recording does not have.
  [[ $output =~ ^"0|w0: warp 0, ‖: waits"[0-9,]+" clocks; tiled takes "[0-9,]+". That is no comparison: its launch has 64 blocks, this one 16, and block 0 here multiplies 4 times as much. " ]]
  emulator/emulate --page "$page" $rungs/ring --k 1024 -- $rungs/ring --k 512
  run answer_of "$page" "$headline"
  [[ $output =~ ^[0-9,]+" clocks; ring --k 1024 takes "[0-9,]+". That is no comparison: its tensors have other sizes or types, and its block 0 multiplies 2 times as much. " ]]
  emulator/emulate --page "$page" build/01_tiledcopy_baseline/first_copy -- build/02_tma_load/first_load
  run answer_of "$page" "$headline"
  [[ $output == *" That is no comparison: only loads by copies and wgmmas show how much work is done, and not both have them. Warp 0 waits "* ]]
  EMULATOR_RECORD_LIMIT=1 emulator/emulate --page "$page" $rungs/ring -- $rungs/producer_consumer
  run answer_of "$page" "(showCluster(app.recording.clusters.length - 1), $headline)"
  [[ $output == "ring is not compared: this recording stops too early. "* ]]
  # Two programs of one name, of which the second is wrong: it shows its report.
  cp $rungs/ring "$BATS_TEST_TMPDIR/read_without_wait"
  run -1 emulator/emulate --page "$page" "$BATS_TEST_TMPDIR/read_without_wait" -- build/02_tma_load/pitfalls/read_without_wait
  run answer_of "$page" "[...byId('sides').children].map((each) => each.textContent).concat(byId('report').className, (showSide(0), $headline)).join('|')"
  [[ $output == "first|second|finding|The block "* ]]
}

@test "page: of a mistake and its fix, bad input runs nothing" {
  local page=$BATS_TEST_TMPDIR/page.html program=build/02_tma_load/first_load
  refuses() { # MESSAGE ARGUMENTS...
    emulate_refuses "$@"
    [ ! -e "$page" ]
  }
  refuses "nothing follows --: name the fix, or a program to compare with, or leave -- out" --page "$page" $program --
  refuses "there is no program gone/program" --page "$page" $program -- gone/program
  refuses "there is no program gone/program" --page "$page" gone/program -- $program
  refuses "./README.md is not executable" --page "$page" $program -- README.md
  printf 'text' >"$BATS_TEST_TMPDIR/text"
  chmod +x "$BATS_TEST_TMPDIR/text"
  refuses "$BATS_TEST_TMPDIR/text is neither an executable for Linux nor a script that begins with #!" --page "$page" $program -- "$BATS_TEST_TMPDIR/text"
  refuses "the same command stands on both sides of --: $program" --page "$page" $program -- $program
  refuses "a page of two programs is made alone: leave --trace, --record, --findings, --handoffs and --explore out" \
    --page "$page" --trace "$BATS_TEST_TMPDIR/trace" $program -- $program --help
}

@test "page: a hang" { page_passes 02_tma_load/pitfalls/too_many_bytes 40; }

@test "page: a warp whose lanes wait for different things" {
  page_of_passes build/emulator/tests/endless_polls 20 split_warp
  local text='textOf(explainWait(app.model, 1, app.model.events.length - 1))'
  run answer_of "$BATS_TEST_TMPDIR/page.html" "$text"
  [[ ${lines[0]} == *"bar.sync waits for other lanes of the warp: lanes 0-7, 9-31 at endless_polls.cu:"*" It never goes on." ]]
  [[ ${lines[1]} == "warp 1, lanes 0-7, 9-31, waits at "*" waits for other lanes of the warp: lane 8 at endless_polls.cu:"*" It never goes on." ]]
}

@test "page: somebody else's GEMM" { page_passes emulator/tests/foreign_gemm 10; }

@test "page: a program without line information shows its PTX" {
  need_browser
  page_of_passes build/emulator/tests/outside/no_lines 20
  [ "$(grep -c '"file": -1, ' "$BATS_TEST_TMPDIR/page.html")" -gt 20 ]
  run grep -c '"file": 0, ' "$BATS_TEST_TMPDIR/page.html"
  [ "$output" = 0 ]
}
