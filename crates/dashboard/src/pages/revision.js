// One revision: its past and what is expected in one chart, the decision at the chosen moment, its pods, and why it is not at zero.

import { ask, repeat } from "/dashboard/api.js";
import { barChart, legend, lineChart } from "/dashboard/charts.js";
import { chartWidth, command, factList, make, number, section, span, table } from "/dashboard/dom.js";
import { RANGES, chartView, drawForecast, drawMoment, numbers, times } from "/dashboard/timeline.js";

const DETAIL_EVERY_MS = 2000;
const FORECAST_EVERY_MS = 60000;
const POD_KINDS = [{ name: "starting", kind: "starting" }, { name: "ready", kind: "busy" }, { name: "ending", kind: "ending" }];

/** The page. `fleet` has what the stream has told of it. */
export function revisionPage(content, { fleet }, name) {
  const state = { detail: null, series: null, forecast: null, range: "5m", chosen: null, problem: null };
  const parts = Object.fromEntries(["facts", "chart", "moment", "behind", "forecast", "pods", "starts", "simulate"].map((part) => [part, make("div", { class: part })]));
  const choice = make("fieldset", { class: "ranges" }, make("legend", {}, "Range"), Object.entries(RANGES).map(([key, { text }]) =>
    make("label", {}, make("input", { type: "radio", name: "range", value: key, checked: key === state.range, onchange: () => { state.range = key; state.series = null; state.chosen = null; askSeries(); } }), text)));
  content.append(make("p", {}, make("a", { href: "#/" }, "All revisions")), make("h2", { class: "name" }, name), parts.facts,
    section("Past", choice, parts.chart, parts.moment, parts.behind), section("Forecast", parts.forecast), section("Pods", parts.pods), section("Cold starts", parts.starts),
    section("Commands", command(`ebb explain ${name}`), command(`ebb forecast ${name}`), command(`ebb ledger ${name}`), command(`ebb logs ${name} --follow`), parts.simulate));

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
    drawForecast(parts.forecast, state.forecast);
    if (!state.detail || !state.series) return;
    const view = chartView(state);
    const width = chartWidth(parts.chart);
    // A pointer or a keyboard that is on the chart keeps its place while the chart is drawn anew.
    const isFocused = parts.chart.contains(document.activeElement);
    // The present stays chosen while time goes on, until a person chooses another moment.
    const choose = (part) => { state.chosen = part === view.now ? null : part; return drawMoment(parts.moment, view, part); };
    const chart = lineChart({ ...view, width, times: times(view, width), choose, chosen: state.chosen ?? view.now });
    parts.chart.replaceChildren(legend([...view.lines, { name: "cold start", kind: "cold" }, { name: "decision", kind: "decision" }]), chart);
    if (isFocused) chart.focus({ preventScroll: true });
    const open = parts.behind.querySelector("details")?.open;
    if (!open) parts.behind.replaceChildren(numbers(view));
    drawPods(parts.pods, state.detail, width);
    drawStarts(parts.starts, view);
    drawSimulation(parts.simulate, state);
  }

  const closeDetail = repeat((signal) => take(signal, "", "detail"), DETAIL_EVERY_MS);
  const closeForecast = repeat((signal) => take(signal, "/forecast", "forecast"), FORECAST_EVERY_MS);
  askSeries();
  return { refresh: () => drawFacts(parts.facts, state, fleet.get(name)), close: () => { closeDetail(); closeForecast(); closeSeries(); } };
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
  if (one.early_pods > 0) facts.push(["Before demand", `${one.early_pods} ${one.early_pods === 1 ? "pod" : "pods"} that the load does not call for yet`]);
  if (one.why_not_ready) facts.push(["Trouble", one.why_not_ready]);
  if (detail?.last_failure) {
    const { age_ms: age, reason, last_lines: lines, withheld } = detail.last_failure;
    const advice = withheld ? "; the address that `ebb dashboard` prints shows its last lines" : "";
    facts.push(["Last failure", `${span(age)} ago: ${reason}${advice}`, lines.join("\n")]);
  }
  if (problem) facts.push(["This page", problem]);
  const key = JSON.stringify(facts);
  if (element.dataset.key === key) return;
  element.dataset.key = key;
  element.replaceChildren(factList(facts));
}

function drawPods(element, detail, width) {
  const gone = detail.ended_pods || [];
  const all = [...detail.pods, ...gone];
  if (all.length === 0) {
    element.replaceChildren(make("p", {}, "There is no pod, and none has ended lately."));
    return;
  }
  const longest = all.reduce((most, pod) => Math.max(most, begun(pod) || 0), 1);
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

/** How long ago a pod was asked for, or first known where no order asked for it. */
function begun(pod) {
  return pod.asked_ms_ago ?? pod.known_ms_ago;
}

function podParts(pod, at) {
  const end = pod.gone_ms_ago ?? 0;
  const ending = pod.ending_ms_ago ?? end;
  const ready = pod.ready_ms_ago ?? ending;
  const parts = [["starting", begun(pod), ready], ["busy", ready, ending], ["ending", ending, end]];
  return parts.filter(([, from, to]) => from > to).map(([kind, from, to]) => ({
    kind, from: at(from), to: at(to), title: `${pod.name}: ${kind === "busy" ? "ready" : kind} for ${span(from - to)}` }));
}

function drawStarts(element, { starts, detail }) {
  const rows = starts.map(({ age, count, wait }) => [`${span(age)} ago`, count, count > 0 && wait > 0 ? span(wait) : "it has not ended in this step"]);
  const steps = startSteps(detail);
  element.replaceChildren(rows.length > 0
    ? table("Cold starts from zero in the range", ["when", "starts", "from the order to the first ready pod"], rows.reverse())
    : make("p", {}, "No start from zero in the range. The table of pods says how long each took."),
  ...(steps.length > 0 ? [table("Where the time of each start went", ["asked for", "pod", "until the pod was known", "until it ran", "until it was ready", "together"], steps)] : []));
}

/** The pods that were asked for and have become ready, the latest first, each with the time of each step of its start. */
function startSteps({ pods, ended_pods: gone }) {
  const started = [...pods, ...(gone || [])].filter((pod) => [pod.asked_ms_ago, pod.running_ms_ago, pod.ready_ms_ago].every(Number.isFinite));
  return started.sort((one, other) => one.asked_ms_ago - other.asked_ms_ago).map(({ name, asked_ms_ago: asked, known_ms_ago: known, running_ms_ago: running, ready_ms_ago: ready }) =>
    [`${span(asked)} ago`, name, span(asked - known), span(known - running), span(running - ready), span(asked - ready)]);
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
