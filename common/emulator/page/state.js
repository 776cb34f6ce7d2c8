/* state.js: what can be asked about a cluster at event n: its warps, barriers, memory and tensors. */

/* ---- Warps ---- */

/* Where the lanes of a warp are: [{mask, place, event}], the most recent first. */
function warpPlaces(model, number, n) {
  const warp = model.warps[number];
  const count = countUpTo(warp.steps, n);
  if (!count) return [];
  const from = Math.floor((count - 1) / STEPS_BETWEEN);
  const masks = new Map();
  let missing = ALL_LANES;
  for (let i = count - 1; i >= from * STEPS_BETWEEN && missing; i--) {
    const mask = (model.events[warp.steps[i]][3] & missing) >>> 0;
    if (mask) masks.set(warp.steps[i], mask);
    missing = (missing & ~mask) >>> 0;
  }
  for (let lane = 0; lane < LANES; lane++) {
    const event = warp.standing[from][lane];
    if ((missing >>> lane) & 1 && event >= 0) masks.set(event, (masks.get(event) | (1 << lane)) >>> 0);
  }
  return [...masks].sort((a, b) => b[0] - a[0])
    .map(([event, mask]) => ({ mask, place: model.recording.places[model.events[event][4]], event }));
}

function exitedLanes(model, number, n) {
  const warp = model.warps[number];
  let mask = 0;
  for (let i = 0; i < countUpTo(warp.exits, n); i++) mask |= model.events[warp.exits[i]][3];
  return mask >>> 0;
}

/* The waits of a warp that last at event n. */
function warpWaits(model, number, n) {
  return spansAt(model.warps[number].waits, n);
}

function warpName(model, number) {
  const perBlock = model.cluster.warps_per_block;
  const name = `warp ${number % perBlock}`;
  return model.blocks > 1 ? `block ${Math.floor(number / perBlock)} ${name}` : name;
}

/* "all lanes", "lane 0", "lanes 0-15, 20" */
function laneNames(mask) {
  mask >>>= 0;
  if (mask === ALL_LANES) return "all lanes";
  const runs = [];
  for (let lane = 0; lane < LANES; lane++) {
    if (!((mask >>> lane) & 1)) continue;
    let last = lane;
    while (last + 1 < LANES && (mask >>> (last + 1)) & 1) last++;
    runs.push(last > lane ? `${lane}-${last}` : `${lane}`);
    lane = last;
  }
  return (runs.length === 1 && !runs[0].includes("-") ? "lane " : "lanes ") + runs.join(", ");
}

/* ---- Barriers ---- */

/* null: not initialised yet. */
function barrierState(model, address, n) {
  const barrier = model.barriers.get(address);
  const index = barrier ? lastUpTo(barrier.changes, n) : -1;
  if (index < 0) return null;
  const [, , , why, phase, pending, expected, bytes] = model.events[index];
  return { event: index, alive: why !== "inval", phase, parity: phase & 1, pending, expected, bytes };
}

/* The barriers of a cell of memory that are alive at n: [{barrier, state}]. */
function cellBarriers(model, cell, n) {
  const found = [];
  for (let address = cell; address < cell + CELL_BYTES; address += BARRIER_BYTES) {
    const state = barrierState(model, address, n);
    if (state && state.alive) found.push({ barrier: model.barriers.get(address), state });
  }
  return found;
}

/* The event that initialised a barrier last, as of n. */
function barrierBirth(model, barrier, n) {
  for (let i = countUpTo(barrier.changes, n) - 1; i >= 0; i--)
    if (model.events[barrier.changes[i]][3] === "init") return barrier.changes[i];
  return -1;
}

/* ---- Memory ---- */

/* The last event that wrote to this cell, or -1. */
function cellWriter(model, cell, n) {
  const list = model.writes.get(cell);
  return list ? lastUpTo(list, n) : -1;
}

/* The copies that are going to write to this cell and have not landed, the last one first. */
function cellFlights(model, cell, n) {
  const list = model.flights.get(cell);
  return list ? spansAt(list, n).map((copy) => copy.number).reverse() : [];
}

/* Every event that changes a byte's cell, or the barrier that the byte belongs to. */
function eventsOfByte(model, address) {
  const writes = model.writes.get(address - (address % CELL_BYTES)) || [];
  const barrier = model.barriers.get(address - (address % BARRIER_BYTES));
  return barrier ? [...new Set([...writes, ...barrier.changes])].sort((a, b) => a - b) : writes;
}

/* {event, value} of the last write to one byte, or null. */
function byteAt(model, address, n) {
  const list = model.writes.get(address - (address % CELL_BYTES)) || [];
  for (let i = countUpTo(list, n) - 1; i >= 0; i--) {
    const event = model.events[list[i]];
    const at = address - event[3];
    if (at >= 0 && at < base64Length(event[4]))
      return { event: list[i], value: decodeBase64(event[4])[at] };
  }
  return null;
}

function variableAt(model, offset) {
  for (const variable of model.cluster.variables) {
    const end = variable.bytes ? variable.offset + variable.bytes : model.cluster.shared_bytes;
    if (offset >= variable.offset && offset < end) return variable;
  }
  return null;
}

const blockSuffix = (model, address) => (model.blocks > 1 ? ` of block ${rankOf(address)}` : "");

/* "tile+12" for an address, or its offset where there is no variable. */
function addressName(model, address) {
  const offset = offsetOf(address);
  const variable = variableAt(model, offset);
  const block = blockSuffix(model, address);
  if (!variable) return `0x${offset.toString(16)}${block}`;
  const inside = offset - variable.offset;
  return plainName(variable.variable) + (inside ? `+${inside.toLocaleString("en-US")}` : "") + block;
}

/* Variables that are barriers give them their names, full[2] in an array. Those in other memory, as in
 * extern __shared__, are numbered. */
const MOST_IN_ARRAY = 64;

function nameBarriers(model, rank) {
  let number = 0;
  const mine = [...model.barriers.values()].filter((barrier) => rankOf(barrier.address) === rank)
    .sort((a, b) => a.address - b.address);
  for (const barrier of mine) {
    const offset = offsetOf(barrier.address);
    const variable = variableAt(model, offset);
    const inside = variable ? (offset - variable.offset) / BARRIER_BYTES : 0;
    if (!variable || !variable.bytes || variable.bytes > MOST_IN_ARRAY * BARRIER_BYTES || inside % 1)
      barrier.name = `mbarrier ${number}`;
    else barrier.name = plainName(variable.variable) + (variable.bytes > BARRIER_BYTES ? `[${inside}]` : "");
    number++;
  }
}

/* The name of the barrier at an address, with its block where there are several. */
function barrierName(model, address) {
  const barrier = model.barriers.get(address);
  return barrier && barrier.name ? barrier.name + blockSuffix(model, address) : addressName(model, address);
}

/* ---- Tensors ---- */

function swizzled(span, address) {
  const bits = span === 128 ? 0x70 : span === 64 ? 0x30 : span ? 0x10 : 0;
  return address ^ ((address >> 3) & bits);
}

/* Which element of its tensor a byte of shared memory belongs to, if this copy moves it:
 * {coordinates, inside, row, chunk, byte}; null: the layout is not a plain box. */
function elementAt(copy, address) {
  const tensor = copy.tensor;
  if (!tensor || tensor.im2col || tensor.interleave) return null;
  const start = offsetOf(tensor.start);
  const logical = swizzled(tensor.swizzle, offsetOf(address)) - start;
  if (logical < 0) return null;
  const inner = tensor.box[0] * tensor.element_bytes;
  const pitch = tensor.swizzle && inner < tensor.swizzle ? tensor.swizzle : inner;
  const inRow = logical % pitch;
  if (inRow >= inner) return null;
  let row = Math.floor(logical / pitch);
  const coordinates = [tensor.at[0] + Math.floor(inRow / tensor.element_bytes)];
  const firstRow = row;
  for (let i = 1; i < tensor.box.length; i++) {
    const count = Math.ceil(tensor.box[i] / tensor.element_strides[i]);
    coordinates.push(tensor.at[i] + (row % count) * tensor.element_strides[i]);
    row = Math.floor(row / count);
  }
  if (row > 0) return null;
  const inside = coordinates.every((c, i) => c >= 0 && c < tensor.dims[i]);
  return { coordinates, inside, row: firstRow, chunk: Math.floor(inRow / CELL_BYTES),
    byte: inRow % tensor.element_bytes };
}

function tensorName(model, tensor) {
  return "T" + model.tensors.get(tensor.global);
}
