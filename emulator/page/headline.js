/* headline.js: what stands above the cards of a run without a report: what keeps it from being faster, and who does what. All of it
 * is about the first block. */

function headlineOf(model) {
  const isMine = ({ warp }) => warp < model.cluster.warps_per_block;
  const loads = model.copies.filter((copy) => copy.writes.length && isMine(copy));
  const wgmmas = model.wgmmas.filter(isMine);
  if (!loads.length) return "";
  const reads = wgmmas.length ? [] : readsOfLoads(model).filter(isMine);
  const stores = model.copies.filter((copy) => copy.reads.length && isMine(copy));
  const verdict = timeUnit(model) !== "clock" ? "" // nothing is known of times
    : `${wgmmas.length ? verdictOnCores(model, wgmmas, loads) : verdictOnReads(model, reads, loads)} `;
  return verdict + whoDoes(model, { loads, wgmmas, reads, stores });
}

/* "Warp 8 loads, warps 0-7 multiply and store, in 4 stages." */
function whoDoes(model, { loads, wgmmas, reads, stores }) {
  const did = new Map(); // by whom
  for (const [list, verb, verbs] of [[loads, "load", "loads"], [wgmmas, "multiply", "multiplies"], [reads, "read", "reads"],
    [stores, "store", "stores"]]) {
    const warps = [...new Set(list.map(({ warp }) => warp))].sort((a, b) => a - b);
    if (warps.length) listOf(did, `warp${warps.length > 1 ? "s" : ""} ${numberRuns(warps)}`).push(warps.length > 1 ? verb : verbs);
  }
  const stages = stagesOf(model, loads);
  const text = [...did].map(([who, verbs]) => `${who} ${verbs.join(" and ")}`).join(", ");
  return `${model.blocks > 1 ? `Of block 0, ${text}` : asSentence(text)}${stages > 1 ? `, in ${stages} stages` : ""}.`;
}

const percent = (share) => `${Math.round(100 * share)}\u00a0%`; // not broken over two lines

/* When the tensor cores idle, and whether loads go on while they work. */
function verdictOnCores(model, wgmmas, loads) {
  const last = model.events.length - 1;
  const view = { first: 0, last };
  const [busy, loading, either] = [wgmmas, loads, [...loads, ...wgmmas].sort((a, b) => a.begin - b.begin)]
    .map((spans) => coveredShare(model, indexSpans(spans.slice()), view));
  const end = Math.min(last, Math.max(...wgmmas.map((wgmma) => wgmma.end)));
  const share = (n) => model.events[n][1] / model.events[last][1];
  const [before, after] = [share(wgmmas[0].begin), 1 - share(end)];
  const between = Math.max(0, 1 - busy - before - after);
  const both = busy + loading - either;
  const most = Math.max(before, between, after);
  const isLoading = coveredShare(model, indexSpans(loads.slice()), { first: end, last }) > 0;
  const block = model.blocks > 1 ? "Block 0" : "The block";
  const idle = `${percent(before)} before the first wgmma, ${percent(between)} between, ${percent(after)} after the last`;
  const verdict = most === after ? `Epilogue: ${percent(after)} of the run, and ` +
    `${isLoading ? "only loads overlap it" : "nothing of the block overlaps it"}. `
    : most === before ? `Start: ${percent(before)} of the run, before the first wgmma. `
      : both < 0.01 ? "The copies and the tensor cores take turns. " : "";
  const cores = most < 0.2 ? `${block} keeps the tensor cores busy for ${percent(busy)} of the run. They idle for`
    : `${verdict}${block} leaves the tensor cores idle for ${percent(1 - busy)} of the run${verdict ? "" : ", mostly between wgmmas"}:`;
  return `${cores} ${idle}. Loads overlap ${percent(both / busy)} of the multiplication.`;
}

/* The threads' reads of shared memory that copies fill: [{warp, at}]. */
const readsOfLoads = (model) => [...model.events.entries()].filter(([, event]) => event[0] === "shared" && event[5] !== "write" &&
  rangesOf(event).some(([address]) => model.flights.has(address - (address % CELL_BYTES)))).map(([at, event]) => ({ warp: event[2], at }));

function verdictOnReads(model, reads, loads) {
  const spans = indexSpans(loads.slice());
  const view = { first: 0, last: model.events.length - 1 };
  const overlapped = reads.filter(({ at }) => spansAt(spans, at).length).length;
  const verdict = !reads.length || loads.length < 2 ? "" : !overlapped ? "Loading and reading take turns. "
    : `Loading and reading overlap: a load is in flight at ${percent(overlapped / reads.length)} of the reads. `;
  return `${verdict}A load is in flight for ${percent(coveredShare(model, spans, view))} of the run.`;
}

/* How many elements of arrays one warp fills again and again; 0: several warps do. */
function stagesOf(model, loads) {
  if (new Set(loads.map(({ warp }) => warp)).size > 1) return 0;
  const times = new Map();
  for (const { writes: [[address]] } of loads) listOf(times, address).push(address);
  const again = [...times].filter(([, all]) => all.length > 1).map(([address]) => (nameAt(model, offsetOf(address)) || { name: "" }).name);
  return new Set(again.flatMap((name) => name.match(/\[\d+\]/) || [])).size;
}
