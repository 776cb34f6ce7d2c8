/* lanes.js: the lanes of the timeline: which there are, and what each is about. */

/* The lanes of a cluster, from top to bottom: {kind, key, name, short, block}. short: the name among those of
 * one block; block -1: for every block. */
function timelineLanes(model) {
  const lanes = warpLanes(model);
  copyLanes(model).forEach(({ name, spans }, i) => lanes.push({ kind: "copy", key: i, name, short: name, block: -1, spans }));
  for (const [group, spans] of wgmmaLanes(model)) {
    const block = Math.floor(group / warpgroupsPerBlock(model));
    const short = `group ${group % warpgroupsPerBlock(model)}, wgmma`;
    lanes.push({ kind: "tensor", key: group, name: model.blocks > 1 ? `block ${block} ${short}` : short, short, block, spans,
      open: indexSpans(spans.map(({ begin, end, awaited }) => ({ begin, end: Math.max(end, awaited) }))) });
  }
  lanes.push(...turnLanes(model));
  for (const address of [...model.barriers.keys()].sort((a, b) => a - b))
    lanes.push({ kind: "barrier", key: address, name: barrierName(model, address), short: model.barriers.get(address).name,
      block: rankOf(address) });
  measureNames(model, lanes.map(({ short }) => short));
  return lanes;
}

/* Neighbours of one block that do next to nothing beside what the others do share a lane: keys. */
function warpLanes(model) {
  const perBlock = model.cluster.warps_per_block;
  const lanes = [];
  for (const { number } of model.warps) {
    const block = Math.floor(number / perBlock);
    const [last, isFolded] = [lanes[lanes.length - 1], isIdle(model, number)];
    if (isFolded && last && last.isIdle && last.block === block) last.keys.push(number);
    else lanes.push({ kind: "warp", key: number, keys: [number], isIdle: isFolded, block });
  }
  for (const lane of lanes) {
    const { keys: [first, ...more], block } = lane;
    const leaves = isLeaving(model, first) ? "ended" : "idle";
    lane.short = more.length ? `warps ${first % perBlock}-${more.pop() % perBlock}, ${leaves}` : `warp ${first % perBlock}`;
    lane.name = model.blocks > 1 ? `block ${block} ${lane.short}` : lane.short;
  }
  return lanes;
}

/* What a warp that only passes through does: it comes to a barrier, and ends. */
const PASSES = new Set(["step", "wait", "woke", "exit", "fence", "bar", "cluster_barrier"]);

function isIdle(model, number) {
  const perBlock = model.cluster.warps_per_block;
  const first = number - (number % perBlock);
  const most = Math.max(...model.warps.slice(first, first + perBlock).map(({ events }) => events.length));
  const { events, exits } = model.warps[number];
  return events.length < most / 10 && (exits.length || !events.length) && events.every((n) => PASSES.has(model.events[n][0]));
}

/* Has it left the kernel before the first tenth of the time is over? */
const isLeaving = (model, number) => model.warps[number].exits.some((n) => 10 * timeOf(model, n) < timeOf(model, model.events.length - 1));

/* Two groups of warps that hand a turn to each other, each by arriving at the named barrier at which the other waits. Who waited has
 * the turn from then on, until all of its warps have arrived at the other's. One that is not passed on and multiplies nothing is none. */
function turnLanes(model) {
  const barriers = new Map();
  for (const n of model.arrivals.filter((k) => model.events[k][0] === "bar")) {
    const [, , warp, , , rank, number, , complete] = model.events[n];
    const name = `${rank} ${number}`;
    if (!barriers.has(name)) barriers.set(name, { block: rank, number, waits: new Set(), arrives: new Map(), complete: [] });
    const barrier = barriers.get(name);
    if (SYNC.test(placeOf(model, model.events[n]).text)) barrier.waits.add(warp);
    else listOf(barrier.arrives, warp).push(n);
    if (complete) barrier.complete.push(n);
  }
  const isSame = (some, others) => some.size === others.size && [...some.keys()].every((warp) => others.has(warp));
  return [...barriers.values()].flatMap((mine) => {
    const theirs = [...barriers.values()].find((each) => each !== mine && each.block === mine.block && mine.waits.size &&
      isSame(mine.waits, each.arrives) && isSame(each.waits, mine.arrives));
    return theirs ? [turnLane(model, mine, theirs)] : [];
  });
}

function turnLane(model, { block, number, waits, complete }, theirs) {
  const warps = [...waits].sort((a, b) => a - b);
  const passed = (n, warp) => {
    const at = firstAfter(theirs.arrives.get(warp), n);
    return at < 0 ? lastUpTo(model.warps[warp].exits, model.events.length) : at;
  };
  const isUsed = (n) => !model.wgmmas.length || warps.some((warp) => firstAfter(theirs.arrives.get(warp), n) >= 0) ||
    model.wgmmas.some(({ warp, begin }) => begin > n && waits.has(warp));
  const spans = indexSpans(complete.filter(isUsed).map((begin) => ({ begin, end: Math.max(...warps.map((warp) => passed(begin, warp))) })));
  const short = `turn of warps ${numberRuns(warps.map((warp) => warp % model.cluster.warps_per_block))}`;
  return { kind: "turn", key: number, name: model.blocks > 1 ? `block ${block} ${short}` : short, short, block, spans };
}

const warpgroupsPerBlock = (model) => Math.ceil(model.cluster.warps_per_block / 4);
const warpgroupOf = (model, warp) =>
  blockOfWarp(model, warp) * warpgroupsPerBlock(model) +
  Math.floor((warp % model.cluster.warps_per_block) / 4);

/* A lane for each way of copies, up to this many that move bytes; where there are more, one for a tensor that has most of them. Of one
 * way, copies that are in flight at the same time get further lanes, without a name. */
const COPY_LANES = 12;

function waysOf(model) {
  const wholes = new Set();
  for (;;) {
    const ways = new Map();
    const count = new Map(); // by what they would be together
    for (const copy of model.copies) {
      const whole = wayOf(model, copy, true);
      const way = wholes.has(whole) ? whole : wayOf(model, copy, false);
      if (isMoving(copy) && !ways.has(way)) count.set(whole, (count.get(whole) || 0) + 1);
      listOf(ways, way).push(copy);
    }
    const [[largest, most] = ["", 0]] = [...count].sort((a, b) => b[1] - a[1]);
    if (most < 2 || [...count.values()].reduce((sum, each) => sum + each) <= COPY_LANES) return ways;
    wholes.add(largest);
  }
}

function copyLanes(model) {
  const ways = waysOf(model);
  const most = Math.max(1, Math.floor(COPY_LANES / ways.size));
  return [...ways].flatMap(([name, copies]) => {
    const lanes = [];
    for (const copy of copies) {
      let lane = lanes.findIndex((spans) => spans[spans.length - 1].end <= copy.begin);
      if (lane < 0) lane = Math.min(lanes.length, most - 1);
      (lanes[lane] = lanes[lane] || []).push(copy);
    }
    return lanes.map((spans, i) => ({ name: i ? "" : name, spans: indexSpans(spans) }));
  });
}

const nameOfBarrier = (model, address) => [...model.barriers.values()].find((each) => offsetOf(each.address) === offsetOf(address)).name;
const isMoving = ({ reads, writes }) => reads.length + writes.length > 0;

/* "A → a[2]", or "tile → D" of a store; of the whole tensor "A load", "D store"; "arrivals → full[0]" moves no bytes. */
function wayOf(model, { kind, tensor, reads, writes, barrier }, whole) {
  if (barrier && !isMoving({ reads, writes })) return `arrivals → ${nameOfBarrier(model, barrier)}`;
  const name = tensor ? tensorName(model, tensor).replace(ARTICLE, "") : kind;
  if (whole) return tensor ? `${name} ${kind.replace("tensor ", "")}` : name;
  const [[address]] = [...writes, ...reads, [null]];
  const found = address === null ? null : nameAt(model, offsetOf(address));
  const place = found ? found.name : address === null ? "" : `0x${offsetOf(address).toString(16)}`;
  return writes.length || !place ? `${name}${place && ` → ${place}`}` : `${place} → ${name}`;
}

/* [[warpgroup, spans], ...] */
function wgmmaLanes(model) {
  const lanes = new Map();
  for (const wgmma of model.wgmmas) listOf(lanes, warpgroupOf(model, wgmma.warp)).push(wgmma);
  for (const spans of lanes.values()) indexSpans(spans);
  return [...lanes].sort((a, b) => a[0] - b[0]);
}
