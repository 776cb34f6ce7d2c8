/* reason.js: why what stands between the two sides of a report does not order them, from the recording. */

/* In a sentence, of a report as it is drawn. "": nothing stands there, or the report says why itself. */
function whyNotEnough(model, report) {
  if (!isOfOrder(report) || report.reason) return "";
  const [first, second] = sidesOf(report).map(({ event }) => event);
  if (report.between.startsWith("no proxy fence")) return acrossProxies(model, report, first, second);
  const [kind, , number] = model.events[first];
  const name = kind === "wgmma" ? "wgmma is done" : kind !== "copy" ? ""
    : `${model.copies[number].kind} has ${/ reading/.test(report.words) ? "read its source" : "landed"}`;
  const met = name && report.between.startsWith("no wait") && meetingBetween(model, first, second);
  return met ? `${asSentence(met)} stands between ① and ②, but does not show that the ${name}.` : "";
}

/* Where the threads of two events meet between them: at a barrier, or by an arrival after the first that the other one's warp has waited
 * for. "": nowhere. */
function meetingBetween(model, first, second) {
  const { events, arrivals, warps } = model;
  const [one, two] = [first, second].map((n) => warpOf(model, events[n]));
  for (const over of arrivals.filter((k) => k > first && k < second && completes(events[k]))) {
    const round = roundOf(model, over);
    if (round.some((k) => k > first && events[k][2] === one) && round.some((k) => events[k][2] === two))
      return events[over][0] === "bar" ? barName(model, events[over]) : `the cluster barrier (line ${placeOf(model, events[over]).line})`;
  }
  for (const seen of warps[two].events.filter((k) => k < second && events[k][0] === "observed")) {
    const [, , , , , address, phase] = events[seen];
    const at = arrivalsOf(model, address, phase).find((k) => k > first && k < seen && events[k][8] === one);
    if (at !== undefined)
      return `${warpName(model, one)}'s arrival at ${barrierName(model, address)} (line ${placeOf(model, events[at]).line})`;
  }
  return "";
}

/* Fences and barriers between two accesses, of which one is through another proxy. */
function acrossProxies(model, report, first, second) {
  const [, lanes, fence, memory] = /\. (Other lanes .*)|there is only a (fence\.proxy\S*) for (\w+) memory/.exec(report.words) || [];
  const writer = `the thread of ${letterOf(report, report.b)}`;
  if (lanes) return lanes.replace("its warp", "that warp").replace("neither this one", `neither ${writer}`);
  if (fence) return `The ${fence} between ① and ② is for ${memory} memory only.`;
  const warps = [first, second].map((n) => warpOf(model, model.events[n]));
  const fences = model.events.slice(first, second).filter((event) => event[0] === "fence" && warps.includes(event[2]) &&
    /^(membar|fence\.(acq_rel|sc))\b/.test(opcodeOf(model, event)));
  const stand = [...new Set([...fences.map((event) => `${opcodeOf(model, event)} (line ${placeOf(model, event).line})`),
    meetingBetween(model, first, second)].filter(Boolean))];
  const [are, order] = stand.length > 1 ? ["stand", "order"] : ["stands", "orders"];
  return !stand.length ? ""
    : `${asSentence(stand.join(" and "))} ${are} between ① and ②, but ${order} accesses through the generic proxy only.`;
}

/* The last wait before a copy goes over bytes that another warp may still read: who has arrived there. "": there is none. */
function releaseBefore(model, a, b) {
  const warp = warpOf(model, model.events[a.event]);
  const at = lastUpTo(model.warps[warp].events.filter((k) => model.events[k][0] === "observed"), a.event);
  if (at < 0) return "";
  const [, , , , , address, phase] = model.events[at];
  const arrived = arrivalsOf(model, address, phase).map((k) => model.events[k][8]);
  const [who, reader] = [[...new Set(arrived)].sort((i, k) => i - k), warpOf(model, model.events[b.event])];
  if (!who.length || who.includes(reader)) return "";
  const barrier = model.barriers.get(address);
  const wait = `${barrierName(model, address)} (line ${placeOf(model, model.events[at]).line})`;
  if (barrier.copies.length) return who.some((each) => each !== warp) ? ""
    : `The last wait of ${warpName(model, warp)} before its copy, for ${wait}, shows that bytes have landed, ` +
      `not that ${warpName(model, reader)} has read them.`;
  const birth = model.events[barrierBirth(model, barrier, a.event)];
  const counts = `${barrierName(model, address)} counts ${plural(birth[6], "arrival")} a phase, line ${placeOf(model, birth).line}`;
  const blockOf = (each) => blockOfWarp(model, each);
  const isApart = who.every((each) => blockOf(each) === blockOf(warp)) && blockOf(reader) !== blockOf(warp);
  return isApart ? `Block ${blockOf(warp)} waits for its own ${who.length > 1 ? "readers" : "reader"} only (${counts}). ` +
    `Block ${blockOf(reader)} may still read its bytes.`
    : `${asSentence(warpName(model, warp))} waits for ${warpsName(model, who)} only (${counts}). ` +
    `${asSentence(warpName(model, reader))} may still read the bytes.`;
}

/* The arrivals of threads at a barrier in one of its phases. */
const arrivalsOf = (model, address, phase) => model.barriers.get(address).changes.filter((k, i, changes) =>
  ["arrive", "drop"].includes(model.events[k][3]) && phaseBefore(model, changes, k) === phase);

/* The phase of a barrier that was running before this change. */
const phaseBefore = (model, changes, k) => model.events[changes[Math.max(0, changes.indexOf(k) - 1)]][4];
