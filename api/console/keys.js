// Keys: who may be a minion. The fingerprint comes before the decision.
import { html, useState } from './html.js';
import { read, wheel } from './api.js';
import { usePages, useSettled, useEvents } from './reads.js';
import { useFilters } from './route.js';
import { Title, Input, Select, Rows, Problem, State, Dialog, Copy, announce, advice } from './parts.js';
import { count, visible } from './text.js';

/** The names of the states in the wheel. */
const FOLDERS = { accepted: 'minions', pending: 'minions_pre', rejected: 'minions_rejected', denied: 'minions_denied' };
const KINDS = { accepted: 'ok', pending: 'warn', rejected: 'off', denied: 'failed' };
/** What one can do with a key: the wheel's function, the words, the states in which it is offered. */
const ACTS = [
  { fun: 'key.accept_dict', verb: 'Accept', done: 'accepted', of: ['pending', 'rejected', 'denied'], more: { include_rejected: true, include_denied: true } },
  { fun: 'key.reject_dict', verb: 'Reject', done: 'rejected', of: ['pending', 'accepted'], more: { include_accepted: true } },
  { fun: 'key.delete_dict', verb: 'Delete', done: 'deleted', of: ['pending', 'accepted', 'rejected', 'denied'] },
];

const COLUMNS = [
  { title: 'Minion', width: 'minmax(0, 1fr)', cell: (row) => visible(row.id), sub: (row) => html`<span class="mono">${visible(row.fingerprint || '')}</span>` },
  { title: 'State', width: '8rem', cell: (row) => html`<${State} kind=${KINDS[row.state]}>${row.state}<//>` },
  { title: 'Fingerprint', width: 'minmax(0, 2fr)', low: true, mono: true, cell: (row) => html`<span class="dim">${visible(row.fingerprint || 'not shown to you')}</span>` },
];

export function Keys({ me }) {
  const [filters, change] = useFilters('keys', { q: '', state: 'all' });
  const { rows, head, error, next, more, reload } = usePages('keys', useSettled(filters));
  const [open, setOpen] = useState(null);
  useEvents((tag) => /^salt\/(auth|key)/.test(tag), reload, 1500);
  const states = ['pending', 'accepted', 'rejected', 'denied'];
  return html`
    <${Title} note=${head?.counts ? states.filter((state) => head.counts[state]).map((state) => `${count(head.counts[state])} ${state}`).join(', ') || 'No keys.' : ' '}>Keys<//>
    ${head?.master && html`<p class="note">The master's own key, which minions can check (master_finger): <span class="mono wrap">${visible(head.master)}</span></p>`}
    <div class="filters" role="search">
      <${Input} id="keys-q" label="Find" type="search" value=${filters.q} onChange=${(q) => change({ q })} placeholder="web*" />
      <${Select} id="keys-state" label="State" value=${filters.state} onChange=${(state) => change({ state })} options=${[['all', 'All, pending first'], ...states.map((state) => [state, state[0].toUpperCase() + state.slice(1)])]} />
    </div>
    <${Problem} error=${error} reload=${reload} />
    <${Rows} label="Keys" columns=${COLUMNS} rows=${rows} total=${head?.total} next=${next} more=${more} keyOf=${(row) => `${row.state}/${row.id}`} onOpen=${setOpen}
      empty=${head && 'No key is like that.'} />
    ${open && html`<${Key} of=${open} me=${me} onClose=${() => setOpen(null)} onDone=${reload} />`}`;
}

function Key({ of, me, onClose, onDone }) {
  const [act, setAct] = useState(null);
  const [said, setSaid] = useState('');
  const [busy, setBusy] = useState(false);
  const allowed = (fun) => me.may.wheels.includes(fun);
  const offered = ACTS.filter((one) => one.of.includes(of.state) && allowed(one.fun));
  const go = async () => {
    if (busy) return;
    setBusy(true);
    setSaid('');
    try {
      // What is decided about is the key that was shown: exactly this id, in this state, with this fingerprint.
      let cursor = '';
      let now;
      do {
        const page = await read('keys', { q: of.id, state: of.state, limit: 500, cursor });
        now = page.items.find((item) => item.id === of.id);
        cursor = page.next;
      } while (!now && cursor);
      if (!now || now.fingerprint !== of.fingerprint) {
        setSaid('This key has changed since it was shown. Close this, and look at it again.');
        onDone();
        return;
      }
      await wheel(act.fun, { match: { [FOLDERS[of.state]]: [of.id] }, ...act.more });
      announce(`The key of ${of.id} is ${act.done}.`);
      onDone();
      onClose();
    } catch (error) {
      setSaid(advice(error));
    } finally {
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${`Key of ${visible(of.id)}`} onClose=${onClose}>
    <p><${State} kind=${KINDS[of.state]}>${of.state}<//></p>
    ${of.fingerprint ? html`<p>Its fingerprint. On the minion, <span class="mono">salt-call --local key.finger</span> shows its own; accept it only when they are the same.</p><${Copy} text=${of.fingerprint} label="Fingerprint" />`
      : html`<p class="notice warn">You may not see fingerprints (the wheel's key.finger), so you cannot tell whose key this is.</p>`}
    <div class="said" role="alert">${said}</div>
    ${act ? html`<p class="confirm"><strong>${act.verb} this key?</strong> ${consequence(act.verb, of)}</p>
      <div class="actions"><button type="button" class=${act.verb === 'Accept' ? 'main' : 'danger'} aria-disabled=${busy} onClick=${go}>${busy ? 'Working…' : `Yes, ${act.verb.toLowerCase()} it`}</button>
        <button type="button" class="quiet" onClick=${() => setAct(null)}>No</button></div>`
      : html`<div class="actions">${offered.map((one) => html`<button type="button" onClick=${() => setAct(one)}>${one.verb}…</button>`)}
        ${offered.length === 0 && html`<p class="note">Your permissions offer nothing to do with it.</p>`}</div>`}
  <//>`;
}

function consequence(verb, of) {
  if (verb === 'Accept') return `Who holds this key is then the minion ${visible(of.id)}: it gets its jobs, its pillar and its files.`;
  if (verb === 'Reject') return 'Who holds this key gets nothing of this master until the key is deleted or accepted.';
  return of.state === 'accepted' ? 'The minion gets nothing any more. If it still runs, its key comes again as a pending one.' : 'If its minion still runs, its key comes again as a pending one.';
}
