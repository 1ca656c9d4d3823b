// Runs inside a container of the host that is looked at (`node -e`: nothing but Node, no imports). PROBE holds what to do,
// one line of JSON on standard output is the answer.
const net = process.getBuiltinModule("node:net");
const { networkInterfaces } = process.getBuiltinModule("node:os");
const { statfsSync } = process.getBuiltinModule("node:fs");
const {
  bind = [],
  listen = [],
  connect = [],
  fetch: urls = [],
} = JSON.parse(process.env.PROBE);

/** "ok", or the code of the error. */
function tryListen({ address, port }) {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once("error", ({ code }) => resolve(code));
    server.listen(port, address, () => server.close(() => resolve("ok")));
  });
}

/** A listener that was started a moment ago may refuse at first. */
async function tryConnect(listener) {
  for (let tries = 0; tries < 6; tries += 1) {
    const code = await connectOnce(listener);
    if (code !== "ECONNREFUSED") {
      return code;
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  return "ECONNREFUSED";
}

function connectOnce({ address, port }) {
  return new Promise((resolve) => {
    const socket = net.connect({ host: address, port, timeout: 4000 });
    const end = (code) => {
      socket.destroy();
      resolve(code);
    };
    socket.once("connect", () => end("ok"));
    socket.once("timeout", () => end("ETIMEDOUT"));
    socket.once("error", ({ code }) => end(code));
  });
}

/** Any answer is an answer: whether the runner wants a key is the gateway's business. */
function tryFetch(url) {
  return fetch(url, { signal: AbortSignal.timeout(4000) }).then(
    () => "ok",
    ({ name, message, cause }) =>
      name === "TimeoutError" ? "ETIMEDOUT" : (cause?.code ?? message),
  );
}

async function main() {
  for (const port of listen) {
    net.createServer((socket) => socket.end()).listen(port);
  }
  // The parent process may have died.
  if (listen.length > 0) {
    return void setTimeout(() => process.exit(), 120_000);
  }
  const { bavail, bsize } = statfsSync("/");
  const answer = {
    addresses: Object.values(networkInterfaces())
      .flat()
      .filter(({ internal, scopeid = 0 }) => !internal && scopeid === 0)
      .map(({ address }) => address),
    freeBytes: bavail * bsize,
    bind: await Promise.all(bind.map(tryListen)),
    connect: await Promise.all(connect.map(tryConnect)),
    fetch: await Promise.all(urls.map(tryFetch)),
  };
  console.log(JSON.stringify(answer));
}

main();
