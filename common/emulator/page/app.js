/* app.js: the page: which moment is shown, and every control that changes it.
 *
 * `view` is all that the address bar holds; show() draws everything from it and the model. */

const byId = (id) => document.getElementById(id);

const app = {
  recording: null, model: null, lanes: [], rows: [], rowsOf: -1, geometry: null, playing: 0,
  sourceFile: -1, chosenFile: null /* null: the file of the event */, marked: [],
  view: { cluster: 0, event: 0, block: 0, focus: "warp:0", pointer: null, label: "author", zoom: null },
};

/* ---- The moment shown ---- */

function clampEvent(n) {
  return Math.max(-1, Math.min(app.model.events.length - 1, n));
}

function goTo(n) {
  app.view.event = clampEvent(n);
  show();
}

function openCluster(index) {
  app.view.cluster = index;
  app.model = buildModel(app.recording, app.recording.clusters[index]);
  app.lanes = timelineLanes(app.model);
  app.view.block = Math.min(app.view.block, app.model.blocks - 1);
  app.view.zoom = null;
  if (!focusList()) app.view.focus = "warp:0";
  app.view.event = clampEvent(app.view.event);
  app.rowsOf = -1;
}

/* The events of what the reader follows: a warp, a barrier, or the byte under the pointer. */
function focusList() {
  const [kind, key] = app.view.focus.split(":");
  if (kind === "warp") return app.model.warps[Number(key)]?.events;
  if (kind === "barrier") return app.model.barriers.get(Number(key))?.changes;
  if (kind === "finding") return app.model.findings;
  if (app.view.pointer === null) return [];
  return app.model.writes.get(app.view.pointer - (app.view.pointer % CELL_BYTES)) || [];
}

function focusName() {
  const [kind, key] = app.view.focus.split(":");
  if (kind === "warp") return warpName(app.model, Number(key));
  if (kind === "barrier") return "barrier " + addressName(app.model, Number(key));
  return kind === "finding" ? "findings" : "the byte under the pointer";
}

function jump(direction) {
  const list = focusList();
  const n = direction > 0 ? firstAfter(list, app.view.event) : lastUpTo(list, app.view.event - 1);
  if (n >= 0) goTo(n);
}

function jumpToFinding() {
  const findings = app.model.findings;
  if (!findings.length) return;
  const next = firstAfter(findings, app.view.event);
  goTo(next >= 0 ? next : findings[0]);
}

/* ---- The address bar ---- */

/* Browsers refuse a page that changes its address too often: when the reader pauses is enough. */
let addressTimer = 0;
function noteAddress() {
  clearTimeout(addressTimer);
  addressTimer = setTimeout(writeAddress, 200);
}

function writeAddress() {
  const { cluster, event, block, focus, pointer, label } = app.view;
  const parts = [`c=${cluster}`, `e=${event}`, `b=${block}`, `f=${focus}`, `l=${label}`];
  if (pointer !== null) parts.push(`p=${pointer}`);
  history.replaceState(null, "", "#" + parts.join("&"));
}

function readAddress() {
  const values = new URLSearchParams(location.hash.slice(1));
  const number = (name, otherwise) => (/^-?\d+$/.test(values.get(name) || "") ? Number(values.get(name)) : otherwise);
  const last = app.recording.clusters.length - 1;
  app.view.cluster = Math.max(0, Math.min(last, number("c", 0)));
  app.view.event = number("e", 0);
  app.view.block = Math.max(0, number("b", 0));
  app.view.pointer = number("p", null);
  if (/^(warp|barrier|byte|finding):?\d*$/.test(values.get("f") || "")) app.view.focus = values.get("f");
  if (["author", "element", "bank"].includes(values.get("l"))) app.view.label = values.get("l");
}

/* ---- Drawing ---- */

let colors = null;
function readColors() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue("--" + name).trim();
  colors = { text: color("text"), faint: color("faint"), running: color("running"), waiting: color("waiting"),
    tick: color("tick"), hatch: color("hatch"), tensor: color("tensor"), parity0: color("parity0"),
    parity1: color("parity1"), onColor: color("on-color"), cursor: color("cursor"), finding: color("finding"),
    selected: color("selected"), never: color("never"), other: color("other"),
    authors: Array.from({ length: AUTHOR_COLORS }, (_, i) => color("author" + i)) };
}

let shown = 0;
/* Draws at most once a frame. */
function show() {
  if (shown) return;
  shown = requestAnimationFrame(() => {
    shown = 0;
    showNow();
  });
}

function showNow() {
  noteAddress();
  showPosition();
  showSource();
  showTimeline();
  showBarriers();
  showMemory();
  showAnswers();
  showEvents();
}

function showPosition() {
  const { model, view } = app;
  const last = model.events.length - 1;
  byId("scrub").max = last;
  byId("scrub").value = view.event;
  const event = model.events[view.event];
  byId("position").textContent = `event ${view.event.toLocaleString("en-US")} of ${last.toLocaleString("en-US")}` +
    (event ? `, time ${event[1].toLocaleString("en-US")}` : "");
  byId("scrub").setAttribute("aria-valuetext", describeEvent(model, view.event));
  byId("now").textContent = describeEvent(model, view.event);
  byId("focus-name").textContent = focusName();
  byId("cluster").value = view.cluster;
  byId("finding").disabled = !model.findings.length;
}

/* ---- Source ---- */

/* The file and line that the current event, or the followed warp, stands at. */
function currentPlace() {
  const { model, view } = app;
  const event = model.events[view.event];
  const place = event && placeOf(model, event);
  if (place && place.file >= 0) return place;
  const warp = event ? warpOf(model, event) : 0;
  for (const group of warpPlaces(model, Math.max(0, warp), view.event)) if (group.place.file >= 0) return group.place;
  const first = model.events.find((each) => each[0] === "step");
  const begin = first && placeOf(model, first);
  return begin && begin.file >= 0 ? begin : null;
}

function openFile(file) {
  const list = byId("source");
  const source = app.recording.files[file];
  app.sourceFile = file;
  byId("file").value = app.chosenFile === null ? -1 : file;
  const lines = source && source.text !== null ? source.text.replace(/\n$/, "").split("\n") : [];
  list.replaceChildren(...lines.map((text, i) => {
    const line = document.createElement("li");
    const number = document.createElement("span");
    number.className = "number";
    number.textContent = i + 1;
    const code = document.createElement("code");
    code.textContent = text || " ";
    const warps = document.createElement("span");
    warps.className = "warps";
    line.append(warps, number, code);
    return line;
  }));
  app.marked = [];
}

function showSource() {
  const { model, view } = app;
  const place = currentPlace();
  const file = app.chosenFile === null ? (place ? place.file : -1) : app.chosenFile;
  if (file !== app.sourceFile) openFile(file);
  const list = byId("source");
  for (const line of app.marked) {
    line.className = "";
    line.firstChild.textContent = "";
  }
  app.marked = [];
  const byLine = new Map();
  for (const warp of model.warps)
    for (const group of warpPlaces(model, warp.number, view.event)) {
      const mask = group.mask & ~exitedLanes(model, warp.number, view.event);
      for (const [f, l] of [[group.place.file, group.place.line], [group.place.inner_file, group.place.inner_line]])
        if (mask && f === file && f >= 0) listOf(byLine, l).push(markOf(model, warp.number, group, view.event));
    }
  for (const [number, marks] of byLine) {
    const line = list.children[number - 1];
    if (!line) continue;
    line.className = "here";
    line.firstChild.textContent = marks.length > 2 ? `${marks.length} warps` : marks.join(" ");
    app.marked.push(line);
  }
  const current = place && (place.file === file ? place.line : place.inner_file === file ? place.inner_line : 0);
  const line = current ? list.children[current - 1] : null;
  if (!line) return;
  line.classList.add("current");
  app.marked.push(line);
  const box = list.parentElement;
  if (line.offsetTop < box.scrollTop + 40 || line.offsetTop > box.scrollTop + box.clientHeight - 60)
    box.scrollTop = line.offsetTop - box.clientHeight / 2;
}

/* "w3", with a bar while it waits. */
function markOf(model, number, group, n) {
  const waits = warpWaits(model, number, n).some((wait) => wait.mask & group.mask);
  return `w${number}${waits ? "‖" : ""}`;
}

/* ---- Timeline ---- */

const SHOWN_AT_FIRST = 400;

function timelineView() {
  const last = Math.max(1, app.model.events.length - 1);
  if (!app.view.zoom) app.view.zoom = { first: 0, last: Math.min(last, Math.max(SHOWN_AT_FIRST, 1)) };
  const zoom = app.view.zoom;
  const span = zoom.last - zoom.first;
  if (app.view.event < zoom.first || app.view.event > zoom.last) {
    zoom.first = Math.max(0, Math.min(last - span, Math.round(app.view.event - span / 2)));
    zoom.last = zoom.first + span;
  }
  return zoom;
}

function zoomBy(factor) {
  const zoom = timelineView();
  const last = Math.max(1, app.model.events.length - 1);
  const span = Math.max(20, Math.min(last, (zoom.last - zoom.first) * factor));
  const share = (app.view.event - zoom.first) / Math.max(1, zoom.last - zoom.first);
  zoom.first = Math.max(0, Math.min(last - span, app.view.event - share * span));
  zoom.last = zoom.first + span;
  show();
}

function showTimeline() {
  const focus = app.view.focus.split(":");
  const lane = app.lanes.findIndex((each) => each.kind === focus[0] && String(each.key) === focus[1]);
  drawTimeline(byId("timeline"), app.model, app.lanes, timelineView(), app.view.event, { lane }, colors);
  byId("timeline").setAttribute("aria-label",
    "Lanes over time. " + app.model.warps.map((warp) => warpSummary(warp.number)).join(". "));
}

function warpSummary(number) {
  const { model, view } = app;
  const waits = warpWaits(model, number, view.event);
  const group = warpPlaces(model, number, view.event)[0];
  const where = group ? ` at ${placeText(model, group.place)}` : " not begun";
  return warpName(model, number) + (waits.length ? " waits" : exitedLanes(model, number, view.event) ? " ended" : " runs") + where;
}

/* ---- Barriers ---- */

function showBarriers() {
  const { model, view } = app;
  const box = byId("barriers");
  const addresses = [...model.barriers.keys()].sort((a, b) => a - b);
  while (box.children.length > addresses.length) box.lastChild.remove();
  while (box.children.length < addresses.length) {
    const card = document.createElement("button");
    card.className = "card";
    card.type = "button";
    box.append(card);
  }
  addresses.forEach((address, i) => {
    const card = box.children[i];
    const state = barrierState(model, address, view.event);
    const name = addressName(model, address);
    const text = !state ? "not initialised" : !state.alive ? "invalidated"
      : `phase ${state.phase}, parity ${state.parity}\n${state.pending} of ${plural(state.expected, "arrival")} pending\n${plural(state.bytes, "byte")} pending`;
    card.textContent = `${name}\n${text}`;
    card.classList.toggle("odd", Boolean(state && state.parity));
    card.classList.toggle("changed", Boolean(state && state.event === view.event));
    card.setAttribute("aria-pressed", String(view.focus === `barrier:${address}`));
    card.onclick = () => {
      view.focus = `barrier:${address}`;
      view.block = rankOf(address);
      show();
    };
  });
  byId("no-barriers").hidden = addresses.length > 0;
}

/* ---- Memory ---- */

function showMemory() {
  const { model, view } = app;
  if (app.rowsOf !== view.block) {
    app.rows = memoryRows(model, view.block);
    app.rowsOf = view.block;
    byId("memory-height").style.height = `${app.rows.length * ROW_HEIGHT}px`;
    byId("block").replaceChildren(...model.cluster.blocks.map((index, rank) => new Option(`block (${index.join(",")})`, rank)));
  }
  byId("block").value = view.block;
  byId("label").value = view.label;
  byId("no-memory").hidden = app.rows.length > 0;
  followWrites();
  app.geometry = drawMemory(byId("memory"), model, view.block, app.rows, view.event, view.pointer, view.label, colors);
  byId("memory").setAttribute("aria-label", "Map of shared memory. " + textOf(byteAnswer()));
}

/* The rows that the event writes to, or is going to, come into sight. */
function followWrites() {
  const event = app.model.events[app.view.event];
  if (!event || app.followed === app.view.event || !byId("follow").checked) return;
  app.followed = app.view.event;
  const address = event[0] === "bytes" ? event[3] : event[0] === "copy" && event[11].length ? event[11][0][0] : -1;
  if (address >= 0 && rankOf(address) === app.view.block) scrollToAddress(address);
}

function scrollToAddress(address) {
  const box = byId("memory-scroll");
  const row = app.rows.indexOf(offsetOf(address) - (offsetOf(address) % ROW_BYTES));
  if (row < 0) return;
  const y = row * ROW_HEIGHT;
  if (y < box.scrollTop || y > box.scrollTop + box.clientHeight - 2 * ROW_HEIGHT)
    box.scrollTop = Math.max(0, y - box.clientHeight / 3);
}

function byteAnswer() {
  if (app.view.pointer === null) return ["Point at a byte, or press m and the arrow keys."];
  return explainByte(app.model, app.view.pointer, app.view.event);
}

const textOf = (parts) => parts.map((part) => (typeof part === "string" ? part : part.text)).join("");

function movePointer(delta) {
  if (!app.rows.length) return;
  let pointer = app.view.pointer;
  if (pointer === null || rankOf(pointer) !== app.view.block) pointer = ((app.view.block << 24) | app.rows[0]) >>> 0;
  else {
    const row = app.rows.indexOf(offsetOf(pointer) - (offsetOf(pointer) % ROW_BYTES));
    const linear = row * ROW_BYTES + (offsetOf(pointer) % ROW_BYTES) + delta;
    const last = app.rows.length * ROW_BYTES - 1;
    const clamped = Math.max(0, Math.min(last, linear));
    pointer = ((app.view.block << 24) | (app.rows[Math.floor(clamped / ROW_BYTES)] + (clamped % ROW_BYTES))) >>> 0;
  }
  app.view.pointer = pointer;
  scrollToAddress(pointer);
  show();
}

/* ---- Answers ---- */

function fill(element, parts) {
  element.replaceChildren(...parts.map((part) => {
    if (typeof part === "string") return document.createTextNode(part);
    const link = document.createElement("a");
    link.href = "#";
    link.textContent = part.text;
    link.onclick = (click) => {
      click.preventDefault();
      goTo(part.event);
    };
    return link;
  }));
}

function showAnswers() {
  const { model, view } = app;
  const [kind, key] = view.focus.split(":");
  const event = model.events[view.event];
  const warp = kind === "warp" ? Number(key) : event ? Math.max(0, warpOf(model, event)) : 0;
  fill(byId("why"), explainWait(model, warp, view.event));
  fill(byId("who"), byteAnswer());
  const reports = model.findings.filter((n) => n <= view.event);
  const last = reports.length ? model.events[reports[reports.length - 1]] : null;
  byId("report").hidden = !last;
  if (last) byId("report").textContent = `${last[0] === "fault" ? "Fault" : "Finding"} ${last[5]}\n${last[6]}`;
}

const LISTED = 9;

function showEvents() {
  const { model, view } = app;
  const first = Math.max(0, Math.min(view.event - (LISTED >> 1), model.events.length - LISTED));
  const items = [];
  for (let n = first; n < Math.min(first + LISTED, model.events.length); n++) {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = "#";
    link.textContent = `${n}: ${describeEvent(model, n)}`;
    link.onclick = (click) => {
      click.preventDefault();
      goTo(n);
    };
    if (n === view.event) item.setAttribute("aria-current", "step");
    if (model.events[n][0] === "finding" || model.events[n][0] === "fault") item.className = "finding";
    item.append(link);
    items.push(item);
  }
  byId("events").replaceChildren(...items);
}

/* ---- Controls ---- */

const SPEEDS = [5, 20, 60, 240, 1000];

function play() {
  if (app.playing) {
    app.playing = 0;
  } else {
    if (app.view.event >= app.model.events.length - 1) app.view.event = -1;
    const run = (app.playing = performance.now());
    let before = run;
    let rest = 0;
    const step = (now) => {
      if (app.playing !== run) return;
      rest += ((now - before) / 1000) * SPEEDS[byId("speed").value];
      before = now;
      const whole = Math.floor(rest);
      rest -= whole;
      if (whole) {
        app.view.event = clampEvent(app.view.event + whole);
        show();
      }
      if (app.view.event >= app.model.events.length - 1) app.playing = 0;
      else requestAnimationFrame(step);
      byId("play").setAttribute("aria-pressed", String(app.playing !== 0));
    };
    requestAnimationFrame(step);
  }
  byId("play").setAttribute("aria-pressed", String(app.playing !== 0));
}

function followNext(direction) {
  const choices = app.lanes.filter((lane) => lane.kind === "warp" || lane.kind === "barrier")
    .map((lane) => `${lane.kind}:${lane.key}`);
  const at = choices.indexOf(app.view.focus);
  app.view.focus = choices[(at + direction + choices.length) % choices.length];
  show();
}

function changeTheme() {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = root.dataset.theme || (dark ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
  readColors();
  show();
}

function changeCluster(by) {
  const count = app.recording.clusters.length;
  app.view.event = 0;
  openCluster((app.view.cluster + by + count) % count);
  show();
}

function toggleHelp() {
  const help = byId("help");
  if (help.open) help.close();
  else help.showModal();
}

const KEYS = {
  ArrowRight: (event) => goTo(app.view.event + (event.shiftKey ? 10 : 1)),
  ArrowLeft: (event) => goTo(app.view.event - (event.shiftKey ? 10 : 1)),
  PageDown: () => goTo(app.view.event + 100),
  PageUp: () => goTo(app.view.event - 100),
  Home: () => goTo(0),
  End: () => goTo(app.model.events.length - 1),
  " ": play,
  n: () => jump(1),
  p: () => jump(-1),
  f: jumpToFinding,
  j: () => followNext(1),
  k: () => followNext(-1),
  b: () => {
    app.view.focus = "byte:";
    show();
  },
  m: () => {
    byId("memory").focus();
    if (app.view.pointer === null) movePointer(0);
  },
  l: () => {
    const modes = ["author", "element", "bank"];
    app.view.label = modes[(modes.indexOf(app.view.label) + 1) % modes.length];
    show();
  },
  "[": () => changeCluster(-1),
  "]": () => changeCluster(1),
  "+": () => zoomBy(0.5),
  "-": () => zoomBy(2),
  t: changeTheme,
  "?": toggleHelp,
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  if (/^(SELECT|INPUT)$/.test(event.target.tagName) && event.target.id !== "scrub") return;
  if (event.target.tagName === "BUTTON" && (event.key === " " || event.key === "Enter")) return;
  const inMemory = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: ROW_BYTES, ArrowUp: -ROW_BYTES };
  if (event.target.id === "memory" && event.key in inMemory) {
    movePointer(inMemory[event.key] * (event.shiftKey ? CELL_BYTES : 1));
    event.preventDefault();
  } else if (Object.hasOwn(KEYS, event.key)) {
    KEYS[event.key](event);
    event.preventDefault();
  }
}

function pointAtMemory(event) {
  const box = byId("memory").getBoundingClientRect();
  const address = memoryAddressAt(app.view.block, app.rows, app.geometry, event.clientX - box.left, event.clientY - box.top);
  if (address === null || address === app.view.pointer) return;
  app.view.pointer = address;
  show();
}

function pointAtTimeline(event) {
  const canvas = byId("timeline");
  const box = canvas.getBoundingClientRect();
  const zoom = timelineView();
  const x = event.clientX - box.left;
  const lane = app.lanes[Math.floor((event.clientY - box.top - 2) / LANE_HEIGHT)];
  if (lane && (lane.kind === "warp" || lane.kind === "barrier")) app.view.focus = `${lane.kind}:${lane.key}`;
  if (x >= LABEL_WIDTH) {
    const share = (x - LABEL_WIDTH) / (canvas.clientWidth - LABEL_WIDTH);
    app.view.event = clampEvent(Math.round(zoom.first + share * (zoom.last - zoom.first)));
  }
  show();
}

function connect() {
  const on = (id, what, action) => byId(id).addEventListener(what, action);
  on("scrub", "input", () => goTo(Number(byId("scrub").value)));
  on("first", "click", () => goTo(0));
  on("back", "click", () => goTo(app.view.event - 1));
  on("play", "click", play);
  on("forward", "click", () => goTo(app.view.event + 1));
  on("last", "click", () => goTo(app.model.events.length - 1));
  on("previous-focus", "click", () => jump(-1));
  on("next-focus", "click", () => jump(1));
  on("finding", "click", jumpToFinding);
  on("theme", "click", changeTheme);
  on("help-button", "click", toggleHelp);
  on("file", "change", () => {
    const file = Number(byId("file").value);
    app.chosenFile = file < 0 ? null : file;
    show();
  });
  on("memory-scroll", "scroll", show);
  on("zoom-in", "click", () => zoomBy(0.5));
  on("zoom-out", "click", () => zoomBy(2));
  on("cluster", "change", () => {
    app.view.event = 0;
    openCluster(Number(byId("cluster").value));
    show();
  });
  on("block", "change", () => {
    app.view.block = Number(byId("block").value);
    show();
  });
  on("label", "change", () => {
    app.view.label = byId("label").value;
    show();
  });
  on("memory", "pointermove", pointAtMemory);
  on("memory", "pointerdown", pointAtMemory);
  on("timeline", "pointerdown", pointAtTimeline);
  on("timeline", "pointermove", (event) => event.buttons && pointAtTimeline(event));
  addEventListener("keydown", onKey);
  addEventListener("resize", show);
  addEventListener("hashchange", () => {
    readAddress();
    openCluster(app.view.cluster);
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readColors();
    show();
  });
}

/* Everything that the page shows of a moment, in one string, for tests: the same moment must look the
 * same however it was reached. What was scrolled or zoomed is put back to one state first. */
function shownState() {
  const { model, view } = app;
  view.zoom = null;
  app.followed = -2;
  byId("memory-scroll").scrollTop = 0;
  showNow();
  const text = (id) => byId(id).textContent;
  const cells = app.rows.flatMap((offset) => Array.from({ length: CELLS_IN_ROW }, (_, k) => {
    const cell = ((view.block << 24) | (offset + k * CELL_BYTES)) >>> 0;
    return `${cellWriter(model, cell, view.event)}/${cellFlights(model, cell, view.event).join("+")}`;
  }));
  return [text("position"), text("now"), text("source"), text("barriers"), text("why"), text("who"), text("events"),
    text("report"), byId("timeline").toDataURL(), byId("memory").toDataURL(), cells.join(" ")].join("\n");
}

function begin() {
  try {
    app.recording = readRecording(byId("recording").textContent);
    if (!app.recording.clusters.length) throw new Error("the recording holds no cluster: the program launched no kernel");
  } catch (error) {
    byId("now").textContent = `This recording cannot be shown: ${error.message}.`;
    document.body.className = "broken";
    return;
  }
  byId("cluster").replaceChildren(...app.recording.clusters.map((cluster, i) => {
    const launch = app.recording.launches[cluster.launch];
    return new Option(`${cluster.launch}: ${plainName(launch.kernel)}, block (${cluster.blocks[0].join(",")})`, i);
  }));
  byId("file").replaceChildren(new Option("follow the event", -1),
    ...app.recording.files.map((file, i) => new Option(file.path.replace(/^.*\//, ""), i)));
  byId("stopped").hidden = !app.recording.stopped;
  byId("stopped").textContent = app.recording.stopped || "";
  readColors();
  readAddress();
  openCluster(app.view.cluster);
  connect();
  showNow();
}

begin();
