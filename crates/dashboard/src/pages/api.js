// Questions to the API beside which these files are served.
//
// A token comes behind the `#` of the address, which no request carries; it is kept for this tab alone, and
// goes out as a header. A cookie would go to every port of this machine.

const TOKEN = /^#(ebb_[0-9A-Za-z_-]+)$/;

/** Takes the token out of the address; true if there was one. */
export function takeToken() {
  const found = TOKEN.exec(location.hash);
  if (!found) return false;
  sessionStorage.setItem("ebb-token", found[1]);
  history.replaceState(null, "", `${location.pathname}#/`);
  return true;
}

/** The headers of a request, and the token where one is known. */
export function headers(more = {}) {
  const token = sessionStorage.getItem("ebb-token");
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

/** The answer to `GET path`; an error has the API's own words, or says that nothing answers. */
export async function ask(path, signal) {
  let answer;
  try {
    answer = await fetch(path, { headers: headers(), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("nothing answers; the numbers are the last ones");
  }
  const body = await answer.json().catch(() => ({ error: `${path} answered ${answer.status}` }));
  if (!answer.ok) {
    const problem = new Error(body.error || `${path} answered ${answer.status}`);
    problem.status = answer.status;
    throw problem;
  }
  return body;
}

/** Calls `turn(signal)` now and every so many milliseconds while the tab is shown, until the returned function is called. */
export function repeat(turn, everyMs) {
  const abort = new AbortController();
  let timer = null;
  const run = async () => {
    clearTimeout(timer);
    if (document.hidden) return;
    await turn(abort.signal).catch(() => {});
    if (!abort.signal.aborted) timer = setTimeout(run, everyMs);
  };
  document.addEventListener("visibilitychange", run, { signal: abort.signal });
  run();
  return () => { abort.abort(); clearTimeout(timer); };
}
