import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A program in place of `pulumi` that records `config set`, whose values it reads from standard input. */
export class FakePulumi {
  readonly command: string;
  readonly #record: string;

  constructor(directory: string) {
    this.command = join(directory, "pulumi");
    this.#record = join(directory, "settings");
    writeFileSync(
      this.command,
      `#!/bin/sh\necho "$4 $(cat)" >> ${this.#record}\n`,
    );
    chmodSync(this.command, 0o755);
  }

  /** The recorded settings in their order, without `hearth:`. */
  written(): readonly (readonly [string, string])[] {
    const text = existsSync(this.#record)
      ? readFileSync(this.#record, "utf8")
      : "";
    return text.split("\n").flatMap((line) => {
      const [, key, value] = /^hearth:(\S+) (.*)$/.exec(line) ?? [];
      return key === undefined || value === undefined ? [] : [[key, value]];
    });
  }
}
