/* timeline.js: the lanes over time: warps, copies, tensor cores, barriers. Drawn on a canvas. */

/* Many lanes are lower, so that more of them are in sight. */
const MANY_LANES = 16;
const laneHeight = (lanes) => (lanes.length > MANY_LANES ? 14 : 18);
const NUMBERS_HEIGHT = 18;
const CARD_SIZE = 13;
const RULER_HEIGHT = NUMBERS_HEIGHT + CARD_SIZE + 2;
const LANE_FONT = "11px system-ui, sans-serif";

/* The names have as much room as the longest needs, up to a share of the width. */
const labelWidth = (model, width) => Math.round(Math.min(model.nameWidth + 12, 0.28 * width));

function measureNames(model, names) {
  const context = lanesPicture.canvas.getContext("2d");
  context.font = LANE_FONT;
  model.nameWidth = Math.max(...names.map((name) => context.measureText(name).width));
}

/* view: {first, last} events shown, {axis}: "event" gives each event the same width, "time" each
 * clock (EMULATOR_CLOCK) or instruction of the cluster. Returns a function from an event to its x. */
function timelineScale(model, view, width) {
  const last = model.events.length - 1;
  const value = view.axis === "time" ? (n) => model.events[Math.max(0, Math.min(last, n))][1] : (n) => n;
  const first = value(view.first);
  const span = Math.max(1, value(view.last) - first);
  const left = labelWidth(model, width);
  return (n) => left + (Math.max(-span, Math.min(value(n) - first, 2 * span)) / span) * (width - left);
}

/* The event at an x of the canvas. */
function timelineEventAt(model, view, width, x) {
  const share = Math.max(0, Math.min(1, (x - labelWidth(model, width)) / (width - labelWidth(model, width))));
  if (view.axis !== "time") return Math.round(view.first + share * (view.last - view.first));
  const scale = timelineScale(model, view, width);
  let [low, high] = [view.first, view.last];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (scale(middle) < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* The lanes change less often than the moment, so they are drawn beside the page and kept. */
const lanesPicture = { canvas: document.createElement("canvas"), key: "" };

/* True: the lanes have changed. */
function drawTimeline(canvas, model, lanes, view, { n, selected, picture }, colors) {
  const width = canvas.clientWidth;
  if (!width) return false; // a window too narrow to show it, or not laid out yet
  measureNames(model, lanes.map(({ name }) => name));
  const height = RULER_HEIGHT + lanes.length * laneHeight(lanes) + 4;
  const key = [model.cluster.number, model.cluster.launch, width, window.devicePixelRatio, view.first, view.last, view.axis, selected,
    colors.text, lanes.length, lanes[0].key].join();
  const changed = key !== lanesPicture.key;
  if (changed) drawLanes(lanesPicture.canvas, model, lanes, view, { width, height }, selected, colors);
  lanesPicture.key = key;
  const context = sizeCanvas(canvas, width, height);
  context.drawImage(lanesPicture.canvas, 0, 0, width, height);
  const at = timelineScale(model, view, width)(n);
  drawLine(context, [at, 0], [at, height], { color: colors.cursor, width: 2, dash: [] });
  const scale = { x: timelineScale(model, view, width), first: labelWidth(model, width) };
  context.font = LANE_FONT;
  context.textBaseline = "middle";
  for (const { number, left, chosen } of cardBoxes(model, view, width)) {
    fillBox(context, chosen ? colors.cursor : colors.selected, left, NUMBERS_HEIGHT, CARD_SIZE, CARD_SIZE);
    writeText(context, chosen ? colors.onOdd : colors.text, number, left + 3, NUMBERS_HEIGHT + CARD_SIZE / 2 + 0.5);
  }
  if (picture) drawPicture(context, model, lanes, picture, scale, colors);
  return changed;
}

/* Where the numbers of the cards stand: under the axis, the chosen one at its moment, the others there or close by; where that is taken,
 * none. */
function cardBoxes(model, view, width) {
  const x = timelineScale(model, view, width);
  const leftOf = ({ at }) => Math.min(Math.max(labelWidth(model, width), x(at) - CARD_SIZE / 2), width - CARD_SIZE);
  const cards = app.moments.map(({ at }, i) => ({ at, number: i + 1, chosen: at === app.view.event }))
    .filter(({ at }) => at >= view.first && at <= view.last);
  const boxes = cards.filter(({ chosen }) => chosen).map((card) => ({ ...card, left: leftOf(card) }));
  for (const card of cards.filter(({ chosen }) => !chosen)) {
    const isFree = (left) => boxes.every((box) =>
      Math.abs(box.left - left) > CARD_SIZE && (box.left < left) === (box.number < card.number));
    const left = [0, 1, -1].map((step) => leftOf(card) + step * (CARD_SIZE + 1)).find(isFree);
    if (left !== undefined) boxes.push({ ...card, left });
  }
  return boxes;
}

/* Numbers along the axis, at multiples of 1, 2 or 5 times a power of ten. */
function drawRuler(context, model, view, width, height, colors) {
  const left = labelWidth(model, width);
  const value = view.axis === "time" ? (n) => model.events[n][1] : (n) => n;
  const first = value(view.first);
  const span = Math.max(1, value(Math.min(view.last, model.events.length - 1)) - first);
  const rough = (span * 70) / (width - left);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough));
  writeText(context, colors.faint, view.axis === "time" ? timeUnit(model) : "event", 4, NUMBERS_HEIGHT / 2, left - 8);
  let over = 0; // what is written ends here
  for (let at = Math.ceil(first / step) * step; at <= first + span; at += step) {
    const x = left + ((at - first) / span) * (width - left);
    const text = at.toLocaleString("en-US");
    const begin = Math.min(x + 3, width - context.measureText(text).width);
    if (begin > over) writeText(context, colors.faint, text, begin, NUMBERS_HEIGHT / 2);
    over = Math.max(over, begin + context.measureText(text).width + 4);
    fillBox(context, colors.line, x, 2, 1, height);
  }
}

/* Which share of the time shown, or else of all, at least one of these spans covers. */
function coveredShare(model, spans, view = { first: 0, last: model.events.length - 1 }) {
  const end = timeOf(model, view.last);
  const begin = timeOf(model, view.first);
  let covered = 0;
  let over = begin;
  for (const span of spansBetween(spans, view.first, view.last)) {
    const until = Math.min(end, timeOf(model, span.end));
    covered += Math.max(0, until - Math.max(over, timeOf(model, span.begin)));
    over = Math.max(over, until);
  }
  return end > begin ? covered / (end - begin) : 0;
}

/* "clocks 1,200 to 7,300 of 48,000" */
function rangeText(model, { first, last, axis }) {
  const value = (n) => (axis === "time" ? model.events[Math.min(n, model.events.length - 1)][1] : n).toLocaleString("en-US");
  return `${axis === "time" ? timeUnit(model) : "event"}s ${value(first)} to ${value(last)} of ${value(model.events.length - 1)}`;
}

/* How busy a block keeps the copy engine and the tensor cores: "copies in flight 40 %, wgmma in flight 35 %, both at once 20 %". */
function busyText(model, block, view) {
  const [copies, wgmmas] = [model.copies, model.wgmmas].map((list) => list.filter(({ warp }) => blockOfWarp(model, warp) === block));
  const either = [...copies, ...wgmmas].sort((a, b) => a.begin - b.begin);
  if (!either.length) return "";
  const [copying, multiplying, any] = [copies, wgmmas, either].map((spans) => coveredShare(model, indexSpans(spans), view));
  const shares = [["copies in flight", copies.length, copying], ["wgmma in flight", wgmmas.length, multiplying],
    ["both at once", copies.length && wgmmas.length, copying + multiplying - any]];
  const texts = shares.filter(([, is]) => is).map(([name, , share]) => `${name} ${Math.round(100 * share)} %`);
  const note = model.recording.header.clock ? "" : " These are not times: for an H200's, record with EMULATOR_CLOCK=h200.";
  return `Of the ${timeUnit(model)}s shown: ${texts.join(", ")}.${note}`;
}

function drawLanes(canvas, model, lanes, view, { width, height }, selected, colors) {
  const context = sizeCanvas(canvas, width, height);
  const x = timelineScale(model, view, width);
  const shades = { ...colors, hatch: hatchPattern(context, colors) };
  const left = labelWidth(model, width);
  context.font = LANE_FONT;
  context.textBaseline = "middle";
  drawRuler(context, model, view, width, height, colors);
  lanes.forEach((lane, i) => {
    const high = laneHeight(lanes);
    const y = RULER_HEIGHT + i * high + 2;
    if (selected === i) fillBox(context, colors.selected, 0, y, width, high);
    context.save();
    context.beginPath();
    context.rect(left, y, width - left, high);
    context.clip();
    DRAW_LANE[lane.kind](context, model, lane, view, x, y + 2, high - 5, shades);
    context.restore();
    writeText(context, colors.text, shortened(context, lane.name, left - 8), 4, y + high / 2);
  });
  for (const n of model.findings.filter((each) => each >= view.first && each <= view.last))
    drawLine(context, [x(n), 0], [x(n), height], { color: colors.finding, width: 1, dash: [2, 4] });
}

/* Sizes the canvas for the screen's pixels and clears it. */
function sizeCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
