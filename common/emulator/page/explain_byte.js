/* explain_byte.js: who wrote this byte, and what is it? */

function explainByte(model, address, n) {
  const offset = offsetOf(address);
  const cell = address - (address % CELL_BYTES);
  const barrier = model.barriers.get(address - (address % BARRIER_BYTES));
  if (barrier && countUpTo(barrier.changes, n)) return explainBarrierByte(model, barrier, n);
  const parts = [`${addressName(model, address)} (offset ${offset}, bank ${(offset >> 2) % 32}): `];
  const last = byteAt(model, address, n);
  const flights = cellFlights(model, cell, n).filter((number) => !last || model.events[last.event][2] !== `c${number}`);
  for (const number of flights) {
    const copy = model.copies[number];
    parts.push("undefined now: ", moment(copyName(model, copy), copy.begin), " is under way and ",
      copy.end < Infinity ? "lands at " : "never lands. ");
    if (copy.end < Infinity) parts.push(moment(`event ${copy.end}`, copy.end), ". ");
  }
  if (flights.length && last) parts.push("Before: ");
  if (!last) return [...parts, "never written so far.", ...announceBarrier(barrier)];
  const event = model.events[last.event];
  parts.push(`value 0x${last.value.toString(16).padStart(2, "0")}, written by ${authorName(model, event[2])} at `,
    moment(`event ${last.event}`, last.event), ". ");
  parts.push(...explainElement(model, event, address));
  return parts;
}

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
      moment(`event ${birth}`, birth), `, ${placeText(model, placeOf(model, event))}`);
  }
  if (!state.alive) return [...parts, ", and invalidated at ", moment(`event ${state.event}`, state.event), "."];
  return [...parts, `. Now: ${describeBarrier(state)}, since `, moment(`event ${state.event}`, state.event), "."];
}

const describeBarrier = (state) => `phase ${state.phase} (parity ${state.parity}), ` +
  `${state.pending} of ${plural(state.expected, "arrival")} and ${plural(state.bytes, "byte")} pending`;

function announceBarrier(barrier) {
  const birth = barrier ? barrier.changes[0] : -1;
  return birth >= 0 ? [" An mbarrier is initialised here at ", moment(`event ${birth}`, birth), "."] : [];
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

/* "T0: f16, 512 x 256, box 64 x 32, 128-byte swizzle" */
function tensorText(tensor, name) {
  const swizzle = tensor.swizzle ? `, ${tensor.swizzle}-byte swizzle` : "";
  return `${name}: ${tensor.type}, ${tensor.dims.join(" x ")}, box ${tensor.box.join(" x ")}${swizzle}`;
}
