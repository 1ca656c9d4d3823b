type Environment = Readonly<Record<string, string | undefined>>;
export function findHomeRoot(
  project: string,
  env?: Environment,
  user?: string,
): string;
export function namedHomeRoot(
  project: string,
  env?: Environment,
): string | undefined;
export function earlierHomeRoot(project: string): string | undefined;
export function defaultHomeRoot(env?: Environment, user?: string): string;
