// The stream of changes: read by fetch, so that a header can carry a token, and begun again when it ends.
//
// A hidden tab closes its stream and asks again when it is shown, so that many tabs take few places.

const AGAIN_AFTER_MS = 2000;

/** Calls `tell(event)` for each change and `say(text, isBroken)` for what becomes of the stream. */
export function follow(tell, say) {
  let reading = null;

  async function read() {
    const abort = new AbortController();
    reading = abort;
    try {
      const answer = await fetch("/v1/stream", { headers: { Accept: "text/event-stream" }, signal: abort.signal });
      if (!answer.ok) {
        say((await answer.json()).error, true);
      } else {
        await readEvents(answer.body, tell, say);
        say("the autoscaler is being rebuilt; these are its last numbers", true);
      }
    } catch (error) {
      if (abort.signal.aborted) return;
      say("nothing answers; these are the last numbers", true);
    }
    if (reading === abort) {
      setTimeout(() => { if (reading === abort) read(); }, AGAIN_AFTER_MS);
    }
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

async function readEvents(body, tell, say) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (text + value).split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const data = block.split("\n").find((line) => line.startsWith("data: "));
      if (data) {
        tell(JSON.parse(data.slice(6)));
        say("live", false);
      }
    }
  }
}
