/* explain_byte.js: who wrote this byte, and what is it? */

function explainByte(model, address, n) {
  const offset = offsetOf(address);
  const cell = address - (address % CELL_BYTES);
  const parts = [`${addressName(model, address)} (offset ${offset}, bank ${(offset >> 2) % 32}): `];
  for (const number of cellFlights(model, cell, n)) {
    const copy = model.copies[number];
    parts.push("undefined now, for ", moment(copyName(model, copy), copy.begin), " will write it",
      copy.end < Infinity ? " at " : "; it never lands. ");
    if (copy.end < Infinity) parts.push(moment(`event ${copy.end}`, copy.end), ". ");
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

/* "T0: f16, 512 x 256, box 64 x 32, 128-byte swizzle" */
function tensorText(tensor, name) {
  const swizzle = tensor.swizzle ? `, ${tensor.swizzle}-byte swizzle` : "";
  return `${name}: ${tensor.type}, ${tensor.dims.join(" x ")}, box ${tensor.box.join(" x ")}${swizzle}`;
}
