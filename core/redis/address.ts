/** The parts of a redis:// address that are set. */
export interface AddressParts {
  readonly host?: string;
  readonly port?: number;
  readonly username?: string;
  readonly password?: string;
  readonly database?: string;
  readonly tls?: boolean;
}

const FORM =
  "must be an address such as redis://user:password@host:6379/0, or rediss:// for TLS; characters such as @ : / # in a password are percent-encoded";

/** The parts of an address; a text: what is wrong with it, without quoting it. */
export function readAddress(text: string): AddressParts | string {
  const url = URL.parse(text);
  if (
    url === null ||
    !/^rediss?:$/.test(url.protocol) ||
    url.hostname === "" ||
    url.search !== "" ||
    url.hash !== ""
  ) {
    return FORM;
  }
  const database = url.pathname.slice(1);
  if (!/^\d*$/.test(database)) {
    return "must end in the number of a database, such as redis://host:6379/3, or in no path";
  }
  try {
    return {
      host: url.hostname.replace(/^\[|\]$/g, ""),
      tls: url.protocol === "rediss:",
      ...(url.port === "" ? {} : { port: Number(url.port) }),
      ...(url.username === ""
        ? {}
        : { username: decodeURIComponent(url.username) }),
      ...(url.password === ""
        ? {}
        : { password: decodeURIComponent(url.password) }),
      ...(database === "" ? {} : { database }),
    };
  } catch {
    return FORM;
  }
}
