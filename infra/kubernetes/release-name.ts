/** Of the Release, and the prefix of everything it creates. */
export const RELEASE_NAME = "hearth";

export const SUPERVISOR_POD = `${RELEASE_NAME}-supervisor-0`;
