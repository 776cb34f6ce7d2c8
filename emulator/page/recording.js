/* recording.js: reads the lines of a recording (record/RECORDING.md).
 *
 * Events of a cluster stay text until the cluster is looked at: a long recording opens quickly. */

const KNOWN_VERSION = 1;
const RUN_BEGINS = '{"run": [';

/* Throws an Error with a message for the reader when the text is not a recording. */
function readRecording(text) {
  const recording = { header: null, files: [], places: [], launches: [], clusters: [], members: [], choices: [],
    rules: new Map(), stopped: null, ended: null };
  let cluster = null;
  for (let at = 0; at < text.length; ) {
    let end = text.indexOf("\n", at);
    if (end < 0) end = text.length;
    if (text[at] === "[") {
      if (text[end - 1] !== "]") throw cutOff(text, at);
      if (!cluster) throw new Error("an event comes before the first cluster");
      cluster.eventsEnd = end;
      if (cluster.eventsBegin < 0) cluster.eventsBegin = at;
    } else if (text.startsWith(RUN_BEGINS, at)) {
      cluster.run = text.slice(at, end);
    } else if (text[at] === "{") {
      cluster = readDefinition(recording, cluster, parseLine(text, at, end));
    }
    at = end + 1;
  }
  if (!recording.header) throw new Error("this is not a recording: its first line names no version");
  for (const each of recording.clusters) each.text = text;
  return recording;
}

function cutOff(text, at) {
  const line = text.slice(0, at).split("\n").length - (text[0] === "\n" ? 1 : 0); // a page begins with a line break
  return new Error(`the recording is cut off in line ${line}: it was not written or copied to its end`);
}

function parseLine(text, at, end) {
  try {
    return JSON.parse(text.slice(at, end));
  } catch {
    throw cutOff(text, at);
  }
}

/* Returns the cluster whose events follow. */
function readDefinition(recording, cluster, value) {
  if ("recording" in value) {
    if (value.recording !== KNOWN_VERSION)
      throw new Error(`the recording has version ${value.recording}, but this page reads version 1`);
    recording.header = value;
  } else if ("file" in value && "path" in value) {
    recording.files[value.file] = value;
  } else if ("place" in value) {
    recording.places[value.place] = value;
  } else if ("kernel" in value) {
    recording.launches[value.launch] = value;
  } else if ("cluster" in value) {
    cluster = { ...value, number: value.cluster, variables: [], eventsBegin: -1, eventsEnd: -1, run: null, end: null };
    recording.clusters.push(cluster);
  } else if ("variable" in value) {
    cluster.variables.push(value);
  } else if ("end" in value) {
    cluster.end = value;
  } else if ("choice" in value) {
    recording.choices.push(value);
  } else if ("member" in value) {
    recording.members.push(value);
  } else if ("stopped" in value) {
    recording.stopped = value.stopped;
  } else if ("ended" in value) {
    recording.ended = value;
    for (const report of value.reports) recording.rules.set(report.rule, report);
  }
  return cluster;
}

/* inRun: in the order of the run, which the cluster holds beside that of the clock. */
function clusterEvents(recording, cluster, inRun = false) {
  if (inRun) return foldPolls(JSON.parse(cluster.run).run, recording.places);
  if (cluster.eventsBegin < 0) return [];
  const lines = cluster.text.slice(cluster.eventsBegin, cluster.eventsEnd).split("\n");
  return foldPolls(JSON.parse("[" + lines.join(",") + "]"), recording.places);
}

/* The lines of a source file, without their indents. */
function linesOfFile(recording, number) {
  const file = recording.files[number];
  if (!file) return [];
  if (!file.lines) file.lines = (file.text || "").replace(/\n$/, "").split("\n").map((line) => line.trim());
  return file.lines;
}

/* The file of the first place outside of functions: that of the kernel. */
const kernelFile = (recording) => (recording.places.find((place) => place && place.file >= 0) || { file: -1 }).file;

function decodeBase64(data) {
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/* How many bytes a base64 text stands for. */
function base64Length(data) {
  const padding = data.endsWith("==") ? 2 : data.endsWith("=") ? 1 : 0;
  return (data.length / 4) * 3 - padding;
}

const rankOf = (address) => address >>> 24;
const offsetOf = (address) => address & 0xffffff;
