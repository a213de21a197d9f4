// Node's own clients, `http` and `http2`, before a proxy: see tests/tests/peers/clients.rs for what each line says.
// node client.js PORT HOST http1|h2c BYTES

'use strict';
const http = require('http');
const http2 = require('http2');
const { once } = require('events');

const [port, host, protocol, bytes] = process.argv.slice(2);
const SIZE = Number(bytes);
const PIECE = 64 * 1024;
const connection = protocol === 'h2c' ? http2.connect(`http://127.0.0.1:${port}`) : null;
const agent = new http.Agent({ keepAlive: true });

// One request: what is written, what is read, and how it ends, the same for both protocols.
function open(path) {
  if (connection) {
    const head = { ':method': 'POST', ':path': path, ':authority': host, te: 'trailers' };
    const stream = connection.request(head, { waitForTrailers: true });
    const exchange = { writable: stream, readable: stream, cancel: () => stream.close(http2.constants.NGHTTP2_CANCEL) };
    exchange.head = once(stream, 'response').then(([headers]) => { exchange.headers = headers; });
    exchange.trailers = new Promise((resolve) => stream.once('trailers', resolve));
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sent': '7' }));
    return exchange;
  }
  const request = http.request({
    port, agent, path, method: 'POST', host: '127.0.0.1', headers: { host, 'transfer-encoding': 'chunked', trailer: 'x-sent', te: 'trailers' },
  });
  request.addTrailers({ 'x-sent': '7' });
  const exchange = { writable: request, cancel: () => request.destroy() };
  exchange.head = once(request, 'response').then(([response]) => {
    exchange.readable = response;
    exchange.headers = response.headers;
    exchange.trailers = once(response, 'end').then(() => response.trailers);
    // Whoever waits for them hears of it all the same.
    exchange.trailers.catch(() => {});
  });
  return exchange;
}

// The n-th byte of every body: no piece of it looks like another.
function fill(at, length) {
  const piece = Buffer.alloc(length);
  for (let index = 0; index < length; index += 1) piece[index] = ((at + index) ^ ((at + index) >>> 8)) & 0xff;
  return piece;
}

async function write(exchange, size) {
  for (let at = 0; at < size; at += PIECE) {
    const piece = fill(at, Math.min(PIECE, size - at));
    if (!exchange.writable.write(piece)) await once(exchange.writable, 'drain');
  }
  exchange.writable.end();
}

async function read(exchange) {
  await exchange.head;
  let at = 0;
  for await (const piece of exchange.readable) {
    if (!piece.equals(fill(at, piece.length))) throw new Error(`byte ${at} or one behind it is another`);
    at += piece.length;
  }
  return at;
}

async function body() {
  const exchange = open('/stream');
  const [, length] = await Promise.all([write(exchange, SIZE), read(exchange)]);
  if (length !== SIZE) throw new Error(`${length} bytes came back`);
}

async function trailers() {
  const exchange = open('/stream');
  await Promise.all([write(exchange, 5), read(exchange)]);
  const got = await exchange.trailers;
  if (got['grpc-status'] !== '0' || got['x-echoed'] !== '7') throw new Error(JSON.stringify(got));
}

async function duplex() {
  const exchange = open('/stream');
  for (let turn = 0; turn < 20; turn += 1) {
    exchange.writable.write(fill(turn, 100));
    await exchange.head;
    let at = 0;
    while (at < 100) {
      const piece = exchange.readable.read(100 - at);
      if (piece) at += piece.length; else await once(exchange.readable, 'readable');
    }
  }
  exchange.writable.end();
  exchange.readable.resume();
  await once(exchange.readable, 'end');
}

async function cancel() {
  const exchange = open('/stream');
  exchange.writable.on('error', () => {});
  exchange.writable.write(fill(0, PIECE));
  await exchange.head;
  exchange.readable.on('error', () => {});
  await untilInFlight('2');
  exchange.cancel();
  // The next one is served, and sooner or later alone.
  await untilInFlight('1');
}

async function untilInFlight(number) {
  while (await inFlight() !== number) await new Promise((resolve) => setTimeout(resolve, 10));
}

async function inFlight() {
  const next = open('/');
  await Promise.all([write(next, 5), read(next)]);
  return next.headers['x-in-flight'];
}

(async () => {
  for (const check of [body, trailers, duplex, cancel]) {
    await check();
    console.log(check.name);
  }
  if (connection) connection.close();
  agent.destroy();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
