/* overlap.js: the card of a warpgroup that computes while the tensor cores work. */

const groupName = (model, group) => (model.blocks > 1 ? `block ${Math.floor(group / warpgroupsPerBlock(model))} ` : "") +
  `warpgroup ${group % warpgroupsPerBlock(model)}`;

/* The longest time in which a warpgroup runs between two of its products while the tensor cores work for another one of its block:
 * {mine, other, at, time, line}; at: its first step then; line: where it is longest. null: there is none. */
function overlapOf(model) {
  if (model.overlap !== undefined) return model.overlap;
  model.overlap = null;
  const groups = wgmmaLanes(model).map(([group, wgmmas]) => ({ group, busy: joined(wgmmas) }));
  for (const { group: mine, busy } of groups)
    for (const { group: other, busy: theirs } of groups) {
      if (mine === other || blockOfGroup(model, mine) !== blockOfGroup(model, other)) continue;
      for (const [i, { begin }] of busy.slice(1).entries())
        for (const span of spansBetween(theirs, busy[i].end, begin)) {
          const found = computedIn(model, mine, other, Math.max(span.begin, busy[i].end), Math.min(span.end, begin));
          if (found && found.time > (model.overlap ? model.overlap.time : leastOverlap(model))) model.overlap = found;
        }
    }
  return model.overlap;
}

/* What takes less than a hundredth of the time tells nothing. */
const leastOverlap = (model) => model.events[model.events.length - 1][1] / 100;

function happenedOverlap(model) {
  const { mine, other } = overlapOf(model);
  return capitalised(`${groupName(model, other)} multiplies while ${groupName(model, mine)} computes.`);
}

const blockOfGroup = (model, group) => Math.floor(group / warpgroupsPerBlock(model));

/* When a warpgroup's products are under way. */
function joined(wgmmas) {
  const spans = [];
  for (const { begin, end } of wgmmas) {
    const last = spans[spans.length - 1];
    if (last && begin <= last.end) last.end = Math.max(last.end, end);
    else spans.push({ begin, end });
  }
  return indexSpans(spans);
}

/* What a warpgroup's first warp runs from one event to another, apart from the lines at which it waits; null: nothing. */
function computedIn(model, mine, other, from, to) {
  const warp = model.warps[blockOfGroup(model, mine) * model.cluster.warps_per_block + (mine % warpgroupsPerBlock(model)) * 4];
  if (!warp.waitLines) warp.waitLines = new Set(warp.waits.map(({ at }) => lineText(model, at)));
  const steps = warp.steps.slice(countUpTo(warp.steps, from), countUpTo(warp.steps, to));
  const clocks = new Map(); // by line
  steps.forEach((k, i) => {
    const line = lineText(model, k);
    const next = i + 1 < steps.length ? steps[i + 1] : Math.min(to, model.events.length - 1);
    if (!warp.waitLines.has(line)) clocks.set(line, (clocks.get(line) || 0) + model.events[next][1] - model.events[k][1]);
  });
  const [longest] = [...clocks].sort((a, b) => b[1] - a[1]);
  return longest ? { mine, other, at: steps[0], time: [...clocks.values()].reduce((sum, each) => sum + each), line: longest[0] } : null;
}

function noticeOverlap(model) {
  const { time, line } = overlapOf(model);
  const call = line.replace(/;$/, "").replace(/\(.{40,}\)/, "(…)");
  return `For ${plural(time, timeUnit(model))}, mostly in ${call}, between two products of its own.`;
}
