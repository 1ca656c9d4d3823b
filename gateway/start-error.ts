/** The gateway cannot start; the message is the sentence for the operator. */
export class StartError extends Error {}
