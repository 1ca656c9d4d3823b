import type { DeploymentRow } from "../../../supervisor/gateway/deployments.ts";
import type { Field } from "../field.ts";
import { readable } from "../../../core/words.ts";
import { MODELS_PATH } from "./model-address.ts";

export const SUPPLY_PATH = `${MODELS_PATH}/supply`;

type Storable = "key" | "address";

/** Of a variable that models wait for, or whose value is stored; the form of templates/ask.eta that stores one. */
interface StoredValue {
  readonly variable: string;
  readonly models: readonly string[];
  readonly ask: {
    readonly id: string;
    readonly verb: string;
    readonly action: string;
    readonly question: string;
    readonly hidden: Readonly<Record<string, string>>;
    readonly fields: readonly Field[];
  } | null;
}

/** The variables that deployments wait for, each once. */
export function waitingVariables(
  deployments: readonly DeploymentRow[],
): readonly StoredValue[] {
  const waiting = Map.groupBy(
    deployments.filter(({ model_info: info }) => info.waits_for !== null),
    ({ model_info: info }) => info.waits_for ?? "",
  );
  return [...waiting].map(([variable, rows]) => {
    const storable =
      rows.find(({ model_info: info }) => info.storable !== null)?.model_info
        .storable ?? null;
    return {
      variable,
      models: [...new Set(rows.map(({ model_name: name }) => readable(name)))],
      ask: storable === null ? null : askFor(variable, storable, "Store"),
    };
  });
}

/** The variables whose value is stored, as GET /credentials lists them; other credentials are left out. */
export function storedVariables(
  credentials: readonly StoredCredential[],
): readonly StoredValue[] {
  return credentials.flatMap(({ credential_name: variable, values }) => {
    const storable = values.includes("api_key")
      ? "key"
      : values.includes("api_base")
        ? "address"
        : null;
    return storable === null || !isVariable(variable)
      ? []
      : [{ variable, models: [], ask: askFor(variable, storable, "Replace") }];
  });
}

interface StoredCredential {
  readonly credential_name: string;
  /** Names of the values. */
  readonly values: readonly string[];
}

/** As environments name variables. */
export function isVariable(name: string): boolean {
  return /^[A-Z][A-Z0-9_]*$/.test(name);
}

function askFor(
  variable: string,
  storable: Storable,
  verb: "Store" | "Replace",
): StoredValue["ask"] {
  return {
    id: `supply-${variable.toLowerCase().replace(/\W+/g, "-")}`,
    verb: `${verb} ${storable}`,
    action: SUPPLY_PATH,
    question:
      "It is stored encrypted and takes effect at once, at every gateway.",
    hidden: { variable, kind: storable },
    fields: [
      storable === "key"
        ? {
            name: "value",
            label: `Value of ${variable}`,
            kind: "secret",
            needed: true,
          }
        : {
            name: "value",
            label: `Address for ${variable}`,
            note: "Such as http://192.168.1.10:11434, without a password.",
            kind: "text",
            needed: true,
          },
    ],
  };
}
