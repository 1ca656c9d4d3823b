// The collector of the benchmark: accepts all spans without reading them.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { answerParent } from "./programs.ts";

let bytes = 0;
const server = createServer((request, response) => {
  request.on("data", (chunk: Buffer) => (bytes += chunk.length));
  request.on("end", () => response.end());
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  answerParent(() => ({ port, bytes }));
});
