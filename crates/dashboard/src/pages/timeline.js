// The chart of a revision: its past, the hours that come as past days had them, and what was decided at a moment.

import { factList, make, number, span, tableBehind } from "/dashboard/dom.js";

/**
 * The ranges: text, the range of a series that holds it, how many of its last steps, how many steps of what is
 * expected, and when to ask again.
 */
export const RANGES = {
  "5m": { text: "5 min", range: "15m", steps: 300, ahead: 0, again: 2000 },
  "1h": { text: "1 h", range: "24h", steps: 60, ahead: 60, again: 20000 },
  "24h": { text: "24 h", range: "24h", steps: 1440, ahead: 1440, again: 60000 },
  "30d": { text: "30 d", range: "30d", steps: 720, ahead: 24, again: 600000 },
};
/** As many rows of a series stand in the table behind the chart. */
const TABLE_ROWS_MAX = 60;
/** The hours that come have marks of time where they take at least this part of the width. */
const PLACE_OF_MARKS = 0.2;

/** What the chart shows: lines over the last steps and those to come, with panic, decisions and cold starts. */
export function chartView({ detail, series, forecast, range }) {
  const { steps: all, text } = RANGES[range];
  // Cores stand beside no requests.
  const hours = (forecast?.metric === "cpu" ? [] : forecast?.hours || []).filter(({ high }) => high !== null && high !== undefined);
  const steps = Math.min(all, series.seconds.length);
  const from = series.seconds.length - steps;
  const ahead = hours.length > 0 ? RANGES[range].ahead : 0;
  const [length, aheadLength] = [Math.max(1, all * series.step_ms), ahead * series.step_ms];
  const firstAgo = series.first_ms_ago - from * series.step_ms;
  const endAgo = firstAgo - steps * series.step_ms;
  const now = length / (length + aheadLength);
  const part = (age) => (length + endAgo - age) / (length + aheadLength);
  const past = (values) => [...Array(all - steps).fill(null), ...values, ...Array(ahead).fill(null)];
  const coming = (values) => [...Array(all).fill(null), ...values];
  const view = { detail, part, now, length, aheadLength, steps: all, starts: startsOf(series, from, firstAgo), age: (at) => length + endAgo - at * (length + aheadLength) };
  const isShown = ({ at }) => at >= 0 && at <= 1;
  const decisions = detail.decisions.map((decision) => ({ decision, at: part(decision.age_ms), kind: "decision", title: decisionTitle(decision) }));
  const bands = panics(detail).map(({ from: begun, to }) => ({ from: Math.max(0, part(begun)), to: Math.min(now, part(to)), kind: "panic", title: "panic mode" })).filter((band) => band.to > 0);
  if (ahead > 0) bands.push({ from: now, to: 1, kind: "ahead", title: "expected, as past days had it" });
  return {
    ...view, decisions, bands,
    label: `${detail.name}: demand, capacity and pods over the last ${text}${ahead > 0 ? `, and demand that is expected in the next ${span(aheadLength)}` : ""}. Arrow keys choose a moment.`,
    lines: [...pastLines(detail, series, from).map((line) => ({ ...line, values: past(line.values) })),
      ...(ahead > 0 ? comingLines(hours, ahead, series.step_ms).map((line) => ({ ...line, values: coming(line.values) })) : [])],
    marks: [...decisions, ...view.starts.map(({ age, count, wait }) => ({ at: part(age), kind: "cold", title: `${count} from zero, ${span(wait)} to the first ready pod` }))].filter(isShown),
  };
}

function pastLines(detail, series, from) {
  const cut = (column) => column.slice(from);
  const [ready, wanted] = [cut(series.ready), cut(series.wanted)];
  const total = [...detail.decisions].reverse().find((one) => one.inputs)?.inputs.total_per_pod;
  const scaled = (factor) => ready.map((value) => (value === null ? null : value * factor));
  const lines = [{ name: "demand", kind: "demand", values: cut(detail.metric === "rps" ? series.rate : series.concurrency) }, { name: "target × ready", kind: "capacity", values: scaled(detail.target_per_pod) }];
  if (total) lines.push({ name: "total × ready", kind: "total", values: scaled(total) });
  lines.push({ name: "wanted pods", kind: "wanted", values: wanted }, { name: "ready pods", kind: "ready", values: ready });
  return lines;
}

/** What is expected of so many steps: in each the numbers of the hour in which it begins. */
function comingLines(hours, steps, stepMs) {
  const hourOf = (index) => hours.findLast(({ begins_in_ms: begins }) => begins <= index * stepMs);
  const all = Array.from({ length: steps }, (_, index) => hourOf(index));
  const column = (key) => all.map((hour) => hour?.[key] ?? null);
  return [{ name: "usual demand", kind: "usual", values: column("usual") }, { name: "high demand", kind: "high", values: column("high") },
    { name: "pods for high demand", kind: "expected", values: column("pods") }];
}

function startsOf(series, from, firstAgo) {
  const starts = series.cold_starts.slice(from).map((count, index) => ({ count, age: firstAgo - index * series.step_ms, wait: series.cold_start_wait_ms[from + index] }));
  return starts.filter(({ count }) => count > 0);
}

/** The marks below a chart: fewer where there is less room. */
export function times({ length, aheadLength, now }, width) {
  const isWide = width >= 500;
  const back = isWide ? (now < 0.6 ? [1, 0.5] : [1, 0.75, 0.5, 0.25]) : now < 0.6 ? [1] : [1, 0.5];
  const forward = 1 - now < PLACE_OF_MARKS ? [] : isWide ? [0.5, 1] : [1];
  return [...back.map((share) => [now * (1 - share), `−${span(share * length)}`]), [now, "now"],
    ...forward.map((share) => [now + share * (1 - now), `+${span(share * aheadLength)}`])];
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

/** The words for a moment by its age, which is negative for one to come. */
function when(age) {
  return age <= -1000 ? `in ${span(-age)}` : age < 1000 ? "now" : `${span(age)} ago`;
}

/** Shows the numbers and the decision of a moment, and returns them in a sentence. */
export function drawMoment(element, { lines, decisions, steps, age: ageOf }, part) {
  const age = ageOf(part);
  const count = lines[0].values.length;
  // The present is the last step of the past, and not the first of those that come.
  const place = Math.min((age <= -1000 ? count : steps) - 1, Math.floor(part * count));
  const known = lines.filter(({ values }) => values[place] !== null && values[place] !== undefined);
  const values = known.map(({ name, values: all }) => `${name} ${number(all[place])}`).join(", ") || "nothing was measured";
  const head = make("p", {}, make("strong", {}, when(age)), `: ${values}`);
  if (age <= -1000) {
    element.replaceChildren(head, make("p", {}, "Expected, as past days had it: half of them had no more than the usual demand, 80 % no more than the high one."));
    return `${when(age)}, expected: ${values}`;
  }
  const decided = [...decisions].reverse().find(({ decision }) => decision.age_ms >= age - 1);
  if (!decided) {
    element.replaceChildren(head, make("p", {}, "The decision of that moment is not kept: the last 20 that changed something are."));
    return `${when(age)}: ${values}`;
  }
  const { decision } = decided;
  const reasons = decision.reasons.map(({ stage, before, after, text }) =>
    make("li", {}, `${text} (${stage.replaceAll("_", " ")}${before !== null && after !== null ? `, ${before} → ${after}` : ""})`));
  element.replaceChildren(head, make("p", {}, `Decided ${decisionTitle(decision)}, mode ${decision.mode}`),
    reasons.length > 0 ? make("ol", {}, reasons) : make("p", {}, "No step changed the number."));
  return `${when(age)}: ${values}. Decided: ${decisionTitle(decision)}`;
}

/** The numbers behind the chart, the newest first. */
export function numbers({ lines, age }) {
  const rows = () => {
    const count = lines[0].values.length;
    const made = [];
    for (let place = count - 1; place >= 0 && made.length < TABLE_ROWS_MAX; place -= Math.max(1, Math.floor(count / TABLE_ROWS_MAX))) {
      if (lines.every(({ values }) => values[place] === null)) continue;
      made.push([when(age(place / count)), ...lines.map(({ values }) => values[place])]);
    }
    return made;
  };
  return tableBehind("The numbers of the chart as a table", "The numbers of the chart", ["when", ...lines.map(({ name }) => name)], rows);
}

/** What prediction does, and the hours that come in a table. */
export function drawForecast(element, forecast) {
  if (!forecast) return;
  const { mode, prediction, why_not: whyNot, look_ahead_ms: lookAhead, known_ms: remembered, cold_starts_avoided: avoided, hours } = forecast;
  const key = JSON.stringify([mode, prediction, whyNot, lookAhead, span(remembered), avoided, hours.map((hour) => ({ ...hour, begins_in_ms: 0 }))]);
  if (element.dataset.key === key) return;
  element.dataset.key = key;
  const facts = [["Prediction", mode], ["Remembered", remembered === null ? "no demand" : `${span(remembered)} of 15d`]];
  if (prediction) {
    facts.push(["Rule", prediction.rule], ["Late in 7 days", `${number(prediction.late_request_seconds)} request-seconds; ${number(prediction.late_without_request_seconds)} without prediction`],
      ["Pods added in 7 days", `${span(prediction.extra_pod_seconds * 1000)}, of which ${span(prediction.used_pod_seconds * 1000)} were needed`]);
  }
  if (lookAhead !== null) facts.push(["A pod is asked for", `${span(lookAhead)} before demand`]);
  if (avoided > 0) facts.push(["Cold starts avoided in 24 h", avoided]);
  if (whyNot) facts.push(["Why nothing is asked for", whyNot]);
  const rows = () => hours.map((hour) => [hour.local_time, hour.usual, hour.high, hour.pods]);
  element.replaceChildren(factList(facts),
    hours.length > 0 ? tableBehind("The next 24 hours as a table", "The next 24 hours, as past days had them", ["from", "usual demand", "high demand", "pods for high demand"], rows) : "");
}
