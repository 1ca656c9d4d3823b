import { readFileSync, statSync } from "node:fs";
import { expect, test } from "vitest";
import { createHome } from "../supervisor/home/home.ts";
import { temporaryHome } from "../test/supervisor/temporary-home.ts";
import { writeEchoConfig } from "./echo.ts";

test("the alias of the echo is written only if it changed: the stack also starts on a full disk", () => {
  const { home, remove } = temporaryHome();
  try {
    createHome(home);
    writeEchoConfig(home, 4001);
    const { ino } = statSync(home.echoConfig);
    writeEchoConfig(home, 4001);
    // A written file is a new one.
    expect(statSync(home.echoConfig).ino).toBe(ino);
    writeEchoConfig(home, 4002);
    expect(readFileSync(home.echoConfig, "utf8")).toContain(":4002/v1");
  } finally {
    remove();
  }
});

test("the echo's key is no word of its errors, in which a provider's key is hidden", () => {
  const { home, remove } = temporaryHome();
  try {
    createHome(home);
    writeEchoConfig(home, 4001);
    expect(readFileSync(home.echoConfig, "utf8")).toContain("api_key: sk-");
  } finally {
    remove();
  }
});
