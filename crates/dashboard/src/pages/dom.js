// Elements, made without markup: whatever a text holds, it is shown as text.

/** The least and the greatest width of a chart. */
const CHART_WIDTHS = [300, 1440];

/** An element with these properties (`class`, `on…`, attributes) and children (elements or texts). */
export function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false).map(piece));
  return made;
}

function piece(child) {
  return child instanceof Node ? child : String(child);
}

/** A table: headings, and rows of cells (texts, numbers or elements). Numbers stand to the right. */
export function table(caption, headings, rows) {
  const isNumber = (column) => rows.length > 0 && rows.every((row) => typeof row[column] === "number");
  const cell = (value, column) => {
    const properties = typeof value === "number" ? { class: "number" } : {};
    const shown = typeof value === "number" ? number(value) : value ?? "–";
    return column === 0 ? make("th", { scope: "row", ...properties }, shown) : make("td", properties, shown);
  };
  return make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": caption },
    make("table", {},
      make("caption", {}, caption),
      make("thead", {}, make("tr", {}, headings.map((heading, column) => make("th", { scope: "col", class: isNumber(column) ? "number" : null }, heading)))),
      make("tbody", {}, rows.map((row) => make("tr", {}, row.map(cell))))));
}

/** A table that is made when a person opens it: `rows` is called then. */
export function tableBehind(summary, caption, headings, rows) {
  const fill = ({ target }) => {
    if (target.open && !target.querySelector("table")) target.append(table(caption, headings, rows()));
  };
  return make("details", { ontoggle: fill }, make("summary", {}, summary));
}

/** Facts in a list: a term, its text, and the lines behind it where there are some. */
export function factList(facts) {
  return make("dl", {}, facts.map(([term, text, lines]) => make("div", {}, make("dt", {}, term), make("dd", {}, text, lines ? make("pre", {}, lines) : null))));
}

/** A part of a page with a heading. */
export function section(heading, ...children) {
  return make("section", {}, make("h3", {}, heading), ...children);
}

/** A command to copy, with a button that copies it. */
export function command(text) {
  const said = make("span", { role: "status" });
  const copy = () => navigator.clipboard.writeText(text).then(
    () => { said.textContent = "copied"; },
    () => { said.textContent = "the browser refused; mark the text and copy it"; });
  return make("p", { class: "command" }, make("code", {}, text),
    make("button", { type: "button", onclick: copy, "aria-label": `Copy ${text}` }, "Copy"), said);
}

/** A number in as few digits as tell what it is. */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Number.isInteger(value)) return String(value);
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return String(Number(value.toFixed(digits)));
}

/** A length of time with its two greatest parts: "6d3h", "2h5m", "4.2s", "120ms". */
export function span(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return "–";
  if (milliseconds === 0) return "0s";
  if (milliseconds < 1000) return `${Math.round(milliseconds)}ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 10 && seconds % 1 >= 0.05) return `${seconds.toFixed(1)}s`;
  const whole = Math.round(seconds);
  const parts = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
  const first = Math.max(0, parts.findIndex(([size]) => whole >= size));
  const [[size, unit], next] = [parts[first], parts[first + 1]];
  const rest = next ? Math.floor((whole % size) / next[0]) : 0;
  return `${Math.floor(whole / size)}${unit}${rest > 0 ? `${rest}${next[1]}` : ""}`;
}

/** The width that a chart in this place has, in the pixels of its letters, which are larger on a wide screen. */
export function chartWidth(place) {
  const letters = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16 || 1;
  return Math.min(CHART_WIDTHS[1], Math.max(CHART_WIDTHS[0], Math.floor(place.clientWidth / letters)));
}

/** The address of a revision's page. */
export function revisionLink(name) {
  return make("a", { href: `#/revision/${encodeURI(name)}` }, name);
}
