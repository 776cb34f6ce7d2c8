/* page_test.js: runs inside a page that emulate --page wrote, behind its own scripts, and leaves its
 * verdict in an element that the test reads from the page's final DOM. A number in `data-tries` of the
 * body's first test element says how many moments to visit. */
(function () {
  const problems = [];
  const complain = (what) => problems.push(what);
  addEventListener("error", (event) => complain(`error: ${event.message}`));
  addEventListener("securitypolicyviolation", (event) => complain(`request: ${event.blockedURI}`));

  const TRIES = Number(document.currentScript.dataset.tries);
  let seed = 12345;
  const random = (below) => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return Math.floor((seed / 4294967296) * below);
  };

  function digest(text) {
    let hash = 2166136261;
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
    return hash >>> 0;
  }

  const press = (key, more = {}) => {
    const target = more.target || document.body;
    target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
  };

  /* Everything that the page shows of a moment, in one string, for tests: the same moment must look the
   * same however it was reached. What was scrolled or zoomed is put back to one state first. */
  function shownState() {
    const { model, view } = app;
    view.zoom = null;
    app.followed = -2;
    byId("memory-scroll").scrollTop = 0;
    showNow();
    const text = (id) => byId(id).textContent;
    const cells = app.bars.flatMap(({ offset, count }) => Array.from({ length: count * CELLS_IN_ROW }, (_, k) => {
      const cell = cellAt(view.block, offset, k);
      return `${cellWriter(model, cell, view.event)}/${cellFlights(model, cell, view.event).join("+")}`;
    }));
    return [text("position"), text("now"), text("source"), text("barriers"), text("why"), text("who"),
      text("report"), text("instruction"), text("tensors"),
      byId("timeline").toDataURL(), byId("memory").toDataURL(), cells.join(" ")].join("\n");
  }

  /* A moment looks the same from before and from behind, and when it is opened by its address. */
  function sameBothWays() {
    for (let i = 0; i < TRIES; i++) {
      if (app.recording.clusters.length > 1 && i % 20 === 0) openCluster(random(app.recording.clusters.length));
      const last = app.model.events.length - 1;
      const n = random(last + 1);
      app.view.event = Math.max(0, n - 1 - random(30));
      while (app.view.event < n) press("ArrowRight");
      const forward = digest(shownState());
      app.view.event = Math.min(last, n + 1 + random(30));
      while (app.view.event > n) press("ArrowLeft");
      const back = digest(shownState());
      if (app.view.event !== n) complain(`the arrows end at ${app.view.event} instead of ${n}`);
      if (forward !== back) complain(`event ${n} differs forward and back`);
      app.view.event = random(last + 1);
      if (digest(shownState()) === forward && app.view.event !== n && last > 50)
        complain(`events ${n} and ${app.view.event} look the same: the comparison sees nothing`);
    }
  }

  function memoryIsRight() {
    app.recording.clusters.forEach((cluster, index) => {
      openCluster(index);
      if (!cluster.end) return;
      cluster.end.shared.forEach((final, rank) => {
        const want = decodeBase64(final);
        for (let k = 0; k < 256; k++) {
          const offset = random(want.length);
          const byte = byteAt(app.model, ((rank << 24) | offset) >>> 0, app.model.events.length - 1);
          if ((byte ? byte.value : cluster.initial) !== want[offset]) complain(`byteAt differs at ${offset}`);
        }
      });
    });
  }

  function everyKey() {
    openCluster(0);
    const view = app.view;
    const last = app.model.events.length - 1;
    const expect = (what, condition) => condition || complain(`keyboard: ${what}`);
    const leads = (key, to, more) => {
      press(key, more);
      expect(`${key}: ${to}`, to());
    };
    leads("Home", () => view.event === 0);
    leads("ArrowRight", () => view.event === Math.min(1, last));
    leads("ArrowRight", () => view.event === Math.min(11, last), { shiftKey: true });
    leads("PageDown", () => view.event === Math.min(111, last));
    press("PageUp");
    leads("End", () => view.event === last);
    leads("ArrowLeft", () => view.event === Math.max(0, last - 10), { shiftKey: true });
    press("Home");
    view.focus = "warp:0";
    leads("n", () => app.model.warps[0].events.includes(view.event));
    const second = view.event;
    press("n");
    leads("p", () => view.event === second);
    app.moments.forEach(({ at }, i) => {
      press(String(i + 1));
      expect(`${i + 1}`, view.event === at);
      const warp = warpOf(app.model, app.model.events[at]);
      expect(`${i + 1} shows whom it is about`, warp < 0 || view.focus === `warp:${warp}`);
    });
    expect("moments in order", app.moments.every(({ at }, i) => i === 0 || at >= app.moments[i - 1].at));
    expect("the end is a moment", app.moments[app.moments.length - 1].at === last);
    for (const { name, at } of app.moments) {
      const warp = warpOf(app.model, app.model.events[at]);
      if (name !== "finding" || warp < 0) continue;
      view.event = -1;
      press("f");
      expect("f shows the warp", view.focus === `warp:${warp}`);
      expect("f shows its block", view.block === blockOfEvent(app.model, app.model.events[at]));
    }
    view.event = null;
    openCluster(0);
    const named = (wanted) => keyMoments(app.model).find(({ name }) => name === wanted);
    expect("opens at the first report, else where two things overlap, or a stage is used again, else at the first moment",
      view.event === (named("finding") || named("overlap") || named("carried") || named("refill") || app.moments[0]).at);
    Object.assign(view, { event: second, focus: "warp:0", block: 0 });
    leads("j", () => view.focus !== "warp:0" || app.model.warpCount + app.model.barriers.size === 1);
    leads("k", () => view.focus === "warp:0");
    leads("f", () => !app.model.findings.length || app.model.findings.includes(view.event));
    press("Home");
    view.focus = "warp:0";
    const time = (n) => (n < Infinity ? app.model.events[n][1] : n);
    const least = timeUnit(app.model) === "clock" ? 80 : 0;
    const wait = app.model.warps[0].waits.find(({ begin, end }) => begin > 0 && time(end) - time(begin) > least);
    leads("w", () => view.event === (wait ? wait.begin : 0));
    leads("m", () => document.activeElement.id === "memory");
    const memory = document.getElementById("memory");
    if (app.bars.length) {
      const before = view.pointer;
      leads("ArrowRight", () => view.pointer === before + 1, { target: memory });
      leads("ArrowLeft", () => view.pointer === before, { target: memory });
      press("ArrowDown", { target: memory });
      leads("ArrowUp", () => view.pointer === before, { target: memory });
      leads("b", () => view.focus === "byte:");
    }
    const label = view.label;
    leads("l", () => view.label !== label);
    leads("i", () => view.inner);
    leads("i", () => !view.inner);
    const orders = app.model.other ? ["time", "event", "run"] : ["time", "event"];
    expect("the first axis is time, or the run where its order is another", view.axis === (app.model.findings.some((n) =>
      ordersDiffer(app.model, n)) ? "run" : "time") && timeUnit(app.model) === (view.axis === "run" ? "instruction" : "clock"));
    for (const _ of orders) {
      const next = orders[(orders.indexOf(view.axis) + 1) % orders.length];
      const name = describeEvent(app.model, view.event);
      leads("x", () => view.axis === next && app.model.inRun === (next === "run"));
      expect(`x stays at ${name}`, describeEvent(app.model, view.event).split(",")[0] === name.split(",")[0]);
    }
    showNow();
    const lanes = app.lanes.length;
    press("a");
    showNow();
    expect("a", app.model.blocks === 1 ? app.lanes.length === lanes : app.lanes.length !== lanes);
    press("a");
    showNow();
    expect("a again", app.lanes.length === lanes);
    const zoom = timelineView().last - timelineView().first;
    leads("+", () => last < 40 || timelineView().last - timelineView().first < zoom);
    press("-");
    leads("0", () => timelineView().first === 0 && timelineView().last === Math.max(1, last));
    const theme = getComputedStyle(document.body).backgroundColor;
    leads("t", () => getComputedStyle(document.body).backgroundColor !== theme);
    press("t");
    leads("]", () => view.cluster === (app.recording.clusters.length > 1 ? 1 : 0));
    leads("[", () => view.cluster === 0);
    leads("?", () => document.getElementById("help").open);
    document.getElementById("help").close();
    for (const element of document.querySelectorAll("button, select, input, canvas"))
      if (element.tabIndex < 0) complain(`${element.id || element.className} cannot be reached by keyboard`);
  }

  /* The address bar holds the moment: what it says now must bring it back. */
  function addressHoldsTheMoment() {
    openCluster(0);
    goTo(Math.floor(app.model.events.length / 2));
    Object.assign(app.view, { label: "element", axis: "time", every: false, inner: true });
    const before = digest(shownState());
    const { event } = app.view;
    writeAddress();
    app.view.event = 0;
    Object.assign(app.view, { label: "author", axis: null, every: null, inner: false });
    readAddress();
    if (app.view.event !== event || digest(shownState()) !== before) complain("the address does not hold the moment");
  }

  /* What CHECKS.md says about a reported rule is on the page. */
  function findingsAreExplained() {
    openCluster(0);
    for (const n of app.model.findings) {
      app.view.event = n;
      showNow();
      const text = byId("report").textContent;
      if (byId("report").hidden || !text.includes("The rule: ")) complain(`event ${n}: the finding is not explained: ${text}`);
    }
  }

  /* Bytes of a barrier: announced before its birth, then its state, with a link to who initialised it. */
  function barriersAreInMemory() {
    openCluster(0);
    for (const barrier of app.model.barriers.values()) {
      const birth = barrier.changes[0];
      const address = barrier.address + 3;
      const text = (n) => textOf(explainByte(app.model, address, n));
      if (!text(birth - 1).includes(`An mbarrier is initialised here at ${timeText(app.model, birth)}.`)) complain(`not announced: ${text(birth - 1)}`);
      if (!/initialised for \d+ arrivals? by .*warp \d+ lane \d+ at clock [\d,]+, .*\. Now: phase 0/.test(text(birth)))
        complain(`a barrier's byte is not explained: ${text(birth)}`);
      if (cellBarriers(app.model, address - (address % CELL_BYTES), birth - 1).some((each) => each.barrier === barrier))
        complain("a barrier is shown before it is initialised");
      if (!cellBarriers(app.model, address - (address % CELL_BYTES), birth).some((each) => each.barrier === barrier))
        complain("the map does not show a barrier");
      if (!eventsOfByte(app.model, address).includes(birth)) complain("a barrier's byte does not lead to its changes");
    }
  }

  /* Shares are between 0 and 1, and those of the whole are those of its parts. */
  function sharesAreConsistent() {
    openCluster(0);
    const last = app.model.events.length - 1;
    const spans = indexSpans(app.model.copies.slice());
    const time = (n) => app.model.events[n][1];
    for (let i = 0; i < 20; i++) {
      const middle = random(last + 1);
      const [whole, before, after] = [[0, last], [0, middle], [middle, last]]
        .map(([first, end]) => coveredShare(app.model, spans, { first, last: end }) * (time(end) - time(first)));
      if (Math.abs(whole - before - after) > 1e-6 * (1 + whole)) complain(`shares: ${whole} is not ${before} and ${after}`);
    }
    const text = busyText(app.model, 0, { first: 0, last });
    if (app.model.copies.some((copy) => copy.warp < app.model.cluster.warps_per_block) && !/copies in flight \d+ %/.test(text))
      complain(`how busy the copy engine is, is not told: ${text}`);
  }

  /* The timeline's points and its events agree, along both axes. */
  function timelineIsConsistent() {
    openCluster(0);
    for (const axis of ["event", "time"]) {
      const shown = { first: 0, last: app.model.events.length - 1, axis };
      const x = timelineScale(app.model, shown, 900);
      for (let i = 0; i < 100; i++) {
        const n = random(app.model.events.length);
        const found = timelineEventAt(app.model, shown, 900, x(n));
        const same = axis === "time" ? app.model.events[found][1] === app.model.events[n][1] : found === n;
        if (!same) complain(`${axis}: event ${n} is at ${x(n)}, where the timeline finds ${found}`);
      }
    }
  }

  /* Names are whole, or end with an ellipsis. Over the lanes stand only numbers of phases that leave most of their bars in sight, why the
   * tensor cores idle, within that time, and 1, 2 and "fix", which stand in front of what they name, and ∞. */
  function namesHideNothing() {
    const texts = [];
    const write = writeText;
    writeText = (context, color, text, x, y, squeezed) =>
      texts.push({ text, x, y, squeezed, isSide: color === colors.ground, width: context.measureText(text).width });
    const canvas = byId("timeline");
    lanesPicture.key = "";
    showTimeline();
    writeText = write;
    lanesPicture.key = "";
    const left = labelWidth(app.model, canvas.clientWidth);
    const view = { ...timelineView(), axis: axisShown() };
    const x = timelineScale(app.model, view, canvas.clientWidth);
    const laneAt = (y) => app.lanes[Math.floor((y - RULER_HEIGHT - 2) / laneHeight(app.lanes))];
    const isIdle = (lane, { text, x: begin, width }) => lane.kind === "tensor" && idleOf(app.model, lane.block).some((gap) =>
      idleNames(app.model, gap).includes(text) && begin >= x(gap.begin) && begin + width <= x(gap.end));
    for (const each of texts.filter(({ y }) => y > RULER_HEIGHT)) {
      const lane = laneAt(each.y);
      if (lane && isIdle(lane, each)) continue;
      const starts = lane && lane.name.startsWith(each.text.replace(/…$/, ""));
      if (each.x < left ? !starts || each.squeezed || each.x + each.width > left : !/^(\d+|fix|∞|L\d+)$/.test(each.text))
        complain(`"${each.text}" is written over ${lane && lane.name}`);
      if (each.x < left || each.isSide || !/^\d+$/.test(each.text)) continue;
      const bar = barrierPhases(app.model, app.model.barriers.get(lane.key), view).find(({ phase }) => String(phase) === each.text);
      if (x(bar.end) - Math.max(left, x(bar.begin)) < 2.5 * each.width) complain(`"${each.text}" hides its bar in ${lane.name}`);
    }
    if (texts.length < app.lanes.length) complain("the lanes have no names");
  }

  /* No warp is drawn as running while none of its events comes for long, whether or not the run recorded a wait. */
  function gapsAreShown() {
    if (timeUnit(app.model) !== "clock") return;
    for (const { number, events, waits, silent } of app.model.warps) {
      const own = events.filter((n) => app.model.events[n][0] in WARP_AT && !isFinding(app.model.events[n]));
      const gap = own.findIndex((n, i) => i && app.model.events[n][1] - app.model.events[own[i - 1]][1] >= 60 &&
        !spansAt(waits, own[i - 1]).length && !spansAt(silent, own[i - 1]).length);
      if (gap >= 0) complain(`warp ${number} seems to run up to event ${own[gap]}`);
      const line = (n) => placeOf(app.model, app.model.events[n]).ptx_line;
      for (const { begin, end } of silent)
        if (app.model.events[end][0] === "awaited" && line(begin) === line(end)) complain(`event ${end}: warp ${number} waits`);
    }
  }

  function waitsAreExplained() {
    for (const warp of app.model.warps)
      for (const wait of warp.waits.slice(0, 50)) {
        const text = textOf(explainWait(app.model, warp.number, wait.begin));
        const barrier = /^bar/.test(opcodeOf(app.model, app.model.events[wait.at]));
        if (barrier && !/Arrived: |All have arrived|other lanes/.test(text)) complain(`a wait does not say who has arrived: ${text}`);
        const [stands] = warpPlaces(app.model, warp.number, wait.begin).filter(({ mask }) => mask & wait.mask);
        if (placeText(app.model, stands.place) !== placeText(app.model, placeOf(app.model, app.model.events[wait.at])))
          complain(`event ${wait.begin}: warp ${warp.number} waits, and is shown at ${placeText(app.model, stands.place)}`);
        if (!/goes on at (clock|instruction) [\d,]+|never goes on|was stopped by the fault/.test(text)) complain(`a wait is not explained: ${text}`);
      }
  }

  /* On a screen of 1400 x 900 nobody scrolls for these, and nothing is wider than its place. */
  function nothingIsOutOfSight() {
    openCluster(0);
    app.view.event = app.moments[0].at;
    app.scrolledTo = null;
    scrollTo(0, 0);
    showNow();
    const [source, all] = [document.querySelector("section.source"), document.querySelector("main")].map((element) => element.clientWidth);
    const [time, why, who] = ["timeline-scroll", "why", "who"].map((id) => byId(id).getBoundingClientRect());
    if (time.width < 0.5 * all || why.top < time.bottom || who.top < time.bottom || Math.max(why.left, who.left) > time.right)
      complain(`the timeline is ${time.width} of ${all} wide, and the answers are not below it`);
    if (source < 0.44 * all || byId("source").clientWidth < 500) complain(`the source has ${source} of ${all}`);
    for (const id of ["source", "timeline", "barriers", "moments", "now"]) {
      const box = byId(id).getBoundingClientRect();
      if (box.top < 0 || box.top > innerHeight - 60) complain(`${id} begins at ${box.top} of ${innerHeight}`);
    }
    const wide = [document.documentElement, byId("source"), byId("timeline-scroll"), byId("barriers")]
      .filter((element) => element.scrollWidth > element.clientWidth + 1);
    if (wide.length) complain(`wider than its place: ${wide.map((element) => element.id || element.tagName)}`);
    const current = document.querySelector("#source .current");
    const [line, box] = [current, byId("source")].map((element) => element && element.getBoundingClientRect());
    if (line && (line.bottom < box.top || line.bottom > Math.min(box.bottom, innerHeight))) complain("the current line is out of sight");
  }

  /* Until it is awaited, a wgmma may read: where a copy into what it reads is reported, its bar is not over. */
  function racesAreVisible() {
    for (const n of app.model.findings) {
      const copy = app.model.copies.find((each) => app.model.events[n][5] === "stage-released-before-wgmma" && each.begin < n &&
        each.warp === app.model.events[n][2] && app.model.events[each.begin][1] === app.model.events[n][1]);
      if (copy && !app.model.wgmmas.some((wgmma) => wgmma.begin < n && wgmma.awaited > n)) complain(`event ${n}: no wgmma is open`);
    }
  }

  /* At most eight moments, two lines each; and no warp asks its barrier twice in a row. */
  function theSummaryTells() {
    openCluster(0);
    const lines = [...document.querySelectorAll("#moments button")].map((button) => [...button.children].map((line) => line.textContent));
    if (!lines.length || lines.length > 8 || lines.some((pair) => pair.length !== 2 || pair.some((line) => /^$|NaN|undefined(?!\.)/.test(line))))
      complain(`the summary is ${JSON.stringify(lines)}`);
    const cut = [...document.querySelectorAll("#moments span")].filter((line) => line.scrollHeight > line.clientHeight + 1);
    if (cut.length) complain(`cut off in the summary: ${cut.map((line) => line.textContent).join("|")}`);
    const told = [...document.querySelectorAll("#moments button:not(.finding)")].map((button) => button.lastChild.textContent);
    if (told.some((line) => /\b(must|may|before anybody)\b/i.test(line))) complain(`the summary admonishes: ${JSON.stringify(told)}`);
    for (const { events } of app.model.warps) {
      const waits = events.map((n) => app.model.events[n]).filter(([kind]) => kind !== "step" && kind !== "woke");
      const twice = waits.find((event, i) => i && event[5] && event[5][0] === "mbarrier" && String(event[5]) === String(waits[i - 1][5]));
      if (twice) complain(`a poll is not folded: ${JSON.stringify(twice)}`);
    }
  }

  function report() {
    const result = document.createElement("pre");
    result.id = "test-result";
    result.textContent = problems.length ? `FAIL ${problems.slice(0, 5).join("; ")}` : "PASS";
    document.body.append(result);
  }

  const begun = performance.now();
  try {
    sameBothWays();
    memoryIsRight();
    everyKey();
    addressHoldsTheMoment();
    gapsAreShown();
    waitsAreExplained();
    namesHideNothing();
    findingsAreExplained();
    timelineIsConsistent();
    barriersAreInMemory();
    sharesAreConsistent();
    nothingIsOutOfSight();
    racesAreVisible();
    theSummaryTells();
  } catch (error) {
    complain(`exception: ${error.stack}`);
  }
  report();
  document.getElementById("test-result").dataset.milliseconds = Math.round(performance.now() - begun);
})();
