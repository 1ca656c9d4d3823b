/** The result of the work; undefined if it takes longer than `ms`, while the work continues. */
export async function resolveWithin<T>(
  work: T | Promise<T>,
  ms: number,
): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), ms);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
