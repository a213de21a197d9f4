// The pages over all revisions: cold starts, costs, and problems with the commands that mend them.

import { ask, repeat } from "/dashboard/api.js";
import { partsBar, legend } from "/dashboard/charts.js";
import { command, make, number, revisionLink, section, span, table } from "/dashboard/dom.js";

const AGAIN_EVERY_MS = 30000;
const STATES = ["starting", "busy", "idle", "ending"];
const CAUSES = [["from_zero", "from zero"], ["growth", "growth"], ["rollout", "rollout"], ["failed_pod", "failed pod"]];
const RANGES = ["24h", "7d", "30d"];

function sumOf(parts) {
  return Object.values(parts).reduce((all, value) => all + value, 0);
}

/** A page made of the ledger: asked for again now and then, and at once for another range. */
function ledgerPage(content, title, fill) {
  const shown = make("div", { "aria-live": "off" });
  const choice = make("select", { onchange: askAgain }, RANGES.map((range) => make("option", { value: range }, `the last ${range}`)));
  choice.value = "7d";
  content.append(make("h2", {}, title), make("p", {}, make("label", {}, "Range ", choice)), shown);
  const turn = async (signal) => {
    try {
      const list = await ask(`/v1/ledger?since=${choice.value}`, signal);
      shown.replaceChildren(...fill(list).filter(Boolean));
    } catch (error) {
      if (error.name === "AbortError") return;
      shown.replaceChildren(make("p", { class: "alert" }, error.message));
    }
  };
  let close = repeat(turn, AGAIN_EVERY_MS);
  function askAgain() {
    close();
    close = repeat(turn, AGAIN_EVERY_MS);
  }
  return { refresh: () => {}, close: () => close() };
}

function measured(list) {
  const longest = list.revisions.reduce((most, one) => Math.max(most, one.first_ms_ago), 0);
  const missing = list.unanswered.length > 0 ? ` These autoscalers do not answer: ${list.unanswered.join(", ")}.` : "";
  const since = longest > 0 ? `Measured since ${span(longest)} ago at most.` : "Nothing was measured yet.";
  return make("p", {}, since + missing);
}

/** Starts of pods by cause, and the waits of those from zero. */
export function coldStartsPage(content) {
  return ledgerPage(content, "Cold starts", (list) => {
    const rows = list.revisions.filter((one) => sumOf(one.cold_starts) > 0 || one.waited > 0).map((one) => [
      revisionLink(one.name),
      ...CAUSES.map(([key]) => one.cold_starts[key]),
      one.cold_starts_ended > 0 ? span(one.cold_start_wait_ms / one.cold_starts_ended) : "–",
      one.cold_starts_ended > 0 ? span(one.cold_start_wait_ms_max) : "–",
      one.waited, span(one.waiting_seconds * 1000), one.advice || "–",
    ]);
    const headings = ["Revision", ...CAUSES.map(([, text]) => text), "from zero, on average", "at most", "requests that waited", "together", "advice"];
    return [measured(list), rows.length > 0 ? table("Cold starts by cause", headings, rows) : make("p", {}, "No pod was started in this time.")];
  });
}

/** The ledger: what pods came to by state, and what another least count would have cost. */
export function costPage(content) {
  return ledgerPage(content, "Cost", (list) => {
    const hours = (seconds) => seconds / 3600;
    const money = (amount) => (amount === null || list.currency === null ? "–" : `${amount.toFixed(amount >= 1 ? 2 : 4)} ${list.currency}`);
    const rows = list.revisions.filter((one) => one.seconds > 0).map((one) => [
      revisionLink(one.name),
      partsBar(STATES.map((state) => `${number(hours(one.pod_seconds[state]))} pod-hours ${state}`).join(", "),
        STATES.map((state) => ({ amount: one.pod_seconds[state], kind: state, title: `${state}: ${number(hours(one.pod_seconds[state]))} pod-hours` }))),
      hours(sumOf(one.pod_seconds)), ...STATES.map((state) => hours(one.pod_seconds[state])),
      money(one.cost), one.min_scale, one.advice || "–",
    ]);
    const headings = ["Revision", "parts", "pod-hours", ...STATES, "cost", "min-scale", "advice"];
    const prices = list.currency === null
      && make("p", {}, "No price is set: write price-per-cpu-hour and price-per-gib-hour into the ConfigMap config-autoscaler, such as \"0.031 USD\".");
    return [measured(list), prices, legend(STATES.map((state) => ({ name: state, kind: state }))),
      rows.length > 0 ? table("Pod-hours by state", headings, rows) : null, command(`ebb ledger --since ${RANGES[1]}`)];
  });
}

/** The commands that help with a problem: what it names decides. */
export function mending(problem) {
  const subject = /^([A-Za-z]+) ([^/\s]+)\/([^:\s]+): /.exec(problem);
  if (subject) return `kubectl describe ${subject[1].toLowerCase()} ${subject[3]} --namespace ${subject[2]}`;
  if (/annotation|ConfigMap|config-autoscaler|\.ya?ml/.test(problem)) return "ebb lint -f FILE";
  return "ebb check";
}

/** Everything that is wrong: configuration, autoscalers that are silent, pods in trouble, requests that wait. */
export function problemsPage(content, { fleet, notices }) {
  const shown = make("div");
  content.append(make("h2", {}, "Problems"), shown);
  const item = (text, ...commands) => make("li", {}, make("p", {}, text), commands.map(command));
  const refresh = () => {
    const configuration = notices.problems.map((text) => item(text, mending(text)));
    const silent = notices.unanswered.map((name) => item(`The autoscaler ${name} does not answer.`, `kubectl logs ${name} --namespace ebb-system`));
    const troubles = [...fleet.values()].filter((one) => one.why_not_ready).map((one) => item(
      make("span", {}, revisionLink(one.name), `: ${one.why_not_ready}`), `ebb explain ${one.name}`, `ebb logs ${one.name}`));
    const parts = [["Configuration that was refused", configuration], ["Autoscalers", silent], ["Revisions", troubles]]
      .filter(([, items]) => items.length > 0);
    const key = JSON.stringify([notices, [...fleet.values()].map((one) => one.why_not_ready)]);
    if (shown.dataset.key === key) return;
    shown.dataset.key = key;
    shown.replaceChildren(...parts.map(([heading, items]) => section(heading, make("ul", { class: "problems" }, items))));
    if (parts.length === 0) shown.append(make("p", {}, "There is no problem."));
  };
  refresh();
  return { refresh, close: () => {} };
}
