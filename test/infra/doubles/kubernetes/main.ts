// Replaces the kubernetes plugin where it is not available: see ../README.md.
import { serveDouble } from "../protocol.ts";
import { releaseDouble } from "./release.ts";

serveDouble("4.34.2", (configuration) => ({
  "kubernetes:helm.sh/v3:Release": releaseDouble(configuration),
}));
