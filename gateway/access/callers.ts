/** The limits of one payer, with its tier's values filled in. Budgets in dollars. */
export interface PayerLimits {
  readonly maxBudget: number | null;
  readonly budgetDuration: string | null;
  readonly tokensPerMinute: number | null;
  readonly requestsPerMinute: number | null;
  readonly parallel: number | null;
}

export interface KeyCaller {
  readonly kind: "key";
  readonly token: string;
  readonly alias: string | null;
  readonly keyName: string;
  readonly models: readonly string[];
  /** Names from callers are looked up in maps, since `constructor` is a name too. */
  readonly aliases: ReadonlyMap<string, string>;
  readonly tags: readonly string[];
  /** Guardrails that check its calls, besides its team's. */
  readonly guardrails: readonly string[];
  /** Its prompts and answers are stored, also where `store_prompts_in_spend_logs` is off. */
  readonly storePrompts: boolean;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly allowedRoutes: readonly string[];
  readonly keyType: string;
  readonly blocked: boolean;
  readonly expires: number | null;
  readonly temporaryIncrease: {
    readonly dollars: number;
    readonly until: number;
  } | null;
  readonly limits: PayerLimits;
  readonly modelLimits: ReadonlyMap<string, PayerLimits>;
  readonly userId: string | null;
  /** Whether calls spend the user's own budget: those of a team's key only if the user accepted the membership, those with the user's own token always. */
  readonly userPays: boolean;
  readonly user: {
    readonly models: readonly string[];
    readonly role: string;
    readonly blocked: boolean;
    readonly limits: PayerLimits;
  } | null;
  readonly team: {
    readonly id: string;
    readonly alias: string | null;
    readonly models: readonly string[];
    readonly modelAliases: ReadonlyMap<string, string>;
    readonly tags: readonly string[];
    readonly guardrails: readonly string[];
    readonly blocked: boolean;
    readonly limits: PayerLimits;
    readonly memberLimits: PayerLimits | null;
    /** The models of the member whose key it is; empty: all of the team's. */
    readonly memberModels: readonly string[];
  } | null;
  readonly organization: {
    readonly id: string;
    readonly models: readonly string[];
    readonly limits: PayerLimits;
  } | null;
}

interface MasterCaller {
  readonly kind: "master";
  readonly userId: string;
  readonly user: { readonly limits: PayerLimits } | null;
}

export type Caller = KeyCaller | MasterCaller;

/** The payer of calls made with the master key. */
export const MASTER_USER = "default_user_id";

export interface OtherPayer {
  readonly id: string;
  readonly blocked: boolean;
  readonly limits: PayerLimits;
}
