import { extname } from "node:path";
import { MINUTE_MS } from "../core/duration.ts";
import { asTyped } from "../supervisor/home/home.ts";
import type { SetupAnswer } from "../supervisor/vaults/provisioning.ts";
import { findStack } from "./stack-client.ts";
import { alignColumns, paint, print, printJson, widthOf } from "./terminal.ts";
import { jsonArg, UsageError } from "./verb.ts";
import { writeOutput } from "./write-output.ts";

/** Options of every command that shows a Setup URI. */
export const setupArgs = {
  qr: {
    type: "string",
    description: "Also write the QR code to this file (.png or .svg)",
    valueHint: "file",
  },
  ...jsonArg,
} as const;

const SLOW_MS = MINUTE_MS;

/** A request to the supervisor that is answered with a Setup URI. */
interface SetupRequest {
  readonly supervisor: string | undefined;
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headlineOf: (answer: SetupAnswer) => string;
  readonly qr: string | undefined;
  readonly json: boolean | undefined;
}

/** Sends the request and prints its Setup URI before the QR code is written, which may fail when the change is already made. */
export async function askForSetup({
  supervisor,
  path,
  body,
  headlineOf,
  qr,
  json,
}: SetupRequest): Promise<void> {
  checkPicture(qr);
  const stack = findStack(supervisor);
  const answer = (await stack.ask("POST", path, SLOW_MS, body)) as SetupAnswer;
  if (json === true) {
    printJson(answer);
  } else {
    await printSetup(answer, headlineOf(answer));
  }
  if (qr !== undefined) {
    await writeQr(answer.setupUri, qr);
    if (json !== true) {
      print(`QR code: ${qr}`);
    }
  }
}

/** The Setup URI, its passphrase, and a QR code if the terminal is wide enough. */
async function printSetup(
  answer: SetupAnswer,
  headline: string,
): Promise<void> {
  print(headline);
  print(
    "\nOpen this Setup URI on the device, or paste it into Self-hosted LiveSync (Setup wizard, Use Setup URI):\n",
  );
  print(answer.setupUri);
  print("");
  const lines = [
    ["  Setup passphrase", answer.setupPassphrase, "requested by the plugin"],
    ...(answer.vaultPassphrase === null
      ? []
      : [
          [
            "  Vault passphrase",
            answer.vaultPassphrase,
            "part of the Setup URI; required to read the notes",
          ],
        ]),
  ];
  for (const line of alignColumns(
    lines.map(([name = "", value = "", why = ""]) => [
      { text: name, tone: "strong" },
      { text: value, tone: "ember" },
      { text: why, tone: "soft" },
    ]),
  )) {
    print(line);
  }
  print("");
  await printQr(answer.setupUri);
  print(
    `Credentials: ${asTyped(answer.file)}. Also store the passphrase elsewhere.`,
  );
  for (const sentence of answer.advice) {
    print(paint("warn", sentence));
  }
}

/** Half blocks need one column per module and a border of two modules. */
async function printQr(uri: string): Promise<void> {
  if (!process.stdout.isTTY) {
    return;
  }
  const { default: qrcode } = await import("qrcode");
  const { modules } = qrcode.create(uri, { errorCorrectionLevel: "L" });
  if (modules.size + 4 > widthOf()) {
    print(
      paint(
        "soft",
        `The QR code needs ${modules.size + 4} columns: widen the terminal, or write it to a file with --qr setup.png.`,
      ),
    );
    return;
  }
  print(
    await qrcode.toString(uri, {
      type: "terminal",
      small: true,
      errorCorrectionLevel: "L",
    }),
  );
}

function checkPicture(path: string | undefined): void {
  if (path !== undefined && ![".png", ".svg"].includes(extname(path))) {
    throw new UsageError(
      `--qr must be a file name ending in .png or .svg, not "${path}".`,
    );
  }
}

async function writeQr(uri: string, path: string): Promise<void> {
  const { default: qrcode } = await import("qrcode");
  const options = { errorCorrectionLevel: "L" } as const;
  writeOutput(
    path,
    extname(path) === ".svg"
      ? await qrcode.toString(uri, { ...options, type: "svg" })
      : await qrcode.toBuffer(uri, { ...options, scale: 6 }),
  );
}
