import type { FastifyReply, FastifyRequest } from "fastify";
import type { Fields } from "../../http/forms.ts";
import type { Look } from "../../../core/shapes.ts";
import type { Field } from "../field.ts";
import type { ListQuery } from "./list-view.ts";
import type { NounAddress } from "./noun-address.ts";
import type { NounColumn } from "./noun-columns.ts";
import type { NounContext } from "./noun-context.ts";
import type { FieldValues, NounField } from "./noun-fields.ts";

/**
 * Describes the pages of a noun: keys, users or teams. noun-list.ts, noun-form.ts and noun-detail.ts read it, so
 * a new field, column or action is one more row in its table.
 */
export interface Noun<Row, Item extends NounItem> {
  /** "Key" */
  readonly name: string;
  readonly address: NounAddress;
  readonly list: NounList<Row>;
  readonly form: NounForm<Item>;
  /** Reads an object by its id; throws a refusal. */
  readonly find: (context: NounContext, id: string) => Promise<Item>;
  readonly detail: NounDetail<Item>;
}

export interface NounItem {
  /** As addresses and the gateway name it. */
  readonly id: string;
  /** As people read it. */
  readonly title: string;
  /** As the gateway answers it; fills the form. */
  readonly row: Readonly<Record<string, unknown>>;
}

export interface NounList<Row> {
  /** "Keys" */
  readonly label: string;
  readonly createLabel: string;
  /** Label of the search field. */
  readonly searchLabel: string;
  readonly subline: string;
  /** Explains the noun in an empty list. */
  readonly lesson: { readonly text: string; readonly command?: string };
  readonly columns: readonly NounColumn<Row>[];
  /** What an address without a sort key sorts by; the time of creation when left out. */
  readonly firstSort?: (context: NounContext) => Promise<string>;
  /** Names of filters; none when left out. */
  readonly states?: readonly string[];
  readonly read: (
    context: NounContext,
    query: ListQuery,
  ) => Promise<NounPage<Row>>;
}

/** One page of a list, with the heading above it. */
export interface NounPage<Row> {
  readonly title: string;
  readonly look: Look;
  readonly rows: readonly Row[];
  readonly total: number;
  readonly pages: number;
  readonly filters: readonly NounFilter[];
  /** No object exists yet. */
  readonly empty: boolean;
}

export interface NounFilter {
  readonly href: string;
  readonly look: Look;
  readonly word: string;
  readonly count: string;
  readonly current: boolean;
}

interface NounForm<Item> {
  readonly fields: readonly NounField[];
  readonly create: {
    readonly title: string;
    readonly button: string;
    readonly intro: string;
    /** The gateway's route, and constants of its body. */
    readonly path: string;
    readonly body?: Readonly<Record<string, unknown>>;
    /** Answers after success. */
    readonly finish: (
      request: FastifyRequest,
      reply: FastifyReply,
      context: NounContext,
      answer: unknown,
      values: FieldValues,
    ) => FastifyReply | Promise<FastifyReply>;
  };
  readonly edit: {
    readonly path: string;
    /** Name of the id in the gateway's body. */
    readonly idName: string;
    /** The name after the change. */
    readonly titleAfter: (item: Item, values: FieldValues) => string;
  };
}

interface NounDetail<Item> {
  /** Name of a template. */
  readonly template: string;
  /** Reads an object together with what only its page shows; like the noun's when left out. */
  readonly find?: (context: NounContext, id: string) => Promise<Item>;
  readonly view: (
    context: NounContext,
    item: Item,
    query: unknown,
  ) => Promise<NounDetailView>;
  readonly actions: readonly NounAction<Item>[];
}

/** The heading, and whatever else the template shows. */
interface NounDetailView {
  readonly title: string;
  readonly look: Look;
}

/** A button with a confirmation. */
export interface NounAction<Item> {
  /** The last part of its address. */
  readonly verb: string;
  readonly label: string;
  readonly question: (item: Item) => string;
  /** Default: always. */
  readonly applies?: (item: Item) => boolean;
  readonly destroys?: boolean;
  /** Deletes the item: its name has to be typed, and the list is shown afterwards. */
  readonly deletes?: boolean;
  readonly fields?: readonly Field[];
  readonly path: string;
  readonly body: (
    item: Item,
    sent: Fields,
  ) => Readonly<Record<string, unknown>>;
  /** The message above the next page, or the next page itself. */
  readonly finish:
    | ((item: Item) => string)
    | {
        readonly show: (
          request: FastifyRequest,
          reply: FastifyReply,
          context: NounContext,
          answer: unknown,
          sent: Fields,
        ) => Promise<FastifyReply>;
      };
}
