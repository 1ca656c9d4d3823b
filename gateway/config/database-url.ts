/** Whether two addresses have the same server, database and options; user and password may differ. */
export function sameDatabase(one: string, other: string): boolean {
  return withoutLogin(one) === withoutLogin(other);
}

function withoutLogin(address: string): string {
  if (!URL.canParse(address)) {
    return address;
  }
  const url = new URL(address);
  url.username = "";
  url.password = "";
  return url.href;
}
