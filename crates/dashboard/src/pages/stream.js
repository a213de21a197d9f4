// The stream of changes: read by fetch, so that a header can carry a token, and begun again when it ends.
//
// A hidden tab closes its stream and asks again when it is shown, so that many tabs take few places. A reader
// that comes back names the last event that it has, and hears of the changes since alone.

import { headers } from "/dashboard/api.js";

const AGAIN_AFTER_MS = 1000;

/** Calls `tell(event)` for each change and `say(text, isBroken)` for the state of the stream. */
export function follow(tell, say) {
  let reading = null;
  let last = null;

  const take = (event, id) => {
    const isRebuilt = last !== null && event.whole;
    last = id ?? null;
    tell(event);
    say(isRebuilt ? "live; the autoscaler was rebuilt, averages begin anew" : "live", false);
  };

  async function read() {
    const abort = new AbortController();
    reading = abort;
    try {
      const known = last === null ? {} : { "Last-Event-ID": last };
      const asked = headers({ Accept: "text/event-stream", ...known });
      const answer = await fetch("/v1/stream", { headers: asked, signal: abort.signal });
      if (answer.ok) {
        await readEvents(answer.body, take);
        say("the autoscaler is being rebuilt; these are its last numbers", true);
      } else {
        const refusal = await answer.json().catch(() => ({}));
        say(refusal.error || `the stream answered ${answer.status}`, true);
      }
    } catch {
      if (abort.signal.aborted) return;
      say("nothing answers; these are the last numbers", true);
    }
    if (reading === abort) setTimeout(() => { if (reading === abort) read(); }, AGAIN_AFTER_MS);
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      const abort = reading;
      reading = null;
      if (abort) abort.abort();
    } else if (!reading) {
      read();
    }
  });
  if (!document.hidden) read();
}

async function readEvents(body, take) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (text + value).split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n");
      const field = (name) => lines.find((line) => line.startsWith(name))?.slice(name.length);
      const data = field("data: ");
      if (data) take(JSON.parse(data), field("id: "));
    }
  }
}
