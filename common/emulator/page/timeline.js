/* timeline.js: the lanes over time: warps, copies, tensor cores, barriers. Drawn on a canvas. */

const LANE_HEIGHT = 18;
const LABEL_WIDTH = 132;

/* The lanes of a cluster, from top to bottom: {kind, key, name}. */
function timelineLanes(model) {
  const lanes = model.warps.map((warp) => ({ kind: "warp", key: warp.number, name: warpName(model, warp.number) }));
  for (let i = 0; i < copyLaneCount(model); i++) lanes.push({ kind: "copy", key: i, name: i ? "" : "copy engine" });
  const groups = new Set(model.wgmmas.map((wgmma) => warpgroupOf(model, wgmma.warp)));
  for (const group of [...groups].sort((a, b) => a - b))
    lanes.push({ kind: "tensor", key: group, name: `tensor cores ${group}` });
  for (const address of [...model.barriers.keys()].sort((a, b) => a - b))
    lanes.push({ kind: "barrier", key: address, name: addressName(model, address) });
  return lanes;
}

const warpgroupOf = (model, warp) =>
  Math.floor(warp / model.cluster.warps_per_block) * Math.ceil(model.cluster.warps_per_block / 4) +
  Math.floor((warp % model.cluster.warps_per_block) / 4);

/* Copies in flight at the same time get lanes of their own, up to this many. */
const COPY_LANES = 8;

function copyLaneCount(model) {
  if (model.copyLane) return model.copyLanes;
  const free = [];
  model.copyLane = model.copies.map((copy) => {
    let lane = free.findIndex((end) => end <= copy.issued);
    if (lane < 0) lane = free.length < COPY_LANES ? free.length : COPY_LANES - 1;
    free[lane] = copy.landed;
    return lane;
  });
  model.copyLanes = free.length;
  return model.copyLanes;
}

/* view: {first, last} events shown. Returns a function from an event to its x. */
function timelineScale(view, width) {
  const span = Math.max(1, view.last - view.first);
  return (n) => LABEL_WIDTH + ((Math.min(n, view.last + span) - view.first) / span) * (width - LABEL_WIDTH);
}

function drawTimeline(canvas, model, lanes, view, n, selection, colors) {
  const width = canvas.clientWidth;
  const height = lanes.length * LANE_HEIGHT + 4;
  const context = sizeCanvas(canvas, width, height);
  const x = timelineScale(view, width);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  lanes.forEach((lane, i) => {
    const y = i * LANE_HEIGHT + 2;
    if (selection.lane === i) {
      context.fillStyle = colors.selected;
      context.fillRect(0, y, width, LANE_HEIGHT);
    }
    context.save();
    context.beginPath();
    context.rect(LABEL_WIDTH, y, width - LABEL_WIDTH, LANE_HEIGHT);
    context.clip();
    DRAW_LANE[lane.kind](context, model, lane.key, view, x, y + 3, LANE_HEIGHT - 6, colors);
    context.restore();
    context.fillStyle = colors.text;
    context.fillText(lane.name, 4, y + LANE_HEIGHT / 2, LABEL_WIDTH - 8);
  });
  drawFindings(context, model, view, x, height, colors);
  context.strokeStyle = colors.cursor;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(x(n), 0);
  context.lineTo(x(n), height);
  context.stroke();
}

function drawFindings(context, model, view, x, height, colors) {
  context.strokeStyle = colors.finding;
  context.lineWidth = 2;
  context.setLineDash([4, 3]);
  for (const n of model.findings) {
    if (n < view.first || n > view.last) continue;
    context.beginPath();
    context.moveTo(x(n), 0);
    context.lineTo(x(n), height);
    context.stroke();
  }
  context.setLineDash([]);
}

/* Bars closer than a pixel are drawn as one. */
function drawBars(context, bars, x, y, height, pattern) {
  let drawn = -1;
  for (const bar of bars) {
    const left = x(bar.begin);
    const right = Math.max(left + 1, x(bar.end));
    if (right <= drawn) continue;
    context.fillStyle = bar.color;
    context.fillRect(Math.max(left, drawn), y, right - Math.max(left, drawn), height);
    if (bar.hatched) hatch(context, Math.max(left, drawn), y, right - Math.max(left, drawn), height, pattern);
    drawn = right;
  }
}

function hatch(context, left, top, width, height, color) {
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  context.strokeStyle = color;
  context.lineWidth = 1;
  context.beginPath();
  for (let at = left - height; at < left + width; at += 5) {
    context.moveTo(at, top + height);
    context.lineTo(at + height, top);
  }
  context.stroke();
  context.restore();
}

const DRAW_LANE = {
  warp(context, model, number, view, x, y, height, colors) {
    const warp = model.warps[number];
    const first = warp.events.length ? warp.events[0] : Infinity;
    const last = warp.exits.length ? warp.exits[warp.exits.length - 1] : model.events.length;
    if (first === Infinity) return;
    drawBars(context, [{ begin: first, end: last, color: colors.running }], x, y, height);
    const waits = warp.waits.filter((wait) => wait.end >= view.first && wait.begin <= view.last)
      .map((wait) => ({ begin: wait.begin, end: Math.min(wait.end, last), color: colors.waiting, hatched: true }));
    drawBars(context, waits, x, y, height, colors.hatch);
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
  },
  copy(context, model, lane, view, x, y, height, colors) {
    const bars = model.copies.filter((copy) => model.copyLane[copy.number] === lane && copy.landed >= view.first && copy.issued <= view.last)
      .map((copy) => ({ begin: copy.issued, end: Math.min(copy.landed, model.events.length), color: authorColor("c" + copy.number, model, colors), hatched: true }));
    drawBars(context, bars, x, y, height, colors.hatch);
  },
  tensor(context, model, group, view, x, y, height, colors) {
    const bars = model.wgmmas.filter((wgmma) => warpgroupOf(model, wgmma.warp) === group && wgmma.done >= view.first && wgmma.issued <= view.last)
      .map((wgmma) => ({ begin: wgmma.issued, end: Math.min(wgmma.done, model.events.length), color: colors.tensor }));
    drawBars(context, bars, x, y, height);
  },
  barrier(context, model, address, view, x, y, height, colors) {
    const changes = model.barriers.get(address).changes;
    const bars = [];
    for (let i = Math.max(0, countUpTo(changes, view.first) - 1); i < changes.length && changes[i] <= view.last; i++) {
      const event = model.events[changes[i]];
      const end = i + 1 < changes.length ? changes[i + 1] : model.events.length;
      if (event[3] !== "inval")
        bars.push({ begin: changes[i], end, color: event[4] & 1 ? colors.parity1 : colors.parity0, phase: event[4] });
    }
    drawBars(context, bars, x, y, height);
    context.fillStyle = colors.onColor;
    let labelled = -Infinity;
    let phase = -1;
    for (const bar of bars) {
      if (bar.phase === phase || x(bar.begin) < labelled + 24) continue;
      phase = bar.phase;
      labelled = x(bar.begin);
      context.fillText(String(phase), Math.max(labelled, LABEL_WIDTH) + 3, y + height / 2);
    }
  },
};

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
