/** A response of the embedded store that differs from CouchDB's, and why. */
export interface Difference {
  readonly why: string;
  /** The status and error code of the embedded store. */
  readonly status?: number;
  readonly error?: string;
  /** Members of the response that differ. */
  readonly ignore?: readonly string[];
  /** Entries of the recorded lists that are missing. */
  readonly without?: readonly string[];
  /** Requests to send instead, so that later probes find the same data. */
  readonly instead?: readonly {
    readonly method: string;
    readonly path: string;
    readonly json?: unknown;
  }[];
}

const rejected = (why: string, status: number, error: string): Difference => ({
  why,
  status,
  error,
});

const lacks = (what: string): Difference =>
  rejected(`it has no ${what}`, 501, "not_implemented");

const failsInCouchDb = (status: number, error: string): Difference =>
  rejected("CouchDB fails with 500", status, error);

const each = (
  group: string,
  names: readonly string[],
  difference: Difference,
): [string, Difference][] =>
  names.map((name) => [`${group}: ${name}`, difference]);

const security = {
  admins: { names: ["probe-dbadmin"], roles: ["_admin"] },
  members: { names: ["probe-member"], roles: [] },
};

/** Changes the update sequence as the rejected write of a design document would have. */
const countsAsWrite = (database: string): Difference["instead"] => [
  { method: "PUT", path: `/${database}/_security`, json: security },
];

const productName: Difference = {
  why: "its product name",
  ignore: ["git_sha", "features", "vendor"],
};

/** Differences by group and name of the probe, or by the request of a client. */
export const knownDifferences: Readonly<Record<string, Difference>> =
  Object.fromEntries([
    ...each("server", ["welcome, admin"], productName),
    ...each("client", ["GET /"], productName),
    ...each("client", ["h3-rebuild-as-admin 52"], {
      why: "its compaction ends immediately",
      ignore: ["compact_running"],
    }),
    ...each("users", ["_users _all_docs as admin"], {
      why: "it keeps no design documents, not even _design/_auth",
      ignore: ["total_rows", "rows"],
    }),
    ...each(
      "security",
      ["put _security as member"],
      failsInCouchDb(403, "forbidden"),
    ),
    ...each(
      "security",
      ["put _security bad shape", "put _security array"],
      failsInCouchDb(400, "bad_request"),
    ),
    ...each("server lists", ["_all_dbs as admin"], {
      why: "it has no replicator",
      without: ["_replicator"],
    }),
    ...each("server lists", ["_dbs_info GET"], {
      why: "the first database is _users, not _replicator",
      ignore: ["key", "info"],
    }),
    ...each("server lists", ["_membership"], lacks("cluster")),
    ...each("server lists", ["_scheduler/jobs"], lacks("replicator")),
    ...each("node", ["_config section httpd"], {
      why: "CouchDB adds its defaults",
      ignore: ["bind_address", "port"],
    }),
    ...each("node", ["_config section couchdb"], {
      why: "CouchDB adds its defaults",
      ignore: ["database_dir", "view_index_dir"],
    }),
    ...each("node", ["_config admins"], {
      why: "the test's ini has fewer PBKDF2 rounds",
      ignore: ["admin"],
    }),
    ...each("node", ["_config (all) top level"], {
      why: "CouchDB adds its defaults",
      ignore: [
        "admins",
        "bind_address",
        "chttpd_auth",
        "couch_httpd_auth",
        "couchdb_engines",
        "database_dir",
        "feature_flags",
        "hearth",
        "indexers",
        "nouveau",
        "port",
        "prometheus",
        "smoosh",
        "vendor",
        "view_index_dir",
      ],
    }),
    ...each(
      "node",
      ["_versions", "_stats one key", "_prometheus"],
      lacks("such statistics"),
    ),
    ...each("node", ["_system"], {
      why: "a different runtime",
      ignore: [
        "open_databases",
        "uptime",
        "memory",
        "resources",
        "run_queue",
        "run_queue_dirty_cpu",
        "ets_table_count",
        "context_switches",
        "reductions",
        "garbage_collection_count",
        "words_reclaimed",
        "io_input",
        "io_output",
        "os_proc_count",
        "stale_proc_count",
        "process_count",
        "process_limit",
        "message_queues",
        "internal_replication_jobs",
        "distribution",
        "distribution_events",
      ],
    }),
    ...each("node", ["_node/_local"], {
      why: "a different node name",
      ignore: ["name"],
    }),
    ...each("documents", ["copy"], {
      ...lacks("copying"),
      instead: [
        {
          method: "POST",
          path: "/probe/_bulk_docs",
          json: {
            new_edits: false,
            docs: [
              {
                _id: "numcopy",
                _rev: "1-2bbd52a8a0a844e3e58736149941258a",
                i: 1,
              },
            ],
          },
        },
      ],
    }),
    ...each("documents", ["copy to existing"], lacks("copying")),
    ...each("documents", ["put new document with a rev"], {
      why: "an unknown revision is a conflict, also in a database with documents",
      status: 409,
      error: "conflict",
      instead: [
        {
          method: "POST",
          path: "/probe/_bulk_docs",
          json: {
            new_edits: false,
            docs: [
              {
                _id: "dnew",
                _rev: "2-41a2736b37ce40d8e2628c20b11865ab",
                a: 6,
              },
            ],
          },
        },
      ],
    }),
    ...each(
      "documents",
      ["design document by dbadmin", "design document delete"],
      {
        ...lacks("design documents"),
        instead: countsAsWrite("probe2")!,
      },
    ),
    ...each("documents", ["view"], lacks("views")),
    ...each(
      "local documents",
      ["put with 1-… rev"],
      failsInCouchDb(400, "bad_request"),
    ),
    ...each(
      "revs",
      ["_revs_diff not a list"],
      failsInCouchDb(400, "bad_request"),
    ),
    ...each("revs", ["_revs_limit bad"], failsInCouchDb(400, "bad_request")),
    ...each(
      "revs",
      ["_revs_limit put as member"],
      failsInCouchDb(403, "forbidden"),
    ),
    ...each(
      "bulk get",
      ["docs not a list"],
      failsInCouchDb(400, "bad_request"),
    ),
    ...each("all docs", ["queries"], lacks("queries in one request")),
    ...each("revs", ["_missing_revs"], lacks("_missing_revs")),
    ...each("changes", ["since of another database"], {
      why: "no design documents",
      without: ["_design/x"],
    }),
    ...each(
      "changes",
      ["limit invalid", "style bad"],
      failsInCouchDb(400, "bad_request"),
    ),
    ...each(
      "feeds",
      ["longpoll timeout bad"],
      failsInCouchDb(400, "bad_request"),
    ),
    ...each(
      "feeds",
      ["eventsource", "eventsource heartbeat"],
      lacks("event source feed"),
    ),
    ...each("find", ["conflicts exist"], {
      why: "it examines only conflicted documents",
      ignore: ["warning"],
    }),
    ...each("find", ["execution_stats"], {
      why: "it stops at the limit, while CouchDB also examines the rest",
      ignore: ["total_keys_examined", "total_docs_examined"],
    }),
    ...each("find", ["limit string"], {
      why: "CouchDB formats the string in Erlang syntax",
      ignore: ["reason"],
    }),
    ...each("find", ["_find with the index"], {
      why: "it has no indexes and reports this",
      ignore: ["warning"],
    }),
    ...each(
      "find",
      [
        "_explain",
        "_index create as member",
        "_index create again",
        "_index delete missing",
        "_index bad",
      ],
      lacks("indexes"),
    ),
    ...each("find", ["_index create as dbadmin", "_index delete"], {
      ...lacks("indexes"),
      instead: countsAsWrite("probe")!,
    }),
    ...each(
      "attachments",
      [
        "inline",
        "get attachment",
        "get attachment range",
        "missing attachment",
        "put attachment",
        "put attachment stale rev",
        "put attachment to new document",
        "delete attachment",
        "update keeping stub",
        "stub that is not there",
        "bad base64",
      ],
      lacks("attachments"),
    ),
    ...each("attachments", ["head attachment"], {
      why: "it has no attachments",
      status: 501,
    }),
    ...each(
      "attachments",
      ["document with stub", "document with attachments=true"],
      rejected(
        "the document with an attachment was rejected",
        404,
        "not_found",
      ),
    ),
    ...each("maintenance", ["_purge as admin"], {
      ...lacks("purge"),
      instead: [
        {
          method: "DELETE",
          path: "/probe/c4?rev=2-00000000000000000000000000000002",
        },
      ],
    }),
    ...each(
      "maintenance",
      ["_shards", "_sync_shards"],
      rejected("it has no shards", 404, "not_found"),
    ),
    ...each("maintenance", ["info after all this"], {
      why: "c4 was deleted where CouchDB purged it; no design document was deleted",
      ignore: ["update_seq"],
    }),
    ...each("cors", ["GET with origin", "GET with foreign origin"], {
      why: "differences of the maintenance probes remain",
      ignore: ["update_seq"],
    }),
    ...each(
      "maintenance",
      [
        "_replicate as admin (local to local)",
        "_replicate missing source",
        "_replicate bad",
      ],
      lacks("replicator"),
    ),
  ]);
