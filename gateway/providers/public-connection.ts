import { lookup, type LookupAddress, type LookupOptions } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { buildConnector } from "undici";
import { isPublicAddress } from "../../core/network-addresses.ts";

type Resolve = (
  hostname: string,
  options: LookupOptions,
  done: (
    error: NodeJS.ErrnoException | null,
    address: string | LookupAddress[],
    family?: number,
  ) => void,
) => void;

/**
 * Connects to public addresses only. A name is checked by the addresses that it is connected to, whatever it resolved to before;
 * one that has another address as well is rejected.
 */
export function publicConnector(
  options: buildConnector.BuildOptions,
  resolve: Resolve = lookup,
): buildConnector.connector {
  const lookupPublic: LookupFunction = (hostname, how, done) =>
    resolve(hostname, how, (error, address, family) => {
      const found = typeof address === "string" ? [{ address }] : address;
      if (
        error === null &&
        !found.every((each) => isPublicAddress(each.address))
      ) {
        done(notPublic(hostname), "", 0);
        return;
      }
      done(error, address, family);
    });
  const connect = buildConnector({ ...options, lookup: lookupPublic });
  return (place, callback) => {
    // No lookup is made for an IP address.
    const host = place.hostname.replace(/^\[|\]$/g, "");
    if (isIP(host) !== 0 && !isPublicAddress(host)) {
      callback(notPublic(host), null);
      return;
    }
    connect(place, callback);
  };
}

function notPublic(host: string): Error {
  return new Error(
    `${host} is not at a public address, and only a proxy_admin may permit others with \`model_info.public_address_only: false\``,
  );
}
