import { z } from "zod";

/** The schema of a setting, or of a group of settings. */
export type Setting = z.core.$ZodType;

/** The setting at a path; undefined where there is none. */
export function settingAt(
  path: readonly string[],
  schema: Setting,
): Setting | undefined {
  return path.reduce<Setting | undefined>(
    (group, step) => group && partOf(group, step),
    schema,
  );
}

function partOf(group: Setting, step: string): Setting | undefined {
  const { bare } = withoutWrappers(group);
  if (bare instanceof z.ZodObject) {
    return partsOf(bare)[step];
  }
  if (bare instanceof z.ZodArray) {
    return bare.element;
  }
  if (bare instanceof z.ZodRecord) {
    return bare.valueType;
  }
  // Anything may be below a value without a schema.
  return bare instanceof z.ZodUnknown ? bare : undefined;
}

/** The settings of a group by name; empty for a setting that is not a group. */
export function partsOf(setting: Setting): Readonly<Record<string, Setting>> {
  const { bare } = withoutWrappers(setting);
  return bare instanceof z.ZodObject
    ? (bare.shape as Readonly<Record<string, Setting>>)
    : {};
}

export function isList(setting: Setting): boolean {
  return withoutWrappers(setting).bare instanceof z.ZodArray;
}

/** Whether Pulumi stores the setting as JSON. */
export function isStructured(setting: Setting): boolean {
  const { bare } = withoutWrappers(setting);
  return [z.ZodObject, z.ZodRecord, z.ZodArray].some(
    (type) => bare instanceof type,
  );
}

export function isRequired(setting: Setting): boolean {
  return !z.safeParse(setting, undefined).success;
}

/** The default as typed; undefined without one. */
export function defaultOf(setting: Setting): unknown {
  return withoutWrappers(setting).value;
}

/** The metadata of a setting. */
export function metaOf(setting: Setting): z.GlobalMeta {
  return withoutWrappers(setting).meta;
}

/** A valid value as typed in a shell: the example, else the default. */
export function exampleOf(setting: Setting): string | undefined {
  const { example } = metaOf(setting);
  const value = defaultOf(setting);
  return (
    example ??
    (typeof value === "string" || typeof value === "number"
      ? String(value)
      : undefined)
  );
}

/** The paths of the required settings of a group, or of the setting itself. */
export function requiredWithin(
  path: readonly string[],
  schema: Setting,
): readonly (readonly string[])[] {
  const setting = settingAt(path, schema);
  const parts = Object.entries(setting === undefined ? {} : partsOf(setting));
  return parts.length === 0
    ? [path]
    : parts
        .filter(([, part]) => isRequired(part))
        .flatMap(([name]) => requiredWithin([...path, name], schema));
}

interface Unwrapped {
  readonly bare: Setting;
  readonly value?: unknown;
  readonly meta: z.GlobalMeta;
}

/** A setting without its wrappers (optional, default), with the default and the metadata of all layers, outer ones first. */
function withoutWrappers(setting: Setting): Unwrapped {
  const meta = z.globalRegistry.get(setting) ?? {};
  if (setting instanceof z.ZodOptional) {
    const inner = withoutWrappers(setting.def.innerType);
    return { ...inner, meta: { ...inner.meta, ...meta } };
  }
  if (setting instanceof z.ZodDefault || setting instanceof z.ZodPrefault) {
    const inner = withoutWrappers(setting.def.innerType);
    const value = setting.def.defaultValue;
    return { ...inner, value, meta: { ...inner.meta, ...meta } };
  }
  return { bare: setting, meta };
}
