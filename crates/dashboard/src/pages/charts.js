// Charts as SVG: step lines, bands, marks and bars. Attributes are set one by one, and no text is markup.
//
// This module asks for nothing and imports nothing, so that a report of one file can hold it.

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element with these attributes. */
export function shape(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** The path of steps through these values, `null` being a gap. `x` and `y` place a column and a value. */
export function stepPath(values, x, y) {
  let path = "";
  let before = null;
  values.forEach((value, column) => {
    if (value === null || value === undefined) {
      if (before !== null) path += `H${x(column)}`;
      before = null;
      return;
    }
    const height = y(value);
    if (before === null) path += `M${x(column)} ${height}`;
    else if (height !== before) path += `H${x(column)}V${height}`;
    before = height;
  });
  return before === null ? path : `${path}H${x(values.length)}`;
}

/** The greatest value of each of so many columns; `null` where a column has none. */
export function greatestOf(values, columns) {
  if (values.length <= columns) return values;
  const step = values.length / columns;
  return Array.from({ length: columns }, (_, column) => {
    let greatest = null;
    for (let place = Math.floor(column * step); place < Math.floor((column + 1) * step); place += 1) {
      const value = values[place];
      if (value !== null && value !== undefined && (greatest === null || value > greatest)) greatest = value;
    }
    return greatest;
  });
}

/** The least round number (1, 2 or 5 times a power of ten) that is a `count`th of `greatest` or more. */
export function roundStep(greatest, count) {
  const least = Math.max(greatest, 1e-9) / count;
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least * (1 - 1e-9));
}

/** The width in pixels where none is asked for. */
const WIDTH = 960;
const HEIGHT = 300;
const EDGE = { left: 48, right: 12, top: 10, bottom: 26 };
const COLUMNS = 900;

/**
 * A chart of lines over one axis of time.
 *
 * `label` names it for those who do not see it. `lines` are `{ name, kind, values }`, all of one length; the
 * kind is a class of the style sheet. `width` is that of the place in pixels, so that letters keep their size.
 * `times` are `[part, text]`, marks below, with parts from 0 to 1.
 * `bands` are `{ from, to, kind, title }` and `marks` are `{ at, kind, title }`, in parts. `choose(part)`, if
 * there, is called when a pointer or an arrow key has chosen a moment.
 */
export function lineChart({ label, lines, width = WIDTH, times = [], bands = [], marks = [], choose, chosen }) {
  const x = (part) => round(EDGE.left + part * (width - EDGE.left - EDGE.right));
  const all = lines.flatMap(({ values }) => values).filter((value) => Number.isFinite(value));
  const most = all.reduce((known, value) => Math.max(known, value), 1);
  const step = roundStep(most, 4);
  const greatest = step * Math.ceil(most / step - 1e-9);
  const floor = HEIGHT - EDGE.bottom;
  const y = (value) => round(floor - (Math.min(value, greatest) / greatest) * (floor - EDGE.top));
  const svg = shape("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, class: "chart", role: "img", "aria-label": label });
  for (const { from, to, kind, title } of bands) {
    svg.append(shape("rect", { class: `band ${kind}`, x: x(from), y: EDGE.top, height: floor - EDGE.top, width: Math.max(1, x(to) - x(from)) }, named(title)));
  }
  for (let value = 0; value <= greatest * (1 + 1e-9); value += step) {
    svg.append(shape("path", { class: "grid", d: `M${x(0)} ${y(value)}H${x(1)}` }));
    svg.append(words(x(0) - 6, y(value) + 4, "end", String(Number(value.toPrecision(6)))));
  }
  for (const [part, text] of times) {
    svg.append(words(x(part), HEIGHT - 8, part > 0.99 ? "end" : part < 0.01 ? "start" : "middle", text));
  }
  for (const { kind, values } of lines) {
    const drawn = greatestOf(values, COLUMNS);
    svg.append(shape("path", { class: `line ${kind}`, d: stepPath(drawn, (column) => x(column / drawn.length), y) }));
  }
  for (const { at, kind, title } of marks) {
    const place = x(at);
    const d = kind === "cold" ? `M${place - 5} ${EDGE.top}h10l-5 9z` : `M${place} ${floor}v-8`;
    svg.append(shape("path", { class: `mark ${kind}`, d }, named(title)));
  }
  if (choose) makeChoosable(svg, x, { choose, chosen, width });
  return svg;
}

function makeChoosable(svg, x, { choose, chosen = 1, width }) {
  const line = shape("path", { class: "cursor", d: "" });
  svg.append(line);
  svg.setAttribute("tabindex", "0");
  svg.setAttribute("role", "slider");
  svg.setAttribute("aria-valuemin", "0");
  svg.setAttribute("aria-valuemax", "100");
  let part = chosen;
  const show = () => {
    line.setAttribute("d", `M${x(part)} ${EDGE.top}V${HEIGHT - EDGE.bottom}`);
    svg.setAttribute("aria-valuenow", String(round(part * 100)));
  };
  const move = (to) => {
    part = Math.min(1, Math.max(0, to));
    show();
    const text = choose(part);
    if (text) svg.setAttribute("aria-valuetext", text);
  };
  svg.addEventListener("pointermove", (event) => {
    const place = svg.getBoundingClientRect();
    const at = ((event.clientX - place.left) / place.width) * width;
    move((at - EDGE.left) / (width - EDGE.left - EDGE.right));
  });
  svg.addEventListener("keydown", (event) => {
    const far = event.shiftKey ? 0.1 : 0.01;
    const to = { ArrowLeft: part - far, ArrowRight: part + far, ArrowDown: part - far, ArrowUp: part + far, Home: 0, End: 1, PageDown: part - 0.1, PageUp: part + 0.1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    move(to);
  });
  move(part);
}

/** Bars over one axis of time: `rows` are `{ name, parts: [{ from, to, kind, title }] }`, in parts. */
export function barChart({ label, rows, width = WIDTH }) {
  const height = Math.max(1, rows.length) * 18;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart bars", role: "img", "aria-label": label });
  const x = (part) => round(EDGE.left + Math.min(1, Math.max(0, part)) * (width - EDGE.left - EDGE.right));
  rows.forEach(({ name, parts }, row) => {
    for (const { from, to, kind, title } of parts) {
      svg.append(shape("rect", { class: `bar ${kind}`, x: x(from), y: row * 18 + 2, height: 14, width: Math.max(2, x(to) - x(from)) }, named(title)));
    }
    svg.append(words(EDGE.left - 6, row * 18 + 13, "end", name));
  });
  return svg;
}

/** Parts of one whole in one bar: `parts` are `{ amount, kind, title }`. */
export function partsBar(label, parts) {
  const sum = parts.reduce((all, { amount }) => all + amount, 0);
  const svg = shape("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", class: "parts", role: "img", "aria-label": label });
  let from = 0;
  for (const { amount, kind, title } of parts) {
    const width = sum > 0 ? (amount / sum) * 100 : 0;
    svg.append(shape("rect", { class: `bar ${kind}`, x: round(from), y: 0, height: 10, width: round(width) }, named(title)));
    from += width;
  }
  return svg;
}

/** What the lines of a chart are, in their colours. */
export function legend(lines) {
  const list = document.createElement("ul");
  list.className = "legend";
  for (const { name, kind } of lines) {
    const item = document.createElement("li");
    item.append(shape("svg", { viewBox: "0 0 20 10", class: "key", "aria-hidden": "true" }, shape("path", { class: `line ${kind}`, d: "M0 5H20" })), name);
    list.append(item);
  }
  return list;
}

function words(x, y, anchor, text) {
  const made = shape("text", { x, y, "text-anchor": anchor });
  made.textContent = text;
  return made;
}

function named(title) {
  const made = shape("title");
  made.textContent = title ?? "";
  return made;
}

function round(value) {
  return Math.round(value * 10) / 10;
}
