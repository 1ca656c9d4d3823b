// A program for tests of the runtime: answers 200 on its port, or does what its arguments say.
//   --port N          listens on this port
//   --record FILE     appends the lines "<name> started" and "<name> stopped" to FILE
//   --name NAME
//   --exit CODE       exits at once, with a reason on standard error
//   --deaf            ignores SIGTERM
//   --sick-file FILE  answers 500 while that file exists
import { appendFileSync, existsSync } from "node:fs";
import { createServer } from "node:http";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    record: { type: "string" },
    name: { type: "string", default: "program" },
    exit: { type: "string" },
    deaf: { type: "boolean", default: false },
    "sick-file": { type: "string" },
  },
});

function note(what: string): void {
  if (values.record !== undefined) {
    appendFileSync(values.record, `${values.name} ${what}\n`);
  }
}

if (values.exit !== undefined) {
  process.stderr.write("hearth: exit requested by the test.\n");
  process.exit(Number(values.exit));
}
process.stdout.write(`${values.name} says hello\n`);
const sickFile = values["sick-file"];
createServer((_request, response) => {
  const sick = sickFile !== undefined && existsSync(sickFile);
  response.writeHead(sick ? 500 : 200).end("{}");
}).listen(Number(values.port), "127.0.0.1", () => note("started"));
process.on("SIGTERM", () => {
  if (values.deaf) {
    return;
  }
  note("stopped");
  process.exit(0);
});
