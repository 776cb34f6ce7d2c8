/* idle.js: when a block leaves the tensor cores idle, and what its warps that multiply do in that time. */

const IDLE_PLACES = { before: "before the first wgmma", between: "between wgmmas", after: "after the last wgmma" };

/* What they wait for, or where the code is that they run: {short: on the timeline, words: in the headline}. */
const CAUSES = {
  loads: { short: "loads", words: "waiting for loads" },
  data: { short: "data", words: "waiting for copies" }, // of other kinds
  others: { short: "others", words: "waiting for others" },
  drain: { short: "drain", words: "draining, with no other wgmma queued" },
  stores: { short: "stores", words: "waiting for stores" },
  asked: { short: "try_wait", words: "asking mbarriers that are complete already" },
  before: { short: "start", words: "code" },
  between: { short: "code", words: "code" },
  after: { short: "epilogue", words: "epilogue" },
  ended: { short: "ended", words: "other warps go on" },
};

/* The times in which no wgmma of a block is in flight: [{begin, end, code, parts}]. code: one of IDLE_PLACES. parts: [{cause, at, clocks}],
 * longest first, of the warps that multiply, on average; at: an event of the line. */
function idleOf(model, block) {
  if (!model.idle) model.idle = new Map();
  if (!model.idle.has(block)) model.idle.set(block, indexSpans(findIdle(model, block)));
  return model.idle.get(block);
}

function findIdle(model, block) {
  const wgmmas = model.wgmmas.filter(({ warp }) => blockOfWarp(model, warp) === block);
  if (timeUnit(model) !== "clock" || !wgmmas.length) return []; // nothing is known of times
  const last = model.events.length - 1;
  const warps = [...new Set(wgmmas.map(({ warp }) => warp))];
  const busy = joined(wgmmas);
  const gaps = busy.map(({ begin }, i) => ({ begin: i ? busy[i - 1].end : 0, end: begin, code: i ? "between" : "before" }));
  gaps.push({ begin: Math.min(last, busy[busy.length - 1].end), end: last, code: "after" });
  return gaps.filter(({ begin, end }) => timeOf(model, end) > timeOf(model, begin))
    .map(({ begin, end, code }) => ({ begin, end, code, parts: partsOf(model, warps, begin, end, code) }));
}

function partsOf(model, warps, begin, end, code) {
  const parts = new Map();
  for (const warp of warps)
    for (const did of spansBetween(doneBy(model, warp), begin, end)) {
      const cause = did.cause || code;
      const key = `${cause} ${did.at < 0 ? "" : placeText(model, placeOf(model, model.events[did.at]))}`;
      const part = parts.get(key) || parts.set(key, { cause, at: did.at, clocks: 0 }).get(key);
      part.clocks += Math.max(0, timeOf(model, Math.min(end, did.end)) - timeOf(model, Math.max(begin, did.begin))) / warps.length;
    }
  return [...parts.values()].filter(({ clocks }) => clocks > 0).sort((a, b) => b.clocks - a.clocks);
}

/* All that a warp does, one after the other: [{begin, end, cause, at}]. cause "": it runs. */
function doneBy(model, number) {
  const warp = model.warps[number];
  if (warp.done) return warp.done;
  const last = model.events.length - 1;
  const exit = warp.exits.length ? warp.exits[warp.exits.length - 1] : last;
  const waits = indexSpans(warp.waits.map((wait) => ({ ...wait, cause: causeOf(model, wait) })).filter(({ cause }) => cause));
  const edges = [0, ...warp.stands, ...waits.flatMap(({ begin, end }) => [begin, Math.min(end, last)]), exit, last];
  const begins = [...new Set(edges)].sort((a, b) => a - b);
  let at = -1;
  warp.done = indexSpans(begins.slice(0, -1).map((begin, i) => {
    const event = model.events[begin];
    if (event[0] === "step" && event[2] === number) at = placeOf(model, event).file < 0 ? -1 : begin;
    const [wait = { cause: "", at }] = spansAt(waits, begin);
    return { begin, end: begins[i + 1], ...(begin < exit ? { cause: wait.cause, at: wait.at } : { cause: "ended", at: -1 }) };
  }));
  return warp.done;
}

const isLoad = ({ kind }) => /load$|cp\.async/.test(kind);

/* "": the wait is for lanes of the same warp, which run, or for its turn to issue. */
function causeOf(model, { begin, at, on: [kind, address, parity] }) {
  const opcode = opcodeOf(model, model.events[at]);
  if (kind === "mbarrier") {
    const state = barrierState(model, address, begin);
    const copies = model.barriers.get(address).copies.map((number) => model.copies[number]);
    return !state || state.parity !== parity ? "asked" : copies.some(isLoad) ? "loads" : copies.length ? "data" : "others";
  }
  if (opcode.startsWith("wgmma.wait_group")) return "drain";
  if (/^cp\.async\.(wait|bulk\.wait)/.test(opcode)) return opcode.includes("bulk") ? "stores" : "loads";
  return BAR.test(opcode) ? "others" : "";
}

/* How long, and why, the first block's tensor cores idle at each of IDLE_PLACES: {before: {clocks, causes}, ...}. */
const idlePlaces = (model) => Object.fromEntries(Object.keys(IDLE_PLACES).map((name) => {
  const causes = causesOf(idleOf(model, 0).filter(({ code }) => code === name));
  return [name, { clocks: causes.reduce((sum, { clocks }) => sum + clocks, 0), causes }];
}));

/* The causes of some of these times, longest first: [{cause, clocks, parts}]. */
function causesOf(gaps) {
  const causes = new Map();
  for (const { cause, at, clocks } of gaps.flatMap(({ parts }) => parts)) {
    const found = causes.get(cause) || causes.set(cause, { cause, clocks: 0, parts: [] }).get(cause);
    found.clocks += clocks;
    found.parts.push({ at, clocks });
  }
  return [...causes.values()].sort((a, b) => b.clocks - a.clocks);
}

/* The function that a line calls; "": none, or the line may take its time for an operand that is loaded. */
function calleeAt(line) {
  const [, name = ""] = /(?:^|= )([A-Za-z_]\w*)(?:<[^;()]*>)?\([^[]*$/.exec(line.trim()) || [];
  return /^(if|for|while|switch|return|asm)$/.test(name) ? "" : name;
}

/* "wgmma_wait_all, line 84", "lines 76-78,85": those that make up most of a cause. */
function placesOf(model, { clocks: all, parts }) {
  const lines = new Map(); // by their text: {place, clocks}
  for (const { at, clocks } of parts) {
    const place = at < 0 ? null : placeOf(model, model.events[at]);
    if (!place || place.file < 0) continue;
    const line = listOf(lines, placeText(model, place));
    Object.assign(line, { at, place, clocks: clocks + (line.clocks || 0) });
  }
  const most = [...lines].filter(([, { clocks }]) => clocks > all / 5);
  const isMine = ([, { place }]) => place.file === kernelFile(model.recording);
  const mine = most.filter(isMine).map(([, { place }]) => place.line).sort((a, b) => a - b);
  const [callee, ...more] = new Set(most.map(([, { at }]) => calleeAt(lineText(model, at))));
  return [...(callee && !more.length ? [callee] : []), ...(mine.length ? [`line${mine.length > 1 ? "s" : ""} ${numberRuns(mine)}`] : []),
    ...most.filter((each) => !isMine(each)).map(([text]) => text)].join(", ");
}

/* What is written into one of these times where it fits: "398: drain 214, L84", or less; the longest cause and its first line. */
function idleNames(model, { begin, end, parts }) {
  const [{ cause, clocks, parts: some }] = causesOf([{ parts }]);
  const all = wholeNumber(timeOf(model, end) - timeOf(model, begin));
  const { at } = some.find((part) => part.at >= 0) || { at: -1 };
  const { short } = CAUSES[cause];
  const line = at < 0 || placeOf(model, model.events[at]).file < 0 ? "" : `L${placeOf(model, model.events[at]).line}`;
  return [`${all}: ${short} ${wholeNumber(clocks)}${line && `, ${line}`}`, `${all}: ${short}`, short, line];
}
