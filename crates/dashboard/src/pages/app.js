// The pages of one address: which is shown, and what the stream has told so far.

import { takeToken } from "/dashboard/api.js";
import { FleetHistory, fleetPage } from "/dashboard/fleet.js";
import { coldStartsPage, costPage, problemsPage } from "/dashboard/reports.js";
import { revisionPage } from "/dashboard/revision.js";
import { follow } from "/dashboard/stream.js";

const content = document.getElementById("content");
const state = document.getElementById("state");
const problemCount = document.getElementById("problem-count");
const pages = document.getElementById("pages");

/** What the stream has told: revisions by name, their last values, and what is wrong. */
const known = { fleet: new Map(), history: new FleetHistory(), notices: { problems: [], unanswered: [] } };
let page = null;

function open() {
  takeToken();
  const path = location.hash.replace(/^#/, "") || "/";
  const [, kind, ...rest] = path.split("/");
  const makers = { "": fleetPage, "cold-starts": coldStartsPage, cost: costPage, problems: problemsPage, revision: revisionPage };
  const maker = makers[kind] || fleetPage;
  if (page) page.close();
  content.replaceChildren();
  const name = decoded(rest.join("/"));
  page = maker(content, known, name);
  document.title = kind === "revision" ? `${name} – ebb` : "ebb";
  for (const link of pages.querySelectorAll("a")) {
    if (link.getAttribute("href") === `#/${kind}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** A name in an address, as it is written where it is not well-formed. */
function decoded(text) {
  try {
    return decodeURI(text);
  } catch {
    return text;
  }
}

function take(event) {
  const { fleet, notices } = known;
  if (event.whole || event.names) {
    const there = new Set(event.names || event.revisions.map((one) => one.name));
    for (const name of [...fleet.keys()]) if (!there.has(name)) fleet.delete(name);
  }
  event.gone.forEach((name) => fleet.delete(name));
  for (const one of event.revisions) fleet.set(one.name, one);
  notices.problems = event.problems;
  notices.unanswered = event.unanswered;
  // `ebb get -o json` has the number too: with the same one its numbers are those of the page.
  content.dataset.snapshot = event.snapshot;
  const count = notices.problems.length + notices.unanswered.length + [...fleet.values()].filter((one) => one.why_not_ready).length;
  problemCount.textContent = count > 0 ? ` (${count})` : "";
  page.refresh();
}

function say(text, isBroken) {
  if (state.textContent !== text) state.textContent = text;
  state.classList.toggle("broken", isBroken);
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  content.focus();
});
window.addEventListener("hashchange", () => { open(); content.focus(); });
open();
follow(take, say);
setInterval(() => {
  if (document.hidden) return;
  known.history.sample(known.fleet);
  page.redraw?.();
}, 1000);
