import { askHttp } from "../../checks/http-get.ts";

/** Posts JSON. Throws unless the answer is 2xx; without the address and the answer, which may contain secrets. */
export async function postJson(
  url: string,
  body: unknown,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<void> {
  const { status } = await askHttp(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
    signal,
  });
  if (status < 200 || status > 299) {
    throw new Error(`answered ${status}`);
  }
}
