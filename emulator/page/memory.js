/* memory.js: the map of shared memory: a row for every 128 bytes, so that a column is a bank; colours
 * say who wrote last, hatching what is in flight, dots what was never written. An mbarrier shows its phase. */

const ROW_BYTES = 128;
const CELLS_IN_ROW = ROW_BYTES / CELL_BYTES;
const ROW_HEIGHT = 15;

const BAR_HEIGHT = 2 * ROW_HEIGHT;

/* What is shown of a block, from top to bottom: [{offset, count, y, height}]: rows that are ever written; the others are
 * left out. Rows next to each other that the same copies and warps write are one bar: count is how many. */
function memoryBars(model, rank, folded) {
  const rows = new Set();
  for (const map of [model.writes, model.flights, model.barriers])
    for (const address of map.keys())
      if (rankOf(address) === rank) rows.add(offsetOf(address) - (offsetOf(address) % ROW_BYTES));
  const bars = [];
  for (const offset of [...rows].sort((a, b) => a - b)) {
    const last = bars[bars.length - 1];
    const writers = folded ? writersOfRow(model, rank, offset) : null;
    const follows = last && writers !== null && last.writers === writers && last.offset + last.count * ROW_BYTES === offset;
    if (follows && !namesInRow(model, offset).length) last.count++;
    else bars.push({ offset, count: 1, writers });
  }
  let y = 0;
  for (const bar of bars) {
    Object.assign(bar, { y, height: Math.min(bar.count * ROW_HEIGHT, BAR_HEIGHT) });
    y += bar.height;
  }
  return bars;
}

/* Who writes to the cells of a row, in order, as text; null: an mbarrier is in it. */
function writersOfRow(model, rank, offset) {
  const writers = [];
  for (let k = 0; k < CELLS_IN_ROW; k++) {
    const cell = cellAt(rank, offset, k);
    if (model.barriers.has(cell) || model.barriers.has(cell + BARRIER_BYTES)) return null;
    const authors = (model.writes.get(cell) || []).map((n) => model.events[n][2]);
    const flights = (model.flights.get(cell) || []).map((copy) => copy.number);
    writers.push(`${authors.filter((author, i) => author !== authors[i - 1])}/${flights}`);
  }
  return writers.join(";");
}

const cellAt = (rank, offset, k) => ((rank << 24) | (offset + k * CELL_BYTES)) >>> 0;
const heightOf = (bars) => (bars.length ? bars[bars.length - 1].y + bars[bars.length - 1].height : 0);
const barOf = (bars, offset) => bars.find((bar) => offset >= bar.offset && offset < bar.offset + bar.count * ROW_BYTES);

const AUTHOR_COLORS = 8;

/* Copies of one tensor share a colour, and so does each warp. */
function authorColor(author, model, colors) {
  if (author[0] === "w") return colors.authors[(Number(author.slice(1)) * 3 + 1) % AUTHOR_COLORS];
  if (author[0] !== "c") return colors.other;
  const copy = model.copies[Number(author.slice(1))];
  return copy.tensor ? colors.authors[(tensorNumber(model, copy.tensor) * 2) % AUTHOR_COLORS] : colors.other;
}

/* w1; in a cluster b2w1. */
function warpLabel(model, number) {
  const perBlock = model.cluster.warps_per_block;
  return model.blocks > 1 ? `b${Math.floor(number / perBlock)}w${number % perBlock}` : `w${number}`;
}

/* What to write into a cell: who, or which part of the box. */
function cellLabel(model, cell, author, mode) {
  if (mode === "bank") return String((offsetOf(cell) >> 2) % 32);
  const copy = author[0] === "c" ? model.copies[Number(author.slice(1))] : null;
  const element = mode === "element" && copy ? elementAt(copy, cell) : null;
  if (element) return `${element.row}:${element.chunk}`;
  if (copy) return copy.tensor ? tensorName(model, copy.tensor).replace(ARTICLE, "") : copy.kind;
  return author[0] === "w" ? warpLabel(model, Number(author.slice(1))) : author === "poison" ? "?" : "inval";
}

function drawMemory(canvas, model, rank, bars, { n, pointer, picture }, mode, colors) {
  const width = canvas.clientWidth;
  const box = canvas.closest(".scroll");
  const context = sizeCanvas(canvas, width, Math.min(box.clientHeight, Math.max(ROW_HEIGHT, heightOf(bars))));
  const top = box.scrollTop;
  context.font = "10px ui-monospace, monospace";
  context.textBaseline = "middle";
  bars.nameWidth = bars.nameWidth || Math.max(0, ...bars.map(({ offset }) => context.measureText(rowLabel(model, offset)).width));
  const nameWidth = Math.min(bars.nameWidth, 0.28 * width);
  const left = Math.ceil(nameWidth) + 6 + (picture ? LETTERS_WIDTH : 0);
  const cellWidth = (width - left - 2) / CELLS_IN_ROW;
  context.translate(0, -top);
  const hatching = hatchPattern(context, colors);
  for (const [i, bar] of bars.entries()) {
    if (bar.y + bar.height < top || bar.y > top + box.clientHeight) continue;
    if (i && bar.offset !== bars[i - 1].offset + bars[i - 1].count * ROW_BYTES) // rows that are never written are left out
      drawLine(context, [0, bar.y - 0.5], [width, bar.y - 0.5], { color: colors.text, width: 1, dash: [3, 3] });
    writeText(context, colors.faint, shortened(context, rowLabel(model, bar.offset), nameWidth), 2, bar.y + bar.height / 2);
    const runs = runsOfBar(model, rank, bar, n);
    const whole = bar.count > 1 && runs.every((run) => run.length === 1 && run[0].state === runs[0][0].state);
    for (const [k, run] of whole ? [[0, runs[0]]] : runs.entries())
      for (const { first, count } of run) {
        const at = { x: left + k * cellWidth, y: bar.y + (first / bar.count) * bar.height, height: (count / bar.count) * bar.height,
          width: whole ? CELLS_IN_ROW * cellWidth : cellWidth, rows: whole ? bar.count : 0 };
        drawCell(context, model, cellAt(rank, bar.offset + first * ROW_BYTES, k), n, at, mode, colors, hatching);
      }
  }
  const geometry = { cellWidth, top, left };
  drawPointer(context, rank, bars, pointer, geometry, colors);
  if (picture) drawSides(context, model, rank, bars, picture, geometry, colors);
  return geometry;
}

/* For each column of a bar, the rows that are in the same state: [{first, count, state}]. */
function runsOfBar(model, rank, bar, n) {
  const stateOf = (row, k) => {
    const cell = cellAt(rank, bar.offset + row * ROW_BYTES, k);
    const writer = cellWriter(model, cell, n);
    return `${cellFlights(model, cell, n)}/${writer < 0 ? "" : model.events[writer][2]}`;
  };
  return Array.from({ length: CELLS_IN_ROW }, (_, k) => {
    const runs = [];
    for (let row = 0; row < bar.count; row++) {
      const state = stateOf(row, k);
      const last = runs[runs.length - 1];
      if (last && last.state === state) last.count++;
      else runs.push({ first: row, count: 1, state });
      /* Rows that are written in turn: where the last is as the first, so are those between. */
      if (!row && bar.count > 1 && stateOf(bar.count - 1, k) === state) return [{ first: 0, count: bar.count, state }];
    }
    return runs;
  });
}

/* The names of what begins in a row. */
function namesInRow(model, row) {
  const names = [];
  for (let offset = row; offset < row + ROW_BYTES; offset += BARRIER_BYTES) {
    const found = nameAt(model, offset);
    if (found && found.inside === 0) names.push(found.name);
  }
  return names;
}

/* "box[1]", "box[1]+1,024", "tile[0] to [1]"; of several arrays, "full, empty". */
function rowLabel(model, row) {
  const names = namesInRow(model, row);
  const found = (variableAt(model, row) || {}).bytes && nameAt(model, row);
  if (names.length < 2) return names[0] || (found ? `${found.name}+${found.inside.toLocaleString("en-US")}` : `0x${row.toString(16)}`);
  const arrays = [...new Set(names.map((name) => name.replace(/\[.*/, "")))];
  return arrays.length > 1 ? arrays.join(", ") : `${names[0]} to ${names.pop().slice(arrays[0].length)}`;
}

function drawLine(context, [x, y], [toX, toY], { color, width, dash }) {
  context.strokeStyle = color;
  context.lineWidth = width;
  context.setLineDash(dash);
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(toX, toY);
  context.stroke();
  context.setLineDash([]);
}

function fillBox(context, color, ...box) {
  context.fillStyle = color;
  context.fillRect(...box);
}

function writeText(context, color, ...where) {
  context.fillStyle = color;
  context.fillText(...where);
}

/* What does not fit ends with an ellipsis: narrow letters cannot be read. */
function shortened(context, name, width) {
  if (context.measureText(name).width <= width) return name;
  let count = name.length - 1;
  while (count > 1 && context.measureText(`${name.slice(0, count)}…`).width > width) count--;
  return `${name.slice(0, count)}…`;
}

/* Stripes, to fill with. */
function hatchPattern(context, colors) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const lines = tile.getContext("2d");
  lines.strokeStyle = colors.hatch;
  lines.beginPath();
  for (const at of [-6, 0, 6]) {
    lines.moveTo(at, 6);
    lines.lineTo(at + 6, 0);
  }
  lines.stroke();
  return context.createPattern(tile, "repeat");
}

function drawCell(context, model, cell, n, at, mode, colors, hatching) {
  drawBytes(context, model, cell, n, at, mode, colors, hatching);
  const half = at.width / 2;
  for (const { barrier, state } of cellBarriers(model, cell, n))
    drawBarrierCell(context, state, { ...at, x: at.x + (barrier.address > cell ? half : 0), width: half }, n, colors);
}

/* A live barrier: its phase, coloured by the parity. */
function drawBarrierCell(context, state, { x, y, width, height }, n, colors) {
  fillBox(context, state.parity ? colors.parity1 : colors.parity0, x, y, width - 1, height - 1);
  const color = state.parity ? colors.onOdd : colors.onColor;
  if (width > 12) writeText(context, color, `φ${state.phase}`, x + 1, y + height / 2, width - 3);
  if (state.event !== n) return;
  context.strokeStyle = colors.cursor;
  context.strokeRect(x + 0.5, y + 0.5, width - 2, height - 2);
}

function drawBytes(context, model, cell, n, { x, y, width, height, rows }, mode, colors, hatching) {
  const writer = cellWriter(model, cell, n);
  const flights = cellFlights(model, cell, n);
  const author = flights.length ? "c" + flights[0] : writer >= 0 ? model.events[writer][2] : null;
  if (!author) {
    fillBox(context, colors.never, x, y, width - 1, height - 1);
    writeText(context, colors.faint, "·", x + width / 2 - 2, y + height / 2);
    return;
  }
  fillBox(context, authorColor(author, model, colors), x, y, width - 1, height - 1);
  if (flights.length) fillBox(context, hatching, x, y, width - 1, height - 1);
  if (writer === n) {
    context.strokeStyle = colors.cursor;
    context.strokeRect(x + 0.5, y + 0.5, width - 2, height - 2);
  }
  if (width > 20 && height > 9) {
    const label = shortened(context, cellLabel(model, cell, author, mode) + (rows ? `, ${rows} x ${ROW_BYTES} bytes` : ""), width - 5);
    if (flights.length) { // a margin in the cell's colour, to be read on stripes
      context.strokeStyle = authorColor(author, model, colors);
      context.lineWidth = 3;
      context.strokeText(label, x + 3, y + height / 2);
      context.lineWidth = 1;
    }
    writeText(context, colors.onColor, label, x + 3, y + height / 2);
  }
}

function drawPointer(context, rank, bars, pointer, { cellWidth, left }, colors) {
  if (pointer === null || rankOf(pointer) !== rank) return;
  const bar = barOf(bars, offsetOf(pointer));
  if (!bar) return;
  const inRow = (offsetOf(pointer) % ROW_BYTES) / CELL_BYTES;
  const height = Math.max(4, bar.height / bar.count);
  const y = rowOf(bar, offsetOf(pointer));
  context.strokeStyle = colors.cursor;
  context.lineWidth = 2;
  context.strokeRect(left + Math.floor(inRow) * cellWidth, y, cellWidth - 1, height - 1);
  fillBox(context, colors.cursor, left + inRow * cellWidth, y + height - 4, Math.max(2, cellWidth / CELL_BYTES), 3);
}

const rowOf = (bar, offset) => bar.y + (Math.floor((offset - bar.offset) / ROW_BYTES) / bar.count) * bar.height;

const LETTERS_WIDTH = 28; // ① and ②, behind the names

/* The bytes that the two sides of a report use, each in a frame with its number. */
function drawSides(context, model, rank, bars, { report }, { cellWidth, left }, colors) {
  context.lineWidth = 2;
  context.font = "700 11px system-ui, sans-serif";
  for (const side of sidesOf(report).filter(({ event }) => event >= 0)) {
    const letter = letterOf(report, side);
    context.strokeStyle = context.fillStyle = colors.text;
    context.setLineDash(letter === "①" ? [] : [4, 3]);
    for (const [address, bytes] of rangesOf(model.events[side.event])) {
      const [first, last] = [address, address + bytes - 1].map((each) => ({ bar: barOf(bars, offsetOf(each)), offset: offsetOf(each) }));
      if (rankOf(address) !== rank || !first.bar || !last.bar) continue;
      const column = bytes < ROW_BYTES ? (first.offset % ROW_BYTES) / CELL_BYTES : 0;
      const width = Math.min(CELLS_IN_ROW - column, bytes / CELL_BYTES) * cellWidth;
      const y = rowOf(first.bar, first.offset);
      const inset = letter === "①" ? 1 : 3;
      const height = Math.max(6, rowOf(last.bar, last.offset) - y + last.bar.height / last.bar.count);
      context.strokeRect(left + column * cellWidth + inset, y + inset, Math.max(4, width - 2 * inset), Math.max(2, height - 2 * inset));
      context.fillText(letter, left - (letter === "①" ? 26 : 13), y + height / 2);
    }
  }
  context.setLineDash([]);
}

/* The shared address under a point of the canvas, or null. */
function memoryAddressAt(rank, bars, geometry, x, y) {
  const at = y + geometry.top;
  const bar = bars.find((each) => at >= each.y && at < each.y + each.height);
  const inRow = ((x - geometry.left) / geometry.cellWidth) * CELL_BYTES;
  if (!bar || inRow < 0 || inRow >= ROW_BYTES) return null;
  const row = Math.floor(((at - bar.y) / bar.height) * bar.count);
  return ((rank << 24) | (bar.offset + row * ROW_BYTES + Math.floor(inRow))) >>> 0;
}
