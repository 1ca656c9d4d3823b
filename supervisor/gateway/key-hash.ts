/** Whether a text is a hash by which the gateway stores and names a key. */
export function isKeyHash(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** The first characters of a hash; any other text as it is. */
export function shortKeyHash(text: string): string {
  return isKeyHash(text) ? `${text.slice(0, 8)}…` : text;
}
