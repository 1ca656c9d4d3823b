/** A browser without pages: follows redirects and `Refresh`, and keeps the cookies of each port apart. */
export class WebClient {
  readonly cookies = new Map<string, Map<string, string>>();
  /** Addresses requested so far, the latest last. */
  readonly visited: string[] = [];

  /** The page at which redirects end. */
  async visit(url: string, form?: Readonly<Record<string, string>>) {
    let response = await this.request(url, form);
    let at = url;
    for (;;) {
      const next =
        response.headers.get("location") ??
        /url=(.*)/.exec(response.headers.get("refresh") ?? "")?.[1];
      if (next === undefined) {
        const { status } = response;
        return { url: at, status, body: await response.text() };
      }
      at = new URL(next, at).href;
      response = await this.request(at);
    }
  }

  /** One request, without following a redirect. */
  async request(
    url: string,
    form?: Readonly<Record<string, string>>,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    this.visited.push(url);
    const { host } = new URL(url);
    const jar = this.cookies.get(host) ?? new Map<string, string>();
    this.cookies.set(host, jar);
    const response = await fetch(url, {
      redirect: "manual",
      headers: {
        accept: "text/html",
        cookie: [...jar].map(([name, value]) => `${name}=${value}`).join("; "),
        ...headers,
      },
      ...(form === undefined
        ? {}
        : { method: "POST", body: new URLSearchParams(form) }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      if (/Max-Age=0(;|$)/i.test(cookie) || value === "") {
        jar.delete(name);
      } else {
        jar.set(name, value);
      }
    }
    return response;
  }

  /** The value of a cookie whose name begins so. */
  cookie(url: string, name: string): string | undefined {
    const jar = this.cookies.get(new URL(url).host) ?? new Map();
    return [...jar].find(([each]) => each.startsWith(name))?.[1];
  }
}
