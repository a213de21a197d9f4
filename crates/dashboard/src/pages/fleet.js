// The fleet: a row for each revision, as the stream tells of them.

import { shape, stepPath } from "/dashboard/charts.js";
import { make, number, revisionLink } from "/dashboard/dom.js";

/** As many values of a revision are drawn, one a second since the page was opened. */
const VALUES_MAX = 60;
/** As many rows are on the page; the rest is found by a filter. */
const ROWS_MAX = 1000;
/** The columns: heading, class, text of a revision, and its value for an order where that is not the text. */
const COLUMNS = [
  { key: "name", heading: "Revision", order: (one) => one.name },
  { key: "load", heading: "Load", order: (one) => one.stable_value || 0 },
  { key: "ready", heading: "Ready", kind: "number", text: (one) => one.ready_pods },
  { key: "wanted", heading: "Wanted", kind: "number", text: (one) => one.wanted },
  { key: "waiting", heading: "Waiting", kind: "number", text: (one) => one.waiting, isAlert: (one) => one.waiting > 0 },
  { key: "mode", heading: "Mode", text: (one) => one.mode, isAlert: (one) => one.mode === "panic" },
  { key: "reason", heading: "Reason", text: (one) => one.why_not_ready || (one.mode === "panic" ? one.last_reason : one.why_not_zero || one.last_reason) },
];

/** The tests that a filter's words stand for: `panic`, `waiting>0`, `ready<2`, `ns/`, or a part of the name. */
export function tests(text) {
  const numbers = { waiting: "waiting", ready: "ready_pods", wanted: "wanted", load: "stable_value" };
  return text.trim().toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
    const [, key, sign, limit] = /^(waiting|ready|wanted|load)([<>=])(\d+(?:\.\d+)?)$/.exec(word) || [];
    if (key) {
      return (one) => {
        const value = one[numbers[key]] || 0;
        return sign === ">" ? value > Number(limit) : sign === "<" ? value < Number(limit) : value === Number(limit);
      };
    }
    if (["panic", "stable"].includes(word)) return (one) => one.mode === word;
    if (word.endsWith("/") && word.indexOf("/") === word.length - 1) return (one) => one.name.toLowerCase().startsWith(word);
    return (one) => one.name.toLowerCase().includes(word);
  });
}

/** Keeps the last values of each revision, whichever page is open. */
export class FleetHistory {
  values = new Map();

  /** To be called once a second: a revision of which nothing is told stays as it is, and time goes on. */
  sample(fleet) {
    for (const name of this.values.keys()) if (!fleet.has(name)) this.values.delete(name);
    for (const one of fleet.values()) {
      const values = this.values.get(one.name) || [];
      values.push({ demand: one.stable_value || 0, capacity: one.target_per_pod * one.ready_pods });
      if (values.length > VALUES_MAX) values.shift();
      this.values.set(one.name, values);
    }
  }
}

/** The page. `fleet` has the revisions by name, `history` their last values. */
export function fleetPage(content, { fleet, history }) {
  const rows = new Map();
  const order = { key: "name", isDescending: false };
  const filter = make("input", { type: "search", placeholder: "name, panic, waiting>0, ns/", autocomplete: "off", spellcheck: "false", oninput: keepFilter });
  filter.value = sessionStorage.getItem("ebb-filter") || "";
  const caption = make("caption", { "aria-live": "polite" });
  const body = make("tbody");
  const headings = COLUMNS.map(heading);
  content.append(make("h2", {}, "Fleet"), make("p", {}, make("label", {}, "Show ", filter)),
    make("table", { class: "fleet" }, caption, make("thead", {}, make("tr", {}, headings.map(({ cell }) => cell))), body));
  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const row = rows.get(target.dataset.name);
      if (!row) continue;
      row.isSeen = isIntersecting;
      if (isIntersecting) draw(row, history.values.get(row.name) || []);
    }
  }, { rootMargin: "200px" });

  function heading({ key, heading: text, kind }) {
    const choose = () => {
      order.isDescending = order.key === key ? !order.isDescending : kind === "number" || key === "load";
      order.key = key;
      refresh();
    };
    const cell = make("th", { scope: "col", class: kind }, make("button", { type: "button", onclick: choose }, text));
    return { key, cell };
  }

  function chosen() {
    const wanted = tests(filter.value);
    const { order: rank, text } = COLUMNS.find(({ key }) => key === order.key);
    const value = rank || text;
    const sign = order.isDescending ? -1 : 1;
    const compare = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
    return [...fleet.values()].filter((one) => wanted.every((test) => test(one)))
      .sort((one, other) => sign * compare(value(one), value(other)) || compare(one.name, other.name));
  }

  function keepFilter() {
    sessionStorage.setItem("ebb-filter", filter.value);
    refresh();
  }

  function refresh() {
    const all = chosen();
    const shown = all.slice(0, ROWS_MAX);
    const names = new Set(shown.map(({ name }) => name));
    for (const [name, row] of rows) {
      if (names.has(name)) continue;
      seen.unobserve(row.element);
      row.element.remove();
      rows.delete(name);
    }
    let place = body.firstElementChild;
    for (const one of shown) {
      let row = rows.get(one.name);
      if (!row) {
        row = newRow(one.name);
        rows.set(one.name, row);
        seen.observe(row.element);
      }
      if (row.element === place) place = place.nextElementSibling;
      else body.insertBefore(row.element, place);
      if (row.shown !== one) show(row, one);
    }
    const cut = all.length > shown.length ? `, the first ${shown.length} of them shown` : "";
    const part = all.length === fleet.size ? "" : `${all.length} of `;
    const text = `${part}${fleet.size} ${fleet.size === 1 ? "revision" : "revisions"}${cut}`;
    const said = fleet.size === 0 ? "No revision yet" : text;
    if (caption.textContent !== said) caption.textContent = said;
    for (const { key, cell } of headings) {
      cell.setAttribute("aria-sort", key !== order.key ? "none" : order.isDescending ? "descending" : "ascending");
    }
  }

  function redraw() {
    for (const row of rows.values()) if (row.isSeen) draw(row, history.values.get(row.name) || []);
  }

  refresh();
  return { refresh, redraw, close: () => seen.disconnect() };
}

function newRow(name) {
  const cells = {};
  const chart = shape("svg", { viewBox: `0 0 ${VALUES_MAX} 20`, preserveAspectRatio: "none", class: "spark", role: "img" });
  const [demand, capacity] = [shape("path", { class: "line demand" }), shape("path", { class: "line capacity" })];
  chart.append(capacity, demand);
  const element = make("tr", { "data-name": name });
  for (const { key, kind, heading } of COLUMNS) {
    cells[key] = key === "name" ? make("th", { scope: "row", class: "name" }) : make("td", { class: kind || key, "data-heading": heading });
    element.append(cells[key]);
  }
  cells.name.append(revisionLink(name));
  const text = make("span", { class: "of" });
  cells.load.append(chart, text);
  return { name, element, cells, chart, demand, capacity, text, isSeen: true, shown: null };
}

function draw({ demand, capacity, chart }, values) {
  const greatest = values.reduce((most, value) => Math.max(most, value.demand, value.capacity), 1e-9);
  const first = VALUES_MAX - values.length;
  const path = (of) => stepPath(values.map(of), (column) => first + column, (value) => (19 - 18 * (value / greatest)).toFixed(1));
  demand.setAttribute("d", path((value) => value.demand));
  capacity.setAttribute("d", path((value) => value.capacity));
  const last = values[values.length - 1];
  chart.setAttribute("aria-label", last ? `load ${number(last.demand)} of ${number(last.capacity)}` : "no load was measured");
}

function show(row, one) {
  row.shown = one;
  for (const { key, text, isAlert } of COLUMNS) {
    if (!text) continue;
    const shown = String(text(one) ?? "");
    if (row.cells[key].textContent !== shown) row.cells[key].textContent = shown;
    if (isAlert) row.cells[key].classList.toggle("alert", isAlert(one));
  }
  row.text.textContent = `${number(one.stable_value || 0)} of ${number(one.target_per_pod * one.ready_pods)}`;
}
