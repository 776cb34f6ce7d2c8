/* panels.js: the legend of the timeline, barriers and answers. */

/* What the timeline draws: [words, class and colour of the swatch, whether this recording has it]. */
const DRAWN = [
  ["runs", "", "running", () => true],
  ["waits", "hatched", "waiting", (model) => model.warps.some(({ waits }) => waits.length)],
  ["waits forever: ∞", "hatched", "waiting", hangs],
  ["ready, has not run yet", "", "ready", (model) => model.warps.some((warp) => readyOf(model, warp).length)],
  [`no event for ${LEAST_GAP} clocks or more: since which line`, "", "silent", (model) => model.warps.some(({ silent }) => silent.length)],
  ["event", "tick", "tick", () => true],
  ["wgmma in flight", "", "tensor", (model) => model.wgmmas.length],
  ["tensor cores idle (clocks: main cause, line)", "", "idle", (model) => idleOf(model, app.view.block).length],
  ["not awaited yet", "hatched", "ground", (model) => model.wgmmas.some(({ end, awaited }) => awaited > end)],
  ["has the turn", "", "turn", () => app.allLanes.some(({ kind }) => kind === "turn")],
  ["even phase", "", "parity0", (model) => model.barriers.size],
  ["odd phase", "", "parity1", (model) => model.events.some((event) => event[0] === "mbarrier" && event[4] & 1)],
  ["this moment", "moment", "cursor", () => true],
  ["a report", "reported", "finding", (model) => model.findings.length],
];

function showDrawn(model, picture) {
  if (app.drawnOf === model && app.drawnPicture === picture) return;
  Object.assign(app, { drawnOf: model, drawnPicture: picture });
  const entry = (words, ...swatches) => tag("span", "", ...swatches.map(([className, color]) => {
    const swatch = tag("i", className);
    swatch.style.setProperty("--swatch", color);
    return swatch;
  }), ` ${words}`);
  const names = { authors: Array.from({ length: AUTHOR_COLORS }, (_, i) => `var(--author${i})`), other: "var(--other)" };
  const flights = new Set(model.copies.map(({ number }) => authorColor(`c${number}`, model, names)));
  const entries = DRAWN.filter(([, , , is]) => is(model)).map(([words, className, name]) => entry(words, [className, `var(--${name})`]));
  if (flights.size) entries.splice(2, 0, entry("in flight", ...[...flights].map((color) => ["hatched", color])));
  const { a, b, between } = picture ? picture.report : {};
  const linked = /order/.test(between) ? between : "the two sides above";
  if (b && a.event >= 0 && b.event >= 0) entries.push(entry(`① and ②: ${linked}`, ["link", `var(--${linkColor(picture)})`]));
  byId("drawn").replaceChildren(...entries);
}

/* The block whose warps and barriers are shown: of a report its threads', though its bytes may be of another block. */
function blockOfThreads() {
  const { model, view } = app;
  const event = model.events[view.event] || [];
  return isFinding(event) && view.block === blockOfBytes(model, event) ? homeOf(model, event) : view.block;
}

/* A row for each barrier of the block shown. */
function showBarriers() {
  const { model } = app;
  const block = blockOfThreads();
  const box = byId("barriers");
  const barriers = [...model.barriers.values()].filter((barrier) => rankOf(barrier.address) === block)
    .sort((a, b) => a.address - b.address);
  while (box.children.length > barriers.length) box.lastChild.remove();
  while (box.children.length < barriers.length) box.append(button("", null, ...Array.from({ length: 3 }, () => tag("span", ""))));
  barriers.forEach((barrier, i) => showBarrier(box.children[i], barrier));
  byId("no-barriers").hidden = barriers.length > 0;
  byId("barrier-title").firstChild.data = `Barriers${model.blocks > 1 ? ` of block ${block}` : ""}`;
}

function showBarrier(row, { address, name }) {
  const { model, view } = app;
  const state = barrierState(model, address, view.event);
  const lacking = state ? [state.pending && `${state.pending} of ${plural(state.expected, "arrival")}`,
    state.bytes && plural(state.bytes, "byte")].filter(Boolean) : [];
  const cells = [name, ...(!state ? ["not yet", ""] : !state.alive ? ["invalidated", ""]
    : [`phase ${state.phase} lacks`, lacking.join(", ")])];
  cells.forEach((text, i) => {
    if (row.children[i].textContent !== text) row.children[i].textContent = text;
  });
  const birth = barrierBirth(model, model.barriers.get(address), view.event);
  row.title = `at ${addressName(model, address)}` +
    (birth < 0 ? "" : `, initialised at ${placeText(model, placeOf(model, model.events[birth]))}`);
  row.classList.toggle("odd", Boolean(state && state.parity));
  row.classList.toggle("changed", Boolean(state && state.event === view.event));
  row.setAttribute("aria-pressed", String(view.focus === `barrier:${address}`));
  row.onclick = () => {
    view.focus = `barrier:${address}`;
    show();
  };
}

/* ---- Answers ---- */

function fill(element, parts) {
  element.replaceChildren(...parts.map((part) => {
    if (typeof part === "string") return part;
    const link = tag("a", "", part.text);
    link.href = "#";
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
  byId("why-title").textContent = warpWaits(model, warp, view.event).some((wait) => !isReady(model, warp, wait, view.event))
    ? `Why is ${warpName(model, warp)} waiting?`
    : `What does ${warpName(model, warp)} do?`;
  fill(byId("why"), explainWait(model, warp, view.event));
  fill(byId("who"), byteAnswer());
}
