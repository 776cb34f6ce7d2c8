/* notices.js: what the cards of the summary say of a moment, from what the recording holds before and after it: who uses it, and when. */

const noticeReport = ({ root, b, between, advice }) => root ||
  (b ? `${asSentence(b.did)}: ${between}.` : advice.split(/(?<=\.) (?=[A-Z])/)[0]);

function noticeCopy(model, copy) {
  if (copy.reads.length) {
    const read = model.events.findIndex((event) => event[0] === "source" && event[2] === copy.number);
    return `It has read its source ${laterBy(model, copy.begin, read < 0 ? copy.end : read, "never")}, and is complete ` +
      `${laterBy(model, copy.begin, copy.end, "never in this recording")}.`;
  }
  if (copy.end === Infinity) return "It never completes in this recording.";
  const time = clocksBetween(model, copy.begin, copy.end);
  return `The warp goes on at once. ${copy.writes.length ? `For ${time} its bytes are undefined.` : `The copy takes ${time}.`}`;
}

function noticeWait(model, event, wait) {
  const polls = event[6] ? `, and asks ${event[6]} times` : "";
  if (wait.end === Infinity) return `It waits ${hangs(model) ? "forever" : "until the end of this recording"}${polls}.`;
  return `It waits ${clocksBetween(model, wait.begin, wait.end)}${polls}, ${untilWhat(model, event, wait)}.`;
}

/* How long the warp goes on with its results, and what else goes on in all that time; a block has tensor cores of its own. */
function noticeEpilogue(model, event, n) {
  const exit = firstAfter(model.warps[event[2]].exits, n);
  const last = exit < 0 ? model.events.length - 1 : exit;
  const isLater = (span) => span.begin < last && (span.end === Infinity || model.events[span.end][1] > event[1]);
  const isMine = (warp) => Math.floor(warp / model.cluster.warps_per_block) === blockOfEvent(model, event);
  const warps = [...new Set(model.wgmmas.filter(isLater).map(({ warp }) => warp))].filter(isMine).sort((a, b) => a - b);
  const [copies, cores] = [model.copies.some(isLater), warps.length ? `multiply for ${warpsName(model, warps)}` : "have no work"];
  return `It takes ${clocksBetween(model, n, last)}. ${copies ? "Copies are in flight" : "No copy is in flight"} meanwhile, ` +
    `${copies === Boolean(warps.length) ? "and" : "but"} ${model.blocks > 1 ? "its block's " : ""}tensor cores ${cores}.`;
}

/* Of the first wgmma whether copies are in flight then; that they take turns is said only of the whole run. */
function noticeMultiply(model, event, n) {
  const count = inFlightAt(model, n);
  if (count) return `Copies in flight meanwhile: ${count}. Loading and multiplying overlap.`;
  const isTurn = (wgmma) => !model.copies.some((copy) => copy.begin < wgmma.end && copy.end > wgmma.begin);
  return model.wgmmas.every(isTurn) ? "No copy is in flight meanwhile: the tensor cores and the copies take turns."
    : "No copy is in flight at this moment.";
}

function noticeLanded(model, event, n) {
  const { barrier, warp, begin } = landedAt(model, event, n);
  const what = model.events[begin][7] ? "the bytes" : "the arrival";
  if (countsBytes(event)) return `${theBarrier(model, event[2])} has counted ${what}, and still needs ${needs(event)}.`;
  const next = model.events[n + 1];
  if (countsBytes(next)) return `${theBarrier(model, next[2])} counts ${what} next, and needs no more.`;
  if (barrier) return `Its barrier counts ${what} next.`;
  const [complete, read] = [0, 1].map((kind) => awaitedAt(model, model.events[begin], begin, kind));
  const who = `No mbarrier counts it. ${asSentence(warpName(model, warp))}`;
  if (complete !== undefined) return `${who} has waited for its group ${laterBy(model, n, complete)}.`;
  if (read === undefined) return `${who} does not wait for its group.`;
  return `${who} waits only until its source is read (line ${placeOf(model, model.events[read]).line}), and nobody for its completion.`;
}

/* The phase of a barrier without copies that the thread waited for before it writes over old bytes, and who completed it. */
function releaseOf(model, event, n) {
  const at = lastUpTo(model.warps[event[3]].events.filter((k) => model.events[k][0] === "observed"), n);
  const [, , , , , address, phase] = model.events[at] || [];
  const { changes = [], copies = [0] } = model.barriers.get(address) || {};
  const over = changes.find((k) => model.events[k][4] > phase);
  if (copies.length || phase < 0 || over === undefined) return "";
  const arrived = changes.filter((k) => k <= over && model.events[k][8] >= 0 && ["arrive", "drop"].includes(model.events[k][3]) &&
    (k === over || model.events[k][4] === phase));
  const warps = [...new Set(arrived.map((k) => model.events[k][8]))].sort((a, b) => a - b);
  return `${asSentence(warpsName(model, warps))} freed it: phase ${phase} of ${model.barriers.get(address).name} ended ` +
    `${clocksBetween(model, over, n)} before.`;
}

/* Who read the bytes last that the copy writes over; where a mistake was reported, who reads these bytes, but not the old ones yet; else
 * who allowed it, where a barrier says so. */
function noticeRefill(model, event, n) {
  const release = model.findings.length ? "" : releaseOf(model, event, n);
  if (release) return release;
  const { end: old } = earlierCopy(model, event);
  const readers = model.wgmmas.filter(({ begin }) => begin > old && begin < n && model.events[begin][5].some(isIn(event[11])));
  if (!readers.length) {
    const reads = [...model.events.keys()].filter((k) => readsOf(model.events[k]).some(isIn(event[11])));
    const warpsOf = (some) => [...new Set(some.map((k) => warpOf(model, model.events[k])))].sort((a, b) => a - b);
    const before = reads.filter((k) => k > old && k < n);
    const missing = model.findings.length ? warpsOf(reads).filter((warp) => !warpsOf(before).includes(warp)) : [];
    const have = missing.length > 1 ? "have" : "has";
    if (missing.length) return `${asSentence(warpsName(model, missing))} ${have} not read the old bytes yet.`;
    const last = before.length ? before[before.length - 1] : -1;
    if (last < 0) return "Nothing has read the old bytes.";
    const reader = warpName(model, warpOf(model, model.events[last]));
    return `${asSentence(reader)} was the last to read the old bytes, ${clocksBetween(model, last, n)} before.`;
  }
  const awaited = Math.max(...readers.map((wgmma) => wgmma.awaited));
  return awaited < n ? `The last wgmma that read the old bytes was awaited ${clocksBetween(model, awaited, n)} before.`
    : "A wgmma that reads the old bytes has not been awaited yet.";
}

/* "123 clocks later"; `never` where it does not happen. */
const laterBy = (model, from, to, never) => (to === undefined || to === Infinity ? never : `${clocksBetween(model, from, to)} later`);

const isIn = (ranges) => ([address, bytes]) => ranges.some(([first, length]) => address < first + length && first < address + bytes);

/* The shared memory that an event reads. */
function readsOf(event) {
  if (event[0] === "copy") return event[10];
  return event[0] === "wgmma" || (event[0] === "shared" && event[5] !== "write") ? rangesOf(event) : [];
}

/* What a copy over the bytes of another one is too early for: the first read of another warp that has waited for that one. Were it
 * ordered before the new copy, so were the wait, which the report says is not. -1: there is none. */
function readerOf(model, mine, filled, address) {
  const copy = model.copies[model.events[filled][2]];
  if (!copy || model.events[mine][0] !== "copy" || address === null) return -1;
  const waited = new Set();
  return model.events.findIndex((event, k) => {
    if (k < copy.end) return false;
    if (event[0] === "observed" && copy.barrier && offsetOf(event[5]) === offsetOf(copy.barrier)) waited.add(event[2]);
    const warp = warpOf(model, event);
    return readsOf(event).length && isOver(event, address) && waited.has(warp) && warp !== model.events[mine][3];
  });
}

/* What of an order stands between two events: ", after a fence and a barrier". */
function orderBetween(model, from, to) {
  const warp = warpOf(model, model.events[from]);
  const between = model.events.slice(from + 1, to);
  const found = [between.some((event) => event[0] === "fence" && event[2] === warp) && "a fence",
    between.some(([kind, ...rest]) => ["bar", "cluster_barrier"].includes(kind) && rest.pop() === 1) && "a barrier"].filter(Boolean);
  return found.length ? `after ${found.join(" and ")}` : "with no fence and no barrier in between";
}

function noticeInit(model, event, n) {
  const used = model.events.findIndex((each, k) => k > n && isBarrier(each) && each[2] === event[2]);
  if (used < 0) return "Nothing uses it.";
  const warp = warpOf(model, model.events[used]);
  return `It is first used ${laterBy(model, n, used)}, by ${warp < 0 ? "a copy" : warpName(model, warp)}, ${orderBetween(model, n, used)}.`;
}

/* The wait to blame, where a report names one that asked for a phase known to be over: {at, parity, because}. at: where it went on. */
function passedWait(model) {
  if (!model.passed) {
    model.passed = { at: -1 };
    const words = /:(\d+), asked for parity (\d) .*succeeded because (phase \d+ is over)/;
    const n = model.findings.find((k) => words.test(model.events[k][6]));
    if (n === undefined) return model.passed;
    const [, line, parity, because] = words.exec(model.events[n][6]);
    const isThat = (k) => model.events[k][0] === "observed" && placeOf(model, model.events[k]).line === Number(line);
    const at = lastUpTo(model.warps[model.events[n][2]].events.filter(isThat), reportAt(model, n).a.event);
    model.passed = { at, parity, because };
  }
  return model.passed;
}

const phaseEnd = (model, event) => model.barriers.get(event[2]).changes.find((k) => model.events[k][4] > event[4]);

function noticeExpect(model, event, n) {
  const over = phaseEnd(model, event);
  return over === undefined ? `Phase ${event[4]} does not end in this recording.`
    : `They have come ${laterBy(model, n, over)}, which ends phase ${event[4]}.`;
}

function noticePhase(model, event, n) {
  const parity = (event[4] - 1) & 1;
  const waiting = model.warps.filter(({ number }) => warpWaits(model, number, n)
    .some(({ on: [, address, asked] }) => address === event[2] && asked === parity)).map(({ number }) => number);
  const who = !waiting.length ? "No warp waits for it now."
    : `${asSentence(warpsName(model, waiting))}, which waited for parity ${parity}, ${waiting.length > 1 ? "go" : "goes"} on.`;
  return `${who} Phase ${event[4]}, of parity ${event[4] & 1}, begins.`;
}

/* What ends a wait at an mbarrier, or at another warp's arrival. */
function untilWhat(model, event, wait) {
  const changes = event[5].length ? model.barriers.get(event[5][1]).changes : [];
  const over = changes.filter((k) => k <= wait.end && roseTo(model, model.events[k], k)).pop();
  if (over === undefined) return "until all have arrived";
  const warp = warpOf(model, model.events[over]);
  return model.events[over][3] === "landed" || warp < 0 ? "until the last bytes have come" : `until ${warpName(model, warp)} arrives`;
}

function noticeWrite(model, event, n) {
  const read = model.events.findIndex((each, k) => k > n && readsOf(each).some(isIn(rangesOf(event))));
  if (read < 0) return "Nothing reads it in this recording.";
  const reader = model.events[read];
  const who = reader[0] === "copy" ? copyName(model, model.copies[reader[2]]) : warpName(model, warpOf(model, reader));
  return `${asSentence(who)} reads it ${laterBy(model, n, read)}, ${orderBetween(model, n, read)}.`;
}

function noticeMeet(model, event, n) {
  const isSame = ([kind, , , , , rank, number]) => kind === "bar" && rank === event[5] && number === event[6];
  const rounds = model.arrivals.filter((k) => k <= n && isSame(model.events[k]));
  const first = rounds[rounds.slice(0, -1).findLastIndex((k) => model.events[k][8] === 1) + 1];
  if (first === n) return "No other warp takes part.";
  if (model.events[first][1] === event[1]) return `All come at the same ${timeUnit(model)}.`;
  return `${asSentence(warpName(model, model.events[first][2]))} came first, ${clocksBetween(model, first, n)} before.`;
}

/* ---- Two warpgroups in turn ---- */

const groupName = (model, group) => (model.blocks > 1 ? `block ${Math.floor(group / warpgroupsPerBlock(model))} ` : "") +
  `warpgroup ${group % warpgroupsPerBlock(model)}`;

/* The longest time in which a warpgroup runs between two of its products while the tensor cores work for another one of its block:
 * {mine, other, at, time, line}; at: its first step then; line: where it is longest. null: there is none. */
function overlapOf(model) {
  if (model.overlap !== undefined) return model.overlap;
  model.overlap = null;
  const groups = wgmmaLanes(model).map(([group, wgmmas]) => ({ group, busy: joined(wgmmas) }));
  for (const { group: mine, busy } of groups)
    for (const { group: other, busy: theirs } of groups) {
      if (mine === other || blockOfGroup(model, mine) !== blockOfGroup(model, other)) continue;
      for (const [i, { begin }] of busy.slice(1).entries())
        for (const span of spansBetween(theirs, busy[i].end, begin)) {
          const found = computedIn(model, mine, other, Math.max(span.begin, busy[i].end), Math.min(span.end, begin));
          if (found && found.time > (model.overlap ? model.overlap.time : leastOverlap(model))) model.overlap = found;
        }
    }
  return model.overlap;
}

/* What takes less than a hundredth of the time tells nothing. */
const leastOverlap = (model) => model.events[model.events.length - 1][1] / 100;

function happenedOverlap(model) {
  const { mine, other } = overlapOf(model);
  return capitalised(`${groupName(model, other)} multiplies while ${groupName(model, mine)} computes.`);
}

const blockOfGroup = (model, group) => Math.floor(group / warpgroupsPerBlock(model));

/* When a warpgroup's products are under way. */
function joined(wgmmas) {
  const spans = [];
  for (const { begin, end } of wgmmas) {
    const last = spans[spans.length - 1];
    if (last && begin <= last.end) last.end = Math.max(last.end, end);
    else spans.push({ begin, end });
  }
  return indexSpans(spans);
}

/* What a warpgroup's first warp runs from one event to another, apart from the lines at which it waits; null: nothing. */
function computedIn(model, mine, other, from, to) {
  const warp = model.warps[blockOfGroup(model, mine) * model.cluster.warps_per_block + (mine % warpgroupsPerBlock(model)) * 4];
  if (!warp.waitLines) warp.waitLines = new Set(warp.waits.map(({ at }) => lineText(model, at)));
  const steps = warp.steps.slice(countUpTo(warp.steps, from), countUpTo(warp.steps, to));
  const clocks = new Map(); // by line
  steps.forEach((k, i) => {
    const line = lineText(model, k);
    const next = i + 1 < steps.length ? steps[i + 1] : Math.min(to, model.events.length - 1);
    if (!warp.waitLines.has(line)) clocks.set(line, (clocks.get(line) || 0) + model.events[next][1] - model.events[k][1]);
  });
  const [longest] = [...clocks].sort((a, b) => b[1] - a[1]);
  return longest ? { mine, other, at: steps[0], time: [...clocks.values()].reduce((sum, each) => sum + each), line: longest[0] } : null;
}

function noticeOverlap(model) {
  const { time, line } = overlapOf(model);
  const call = line.replace(/;$/, "").replace(/\(.{40,}\)/, "(…)");
  return `For ${plural(time, timeUnit(model))}, mostly in ${call}, between two products of its own.`;
}

/* ---- A store while the tensor cores multiply, and a load for several blocks ---- */

/* The wgmmas of a store's warpgroup that are under way in its time, and in which share of it. */
function carriedBy(model, copy) {
  const group = warpgroupOf(model, copy.warp);
  const last = Math.min(copy.end, model.events.length - 1);
  const spans = indexSpans(model.wgmmas.filter(({ warp, begin, end }) =>
    warpgroupOf(model, warp) === group && begin < last && end > copy.begin));
  return { spans, share: coveredShare(model, spans, { first: copy.begin, last }) };
}

const isCarried = (model, event) => event[0] === "copy" && event[10].length > 0 && carriedBy(model, model.copies[event[2]]).share > 0;

function noticeCarried(model, event) {
  const copy = model.copies[event[2]];
  const { spans, share } = carriedBy(model, copy);
  const lines = numberRuns([...new Set(spans.map(({ begin }) => placeOf(model, model.events[begin]))
    .filter(({ file }) => file >= 0).map(({ line }) => line))].sort((x, y) => x - y), ", ");
  const time = clocksBetween(model, copy.begin, copy.end);
  const where = lines && ` of line${/\D/.test(lines) ? "s" : ""} ${lines}`;
  return `For ${Math.round(100 * share)} % of its ${time} the tensor cores run its warpgroup's wgmmas${where}.`;
}

const ranksOf = (event) => [...new Set(event[11].map(([address]) => rankOf(address)))].sort((a, b) => a - b);
const isMulticast = (event) => event[0] === "copy" && ranksOf(event).length > 1;

/* Who fills the rest of the same variable, in the same blocks. */
function noticeMulticast(model, event, n) {
  const nameOf = ([, , , , , , , , , , , [[address]]]) => (nameAt(model, offsetOf(address)) || {}).name;
  const others = model.events.filter((each, k) => k > n && isMulticast(each) && nameOf(each) && nameOf(each) === nameOf(event));
  const other = others.find((each) => offsetOf(each[11][0][0]) !== offsetOf(event[11][0][0]));
  const alone = `One read of ${plural(event[7], "byte")} fills all of them.`;
  return other ? `${alone} ${asSentence(warpName(model, other[3]))} fills ${placeName(model, other[11][0][0])} in the same way.` : alone;
}
