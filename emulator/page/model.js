/* model.js: the events of one cluster, indexed by what they concern.
 *
 * Nothing is played forwards or undone: each warp, barrier, copy and 16-byte cell of memory has the
 * sorted list of the events that concern it, and the state at event n is found by binary search
 * (state.js). So the state at n does not depend on how the reader got there. */

const CELL_BYTES = 16;
const BARRIER_BYTES = 8;
const LANES = 32;
const ALL_LANES = 0xffffffff;

/* Where each kind of event keeps its warp and its place. */
const WARP_AT = { step: 2, wait: 2, woke: 2, observed: 2, exit: 2, fence: 2, commit: 2, awaited: 2, bar: 2,
  cluster_barrier: 2, shared: 2, copy: 3, mbarrier: 8, wgmma: 3, finding: 2, fault: 2 };
const PLACE_AT = { step: 4, wait: 4, woke: 4, observed: 4, exit: 4, fence: 4, commit: 4, awaited: 4, bar: 4,
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

/* A cluster with a finding may have its events in two orders, each with a model, whose `other` is the other one. The caller gets that
 * of the clock; clock: it, when the one of the run's order is built. */
function buildModel(recording, cluster, clock = null) {
  const events = clusterEvents(recording, cluster, Boolean(clock));
  const members = recording.members.filter((member) => member.launch === cluster.launch);
  const blocks = cluster.blocks.length;
  const model = {
    recording, cluster, events, blocks, inRun: Boolean(clock), other: clock,
    variables: [...members, ...cluster.variables], // what is more precise comes first
    warpCount: blocks * cluster.warps_per_block,
    warps: [], barriers: new Map(), copies: [], wgmmas: [], findings: [],
    writes: new Map(), flights: new Map(), arrivals: [], tensors: new Map(),
  };
  for (let w = 0; w < model.warpCount; w++)
    model.warps.push({ number: w, events: [], steps: [], stands: [], standing: [], waits: [], open: [], silent: [], exits: [],
      wgmmas: [] /* not committed */, groups: [] /* of wgmma, not awaited */ });
  events.forEach((event, n) => indexEvent(model, event, n));
  for (const warp of model.warps) {
    indexSpans(warp.waits);
    if (recording.header.clock && !clock) addGaps(model, warp);
    indexSpans(warp.silent);
  }
  for (const list of model.flights.values()) indexSpans(list);
  for (const rank of Array(blocks).keys()) nameBarriers(model, rank);
  if (cluster.run && !clock) model.other = buildModel(recording, cluster, model);
  return model;
}

/* What each kind of event adds. */
const INDEX = {
  step(model, event, n, warp) {
    warp.steps.push(n);
    indexPlace(event, n, warp);
  },
  wait(model, event, n, warp) {
    indexPlace(event, n, warp); // the line that waits is told as a step only when the warp goes on
    const wait = { begin: n, end: Infinity, mask: event[3], at: n, on: event[5] };
    warp.waits.push(wait);
    warp.open.push(wait);
  },
  woke(model, event, n, warp) {
    for (const wait of warp.open) if (wait.mask & event[3]) wait.end = n;
    warp.open = warp.open.filter((wait) => wait.end === Infinity);
  },
  exit: (model, event, n, warp) => warp.exits.push(n),
  mbarrier: (model, event, n) => barrierOf(model, event[2]).changes.push(n),
  copy: indexCopy,
  landed: (model, event, n) => (model.copies[event[2]].end = n),
  wgmma(model, event, n, warp) {
    model.wgmmas[event[2]] = { number: event[2], warp: event[3], begin: n, end: Infinity, awaited: Infinity };
    warp.wgmmas.push(model.wgmmas[event[2]]);
  },
  commit: (model, event, n, warp) => event[5] === "wgmma" && warp.groups.push(warp.wgmmas.splice(0)),
  awaited(model, event, n, warp) {
    if (event[5] !== "wgmma") return;
    for (const wgmma of warp.groups.splice(0, Math.max(0, warp.groups.length - event[6])).flat()) wgmma.awaited = n;
  },
  wgmma_done: (model, event, n) => (model.wgmmas[event[2]].end = n),
  bytes: (model, event, n) => cellsOf(event[3], base64Length(event[4])).forEach((cell) => listOf(model.writes, cell).push(n)),
  bar: (model, event, n) => model.arrivals.push(n),
  cluster_barrier: (model, event, n) => model.arrivals.push(n),
  finding: (model, event, n) => model.findings.push(n),
  fault: (model, event, n) => model.findings.push(n),
};

function indexEvent(model, event, n) {
  const warp = model.warps[warpOf(model, event)];
  if (warp) warp.events.push(n);
  if (event[0] in INDEX) INDEX[event[0]](model, event, n, warp);
}

function indexCopy(model, event, n) {
  const [, , number, warp, , , kind, , barrier, ranks, reads, writes, tensor] = event;
  const copy = { number, warp, kind, barrier, reads, writes, tensor, begin: n, end: Infinity };
  model.copies[number] = copy;
  for (const [address, length] of writes)
    for (const cell of cellsOf(address, length)) listOf(model.flights, cell).push(copy);
  if (tensor) nameTensor(model, tensor);
  if (barrier)
    for (let rank = 0; rank < model.blocks; rank++)
      if ((ranks >>> rank) & 1) barrierOf(model, ((rank << 24) | offsetOf(barrier)) >>> 0).copies.push(number);
}

/* What a wait is for may have been there in the run and not yet on the clock: then the warp takes long from one event to its next, and
 * no wait was recorded. Where it does not wait, it computes, or needs values or its turn to issue: nothing says which.
 * at: the event of the instruction that waits. */
const LEAST_GAP = 60;
const SYNC = /^(@!?%\w+ )?(bar(rier)?(\.cta)?\.(sync|red)|barrier\.cluster\.wait)/;

function addGaps(model, warp) {
  const { events } = model;
  const recorded = warp.waits.slice();
  const own = warp.events.filter((n) => events[n][0] in PLACE_AT && !model.findings.includes(n));
  for (const [i, end] of own.slice(1).entries()) {
    const begin = own[i];
    if (events[end][1] - events[begin][1] < LEAST_GAP || spansAt(warp.waits, begin).length) continue;
    const [from, to] = [events[begin], events[end]];
    const [, , , mask, , address, phase] = to;
    const isAtIt = placeOf(model, from).ptx_line === placeOf(model, to).ptx_line; // else it may compute first
    if (to[0] === "awaited" && isAtIt) recorded.push({ begin, end, mask, at: end, on: [] });
    else if (to[0] === "observed" && isAtIt) recorded.push({ begin, end, mask, at: end, on: ["mbarrier", address, phase & 1] });
    else if (["bar", "step"].includes(from[0]) && SYNC.test(placeOf(model, from).text))
      recorded.push({ begin, end, mask: from[3], at: begin, on: [] });
    else warp.silent.push({ begin, end });
  }
  warp.waits = indexSpans(recorded.sort((a, b) => a.begin - b.begin));
}

/* The positions of a warp's lanes are noted every STEPS_BETWEEN steps and waits: a lane may have been at its line
 * for 100,000 steps of the others. */
const STEPS_BETWEEN = 64;

function indexPlace(event, n, warp) {
  if (!warp.lanes) warp.lanes = new Int32Array(LANES).fill(-1);
  if (warp.stands.length % STEPS_BETWEEN === 0) warp.standing.push(warp.lanes.slice());
  warp.stands.push(n);
  for (let lane = 0; lane < LANES; lane++) if ((event[3] >>> lane) & 1) warp.lanes[lane] = n;
}

/* Spans {begin, end} in the order of their beginnings: list.over[i] is the moment by which spans 0 to i
 * have all ended, so that a search knows where to stop. */
function indexSpans(list) {
  let over = 0;
  list.over = list.map((span) => (over = Math.max(over, span.end)));
  list.begins = list.map((span) => span.begin);
  return list;
}

/* The spans that touch [first, last], in order. */
function spansBetween(list, first, last) {
  const spans = [];
  const end = countUpTo(list.begins, last);
  for (let i = countUpTo(list.over, first - 1); i < end; i++) if (list[i].end >= first) spans.push(list[i]);
  return spans;
}

/* The spans that have begun at n and not ended. */
function spansAt(list, n) {
  return spansBetween(list, n + 1, n + 1).filter((span) => span.begin <= n);
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

const blockOfWarp = (model, warp) => Math.floor(warp / model.cluster.warps_per_block);

/* The warp that an event belongs to, -1: none. */
function warpOf(model, event) {
  if (event[0] in WARP_AT) return event[WARP_AT[event[0]]];
  if (event[0] === "bytes" && event[2][0] === "w") return Number(event[2].slice(1));
  if (event[0] === "source" || event[0] === "landed") return model.copies[event[2]].warp;
  if (event[0] === "wgmma_done") return model.wgmmas[event[2]].warp;
  return -1;
}

/* The same event in the other order: in both, a warp does the same things one after the other. -1: there is none. */
function twinOf(model, n) {
  const nameOf = (each, event) => [event[0], warpOf(each, event), event[PLACE_AT[event[0]]], isFinding(event) && event[6]].join();
  for (const each of [model, model.other])
    if (!each.named) {
      each.named = new Map();
      each.events.forEach((event, k) => listOf(each.named, nameOf(each, event)).push(k));
    }
  const name = model.events[n] && nameOf(model, model.events[n]);
  const found = model.other.named.get(name) || [];
  return found.length ? found[Math.min(model.named.get(name).indexOf(n), found.length - 1)] : -1;
}

/* The copy whose work an event is: it reads, writes or has landed. */
function copyOf(model, event) {
  if (event[0] === "source" || event[0] === "landed") return model.copies[event[2]];
  return event[0] === "bytes" && event[2][0] === "c" ? model.copies[Number(event[2].slice(1))] : null;
}

function placeOf(model, event) {
  const number = event[0] in PLACE_AT ? event[PLACE_AT[event[0]]] : -1;
  return number >= 0 ? model.recording.places[number] : null;
}

/* The shared memory that an event touches: [[address, bytes], ...]. */
function rangesOf(event) {
  if (event[0] === "copy") return [...event[10], ...event[11]];
  if (event[0] === "wgmma") return event[5];
  if (event[0] === "mbarrier") return [[event[2], BARRIER_BYTES]];
  if (event[0] !== "shared") return [];
  const bytes = event[6];
  return event[8].flatMap(([first, stride, count]) => (Math.abs(stride) <= bytes
    ? [[first + Math.min(0, stride * (count - 1)), Math.abs(stride) * (count - 1) + bytes]]
    : Array.from({ length: count }, (_, i) => [first + i * stride, bytes])));
}

const isOver = (event, address) => rangesOf(event).some(([first, bytes]) => address >= first && address < first + bytes);
