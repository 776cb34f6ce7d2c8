/* explain.js: events and states in words. Every answer is a list of parts: a string, or a link
 * {text, event} that leads to another moment. */

const moment = (text, event) => ({ text, event });

function placeText(model, place) {
  if (!place) return "";
  if (place.file < 0) return place.text;
  return `${fileName(model, place.file)}:${place.line}`;
}

function fileName(model, file) {
  return model.recording.files[file].path.replace(/^.*\//, "");
}

const plural = (count, word) =>
  `${count.toLocaleString("en-US")} ${word}${count === 1 ? "" : word.endsWith("s") ? "es" : "s"}`;

/* Links with commas between them; what goes beyond `most` is counted. */
function listOfMoments(moments, most = 6) {
  const parts = moments.slice(0, most).flatMap((each, i) => (i ? [", ", each] : [each]));
  return moments.length > most ? [...parts, ` and ${moments.length - most} more`] : parts;
}

function copyName(model, copy) {
  const tile = copy.tensor
    ? ` of ${tensorName(model, copy.tensor)} at (${copy.tensor.at.join(", ")})` : "";
  return `copy ${copy.number}, ${copy.kind}${tile}`;
}

function authorName(model, author) {
  if (author === "mbarrier") return "mbarrier.inval";
  if (author === "poison") return "nobody: a copy in flight left it undefined";
  const number = Number(author.slice(1));
  return author[0] === "w" ? warpName(model, number) : copyName(model, model.copies[number]);
}

const BARRIER_CHANGES = {
  init: "initialised", inval: "invalidated", expect: "bytes expected", arrive: "arrival",
  drop: "arrival that drops out", pending: "one more arrival announced",
  complete_tx: "bytes counted by a thread", landed: "a copy reports",
};

const DESCRIBE = {
  step: (model, e) => [`${warpName(model, e[2])}, ${laneNames(e[3])}: ${stepText(model, e)}`],
  wait: (model, e) => [`${warpName(model, e[2])} waits: ${waitText(model, e)}`],
  woke: (model, e) => [`${warpName(model, e[2])} goes on`],
  exit: (model, e) => [`${warpName(model, e[2])}: ${laneNames(e[3])} ended`],
  fence: (model, e) => [`${warpName(model, e[2])}: ${opcodeOf(model, e)}`],
  commit: (model, e) => [`${warpName(model, e[2])} commits a ${e[5]} group`],
  awaited: (model, e) => [`${warpName(model, e[2])}: at most ${plural(e[6], e[5] + " group")} pending` +
    (e[7] ? ", sources read" : "")],
  bar: (model, e) => [`${warpName(model, e[2])} arrives at barrier ${e[6]}: ${plural(e[7], "thread")}` +
    (e[8] ? ", complete" : "")],
  cluster_barrier: (model, e) => [`${warpName(model, e[2])} arrives at the cluster barrier: ` +
    plural(e[5], "thread") + (e[6] ? ", complete" : "")],
  shared: (model, e) => [`${warpName(model, e[2])}: ${laneNames(e[3])} ${sharedVerb(e[5])} ${e[6]} bytes each ` +
    `at ${addressName(model, e[8][0][0])}, ${plural(e[7], "pass")}`],
  copy: (model, e) => [`${warpName(model, e[3])} issues ${copyName(model, model.copies[e[2]])}, ` +
    plural(e[7], "byte") + (e[8] ? ` reported to ${barrierName(model, e[8])}` : "")],
  source: (model, e) => [`${copyName(model, model.copies[e[2]])}: its source has been read`],
  landed: (model, e) => [`${copyName(model, model.copies[e[2]])} is complete`],
  mbarrier: (model, e) => [`${barrierName(model, e[2])}: ${BARRIER_CHANGES[e[3]]}; phase ${e[4]}, ` +
    `${e[5]} of ${plural(e[6], "arrival")} and ${plural(e[7], "byte")} pending`],
  wgmma: (model, e) => [`${warpName(model, e[3])} issues its share of ${opcodeOf(model, e)}${wgmmaReads(model, e)}`],
  wgmma_done: (model, e) => [`${warpName(model, model.wgmmas[e[2]].warp)}: a wgmma is done, accumulators ${e[3]}`],
  bytes: (model, e) => [`${plural(base64Length(e[4]), "byte")} at ${addressName(model, e[3])} written by ` +
    authorName(model, e[2])],
  finding: (model, e) => [`FINDING ${e[5]}`],
  fault: (model, e) => [`FAULT ${e[5]}`],
};

const sharedVerb = (access) => (access === "read" ? "read" : access === "write" ? "write" : "update");

/* The opcode without the guard in front of it. */
function opcodeOf(model, event) {
  const place = placeOf(model, event);
  return place ? place.text.replace(/^@!?%\w+\s*/, "").split(/[\s;]/)[0] : event[0];
}

/* " with A at tile and B at tile+8,192": A is missing where it comes from registers. */
function wgmmaReads(model, event) {
  const names = event[5].length > 1 ? ["A", "B"] : ["B"];
  return event[5].map(([address], i) => `${i ? " and" : ", reads"} ${names[i]} at ${addressName(model, address)}`).join("");
}

function stepText(model, event) {
  const place = placeOf(model, event);
  const inner = place.inner_file >= 0 ? ` (in ${fileName(model, place.inner_file)}:${place.inner_line})` : "";
  return placeText(model, place) + inner;
}

function waitText(model, event) {
  if (event[5][0] === "mbarrier")
    return `for the phase of parity ${event[5][2]} of ${barrierName(model, event[5][1])}`;
  return opcodeOf(model, event);
}

/* One line for one event. */
function describeEvent(model, n) {
  const event = model.events[n];
  return event ? DESCRIBE[event[0]](model, event)[0] : "the beginning";
}

/* ---- Why is this warp waiting? ---- */
function explainWait(model, number, n) {
  const waits = warpWaits(model, number, n);
  if (!waits.length) return explainRunning(model, number, n);
  return waits.flatMap((wait) => {
    const event = model.events[wait.begin];
    const parts = [`${warpName(model, number)}, ${laneNames(wait.mask)}, waits at ${stepText(model, event)} since `,
      moment(`event ${wait.begin}`, wait.begin), `. `];
    if (event[5][0] === "mbarrier") parts.push(...explainBarrierWait(model, event, n));
    else parts.push(...explainOtherWait(model, number, event, n));
    if (wait.end < Infinity) parts.push(" It goes on at ", moment(`event ${wait.end}`, wait.end), ".");
    else parts.push(" It never goes on.");
    return parts;
  });
}

function explainRunning(model, number, n) {
  const name = warpName(model, number);
  if (model.warps[number].events[0] > n) return [`${name} has not begun.`];
  const running = warpPlaces(model, number, n).filter((group) => group.mask & ~exitedLanes(model, number, n));
  if (!running.length) return [`${name} has ended.`];
  const group = running[0];
  return [`${name} is not waiting: ${laneNames(group.mask)} at ${placeText(model, group.place)} since `,
    moment(`event ${group.event}`, group.event), "."];
}

function explainBarrierWait(model, event, n) {
  const [, address, parity] = event[5];
  const barrier = model.barriers.get(address);
  const state = barrierState(model, address, n);
  const name = barrierName(model, address);
  if (!state) return [`Nothing has initialised the barrier ${name}.`];
  if (state.parity !== parity) return [`The phase of ${name} is complete, but the warp has not run since.`];
  const parts = [`Phase ${state.phase} of ${name} still needs ${plural(state.pending, "arrival")} and ` +
    `${plural(state.bytes, "byte")}. `];
  const arrived = arrivalsInPhase(model, barrier, state.phase, n);
  if (arrived.length && state.pending)
    parts.push("Arrived in this phase: ", ...listOfMoments(arrived), ". ");
  const coming = barrier.copies.map((number) => model.copies[number]).filter((copy) => copy.begin <= n && copy.end > n);
  if (coming.length)
    parts.push("In flight: ", ...listOfMoments(coming.map((copy) => moment(copyName(model, copy), copy.begin))), ". ");
  else if (state.bytes > 0) parts.push("No copy that reports to it is in flight. ");
  const ended = barrier.changes.find((k) => k > n && model.events[k][4] > state.phase);
  const missing = arrivalsToCome(model, barrier, n, ended);
  if (missing.length && state.pending) parts.push("To come: ", ...listOfMoments(missing), ". ");
  if (ended !== undefined) parts.push("The phase completes at ", moment(`event ${ended}`, ended), ".");
  else parts.push("The phase never completes.");
  return parts;
}

/* Who has arrived at a barrier in its running phase, as links. */
function arrivalsInPhase(model, barrier, phase, n) {
  const found = [];
  for (let i = countUpTo(barrier.changes, n) - 1; i >= 0 && model.events[barrier.changes[i]][4] === phase; i--)
    found.unshift(barrier.changes[i]);
  return arrivalsAmong(model, found);
}

/* Who arrives after n, until the phase ends at the event `ended`. */
function arrivalsToCome(model, barrier, n, ended) {
  return arrivalsAmong(model, barrier.changes.filter((k) => k > n && !(k > ended)));
}

const arrivalsAmong = (model, changes) => changes.filter((k) => model.events[k][8] >= 0 && ["arrive", "drop"].includes(model.events[k][3]))
  .map((k) => moment(`${warpName(model, model.events[k][8])} lane ${model.events[k][9]}`, k));

function explainOtherWait(model, number, event, n) {
  const opcode = opcodeOf(model, event);
  if (opcode.startsWith("wgmma")) return explainOpen(opcode, "Not done", openWgmmas(model, number, n));
  if (opcode.includes("wait_group") || opcode.includes("wait_all"))
    return explainOpen(opcode, "Not complete", openCopies(model, number, n));
  const kind = opcode.startsWith("barrier.cluster") ? "cluster_barrier" : "bar";
  const arrived = /^bar/.test(opcode) ? explainArrivals(model, number, kind, n) : null;
  return arrived || [`${opcode} cannot go on yet.`];
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

/* The arrivals at the barrier that this warp waits at, from the first to the one that completes it. null:
 * it has not arrived. */
function generationOf(model, number, kind, n) {
  const isMine = (k) => model.events[k][0] === kind && model.events[k][2] === number;
  let at = countUpTo(model.arrivals, n) - 1;
  while (at >= 0 && !isMine(model.arrivals[at])) at--;
  if (at < 0) return null;
  const mine = model.events[model.arrivals[at]];
  const isSame = (event) => event[0] === kind && (kind !== "bar" || (event[5] === mine[5] && event[6] === mine[6]));
  const completes = (event) => event[event.length - 1] === 1;
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
function explainArrivals(model, number, kind, n) {
  const generation = generationOf(model, number, kind, n);
  if (!generation) return null;
  const { arrivals, complete } = generation;
  const last = arrivals[arrivals.length - 1];
  if (complete && last <= n)
    return ["All have arrived, the last one at ", moment(`event ${last}`, last), ", but the warp has not run since."];
  const links = arrivals.filter((k) => k <= n).map((k) => moment(warpName(model, model.events[k][2]), k));
  const parts = ["Arrived: ", ...listOfMoments(links), ". "];
  const missing = complete ? arrivals.filter((k) => k > n).map((k) => model.events[k][2])
    : othersThatRun(model, number, kind, n, arrivals);
  if (missing.length) parts.push(`Not arrived: ${missing.slice(0, 6).map((w) => warpAndPlace(model, w, n)).join("; ")}` +
    (missing.length > 6 ? ` and ${missing.length - 6} more.` : "."));
  return parts;
}

/* Nobody ever completes the barrier: the warps that could, and those that have ended without it. */
function othersThatRun(model, number, kind, n, arrivals) {
  const perBlock = model.cluster.warps_per_block;
  const first = kind === "bar" ? Math.floor(number / perBlock) * perBlock : 0;
  const count = kind === "bar" ? perBlock : model.warpCount;
  const arrived = new Set(arrivals.map((k) => model.events[k][2]));
  return Array.from({ length: count }, (_, i) => first + i).filter((warp) => !arrived.has(warp));
}

function warpAndPlace(model, number, n) {
  const group = warpPlaces(model, number, n).find((each) => each.mask & ~exitedLanes(model, number, n));
  const where = group ? ` at ${placeText(model, group.place)}` : model.warps[number].events[0] > n ? " has not begun" : " has ended";
  return warpName(model, number) + where;
}
