/* overlap.js: the card of a warpgroup that computes while the tensor cores work. */

const groupName = (model, group) => (model.blocks > 1 ? `block ${Math.floor(group / warpgroupsPerBlock(model))} ` : "") +
  `warpgroup ${group % warpgroupsPerBlock(model)}`;

/* The longest times in which a warpgroup of the first block computes before it awaits a wgmma of its own, or between two of its products
 * while those of another one are in flight: {own, other}, each {mine, other, at, time, line}. at: when it comes to the line at which it
 * is longest. null: there is none. */
function overlapsOf(model) {
  if (model.overlaps) return model.overlaps;
  const longest = (model.overlaps = { own: null, other: null });
  const note = (kind, found) => {
    if (found && found.time > (longest[kind] ? longest[kind].time : leastOverlap(model))) longest[kind] = found;
  };
  const groups = wgmmaLanes(model).filter(([group]) => group < warpgroupsPerBlock(model))
    .map(([group, wgmmas]) => ({ group, busy: joined(wgmmas), first: wgmmas.filter(({ warp }) => warp % 4 === 0) }));
  for (const { group: mine, busy, first } of groups) {
    for (const { begin, awaited } of first) note("own", computedIn(model, mine, mine, begin, awaited));
    for (const { group: other, busy: theirs } of groups.filter(({ group }) => group !== mine))
      for (const [i, { begin }] of busy.slice(1).entries())
        for (const span of spansBetween(theirs, busy[i].end, begin))
          note("other", computedIn(model, mine, other, Math.max(span.begin, busy[i].end), Math.min(span.end, begin)));
  }
  return longest;
}

/* What takes less than a fiftieth of the time tells nothing. */
const leastOverlap = (model) => model.events[model.events.length - 1][1] / 50;

function happenedOverlap(model, { mine, other }) {
  const name = groupName(model, mine);
  return capitalised(mine === other ? `${name} computes before it awaits a wgmma of its own.`
    : `${groupName(model, other)} multiplies while ${name} computes.`);
}

/* When a warpgroup's products are under way. */
function joined(wgmmas) {
  const spans = [];
  for (const { begin, end } of [...wgmmas].sort((a, b) => a.begin - b.begin)) {
    const last = spans[spans.length - 1];
    if (last && begin <= last.end) last.end = Math.max(last.end, end);
    else spans.push({ begin, end });
  }
  return indexSpans(spans);
}

/* What a warpgroup's first warp runs from one event to another, apart from what issues wgmmas; null: nothing. */
function computedIn(model, mine, other, from, to) {
  if (!model.issuing) model.issuing = new Set(model.wgmmas.map(({ begin }) => lineText(model, begin)));
  const runs = partsOf(model, [4 * mine], from, Math.min(to, model.events.length - 1), "runs")
    .filter(({ cause, at }) => cause === "runs" && at >= 0 && !model.issuing.has(lineText(model, at)));
  const time = Math.round(runs.reduce((sum, { clocks }) => sum + clocks, 0));
  return time ? { mine, other, at: Math.max(from, runs[0].at), time, line: lineText(model, runs[0].at) } : null;
}

function noticeOverlap(model, { mine, other, time, line }) {
  const call = line.replace(/;$/, "").replace(/^.* = /, "").replace(/\((.{40,}|[^)]*$)/, "(…)");
  return `For ${plural(time, timeUnit(model))}, mostly in ${call}${mine === other ? "" : ", between two products of its own"}.`;
}

/* The longest wait at a named barrier for a warp that comes there and does not wait itself: {at, time, warps}. at: when it comes. */
function handoverOf(model) {
  if (model.handover) return model.handover;
  model.handover = { at: -1, time: 0, warps: [] };
  for (const n of model.arrivals) {
    const event = model.events[n];
    if (event[0] !== "bar" || !event[8] || SYNC.test(placeOf(model, event).text)) continue;
    const isForIt = (number, wait) => BAR.test(opcodeOf(model, model.events[wait.at])) &&
      (generationOf(model, number, "bar", wait, n) || { arrivals: [] }).arrivals.includes(n);
    const waits = model.warps.flatMap(({ number }) => warpWaits(model, number, n).filter((wait) => isForIt(number, wait))
      .map(({ begin }) => ({ number, time: timeOf(model, n) - timeOf(model, begin) })));
    const time = Math.max(0, ...waits.map((wait) => wait.time));
    if (time > model.handover.time) model.handover = { at: n, time, warps: waits.map(({ number }) => number) };
  }
  return model.handover;
}
