// Parts that pages share.
import { html, useState, useEffect, useLayoutEffect, useRef } from './html.js';
import { visible, pretty, count, bytes } from './text.js';
import { useNarrow } from './reads.js';

/** Longest output that is shown at once, in characters; a button shows the rest. */
const SHOWN = 64 * 1024;
/** Entries of one announcement region. */
let announcer = () => {};

/** Says something to who hears the page. */
export const announce = (text) => announcer(text);

/** The page's live region. */
export function Announcer() {
  const [text, set] = useState('');
  useEffect(() => {
    announcer = set;
  }, []);
  return html`<div class="unseen" role="status" aria-live="polite">${text}</div>`;
}

/** Output of minions: text and nothing else, left to right, with a bound on what the browser has to lay out. */
export function Output({ value, label, class: more = '' }) {
  const [all, setAll] = useState(false);
  const full = visible(pretty(value));
  const cut = !all && full.length > SHOWN;
  return html`<div class="output-box">
    <pre class=${`output ${more}`} tabindex="0" role="region" aria-label=${label} dir="ltr">${cut ? full.slice(0, SHOWN) : full}</pre>
    ${cut && html`<button type="button" class="quiet" onClick=${() => setAll(true)}>Show all ${bytes(full.length)}</button>`}
  </div>`;
}

/** A line to copy. */
export function Copy({ text, label }) {
  const [done, setDone] = useState('');
  const field = useRef();
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone('Copied');
    } catch {
      // Without TLS there is no clipboard for pages: the text is marked, and the keyboard copies it.
      const range = document.createRange();
      range.selectNodeContents(field.current);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      setDone('Press Ctrl+C');
    }
    announce('Copied');
    setTimeout(() => setDone(''), 2500);
  };
  return html`<div class="copy">
    <pre tabindex="0" role="region" aria-label=${label} dir="ltr"><code ref=${field}>${visible(text)}</code></pre>
    <button type="button" onClick=${copy} aria-label=${`Copy: ${label}`}>${done || 'Copy'}</button>
  </div>`;
}

/** A state in words, with a mark that does not need colours. */
export function State({ kind, children }) {
  const marks = { ok: '●', failed: '✕', warn: '▲', off: '○', busy: '◌' };
  return html`<span class=${`state ${kind}`}><span class="mark" aria-hidden="true">${marks[kind] || '●'}</span>${children}</span>`;
}

/** Why something could not be read, and what to do. */
export function Problem({ error, reload }) {
  if (!error) return null;
  if (error.passes) return null;
  return html`<div class="notice failed" role="alert">
    <p>${advice(error)}</p>
    ${reload && html`<button type="button" onClick=${reload}>Try again</button>`}
  </div>`;
}

export function advice(error) {
  const said = error.message && !/^(Forbidden|Not Found|Unauthorized)$/i.test(error.message) ? ` (${visible(error.message)})` : '';
  switch (error.status) {
    case 0: return 'salt-api does not answer. Check that it runs; this page tries again by itself.';
    case 401: return `Your permissions do not allow this${said}.`;
    case 403: return `Your permissions do not allow this${said}. They come from external_auth in the master's configuration.`;
    case 404: return `There is no such thing, or you may not see it${said}.`;
    case 429: return `Too many requests${said}. Wait ${error.retryAfter ? `${error.retryAfter} seconds` : 'a moment'}, then try again.`;
    case 503: return 'The master is away. This page goes on by itself when it is back.';
    case 504: return 'The master did not answer in time. What was started may still go on: look at Jobs.';
    default: return visible(error.message) || `salt-api answered ${error.status}.`;
  }
}

/** The head of a page. */
export function Title({ children, note, actions }) {
  return html`<header class="title">
    <h1 tabindex="-1">${children}</h1>
    ${note && html`<p class="note">${note}</p>`}
    ${actions && html`<div class="actions">${actions}</div>`}
  </header>`;
}

/** A labelled field. `hint` says more below it. */
export function Field({ label, hint, children, class: more = '', id }) {
  return html`<div class=${`field ${more}`}>
    <label for=${id}>${label}</label>
    ${children}
    ${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
  </div>`;
}

export function Input({ label, value, onChange, hint, class: more, id, ...rest }) {
  return html`<${Field} label=${label} hint=${hint} class=${more} id=${id}>
    <input id=${id} value=${value} onInput=${(event) => onChange(event.target.value)} aria-describedby=${hint ? `${id}-hint` : undefined}
      autocomplete="off" autocapitalize="off" spellcheck=${false} ...${rest} />
  <//>`;
}

export function Select({ label, value, onChange, options, id, class: more }) {
  return html`<${Field} label=${label} id=${id} class=${more}>
    <select id=${id} value=${value} onChange=${(event) => onChange(event.target.value)}>
      ${options.map(([name, shown]) => html`<option value=${name} selected=${name === value}>${shown}</option>`)}
    </select>
  <//>`;
}

/** A dialog. The browser keeps the focus in it and gives it back. */
export function Dialog({ title, onClose, children }) {
  const own = useRef();
  useLayoutEffect(() => {
    const before = document.activeElement;
    own.current.showModal();
    return () => before?.isConnected && before.focus();
  }, []);
  return html`<dialog ref=${own} aria-labelledby="dialog-title" onClose=${onClose}
      onClick=${(event) => event.target === own.current && own.current.close()}>
    <div class="dialog-body">
      <header><h2 id="dialog-title">${title}</h2>
        <button type="button" class="quiet" onClick=${() => own.current.close()} aria-label="Close">✕</button></header>
      ${children}
    </div>
  </dialog>`;
}

/**
 * Rows of one height, of which only those in view are in the page. Columns: `{title, width, cell(row), low, sub(row)}`; `low` ones
 * are left out where the page is narrow, and `sub` stands below the cell there. Arrows move between rows, Enter opens one.
 */
export function Rows({ label, columns, rows, total, more, next, keyOf, onOpen, hrefOf, empty }) {
  const narrow = useNarrow();
  const height = narrow ? 56 : 38;
  const box = useRef();
  const [view, setView] = useState([0, 40]);
  const [active, setActive] = useState(0);
  const wanted = useRef(false);
  useLayoutEffect(() => {
    let frame = 0;
    const look = () => {
      frame = 0;
      if (!box.current) return;
      const top = -box.current.getBoundingClientRect().top;
      const first = Math.max(0, Math.floor(top / height) - 10);
      const last = Math.max(0, Math.ceil((top + innerHeight) / height) + 10);
      setView((now) => (now[0] === first && now[1] === last ? now : [first, last]));
    };
    const scrolled = () => { frame ||= requestAnimationFrame(look); };
    look();
    addEventListener('scroll', scrolled, { passive: true });
    addEventListener('resize', scrolled);
    return () => {
      cancelAnimationFrame(frame);
      removeEventListener('scroll', scrolled);
      removeEventListener('resize', scrolled);
    };
  }, [height, rows.length]);
  useEffect(() => {
    if (next && more && view[1] >= rows.length - 20) more();
  }, [view, rows.length, next]);
  const at = Math.min(active, Math.max(0, rows.length - 1));
  useLayoutEffect(() => {
    if (!wanted.current) return;
    wanted.current = false;
    const row = box.current?.querySelector(`[data-at="${at}"]`);
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: 'nearest' });
  });
  const shown = columns.filter((column) => !narrow || !column.low);
  const widths = { '--columns': shown.map((column) => (narrow && column.narrow) || column.width).join(' ') };
  const move = (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(innerHeight / height) - 3);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1, PageDown: at + page, PageUp: at - page }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      wanted.current = true;
      setActive(Math.max(0, Math.min(rows.length - 1, to)));
    } else if (event.key === 'Enter' && (onOpen || hrefOf) && event.target.dataset.at) {
      event.preventDefault();
      open(rows[at]);
    }
  };
  const open = (row) => (hrefOf ? (location.hash = hrefOf(row)) : onOpen(row));
  const indexes = [];
  for (let index = view[0]; index < Math.min(view[1], rows.length); index++) indexes.push(index);
  if (rows.length && !indexes.includes(at)) indexes.push(at);
  if (!rows.length) return empty ? html`<p class="empty">${empty}</p>` : null;
  return html`<div class="rows" role="grid" aria-label=${label} aria-rowcount=${(total ?? (next ? -2 : rows.length)) + 1} style=${widths}>
    <div class="row head" role="row" aria-rowindex="1">
      ${shown.map((column) => html`<span role="columnheader" class=${column.end ? 'end' : ''}>${column.title}</span>`)}
    </div>
    <div class="body" role="rowgroup" ref=${box} style=${{ height: `${rows.length * height}px` }} onKeyDown=${move}>
      ${indexes.map((index) => html`<div role="row" class="row" key=${keyOf(rows[index])} data-at=${index} aria-rowindex=${index + 2}
          tabindex=${index === at ? 0 : -1} style=${{ transform: `translateY(${index * height}px)`, height: `${height}px` }}
          onFocus=${() => setActive(index)} onClick=${(event) => !getSelection().toString() && (hrefOf || onOpen) && !event.target.closest('a, button') && open(rows[index])}>
        ${shown.map((column, place) => html`<span role="gridcell" class=${`${column.end ? 'end' : ''} ${column.mono ? 'mono' : ''}`}>
          ${place === 0 && hrefOf ? html`<a href=${hrefOf(rows[index])} tabindex="-1">${column.cell(rows[index])}</a>` : column.cell(rows[index])}
          ${narrow && column.sub && html`<small>${column.sub(rows[index])}</small>`}</span>`)}
      </div>`)}
    </div>
  </div>
  ${next && html`<p class="empty">${count(rows.length)} are here; more come as you scroll.</p>`}`;
}

/** How many of how many, as a bar. */
export function Bar({ of, failed = 0, done = 0 }) {
  const part = (value) => `${of ? (100 * value) / of : 0}%`;
  return html`<div class="bar" aria-hidden="true">
    <span class="failed" style=${{ width: part(failed) }}></span><span class="ok" style=${{ width: part(Math.max(0, done - failed)) }}></span>
  </div>`;
}

/** A list of ids as links, and how many there are besides. */
export function Minions({ ids, all }) {
  return html`<span class="ids">${ids.map((id, index) => html`${index ? ', ' : ''}<a href=${`#/fleet/${encodeURIComponent(id)}`}>${visible(id)}</a>`)}
    ${all > ids.length ? ` and ${count(all - ids.length)} more` : ''}</span>`;
}

/** Who signed a module. Those of the installation come with it, and are no update. */
export const signers = ({ signed_by: keys, origin }) => (keys?.length ? keys.map(visible).join(', ') : origin === 'standard' ? 'part of the installation' : 'nobody');

/** The names of lists without entries in a module's grants: such a grant allows nothing. */
export function emptyGrants(has) {
  return Object.entries(has?.all || {}).flatMap(([capability, grant]) => (Array.isArray(grant) ? (grant.length ? [] : [capability])
    : Object.entries(grant || {}).filter(([, list]) => Array.isArray(list) && !list.length).map(([name]) => `${capability}: ${name}`)));
}

/** Whether a module can do what it is for. */
export function Fit({ usable, missing, has }) {
  if (usable === false) return html`<${State} kind="failed">cannot run there<//>`;
  if (missing.length) return html`<${State} kind="warn">lacks grants<//>`;
  const empty = emptyGrants(has);
  return empty.length ? html`<${State} kind="warn">may use nothing of ${empty.map(visible).join(', ')}: the list is empty<//>`
    : html`<${State} kind="ok">lacks no grant<//>`;
}

/**
 * What a module asks for, has, and lacks. `has` is in the form of the configuration: `all`, and besides, under a function or a
 * master, what differs there.
 */
export function Grants({ asks, has, missing }) {
  const parts = Object.entries(has || {}).filter(([, grants]) => grants && Object.keys(grants).length);
  return html`<dl class="grants">
    <dt>Asks for</dt><dd>${asks.length ? asks.map((name) => html`<span class="tag">${visible(name)}</span>`) : 'nothing'}</dd>
    <dt>Has</dt><dd>${parts.length ? parts.map(([where, grants]) => html`
      ${where !== 'all' && html`<p>${visible(where)}:</p>`}<${Output} value=${grants} label=${where === 'all' ? 'What it has' : `What it has in ${visible(where)}`} class="small" />`) : 'nothing'}</dd>
    ${missing.length > 0 && html`<dt>Lacks</dt><dd>
      <p>The minion's configuration grants it with:</p>
      ${missing.map((lines) => html`<${Copy} text=${lines} label="Lines that grant it" />`)}</dd>`}
  </dl>`;
}
