// The fleet: a row for each revision, as the stream tells them.

import { follow } from "/dashboard/stream.js";

const SVG = "http://www.w3.org/2000/svg";
/** As many values of a revision are drawn: those that came since the page was opened. */
const VALUES_MAX = 60;

const rows = new Map();
const body = document.getElementById("rows");
const filter = document.getElementById("filter");
const state = document.getElementById("state");
const count = document.getElementById("count");
const problems = document.getElementById("problems");

function cell(row, kind) {
  const made = row.insertCell();
  made.className = kind;
  return made;
}

function line(kind) {
  const made = document.createElementNS(SVG, "polyline");
  made.setAttribute("class", kind);
  return made;
}

function newRow(name) {
  const element = document.createElement("tr");
  const cells = { name: cell(element, "name"), load: cell(element, "load") };
  for (const key of ["ready", "wanted", "waiting"]) cells[key] = cell(element, "number");
  cells.mode = cell(element, "mode");
  cells.reason = cell(element, "reason");
  cells.name.textContent = name;
  const chart = document.createElementNS(SVG, "svg");
  chart.setAttribute("viewBox", `0 0 ${VALUES_MAX - 1} 20`);
  chart.setAttribute("preserveAspectRatio", "none");
  chart.setAttribute("role", "img");
  const [demand, capacity] = [line("demand"), line("capacity")];
  chart.append(capacity, demand);
  cells.load.append(chart);
  return { element, cells, chart, demand, capacity, values: [], revision: null };
}

function points(values, of, greatest) {
  const first = VALUES_MAX - values.length;
  return values.map((value, place) => `${first + place},${19 - 18 * (of(value) / greatest)}`).join(" ");
}

function draw(row) {
  const { values } = row;
  const greatest = Math.max(1e-9, ...values.map((value) => Math.max(value.demand, value.capacity)));
  row.demand.setAttribute("points", points(values, (value) => value.demand, greatest));
  row.capacity.setAttribute("points", points(values, (value) => value.capacity, greatest));
  const last = values[values.length - 1];
  row.chart.setAttribute("aria-label", `load ${last.demand.toFixed(1)} of ${last.capacity.toFixed(1)}`);
}

function show(row, revision) {
  row.revision = revision;
  const { cells } = row;
  cells.ready.textContent = revision.ready_pods;
  cells.wanted.textContent = revision.wanted;
  cells.waiting.textContent = revision.waiting;
  cells.waiting.classList.toggle("alert", revision.waiting > 0);
  cells.mode.textContent = revision.mode;
  cells.mode.classList.toggle("alert", revision.mode === "panic");
  cells.reason.textContent = revision.why_not_ready || revision.why_not_zero || revision.last_reason;
  row.values.push({ demand: revision.stable_value || 0, capacity: revision.target_per_pod * revision.ready_pods });
  if (row.values.length > VALUES_MAX) row.values.shift();
  draw(row);
}

/** The tests that a filter's words stand for: `panic`, `waiting>0`, or a part of the name. */
function tests(text) {
  return text.trim().split(/\s+/).filter(Boolean).map((word) => {
    const waiting = /^waiting>(\d+)$/.exec(word);
    if (waiting) return (revision) => revision.waiting > Number(waiting[1]);
    if (word === "panic") return (revision) => revision.mode === "panic";
    return (revision) => revision.name.includes(word);
  });
}

function choose() {
  const wanted = tests(filter.value);
  let shown = 0;
  for (const { element, revision } of rows.values()) {
    const isShown = wanted.every((test) => test(revision));
    element.hidden = !isShown;
    shown += isShown ? 1 : 0;
  }
  count.textContent = shown === rows.size ? `${rows.size} revisions` : `${shown} of ${rows.size} revisions`;
}

function place(row, name) {
  const next = [...rows.keys()].filter((other) => other > name).sort()[0];
  body.insertBefore(row.element, next === undefined ? null : rows.get(next).element);
}

function remove(name) {
  const row = rows.get(name);
  if (row) {
    row.element.remove();
    rows.delete(name);
  }
}

function take(event) {
  if (event.whole) {
    const named = new Set(event.revisions.map((revision) => revision.name));
    [...rows.keys()].filter((name) => !named.has(name)).forEach(remove);
  }
  event.gone.forEach(remove);
  for (const revision of event.revisions) {
    let row = rows.get(revision.name);
    if (!row) {
      row = newRow(revision.name);
      // The first event names all in their order, so each of its rows is the last.
      if (event.whole && rows.size === body.rows.length && isLast(revision.name)) body.append(row.element);
      else place(row, revision.name);
      rows.set(revision.name, row);
    }
    show(row, revision);
  }
  problems.replaceChildren(...event.problems.concat(event.unanswered.map((name) => `${name} does not answer`)).map((text) => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
  choose();
}

function isLast(name) {
  const last = body.rows[body.rows.length - 1];
  return !last || last.cells[0].textContent < name;
}

filter.addEventListener("input", choose);
follow(take, (text, isBroken) => {
  state.textContent = text;
  state.classList.toggle("broken", isBroken);
});
