/** The token proves nothing. The message is a sentence for its holder and never quotes the token. */
export class TokenRejected extends Error {}

/** The issuer's keys are unknown at the moment: the token is neither valid nor invalid. */
export class IssuerUnavailable extends Error {}
