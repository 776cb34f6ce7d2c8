/* tensors.js: the tensors of a cluster: their names, and which element a byte of shared memory is. */

function swizzled(span, address) {
  const bits = span === 128 ? 0x70 : span === 64 ? 0x30 : span ? 0x10 : 0;
  return address ^ ((address >> 3) & bits);
}

/* Which element of its tensor a byte of shared memory belongs to, if this copy moves it:
 * {coordinates, inside, row, chunk, byte}; null: the layout is not a plain box. */
function elementAt(copy, address) {
  const tensor = copy.tensor;
  if (!tensor || tensor.im2col || tensor.interleave) return null;
  const start = offsetOf(tensor.start);
  const logical = swizzled(tensor.swizzle, offsetOf(address)) - start;
  if (logical < 0) return null;
  const inner = tensor.box[0] * tensor.element_bytes;
  const pitch = tensor.swizzle && inner < tensor.swizzle ? tensor.swizzle : inner;
  const inRow = logical % pitch;
  if (inRow >= inner) return null;
  let row = Math.floor(logical / pitch);
  const coordinates = [tensor.at[0] + Math.floor(inRow / tensor.element_bytes)];
  const firstRow = row;
  for (let i = 1; i < tensor.box.length; i++) {
    const count = Math.ceil(tensor.box[i] / tensor.element_strides[i]);
    coordinates.push(tensor.at[i] + (row % count) * tensor.element_strides[i]);
    row = Math.floor(row / count);
  }
  if (row > 0) return null;
  const inside = coordinates.every((c, i) => c >= 0 && c < tensor.dims[i]);
  return { coordinates, inside, row: firstRow, chunk: Math.floor(inRow / CELL_BYTES),
    byte: inRow % tensor.element_bytes };
}

/* The program's name for a tensor, or T0, T1 and so on. */
const tensorKey = (tensor) => `${tensor.name} ${tensor.global}`;
const tensorNumber = (model, tensor) => [...model.tensors.keys()].indexOf(tensorKey(tensor));
const tensorName = (model, tensor) => model.tensors.get(tensorKey(tensor));

/* A name of several words, in a sentence; "the matrix" needs no marks. */
const ARTICLE = /^(the|an?) /;
const quoted = (name) => (/ /.test(name) && !ARTICLE.test(name) ? `"${name}"` : name);

function nameTensor(model, tensor) {
  if (model.tensors.has(tensorKey(tensor))) return;
  const used = [...model.tensors.values()];
  let name = tensor.name || `T${used.length}`;
  for (let again = 2; used.includes(name); again++) name = `${tensor.name} (${again})`;
  model.tensors.set(tensorKey(tensor), name);
}

/* Where in a tensor: outermost first, as the program's loops and shapes have it. */
function coordinatesText(coordinates) {
  const [column, row, ...outer] = coordinates;
  if (row === undefined) return `element ${column}`;
  if (!outer.length) return `row ${row}, column ${column}`;
  return `(${[...coordinates].reverse().join(", ")}; innermost last)`;
}

/* "512 x 256": rows x columns. */
const shapeText = (sizes) => [...sizes].reverse().join(" x ");

/* The bytes of an element as a number, little endian; null: this type has no number. */
function elementValue(type, bytes) {
  const view = new DataView(Uint8Array.from(bytes).buffer);
  const float16 = (bits) => {
    const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
    const size = exponent === 31 ? (fraction ? NaN : Infinity)
      : exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24;
    return bits >> 15 ? -size : size;
  };
  const float32 = (bits) => new Float32Array(Uint32Array.of(bits).buffer)[0];
  const read = {
    u8: () => view.getUint8(0), u16: () => view.getUint16(0, true), u32: () => view.getUint32(0, true),
    s32: () => view.getInt32(0, true), u64: () => view.getBigUint64(0, true), s64: () => view.getBigInt64(0, true),
    f16: () => float16(view.getUint16(0, true)), bf16: () => float32(view.getUint16(0, true) << 16),
    f32: () => view.getFloat32(0, true), f64: () => view.getFloat64(0, true),
  }[type.replace(" ftz", "")];
  return read ? read() : null;
}
