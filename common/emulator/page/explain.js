/* explain.js: events and states in words. Every answer is a list of parts: a string, or a link
 * {text, event} that leads to another moment. */

const hexAddress = (model, address) => addressName(model, address);
const moment = (text, event) => ({ text, event });

function placeText(model, place) {
  if (!place) return "";
  if (place.file < 0) return `PTX line ${place.ptx_line}`;
  return `${fileName(model, place.file)}:${place.line}`;
}

function fileName(model, file) {
  return model.recording.files[file].path.replace(/^.*\//, "");
}

const plural = (count, word) => `${count.toLocaleString("en-US")} ${word}${count === 1 ? "" : "s"}`;

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
    `at ${hexAddress(model, e[8][0][0])}, ${plural(e[7], "pass").replace("passs", "passes")}`],
  copy: (model, e) => [`${warpName(model, e[3])} issues ${copyName(model, model.copies[e[2]])}, ` +
    plural(e[7], "byte") + (e[8] ? ` reported to ${hexAddress(model, e[8])}` : "")],
  source: (model, e) => [`${copyName(model, model.copies[e[2]])}: its source has been read`],
  landed: (model, e) => [`${copyName(model, model.copies[e[2]])} is complete`],
  mbarrier: (model, e) => [`${hexAddress(model, e[2])}: ${BARRIER_CHANGES[e[3]]}; phase ${e[4]}, ` +
    `${e[5]} of ${plural(e[6], "arrival")} and ${plural(e[7], "byte")} pending`],
  wgmma: (model, e) => [`${warpName(model, e[3])} issues its share of a wgmma`],
  wgmma_done: (model, e) => [`${warpName(model, model.wgmmas[e[2]].warp)}: a wgmma is done, accumulators ${e[3]}`],
  bytes: (model, e) => [`${plural(base64Length(e[4]), "byte")} at ${hexAddress(model, e[3])} written by ` +
    authorName(model, e[2])],
  finding: (model, e) => [`FINDING ${e[5]}`],
  fault: (model, e) => [`FAULT ${e[5]}`],
};

const sharedVerb = (access) => (access === "read" ? "read" : access === "write" ? "write" : "update");

function opcodeOf(model, event) {
  const place = placeOf(model, event);
  return place ? place.text.split(/[\s;]/)[0].replace(/^@!?%\w+/, "") : event[0];
}

function stepText(model, event) {
  const place = placeOf(model, event);
  const inner = place.inner_file >= 0 ? ` (in ${fileName(model, place.inner_file)}:${place.inner_line})` : "";
  return placeText(model, place) + inner;
}

function waitText(model, event) {
  if (event[5][0] === "mbarrier")
    return `for parity ${event[5][2]} of ${hexAddress(model, event[5][1])}`;
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
  if (exitedLanes(model, number, n) && !warpPlaces(model, number, n).length) return ["It has ended."];
  return [`${warpName(model, number)} is not waiting at this moment.`];
}

function explainBarrierWait(model, event, n) {
  const [, address, parity] = event[5];
  const state = barrierState(model, address, n);
  const name = hexAddress(model, address);
  if (!state) return [`The barrier ${name} has not been initialised.`];
  if (state.parity !== parity) return [`The phase of ${name} is over; the warp has not run since.`];
  const parts = [`Phase ${state.phase} of ${name} lacks ${plural(state.pending, "arrival")} and ${plural(state.bytes, "byte")}. `];
  const coming = model.barriers.get(address).copies.map((number) => model.copies[number])
    .filter((copy) => copy.issued <= n && copy.landed > n);
  if (coming.length) {
    parts.push("On their way: ");
    coming.forEach((copy, i) => parts.push(i ? ", " : "", moment(copyName(model, copy), copy.issued)));
    parts.push(". ");
  } else if (state.bytes > 0) {
    parts.push("No copy for it is in flight. ");
  }
  const ended = model.barriers.get(address).changes.find((k) => k > n && model.events[k][4] > state.phase);
  if (ended !== undefined) parts.push("The phase completes at ", moment(`event ${ended}`, ended), ".");
  else parts.push("The phase never completes.");
  return parts;
}

function explainOtherWait(model, number, event, n) {
  const opcode = opcodeOf(model, event);
  if (opcode.includes("wait_group") || opcode.includes("wait_all")) {
    const open = model.copies.filter((copy) => copy.warp === number && !copy.barrier && copy.issued <= n && copy.landed > n);
    const parts = [`${opcode}: `];
    if (!open.length) return [...parts, "its operations are done."];
    open.forEach((copy, i) => parts.push(i ? ", " : "not complete: ", moment(copyName(model, copy), copy.issued)));
    return [...parts, "."];
  }
  const last = lastUpTo(model.arrivals, n);
  if (last >= 0 && (opcode.startsWith("bar") || opcode.startsWith("barrier")))
    return [`${opcode}. The last arrival: `, moment(describeEvent(model, last), last), "."];
  return [`${opcode} cannot go on yet.`];
}

/* ---- Who wrote this byte? ---- */
function explainByte(model, address, n) {
  const offset = offsetOf(address);
  const cell = address - (address % CELL_BYTES);
  const parts = [`${hexAddress(model, address)} (offset ${offset}, bank ${(offset >> 2) % 32}): `];
  for (const number of cellFlights(model, cell, n)) {
    const copy = model.copies[number];
    parts.push("undefined now, for ", moment(copyName(model, copy), copy.issued), " will write it",
      copy.landed < Infinity ? " at " : "; it never lands. ");
    if (copy.landed < Infinity) parts.push(moment(`event ${copy.landed}`, copy.landed), ". ");
  }
  const last = byteAt(model, address, n);
  if (!last) return [...parts, "never written so far."];
  const event = model.events[last.event];
  parts.push(`value 0x${last.value.toString(16).padStart(2, "0")}, written by ${authorName(model, event[2])} at `,
    moment(`event ${last.event}`, last.event), ". ");
  parts.push(...explainElement(model, event, address));
  return parts;
}

function explainElement(model, event, address) {
  if (event[2][0] !== "c") return [];
  const copy = model.copies[Number(event[2].slice(1))];
  const element = elementAt(copy, address);
  if (!element) return [];
  const at = element.coordinates.join(", ");
  const tensor = copy.tensor;
  return [`It is byte ${element.byte} of element (${at}) of ${tensorName(model, tensor)} (${tensor.type})` +
    (element.inside ? "" : ", outside the tensor: fill") +
    `; row ${element.row} of the box, 16-byte chunk ${element.chunk}` +
    (tensor.swizzle ? `, placed by the ${tensor.swizzle}-byte swizzle.` : ".")];
}
