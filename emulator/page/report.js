/* report.js: a report taken apart: the two places that it is about, what is missing between them, and what to do.
 *
 * a is where the mistake was found. b is the other side: of a race the other access, of a hang the line that lets nobody go on.
 * A side is {did, place: {file, line} or null, event: where in the recording, or -1}. */

/* [①, ②]: as they come in the order that is drawn; where one has no event, the one where the mistake was found comes first. */
const sidesOf = ({ a, b }) => (!b ? [a] : a.event >= 0 && b.event >= 0 && b.event < a.event ? [b, a] : [a, b]);
const letterOf = (report, side) => (sidesOf(report)[0] === side ? "①" : "②");

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

/* Is an order of two sides what is missing? */
const isOfOrder = ({ a, b, between }) => Boolean(b) && a.event >= 0 && b.event >= 0 && /orders|is for phase/.test(between);
const isFoundFirst = ({ a, b }) => a.event < b.event;

/* Does the clock do the two sides in another order than the run? */
function ordersDiffer(model, n) {
  if (!model.differing) model.differing = new Map();
  if (!model.differing.has(n)) {
    const twin = model.other ? twinOf(model, n) : -1;
    const [here, there] = twin < 0 ? [] : [reportAt(model, n), reportAt(model.other, twin)];
    model.differing.set(n, twin >= 0 && isOfOrder(here) && isFoundFirst(here) !== isFoundFirst(there));
  }
  return model.differing.get(n);
}

/* Paths are whole, and the names in a report are their ends. */
const isFile = (path, name) => path === name || path.endsWith(`/${name}`);

const ruleOf = (model, event) => model.recording.rules.get(event[5]) ||
  { rule: event[5], grade: event[0], heading: "", means: "", fix: "" };

/* "shared memory at offset 0x480" by its name. */
function withNames(model, text, home) {
  const begins = /^the mbarrier at shared address (0x[0-9a-f]+): (?=phase|thread)/;
  const begun = text.replace(begins, (all, address) => `at ${barrierName(model, Number(address))}, `);
  const offsets = /(?:shared memory|the m?barrier) at (?:shared-memory )?offset (0x[0-9a-f]+)(?: of rank (\d+))?/g;
  return begun.replace(offsets, (all, offset, rank = home) => {
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
    const drawn = { ...found, a: here(found.a), b: here(found.b) };
    return { ...drawn, why: whyNotEnough(model, drawn) || asDrawn(model, found.reason, drawn) };
  }
  const event = model.events[n];
  const rule = ruleOf(model, event);
  const [first, ...rest] = event[6].trim().split("\n").map((line) => line.trim());
  const named = withNames(model, first, homeOf(model, event)).replace(/\.$/, "").replace("row of a tile, from", "row of the tile from");
  const [clause] = named.split(event[0] === "fault" ? /[;:] / : /[,;:] |\. | through /);
  const warp = event[2] >= 0 ? warpName(model, event[2]) : "a thread";
  const did = clause === "the block has ended" ? "the block ends, and this is still open" : /^[a-z]+s\b/.test(clause) ? `${warp} ${clause}`
    : / was | will /.test(clause) ? `${warp} uses it: ${opcodeOf(model, event)}` : clause;
  const a = { did, place: outerPlace(placeOf(model, event)), event: accessAt(model, n) };
  const b = otherSide(model, n, a.event);
  const isRead = / was started over it/.test(first); // found where it is read
  const release = !b || b.event < 0 || !(b.reads || isRead) ? "" : isRead ? releaseBefore(model, b, a) : releaseBefore(model, a, b);
  const [pattern, words] = BETWEEN.find(([each]) => each.test(first)) || BETWEEN.find(([each]) => each.test(event[6])) || [];
  const missing = pattern ? event[6].match(pattern)[0].replace(pattern, words) : rule.heading;
  const isOneWarp = b && b.event >= 0 && warpOf(model, model.events[b.event]) === event[2] && model.events[a.event][0] !== "shared";
  const between = b && b.reads ? "nothing orders these two"
    : isOneWarp && /^no wait/.test(missing) ? `no wait for ${letterOf({ a, b }, b)} in between` : missing;
  const remedy = event[0] === "fault" ? [capitalised(named.slice(clause.length + 2)), rule.fix].filter(Boolean).join(". ") : rule.fix;
  const harmless = wrongLine(model.recording.ended) ? / If the order does not matter here, nothing is wrong\./ : "";
  const told = release ? rest.join(" ").replace(/^The last wait of this warp[^]*?\? (?=Wait )/, "") : rest.join(" ");
  const advice = withNames(model, told, homeOf(model, event)).replace(harmless, "") || remedy;
  const isReason = event[0] !== "fault" && named.includes(": ");
  const reason = release || (isReason ? `${asSentence(/^[a-z]+s\b/.test(named) ? `${warp} ${named}` : named)}.` : "");
  const printed = rule.rule.startsWith("swizzle") ? chunkPrinted(model, a.event) : "";
  const made = { rule, words: event[6], heading: rule.heading, reason: `${reason}${printed}`, advice, between, a, b };
  return { ...made, why: whyNotEnough(model, made) || asDrawn(model, made.reason, made) };
}

/* Which chunk the wrong value is of that the program printed, where it is the first of the row that is read here. */
function chunkPrinted(model, n) {
  const line = wrongLine(model.recording.ended);
  const [, row] = /row (\d+), column 0:/.exec(line || "") || [];
  const [[address] = [null]] = n < 0 ? [] : rangesOf(model.events[n]);
  const flights = address === null ? [] : model.flights.get(address - (address % CELL_BYTES)) || [];
  const copy = flights.filter(({ begin }) => begin < n).pop();
  const element = copy ? elementAt(copy, address) : null;
  if (!element || !element.chunk || element.coordinates[1] !== Number(row)) return "";
  return ` At row ${row}, column 0 it reads chunk ${element.chunk}, which begins with column ${element.coordinates[0]}: “${line.trim()}”.`;
}

/* Whether the copy is under way where its bytes are used, in the order that is drawn. */
function asDrawn(model, words, { a, b }) {
  const copy = b && b.event >= 0 && model.events[b.event][0] === "copy" ? model.copies[model.events[b.event][2]] : null;
  if (!copy || a.event < 0) return words;
  const state = a.event < copy.end ? "has not landed" : "has landed, by luck: this thread has not waited for it";
  const later = a.event < copy.begin ? "that $1 issues later, $2," : "$&";
  return words.replace(/issued by (.+?) (at \S+:\d+)(?=.* has (?:not )?landed)/, later)
    .replace(/has not landed|has landed by luck: this thread has not waited for it/, state)
    .replace(/but meanwhile (.*) was started over it/, a.event < copy.begin ? "but nothing keeps $1 from starting over it before" : "$&");
}

const outerPlace = (place) => (place && place.file >= 0 ? { file: place.file, line: place.line } : null);

/* The first shared address that a report names, or null. */
function addressIn(text, home) {
  const [, offset, rank = home] = /offset (0x[0-9a-f]+)(?: of rank (\d+))?/.exec(text) || [];
  return offset ? ((rank << 24) | Number(offset)) >>> 0 : null;
}

/* The block whose bytes a report is about; else where the event happens. */
function blockOfBytes(model, event) {
  const home = blockOfEvent(model, event);
  const address = isFinding(event) ? addressIn(event[6], homeOf(model, event)) : null;
  return address === null ? home : Math.min(rankOf(address), model.blocks - 1);
}

const ACCESSES = ["shared", "copy", "wgmma", "mbarrier", "fence"];

/* The access that was reported: of the warp, at that instruction, to these bytes; then, or before. */
function accessAt(model, n) {
  const { events, warps } = model;
  const address = addressIn(events[n][6], homeOf(model, events[n]));
  const all = warps[events[n][2]] ? warps[events[n][2]].events.filter((k) => ACCESSES.includes(events[k][0]) &&
    events[k][PLACE_AT[events[k][0]]] === events[n][4]) : [];
  const over = all.filter((k) => address !== null && isOver(events[k], address) && events[k][1] <= events[n][1]);
  const there = over.length ? over : all;
  const [found] = there.filter((k) => events[k][1] === events[n][1] && (k > n || events[k][0] !== "copy")); // a copy is reported first
  return found !== undefined ? found : lastUpTo(there, n) < 0 ? n : lastUpTo(there, n);
}

function otherSide(model, n, mine) {
  const event = model.events[n];
  const text = event[6].replace(/\n/g, " ");
  const [, before = "", name, line, ofSource] = OTHER_PLACE.exec(text) || [];
  const file = name ? model.recording.files.findIndex(({ path }) => isFile(path, name))
    : (placeOf(model, event) || { file: -1 }).file;
  if (!before || file < 0) return null;
  const place = { file, line: Number(line || ofSource) };
  const [words, deed] = OTHER_DEEDS.find(([pattern]) => pattern.test(before)) || [/$/, () => ["", "the other place"]];
  const [who, does] = deed(...words.exec(before).slice(1));
  const at = eventOfOther(model, n, mine, place, who, does);
  const address = addressIn(text, homeOf(model, event));
  const reader = event[5] === "stage-reused-too-early" && at >= 0 ? readerOf(model, mine, at, address) : -1;
  if (reader >= 0) {
    const did = `${warpName(model, warpOf(model, model.events[reader]))} reads ${addressName(model, rangesOf(model.events[reader])[0][0])}`;
    return { did, place: outerPlace(placeOf(model, model.events[reader])), event: reader, reads: true };
  }
  const copy = at >= 0 && model.events[at][0] === "copy" ? model.copies[model.events[at][2]] : null;
  const did = copy && does.startsWith("issues") ? `issues ${copyName(model, copy)}` : does;
  const agent = at >= 0 && who.startsWith("another") ? warpName(model, Math.max(0, warpOf(model, model.events[at])))
    : who.replace("this thread", "the same thread").replace(" of the same warp", "")
      .replace(/^(thread \d+) of rank (\d+)/, "block $2 $1");
  const bytes = at >= 0 && address !== null && isOver(model.events[at], address) ? addressName(model, address) : "the same bytes";
  return { did: `${agent} ${did}`.trim().replace("the same bytes", bytes), place, event: at };
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
