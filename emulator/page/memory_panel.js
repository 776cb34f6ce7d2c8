/* memory_panel.js: the map of shared memory on the page, and the pointer in it. */

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
  showTensors();
  followWrites();
  app.geometry = drawMemory(byId("memory"), model, view.block, app.rows, view.event, view.pointer, view.label, colors);
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
    const item = document.createElement("li");
    const swatch = document.createElement("i");
    swatch.style.background = authorColor("c" + copy.number, model, colors);
    item.append(swatch, ` ${tensorText(copy.tensor, tensorName(model, copy.tensor))}`);
    return item;
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
