/* controls.js: keys, buttons and pointers. */

function followNext(direction) {
  const choices = app.allLanes.filter((lane) => lane.kind === "warp" || lane.kind === "barrier")
    .map((lane) => `${lane.kind}:${lane.key}`);
  const at = choices.indexOf(app.view.focus);
  const next = choices[(at + direction + choices.length) % choices.length];
  app.view.focus = next;
  app.view.block = app.allLanes.find((lane) => `${lane.kind}:${lane.key}` === next).block;
  show();
}

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  readColors();
}
function changeTheme() {
  setTheme(document.documentElement.dataset.theme !== "dark");
  show();
}

function changeCluster(by) {
  const count = app.recording.clusters.length;
  app.view.event = null;
  openCluster((app.view.cluster + by + count) % count);
  show();
}

function changeAxis(axis) {
  app.view.axis = axis;
  app.view.zoom = null;
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
  n: () => jump(1),
  p: () => jump(-1),
  f: jumpToFinding,
  w: jumpToWait,
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
  "0": zoomOut,
  ...Object.fromEntries(Array.from({ length: MOST_MOMENTS }, (_, i) => [String(i + 1), () => goToMoment(i + 1)])),
  i: () => {
    app.chosenFile = null;
    app.view.inner = !app.view.inner;
    show();
  },
  x: () => changeAxis(app.view.axis === "time" ? "event" : "time"),
  a: () => {
    app.view.every = !allBlocksShown();
    show();
  },
  s: () => showSide(1 - app.view.side),
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
  if (lane && (lane.kind === "warp" || lane.kind === "barrier")) app.view.focus = `${lane.kind}:${lane.key}`;
  if (x >= labelWidth(canvas.clientWidth)) {
    const view = { ...timelineView(), axis: app.view.axis };
    app.view.event = clampEvent(timelineEventAt(app.model, view, canvas.clientWidth, x));
  }
  show();
}

function connect() {
  const on = (id, what, action) => byId(id).addEventListener(what, action);
  on("scrub", "input", () => goTo(Number(byId("scrub").value)));
  on("first", "click", () => goTo(0));
  on("back", "click", () => goTo(app.view.event - 1));
  on("forward", "click", () => goTo(app.view.event + 1));
  on("last", "click", () => goTo(app.model.events.length - 1));
  on("previous-focus", "click", () => jump(-1));
  on("next-focus", "click", () => jump(1));
  on("finding", "click", jumpToFinding);
  on("next-wait", "click", jumpToWait);
  on("mistake", "click", () => showSide(0));
  on("fix", "click", () => showSide(1));
  on("theme", "click", changeTheme);
  on("help-button", "click", toggleHelp);
  on("file", "change", () => {
    const file = Number(byId("file").value);
    app.chosenFile = file === -1 || file === INNER ? null : file;
    app.view.inner = file === INNER;
    show();
  });
  on("memory-scroll", "scroll", show);
  on("zoom-in", "click", () => zoomBy(0.5));
  on("zoom-out", "click", () => zoomBy(2));
  on("zoom-all", "click", zoomOut);
  on("cluster", "change", () => {
    app.view.event = null;
    openCluster(Number(byId("cluster").value));
    show();
  });
  on("block", "change", () => {
    app.view.block = Number(byId("block").value);
    show();
  });
  on("axis", "change", () => changeAxis(byId("axis").value));
  on("lanes", "change", () => {
    app.view.every = byId("lanes").value === "all";
    show();
  });
  on("label", "change", () => {
    app.view.label = byId("label").value;
    show();
  });
  connectPointers(on);
  addEventListener("keydown", onKey);
  addEventListener("resize", () => {
    app.scrolledTo = null; // lines wrap elsewhere now
    show();
  });
  addEventListener("hashchange", () => {
    readAddress();
    openCluster(app.view.cluster);
    show();
  });
  systemIsDark.addEventListener("change", () => {
    setTheme(systemIsDark.matches);
    show();
  });
}

function connectPointers(on) {
  on("memory", "pointermove", pointAtMemory);
  on("memory", "pointerdown", pointAtMemory);
  on("timeline", "pointerdown", pointAtTimeline);
  on("timeline", "pointermove", (event) => event.buttons && pointAtTimeline(event));
}
