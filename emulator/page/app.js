/* app.js: draws everything from app.view and the model, and begins. */

/* The browser tells only of an element which of light-dark()'s two colours it has. */
let colors = null;
function readColors() {
  const probe = document.body.appendChild(tag("i", ""));
  const color = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const names = ["text", "faint", "running", "silent", "waiting", "ready", "turn", "tick", "hatch", "tensor", "idle", "ground", "parity0",
    "parity1", "cursor", "finding", "fixed", "line", "selected", "never", "other"];
  colors = { ...Object.fromEntries(names.map((name) => [name, color(name)])), onColor: color("on-color"), onOdd: color("on-odd"),
    authors: Array.from({ length: AUTHOR_COLORS }, (_, i) => color("author" + i)) };
  probe.remove();
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
  showChoices();
  showReport(); // what is below moves
  showSource();
  showTimeline();
  showBarriers();
  showMemory();
  showAnswers();
}

function showPosition() {
  const { model, view } = app;
  const last = model.events.length - 1;
  byId("scrub").max = last;
  byId("scrub").value = view.event;
  const event = model.events[view.event];
  byId("position").textContent = `event ${view.event.toLocaleString("en-US")} of ${last.toLocaleString("en-US")}` +
    (event ? `, ${timeUnit(model)} ${event[1].toLocaleString("en-US")}` : "");
  byId("scrub").setAttribute("aria-valuetext", describeEvent(model, view.event));
  byId("bytes-of").textContent = event ? bytesOf(model, view.event) : "";
  byId("now").textContent = describeEvent(model, view.event);
  byId("focus-name").textContent = focusName();
  byId("cluster").value = view.cluster;
  byId("finding").disabled = model.findings.every((n) => n === view.event);
  showMoments();
}

/* ---- Timeline ---- */

/* So many events; of a run in its times, without a report, all: its beginning and end tell, too. */
const SHOWN_AT_FIRST = { time: 4000, event: 400, run: 400 };

function timelineView() {
  const last = Math.max(1, app.model.events.length - 1);
  const isWhole = axisShown() === "time" && !app.model.findings.length && app.model.recording.header.clock;
  if (!app.view.zoom) app.view.zoom = { first: 0, last: isWhole ? last : Math.min(last, SHOWN_AT_FIRST[axisShown()]) };
  const zoom = app.view.zoom;
  const span = zoom.last - zoom.first;
  if (app.view.event < zoom.first || app.view.event > zoom.last) {
    zoom.first = Math.max(0, Math.min(last - span, Math.round(app.view.event - span / 2)));
    zoom.last = zoom.first + span;
  }
  return zoom;
}

/* The whole recording. */
function zoomOut() {
  app.view.zoom = { first: 0, last: Math.max(1, app.model.events.length - 1) };
}

function zoomBy(factor) {
  const zoom = timelineView();
  const last = Math.max(1, app.model.events.length - 1);
  const span = Math.min(last, Math.max(20, Math.round((zoom.last - zoom.first) * factor)));
  const share = (app.view.event - zoom.first) / Math.max(1, zoom.last - zoom.first);
  zoom.first = Math.round(Math.max(0, Math.min(last - span, app.view.event - share * span)));
  zoom.last = zoom.first + span;
}

/* On a phone only the first lanes are in sight: there the tensor cores' come first. */
const NARROW = 500;

function showTimeline() {
  const { model, view } = app;
  const every = allBlocksShown();
  app.lanes = every ? [...app.allLanes] : app.allLanes.filter((lane) => lane.block < 0 || lane.block === view.block)
    .map((lane) => ({ ...lane, name: lane.short }));
  const isLast = ({ kind }) => byId("timeline").clientWidth < NARROW && kind !== "tensor";
  app.lanes.sort((a, b) => isLast(a) - isLast(b));
  const [kind, key] = view.focus.split(":");
  const selected = app.lanes.findIndex((lane) => lane.kind === kind && (lane.keys || [lane.key]).map(String).includes(key));
  const zoom = { ...timelineView(), axis: axisShown() };
  const changed = drawTimeline(byId("timeline"), model, app.lanes, zoom, { n: view.event, selected, picture: pictureShown() }, colors);
  if (changed || app.busyOf !== view.block)
    byId("busy").textContent = `${busyText(model, view.block, zoom)} ${byId("headline").textContent ? "" : shownTimes(model)}`;
  app.busyOf = view.block;
  showDrawn(model, pictureShown());
  byId("range").textContent = rangeText(model, zoom);
  byId("axis").value = axisShown();
  byId("axis").querySelector("[value=run]").hidden = !model.other;
  byId("lanes").value = every ? "all" : "one";
  byId("lanes").hidden = model.blocks === 1;
  const warps = app.lanes.filter((lane) => lane.kind === "warp");
  byId("timeline").setAttribute("aria-label",
    "Lanes over time. " + warps.map((lane) => warpAndPlace(model, lane.key, view.event) +
      (warpWaits(model, lane.key, view.event).length ? ", waiting" : "")).join(". "));
}

/* The lanes of a large cluster would fill the page, so they appear block by block. */
const LANES_AT_FIRST = 40;
const allBlocksShown = () => (app.view.every === null ? app.allLanes.length <= LANES_AT_FIRST : app.view.every);

/* A page of the book holds its recordings packed; a page that emulate writes holds them as text. */
function beginPage() {
  byId("incomplete").hidden = true; // the script is the end of the page
  setTheme(systemIsDark.matches);
  const elements = [...document.querySelectorAll("script.recording")];
  if (elements.some((element) => element.dataset.packed))
    app.begun = Promise.all(elements.map((element) => unpack(element.textContent))).then((texts) => showRecordings(elements, texts));
  else showRecordings(elements, elements.map((element) => element.textContent));
}

function unpack(text) {
  const packed = new Blob([decodeBase64(text.trim())]).stream();
  return new Response(packed.pipeThrough(new DecompressionStream("gzip"))).text();
}

function showRecordings(elements, texts) {
  try {
    app.recordings = elements.map((element, i) => ({ title: element.dataset.title, ...readRecording(texts[i]) }));
    if (!app.recordings.every((recording) => recording.clusters.length))
      throw new Error("the recording holds no cluster: the program launched no kernel");
  } catch (error) {
    byId("now").textContent = `This recording cannot be shown: ${error.message}.`;
    return;
  }
  readAddress();
  openCluster(app.view.cluster);
  connect();
  showNow();
}

beginPage();
