// One revision: its past in one chart, the decision at the chosen moment, its pods, and why it is not at zero.

import { ask, repeat } from "/dashboard/api.js";
import { barChart, legend, lineChart } from "/dashboard/charts.js";
import { command, make, number, section, span, table } from "/dashboard/dom.js";

/** The ranges: text, the range of a series that holds it, how many of its last steps, and when to ask again. */
const RANGES = {
  "5m": { text: "5 min", range: "15m", steps: 300, again: 2000 },
  "1h": { text: "1 h", range: "24h", steps: 60, again: 20000 },
  "24h": { text: "24 h", range: "24h", steps: 1440, again: 60000 },
  "30d": { text: "30 d", range: "30d", steps: 720, again: 600000 },
};
const DETAIL_EVERY_MS = 2000;
/** The least and the greatest width of a chart, in pixels. */
const WIDTHS = [300, 960];
/** As many rows of a series stand in the table behind the chart. */
const TABLE_ROWS_MAX = 60;
const POD_KINDS = [{ name: "starting", kind: "starting" }, { name: "ready", kind: "busy" }, { name: "ending", kind: "ending" }];

/** The page. `fleet` has what the stream has told of it. */
export function revisionPage(content, { fleet }, name) {
  const state = { detail: null, series: null, range: "5m", chosen: 1, problem: null, key: "" };
  const parts = Object.fromEntries(["facts", "chart", "moment", "behind", "pods", "starts", "simulate"].map((part) => [part, make("div", { class: part })]));
  const choice = make("fieldset", { class: "ranges" }, make("legend", {}, "Range"), Object.entries(RANGES).map(([key, { text }]) =>
    make("label", {}, make("input", { type: "radio", name: "range", value: key, checked: key === state.range, onchange: () => { state.range = key; state.series = null; askSeries(); } }), text)));
  content.append(make("p", {}, make("a", { href: "#/" }, "All revisions")), make("h2", { class: "name" }, name), parts.facts,
    section("Past", choice, parts.chart, parts.moment, parts.behind), section("Pods", parts.pods), section("Cold starts", parts.starts),
    section("Commands", command(`ebb explain ${name}`), command(`ebb ledger ${name}`), command(`ebb logs ${name} --follow`), parts.simulate));

  let closeSeries = () => {};
  function askSeries() {
    closeSeries();
    const { range, again } = RANGES[state.range];
    closeSeries = repeat((signal) => take(signal, `/series?range=${range}`, "series"), again);
  }
  async function take(signal, path, key) {
    try {
      state[key] = await ask(`/v1/revisions/${encodeURI(name)}${path}`, signal);
      state.problem = null;
    } catch (error) {
      if (error.name === "AbortError") return;
      state.problem = error.message;
    }
    draw();
  }

  function draw() {
    drawFacts(parts.facts, state, fleet.get(name));
    if (!state.detail || !state.series) return;
    const view = chartView(state);
    const width = Math.min(WIDTHS[1], Math.max(WIDTHS[0], parts.chart.clientWidth));
    // A pointer or a keyboard that is on the chart keeps its place while the chart is drawn anew.
    const isFocused = parts.chart.contains(document.activeElement);
    const choose = (part) => { state.chosen = part; return drawMoment(parts.moment, view, part); };
    const chart = lineChart({ ...view, width, times: times(view.length, width), choose, chosen: state.chosen });
    parts.chart.replaceChildren(legend([...view.lines, { name: "cold start", kind: "cold" }, { name: "decision", kind: "decision" }]), chart);
    if (isFocused) chart.focus({ preventScroll: true });
    const open = parts.behind.querySelector("details")?.open;
    if (!open) parts.behind.replaceChildren(numbers(view));
    drawPods(parts.pods, state.detail, width);
    drawStarts(parts.starts, view);
    drawSimulation(parts.simulate, state);
  }

  const closeDetail = repeat((signal) => take(signal, "", "detail"), DETAIL_EVERY_MS);
  askSeries();
  return { refresh: () => drawFacts(parts.facts, state, fleet.get(name)), close: () => { closeDetail(); closeSeries(); } };
}

function drawFacts(element, { detail, problem }, told) {
  const one = told || detail;
  if (!one) {
    element.replaceChildren(make("p", { class: problem ? "alert" : "" }, problem || "asking"));
    return;
  }
  const facts = [
    ["Ready", `${one.ready_pods} of ${one.wanted} wanted`],
    ["Starting", one.not_ready_pods], ["Ending", one.terminating_pods], ["Waiting requests", one.waiting],
    ["Load", `${number(one.stable_value)} (${one.metric}), ${number(one.target_per_pod)} a pod is the target`],
    ["Mode", one.mode], ["Class", one.class], ["Requests go", one.routing === "direct" ? "to pods directly" : "through activators"],
    ["Last change", one.last_reason || "none yet"],
    ["Why not zero", one.why_not_zero || (one.wanted === 0 ? "it is at zero" : "zero was not asked for")],
  ];
  if (one.early_pods > 0) facts.push(["Before demand", `${one.early_pods} pods that the load does not call for yet`]);
  if (one.why_not_ready) facts.push(["Trouble", one.why_not_ready]);
  if (detail?.last_failure) facts.push(["Last failure", `${span(detail.last_failure.age_ms)} ago: ${detail.last_failure.reason}`, detail.last_failure.last_lines.join("\n")]);
  if (problem) facts.push(["This page", problem]);
  const key = JSON.stringify(facts);
  if (element.dataset.key === key) return;
  element.dataset.key = key;
  element.replaceChildren(make("dl", {}, facts.map(([term, text, lines]) => make("div", {}, make("dt", {}, term), make("dd", {}, text, lines ? make("pre", {}, lines) : null)))));
}

/** What the chart shows: lines over the last steps, with panic, decisions and cold starts in parts of its width. */
function chartView({ detail, series, range }) {
  const steps = Math.min(RANGES[range].steps, series.seconds.length);
  const from = series.seconds.length - steps;
  const cut = (column) => column.slice(from);
  const [ready, wanted] = [cut(series.ready), cut(series.wanted)];
  const demand = cut(detail.metric === "rps" ? series.rate : series.concurrency);
  const total = [...detail.decisions].reverse().find((one) => one.inputs)?.inputs.total_per_pod;
  const scaled = (factor) => ready.map((value) => (value === null ? null : value * factor));
  const firstAgo = series.first_ms_ago - from * series.step_ms;
  const length = Math.max(1, RANGES[range].steps * series.step_ms);
  const endAgo = firstAgo - steps * series.step_ms;
  const part = (age) => 1 - (age - endAgo) / length;
  const padded = (values) => Array(RANGES[range].steps - steps).fill(null).concat(values);
  const lines = [{ name: "demand", kind: "demand", values: padded(demand) }, { name: "target × ready", kind: "capacity", values: padded(scaled(detail.target_per_pod)) }];
  if (total) lines.push({ name: "total × ready", kind: "total", values: padded(scaled(total)) });
  lines.push({ name: "wanted pods", kind: "wanted", values: padded(wanted) }, { name: "ready pods", kind: "ready", values: padded(ready) });
  const ages = (index) => firstAgo - index * series.step_ms;
  const starts = cut(series.cold_starts).map((count, index) => ({ count, age: ages(index), wait: series.cold_start_wait_ms[from + index] })).filter(({ count }) => count > 0);
  const isShown = ({ at }) => at >= 0 && at <= 1;
  const decisions = detail.decisions.map((decision) => ({ decision, at: part(decision.age_ms), kind: "decision", title: decisionTitle(decision) }));
  return {
    label: `${detail.name}: demand, capacity and pods over the last ${RANGES[range].text}. Arrow keys choose a moment.`,
    lines, decisions, starts, part, length, endAgo, detail,
    marks: [...decisions, ...starts.map(({ age, count, wait }) => ({ at: part(age), kind: "cold", title: `${count} from zero, ${span(wait)} to the first ready pod` }))].filter(isShown),
    bands: panics(detail).map(({ from: begun, to }) => ({ from: Math.max(0, part(begun)), to: Math.min(1, part(to)), kind: "panic", title: "panic mode" })).filter((band) => band.to > 0),
  };
}

/** The marks below a chart: fewer where there is less room. */
function times(length, width) {
  const places = width < 500 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1];
  return places.map((place) => [place, place === 1 ? "now" : `−${span((1 - place) * length)}`]);
}

/** The times of panic that the last decisions show, as ages of beginning and end. */
function panics({ decisions, mode }) {
  const found = [];
  let begun = null;
  for (const { mode: then, age_ms: age } of decisions) {
    if (then === "panic" && begun === null) begun = age;
    if (then !== "panic" && begun !== null) {
      found.push({ from: begun, to: age });
      begun = null;
    }
  }
  if (begun !== null && mode === "panic") found.push({ from: begun, to: 0 });
  return found;
}

function decisionTitle({ age_ms: age, wanted, trigger }) {
  return `${span(age)} ago (${trigger}): ${wanted === null ? "the count is left alone" : `${wanted} wanted`}`;
}

/** Shows the numbers and the decision of a moment, and returns them in a sentence. */
function drawMoment(element, { lines, decisions, length, endAgo }, part) {
  const place = Math.min(lines[0].values.length - 1, Math.floor(part * lines[0].values.length));
  const age = Math.max(0, (1 - part) * length + endAgo);
  const values = lines.map(({ name, values: all }) => `${name} ${number(all[place])}`).join(", ");
  const decided = [...decisions].reverse().find(({ decision }) => decision.age_ms >= age - 1);
  const head = make("p", {}, make("strong", {}, age < 1000 ? "now" : `${span(age)} ago`), `: ${values}`);
  if (!decided) {
    element.replaceChildren(head, make("p", {}, "The decision of that moment is not kept: the last 20 that changed something are."));
    return `${span(age)} ago: ${values}`;
  }
  const { decision } = decided;
  const reasons = decision.reasons.map(({ stage, before, after, text }) =>
    make("li", {}, `${text} (${stage.replaceAll("_", " ")}${before !== null && after !== null ? `, ${before} → ${after}` : ""})`));
  element.replaceChildren(head, make("p", {}, `Decided ${decisionTitle(decision)}, mode ${decision.mode}`),
    reasons.length > 0 ? make("ol", {}, reasons) : make("p", {}, "No step changed the number."));
  return `${span(age)} ago: ${values}. Decided: ${decisionTitle(decision)}`;
}

/** The numbers behind the chart, the newest first. */
function numbers({ lines, length, endAgo }) {
  const count = lines[0].values.length;
  const rows = [];
  for (let place = count - 1; place >= 0 && rows.length < TABLE_ROWS_MAX; place -= Math.max(1, Math.floor(count / TABLE_ROWS_MAX))) {
    if (lines.every(({ values }) => values[place] === null)) continue;
    rows.push([`${span(Math.max(0, (1 - place / count) * length + endAgo))} ago`, ...lines.map(({ values }) => values[place])]);
  }
  const fill = (event) => {
    if (event.target.open && !event.target.querySelector("table")) event.target.append(table("The numbers of the chart", ["when", ...lines.map(({ name }) => name)], rows));
  };
  return make("details", { ontoggle: fill }, make("summary", {}, "The numbers of the chart as a table"));
}

function drawPods(element, detail, width) {
  const gone = detail.ended_pods || [];
  const all = [...detail.pods, ...gone];
  if (all.length === 0) {
    element.replaceChildren(make("p", {}, "There is no pod, and none has ended lately."));
    return;
  }
  const longest = all.reduce((most, pod) => Math.max(most, pod.known_ms_ago || 0), 1);
  const at = (age) => 1 - (age ?? 0) / longest;
  const rows = all.map((pod, index) => ({ name: String(index + 1), parts: podParts(pod, at) }));
  const cells = all.map((pod, index) => [index + 1, pod.name, podState(pod), `${span(pod.known_ms_ago)} ago`,
    pod.ready_ms_ago === null || pod.ready_ms_ago === undefined ? "–" : span(pod.known_ms_ago - pod.ready_ms_ago), pod.in_flight ?? "–", pod.why || pod.trouble || "–"]);
  element.replaceChildren(legend(POD_KINDS), barChart({ label: `Pods over the last ${span(longest)}`, rows, width }),
    table("Pods, and those that ended last", ["no.", "pod", "state", "known since", "ready after", "in flight", "trouble, or why it ended"], cells));
}

function podState(pod) {
  if (pod.gone_ms_ago !== undefined) return `gone for ${span(pod.gone_ms_ago)}`;
  return pod.leaving || pod.phase === "terminating" ? "ending" : pod.state;
}

function podParts(pod, at) {
  const end = pod.gone_ms_ago ?? 0;
  const ending = pod.ending_ms_ago ?? end;
  const ready = pod.ready_ms_ago ?? ending;
  const parts = [["starting", pod.known_ms_ago, ready], ["busy", ready, ending], ["ending", ending, end]];
  return parts.filter(([, from, to]) => from > to).map(([kind, from, to]) => ({
    kind, from: at(from), to: at(to), title: `${pod.name}: ${kind === "busy" ? "ready" : kind} for ${span(from - to)}` }));
}

function drawStarts(element, { starts }) {
  const rows = starts.map(({ age, count, wait }) => [`${span(age)} ago`, count, count > 0 && wait > 0 ? span(wait) : "it has not ended in this step"]);
  element.replaceChildren(rows.length > 0
    ? table("Cold starts from zero in the range", ["when", "starts", "from the order to the first ready pod"], rows.reverse())
    : make("p", {}, "No start from zero in the range. The table of pods says how long each took."));
}

/** The command that plays the load of the range with another least count: its rate, and how long a request and a start took. */
function drawSimulation(element, { detail, series }) {
  // A command that changes under a person's hand cannot be copied, so the first one stays.
  if (element.firstChild) return;
  const mean = (values) => {
    const known = values.filter((value) => value !== null);
    return known.length > 0 ? known.reduce((sum, value) => sum + value, 0) / known.length : 0;
  };
  const [rate, concurrency] = [mean(series.rate), mean(series.concurrency)];
  const lasting = rate > 0 ? Math.max(1, Math.round((concurrency / rate) * 1000)) : 100;
  const starts = [...detail.pods, ...(detail.ended_pods || [])].filter((pod) => Number.isFinite(pod.ready_ms_ago)).map((pod) => pod.known_ms_ago - pod.ready_ms_ago);
  const start = Math.max(100, Math.round(mean(starts) / 100) * 100) || 1000;
  const load = `${detail.name.split("/")[2]}=constant,rate=${number(Math.max(0.1, rate))}rps`;
  const text = `ebb simulate -f FILE --load '${load}' --service-time ${lasting}ms --start-up ${start}ms --minutes 60 --compare min-scale=${detail.min_scale + 1}`;
  element.append(make("p", {}, "The mean load of the range in a made-up world, with another least count; FILE is the manifest:"), command(text));
}
