/* explain.js: events and states in words. Every answer is a list of parts: a string, or a link
 * {text, event} that leads to another moment. */

const moment = (text, event) => ({ text, event });

/* What a unit of time is. */
const timeUnit = (model) => (model.recording.header.clock && !model.inRun ? "clock" : "instruction");

const timeOf = (model, n) => model.events[Math.min(n, model.events.length - 1)][1];
const timeText = (model, n) => `${timeUnit(model)} ${timeOf(model, n).toLocaleString("en-US")}`;
const timeLink = (model, n) => moment(timeText(model, n), n);

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

const MOST_LISTED = 6;

/* Links with commas between them; what goes beyond is counted. */
function listOfMoments(moments) {
  const parts = moments.slice(0, MOST_LISTED).flatMap((each, i) => (i ? [", ", each] : [each]));
  return moments.length > MOST_LISTED ? [...parts, ` and ${moments.length - MOST_LISTED} more`] : parts;
}

/* What a copy writes; of its own block without the block's name. */
function targetName(model, { warp, writes: [[address]] }) {
  const isAtHome = rankOf(address) === blockOfWarp(model, warp);
  return isAtHome ? placeName(model, address) : addressName(model, address);
}

function copyName(model, copy) {
  const tile = copy.tensor
    ? ` of ${quoted(tensorName(model, copy.tensor))} at ${coordinatesText(copy.tensor.at)}` : "";
  return `the ${copy.kind}${tile}${copy.writes.length ? ` into ${targetName(model, copy)}` : ""}`;
}

function authorName(model, author) {
  if (author === "mbarrier") return "mbarrier.inval";
  if (author === "poison") return "no thread: a copy in flight left it undefined";
  const number = Number(author.slice(1));
  return author[0] === "w" ? warpName(model, number) : copyName(model, model.copies[number]);
}

const BARRIER_CHANGES = {
  init: "initialised", inval: "invalidated", expect: "bytes expected", arrive: "arrival",
  drop: "arrival that drops out", pending: "one more arrival announced",
  complete_tx: "bytes counted by a thread", landed: "a copy reports",
};

const DESCRIBE = {
  step: (model, e) => `${warpName(model, e[2])}, ${laneNames(e[3])}: ${stepText(model, e)}`,
  wait: (model, e) => `${warpName(model, e[2])} waits: ${waitText(model, e)}`,
  woke: (model, e) => `${warpName(model, e[2])} goes on`,
  observed: (model, e) => `${warpName(model, e[2])}: ${laneNames(e[3])} learned that ${barrierName(model, e[5])} has ` +
    `completed ${e[6] < 0 ? "the phase before its first" : `phase ${e[6]}`}`,
  exit: (model, e) => `${warpName(model, e[2])}: ${laneNames(e[3])} ended`,
  fence: (model, e) => `${warpName(model, e[2])}: ${opcodeOf(model, e)}`,
  commit: (model, e) => `${warpName(model, e[2])} commits a ${e[5]} group`,
  awaited: (model, e) => `${warpName(model, e[2])}: at most ${plural(e[6], e[5] + " group")} pending` +
    (e[7] ? ", sources read" : ""),
  bar: (model, e) => `${warpName(model, e[2])} arrives at ${barName(model, e)}: ${plural(e[7], "thread")}` +
    (e[8] ? ", complete" : ""),
  cluster_barrier: (model, e) => `${warpName(model, e[2])} arrives at the cluster barrier: ` +
    plural(e[5], "thread") + (e[6] ? ", complete" : ""),
  shared: (model, e) => `${warpName(model, e[2])}: ${laneNames(e[3])} ${sharedVerb(e[5])} ${e[6]} bytes each ` +
    `at ${addressName(model, e[8][0][0])}, ${plural(e[7], "pass")}`,
  copy: (model, e) => `${warpName(model, e[3])} issues ${copyName(model, model.copies[e[2]])}, ` +
    plural(e[7], "byte") + (e[8] ? ` reported to ${barrierName(model, e[8])}` : ""),
  source: (model, e) => `${copyName(model, model.copies[e[2]])}: its source has been read`,
  landed: (model, e) => `${copyName(model, model.copies[e[2]])} is complete`,
  mbarrier: (model, e) => `${barrierName(model, e[2])}: ${BARRIER_CHANGES[e[3]]}; phase ${e[4]}, ` +
    `${e[5]} of ${plural(e[6], "arrival")} and ${plural(e[7], "byte")} pending`,
  wgmma: (model, e) => `${warpName(model, e[3])} issues its share of ${opcodeOf(model, e)}${wgmmaReads(model, e)}`,
  wgmma_done: (model, e) => `${warpName(model, model.wgmmas[e[2]].warp)}: a wgmma is done, accumulators ${e[3]}`,
  bytes: (model, e) => `${plural(base64Length(e[4]), "byte")} at ${addressName(model, e[3])} written by ` +
    authorName(model, e[2]),
  finding: describeReport,
  fault: describeReport,
};

const isEarlier = (model, { event }, n) => event >= 0 && model.events[event][1] < model.events[n][1];

/* A report may come later than what it is about: when the other side begins. */
function describeReport(model, e, n) {
  const { a, b } = reportAt(model, n);
  const did = asSentence(a.did);
  if (isHang(e)) return `${did} forever. This is reported as ${e[5]}.`;
  if (!isEarlier(model, a, n)) return `${did}. This is reported as ${e[5]}.`;
  const isOther = b && b.event >= 0 && model.events[b.event][1] === e[1];
  return `At ${timeText(model, a.event)}: ${a.did}. This is reported now${isOther ? `, when ${b.did},` : ""} as ${e[5]}.`;
}

/* A barrier by its call in the source, else by its number. */
function barName(model, event) {
  const { file, line } = placeOf(model, event);
  const isCall = file >= 0 && /__syncthreads\(\)/.test(linesOfFile(model.recording, file)[line - 1]);
  return isCall ? `__syncthreads() (line ${line})` : `barrier ${event[6]}`;
}

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
    return `for the phase of parity ${event[5][2]} of ${barrierName(model, event[5][1])}${event[6] ? `; it asks ${event[6]} times` : ""}`;
  return opcodeOf(model, event);
}

/* One line for one event. */
function describeEvent(model, n) {
  const event = model.events[n];
  return event ? DESCRIBE[event[0]](model, event, n) : "the beginning";
}
