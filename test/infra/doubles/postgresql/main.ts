// Stands in for the postgresql plugin where it cannot be had: see ../README.md.
import { serveDouble } from "../protocol.ts";
import { roleDouble } from "./role.ts";

serveDouble("3.18.1", (configuration) => ({
  "postgresql:index/role:Role": roleDouble({
    host: String(configuration.host),
    port: Number(configuration.port),
    user: String(configuration.username),
    password: String(configuration.password),
    database: String(configuration.database),
  }),
}));
