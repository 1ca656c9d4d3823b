// Preloaded into a process under test: advances its clock by the milliseconds in the file that HEARTH_TEST_CLOCK names.
import { readFileSync } from "node:fs";

const file = process.env.HEARTH_TEST_CLOCK!;
const realNow = Date.now;

Date.now = () => realNow() + Number(readFileSync(file, "utf8"));
