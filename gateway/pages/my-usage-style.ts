/** Styles of this page, in addition to hearth.css. */
export const MY_USAGE_STYLE = `
.ask { display: flex; flex-wrap: wrap; gap: 0.75rem 1rem; align-items: end; padding: 1.1rem; margin: 1.5rem 0 1rem; }
.ask label { display: grid; gap: 0.25rem; font-size: 0.875rem; color: var(--soft); }
.ask label:first-of-type { flex: 1 1 18rem; }
.ask .mistake, .ask small { flex-basis: 100%; }
select { font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--soft); border-radius: 8px; padding: 0.45rem 0.7rem; }
.verdict > *, .mistake { min-width: 0; overflow-wrap: anywhere; }
.ends { display: flex; justify-content: space-between; margin: 0.3rem 0 0; color: var(--soft); font-size: 0.875rem; }
th[scope="row"] { min-width: 8rem; }
td { min-width: 6rem; }
.models { display: flex; flex-wrap: wrap; gap: 0.4rem 0.6rem; padding: 0.9rem 1.1rem; margin: 0; list-style: none; }
.models li { overflow-wrap: anywhere; }
p.card { padding: 0.9rem 1.1rem; margin: 0; }
`;
