/* memory_panel.js: the map of shared memory on the page, and the pointer in it. */

function showMemory() {
  const { model, view } = app;
  const folded = view.label === "author";
  if (app.barsOf !== `${view.block} ${folded}`) {
    app.bars = memoryBars(model, view.block, folded);
    app.barsOf = `${view.block} ${folded}`;
    byId("memory-height").style.height = `${heightOf(app.bars)}px`;
    byId("block").replaceChildren(...model.cluster.blocks.map((index, rank) => new Option(`block (${index.join(",")})`, rank)));
  }
  byId("block").value = view.block;
  byId("label").value = view.label;
  byId("no-memory").hidden = app.bars.length > 0;
  showTensors();
  followWrites();
  app.geometry = drawMemory(byId("memory"), model, view.block, app.bars,
    { n: view.event, pointer: view.pointer, picture: pictureShown() }, view.label, colors);
  byId("memory").setAttribute("aria-label", "Map of shared memory. " + textOf(byteAnswer()));
}

/* What the labels stand for: a line for each tensor, with its colour. */
function showTensors() {
  const { model } = app;
  if (app.tensorsOf === model && app.tensorColors === colors) return;
  app.tensorsOf = model;
  app.tensorColors = colors;
  const first = new Map();
  for (const copy of model.copies)
    if (copy.tensor && !first.has(tensorName(model, copy.tensor))) first.set(tensorName(model, copy.tensor), copy);
  byId("tensors").replaceChildren(...[...first.values()].map((copy) => {
    const swatch = tag("i", "");
    swatch.style.background = authorColor("c" + copy.number, model, colors);
    return tag("li", "", swatch, ` ${tensorText(copy.tensor, tensorName(model, copy.tensor))}`);
  }));
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
  const bar = barOf(app.bars, offsetOf(address));
  if (bar && (bar.y < box.scrollTop || bar.y > box.scrollTop + box.clientHeight - BAR_HEIGHT))
    box.scrollTop = Math.max(0, bar.y - box.clientHeight / 3);
}

function byteAnswer() {
  if (app.view.pointer === null) return ["Point at a byte, or press m and the arrow keys."];
  return explainByte(app.model, app.view.pointer, app.view.event);
}

const textOf = (parts) => parts.map((part) => (typeof part === "string" ? part : part.text)).join("");

function movePointer(delta) {
  if (!app.bars.length) return;
  let { pointer } = app.view;
  if (pointer === null || rankOf(pointer) !== app.view.block) pointer = cellAt(app.view.block, app.bars[0].offset, 0);
  else {
    const rows = app.bars.flatMap(({ offset, count }) => Array.from({ length: count }, (_, i) => offset + i * ROW_BYTES));
    const row = rows.indexOf(offsetOf(pointer) - (offsetOf(pointer) % ROW_BYTES));
    const linear = Math.max(0, Math.min(rows.length * ROW_BYTES - 1, row * ROW_BYTES + (offsetOf(pointer) % ROW_BYTES) + delta));
    pointer = ((app.view.block << 24) | (rows[Math.floor(linear / ROW_BYTES)] + (linear % ROW_BYTES))) >>> 0;
  }
  app.view.pointer = pointer;
  scrollToAddress(pointer);
}
