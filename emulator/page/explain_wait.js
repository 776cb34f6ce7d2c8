/* explain_wait.js: why a warp is waiting, in words and links. */

function explainWait(model, number, n) {
  const waits = warpWaits(model, number, n);
  if (!waits.length) return explainRunning(model, number, n);
  return [...explainReport(model, number, n), ...waits.flatMap((wait, i) => {
    const event = model.events[wait.at];
    const [does, what] = isReady(model, number, wait, n) ? ["is", ", ready to go on"] : ["waits", ""];
    const parts = [`${i ? "\n" : ""}${warpName(model, number)}, ${laneNames(wait.mask)}, ${does} at ${stepText(model, event)} since `,
      timeLink(model, wait.begin), `${what}. `];
    if (wait.on[0] === "mbarrier") parts.push(...explainBarrierWait(model, wait, n));
    else parts.push(...explainOtherWait(model, number, wait, n));
    if (wait.end < Infinity) parts.push(" It goes on at ", timeLink(model, wait.end), ".");
    else parts.push(...neverGoesOn(model));
    return parts;
  })];
}

function neverGoesOn(model) {
  const stop = model.findings.find((n) => model.events[n][0] === "fault");
  return hangs(model) ? [" It never goes on."] : stop === undefined ? [" It does not go on in this recording."]
    : [" The kernel was stopped by the fault at ", timeLink(model, stop), "."];
}

/* What a report is about may be over when it comes. */
function explainReport(model, number, n) {
  const event = model.events[n];
  if (!event || !isFinding(event) || event[2] !== number || isHang(event)) return [];
  const { a } = reportAt(model, n);
  const where = placeText(model, placeOf(model, event));
  return isEarlier(model, a, n) ? [`The report is about ${where}, where ${warpName(model, number)} was at `,
    timeLink(model, a.event), ". Now "]
    : [];
}

function explainRunning(model, number, n) {
  const name = warpName(model, number);
  if (model.warps[number].events[0] > n) return [`${name} has not begun.`];
  const running = warpPlaces(model, number, n).filter((group) => group.mask & ~exitedLanes(model, number, n));
  const report = explainReport(model, number, n);
  if (!running.length) return [...report, `${name} has ended.`];
  const group = running[0];
  const isReported = isFinding(model.events[n] || []);
  const [silent] = spansAt(model.warps[number].silent, n);
  const at = [`${laneNames(group.mask)}${isReported || silent ? ", is" : ""} at ${placeText(model, group.place)} since `,
    timeLink(model, group.event), "."];
  if (!silent) return [...report, `${name}${isReported ? ", " : " is not waiting: "}`, ...at];
  return [...report, `${name}, `, ...at, " Its next event is at ", timeLink(model, silent.end),
    ": it computes, or waits for a value, or until it may issue. The recording does not say which."];
}

function explainBarrierWait(model, { on: [, address, parity] }, n) {
  const barrier = model.barriers.get(address);
  const state = barrierState(model, address, n);
  const name = barrierName(model, address);
  if (!state) return [`Nothing has initialised the barrier ${name}.`];
  if (state.parity !== parity) return [`The phase of ${name} is complete, but the warp has not run since.`];
  const parts = [`Phase ${state.phase} of ${name} still needs ${needs(model.events[state.event])}. `];
  const born = barrierBirth(model, barrier, n);
  const arrived = arrivalsAmong(model, barrier.changes.filter((k) => k > born && k <= n && model.events[k][4] === state.phase));
  if (arrived.length && state.pending)
    parts.push("Arrived in this phase: ", ...listOfMoments(arrived), ". ");
  const coming = barrier.copies.map((number) => model.copies[number]).filter((copy) => copy.begin <= n && copy.end > n);
  if (coming.length)
    parts.push("In flight: ", ...listOfMoments(coming.map((copy) => moment(copyName(model, copy), copy.begin))), ". ");
  const counted = barrier.changes.find((k) => k > n && isLandedBy(model, model.events[k], n));
  const landed = counted === undefined ? null : model.copies[model.events[counted][11]];
  if (landed) parts.push(`${asSentence(copyName(model, landed))} has landed, and `, moment("is counted next", counted), ". ");
  else if (state.bytes > 0 && !coming.length) parts.push("No copy that reports to it is in flight. ");
  const ended = barrier.changes.find((k) => k > n && model.events[k][4] > state.phase);
  const missing = arrivalsAmong(model, barrier.changes.filter((k) => k > n && !(k > ended)));
  if (missing.length && state.pending) parts.push("To come: ", ...listOfMoments(missing), ". ");
  if (ended !== undefined) parts.push("The phase completes with ", moment(changeName(model, ended), ended), ".");
  else parts.push(`The phase ${hangs(model) ? "never completes" : "does not complete in this recording"}.`);
  return parts;
}

/* Is this what a barrier counts of a copy that has landed already? */
const isLandedBy = (model, event, n) => countsBytes(event) && model.copies[event[11]].end <= n;

/* Who changes a barrier: a copy that reports its bytes, or a thread. */
function changeName(model, n) {
  const [, , , why, , , , , warp, lane, , copy] = model.events[n];
  return why === "landed" ? `the end of ${copyName(model, model.copies[copy])}` : `${warpName(model, warp)} lane ${lane}`;
}

/* Those of a barrier's changes by which a thread arrives, as links. */
const arrivalsAmong = (model, changes) => changes.filter((k) => model.events[k][8] >= 0 && ["arrive", "drop"].includes(model.events[k][3]))
  .map((k) => moment(`${warpName(model, model.events[k][8])} lane ${model.events[k][9]}`, k));

function explainOtherWait(model, number, wait, n) {
  const opcode = opcodeOf(model, model.events[wait.at]);
  if (opcode.startsWith("setmaxnreg")) return [`${opcode} needs more registers than are free.`];
  if (opcode.startsWith("wgmma.wait_group")) return explainOpen(opcode, "Not done", openWgmmas(model, number, n));
  if (opcode.startsWith("wgmma")) return explainWarpgroup(model, number, opcode, n);
  if (opcode.includes("wait_group") || opcode.includes("wait_all"))
    return explainOpen(opcode, "Not complete", openCopies(model, number, n));
  if (!BAR.test(opcode)) return explainLanes(model, number, wait, n);
  return explainArrivals(model, number, barKind(model, wait), wait, n) || explainLanes(model, number, wait, n);
}

const BAR = /^bar(rier)?\.(?!warp)/;
const barKind = (model, { at }) => (opcodeOf(model, model.events[at]).startsWith("barrier.cluster") ? "cluster_barrier" : "bar");

/* An instruction of a warp, such as bar.warp.sync, needs other lanes of it, and so does every .aligned one. */
function explainLanes(model, number, wait, n) {
  const elsewhere = restOfWarp(model, number, wait.mask, n);
  const opcode = opcodeOf(model, model.events[wait.at]);
  if (!elsewhere.length) return [`${opcode} cannot go on yet: its other lanes have ended.`];
  return [`${opcode} waits for other lanes of the warp: ${elsewhere.join("; ")}.`];
}

/* The four warps of a warpgroup issue a wgmma together. */
function explainWarpgroup(model, number, opcode, n) {
  const place = (warp) => (warpPlaces(model, warp, n)[0] || {}).place;
  const first = number - (number % model.cluster.warps_per_block) % 4;
  const others = [0, 1, 2, 3].map((i) => first + i)
    .filter((warp) => warp !== number && warp < model.warpCount && place(warp) !== place(number));
  if (!others.length) return [`${opcode} needs all four warps of the warpgroup, which are here now.`];
  return [`${opcode} needs all four warps of the warpgroup: ${others.map((warp) => warpAndPlace(model, warp, n)).join("; ")}.`];
}

/* The places of the lanes of a warp that are not in `mask` and have not ended. */
function restOfWarp(model, number, mask, n) {
  const gone = mask | exitedLanes(model, number, n);
  return warpPlaces(model, number, n).filter((group) => group.mask & ~gone)
    .map((group) => `${laneNames(group.mask & ~gone)} at ${placeText(model, group.place)}`);
}

function explainOpen(opcode, word, open) {
  if (!open.length) return [`Everything that ${opcode} waits for is done, but the warp has not run since.`];
  return [`${opcode}. ${word}: `, ...listOfMoments(open), "."];
}

const openCopies = (model, number, n) =>
  model.copies.filter((copy) => copy.warp === number && !copy.barrier && copy.begin <= n && copy.end > n)
    .map((copy) => moment(copyName(model, copy), copy.begin));

const openWgmmas = (model, number, n) =>
  model.wgmmas.filter((wgmma) => wgmma.warp === number && wgmma.begin <= n && wgmma.end > n)
    .map((wgmma) => moment(`wgmma ${wgmma.number}`, wgmma.begin));

const completes = (event) => event[event.length - 1] === 1;
const isSameBarrier = (one, two) => one[0] === two[0] && (one[0] !== "bar" || (one[5] === two[5] && one[6] === two[6]));

/* The arrivals at a barrier that came since it was complete last, up to one of them. */
function roundOf(model, last) {
  const same = model.arrivals.filter((k) => k <= last && isSameBarrier(model.events[k], model.events[last]));
  return same.slice(same.slice(0, -1).findLastIndex((k) => completes(model.events[k])) + 1);
}

/* The arrivals at the barrier that this warp waits at, from the first to the one that completes it. null:
 * it has not arrived: an arrival before the wait is of an earlier barrier, unless it is where the wait begins. */
function generationOf(model, number, kind, wait, n) {
  const isEarly = opcodeOf(model, model.events[wait.at]).startsWith("barrier.cluster.wait");
  const since = isEarly ? 0 : lastUpTo(model.warps[number].events, wait.begin - 1);
  const isMine = (k) => k >= since && model.events[k][0] === kind && model.events[k][2] === number && model.events[k][3] & wait.mask;
  let at = countUpTo(model.arrivals, n) - 1;
  while (at >= 0 && !isMine(model.arrivals[at])) at--;
  if (at < 0) return null;
  const mine = model.events[model.arrivals[at]];
  const isSame = (event) => isSameBarrier(event, mine);
  const found = [];
  for (let i = at; i >= 0; i--) {
    const event = model.events[model.arrivals[i]];
    if (isSame(event) && i < at && completes(event)) break;
    if (isSame(event)) found.unshift(model.arrivals[i]);
  }
  for (let i = at + 1; i < model.arrivals.length && !completes(model.events[found[found.length - 1]]); i++)
    if (isSame(model.events[model.arrivals[i]])) found.push(model.arrivals[i]);
  return { arrivals: found, complete: completes(model.events[found[found.length - 1]]) };
}

/* Who has come to the barrier that this warp waits at, and who has not. */
function explainArrivals(model, number, kind, wait, n) {
  const generation = generationOf(model, number, kind, wait, n);
  if (!generation) return null;
  const { arrivals, complete } = generation;
  const last = arrivals[arrivals.length - 1];
  if (complete && last <= n)
    return ["All have arrived, the last one at ", timeLink(model, last), ", but the warp has not run since."];
  const lanes = (k) => (model.events[k][3] >>> 0 === ALL_LANES ? "" : ` ${laneNames(model.events[k][3])}`);
  const links = arrivals.filter((k) => k <= n).map((k) => moment(warpName(model, model.events[k][2]) + lanes(k), k));
  const parts = ["Arrived: ", ...listOfMoments(links), ". "];
  const missing = complete ? arrivals.filter((k) => k > n).map((k) => warpBefore(model, model.events[k][2], kind, n))
    : notArrived(model, number, kind, n, arrivals);
  if (missing.length) parts.push(`Not arrived: ${missing.slice(0, MOST_LISTED).join("; ")}` +
    (missing.length > MOST_LISTED ? ` and ${missing.length - MOST_LISTED} more.` : "."));
  return parts;
}

/* Where a warp is that has not arrived; it may still be leaving the barrier before, or wait there for its own lanes. */
function warpBefore(model, number, kind, n) {
  const wait = warpWaits(model, number, n).find(({ at }) => BAR.test(opcodeOf(model, model.events[at])));
  const { arrivals = [], complete } = (wait && generationOf(model, number, kind, wait, n)) || {};
  const late = wait && !arrivals.length ? restOfWarp(model, number, wait.mask, n) : [];
  if (late.length) return `${warpName(model, number)} ${late.join("; ")}`;
  return warpAndPlace(model, number, n) + (complete && arrivals[arrivals.length - 1] <= n ? ", still leaving the barrier before" : "");
}

/* From when on a wait lasts only because its warp has not run since: [{begin, end}]. What it waits for is a phase or a barrier. On the
 * clock a warp goes on as soon as an H200 lets it: there is nothing of the kind. */
function readySpans(model, number, wait) {
  if (timeUnit(model) === "clock") return [];
  const end = Math.min(wait.end, model.events.length);
  const [kind, address, parity] = wait.on;
  const phases = kind !== "mbarrier" || !model.barriers.has(address) ? []
    : barrierPhases(model, model.barriers.get(address), { first: wait.begin, last: end }).filter(({ phase }) => (phase & 1) !== parity);
  const bar = kind === undefined && BAR.test(opcodeOf(model, model.events[wait.at])) &&
    generationOf(model, number, barKind(model, wait), wait, end - 1);
  const met = bar && bar.complete ? [{ begin: bar.arrivals[bar.arrivals.length - 1], end }] : [];
  return [...phases, ...met].map((span) => ({ begin: Math.max(wait.begin, span.begin), end: Math.min(end, span.end) }))
    .filter((span) => timeOf(model, span.end) - timeOf(model, span.begin) > 2);
}

/* Those of a warp. */
function readyOf(model, warp) {
  if (!warp.ready)
    warp.ready = indexSpans(warp.waits.flatMap((wait) => readySpans(model, warp.number, wait)).sort((a, b) => a.begin - b.begin));
  return warp.ready;
}

const isReady = (model, number, wait, n) => readySpans(model, number, wait).some(({ begin, end }) => begin <= n && n < end);

/* Nobody ever completes the barrier: the warps and lanes that could. Those that have ended, where it is only
 * they: a barrier of a block does not wait for them. */
function notArrived(model, number, kind, n, arrivals) {
  const perBlock = model.cluster.warps_per_block;
  const first = kind === "bar" ? Math.floor(number / perBlock) * perBlock : 0;
  const count = kind === "bar" ? perBlock : model.warpCount;
  const arrived = new Array(first + count).fill(0);
  for (const k of arrivals) arrived[model.events[k][2]] |= model.events[k][3];
  const warps = Array.from({ length: count }, (_, i) => first + i);
  const running = warps.flatMap((warp) => {
    if (!arrived[warp] && model.warps[warp].events[0] > n) return [warpAndPlace(model, warp, n)];
    return restOfWarp(model, warp, arrived[warp], n).map((lanes) => `${warpName(model, warp)} ${lanes}`);
  });
  return running.length ? running : warps.filter((warp) => !arrived[warp]).map((warp) => warpAndPlace(model, warp, n));
}

function warpAndPlace(model, number, n) {
  const group = warpPlaces(model, number, n).find((each) => each.mask & ~exitedLanes(model, number, n));
  const where = group ? ` at ${placeText(model, group.place)}` : model.warps[number].events[0] > n ? " has not begun" : " has ended";
  return warpName(model, number) + where;
}
