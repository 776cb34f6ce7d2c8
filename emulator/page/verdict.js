/* verdict.js: what the page says first: how the program ended, what went wrong, between which two places, and what the fix changes. */

/* ---- The picture of a report: its two sides, here or in the fix ---- */

/* The report that the page is about: the last one so far, else the first; undefined: there is none. */
const reportShown = (model, n) => (lastUpTo(model.findings, n) < 0 ? model.findings[0] : lastUpTo(model.findings, n));

/* {report, added}: `added` is the event that the fix puts between the two sides, -1 in a mistake. null: nothing was reported. A report
 * that the recording lacks, as of the host's calls, is only told. */
function pictureShown() {
  const { model, mistake, view } = app;
  const from = mistake || model;
  const n = reportShown(from, mistake ? from.findings[0] : view.event);
  if (n === undefined) {
    if (!("told" in from)) from.told = toldReport(from.recording);
    return from.told;
  }
  if (!model.pictures) model.pictures = new Map();
  if (!model.pictures.has(n))
    model.pictures.set(n, mistake ? pictureOfFix(reportAt(from, n), from, model) : { n, report: reportAt(from, n), added: -1 });
  return model.pictures.get(n);
}

/* ---- The report on the page ---- */

function showReport() {
  const picture = pictureShown();
  const box = byId("report");
  const drawn = picture || app.view.side;
  box.hidden = !picture && !fixHunks().length;
  if (box.hidden || app.picture === drawn) return;
  app.picture = drawn;
  box.className = picture && !app.mistake ? "finding" : "fixed";
  if (!picture) {
    box.replaceChildren(tag("p", "rule", app.view.side ? `The fix: ${linesOfFix()}` : "What the fix changes"), ...diffTable());
    return;
  }
  const { report, n } = picture;
  const { rule, words } = report;
  const heading = tag("p", "rule", app.mistake ? `The fix: ${report.heading}` : `${rule.rule} (${rule.grade}): ${report.heading}`,
    ...otherReports(app.model, n));
  const [first, second] = sidesOf(report);
  const sides = tag("div", "sides", sideButton("①", first), ...(second ? [tag("span", "between", report.between,
    tag("small", "", laterHere(report, n))), sideButton("②", second)] : []));
  const event = app.model.events[n] || [];
  const isKnown = (event[0] === "finding" || isHang(event)) && fixHunks().length; // what to do stands in the fix
  const isAdvised = !app.mistake && !isKnown;
  const told = [["reason", app.mistake ? "" : report.why], ["advice", isAdvised ? report.advice : ""]].filter(([, text]) => text);
  const lines = told.flatMap(([name, text]) => [tag("span", name, text), " "]);
  box.replaceChildren(heading, sides, ...(lines.length ? [tag("p", "", ...lines)] : []), ...bothOrders(report, n), ...diffTable(),
    ...(app.mistake ? [] : [wholeReport(words, rule)]));
}

/* [[event, ...], ...]: the reports of one rule and one line. */
function reportGroups(model) {
  if (!model.groups) {
    const groups = new Map();
    for (const n of model.findings) listOf(groups, nameOfReport(model, n)).push(n);
    model.groups = [...groups.values()];
  }
  return model.groups;
}

/* How often the log counts a report: its events are fewer where it comes from several lanes, or from what is not recorded. */
function timesLogged(model, n) {
  const { file, line, ptx_line } = placeOf(model, model.events[n]) || { file: -1 };
  const isIt = ({ rule, site }) => rule === model.events[n][5] && site &&
    (file < 0 ? site.ptx_line === ptx_line : site.line === line && isFile(model.recording.files[file].path, site.file));
  return model.recording.ended.reports.filter(isIt).reduce((sum, { times }) => sum + times, 0);
}

const nameOfReport = (model, n) => `${model.events[n][5]} at ${placeText(model, placeOf(model, model.events[n])) || "the end"}`;

/* Where there are more, the way to each: within the group, and to the first of each other group. */
function otherReports(model, n) {
  if (app.mistake || model.findings.length < 2) return [];
  const to = (text, event, title) => Object.assign(button("", () => {
    standAt(event);
    show();
  }, text), { title });
  const groups = reportGroups(model);
  const mine = groups.find((group) => group.includes(n));
  const at = mine.indexOf(n);
  const here = mine.length < 2 ? [] : [`${at + 1} of ${mine.length} reports of this rule at this line `,
    to("⟨", mine.at(at - 1), "the one before"), to("⟩", mine[(at + 1) % mine.length], "the next one"), " "];
  const rule = model.events[n][5];
  const [same, others] = [true, false].map((is) => groups.filter((group) => group !== mine && (model.events[group[0]][5] === rule) === is)
    .map(([first]) => [first, nameOfReport(model, first).replace(rule, "The same rule"), timesLogged(model, first)])
    .map(([first, name, times]) => to(`${name}${times > 1 ? `, ${times} times` : ""}`, first, "to the first of them")));
  return [tag("small", "others", " ", ...here, ...same, others.length ? `${same.length ? " " : ""}Also reported: ` : "", ...others)];
}

/* A report of which the recording has no event. */
function toldReport({ ended, files }) {
  const [rule] = ended ? ended.reports : [];
  if (!rule) return null;
  const [words, ...rest] = rule.message.split("\n");
  const did = rule.block ? `block (${rule.block}) is not recorded, --blocks all records it: ${words}` : words;
  const placeIn = (site) => {
    const file = site ? files.findIndex(({ path }) => isFile(path, site.file)) : -1;
    return file < 0 ? null : { file, line: site.line };
  };
  return { added: -1, report: { rule, words: rule.message, heading: rule.heading, advice: rest.join(" ") || rule.fix,
    between: "and", b: placeIn(rule.other) && { did: "the other place", place: placeIn(rule.other), event: -1 },
    a: { did, place: placeIn(rule.site), event: -1 } } };
}

/* Where there is one order only, one came later. */
const laterHere = (report, n) => (app.mistake || !isOfOrder(report) || ordersDiffer(app.model, n) ? ""
  : `② came ${apart(app.model, report)} later here`);

/* Where the run and the clock differ, the reader must know which of them is drawn. */
function bothOrders(report, n) {
  const { model } = app;
  if (app.mistake || !ordersDiffer(model, n)) return [];
  const clocks = model.inRun ? apart(model.other, reportAt(model.other, twinOf(model, n))) : apart(model, report);
  const [run, clock] = model.inRun ? ["①", "②"] : ["②", "①"];
  const [drawnRun, drawnClock] = model.inRun ? [", drawn below,", ""] : ["", ", drawn below,"];
  const { printed = [] } = model.recording.ended || {};
  const name = printed.length ? `The run that printed “${printed[printed.length - 1].trim()}”` : "The run";
  return [tag("p", "orders", `${name}${drawnRun} did ${run} first. The modelled H200${drawnClock} does ${clock} first, by ${clocks}. ` +
    "Both orders are allowed.")];
}

const apart = (model, { a, b }) => clocksBetween(model, Math.min(a.event, b.event), Math.max(a.event, b.event));

/* At which moment of which order the bytes are that the memory shows. */
function bytesOf(model, n) {
  const differ = model.findings.some((finding) => ordersDiffer(model, finding));
  if (model.inRun) return `The bytes at event ${n.toLocaleString("en-US")} in the order of the run, which read and printed them.`;
  return `The bytes at ${timeText(model, n)}${timeUnit(model) === "clock" ? " of the modelled H200" : ""}` +
    (differ ? ". The run had another order, and read others." : ".");
}

function sideButton(letter, { did, place, event, defined }) {
  const made = button("side", () => {
    app.chosenFile = null;
    standAt(event);
    show();
  }, tag("span", "", tag("b", "", letter), ` ${asSentence(did)}`));
  if (place) {
    made.append(tag("span", "at", `${fileName(app.model, place.file)}:${place.line}`),
      tag("code", "", statementAt(linesOfFile(app.recording, place.file), place.line)));
  }
  if (defined) made.append(tag("code", "", `${defined.place.line}: ${defined.text}`));
  if (event < 0) made.append(tag("small", "", "no event of it was recorded"));
  made.disabled = event < 0;
  return made;
}

const MOST_LINES = 4;

/* The statement that begins in a line, without the comments in it. */
function statementAt(lines, number) {
  const part = lines.slice(number - 1, number - 1 + MOST_LINES).map((line) => line.replace(/\s*\/\/.*/, ""));
  const last = part.findIndex((line) => !/[,(=+\-*|&<?:]$/.test(line));
  return part.slice(0, last < 0 ? MOST_LINES : last + 1).join(" ");
}

/* What is read once more is read here: the words of the report, and its rule. */
function wholeReport(words, rule) {
  return tag("details", "", tag("summary", "", "The whole report, and what its rule means"), tag("p", "words", words),
    tag("p", "", `The rule: ${rule.means.replace(/`/g, "")}${rule.documented_in ? ` PTX ISA: ${rule.documented_in}.` : ""}`));
}

/* ---- How the program ended ---- */

/* What the program is for: the comment that the kernel's file begins with, up to the first empty line; and of a pitfall what an H200
 * did with it, in the paragraph "Seen on an H200 (when, how often): ...", else in a few words. */
function purposeOf(recording) {
  const { text = "" } = recording.files[kernelFile(recording)] || {};
  const [comment] = text.match(/^(\/\/ .*\n)*/);
  const [seen = ""] = /^\/\/ Seen on .*\n(\/\/ .*\n)*/m.exec(text) || [];
  const [, device, when = "", what] = /^(Seen on [^(:]*?)(?: \(([^)]*)\))?: (.*)$/.exec(seen.replace(/\n?\/\/ /g, " ").trim()) || [];
  const [, h200] = /\n\/\/ +H200: ([^]*?)\n(?:\/\/ +\w+: |$)/.exec(`${comment}\n`) || [];
  const purpose = comment.replace(/\n\/\/ {3}[^]*/, "").replace(/^\/\/ ((pitfall|\d\d)? ?\w+: )?/, "")
    .replace(/\n(\/\/ )?/g, " ").trim();
  const short = h200 ? `An H200, with this program: ${h200.replace(/\n\/\/ */g, " ")}.` : "";
  return { purpose, when, ran: device ? `${device}: ${what}` : short };
}

/* What the program printed of a wrong value; undefined: nothing. */
const wrongLine = (ended) => ended && ended.printed.find((line) => /expected.*\bgot\b|\bgot\b.*expected/i.test(line));

/* async.c fills bytes that are undefined: each half of a word is 0xfff1 to 0xfffe or 0x7ff4 to 0x7ffe. */
function undefinedText(wrong) {
  const [, got] = /\bgot (-?\d+)\b/.exec(wrong || "") || [];
  return /^(fff[1-9a-e]|7ff[4-9a-e]){2}$/.test((got >>> 0).toString(16)) ? `${got} is what the emulator puts into undefined bytes. ` : "";
}

function endedText(model) {
  const { ended } = model.recording;
  if (!ended) return "";
  const last = ended.printed[ended.printed.length - 1];
  const byEmulator = ended.ended === 3 && ended.reports.some(({ grade }) => grade === "error");
  const failed = /^FAIL/.test(last) || (ended.ended && !byEmulator);
  const wrong = wrongLine(ended);
  const printed = [...new Set([last, wrong])].filter(Boolean).map((line) => `“${line.trim()}”`).join(", ");
  const told = `On the emulator the program ${printed && `printed ${printed} and `}ended with exit code ${ended.ended}` +
    (byEmulator ? ", the emulator's for an error. " : ". ") +
    (ended.reports.length ? undefinedText(wrong) : "");
  if (!ended.reports.length)
    return `${told}The emulator reports nothing` + (failed
      ? `${ended.checked ? ", nor does EMULATOR_CHECK=layout" : ""}: no access, wait or fence breaks a rule here. ` +
        "Look for a wrong address, size, layout or formula." : ".");
  if (ended.checked) return `${told}The default checks do not see this; EMULATOR_CHECK=layout does, in another run. ` +
    "What was printed is of the first run, and what is shown below is of the other one.";
  if (failed) return told.trim();
  return `${told}${byEmulator ? "Nothing guarantees the order in which it passed."
    : "It passed: the report names what no document promises."}`;
}

/* Where an H200 was right and the times drawn are wrong, as the run was, it had other times. */
function shownTimes(model) {
  const [n] = model.findings;
  const isRace = n !== undefined && isOfOrder(reportAt(model, n)) && !/proxy/.test(reportAt(model, n).between) && !ordersDiffer(model, n);
  const isWrong = isRace && timeUnit(model) === "clock" && wrongLine(model.recording.ended);
  const isOther = isWrong && /: right results/.test(purposeOf(model.recording).ran);
  return shownText(model) + (isOther ? " The real H200, which gave right results, had different timing." : "");
}

function showPurpose() {
  const { purpose, when, ran } = purposeOf(isFix() ? app.recordings[0] : app.recording);
  const text = purpose && `${isFix() ? "the fix of: " : ""}${purpose}`.replace(/\.?$/, ".");
  const isShown = !app.model.findings.length && !pictureShown() && !wrongLine(app.recording.ended);
  const [verdict, work] = isShown ? headlineOf(app.model) : ["", ""];
  byId("headline").replaceChildren(...(isShown ? [comparedText(app.model) + verdict + (verdict && " "), tag("span", "", work)] : []));
  const onGpu = Object.assign(tag("span", "", ran && !isFix() ? ` ${ran}` : ""), { title: when });
  byId("purpose").replaceChildren(capitalised(text), tag("span", "", ` ${endedText(app.model)}`), onGpu);
}
