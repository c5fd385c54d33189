// Fleet: the minions that one may see.
import { html } from './html.js';
import { usePages, useSettled, useEvents } from './reads.js';
import { useFilters, link } from './route.js';
import { Title, Input, Select, Rows, Problem, State } from './parts.js';
import { count, visible, ago } from './text.js';

const KEYS = { pending: 'key pending', rejected: 'key rejected', denied: 'key denied' };

export function MinionState({ of }) {
  if (of.key !== 'accepted') return html`<${State} kind=${of.key === 'pending' ? 'warn' : 'failed'}>${KEYS[of.key] || of.key}<//>`;
  return of.connected ? html`<${State} kind="ok">connected<//>` : html`<${State} kind="off">away<//>`;
}

function Sandbox({ of }) {
  if (!of) return html`<span class="dim">unknown</span>`;
  const parts = [[of.missing, of.missing === 1 ? 'lacks grants' : 'lack grants'], [of.drift, 'drifted'], [of.held, 'held']].filter(([value]) => value);
  return parts.length ? html`<span class="warn-text">${parts.map(([value, name]) => `${value} ${name}`).join(', ')}</span>` : html`<span class="dim">${of.total}, none drifted</span>`;
}

const COLUMNS = [
  { title: 'Minion', width: 'minmax(0, 2fr)', cell: (row) => visible(row.id),
    sub: (row) => visible([row.os, row.osrelease, row.version && `· ${row.version}`].filter(Boolean).join(' ')) },
  { title: 'State', width: '9rem', cell: (row) => html`<${MinionState} of=${row} />` },
  { title: 'System', width: 'minmax(0, 1fr)', low: true, cell: (row) => visible([row.os, row.osrelease].filter(Boolean).join(' ') || '–') },
  { title: 'Version', width: '7rem', low: true, cell: (row) => visible(row.version || '–') },
  { title: 'Modules', width: 'minmax(0, 1fr)', low: true, cell: (row) => html`<${Sandbox} of=${row.modules} />` },
  { title: 'Reported', width: '7rem', low: true, end: true, cell: (row) => html`<span class="dim">${ago(row.reported)}</span>` },
];

export function Fleet({ me }) {
  const [filters, change] = useFilters('fleet', { q: '', state: 'accepted', sort: 'id' });
  const { rows, head, error, next, more, reload } = usePages('fleet', useSettled(filters));
  useEvents((tag) => /^(minion|salt)\/(minion\/)?[^/]+\/start$|^salt\/(presence|auth|key)/.test(tag), reload, 3000);
  const counts = head?.counts;
  const choices = [['accepted', 'Accepted'], ['connected', 'Connected'], ['away', 'Away']];
  if (counts?.pending != null) choices.push(['pending', `Pending (${count(counts.pending)})`], ['rejected', 'Rejected'], ['denied', 'Denied'], ['all', 'All']);
  const target = filters.q ? (/[*?[]/.test(filters.q) ? filters.q : '') : '*';
  return html`
    <${Title} note=${counts ? html`<strong>${count(counts.connected)}</strong> of ${count(counts.accepted)} accepted minions are connected${counts.pending ? html` · <a href="#/keys?state=pending">${count(counts.pending)} keys wait</a>` : ''}` : ' '}
      actions=${target && me.clients.includes('local_async') && html`<a class="button" href=${link('run', '', { tgt: target })}>Run on ${visible(target)}</a>`}>Fleet<//>
    <div class="filters" role="search">
      <${Input} id="fleet-q" label="Find" type="search" value=${filters.q} onChange=${(q) => change({ q })} placeholder="web*, debian, 0.9" />
      <${Select} id="fleet-state" label="State" value=${filters.state} onChange=${(state) => change({ state })} options=${choices} />
      <${Select} id="fleet-sort" label="Order" value=${filters.sort} onChange=${(sort) => change({ sort })}
        options=${[['id', 'Name'], ['-id', 'Name, Z first'], ['os', 'System'], ['version', 'Version'], ['-version', 'Version, newest first'], ['state', 'State']]} />
    </div>
    <${Problem} error=${error} reload=${reload} />
    <p class="unseen" role="status">${head ? `${count(head.total)} minions` : ''}</p>
    <${Rows} label="Minions" columns=${COLUMNS} rows=${rows} total=${head?.total} next=${next} more=${more}
      keyOf=${(row) => `${row.key}/${row.id}`} hrefOf=${(row) => link('fleet', row.id)}
      empty=${head && (filters.q || filters.state !== 'accepted' ? 'No minion is like that. Clear the filter to see all.' : 'No minion that you may see has an accepted key.')} />`;
}
