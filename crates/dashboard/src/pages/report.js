// The charts of a report in one file, from the numbers that stand in it. This stands behind charts.js and
// dom.js in one script, and imports nothing.

/** As many variants have a colour of their own. */
const VARIANT_COLOURS = 6;

const report = JSON.parse(document.getElementById("numbers").textContent);
document.getElementById("charts").replaceChildren(...report.services.map(serviceChart));

/** The counts of one Service in all variants, and those of a moment with their reasons. */
function serviceChart({ name, variants }) {
  const lines = variants.map(({ title, counts }, index) => ({ name: title, kind: `variant${index % VARIANT_COLOURS}`, values: counts }));
  const moment = make("div", { class: "moment" });
  const width = chartWidth(document.body);
  const marks = width < 500 ? 2 : 6;
  const times = Array.from({ length: marks + 1 }, (_, mark) => [mark / marks, span((mark / marks) * report.length_ms)]);
  const label = `${name}: pods over ${span(report.length_ms)}. Arrow keys choose a moment.`;
  const choose = (part) => countsAt(moment, variants, part);
  return section(`${name}: pods`, legend(lines), lineChart({ label, lines, times, width, choose, chosen: 0 }), moment, changesBehind(variants));
}

/** Shows the counts of a moment, and returns them in a sentence. */
function countsAt(element, variants, part) {
  const at = part * report.length_ms;
  const said = variants.map(({ title, counts, changes, changes_left_out: leftOut }) => {
    const change = changes.findLast(([begun]) => begun <= at);
    const isKnown = change !== undefined && (leftOut === 0 || change !== changes[changes.length - 1]);
    const pods = isKnown ? change[1] : counts[Math.min(counts.length - 1, Math.floor(part * counts.length))];
    return { text: `${title}: ${pods} pods`, why: isKnown ? `, since ${span(change[0])}: ${change[2]}` : "" };
  });
  const when = `after ${span(at)}`;
  element.replaceChildren(make("p", {}, make("strong", {}, when)), make("ul", {}, said.map(({ text, why }) => make("li", {}, text + why))));
  return `${when}: ${said.map(({ text }) => text).join(", ")}`;
}

/** The numbers behind the chart. */
function changesBehind(variants) {
  const rows = () => variants.flatMap(({ title, changes }) => changes.map(([at, pods, why]) => [title, span(at), pods, why]));
  const leftOut = variants.reduce((all, one) => all + one.changes_left_out, 0);
  const rest = leftOut > 0 ? make("p", {}, `${leftOut} later changes have no reasons here; --json writes them all.`) : null;
  return make("div", {}, tableBehind("The changes of the count as a table", "Changes of the count", ["variant", "after", "pods", "why"], rows), rest);
}
