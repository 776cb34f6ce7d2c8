/* moments.js: the summary: the few moments of a run that tell what happens in it, each with what happened and what to
 * notice, made from the recording. */

const MOST_MOMENTS = 8;
const MOST_OF_MISTAKE = 6;

const roseTo = (model, event, n) => {
  const changes = model.barriers.get(event[2]).changes;
  const before = lastUpTo(changes, n - 1);
  return before >= 0 && event[4] > model.events[before][4];
};

const announces = (model, event, n) => {
  const before = lastUpTo(model.barriers.get(event[2]).changes, n - 1);
  return event[3] !== "landed" && before >= 0 && event[7] > model.events[before][7];
};

/* Is this a copy into bytes that a copy has written before: a stage that is used again? */
const earlierCopy = (model, event) => event[11].flatMap(([address]) =>
  (model.flights.get(address - (address % CELL_BYTES)) || []).filter((copy) => copy.number < event[2])).pop();

const isRefill = (model, event) => event[0] === "copy" && Boolean(earlierCopy(model, event));

const isHang = ([kind, , , , , , words]) => kind === "fault" && words.startsWith("the kernel hangs");
const hangs = (model) => model.findings.some((n) => isHang(model.events[n]));
const waitAt = (model, event, n) => model.warps[event[2]].waits.find((wait) => wait.begin === n);

/* In a hang, one that does not end. */
const isTellingWait = (model, event, n) => event[0] === "wait" &&
  (hangs(model) ? waitAt(model, event, n).end === Infinity : event[5][0] === "mbarrier");

const isLastWgmma = (model, event, n) => event[0] === "awaited" && event[5] === "wgmma" && event[6] === 0 &&
  !model.wgmmas.some(({ warp, begin }) => warp === event[2] && begin > n);

const isBarrier = (event) => event[0] === "mbarrier";
const isFinding = (event) => event[0] === "finding" || event[0] === "fault";

/* "1,234 clocks" from one event to another. */
const clocksBetween = (model, from, to) => plural(timeOf(model, to) - timeOf(model, from), timeUnit(model));

const inFlightAt = (model, n) => model.copies.filter((copy) => copy.begin <= n && copy.end > n).length;

/* Is this the order of the clock, and the run's, which printed what it did, another one? */
const otherOrder = (model) => !model.inRun && model.findings.some((n) => ordersDiffer(model, n));

/* ① or ②, where event n is that side of the first report, and both were recorded. */
function letterAt(model, n) {
  const sides = model.findings.length ? sidesOf(reportAt(model, model.findings[0])).map(({ event }) => event) : [];
  return sides.length > 1 && !sides.includes(-1) ? ["", "①", "②"][sides.indexOf(n) + 1] : "";
}

/* Does the card of a report stand for the access, too? Else that came earlier, and has one. */
const tellsOfAccess = (model, n) => (({ a }) =>
  isHang(model.events[n]) || !isEarlier(model, a, n) || !letterAt(model, a.event))(reportAt(model, n));

/* What a barrier still needs. */
const needs = (event) => [event[5] && plural(event[5], "arrival"), event[7] && plural(event[7], "byte")].filter(Boolean).join(" and ");

const theBarrier = (model, address) => {
  const name = barrierName(model, address);
  return name.startsWith("mbarrier") ? name : `the mbarrier ${/\W/.test(name) ? name : `'${name}'`}`;
};

/* name: in the address bar. rank: what goes first where there are too many. is: the first event of
 * which this holds. */
const KEY_MOMENTS = [
  { name: "init", rank: 6, is: (model, event) => isBarrier(event) && event[3] === "init",
    happened: (model, e) => `${theBarrier(model, e[2])} is initialised for ${plural(e[6], "arrival")}.`,
    notice: noticeInit },
  { name: "expect", rank: 7, is: (model, event, n) => isBarrier(event) && announces(model, event, n),
    happened: (model, e) => `${theBarrier(model, e[2])} now expects ${needs(e)}.`,
    notice: noticeExpect },
  { name: "copy", rank: 2, is: (model, event) => event[0] === "copy",
    happened: happenedCopy,
    notice: (model, e) => noticeCopy(model, model.copies[e[2]]) },
  { name: "epilogue", rank: 4.5, is: isLastWgmma,
    happened: (model, e) => `${warpName(model, e[2])} has all its results in registers: its epilogue begins.`,
    notice: noticeEpilogue },
  { name: "store", rank: 5.6, is: (model, event) => event[0] === "copy" && event[10].length > 0,
    happened: happenedCopy,
    notice: (model, e) => noticeCopy(model, model.copies[e[2]]) },
  { name: "source", rank: 10, is: (model, event) => event[0] === "source",
    happened: (model, e) => `${copyName(model, model.copies[e[2]])} has read its source.`,
    notice: (model, e, n) => `It is complete ${laterBy(model, n, model.copies[e[2]].end, "never in this recording")}.` },
  { name: "wait", rank: 9, is: isTellingWait,
    happened: (model, e) =>
      `${warpName(model, e[2])} waits ${e[5].length ? `for ${theBarrier(model, e[5][1])}` : `at ${opcodeOf(model, e)}`}.`,
    notice: (model, e, n) => noticeWait(model, e, waitAt(model, e, n)) },
  { name: "landed", rank: 5.2, is: (model, event, n) => landedAt(model, event, n) !== null,
    happened: (model, e, n) => `${copyName(model, landedAt(model, e, n))} is complete.`,
    notice: noticeLanded },
  { name: "phase", rank: 5.3, is: (model, event, n) => isBarrier(event) && roseTo(model, event, n),
    happened: (model, e) => `Phase ${e[4] - 1} of ${theBarrier(model, e[2])} is complete.`,
    notice: noticePhase },
  { name: "multiply", rank: 1, is: (model, event) => event[0] === "wgmma",
    happened: (model, e) => `${warpName(model, e[3])} issues its share of a wgmma.`,
    notice: noticeMultiply },
  ...["own", "other"].map((kind) => ({ name: kind === "own" ? "own" : "overlap", rank: kind === "own" ? 0.6 : 0.5,
    is: (model, event, n) => Boolean(overlapsOf(model)[kind]) && overlapsOf(model)[kind].at === n,
    happened: (model) => happenedOverlap(model, overlapsOf(model)[kind]),
    notice: (model) => noticeOverlap(model, overlapsOf(model)[kind]) })),
  { name: "handover", rank: 0.7, is: (model, event, n) => handoverOf(model).at === n,
    happened: (model, e) =>
      `${warpsName(model, handoverOf(model).warps)} can go on: ${warpName(model, e[2])} arrives at ${barName(model, e)}.`,
    notice: (model) => `The longest wait for it: ${plural(handoverOf(model).time, timeUnit(model))}.` },
  { name: "carried", rank: 0.3, is: (model, event) => isCarried(model, event),
    happened: (model, e) => `${happenedCopy(model, e).replace(/: [^:]*$/, "")}: wgmmas run meanwhile.`,
    notice: noticeCarried },
  { name: "multicast", rank: 0.4, is: (model, event) => isMulticast(event),
    happened: (model, e) => `${happenedCopy(model, e).replace(/: [^:]*$/, "").replace("issues the tensor load of", "loads")} of blocks ` +
      `${numberRuns(ranksOf(e))} at once.`,
    notice: noticeMulticast },
  { name: "refill", rank: 5, is: isRefill,
    happened: (model, e) => `${warpName(model, e[3])} fills ${targetName(model, model.copies[e[2]])} again, by ` +
      `${copyName(model, model.copies[e[2]]).replace(/ into .*/, "")}.`,
    notice: noticeRefill },
  { name: "write", rank: 11, is: (model, event) => event[0] === "shared" && event[5] === "write",
    happened: (model, e) => `${warpName(model, e[2])} writes ${addressName(model, e[8][0][0])}, ${plural(e[6], "byte")} a lane.`,
    notice: noticeWrite },
  { name: "meet", rank: 12, is: (model, event) => event[0] === "bar" && event[8] === 1,
    happened: (model, e) => `${warpName(model, e[2])} is the last to arrive at ${barName(model, e)}.`,
    notice: noticeMeet },
  { name: "read", rank: 10, is: (model, event) => event[0] === "shared" && event[5] === "read",
    happened: (model, e) => `${warpName(model, e[2])} reads ${addressName(model, e[8][0][0])}, ${plural(e[6], "byte")} a lane.`,
    notice: (model, e) => `It takes ${plural(e[7], "pass")} over the 32 banks of shared memory.` },
  { name: "passed", rank: -0.7, is: (model, event, n) => event[0] === "observed" && passedWait(model).at === n,
    happened: (model, e) =>
      `${warpName(model, e[2])} asks ${barrierName(model, e[5])} for parity ${passedWait(model).parity}, and goes on.`,
    notice: (model) => `That ${passedWait(model).because} is enough, and shows nothing new.` },
  { name: "finding", rank: -1, is: (model, event) => isFinding(event),
    happened: (model, e, n) => `${tellsOfAccess(model, n) ? reportAt(model, n).a.did : "Reported here"}: ${e[5]}.`,
    notice: (model, e, n) => noticeReport(model, reportAt(model, n), n) },
  ...["①", "②"].map((letter, i) => ({ name: "side", rank: 9.5, is: (model, event, n) => letterAt(model, n) === letter,
    happened: (model) => `${sidesOf(reportAt(model, model.findings[0]))[i].did}.`,
    notice: (model) => `It comes ${apart(model, reportAt(model, model.findings[0]))} ${i ? "after ①" : "before ②"}.` })),
  { name: "wrong", rank: -0.5, is: (model, event, n) => n === model.events.length - 1 && Boolean(wrongLine(model.recording.ended)),
    happened: (model) => `${otherOrder(model) ? "In another order, the run" : model.recording.ended.checked ? "The first run"
      : "The program then"} printed “${wrongLine(model.recording.ended).trim()}”.`,
    notice: (model, e, n) => `At ${timeText(model, n)} the kernel has ended. ` +
      (model.findings.length ? "The first report shows where it first went wrong." : "No report says why.") },
  { name: "end", rank: 0, is: (model, event, n) => n === model.events.length - 1,
    happened: (model, e, n) => `The last event, at ${timeText(model, n)}.`,
    notice: noticeEnd },
];

/* A sentence that begins with a name of the program stays as it is. */
const FIRST_WORDS = /^(at|warps?|block|the|copy|likely|threads?|this|an?|it|another|innermost|coordinate) /;
function happenedCopy(model, e) {
  return `${warpName(model, e[3])} issues ${copyName(model, model.copies[e[2]])}: ${plural(e[7], "byte")}.`;
}

const capitalised = (text) => text.replace(/^[a-z]+ /, (word) => word[0].toUpperCase() + word.slice(1));
const asSentence = (text) => text.replace(FIRST_WORDS, (word) => word[0].toUpperCase() + word.slice(1));

const countsBytes = (event) => Boolean(event) && isBarrier(event) && event[3] === "landed";

/* The event next to a copy's end at which its barrier counts it. */
const countedAt = (model, n) => [n + 1, n - 1].find((k) => countsBytes(model.events[k]) && model.events[k][11] === model.events[n][2]);

/* The copy that is complete at event n, or null. Where its barrier then needs more, that is the event at which the barrier has
 * counted the bytes. */
function landedAt(model, event, n) {
  const isCounted = countsBytes(event);
  if (!isCounted && event[0] !== "landed") return null;
  const at = isCounted ? n : countedAt(model, n);
  const needsMore = at !== undefined && !roseTo(model, model.events[at], at);
  return isCounted === needsMore ? model.copies[event[isCounted ? 11 : 2]] : null;
}

/* The block in which an event happens, -1: in none alone. */
function blockOfEvent(model, event) {
  if (isBarrier(event)) return rankOf(event[2]);
  const warp = warpOf(model, event);
  return warp < 0 ? -1 : blockOfWarp(model, warp);
}

/* Those that this run has, in the order in which they come, each with `at`, its event. Where a block is as good as another,
 * it is that of the report, else the first. What waits without end is what matters in a hang. */
function keyMoments(model) {
  const moments = [];
  const home = model.findings.length ? Math.max(0, blockOfEvent(model, model.events[model.findings[0]])) : 0;
  for (const each of KEY_MOMENTS) {
    const first = (blocks) => model.events.findIndex((event, n) =>
      (!blocks || blocks.includes(blockOfEvent(model, event))) && each.is(model, event, n));
    const near = each.name === "finding" ? -1 : first([-1, home]);
    const at = near >= 0 ? near : first(null);
    if (at >= 0) moments.push({ ...each, at, rank: each.name === "wait" && hangs(model) ? 0 : each.rank });
  }
  return moments.sort((a, b) => a.at - b.at || a.rank - b.rank);
}

/* Of several at one event the first, and of too many those that say most: of a mistake its sides, each once, and what is used again,
 * and not what every run begins with. */
function summaryOf(moments) {
  const { model } = app;
  const sides = model.findings.length ? sidesOf(reportAt(model, model.findings[0])).map(({ event }) => event) : [];
  const rankOfAll = ({ name, at, rank }) => (sides.includes(at) ? Math.min(rank, 0) : sides.length && name === "refill" ? 1 : rank);
  const untold = ["init", "expect", ...(hangs(model) ? ["meet"] : [])];
  const isReported = ({ name, at }) => name === "wait" && model.findings.some((n) => isHang(model.events[n]) &&
    String((model.events[reportAt(model, n).a.event] || [])[5]) === String(model.events[at][5])); // its card tells of the wait
  const told = sides.length && tellsOfAccess(model, model.findings[0]) ? reportAt(model, model.findings[0]).a.event : -1;
  const isTelling = (each) => !isReported(each) && (each.at !== told || each.rank <= 0) &&
    (!sides.length || !untold.includes(each.name) || sides.includes(each.at));
  const distinct = moments.filter(({ at }, i) => !i || at !== moments[i - 1].at).filter(isTelling);
  const most = [...distinct].sort((a, b) => rankOfAll(a) - rankOfAll(b)).slice(0, sides.length ? MOST_OF_MISTAKE : MOST_MOMENTS);
  return distinct.filter((each) => most.includes(each));
}

/* The n-th of them, counted from 1, as the keys are. */
function goToMoment(number) {
  if (number > app.moments.length) return;
  app.chosenMoment = app.moments[number - 1];
  standAt(app.chosenMoment.at);
  show();
}

function listMoments() {
  const { model } = app;
  app.moments = summaryOf(keyMoments(model));
  byId("moments").replaceChildren(...app.moments.map((each, i) => {
    const lines = [each.happened, each.notice].map((words) => {
      const title = asSentence(words(model, model.events[each.at], each.at));
      return Object.assign(tag("span", "", title), { title });
    });
    const isLate = each.name === "finding" && !tellsOfAccess(model, each.at);
    const letter = isLate ? "" : letterAt(model, each.name === "finding" ? reportAt(model, each.at).a.event : each.at);
    lines[0].prepend(`${i + 1} `, letter && `${letter} `);
    return tag("li", "", button(each.name, () => goToMoment(i + 1), ...lines));
  }));
}

function showMoments() {
  for (const [i, { firstChild }] of [...byId("moments").children].entries()) {
    const chosen = app.moments[i].at === app.view.event;
    firstChild.setAttribute("aria-pressed", String(chosen));
    if (chosen) byId("moments").scrollLeft = firstChild.offsetLeft - byId("moments").offsetLeft; // on a phone only one is in sight
  }
}
