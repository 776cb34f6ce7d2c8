/* bars.js: what one lane of the timeline shows. */

const SMALL_FONT = "9px system-ui, sans-serif";

/* Bars closer than a pixel are drawn as one. */
function drawBars(context, bars, x, y, height, pattern) {
  let drawn = -1;
  for (const bar of bars) {
    const left = x(bar.begin);
    const right = Math.max(left + 1, x(bar.end));
    if (right <= drawn) continue;
    for (const color of bar.hatched ? [bar.color, pattern] : [bar.color])
      fillBox(context, color, Math.max(left, drawn), y, right - Math.max(left, drawn), height);
    drawn = right;
  }
}

/* The spans of a lane as bars. */
function drawSpans(context, model, spans, view, x, y, height, { color, hatched, pattern }) {
  const bars = spansBetween(spans, view.first, view.last)
    .map((span) => ({ begin: span.begin, end: Math.min(span.end, model.events.length), color: color(span), hatched }));
  drawBars(context, bars, x, y, height, pattern);
}

function drawWarp(context, model, warp, view, x, y, height, colors) {
  const first = warp.events.length ? warp.events[0] : Infinity;
  const last = warp.exits.length ? warp.exits[warp.exits.length - 1] : model.events.length;
  if (first > view.last) return;
  drawBars(context, [{ begin: first, end: last, color: colors.running }], x, y, height);
  drawSpans(context, model, warp.silent, view, x, y, height, { color: () => colors.silent });
  drawSpans(context, model, warp.waits, view, x, y, height,
    { color: () => colors.waiting, hatched: true, pattern: colors.hatch });
  drawSpans(context, model, readyOf(model, warp), view, x, y, height, { color: () => colors.ready });
  nameSilent(context, model, warp, view, x, y, height, colors);
  markEndless(context, model, warp, view, x, y, height, colors);
  const begin = countUpTo(warp.events, view.first - 1);
  const end = countUpTo(warp.events, view.last);
  context.fillStyle = colors.tick;
  let drawn = -2;
  for (let i = begin; i < end; i++) {
    const at = x(warp.events[i]);
    if (at - drawn < 2) continue;
    context.fillRect(at, y + height - 4, 1, 4);
    drawn = at;
  }
}

/* "L60" where a warp stands at a line for long. */
function nameSilent(context, model, warp, view, x, y, height, colors) {
  context.font = SMALL_FONT;
  for (const { begin, end } of spansBetween(warp.silent, view.first, view.last)) {
    const at = lastUpTo(warp.steps, begin);
    const place = at < 0 ? null : placeOf(model, model.events[at]);
    const left = Math.max(x(begin), x(view.first)) + 2;
    if (!place || place.file < 0 || x(end) - left < 1.5 * context.measureText(`L${place.line}`).width) continue;
    writeText(context, colors.text, `L${place.line}`, left, y + height / 2);
  }
  context.font = LANE_FONT;
}

/* A hang does not end where the recording does. */
function markEndless(context, model, warp, view, x, y, height, colors) {
  const end = x(model.events.length - 1) - 2; // there is the moment of the report
  const left = end - context.measureText("∞").width - 4;
  const isSeen = ({ begin, end: last }) => last === Infinity && x(begin) < left;
  if (!hangs(model) || view.last < model.events.length - 1 || !warp.waits.some(isSeen)) return;
  fillBox(context, colors.ground, left, y, end - left, height);
  writeText(context, colors.text, "∞", left + 2, y + height / 2);
}

const DRAW_LANE = {
  warp(context, model, lane, view, x, y, height, colors) {
    for (const key of lane.keys) drawWarp(context, model, model.warps[key], view, x, y, height, colors);
  },
  copy(context, model, lane, view, x, y, height, colors) {
    drawSpans(context, model, lane.spans, view, x, y, height,
      { color: (copy) => authorColor("c" + copy.number, model, colors), hatched: true, pattern: colors.hatch });
  },
  turn(context, model, lane, view, x, y, height, colors) {
    drawSpans(context, model, lane.spans, view, x, y, height, { color: () => colors.turn });
  },
  /* Nobody may count on a wgmma being done before it is awaited. */
  tensor(context, model, lane, view, x, y, height, colors) {
    drawSpans(context, model, lane.open, view, x, y, height, { color: () => colors.ground, hatched: true, pattern: colors.hatch });
    drawSpans(context, model, lane.spans, view, x, y, height, { color: () => colors.tensor });
    const gaps = spansBetween(idleOf(model, lane.block), view.first, view.last);
    drawBars(context, gaps.map((gap) => ({ ...gap, color: colors.idle })), x, y, height);
    context.font = SMALL_FONT;
    for (const gap of gaps) {
      const [left, right] = [Math.max(x(gap.begin), x(view.first)), Math.min(x(gap.end), x(view.last))];
      const text = idleNames(model, gap).find((name) => context.measureText(name).width < right - left - 3);
      if (!text) continue;
      for (const color of [colors.ground, colors.idle]) // to be read on stripes
        fillBox(context, color, left + 1, y, context.measureText(text).width + 2, height);
      writeText(context, colors.text, text, left + 2, y + height / 2 + 0.5);
    }
  },
  /* An odd phase is lower than an even one, for those who do not see the colours. */
  barrier(context, model, lane, view, x, y, height, colors) {
    const phases = barrierPhases(model, model.barriers.get(lane.key), view);
    const lower = height > 10 ? 3 : 2;
    for (const odd of [0, 1])
      drawBars(context, phases.filter((bar) => (bar.phase & 1) === odd)
        .map((bar) => ({ ...bar, color: odd ? colors.parity1 : colors.parity0 })), x, y + lower * odd, height - lower * odd);
    context.save();
    context.font = SMALL_FONT; // fits into the lower bar
    for (const bar of phases) {
      const left = Math.max(x(bar.begin), x(view.first));
      const [odd, text] = [bar.phase & 1, String(bar.phase)];
      if (x(bar.end) - left < 3 * context.measureText(text).width) continue; // the number would hide it
      writeText(context, odd ? colors.onOdd : colors.onColor, text, left + 3, y + (height + lower * odd) / 2 + 0.5);
    }
    context.restore();
  },
};

/* The phases of a barrier between two events: [{begin, end, phase}]. */
function barrierPhases(model, barrier, view) {
  const { changes } = barrier;
  const phases = [];
  for (let i = Math.max(0, countUpTo(changes, view.first) - 1); i < changes.length && changes[i] <= view.last; i++) {
    const event = model.events[changes[i]];
    const end = i + 1 < changes.length ? changes[i + 1] : model.events.length;
    const last = phases[phases.length - 1];
    if (event[3] === "inval") continue;
    if (last && last.phase === event[4] && last.end === changes[i]) last.end = end;
    else phases.push({ begin: changes[i], end, phase: event[4] });
  }
  return phases;
}

/* ---- The two sides of a report ---- */

/* The lane of an event: that of its copy, its barrier, its warpgroup or its warp; -1: it is not shown. */
function laneOfEvent(model, lanes, n) {
  const event = model.events[n];
  const warp = warpOf(model, event);
  const isOwn = { copy: ({ kind, spans }) => kind === "copy" && spans.includes(model.copies[event[2]]),
    mbarrier: ({ kind, key }) => kind === "barrier" && key === event[2],
    wgmma: ({ kind, spans }) => kind === "tensor" && spans.includes(model.wgmmas[event[2]]) }[event[0]] ||
    (({ kind, keys }) => kind === "warp" && keys.includes(warp));
  return lanes.findIndex(isOwn);
}

const BADGE_HEIGHT = 14;

/* Red is what was reported, green what the fix does about it. */
const linkColor = (picture) => ("n" in picture ? "finding" : "fixed");

/* ① and ②, linked, and what the fix puts between them. Each stands in front of its event, so as not to hide what happens then. */
function drawPicture(context, model, lanes, picture, { x, first }, colors) {
  const [one, two = { event: -1 }] = sidesOf(picture.report);
  const marks = [["1", one.event], ["2", two.event], ["fix", picture.added]].filter(([, n]) => n >= 0)
    .map(([name, n]) => ({ name, lane: laneOfEvent(model, lanes, n), x: x(n) })).filter((mark) => mark.lane >= 0 && mark.x >= first);
  for (const mark of marks) mark.y = RULER_HEIGHT + (mark.lane + 0.5) * laneHeight(lanes) + 2;
  const [from, to] = ["1", "2"].map((name) => marks.find((mark) => mark.name === name));
  context.font = "700 11px system-ui, sans-serif";
  context.textBaseline = "middle";
  if (from && to) drawLine(context, [from.x, from.y], [to.x, to.y], { color: colors[linkColor(picture)], width: 2, dash: [3, 2] });
  for (const { name, x: at, y } of marks) {
    const width = name === "fix" ? 22 : BADGE_HEIGHT;
    const left = at - width - 1 < first ? at + 1 : at - width - 1;
    context.fillStyle = name === "fix" ? colors.fixed : colors.text;
    context.fillRect(at - 1, y - BADGE_HEIGHT / 2, 2, BADGE_HEIGHT);
    context.beginPath();
    context.roundRect(left, y - BADGE_HEIGHT / 2, width, BADGE_HEIGHT, BADGE_HEIGHT / 2);
    context.fill();
    writeText(context, colors.ground, name, left + (width - context.measureText(name).width) / 2, y + 0.5);
  }
}
