/* headline.js: what stands above the cards of a run without a report: what keeps it from being faster, and who does what. All of it
 * is about the first block. */

/* [what judges, what describes] */
function headlineOf(model) {
  const isMine = ({ warp }) => warp < model.cluster.warps_per_block;
  const copies = model.copies.filter((copy) => isMine(copy) && isMoving(copy));
  const loads = copies.filter(isLoad);
  const wgmmas = model.wgmmas.filter(isMine);
  const filling = copies.filter((copy) => copy.writes.length);
  const reads = wgmmas.length || !filling.length ? [] : readsOfCopies(model).filter(isMine);
  const verdict = timeUnit(model) !== "clock" ? "" // nothing is known of times
    : wgmmas.length ? verdictOnCores(model, loads) : filling.length ? verdictOnReads(model, reads, filling) : "";
  return [verdict, [whoDoes(model, { copies, loads, wgmmas, reads }), shownText(model)].filter(Boolean).join(" ")];
}

/* Which of the launch's blocks, and what its times are. */
function shownText(model) {
  const { launch, blocks } = model.cluster;
  const { grid: [columns, rows, layers] } = model.recording.launches[launch];
  const numbers = blocks.map(([x, y, z]) => x + columns * (y + rows * z)).sort((a, b) => a - b);
  return `Shown: block${numbers.length > 1 ? "s" : ""} ${numberRuns(numbers)} of ${(columns * rows * layers).toLocaleString("en-US")}` +
    `${timeUnit(model) === "clock" ? ", in clocks of a modelled H200, not measured" : ""}.`;
}

/* "Warp 8 loads A (128 x 512 bf16: 8 boxes of 128 x 64) through 4 stages; warps 0-7 multiply (32 wgmmas of m64n256k16) and store." */
function whoDoes(model, { copies, loads, wgmmas, reads }) {
  const did = new Map(); // by whom
  const stages = stagesOf(model, loads);
  const others = copies.filter((copy) => copy.writes.length && !isLoad(copy));
  const [reductions, stores] = [true, false].map((is) =>
    copies.filter(({ writes, kind }) => !writes.length && kind.includes("reduce") === is));
  for (const [list, verb, verbs, what] of [
    [loads, "load", "loads", `${whatMoves(model, loads, true)}${stages > 1 ? ` through ${stages} stages` : ""}`],
    [others, "copy", "copies", whatMoves(model, others, true)],
    [wgmmas, "multiply", "multiplies", wgmmas.length ? ` (${shapesOf(model, wgmmas)})` : ""],
    [reads, "read", "reads", ""],
    [reductions, "reduce into", "reduces into", whatMoves(model, reductions, !loads.length)],
    [stores, "store", "stores", whatMoves(model, stores, !loads.length)]]) {
    const warps = [...new Set(list.map(({ warp }) => warp))].sort((a, b) => a - b);
    const [who, does] = warps.length > 1 ? ["warps", verb] : ["warp", verbs];
    if (warps.length) listOf(did, `${who} ${numberRuns(warps)}`).push(does + what);
  }
  const text = [...did].map(([who, does]) => `${who} ${inWords(does)}`).join("; ");
  return text && `${model.blocks > 1 ? `Of block 0, ${text}` : asSentence(text)}.`;
}

/* " A (128 x 512 bf16: 8 boxes of 128 x 64) and 512 bytes 4 times by cp.async". */
const MOST_MOVED = 3;

function whatMoves(model, copies, withBoxes) {
  const moved = new Map();
  for (const copy of copies) {
    const { tensor, kind } = copy;
    listOf(moved, tensor ? `${tensorKey(tensor)} ${tensor.box}` : `${kind} ${bytesOfCopy(copy)}`).push(copy);
  }
  const told = [...moved.values()].slice(0, moved.size > MOST_MOVED ? MOST_MOVED - 1 : MOST_MOVED);
  let type = ""; // said once
  const texts = told.map(([{ tensor, kind, ...ranges }, ...more]) => {
    const count = wholeNumber(more.length + 1);
    if (!tensor) return `${plural(bytesOfCopy(ranges), "byte")}${more.length ? ` ${count} times` : ""} by ${kind}`;
    const name = tensorName(model, tensor).replace(/^(?!the )(?![A-Z]\w*$).*/, '"$&"');
    const typed = tensor.type === type ? "" : ` ${(type = tensor.type)}`;
    const boxes = `: ${count} box${more.length ? "es" : ""}${tensor.im2col ? "" : ` of ${sizesText(tensor.box)}`}`;
    return `${name} (${sizesText(tensor.dims)}${typed}${withBoxes ? boxes : ""})`;
  });
  if (moved.size > told.length) texts.push(`${moved.size - told.length} more`);
  return texts.length ? ` ${inWords(texts)}` : "";
}

const bytesOfCopy = ({ reads, writes }) => (writes.length ? writes : reads).reduce((sum, [, bytes]) => sum + bytes, 0);

/* "1,024 x 64": without the 1s of outer dimensions. */
const sizesText = (sizes) => sizes.slice(0, sizes.findLastIndex((size) => size > 1) + 1 || 1).reverse()
  .map(wholeNumber).join(" x ");

const inWords = (texts) => [texts.slice(0, -1).join(", "), ...texts.slice(-1)].filter(Boolean).join(" and ");

/* "128 wgmmas of m64n256k16", if all have one shape: four warps issue one together. */
function shapesOf(model, wgmmas) {
  const issued = wgmmas.filter(({ warp }) => warp % 4 === 0)
    .map(({ begin }) => /m\d+n\d+k\d+|$/.exec(placeOf(model, model.events[begin]).text)[0]);
  const [shape, ...others] = new Set(issued);
  return `${plural(issued.length, "wgmma")}${shape && !others.length ? ` of ${shape}` : ""}`;
}

/* Not broken over two lines; "100 %" is all. */
const percent = (share) => (share < 1 && share >= 0.995 ? "over 99\u00a0%" : `${Math.round(100 * share)}\u00a0%`);

/* Where the tensor cores idle, longest first, and why. */
function verdictOnCores(model, loads) {
  const all = timeOf(model, model.events.length - 1);
  const places = Object.entries(idlePlaces(model)).filter(([, { clocks }]) => clocks >= 0.005 * all)
    .sort(([, a], [, b]) => b.clocks - a.clocks);
  const idle = places.reduce((sum, [, { clocks }]) => sum + clocks, 0) / all;
  const parts = places.map(([name, place]) => `${percent(place.clocks / all)} ${IDLE_PLACES[name]}` +
    (place.clocks < LEAST_TOLD * all ? "" : ` (${whyIdle(model, name, place, loads)})`));
  const verdict = idle < 0.2 ? `keeps the tensor cores busy for ${percent(1 - idle)} of the run, and idle for ${percent(idle)}`
    : `leaves the tensor cores idle for ${percent(idle)} of the run`;
  const turns = loads.length && takeTurns(model) ? "The copies and the tensor cores take turns. " : "";
  return `${turns}${model.blocks > 1 ? "Block 0" : "The block"} ${verdict}: ${parts.join(", ")}.`;
}

const LEAST_TOLD = 0.02; // of the run

/* "draining, with no other wgmma queued: 1,442 of 2,784 clocks, wgmma_wait_all, line 84": one cause, or two where one is not half. */
function whyIdle(model, name, { clocks: all, causes }, loads) {
  const told = causes.slice(0, causes[0].clocks < all / 2 ? 2 : 1);
  const texts = told.map(({ cause, clocks, parts }, i) => {
    const time = i ? wholeNumber(clocks) : `${wholeNumber(clocks)} of ${plural(Math.round(all), "clock")}`;
    return [`${CAUSES[cause].words}: ${time}`, placesOf(model, { clocks, parts })].filter(Boolean).join(", ");
  });
  if (name === "between" && loads.length && !causes.some(({ cause }) => cause === "loads")) texts.push("never waiting for loads");
  return texts.join("; ");
}

/* The threads' reads of shared memory that copies fill: [{warp, at}]. */
const readsOfCopies = (model) => [...model.events.entries()].filter(([, event]) => event[0] === "shared" && event[5] !== "write" &&
  rangesOf(event).some(([address]) => model.flights.has(address - (address % CELL_BYTES)))).map(([at, event]) => ({ warp: event[2], at }));

function verdictOnReads(model, reads, copies) {
  const spans = indexSpans(copies.slice());
  const overlapped = reads.filter(({ at }) => spansAt(spans, at).length).length;
  const isSeveral = reads.length > 0 && copies.length > 1;
  const atReads = isSeveral && overlapped ? `, at ${percent(overlapped / reads.length)} of the reads` : "";
  const [name, doing] = copies.every(isLoad) ? ["load", "Loading"] : ["copy", "Copying"];
  const turns = isSeveral && !overlapped ? `${doing} and reading take turns. ` : "";
  return `${waitsOfReaders(model, reads)}${whereLoaderIs(model, reads, copies)}${turns}` +
    `A ${name} is in flight for ${percent(coveredShare(model, spans))} of the run${atReads}.`;
}

/* How long those who read wait for copies, on average, and where. */
function waitsOfReaders(model, reads) {
  const warps = [...new Set(reads.map(({ warp }) => warp))].sort((a, b) => a - b);
  const last = model.events.length - 1;
  const parts = partsOf(model, warps, 0, last, "").filter(({ cause }) => cause === "loads" || cause === "data");
  const clocks = parts.reduce((sum, part) => sum + part.clocks, 0);
  const places = placesOf(model, { clocks, parts });
  const [verb, average] = warps.length > 1 ? ["wait", ", on average"] : ["waits", ""];
  return clocks ? `${asSentence(warpsName(model, warps))} ${verb} for data for ${percent(clocks / timeOf(model, last))} of the run` +
    `${average}${places && ` (${places})`}. ` : "";
}

/* The line at which the one warp that loads, and does not read, runs for most of the run: more stages would not help there. */
function whereLoaderIs(model, reads, copies) {
  const [loader, ...others] = new Set(copies.map(({ warp }) => warp));
  if (others.length || reads.some(({ warp }) => warp === loader)) return "";
  const last = model.events.length - 1;
  const [cause] = causesOf([{ parts: partsOf(model, [loader], 0, last, "runs") }]);
  const share = cause.parts[0].clocks / timeOf(model, last);
  return cause.cause !== "runs" || share < 1 / 3 ? ""
    : `${asSentence(warpName(model, loader))}, which loads, is at ${placesOf(model, cause)} for ${percent(share)}. `;
}

/* How many elements of arrays one warp fills again and again; 0: several warps do. */
function stagesOf(model, loads) {
  if (new Set(loads.map(({ warp }) => warp)).size > 1) return 0;
  const times = new Map();
  for (const { writes: [[address]] } of loads) listOf(times, address).push(address);
  const again = [...times].filter(([, all]) => all.length > 1).map(([address]) => (nameAt(model, offsetOf(address)) || { name: "" }).name);
  return new Set(again.flatMap((name) => name.match(/\[\d+\]/) || [])).size;
}
