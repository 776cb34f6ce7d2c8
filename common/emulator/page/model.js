/* model.js: everything that can be asked about one cluster, as a function of an event's number.
 *
 * Nothing is played forwards or undone: each warp, barrier, copy and 16-byte cell of memory has the
 * sorted list of the events that concern it, and the state at event n is found by binary search. So
 * the state at n does not depend on how the reader got there. */

const CELL_BYTES = 16;
const LANES = 32;
const ALL_LANES = 0xffffffff;

/* Where each kind of event keeps its warp and its place. */
const WARP_AT = { step: 2, wait: 2, woke: 2, exit: 2, fence: 2, commit: 2, awaited: 2, bar: 2,
  cluster_barrier: 2, shared: 2, copy: 3, mbarrier: 8, wgmma: 3, finding: 2, fault: 2 };
const PLACE_AT = { step: 4, wait: 4, woke: 4, exit: 4, fence: 4, commit: 4, awaited: 4, bar: 4,
  cluster_barrier: 4, shared: 4, copy: 5, mbarrier: 10, wgmma: 4, finding: 4, fault: 4 };

/* How many entries of a sorted list are at most n. */
function countUpTo(list, n) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] <= n) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* The last entry that is at most n, or -1. */
function lastUpTo(list, n) {
  const count = countUpTo(list, n);
  return count ? list[count - 1] : -1;
}

/* The first entry after n, or -1. */
function firstAfter(list, n) {
  const count = countUpTo(list, n);
  return count < list.length ? list[count] : -1;
}

function buildModel(recording, cluster) {
  const events = clusterEvents(cluster);
  const blocks = cluster.blocks.length;
  const model = {
    recording, cluster, events, blocks,
    launch: recording.launches[cluster.launch],
    warpCount: blocks * cluster.warps_per_block,
    warps: [], barriers: new Map(), copies: [], wgmmas: [], findings: [],
    cellsPerBlock: Math.ceil(cluster.shared_bytes / CELL_BYTES),
    writes: new Map(), flights: new Map(), arrivals: [], tensors: new Map(),
  };
  for (let w = 0; w < model.warpCount; w++)
    model.warps.push({ number: w, events: [], steps: [], waits: [], exits: [] });
  events.forEach((event, n) => indexEvent(model, event, n));
  for (const list of model.flights.values()) indexFlights(list);
  return model;
}

function indexEvent(model, event, n) {
  const kind = event[0];
  const warp = model.warps[warpOf(model, event)];
  if (warp) warp.events.push(n);
  switch (kind) {
    case "step":
      warp.steps.push(n);
      break;
    case "wait":
      warp.waits.push({ begin: n, end: Infinity, mask: event[3] });
      break;
    case "woke":
      for (const wait of warp.waits)
        if (wait.end === Infinity && wait.mask & event[3]) wait.end = n;
      break;
    case "exit":
      warp.exits.push(n);
      break;
    case "mbarrier":
      barrierOf(model, event[2]).changes.push(n);
      break;
    case "copy":
      indexCopy(model, event, n);
      break;
    case "source":
      model.copies[event[2]].source = n;
      break;
    case "landed":
      model.copies[event[2]].landed = n;
      break;
    case "wgmma":
      model.wgmmas[event[2]] = { number: event[2], warp: event[3], issued: n, done: Infinity };
      break;
    case "wgmma_done":
      model.wgmmas[event[2]].done = n;
      break;
    case "bytes":
      for (const cell of cellsOf(event[3], base64Length(event[4]))) listOf(model.writes, cell).push(n);
      break;
    case "bar":
    case "cluster_barrier":
      model.arrivals.push(n);
      break;
    case "finding":
    case "fault":
      model.findings.push(n);
      break;
  }
}

function indexCopy(model, event, n) {
  const [, , number, warp, lanes, , kind, bytes, barrier, ranks, reads, writes, tensor] = event;
  const copy = { number, warp, lanes, kind, bytes, barrier, ranks, reads, writes, tensor,
    issued: n, source: Infinity, landed: Infinity };
  model.copies[number] = copy;
  for (const [address, length] of writes)
    for (const cell of cellsOf(address, length)) listOf(model.flights, cell).push(copy);
  if (tensor && !model.tensors.has(tensor.global)) model.tensors.set(tensor.global, model.tensors.size);
  if (barrier)
    for (let rank = 0; rank < model.blocks; rank++)
      if ((ranks >>> rank) & 1) barrierOf(model, (rank << 24) | offsetOf(barrier)).copies.push(number);
}

/* Beside each copy to a cell: the moment by which it and all before it have landed, so that a search
 * backwards knows where to stop. */
function indexFlights(list) {
  let landed = 0;
  list.landedBy = list.map((copy) => (landed = Math.max(landed, copy.landed)));
  list.issued = list.map((copy) => copy.issued);
}

function listOf(map, key) {
  let list = map.get(key);
  if (!list) map.set(key, (list = []));
  return list;
}

/* Cells are named by the shared address at which they begin. */
function cellsOf(address, bytes) {
  const cells = [];
  for (let cell = address - (address % CELL_BYTES); cell < address + bytes; cell += CELL_BYTES)
    cells.push(cell);
  return cells;
}

function barrierOf(model, address) {
  let barrier = model.barriers.get(address);
  if (!barrier) model.barriers.set(address, (barrier = { address, changes: [], copies: [] }));
  return barrier;
}

/* The warp that an event belongs to, -1: none. */
function warpOf(model, event) {
  if (event[0] in WARP_AT) return event[WARP_AT[event[0]]];
  if (event[0] === "bytes" && event[2][0] === "w") return Number(event[2].slice(1));
  if (event[0] === "source" || event[0] === "landed") return model.copies[event[2]].warp;
  if (event[0] === "wgmma_done") return model.wgmmas[event[2]].warp;
  return -1;
}

function placeOf(model, event) {
  const number = event[0] in PLACE_AT ? event[PLACE_AT[event[0]]] : -1;
  return number >= 0 ? model.recording.places[number] : null;
}

/* ---- Warps ---- */

/* Where the lanes of a warp stand: [{mask, place, event}], the most recent first. */
function warpPlaces(model, number, n) {
  const warp = model.warps[number];
  const groups = [];
  let missing = ALL_LANES;
  for (let i = countUpTo(warp.steps, n) - 1; i >= 0 && missing; i--) {
    const event = model.events[warp.steps[i]];
    const mask = (event[3] & missing) >>> 0;
    if (!mask) continue;
    groups.push({ mask, place: model.recording.places[event[4]], event: warp.steps[i] });
    missing = (missing & ~mask) >>> 0;
  }
  return groups;
}

function exitedLanes(model, number, n) {
  const warp = model.warps[number];
  let mask = 0;
  for (let i = 0; i < countUpTo(warp.exits, n); i++) mask |= model.events[warp.exits[i]][3];
  return mask >>> 0;
}

/* The waits of a warp that last at event n. */
function warpWaits(model, number, n) {
  return model.warps[number].waits.filter((wait) => wait.begin <= n && wait.end > n);
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

/* ---- Memory ---- */

/* The last event that wrote to this cell, or -1. */
function cellWriter(model, cell, n) {
  const list = model.writes.get(cell);
  return list ? lastUpTo(list, n) : -1;
}

/* The copies that are going to write to this cell and have not landed. */
function cellFlights(model, cell, n) {
  const list = model.flights.get(cell);
  const flights = [];
  if (!list) return flights;
  for (let i = countUpTo(list.issued, n) - 1; i >= 0 && list.landedBy[i] > n; i--)
    if (list[i].landed > n) flights.push(list[i].number);
  return flights;
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

/* The whole shared memory of a block, as bytes. */
function memoryAt(model, rank, n) {
  const memory = new Uint8Array(model.cluster.shared_bytes).fill(model.cluster.initial);
  for (let i = 0; i <= n && i < model.events.length; i++) {
    const event = model.events[i];
    if (event[0] === "bytes" && rankOf(event[3]) === rank)
      memory.set(decodeBase64(event[4]), offsetOf(event[3]));
  }
  return memory;
}

function variableAt(model, offset) {
  for (const variable of model.cluster.variables) {
    const end = variable.bytes ? variable.offset + variable.bytes : model.cluster.shared_bytes;
    if (offset >= variable.offset && offset < end) return variable;
  }
  return null;
}

/* "tile[12]" for an offset, or its hexadecimal number. */
function addressName(model, address) {
  const offset = offsetOf(address);
  const variable = variableAt(model, offset);
  const block = model.blocks > 1 ? ` of block ${rankOf(address)}` : "";
  if (!variable) return `0x${offset.toString(16)}${block}`;
  const inside = offset - variable.offset;
  return plainName(variable.variable) + (inside ? `+${inside}` : "") + block;
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
