/** Styles of this page, in addition to hearth.css. */
export const DOCS_STYLE = `
.groups { display: flex; flex-wrap: wrap; gap: 0.3rem 1rem; }
details.card { margin: 0.4rem 0; }
details.card > summary { padding: 0.6rem 1.1rem; color: var(--ink); overflow-wrap: anywhere; }
details.card > div { padding: 0 1.1rem 0.9rem; }
#docs-tools[hidden] { display: none; }
#docs-tools { margin-top: 1.5rem; align-items: start; }
#docs-tools .field { flex: 1 1 14rem; display: grid; gap: 0.25rem; max-width: 22rem; }
#docs-tools p { flex: 1 1 100%; margin: 0; }
.try { border-bottom: 1px solid var(--line); margin-bottom: 0.8rem; padding-bottom: 0.9rem; }
.try .field { display: grid; gap: 0.2rem; font-size: 0.875rem; min-width: 0; }
.try .inputs { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(14rem, 100%), 1fr)); gap: 0.6rem 1rem; margin-bottom: 0.6rem; }
.try textarea { font: 0.875em/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; resize: vertical; }
.languages .copy { margin-left: auto; color: var(--ember); }
.languages button[aria-pressed="true"] { color: var(--ink); box-shadow: 0 2px 0 var(--ember); border-radius: 0; }
summary .method { display: inline-block; min-width: 4rem; font-weight: 600; }
summary small { display: block; }
h3 { font-size: 0.875rem; margin: 0.8rem 0 0.3rem; }
dl.fields { display: grid; grid-template-columns: minmax(8rem, 16rem) 1fr; gap: 0.15rem 1rem; margin: 0; font-size: 0.875rem; }
dl.fields dt, dl.fields dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
dl.fields dd { color: var(--soft); }
@media (max-width: 42rem) { dl.fields { grid-template-columns: 1fr; } dl.fields dd { margin: 0 0 0.4rem 1rem; } }
`;
