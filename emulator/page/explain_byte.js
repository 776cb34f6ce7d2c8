/* explain_byte.js: who wrote this byte, and what is it? */

function explainByte(model, address, n) {
  const offset = offsetOf(address);
  const cell = address - (address % CELL_BYTES);
  const barrier = model.barriers.get(address - (address % BARRIER_BYTES));
  if (barrier && countUpTo(barrier.changes, n)) return explainBarrierByte(model, barrier, n);
  const parts = [`${byteName(model, address)} (offset ${offset}, bank ${(offset >> 2) % 32}): `];
  const last = byteAt(model, address, n);
  const flights = cellFlights(model, cell, n).filter((number) => !last || model.events[last.event][2] !== `c${number}`);
  for (const number of flights) {
    const copy = model.copies[number];
    parts.push("undefined now: ", moment(copyName(model, copy), copy.begin), " is under way and ",
      copy.end < Infinity ? "lands at " : "does not land in this recording. ");
    if (copy.end < Infinity) parts.push(timeLink(model, copy.end), ". ");
  }
  if (flights.length && last) parts.push("Before: ");
  if (!last) return [...parts, "never written so far.", ...announceBarrier(model, barrier)];
  const event = model.events[last.event];
  parts.push(`value 0x${hexByte(last.value)}, written by ${authorName(model, event[2])} at `,
    timeLink(model, last.event), ". ");
  parts.push(...explainElement(model, event[2], address, last.event, n));
  return parts;
}

/* "byte 48 of box[1], stage 1" */
function byteName(model, address) {
  const found = nameAt(model, offsetOf(address));
  if (!found) return addressName(model, address);
  return `byte ${found.inside.toLocaleString("en-US")} of ${found.name}${indexWords(model, found.name)}${blockSuffix(model, address)}`;
}

/* What an index counts is in the source: the variable that all its lines have there. */
function indexWords({ recording }, name) {
  const [, array, index] = /^(\w+)\[(\d+)\]/.exec(name) || [];
  if (!array) return "";
  const text = linesOfFile(recording, kernelFile(recording)).join("\n");
  const used = new Set([...text.matchAll(new RegExp(`\\b${array}\\[([a-z]\\w+)\\]`, "g"))].map(([, word]) => word));
  return used.size === 1 ? `, ${[...used][0]} ${index}` : "";
}

const hexByte = (value) => value.toString(16).padStart(2, "0");

/* No thread may read a live barrier's bytes, so only its state is shown. */
function explainBarrierByte(model, barrier, n) {
  const birth = barrierBirth(model, barrier, n);
  const state = barrierState(model, barrier.address, n);
  const at = addressName(model, barrier.address);
  const name = barrierName(model, barrier.address);
  const parts = [`${at} (offset ${offsetOf(barrier.address)}) is ${at === name ? "an mbarrier" : name}`];
  if (birth >= 0) {
    const event = model.events[birth];
    parts.push(`, initialised for ${plural(event[6], "arrival")} by ${warpName(model, event[8])} lane ${event[9]} at `,
      timeLink(model, birth), `, ${placeText(model, placeOf(model, event))}`);
  }
  if (!state.alive) return [...parts, ", and invalidated at ", timeLink(model, state.event), "."];
  return [...parts, `. Now: ${describeBarrier(state)}, since `, timeLink(model, state.event), "."];
}

const describeBarrier = (state) => `phase ${state.phase} (parity ${state.parity}), ` +
  `${state.pending} of ${plural(state.expected, "arrival")} and ${plural(state.bytes, "byte")} pending`;

function announceBarrier(model, barrier) {
  const birth = barrier ? barrier.changes[0] : -1;
  return birth >= 0 ? [" An mbarrier is initialised here at ", timeLink(model, birth), "."] : [];
}

/* Which element of which tensor a byte is, by the copy that brought it or the one that is going to take it away. */
function explainElement(model, author, address, written, n) {
  const takes = (copy) => copy.tensor && copy.begin >= written &&
    copy.reads.some(([from, bytes]) => address >= from && address < from + bytes);
  const copy = author[0] === "c" ? model.copies[Number(author.slice(1))] : model.copies.find(takes);
  const element = copy && elementAt(copy, address);
  if (!element) return [];
  const { tensor } = copy;
  const bytes = Array.from({ length: tensor.element_bytes }, (_, i) => byteAt(model, address - element.byte + i, n));
  const value = bytes.every(Boolean) ? elementValue(tensor.type, bytes.map((byte) => byte.value)) : null;
  const bits = bytes.map((byte) => (byte ? hexByte(byte.value) : "??")).reverse().join("");
  return [`It is byte ${element.byte} of ${quoted(tensorName(model, tensor))} at ${coordinatesText(element.coordinates)}` +
    (element.inside ? "" : ", outside the tensor: fill") + `: ${value === null ? "" : `${value}, `}${tensor.type} 0x${bits}` +
    `; row ${element.row} of the box, 16-byte chunk ${element.chunk}` +
    (tensor.swizzle ? `, placed by the ${tensor.swizzle}-byte swizzle.` : ".")];
}

/* "A: f16, 512 x 256 in boxes of 64 x 32, 128-byte swizzle": rows x columns */
function tensorText(tensor, name) {
  const swizzle = tensor.swizzle ? `, ${tensor.swizzle}-byte swizzle` : "";
  return `${name}: ${tensor.type}, ${shapeText(tensor.dims)} in boxes of ${shapeText(tensor.box)}${swizzle}`;
}
