/* headline.js: what stands above the cards of a run without a report: what keeps it from being faster, and who does what. All of it
 * is about the first block. */

function headlineOf(model) {
  const isMine = ({ warp }) => warp < model.cluster.warps_per_block;
  const loads = model.copies.filter((copy) => copy.writes.length && isMine(copy));
  const wgmmas = model.wgmmas.filter(isMine);
  if (!loads.length) return shownText(model);
  const reads = wgmmas.length ? [] : readsOfLoads(model).filter(isMine);
  const stores = model.copies.filter((copy) => copy.reads.length && isMine(copy));
  const verdict = timeUnit(model) !== "clock" ? "" // nothing is known of times
    : `${wgmmas.length ? verdictOnCores(model, wgmmas, loads) : verdictOnReads(model, reads, loads)} `;
  return `${verdict}${whoDoes(model, { loads, wgmmas, reads, stores })} ${shownText(model)}`;
}

/* Which of the launch's blocks, and what its times are. */
function shownText(model) {
  const { launch, blocks } = model.cluster;
  const { grid: [columns, rows, layers] } = model.recording.launches[launch];
  const numbers = blocks.map(([x, y, z]) => x + columns * (y + rows * z)).sort((a, b) => a - b);
  return `Shown: block${numbers.length > 1 ? "s" : ""} ${numberRuns(numbers)} of ${(columns * rows * layers).toLocaleString("en-US")}` +
    `${timeUnit(model) === "clock" ? ", in clocks of a modelled H200, not measured" : ""}.`;
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

/* When the tensor cores idle, longest first, where their warps wait between two wgmmas, and whether loads go on while they work. */
function verdictOnCores(model, wgmmas, loads) {
  const { busy, before, between, after, end } = sharesOfCores(model, wgmmas);
  const [loading, either] = [loads, [...loads, ...wgmmas].sort((a, b) => a.begin - b.begin)]
    .map((spans) => coveredShare(model, indexSpans(spans.slice())));
  const both = busy + loading - either;
  const idle = [[before, "before the first wgmma"],
    [between, `between wgmmas${between < 0.1 ? "" : waitsBetween(model, wgmmas)}`],
    [after, `after the last wgmma${epilogueAfter(model, end)}`]].sort((a, b) => b[0] - a[0]);
  const block = model.blocks > 1 ? "Block 0" : "The block";
  const cores = idle[0][0] < 0.2 ? `${block} keeps the tensor cores busy for ${percent(busy)} of the run. They idle for`
    : `${both < 0.01 ? "The copies and the tensor cores take turns. " : ""}${block} leaves the tensor cores idle for ` +
      `${percent(1 - busy)} of the run:`;
  const parts = idle.map(([part, when]) => `${percent(part)} ${when}`).join(", ");
  return `${cores} ${parts}. Loads overlap ${percent(both / busy)} of the multiplication.`;
}

/* Of the run, when the tensor cores work for these wgmmas, and when they idle. end: the event at which the last one has ended. */
function sharesOfCores(model, wgmmas) {
  const last = model.events.length - 1;
  const busy = coveredShare(model, indexSpans(wgmmas.slice()));
  const end = Math.min(last, Math.max(...wgmmas.map((wgmma) => wgmma.end)));
  const share = (n) => model.events[n][1] / model.events[last][1];
  const [before, after] = [share(wgmmas[0].begin), 1 - share(end)];
  return { busy, before, between: Math.max(0, 1 - busy - before - after), after, end };
}

/* The epilogue of the card, where it begins after the last wgmma. */
function epilogueAfter(model, end) {
  const at = model.events.findIndex((event, n) => isLastWgmma(model, event, n) && blockOfEvent(model, event) === 0);
  if (at < end) return "";
  const time = (n) => model.events[n][1];
  return ` (the epilogue: ${percent((time(endOfEpilogue(model, model.events[at], at)) - time(at)) / time(model.events.length - 1))})`;
}

/* The line at which the warps that multiply wait longest while no wgmma of their block is under way. */
function waitsBetween(model, wgmmas) {
  const busy = joined(wgmmas);
  const clocks = new Map(); // by line
  for (const warp of new Set(wgmmas.map(({ warp: number }) => number)))
    for (const [i, { begin }] of busy.slice(1).entries())
      for (const wait of spansBetween(model.warps[warp].waits, busy[i].end, begin)) {
        const line = placeText(model, placeOf(model, model.events[wait.at]));
        clocks.set(line, (clocks.get(line) || 0) + timeOf(model, Math.min(begin, wait.end)) -
          timeOf(model, Math.max(busy[i].end, wait.begin)));
      }
  const [longest = ["", 0]] = [...clocks].sort((a, b) => b[1] - a[1]);
  return longest[1] ? ` (the longest waits: ${longest[0]})` : "";
}

/* The threads' reads of shared memory that copies fill: [{warp, at}]. */
const readsOfLoads = (model) => [...model.events.entries()].filter(([, event]) => event[0] === "shared" && event[5] !== "write" &&
  rangesOf(event).some(([address]) => model.flights.has(address - (address % CELL_BYTES)))).map(([at, event]) => ({ warp: event[2], at }));

function verdictOnReads(model, reads, loads) {
  const spans = indexSpans(loads.slice());
  const overlapped = reads.filter(({ at }) => spansAt(spans, at).length).length;
  const isSeveral = reads.length > 0 && loads.length > 1;
  const atReads = isSeveral && overlapped ? `, at ${percent(overlapped / reads.length)} of the reads` : "";
  return `${waitsOfReaders(model, reads)}${isSeveral && !overlapped ? "Loading and reading take turns. " : ""}` +
    `A load is in flight for ${percent(coveredShare(model, spans))} of the run${atReads}.`;
}

/* How long those who read wait at mbarriers that count copies, on average. */
function waitsOfReaders(model, reads) {
  const warps = [...new Set(reads.map(({ warp }) => warp))].sort((a, b) => a - b);
  const isForData = ({ on: [kind, address] }) => kind === "mbarrier" && model.barriers.get(address).copies.length > 0;
  const shares = warps.map((warp) => coveredShare(model, indexSpans(model.warps[warp].waits.filter(isForData))));
  const mean = shares.reduce((sum, each) => sum + each, 0) / Math.max(1, warps.length);
  const [verb, average] = warps.length > 1 ? ["wait", ", on average"] : ["waits", ""];
  return mean ? `${asSentence(warpsName(model, warps))} ${verb} for data for ${percent(mean)} of the run${average}. ` : "";
}

/* How many elements of arrays one warp fills again and again; 0: several warps do. */
function stagesOf(model, loads) {
  if (new Set(loads.map(({ warp }) => warp)).size > 1) return 0;
  const times = new Map();
  for (const { writes: [[address]] } of loads) listOf(times, address).push(address);
  const again = [...times].filter(([, all]) => all.length > 1).map(([address]) => (nameAt(model, offsetOf(address)) || { name: "" }).name);
  return new Set(again.flatMap((name) => name.match(/\[\d+\]/) || [])).size;
}
