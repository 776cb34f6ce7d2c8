/* notices.js: what the cards of the summary say of a moment, from what the recording holds before and after it: who uses it, and when. */

/* What the card of the other side does not tell. */
function noticeReport(model, { root, a, b, between, advice }, n) {
  if (root || !b) return root || advice.split(/(?<=\.) (?=[A-Z])/)[0];
  const isEarly = b.event >= 0 && readsOf(model.events[b.event]).length && isRefill(model, model.events[a.event] || []);
  if (!isEarly && tellsOfAccess(model, n)) return `${asSentence(b.did)}: ${between}.`;
  return `${isEarly ? `${noticeRefill(model, model.events[a.event], a.event)} ` : ""}` +
    `${capitalised(between.replace("these two", "① and ②"))}.`;
}

function noticeCopy(model, copy) {
  if (copy.reads.length) {
    const read = model.events.findIndex((event) => event[0] === "source" && event[2] === copy.number);
    return `It has read its source ${laterBy(model, copy.begin, read < 0 ? copy.end : read, "never")}, and is complete ` +
      `${laterBy(model, copy.begin, copy.end, "never in this recording")}.`;
  }
  if (copy.end === Infinity) return "It never completes in this recording.";
  const time = timeUnit(model) === "clock" ? `It takes ${clocksBetween(model, copy.begin, copy.end)}. ` : "";
  if (!copy.writes.length) return `The warp goes on at once. ${time}`.trim();
  const name = !copy.barrier || !isMulticast(model.events[copy.begin]) ? barrierName(model, copy.barrier)
    : `each block's own ${model.barriers.get(copy.barrier).name}`;
  const wait = copy.barrier ? `a wait has seen the phase of ${name} end` : "a wait that covers it";
  return `${time}Its bytes can be read only after ${wait}.`;
}

function noticeWait(model, event, wait) {
  const polls = event[6] ? `, and asks ${event[6]} times` : "";
  if (wait.end === Infinity) return hangs(model) ? "It waits forever." : `It waits until the end of this recording${polls}.`;
  return `It waits ${clocksBetween(model, wait.begin, wait.end)}${polls}, ${untilWhat(model, event, wait)}.`;
}

function endOfEpilogue(model, event, n) {
  const exit = firstAfter(model.warps[event[2]].exits, n);
  return exit < 0 ? model.events.length - 1 : exit;
}

/* How long the warp goes on with its results, and what else goes on in all that time; a block has tensor cores of its own. */
function noticeEpilogue(model, event, n) {
  const last = endOfEpilogue(model, event, n);
  const isLater = (span) => span.begin < last && (span.end === Infinity || model.events[span.end][1] > event[1]);
  const isMine = (warp) => blockOfWarp(model, warp) === blockOfEvent(model, event);
  const warps = [...new Set(model.wgmmas.filter(isLater).map(({ warp }) => warp))].filter(isMine).sort((a, b) => a - b);
  const kinds = [...new Set(model.copies.filter(isLater).map(({ kind }) => `${(/load|store/.exec(kind) || ["other copie"])[0]}s`))].sort();
  const flying = kinds.length ? `${capitalised(`${kinds.join(" and ")} are`)}` : "No copy is";
  const cores = warps.length ? `multiply for ${warpsName(model, warps)}` : "have no work";
  return `It takes ${clocksBetween(model, n, last)}. ${flying} in flight meanwhile, ` +
    `${Boolean(kinds.length) === Boolean(warps.length) ? "and" : "but"} ${model.blocks > 1 ? "its block's" : "the"} tensor cores ${cores}.`;
}

/* Is no copy ever in flight together with a wgmma? */
const takeTurns = (model) =>
  model.wgmmas.every((wgmma) => !model.copies.some(({ begin, end }) => begin < wgmma.end && end > wgmma.begin));

function noticeMultiply(model, event, n) {
  const { end, awaited } = model.wgmmas[event[2]];
  const count = inFlightAt(model, n);
  const copies = count ? `Copies in flight meanwhile: ${count}.`
    : takeTurns(model) ? "No copy is in flight meanwhile: the tensor cores and the copies take turns."
      : "No copy is in flight at this moment.";
  return `It is done ${laterBy(model, n, end, "never")}, and awaited ${laterBy(model, n, awaited, "never")}. ${copies}`;
}

function noticeLanded(model, event, n) {
  const { barrier, warp, begin, kind } = landedAt(model, event, n);
  const what = model.events[begin][7] ? "the bytes" : "the arrival";
  if (countsBytes(event)) return `${theBarrier(model, event[2])} has counted ` +
    (event[7] < 0 ? `${plural(-event[7], "byte")} more than it was told to expect.` : `${what}, and still needs ${needs(event)}.`);
  const counted = countedAt(model, n);
  const counts = `counts ${what}${counted > n ? " next" : ""}`;
  if (counted !== undefined) return `${theBarrier(model, model.events[counted][2])} ${counts}, and needs no more.`;
  if (barrier) return `Its barrier counts ${what} next.`;
  const [complete, read] = [0, 1].map((reads) => awaitedAt(model, model.events[begin], begin, reads));
  const isArrival = (copy) => copy.warp === warp && copy.begin > begin && copy.kind === `arrival of ${kind}.mbarrier.arrive`;
  const arrival = model.copies.find(isArrival);
  const who = `No mbarrier counts it. ${asSentence(warpName(model, warp))}`;
  if (arrival) return `${theBarrier(model, arrival.barrier)} counts an arrival that comes after it.`;
  if (complete !== undefined) return `${who} has waited for its group ${laterBy(model, n, complete)}.`;
  if (read === undefined) return `${who} does not wait for its group.`;
  const when = read > n ? `, ${laterBy(model, n, read)}` : "";
  return `${who} waits until its source is read (line ${placeOf(model, model.events[read]).line}${when}).`;
}

function noticeEnd(model, event, n) {
  const bytes = model.copies.reduce((sum, copy) => sum + bytesOfCopy(copy), 0);
  const rate = timeUnit(model) === "clock" ? `, ${(bytes / timeOf(model, n)).toFixed(1)} a clock` : "";
  const moved = bytes ? `Copies have moved ${plural(bytes, "byte")}${rate}.` : "No copy moves bytes.";
  return `${moved}${model.findings.length ? "" : " No finding."}`;
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
  const { a: mine, b: other, words } = model.findings.length ? reportAt(model, model.findings[0]) : {};
  if (other && other.event === n && mine.event < n && (model.events[mine.event] || [])[0] === "shared" && / has (not )?landed/.test(words))
    return `${asSentence(warpName(model, model.events[mine.event][2]))} has read the old bytes instead, ` +
      `${clocksBetween(model, mine.event, n)} before.`;
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
  const copies = new Set(model.barriers.get(event[2]).copies);
  const used = model.events.findIndex(([kind, , number, , , on], k) => k > n && ((kind === "mbarrier" && number === event[2]) ||
    (kind === "copy" && copies.has(number)) || (kind === "wait" && on[1] === event[2]) || (kind === "observed" && on === event[2])));
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
  return over === undefined ? `Phase ${event[4]} ${hangs(model) ? "never ends" : "does not end in this recording"}.`
    : `Phase ${event[4]} ends ${laterBy(model, n, over)}, when ${lastToCome(model, over)}.`;
}

function noticePhase(model, event, n) {
  const parity = (event[4] - 1) & 1;
  const waiting = model.warps.filter(({ number }) => warpWaits(model, number, n)
    .some(({ on: [, address, asked] }) => address === event[2] && asked === parity)).map(({ number }) => number);
  const who = !waiting.length ? "No warp waits for it now."
    : `${asSentence(warpsName(model, waiting))}, which waited for parity ${parity}, can go on.`;
  return `${who} Phase ${event[4]}, of parity ${event[4] & 1}, begins.`;
}

/* What ends a wait at an mbarrier, or at another warp's arrival. */
function untilWhat(model, event, wait) {
  const changes = event[5].length ? model.barriers.get(event[5][1]).changes : [];
  const over = changes.filter((k) => k <= wait.end && roseTo(model, model.events[k], k)).pop();
  if (over === undefined) return "until all have arrived";
  return `until ${lastToCome(model, over)}`;
}

/* What ends a phase: at the event after which the next one has begun. */
function lastToCome(model, over) {
  const event = model.events[over];
  const warp = warpOf(model, event);
  if (event[3] !== "landed" && warp >= 0) return `${warpName(model, warp)} arrives`;
  const arrivalBy = (k) => (model.copies[model.events[k][11]] || { kind: "" }).kind.split("arrival of ")[1];
  if (!arrivalBy(over)) return "the last bytes have come";
  const isSame = (k) => (k === over || (k < over && model.events[k][4] === event[4] - 1)) && arrivalBy(k) === arrivalBy(over);
  const count = model.barriers.get(event[2]).changes.filter(isSame).length;
  return `the ${count > 1 ? `last of ${count} arrivals` : "arrival"} of ${arrivalBy(over)} has come`;
}

function noticeWrite(model, event, n) {
  const read = model.events.findIndex((each, k) => k > n && readsOf(each).some(isIn(rangesOf(event))));
  if (read < 0) return "Nothing reads it in this recording.";
  const reader = model.events[read];
  const [who, does] = reader[0] === "copy" ? [copyName(model, model.copies[reader[2]]), ", which reads it, is issued"]
    : reader[0] === "wgmma" ? ["a wgmma", ", which reads it, is issued"] : [warpName(model, warpOf(model, reader)), " reads it"];
  return `${asSentence(who)}${does} ${laterBy(model, n, read)}, ${orderBetween(model, n, read)}.`;
}

function noticeMeet(model, event, n) {
  const [first] = roundOf(model, n);
  if (first === n) return "No other warp takes part.";
  if (model.events[first][1] === event[1]) return `All come at the same ${timeUnit(model)}.`;
  return `${asSentence(warpName(model, model.events[first][2]))} came first, ${clocksBetween(model, first, n)} before.`;
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
  const where = lines && ` (line${/\D/.test(lines) ? "s" : ""} ${lines})`;
  return `For ${Math.round(100 * share)} % of the store's ${time}, wgmmas of the same warpgroup${where} are in flight.`;
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
