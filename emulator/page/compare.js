/* compare.js: of two programs that are both right: what the other one takes for the same launch, and where the difference comes from. */

const isRight = ({ ended }) => Boolean(ended) && !ended.ended && !ended.reports.length && !wrongLine(ended) &&
  !/^FAIL/.test(ended.printed[ended.printed.length - 1]);

/* Else the second of two recordings is the fix of the first. */
const isComparison = () => app.recordings.length === 2 && isRight(app.recordings[0]);
const isFix = () => app.view.side === 1 && !isComparison();

function nameOfSide(side) {
  const isNamed = isComparison() && app.recordings[0].title !== app.recordings[1].title;
  return isNamed ? app.recordings[side].title : (isComparison() ? ["the first", "the second"] : ["the mistake", "the fix"])[side];
}

const wholeNumber = (count) => Math.round(count).toLocaleString("en-US");

/* "9,268 clocks, 23 % less than the 12,025 of ring." */
function comparedText(model) {
  if (!isComparison() || !app.recordings.every(isRight) || timeUnit(model) !== "clock") return "";
  const other = app.recordings[1 - app.view.side];
  const name = nameOfSide(1 - app.view.side);
  const index = sameCluster(other, model.cluster);
  if (index < 0) return `The recording of ${name} lacks this launch. `;
  const [mine, theirs] = [model, buildModel(other, other.clusters[index])].map(figuresOf);
  if (!mine.isWhole || !theirs.isWhole) return `${name} is not compared: ${mine.isWhole ? "its" : "this"} recording stops too early. `;
  const [here, there] = [plural(mine.time, "clock"), wholeNumber(theirs.time)];
  const reasons = whyNotCompared(mine, theirs);
  if (reasons.length) return `${here}; ${name} takes ${there}. That is no comparison: ${reasons.join(", and ")}. `;
  const change = Math.round((100 * (mine.time - theirs.time)) / theirs.time);
  const than = change ? `${percent(Math.abs(change) / 100)} ${change < 0 ? "less" : "more"} than` : "against";
  return `${here}, ${than} the ${there} of ${name}. ${whereSpent(model, mine, theirs)}`;
}

/* What is compared. time: of all that is shown; work, spent: of the first block, and when its tensor cores idle; tensors: the sizes and
 * types of those that are loaded. */
function figuresOf(model) {
  const { recording, cluster } = model;
  const productOf = (numbers) => numbers.reduce((product, each) => product * Number(each), 1);
  const wgmmas = model.wgmmas.filter(({ warp }) => warp < cluster.warps_per_block);
  const loads = model.copies.filter(({ writes }) => writes.length);
  const products = wgmmas.map(({ begin }) => productOf(/\.m(\d+)n(\d+)k(\d+)/.exec(placeOf(model, model.events[begin]).text).slice(1)));
  const bytes = loads.flatMap(({ writes }) => writes).map(([address, length]) => (rankOf(address) ? 0 : length));
  const idle = wgmmas.length ? Object.entries(idlePlaces(model)) : [];
  return {
    isWhole: !recording.stopped || cluster !== recording.clusters[recording.clusters.length - 1],
    time: timeOf(model, model.events.length - 1),
    blocks: productOf(recording.launches[cluster.launch].grid),
    tensors: [...new Set(loads.flatMap(({ tensor }) => (tensor ? [`${tensor.type} ${tensor.dims}`] : [])))].sort().join(),
    verb: wgmmas.length ? "multiplies" : "loads",
    work: (wgmmas.length ? products : bytes).reduce((sum, each) => sum + each, 0),
    spent: idle.map(([name, { clocks, causes: [longest] }]) => ({ clocks, where: IDLE_PLACES[name],
      why: longest ? ` (there mostly ${CAUSES[longest.cause].words}: ${placesOf(model, longest).replace(/\bline/, "its line")})` : "" })),
  };
}

/* In what the work of two launches differs, as far as their recordings show. */
function whyNotCompared(mine, theirs) {
  const [less, more] = [mine.work, theirs.work].sort((a, b) => a - b);
  const times = Number((more / less).toPrecision(3));
  return [
    mine.blocks !== theirs.blocks && `its launch has ${plural(theirs.blocks, "block")}, this one ${wholeNumber(mine.blocks)}`,
    mine.tensors && theirs.tensors && mine.tensors !== theirs.tensors && "its tensors have other sizes or types",
    !less && "only loads by copies and wgmmas show how much work is done, and not both have them",
    less && mine.verb !== theirs.verb && "only one of them multiplies by wgmma",
    less && mine.verb === theirs.verb && times !== 1 &&
      `${less === mine.work ? "its block 0" : "block 0 here"} ${mine.verb} ${times} times as much`,
  ].filter(Boolean);
}

const LEAST_DIFFERENCE = 0.02; // of the other's time

/* The times in which the tensor cores idle that differ, the largest difference first; of what the other one has more of, its cause. */
function whereSpent(model, mine, theirs) {
  const parts = (theirs.spent.length ? mine.spent : []).map(({ clocks, where }, i) => ({ here: clocks, ...theirs.spent[i], where }))
    .filter(({ here, clocks }) => Math.abs(here - clocks) >= LEAST_DIFFERENCE * theirs.time)
    .sort((a, b) => Math.abs(b.here - b.clocks) - Math.abs(a.here - a.clocks))
    .map(({ here, clocks, where, why }) =>
      `${plural(Math.round(here), "clock")} instead of ${wholeNumber(clocks)} ${where}${clocks > here ? why : ""}`);
  return parts.length ? `${model.blocks > 1 ? "Block 0" : "The block"} idles for ${parts.join(", ")}. ` : "";
}
