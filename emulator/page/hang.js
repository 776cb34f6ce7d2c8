/* hang.js: a hang taken apart: who waits for what, and the line that lets them wait forever. */

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
    between: side && side.event >= 0 && side.event < wait.begin ? "so, forever," : "forever, because", b: side,
    a: { did: `${who}${on.length ? ` for ${barrierName(model, on[1])}` : ""}`, place: outerPlace(placeOf(model, event)),
      event: wait.begin } };
}

/* Where a warp is that the others wait for, and that does not wait with them. */
function absentAt(model, number, waiting, n) {
  const absent = model.warps.find((warp) => !waiting.includes(warp.number) && warp.steps.length &&
    blockOfWarp(model, warp.number) === blockOfWarp(model, number));
  const [group] = absent ? warpPlaces(model, absent.number, n) : [];
  return group ? { did: `${warpName(model, absent.number)} ${exitedLanes(model, absent.number, n) ? "ended" : "is"} here`,
    place: outerPlace(group.place), event: group.event } : null;
}

const warpsName = (model, numbers) => {
  const perBlock = model.cluster.warps_per_block;
  const home = Math.floor(numbers[0] / perBlock);
  const mine = numbers.filter((number) => Math.floor(number / perBlock) === home);
  const others = numbers.filter((number) => !mine.includes(number));
  const blocks = [...new Set(others.map((number) => Math.floor(number / perBlock)))];
  const block = model.blocks > 1 ? `block ${home} ` : "";
  return `${block}warp${mine.length > 1 ? "s" : ""} ${numberRuns(mine.map((number) => number % perBlock))}` +
    (others.length ? ` and ${plural(others.length, "warp")} of block${blocks.length > 1 ? "s" : ""} ${numberRuns(blocks)}` : "");
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
