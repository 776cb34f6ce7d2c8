/* report.js: a report taken apart: the two places that it is about, what is missing between them, and what to do.
 *
 * ① is where the mistake was found. ② is the other side: of a race the other access, of a hang the line that lets nobody go on.
 * A side is {did, place: {file, line} or null, event: where in the recording, or -1}. */

/* The other place that a report names: "... written by thread 97 at tile.cu:26", "... (line 34 of the source)". */
const OTHER_PLACE = /^([^]*?)(?: at ([^\s:]+):(\d+)|\(?(?:at )?line (\d+) of the source)/;

/* What was done there, in the words before it: [pattern, who it names and what they do]. */
const OTHER_DEEDS = [
  [/the ([\w. ]+?) (?:was )?issued by (.+)$/, (kind, who) => [who, `issues the ${kind}`]],
  [/the (wgmma|copy|tensor load|tensor store)(?: issued)?$/i, (kind) => ["another thread", `issues the ${kind}`]],
  [/written by (.+?)$/, (who) => [who, "writes the same bytes"]],
  [/(initialised|changed) by (.+?) ?\(?$/, (done, who) => [who, done.replace(/d$/, "s it")]],
  [/(?:which|; )(.+?) (read|wrote)$/, (who, done) => [who, `${done === "read" ? "reads" : "writes"} the same bytes`]],
  [/(?:initialised(?: before)?|init|initialised at) \(?$/, () => ["another thread", "initialises the mbarrier"]],
  [/It has expected bytes here$/, () => ["this thread", "expected bytes there before"]],
  [/matters:$/, () => ["", "the value is used"]],
];

/* What stands between the two, by the words of the report; else the title of its rule does. */
const BETWEEN = [
  [/ at [^\s:]+:(\d+), asked for parity \d and succeeded because (phase \d+) is over\./, "the wait at line $1 is for $2"],
  [/nothing orders|was started over it|has shown nothing/, "nothing orders these two"],
  [/(?:no|only a?) ?fence\.proxy|but neither this one/, "no proxy fence orders these two"],
  [/has (?:not )?landed|may still be|may not have|has not waited/, "no wait orders these two"],
];

function reportAt(model, n) {
  if (!model.reports) model.reports = new Map();
  if (!model.reports.has(n)) model.reports.set(n, isHang(model.events[n]) ? hangAt(model, n) : findingAt(model, n));
  return model.reports.get(n);
}

/* Which side of a report comes first, where an order is what is missing; "": it is about something else. */
const firstSide = ({ a, b, between }) =>
  (!b || a.event < 0 || b.event < 0 || !/orders|is for phase/.test(between) ? "" : a.event < b.event ? "①" : "②");

/* Does the clock do the two sides in another order than the run? */
function ordersDiffer(model, n) {
  if (!model.differing) model.differing = new Map();
  if (!model.differing.has(n)) {
    const twin = model.other ? twinOf(model, n) : -1;
    model.differing.set(n, twin >= 0 && firstSide(reportAt(model, n)) !== firstSide(reportAt(model.other, twin)));
  }
  return model.differing.get(n);
}

const ruleOf = (model, event) => model.recording.rules.get(event[5]) ||
  { rule: event[5], grade: event[0], heading: "", means: "", fix: "" };

/* "shared memory at offset 0x480" by its name. */
function withNames(model, text, home) {
  const offsets = /(?:shared memory|the m?barrier) at (?:shared-memory )?offset (0x[0-9a-f]+)(?: of rank (\d+))?/g;
  return text.replace(offsets, (all, offset, rank = home) => {
    const address = ((rank << 24) | Number(offset)) >>> 0;
    return model.barriers.has(address) ? barrierName(model, address) : addressName(model, address);
  });
}

const homeOf = (model, event) => Math.max(0, blockOfEvent(model, event));

/* What the checker compares are accesses in the order of the run: there the other one is found. */
function findingAt(model, n) {
  const inRun = model.other && !model.inRun ? twinOf(model, n) : -1;
  if (inRun >= 0) {
    const found = reportAt(model.other, inRun);
    const here = (side) => side && { ...side, event: twinOf(model.other, side.event) };
    return { ...found, a: here(found.a), b: here(found.b) };
  }
  const event = model.events[n];
  const rule = ruleOf(model, event);
  const [first, ...rest] = event[6].trim().split("\n").map((line) => line.trim());
  const named = withNames(model, first, homeOf(model, event)).replace(/\.$/, "");
  const [clause] = named.split(event[0] === "fault" ? /[;:] / : /[,;:] |\. | through /);
  const warp = event[2] >= 0 ? warpName(model, event[2]) : "a thread";
  const did = clause === "the block has ended" ? "the block ends, and this is still open" : /^[a-z]+s\b/.test(clause) ? `${warp} ${clause}`
    : / was | will /.test(clause) ? `${warp} uses it: ${opcodeOf(model, event)}` : clause;
  const a = { did, place: outerPlace(placeOf(model, event)), event: accessAt(model, n) };
  const b = otherSide(model, n, a.event);
  const [pattern, words] = BETWEEN.find(([each]) => each.test(first)) || BETWEEN.find(([each]) => each.test(event[6])) || [];
  const missing = pattern ? event[6].match(pattern)[0].replace(pattern, words) : rule.heading;
  const isOneWarp = b && b.event >= 0 && warpOf(model, model.events[b.event]) === event[2] && model.events[a.event][0] !== "shared";
  const between = b && b.reads ? "nothing orders these two"
    : isOneWarp && /^no wait/.test(missing) ? "no wait for ② in between" : missing;
  const remedy = event[0] === "fault" ? [capitalised(named.slice(clause.length + 2)), rule.fix].filter(Boolean).join(". ") : rule.fix;
  const harmless = wrongLine(model.recording.ended) ? / If the order does not matter here, nothing is wrong\./ : "";
  const advice = withNames(model, rest.join(" "), homeOf(model, event)).replace(harmless, "") || remedy;
  const isReason = event[0] !== "fault" && named.includes(": ");
  const why = isReason ? `${asSentence(/^[a-z]+s\b/.test(named) ? `${warp} ${named}` : named)}.` : "";
  return { rule, words: event[6], heading: rule.heading, why, advice, between, a, b };
}

const outerPlace = (place) => (place && place.file >= 0 ? { file: place.file, line: place.line } : null);

/* The first shared address that a report names, or null. */
function addressIn(text, home) {
  const [, offset, rank = home] = /offset (0x[0-9a-f]+)(?: of rank (\d+))?/.exec(text) || [];
  return offset ? ((rank << 24) | Number(offset)) >>> 0 : null;
}

const ACCESSES = ["shared", "copy", "wgmma", "mbarrier", "fence"];

/* The access that was reported: of the warp, at that instruction, to these bytes; then, or before. */
function accessAt(model, n) {
  const { events, warps } = model;
  const address = addressIn(events[n][6], homeOf(model, events[n]));
  const all = warps[events[n][2]] ? warps[events[n][2]].events.filter((k) => ACCESSES.includes(events[k][0]) &&
    events[k][PLACE_AT[events[k][0]]] === events[n][4]) : [];
  const over = all.filter((k) => address !== null && isOver(events[k], address));
  const there = over.length ? over : all;
  const [found] = there.filter((k) => events[k][1] === events[n][1] && (k > n || events[k][0] !== "copy")); // a copy is reported first
  return found !== undefined ? found : lastUpTo(there, n) < 0 ? n : lastUpTo(there, n);
}

function otherSide(model, n, mine) {
  const event = model.events[n];
  const text = event[6].replace(/\n/g, " ");
  const [, before = "", name, line, ofSource] = OTHER_PLACE.exec(text) || [];
  const file = name ? model.recording.files.findIndex(({ path }) => path.endsWith(`/${name}`) || path === name)
    : (placeOf(model, event) || { file: -1 }).file;
  if (!before || file < 0) return null;
  const place = { file, line: Number(line || ofSource) };
  const [words, deed] = OTHER_DEEDS.find(([pattern]) => pattern.test(before)) || [/$/, () => ["", "the other place"]];
  const [who, does] = deed(...words.exec(before).slice(1));
  const at = eventOfOther(model, n, mine, place, who, does);
  const reader = event[5] === "stage-reused-too-early" && at >= 0 ? readerOf(model, mine, at, addressIn(text, homeOf(model, event))) : -1;
  if (reader >= 0) {
    const did = `${warpName(model, warpOf(model, model.events[reader]))} reads ${addressName(model, rangesOf(model.events[reader])[0][0])}`;
    return { did, place: outerPlace(placeOf(model, model.events[reader])), event: reader, reads: true };
  }
  const copy = at >= 0 && model.events[at][0] === "copy" ? model.copies[model.events[at][2]] : null;
  const did = copy && does.startsWith("issues") ? `issues ${copyName(model, copy)}` : does;
  const agent = at >= 0 && who.startsWith("another") ? warpName(model, Math.max(0, warpOf(model, model.events[at])))
    : who.replace("this thread", "the same thread").replace(" of the same warp", "");
  return { did: `${agent} ${did}`.trim(), place, event: at };
}

/* The warp that "thread 97 of rank 1", "a thread of warp 3" or "warp 0 of block (0,0,0)" is of, or -1: another block's. */
function warpNamed(model, who, event) {
  const perBlock = model.cluster.warps_per_block;
  const [, rank] = /of rank (\d+)/.exec(who) || [];
  const [, block] = /of block \(([\d,]+)\)/.exec(who) || [];
  const home = rank !== undefined ? Number(rank) : block === undefined ? homeOf(model, event)
    : model.cluster.blocks.findIndex((index) => index.join(",") === block);
  const [, warp] = /warp (\d+)/.exec(who) || [];
  const [, thread] = /thread (\d+)/.exec(who) || [];
  if (home < 0 || (warp === undefined && thread === undefined && who !== "this thread")) return -1;
  if (warp !== undefined) return home * perBlock + Number(warp);
  return thread === undefined ? event[2] : home * perBlock + Math.floor(Number(thread) / LANES);
}

/* The event of the other access. The checker's order is not that of the clock: the access may come later here. */
function eventOfOther(model, n, mine, place, who, does) {
  const event = model.events[n];
  const warp = model.warps[warpNamed(model, who, event)];
  const own = warp ? warp.events : /another|this kernel/.test(who) ? model.events.map((_, k) => k).slice(0, mine) : [];
  const address = addressIn(event[6], homeOf(model, event));
  const kinds = /issues|wgmma|copy/.test(does) ? ["copy", "wgmma"] : /reads|writes/.test(does) ? ["shared"]
    : ["mbarrier", "shared", "fence"];
  const isThere = (k) => {
    const { file = -1, line } = placeOf(model, model.events[k]) || {};
    return k !== mine && file === place.file && line === place.line;
  };
  const there = own.filter(isThere);
  const alike = there.filter((k) => kinds.includes(model.events[k][0]) &&
    (model.events[k][0] !== "shared" || (model.events[k][5] === "read") === /reads/.test(does)));
  const over = alike.filter((k) => address !== null && isOver(model.events[k], address));
  const among = over.length ? over : alike.length ? alike : there;
  const isInFlight = (k) => model.events[k][0] === "copy" && k < mine && model.copies[model.events[k][2]].end > mine;
  const inFlight = among.filter(isInFlight);
  const [before, after] = [among.filter((k) => k < mine), among.filter((k) => k > mine)];
  if (inFlight.length) return inFlight.pop();
  if (/ has landed/.test(event[6]) && before.length) return before.pop();
  if (event[5] === "stage-reused-too-early" && after.length) return after[0];
  const isApart = (k) => model.arrivals.some((at) => model.events[at][8] === 1 && at > Math.min(k, mine) && at < Math.max(k, mine));
  const nearest = [before.pop(), after[0]].filter((k) => k !== undefined).sort((i, k) => Math.abs(i - mine) - Math.abs(k - mine));
  const found = nearest.find((k) => !isApart(k));
  return found !== undefined ? found : nearest.length ? nearest[0] : -1;
}

/* ---- Hangs ---- */

/* Who waits for what, and the line that lets them wait forever. */
function hangAt(model, n) {
  const event = model.events[n];
  const rule = ruleOf(model, event);
  const wait = event[2] < 0 ? null : warpWaits(model, event[2], n).find(({ mask }) => mask & event[3]);
  const [cause = ""] = /likely cause: [^\n]*/.exec(event[6]) || [];
  if (!wait) return { ...findingAt(model, n), advice: [rule.fix, asSentence(cause)].join(" ") };
  const on = model.events[wait.begin][5];
  const isSame = ({ begin }) => String(model.events[begin][5]) === String(on) &&
    opcodeOf(model, model.events[begin]) === opcodeOf(model, model.events[wait.begin]);
  const waiting = model.warps.filter(({ number }) => warpWaits(model, number, n).some(isSame)).map(({ number }) => number);
  const who = `${warpsName(model, waiting)} ${waiting.length === 1 ? "waits" : "wait"}`;
  const { needs, side } = on.length ? rootAtBarrier(model, event, on, n)
    : { needs: textOf(explainOtherWait(model, event[2], wait, n)), side: absentAt(model, event[2], waiting, n) };
  return { rule, words: event[6], heading: `${rule.heading}: ${who} forever. ${needs}`, root: needs,
    advice: [rule.fix.replace(/`/g, ""), asSentence(cause)].join(" "),
    between: "forever, because", b: side,
    a: { did: `${who}${on.length ? ` for ${barrierName(model, on[1])}` : ""}`, place: outerPlace(placeOf(model, event)),
      event: wait.begin } };
}

/* Where a warp is that the others wait for, and that does not wait with them. */
function absentAt(model, number, waiting, n) {
  const perBlock = model.cluster.warps_per_block;
  const absent = model.warps.find((warp) => !waiting.includes(warp.number) && warp.steps.length &&
    Math.floor(warp.number / perBlock) === Math.floor(number / perBlock));
  const [group] = absent ? warpPlaces(model, absent.number, n) : [];
  return group ? { did: `${warpName(model, absent.number)} ${exitedLanes(model, absent.number, n) ? "ended" : "is"} here`,
    place: outerPlace(group.place), event: group.event } : null;
}

const warpsName = (model, numbers) => {
  const perBlock = model.cluster.warps_per_block;
  const home = Math.floor(numbers[0] / perBlock);
  const mine = numbers.filter((number) => Math.floor(number / perBlock) === home);
  const others = numbers.length - mine.length;
  const block = model.blocks > 1 ? `block ${home} ` : "";
  return `${block}warp${mine.length > 1 ? "s" : ""} ${numberRuns(mine.map((number) => number % perBlock))}` +
    (others ? ` and ${others} of other blocks` : "");
};

/* What a phase of a barrier was told to expect and what it got: {announced, brought, expects, brings}; the last two are events. */
function bytesOfPhase(model, { changes }, phase) {
  const sums = { announced: 0, brought: 0, expects: -1, brings: -1 };
  changes.forEach((k, i) => {
    const [, , , why, now, , , bytes] = model.events[k];
    const [, , , , last, , , rest] = model.events[changes[Math.max(0, i - 1)]];
    const delta = now === phase && why !== "init" ? bytes - (last === phase ? rest : 0) : 0;
    if (why === "landed" && delta) [sums.brought, sums.brings] = [sums.brought - delta, k];
    else if (delta > 0) [sums.announced, sums.expects] = [sums.announced + delta, k];
  });
  return sums;
}

/* {needs: what the phase lacks, in a sentence, side: the line to blame}. */
function rootAtBarrier(model, event, [, address, parity], n) {
  const barrier = model.barriers.get(address);
  const state = barrierState(model, address, n);
  const name = barrierName(model, address);
  const side = (k, did) => {
    const place = k < 0 ? null : outerPlace(placeOf(model, model.events[k]));
    return k < 0 ? null : { did, place, event: k, defined: place && definitionIn(model.recording, place) };
  };
  if (!state) return { needs: `Nothing has initialised ${name}.`, side: null };
  const birth = barrierBirth(model, barrier, n);
  const init = (did) => side(birth, did);
  const count = plural(state.expected, "arrival");
  if (state.parity !== parity || event[5] === "phase-missed") {
    const ends = lastUpTo(barrier.changes.filter((k) => roseTo(model, model.events[k], k)), n);
    return { needs: `They ask for parity ${parity} of ${name} when phase ${state.phase} is running: the phase that they mean went by.`,
      side: /count-too-low/.test(event[5]) ? init(`${name} needs only ${count}`)
        : side(ends, `phase ${state.phase - 1} ends here, and they ask after it`) };
  }
  const { announced, brought, expects, brings } = bytesOfPhase(model, barrier, state.phase);
  const stray = strayOf(model, event, address, n);
  const came = `${(state.bytes ? brought : state.expected - state.pending).toLocaleString("en-US")} came`;
  if (!state.bytes) return { needs: `Phase ${state.phase} of ${name} needs ${count}, and ${came}.`,
    side: stray || init(`${name} needs ${count}, ${came}`) };
  return { needs: `Phase ${state.phase} of ${name} expects ${plural(announced, "byte")}, and ${came}.`,
    side: stray || (expects >= 0 ? side(expects, `${name} is told to expect ${plural(announced, "byte")}, ${came}`)
      : { ...side(brings, `nobody has told ${name} to expect what this copy brings`), defined: null }) };
}

/* What went to another barrier: the copy whose bytes, or the arrival that, this one lacks. null: nothing did. */
function strayOf(model, event, address, n) {
  const [, other] = /the mbarrier at shared address (0x[0-9a-f]+)[^\n]* has just as many/.exec(event[6]) || [];
  const [, rank] = /the barrier at the same offset of rank (\d+)/.exec(event[6]) || [];
  const there = other ? Number(other) : rank !== undefined ? ((rank << 24) | offsetOf(address)) >>> 0 : null;
  if (there === null || !model.barriers.has(there)) return null;
  const changes = model.barriers.get(there).changes.filter((k) => k <= n && ["landed", "arrive"].includes(model.events[k][3]));
  const copies = changes.filter((k) => model.events[k][3] === "landed").map((k) => model.copies[model.events[k][11]].begin);
  const at = other ? copies.pop() : changes.filter((k) => model.events[k][8] >= 0).pop();
  if (at === undefined) return null;
  return { did: `this ${other ? "copy reports to" : "arrives at"} ${barrierName(model, there)} instead`,
    place: outerPlace(placeOf(model, model.events[at])), event: at };
}

/* Where a constant in this line of source is defined: {name, place, text}; null: nowhere in the file. */
function definitionIn(recording, { file, line }) {
  const lines = linesOfFile(recording, file);
  for (const [name] of (lines[line - 1] || "").matchAll(/\b[A-Z][A-Z0-9_]{2,}\b/g)) {
    const at = lines.findIndex((text) => new RegExp(`\\b${name}\\s*=[^=]|#define\\s+${name}\\b`).test(text));
    if (at >= 0) return { name, place: { file, line: at + 1 }, text: lines[at] };
  }
  return null;
}
