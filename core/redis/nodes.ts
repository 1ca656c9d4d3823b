export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

const SENTINEL_PORT = 26_379;
const MAX_PORT = 65_535;

/** Sentinels of a comma-separated list; a text: what is wrong with it. */
export function readNodes(
  list: string,
): readonly [RedisNode, ...RedisNode[]] | string {
  const nodes: RedisNode[] = [];
  for (const text of list.split(",").map((one) => one.trim())) {
    const node = readNode(text);
    if (node === null) {
      // An address with a login is not quoted.
      const shown = text.includes("@") ? "an address with @" : `"${text}"`;
      return `must be addresses of sentinels such as "one:26379,two:26379", and ${shown} is not host:port`;
    }
    nodes.push(node);
  }
  const [first, ...others] = nodes;
  return first === undefined ? "must not be empty" : [first, ...others];
}

function readNode(text: string): RedisNode | null {
  const [, bracketed, plain, digits] =
    /^(?:\[([0-9a-f:.]+)\]|([\w.-]+))(?::(\d+))?$/i.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits ?? SENTINEL_PORT);
  return host === undefined || port < 1 || port > MAX_PORT
    ? null
    : { host, port };
}

/** As an operator writes it. */
export function shownNode({ host, port }: RedisNode): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}
