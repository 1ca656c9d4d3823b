import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { watchConnections } from "./client-connections.ts";
import { listen } from "../test/servers/ports.ts";

const REQUEST = "GET / HTTP/1.1\r\nhost: hearth\r\n\r\n";

/** A server that has accepted a connection on which nothing was sent yet. */
async function acceptOne(): Promise<{
  readonly server: Server;
  readonly client: Socket;
  readonly connections: ReturnType<typeof watchConnections>;
}> {
  const server = createServer((_request, response) => response.end("answered"));
  const connections = watchConnections(server, logInto([]));
  const port = await listen(server);
  const accepted = once(server, "connection");
  const client = connect(port, "127.0.0.1");
  await accepted;
  return { server, client, connections };
}

test("a connection whose first request is in transit is answered before it is closed", async () => {
  const { server, client, connections } = await acceptOne();
  const closed = new Promise((resolve) => server.close(resolve));
  connections.closeIdle();
  client.write(REQUEST);
  expect(await text(client)).toContain("answered");
  await closed;
});

test("a connection that sends nothing does not delay the shutdown", async () => {
  const { server, client, connections } = await acceptOne();
  const closed = new Promise((resolve) => server.close(resolve));
  connections.closeIdle();
  expect(await text(client)).toBe("");
  await closed;
});

test("above the limit, the connection that has waited longest for a request is closed, and the log says once what to do", async () => {
  const server = createServer((_request, response) => response.end("answered"));
  const messages: string[] = [];
  watchConnections(server, logInto(messages), 3);
  const port = await listen(server);
  const closed: string[] = [];
  const open = async (name: string): Promise<Socket> => {
    const client = connect(port, "127.0.0.1").resume();
    client.once("close", () => closed.push(name));
    await once(client, "connect");
    return client;
  };
  const clients = [await open("used"), await open("partial"), await open("")];
  clients[1]?.write("GET / HTTP/1.1\r\n");
  clients[0]?.write(REQUEST);
  await once(clients[0]!, "data");
  for (const order of [["partial"], ["partial", ""], ["partial", "", "used"]]) {
    const client = await open("new");
    clients.push(client);
    await expect.poll(() => closed).toEqual(order);
    client.write(REQUEST);
    expect(String(await once(client, "data"))).toContain("answered");
  }
  expect(messages).toEqual([expect.stringContaining("ulimit -n")]);
  clients.forEach((client) => client.destroy());
  await new Promise((resolve) => server.close(resolve));
});

test("a connection above the limit is closed while all others have complete requests", async () => {
  const responses: ServerResponse[] = [];
  const server = createServer((_request, response) => responses.push(response));
  const connections = watchConnections(server, logInto([]), 2);
  server.on("upgrade", (_request, socket: Socket) => {
    connections.upgraded(socket);
    socket.write("upgraded");
    socket.once("end", () => socket.end()).resume();
  });
  const port = await listen(server);
  const call = connect(port, "127.0.0.1").resume();
  // The second request has no answer yet when the first ends.
  call.write(REQUEST + REQUEST);
  await expect.poll(() => responses.length).toBe(2);
  responses[0]?.end("first answer");
  await once(call, "data");
  const webSocket = connect(port, "127.0.0.1");
  webSocket.write(
    "GET / HTTP/1.1\r\nhost: hearth\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
  );
  await once(webSocket, "data");
  const rejected = connect(port, "127.0.0.1").resume();
  await once(rejected, "close");
  responses[1]?.end("second answer");
  expect(String(await once(call, "data"))).toContain("second answer");
  [call, webSocket].forEach((client) => client.destroy());
  await new Promise((resolve) => server.close(resolve));
});

test("above the limit, the connection with the oldest incomplete body is closed while none waits for a request", async () => {
  let arrived = 0;
  const server = createServer((request, response) => {
    arrived += 1;
    text(request).then(
      (body) => response.end(body),
      () => response.destroy(),
    );
  });
  watchConnections(server, logInto([]), 3);
  const port = await listen(server);
  const closed: string[] = [];
  const post = async (name: string, body: string): Promise<Socket> => {
    const client = connect(port, "127.0.0.1").resume();
    client.once("close", () => closed.push(name)).on("error", () => undefined);
    const before = arrived;
    client.write(
      `POST / HTTP/1.1\r\nhost: hearth\r\ncontent-length: 6\r\n\r\n${body}`,
    );
    await expect.poll(() => arrived).toBe(before + 1);
    return client;
  };
  const clients = [
    await post("oldest", "12"),
    await post("older", "12"),
    await post("old", "12"),
  ];
  const complete = await post("complete", "answer");
  expect(closed).toEqual(["oldest"]);
  clients.push(complete, await post("new", "12"), await post("newer", "12"));
  await expect.poll(() => closed).toEqual(["oldest", "complete", "older"]);
  clients[2]?.write("3456");
  expect(String(await once(clients[2]!, "data"))).toContain("123456");
  clients.forEach((client) => client.destroy());
  await new Promise((resolve) => server.close(resolve));
});

test("a client may send 32 requests before their answers, and is disconnected if it sends more", async () => {
  const server = createServer((_request, response) => response.end("answered"));
  watchConnections(server, logInto([]));
  const port = await listen(server);
  const send = (requests: number) => {
    const client = connect(port, "127.0.0.1");
    client.write(
      REQUEST.repeat(requests - 1) +
        REQUEST.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n"),
    );
    return text(client);
  };
  const answers = await send(32);
  expect(answers.split("answered")).toHaveLength(33);
  const cut = await send(1_000).catch(() => "");
  expect(cut.split("answered").length).toBeLessThan(33);
  await new Promise((resolve) => server.close(resolve));
});

function logInto(messages: string[]) {
  return {
    error: (_fields: object, message: string) => messages.push(message),
  };
}
