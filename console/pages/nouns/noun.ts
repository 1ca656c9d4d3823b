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
 * What the pages of keys, users and teams differ in. The pages themselves are in noun-list.ts, noun-form.ts and noun-detail.ts:
 * a new field, column or action is one more row in a noun's table.
 */
export interface Noun<Row, Item extends NounItem> {
  /** "key" */
  readonly name: string;
  readonly address: NounAddress;
  readonly list: NounList<Row>;
  readonly form: NounForm<Item>;
  /** Reads one by its id; throws a refusal. */
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
  /** What the search looks into. */
  readonly searchLabel: string;
  readonly subline: string;
  /** Explains the noun where there is none yet. */
  readonly lesson: { readonly text: string; readonly command?: string };
  readonly columns: readonly NounColumn<Row>[];
  /** Names of filters; none where they are left out. */
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
  /** There is none at all yet. */
  readonly empty: boolean;
}

export interface NounFilter {
  readonly href: string;
  readonly look: Look;
  readonly word: string;
  readonly count: string;
  readonly current: boolean;
}

export interface NounForm<Item> {
  readonly fields: readonly NounField[];
  readonly create: {
    readonly title: string;
    readonly button: string;
    readonly intro: string;
    /** The gateway's route, and what its body has besides the fields. */
    readonly path: string;
    readonly body?: Readonly<Record<string, unknown>>;
    /** Answers with the page after it. */
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
    /** What the gateway's route calls the id. */
    readonly idName: string;
    /** What it is called after the change. */
    readonly titleAfter: (item: Item, values: FieldValues) => string;
  };
}

export interface NounDetail<Item> {
  /** A template of templates/, and what it shows besides the heading and the actions. */
  readonly template: string;
  readonly view: (
    context: NounContext,
    item: Item,
    query: unknown,
  ) => Promise<NounDetailView>;
  readonly actions: readonly NounAction<Item>[];
}

/** The heading, and whatever else the template shows. */
export interface NounDetailView {
  readonly title: string;
  readonly look: Look;
}

/** A button that asks before it acts. */
export interface NounAction<Item> {
  /** The last part of its address. */
  readonly verb: string;
  readonly label: string;
  readonly question: (item: Item) => string;
  /** Always when left out. */
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
  /** Shown above the next page, or the next page itself. */
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
