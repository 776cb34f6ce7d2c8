/* controls.js: keys, buttons and pointers. */

const isFollowed = ({ kind }) => kind === "warp" || kind === "barrier";
const focusOn = ({ kind, key }) => `${kind}:${key}`;

function followNext(direction) {
  const lanes = app.allLanes.filter(isFollowed);
  const at = lanes.findIndex((lane) => focusOn(lane) === app.view.focus);
  const next = lanes[(at + direction + lanes.length) % lanes.length];
  app.view.focus = focusOn(next);
  app.view.block = next.block;
}

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => document.documentElement.style.colorScheme === "dark";
function setTheme(dark) {
  document.documentElement.style.colorScheme = dark ? "dark" : "light";
  readColors();
}

function changeCluster(index) {
  const count = app.recording.clusters.length;
  app.view.event = null;
  openCluster((index + count) % count);
}

function changeAxis(axis) {
  const isOtherOrder = (axis === "run") !== (axisShown() === "run");
  app.view.axis = axis;
  app.view.zoom = null;
  if (isOtherOrder) showCluster(app.view.cluster);
}

/* By the keyboard, or by the button with this data-key. */
const KEYS = {
  ArrowRight: (event) => goTo(app.view.event + (event.shiftKey ? 10 : 1)),
  ArrowLeft: (event) => goTo(app.view.event - (event.shiftKey ? 10 : 1)),
  PageDown: () => goTo(app.view.event + 100),
  PageUp: () => goTo(app.view.event - 100),
  Home: () => goTo(0),
  End: () => goTo(app.model.events.length - 1),
  n: () => jump(1),
  p: () => jump(-1),
  f: jumpToFinding,
  w: jumpToWait,
  j: () => followNext(1),
  k: () => followNext(-1),
  b: () => (app.view.focus = "byte:"),
  m() {
    byId("memory").focus();
    if (app.view.pointer === null) movePointer(0);
  },
  l() {
    const modes = ["author", "element", "bank"];
    app.view.label = modes[(modes.indexOf(app.view.label) + 1) % modes.length];
  },
  "[": () => changeCluster(app.view.cluster - 1),
  "]": () => changeCluster(app.view.cluster + 1),
  "+": () => zoomBy(0.5),
  "-": () => zoomBy(2),
  "0": zoomOut,
  ...Object.fromEntries(Array.from({ length: MOST_MOMENTS }, (_, i) => [String(i + 1), () => goToMoment(i + 1)])),
  i() {
    app.chosenFile = null;
    app.view.inner = !app.view.inner;
  },
  x: () => changeAxis({ time: "event", event: app.model.other ? "run" : "time", run: "time" }[axisShown()]),
  a: () => (app.view.every = !allBlocksShown()),
  s: () => showSide(1 - app.view.side),
  t: () => setTheme(!isDark()),
  "?": () => byId("help").showModal(),
};

/* What the reader chooses from a list: its id, and what the value does. */
const CHOICES = {
  file(value) {
    app.chosenFile = ["-1", String(INNER)].includes(value) ? null : Number(value);
    app.view.inner = value === String(INNER);
  },
  cluster: (value) => changeCluster(Number(value)),
  block: (value) => (app.view.block = Number(value)),
  axis: changeAxis,
  lanes: (value) => (app.view.every = value === "all"),
  label: (value) => (app.view.label = value),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  if (/^(SELECT|INPUT)$/.test(event.target.tagName) && event.target.id !== "scrub") return;
  if (event.target.tagName === "BUTTON" && (event.key === " " || event.key === "Enter")) return;
  const inMemory = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: ROW_BYTES, ArrowUp: -ROW_BYTES };
  if (event.target.id === "memory" && event.key in inMemory) {
    movePointer(inMemory[event.key] * (event.shiftKey ? CELL_BYTES : 1));
  } else if (Object.hasOwn(KEYS, event.key)) {
    KEYS[event.key](event);
  } else return;
  event.preventDefault();
  show();
}

function pointAtMemory(event) {
  const box = byId("memory").getBoundingClientRect();
  const address = memoryAddressAt(app.view.block, app.bars, app.geometry, event.clientX - box.left, event.clientY - box.top);
  if (address === null || address === app.view.pointer) return;
  app.view.pointer = address;
  show();
}

function pointAtTimeline(event) {
  const canvas = byId("timeline");
  const box = canvas.getBoundingClientRect();
  const x = event.clientX - box.left;
  const lane = app.lanes[Math.floor((event.clientY - box.top - RULER_HEIGHT - 2) / laneHeight(app.lanes))];
  const title = lane ? lane.name : ""; // it may be shortened
  if (canvas.title !== title) canvas.title = title;
  if (!event.buttons) return;
  const view = { ...timelineView(), axis: axisShown() };
  const card = cardBoxes(app.model, view, canvas.clientWidth).find(({ left }) => x >= left && x < left + CARD_SIZE);
  if (card && !lane && event.clientY - box.top >= NUMBERS_HEIGHT) {
    goToMoment(card.number);
    return;
  }
  if (lane && isFollowed(lane)) app.view.focus = focusOn(lane);
  if (x >= labelWidth(app.model, canvas.clientWidth))
    app.view.event = clampEvent(timelineEventAt(app.model, view, canvas.clientWidth, x));
  show();
}

function connect() {
  const on = (target, what, action) => target.addEventListener(what, (event) => {
    action(event);
    show();
  });
  for (const each of document.querySelectorAll("[data-key]")) on(each, "click", KEYS[each.dataset.key]);
  for (const [id, choose] of Object.entries(CHOICES)) on(byId(id), "change", () => choose(byId(id).value));
  on(byId("scrub"), "input", () => goTo(Number(byId("scrub").value)));
  for (const [side, each] of [...byId("sides").children].entries()) on(each, "click", () => showSide(side));
  for (const what of ["pointermove", "pointerdown"]) {
    byId("memory").addEventListener(what, pointAtMemory);
    byId("timeline").addEventListener(what, pointAtTimeline);
  }
  byId("memory-scroll").addEventListener("scroll", show);
  addEventListener("keydown", onKey);
  on(window, "resize", () => (app.scrolledTo = null)); // lines wrap elsewhere now
  on(window, "hashchange", () => {
    readAddress();
    openCluster(app.view.cluster);
  });
  on(systemIsDark, "change", () => setTheme(systemIsDark.matches));
}
