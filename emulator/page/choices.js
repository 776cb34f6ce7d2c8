/* choices.js: which launch is shown: a name for each, or where they differ in a few choices, what the reader turns (RECORDING.md). */

function listChoices() {
  const { choices } = app.recording;
  byId("choices").hidden = !choices.length;
  byId("launches").hidden = choices.length > 0;
  if (!choices.length) return;
  byId("choices").replaceChildren(...Object.keys(choices[0].choice).map((name) => {
    const select = tag("select", "", ...[...new Set(choices.map(({ choice }) => choice[name]))].map((value) => new Option(value, value)));
    select.dataset.name = name;
    select.addEventListener("change", () => turnTo({ ...app.choice.choice, [name]: select.value }));
    return tag("label", "", `${name} `, select);
  }));
}

const isChoice = (wanted) => ({ choice }) => Object.entries(wanted).every(([name, value]) => choice[name] === value);

function turnTo(wanted) {
  app.choice = app.recording.choices.find(isChoice(wanted));
  if (app.choice.launch !== undefined) showCluster(clusterOfLaunch(app.choice.launch));
  else show();
}

/* What the menu calls each cluster: its kernel, and in what it differs from the others. */
function clusterNames({ header, clusters, launches }) {
  const size = (counts) => counts.join(" x ").replace(/( x 1)+$/, "");
  const facts = clusters.map(({ launch, blocks, end }) => {
    const { kernel, grid, block, cluster } = launches[launch];
    return [kernel, `grid ${size(grid)}`, `${size(block)} threads`, `clusters of ${size(cluster)}`, `block (${blocks[0].join(",")})`,
      end ? plural(end.end, header.clock ? "clock" : "instruction") : "without an end"];
  });
  const names = facts.map((mine) => mine.filter((fact, i) => !i || facts.some((others) => others[i] !== fact)).join(", "));
  return names.map((name, i) => (names.indexOf(name) === names.lastIndexOf(name) ? name : `${name}, launch ${clusters[i].launch}`));
}

const clusterOfLaunch = (launch) => app.recording.clusters.findIndex((cluster) => cluster.launch === launch);

/* Each value that could be turned to says what would come of it, from its recording. */
function showChoices() {
  if (byId("choices").hidden) return;
  const { choices } = app.recording;
  const { launch } = app.model.cluster;
  if (!app.choice || (app.choice.launch !== undefined && app.choice.launch !== launch))
    app.choice = choices.find((each) => each.launch === launch);
  for (const select of byId("choices").querySelectorAll("select")) {
    for (const option of select.options) {
      const found = choices.find(isChoice({ ...app.choice.choice, [select.dataset.name]: option.value }));
      option.textContent = option.value + (found ? `: ${found.refused ? "refused" : resultOf(found.launch)}` : "");
    }
    select.value = app.choice.choice[select.dataset.name];
  }
  byId("refused").hidden = !app.choice.refused;
  byId("refused").textContent = app.choice.refused ? `Refused: ${app.choice.refused}. What is shown is the choice before.` : "";
}

/* How long a launch took, or how many passes over the banks its reads of shared memory took. */
function resultOf(launch) {
  const cluster = app.recording.clusters[clusterOfLaunch(launch)];
  if (cluster.result) return cluster.result;
  const events = clusterEvents(app.recording, cluster);
  const reads = events.filter((event) => event[0] === "shared" && event[5] === "read");
  const passes = reads.reduce((sum, event) => sum + event[7], 0);
  cluster.result = events.some((event) => event[0] === "wgmma") || !passes
    ? `${cluster.end.end.toLocaleString("en-US")} clocks` : `read in ${plural(passes, "pass")}`;
  return cluster.result;
}
