/* state.js: what can be asked about a cluster at event n: its warps, barriers and memory. */

/* ---- Warps ---- */

/* Where the lanes of a warp are: [{mask, place, event}], the most recent first. */
function warpPlaces(model, number, n) {
  const warp = model.warps[number];
  const count = countUpTo(warp.stands, n);
  if (!count) return [];
  const from = Math.floor((count - 1) / STEPS_BETWEEN);
  const masks = new Map();
  let missing = ALL_LANES;
  for (let i = count - 1; i >= from * STEPS_BETWEEN && missing; i--) {
    const mask = (model.events[warp.stands[i]][3] & missing) >>> 0;
    if (mask) masks.set(warp.stands[i], mask);
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

/* The wait that covers a copy's group, for its completion or (1) only for its source to be read. */
function awaitedAt(model, [, , , number, mask, , kind], begin, isRead) {
  const group = kind === "cp.async" ? kind : "bulk";
  const own = model.warps[number].events.filter((k) => k > begin && model.events[k][3] & mask && model.events[k][5] === group);
  const commits = own.filter((k) => model.events[k][0] === "commit");
  return own.find((k) => model.events[k][0] === "awaited" && model.events[k][7] === isRead &&
    countUpTo(commits, k) > model.events[k][6]);
}

function warpName(model, number) {
  const perBlock = model.cluster.warps_per_block;
  const name = `warp ${number % perBlock}`;
  return model.blocks > 1 ? `block ${Math.floor(number / perBlock)} ${name}` : name;
}

/* "all lanes", "lane 0", "lanes 0-15, 20" */
function laneNames(mask) {
  if (mask >>> 0 === ALL_LANES) return "all lanes";
  const lanes = Array.from({ length: LANES }, (_, lane) => lane).filter((lane) => (mask >>> lane) & 1);
  return (lanes.length === 1 ? "lane " : "lanes ") + numberRuns(lanes, ", ");
}

/* "0-3,8" */
function numberRuns(numbers, separator = ",") {
  const runs = [];
  for (const number of numbers) {
    const last = runs[runs.length - 1];
    if (last && last[1] === number - 1) last[1] = number;
    else runs.push([number, number]);
  }
  return runs.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(separator);
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
  return model.variables.find((variable) => {
    const end = variable.bytes ? variable.offset + variable.bytes : model.cluster.shared_bytes;
    return offset >= variable.offset && offset < end;
  });
}

/* The name of what lies at an offset, and where in it that is: {name: "a[2]", inside: 12}; null: it has none. */
function nameAt(model, offset) {
  const variable = variableAt(model, offset);
  if (!variable) return null;
  let inside = offset - variable.offset;
  if (!variable.indices) return { name: variable.variable, inside };
  let element = Math.floor(inside / variable.stride);
  inside %= variable.stride;
  let name = "";
  for (const count of [...variable.indices].reverse()) {
    name = `[${element % count}]${name}`;
    element = Math.floor(element / count);
  }
  return { name: variable.member + name, inside };
}

const blockSuffix = (model, address) => (model.blocks > 1 ? ` of block ${rankOf(address)}` : "");

/* "tile[3]" for an address, "tile + 12 bytes" where its elements are of no known size, or its offset where there is no variable. */
const addressName = (model, address) => placeName(model, address) + blockSuffix(model, address);

function placeName(model, address) {
  const offset = offsetOf(address);
  const { name, inside } = nameAt(model, offset) || {};
  if (!name) return `0x${offset.toString(16)}`;
  const size = elementBytes(model.recording, name);
  if (!inside) return name;
  return inside % size === 0 ? `${name}[${(inside / size).toLocaleString("en-US")}]` : `${name} + ${plural(inside, "byte")}`;
}

const TYPE_BYTES = { char: 1, short: 2, half: 2, bfloat16: 2, int: 4, unsigned: 4, float: 4, double: 8 };

/* Of a shared array of one dimension, by its declarations in the source; NaN: it is another thing, or they differ. */
function elementBytes(recording, name) {
  if (!recording.elementBytes) recording.elementBytes = new Map();
  if (!recording.elementBytes.has(name)) {
    const declared = new RegExp(`__shared__[^;]*?(\\w+) ${name}\\[[^\\]]*\\](?!\\[)`);
    const types = linesOfFile(recording, kernelFile(recording)).flatMap((line) => (declared.exec(line) || []).slice(1));
    const bytes = types.map((type) => TYPE_BYTES[type.replace(/^__(nv_)?/, "")] || Number((/^u?int(\d+)_t$/.exec(type) || [])[1]) / 8);
    recording.elementBytes.set(name, new Set(bytes).size === 1 ? bytes[0] : NaN);
  }
  return recording.elementBytes.get(name);
}

/* Variables that are barriers give them their names, full[2] in an array. Those in other memory, as in
 * extern __shared__ without a struct, are numbered. */
const MOST_IN_ARRAY = 64;

function nameBarriers(model, rank) {
  const mine = [...model.barriers.values()].filter((barrier) => rankOf(barrier.address) === rank)
    .sort((a, b) => a.address - b.address);
  mine.forEach((barrier, number) => {
    const offset = offsetOf(barrier.address);
    const { bytes = 0, indices } = variableAt(model, offset) || {};
    const { name, inside } = nameAt(model, offset) || {};
    if (!bytes || (!indices && bytes > MOST_IN_ARRAY * BARRIER_BYTES) || inside % BARRIER_BYTES) barrier.name = `mbarrier ${number}`;
    else barrier.name = name + (!indices && bytes > BARRIER_BYTES ? `[${inside / BARRIER_BYTES}]` : "");
  });
}

/* The name of the barrier at an address, with its block where there are several. */
function barrierName(model, address) {
  const barrier = model.barriers.get(address);
  return barrier && barrier.name ? barrier.name + blockSuffix(model, address) : addressName(model, address);
}
