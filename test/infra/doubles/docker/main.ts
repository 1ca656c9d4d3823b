// Replaces the docker plugin where it is not available: see ../README.md.
import { serveDouble } from "../protocol.ts";
import { containerDouble } from "./container.ts";
import { engineApi } from "./engine-api.ts";
import { imageDouble, networkDouble, volumeDouble } from "./others.ts";

serveDouble("5.2.0", (configuration) => {
  const engine = engineApi(String(configuration.host));
  return {
    "docker:index/container:Container": containerDouble(engine),
    "docker:index/remoteImage:RemoteImage": imageDouble(engine),
    "docker:index/network:Network": networkDouble(engine),
    "docker:index/volume:Volume": volumeDouble(engine),
  };
});
