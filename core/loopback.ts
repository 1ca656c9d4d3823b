/** Whether an address is on this machine, where http cannot be intercepted by others on the network. */
export function isLoopback(url: string): boolean {
  return ["127.0.0.1", "[::1]", "localhost"].includes(new URL(url).hostname);
}
