/* view.js: which moment is shown, and what the reader follows. `app.view` is all that the address bar holds. */

const byId = (id) => document.getElementById(id);

function tag(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

const button = (className, onclick, ...children) => Object.assign(tag("button", className, ...children), { type: "button", onclick });

const app = {
  recordings: [], recording: null /* that of view.side */, model: null, mistake: null /* the model of what view.side is the fix of */,
  hunks: null, picture: null,
  moments: [], chosenMoment: null /* the last one that the reader went to by its name */,
  choice: null /* of recording.choices */,
  lanes: [], bars: [], barsOf: "", geometry: null,
  sourceFile: -1, chosenFile: null /* null: the file of the event */, marked: [], lineOf: new Map(), lists: new Map(),
  view: { side: 0 /* of recordings */, cluster: 0, event: 0, block: 0, focus: "warp:0", pointer: null, label: "author", axis: null,
    inner: false /* the source of inlined functions */, every: null /* lanes of every block; null: if they are few */, zoom: null },
};

/* ---- The moment shown ---- */

function clampEvent(n) {
  return Math.max(-1, Math.min(app.model.events.length - 1, n));
}

function goTo(n) {
  app.view.event = clampEvent(n);
  show();
}

/* Whom a finding or a card is about must be in sight: the warp and its block. */
function standAt(n) {
  const event = app.model.events[n];
  if (event && warpOf(app.model, event) >= 0) {
    app.view.block = blockOfBytes(app.model, event);
    if (app.view.focus.startsWith("warp:")) app.view.focus = `warp:${warpOf(app.model, event)}`;
  }
  app.view.event = clampEvent(n);
}

function openCluster(index) {
  app.view.cluster = index;
  app.model = buildModel(app.recording, app.recording.clusters[index]);
  if (app.view.axis === null) app.view.axis = axisAtFirst(app.model);
  if (app.view.axis === "run" && app.model.other) app.model = app.model.other;
  app.mistake = isFix() ? mistakeOf(app.model.cluster) : null;
  app.allLanes = timelineLanes(app.model);
  app.view.block = Math.min(app.view.block, app.model.blocks - 1);
  app.view.zoom = null;
  listMoments();
  showPurpose();
  if (!focusList()) app.view.focus = "warp:0";
  if (app.view.event === null) standAt(momentAsked());
  app.view.event = clampEvent(app.view.event);
  app.barsOf = "";
}

/* The moment that the address names, "m=landed", or the page, else the first report, else where the fix does its work, else that at
 * which two things overlap, or a stage is used again, else the first that says something. */
const askedMoment = () => new URLSearchParams(location.hash.slice(1)).get("m") || document.body.dataset.moment;

function momentAsked() {
  const moments = keyMoments(app.model);
  const named = (wanted) => moments.find(({ name }) => name === wanted);
  const found = named(askedMoment() || "finding");
  const ofFix = found ? -1 : app.view.side ? (pictureShown() || { added: -1 }).added : momentOfFix(app.model);
  return ofFix >= 0 ? ofFix : (found || named("overlap") || named("carried") || named("refill") || moments[0] || { at: 0 }).at;
}

/* The order of the run, where the clock's is another one of what a report is about: only that explains what was printed. */
const axisAtFirst = (model) => (model.findings.some((n) => ordersDiffer(model, n)) ? "run"
  : model.recording.header.clock ? "time" : "event");

/* A fix, which has no report, has one order. */
const axisShown = () => (app.view.axis === "run" && !app.model.inRun ? "time" : app.view.axis);

/* The first cluster that has a report, else the first in which a stage is used again, else the longest. */
function clusterAsked() {
  const { clusters, choices } = app.recording;
  const asked = askedMoment() || "finding";
  const reported = asked === "finding" ? clusters.findIndex((cluster) => textsOfKind(cluster, "(?:finding|fault)").length) : -1;
  if (reported >= 0) return reported;
  if (choices.length || !["finding", "refill"].includes(asked)) return 0;
  const clocks = clusters.map(({ end }) => (end ? end.end : 0));
  const again = clusters.findIndex(usesStageAgain);
  return again >= 0 ? again : clocks.indexOf(Math.max(...clocks));
}

/* Of events that nobody has looked at yet: their lines. */
const textsOfKind = ({ text, eventsBegin, eventsEnd }, kind) =>
  (eventsBegin < 0 ? [] : text.slice(eventsBegin, eventsEnd).match(new RegExp(`^\\["${kind}",.*`, "gm")) || []);

function usesStageAgain(cluster) {
  const places = new Set();
  return textsOfKind(cluster, "copy").flatMap((line) => JSON.parse(line)[11]).some(([address]) => places.size === places.add(address).size);
}

/* The events of what the reader follows: a warp, a barrier, or the byte under the pointer. */
function focusList() {
  const [kind, key] = app.view.focus.split(":");
  if (kind === "warp") return (app.model.warps[Number(key)] || {}).events;
  if (kind === "barrier") return (app.model.barriers.get(Number(key)) || {}).changes;
  return app.view.pointer === null ? [] : eventsOfByte(app.model, app.view.pointer);
}

function focusName() {
  const [kind, key] = app.view.focus.split(":");
  if (kind === "warp") return warpName(app.model, Number(key));
  if (kind === "barrier") return barrierName(app.model, Number(key));
  return "the byte under the pointer";
}

function jump(direction) {
  const list = focusList();
  const n = direction > 0 ? firstAfter(list, app.view.event) : lastUpTo(list, app.view.event - 1);
  if (n >= 0) goTo(n);
}

/* In clocks. What is there already costs a wait up to 74 in a recording: that of a phase that is complete. */
const LONG_WAIT = 80;

function isLongWait(model, { begin, end }) {
  return end === Infinity || timeUnit(model) !== "clock" || model.events[end][1] - model.events[begin][1] > LONG_WAIT;
}

/* To where the warp that is followed waits long next; with a barrier or a byte followed, any warp. */
function jumpToWait() {
  const [kind, key] = app.view.focus.split(":");
  const warps = kind === "warp" ? [app.model.warps[Number(key)]] : app.model.warps;
  const next = warps.flatMap(({ waits }) => waits.filter((wait) => wait.begin > app.view.event && isLongWait(app.model, wait)).slice(0, 1))
    .map(({ begin }) => begin);
  if (next.length) goTo(next.reduce((a, b) => Math.min(a, b)));
}

function jumpToFinding() {
  const findings = app.model.findings;
  if (!findings.length) return;
  const next = firstAfter(findings, app.view.event);
  standAt(next >= 0 ? next : findings[0]);
}

/* ---- The address bar ---- */

/* Browsers refuse a page that changes its address too often: when the reader pauses is enough. */
let addressTimer = 0;
function noteAddress() {
  clearTimeout(addressTimer);
  addressTimer = setTimeout(writeAddress, 200);
}

function writeAddress() {
  const { cluster, event, block, focus, pointer, label, axis, every, inner } = app.view;
  const parts = [`c=${cluster}`, `e=${event}`, `b=${block}`, `f=${focus}`, `l=${label}`, `x=${axis}`];
  if (app.recordings.length > 1) parts.push(`s=${app.view.side}`);
  if (inner) parts.push("i=1");
  if (every !== null) parts.push(`a=${Number(every)}`);
  if (pointer !== null) parts.push(`p=${pointer}`);
  history.replaceState(null, "", "#" + parts.join("&"));
}

/* Where chunks lie is what a report of a swizzle is about. */
const labelAtFirst = () => ([...app.recording.rules.keys()].some((rule) => rule.startsWith("swizzle")) ? "element" : "author");

function readAddress() {
  const values = new URLSearchParams(location.hash.slice(1));
  const number = (name, otherwise) => (/^-?\d+$/.test(values.get(name) || "") ? Number(values.get(name)) : otherwise);
  openSide(Math.max(0, Math.min(app.recordings.length - 1, number("s", Number(isComparison())))));
  const last = app.recording.clusters.length - 1;
  app.view.cluster = Math.max(0, Math.min(last, number("c", clusterAsked())));
  app.view.event = number("e", null);
  app.view.block = Math.max(0, number("b", 0));
  app.view.pointer = number("p", null);
  if (/^(warp|barrier|byte):?\d*$/.test(values.get("f") || "")) app.view.focus = values.get("f");
  const [first = {}] = app.recording.choices;
  app.view.label = ["author", "element", "bank"].find((label) => label === (values.get("l") || first.label || labelAtFirst())) || "author";
  app.view.axis = ["time", "event", "run"].includes(values.get("x")) ? values.get("x") : null;
  app.view.inner = values.get("i") === "1";
  app.view.every = /^[01]$/.test(values.get("a") || "") ? values.get("a") === "1" : null;
}
