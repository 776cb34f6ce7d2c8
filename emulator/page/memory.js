/* memory.js: the map of shared memory: a row for every 128 bytes, so that a column is a bank; colours
 * say who wrote last, hatching what is in flight, dots what was never written. An mbarrier shows its phase. */

const ROW_BYTES = 128;
const CELLS_IN_ROW = ROW_BYTES / CELL_BYTES;
const ROW_HEIGHT = 15;

/* Rows that are ever written; the others are left out: [first offset of each row]. */
function memoryRows(model, rank) {
  const rows = new Set();
  for (const map of [model.writes, model.flights])
    for (const cell of map.keys())
      if (rankOf(cell) === rank) rows.add(offsetOf(cell) - (offsetOf(cell) % ROW_BYTES));
  for (const address of model.barriers.keys())
    if (rankOf(address) === rank) rows.add(offsetOf(address) - (offsetOf(address) % ROW_BYTES));
  return [...rows].sort((a, b) => a - b);
}

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

const LABEL_LETTERS = 6; // fit into a cell

/* What to write into a cell: who, or which part of the box. */
function cellLabel(model, cell, author, mode) {
  if (mode === "bank") return String((offsetOf(cell) >> 2) % 32);
  if (mode === "element" && author[0] === "c") {
    const element = elementAt(model.copies[Number(author.slice(1))], cell);
    if (element) return `${element.row}:${element.chunk}`;
  }
  if (author[0] === "c") {
    const copy = model.copies[Number(author.slice(1))];
    return copy.tensor ? tensorName(model, copy.tensor).replace(ARTICLE, "").slice(0, LABEL_LETTERS) : `c${copy.number}`;
  }
  return author[0] === "w" ? warpLabel(model, Number(author.slice(1))) : author === "poison" ? "?" : "inval";
}

function drawMemory(canvas, model, rank, rows, n, pointer, mode, colors) {
  const width = canvas.clientWidth;
  const cellWidth = (width - 52) / CELLS_IN_ROW;
  const box = canvas.closest(".scroll");
  const context = sizeCanvas(canvas, width, Math.min(box.clientHeight, Math.max(1, rows.length) * ROW_HEIGHT));
  const top = box.scrollTop;
  const first = Math.floor(top / ROW_HEIGHT);
  const last = Math.min(rows.length, Math.ceil((top + box.clientHeight) / ROW_HEIGHT));
  context.font = "10px ui-monospace, monospace";
  context.textBaseline = "middle";
  context.translate(0, -top);
  const hatching = hatchPattern(context, colors);
  for (let i = first; i < last; i++) {
    if (i && rows[i] !== rows[i - 1] + ROW_BYTES) drawGap(context, i * ROW_HEIGHT, width, colors);
    context.fillStyle = colors.faint;
    context.fillText(rowLabel(model, rows[i]), 2, (i + 0.5) * ROW_HEIGHT, 46);
    for (let k = 0; k < CELLS_IN_ROW; k++) {
      const cell = ((rank << 24) | (rows[i] + k * CELL_BYTES)) >>> 0;
      drawCell(context, model, cell, n, { x: 50 + k * cellWidth, y: i * ROW_HEIGHT, width: cellWidth }, mode, colors, hatching);
    }
  }
  drawPointer(context, rank, rows, pointer, cellWidth, colors);
  return { cellWidth, top };
}

/* The name of what begins in a row, or the row's offset. */
function rowLabel(model, row) {
  for (let offset = row; offset < row + ROW_BYTES; offset += BARRIER_BYTES) {
    const found = nameAt(model, offset);
    if (found && found.inside === 0) return found.name;
  }
  return `0x${row.toString(16)}`;
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
function drawBarrierCell(context, state, { x, y, width }, n, colors) {
  const height = ROW_HEIGHT;
  context.fillStyle = state.parity ? colors.parity1 : colors.parity0;
  context.fillRect(x, y, width - 1, height - 1);
  context.fillStyle = state.parity ? colors.onOdd : colors.onColor;
  if (width > 16) context.fillText(`φ${state.phase}`, x + 2, y + height / 2, width - 4);
  if (state.event !== n) return;
  context.strokeStyle = colors.cursor;
  context.strokeRect(x + 0.5, y + 0.5, width - 2, height - 2);
}

function drawBytes(context, model, cell, n, { x, y, width }, mode, colors, hatching) {
  const height = ROW_HEIGHT;
  const writer = cellWriter(model, cell, n);
  const flights = cellFlights(model, cell, n);
  const author = flights.length ? "c" + flights[0] : writer >= 0 ? model.events[writer][2] : null;
  if (!author) {
    context.fillStyle = colors.never;
    context.fillRect(x, y, width - 1, height - 1);
    context.fillStyle = colors.faint;
    context.fillText("·", x + width / 2 - 2, y + height / 2);
    return;
  }
  context.fillStyle = authorColor(author, model, colors);
  context.fillRect(x, y, width - 1, height - 1);
  if (flights.length) {
    context.fillStyle = hatching;
    context.fillRect(x, y, width - 1, height - 1);
  }
  if (writer === n) {
    context.strokeStyle = colors.cursor;
    context.strokeRect(x + 0.5, y + 0.5, width - 2, height - 2);
  }
  if (width > 20) {
    const label = cellLabel(model, cell, author, mode);
    if (flights.length) { // a margin in the cell's colour, to be read on stripes
      context.strokeStyle = authorColor(author, model, colors);
      context.lineWidth = 3;
      context.strokeText(label, x + 3, y + height / 2, width - 5);
      context.lineWidth = 1;
    }
    context.fillStyle = colors.onColor;
    context.fillText(label, x + 3, y + height / 2, width - 5);
  }
}

/* A dashed line where rows that are never written are left out. */
function drawGap(context, y, width, colors) {
  context.strokeStyle = colors.text;
  context.lineWidth = 1;
  context.setLineDash([3, 3]);
  context.beginPath();
  context.moveTo(0, y - 0.5);
  context.lineTo(width, y - 0.5);
  context.stroke();
  context.setLineDash([]);
}

function drawPointer(context, rank, rows, pointer, cellWidth, colors) {
  if (pointer === null || rankOf(pointer) !== rank) return;
  const offset = offsetOf(pointer);
  const row = rows.indexOf(offset - (offset % ROW_BYTES));
  if (row < 0) return;
  const inRow = (offset % ROW_BYTES) / CELL_BYTES;
  context.strokeStyle = colors.cursor;
  context.lineWidth = 2;
  context.strokeRect(50 + Math.floor(inRow) * cellWidth, row * ROW_HEIGHT, cellWidth - 1, ROW_HEIGHT - 1);
  context.fillStyle = colors.cursor;
  context.fillRect(50 + inRow * cellWidth, (row + 1) * ROW_HEIGHT - 4, Math.max(2, cellWidth / CELL_BYTES), 3);
}

/* The shared address under a point of the canvas, or null. */
function memoryAddressAt(rank, rows, geometry, x, y) {
  const row = Math.floor((y + geometry.top) / ROW_HEIGHT);
  const inRow = ((x - 50) / geometry.cellWidth) * CELL_BYTES;
  if (row < 0 || row >= rows.length || inRow < 0 || inRow >= ROW_BYTES) return null;
  return ((rank << 24) | (rows[row] + Math.floor(inRow))) >>> 0;
}
