import type { AddressInfo, Server } from "node:net";

/** Lets a server listen at 127.0.0.1; returns its port, which is free because the system chooses it now. */
export async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}
