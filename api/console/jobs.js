// Jobs, newest first.
import { html } from './html.js';
import { usePages, useSettled, useEvents } from './reads.js';
import { useFilters, link } from './route.js';
import { Title, Input, Select, Rows, Problem, State, Bar } from './parts.js';
import { count, visible, args, time } from './text.js';

export function JobState({ of }) {
  if (of.failed) return html`<${State} kind="failed">${count(of.failed)} failed<//>`;
  if (of.returned < of.expected) {
    return Date.now() / 1000 - of.start > 86400 ? html`<${State} kind="off">${count(of.expected - of.returned)} missing<//>` : html`<${State} kind="busy">running<//>`;
  }
  return html`<${State} kind="ok">done<//>`;
}

const COLUMNS = [
  { title: 'Function', width: 'minmax(0, 2fr)', mono: true, cell: (row) => html`<strong>${visible(row.fun)}</strong> <span class="dim">${visible(args(row.args)).slice(0, 200)}</span>`,
    sub: (row) => `${time(row.start)} · ${visible(row.target)}` },
  { title: 'Target', width: 'minmax(0, 1fr)', low: true, mono: true, cell: (row) => visible(row.target) },
  { title: 'By', width: '7rem', low: true, cell: (row) => visible(row.user) },
  { title: 'State', width: '8rem', cell: (row) => html`<${JobState} of=${row} />`,
    sub: (row) => `${count(row.returned)} of ${count(row.expected)}` },
  { title: 'Returned', width: '10rem', low: true, cell: (row) => html`<${Bar} of=${row.expected} done=${row.returned} failed=${row.failed} /> ${count(row.returned)} of ${count(row.expected)}` },
  { title: 'Started', width: '11rem', low: true, end: true, cell: (row) => html`<span class="dim">${time(row.start)}</span>` },
];

export function Jobs() {
  const [filters, change] = useFilters('jobs', { fun: '', target: '', minion: '', user: '', state: 'all', find_job: '' });
  const settled = useSettled(filters);
  const { rows, head, error, next, more, reload } = usePages('jobs', settled);
  useEvents((tag) => /^salt\/job\/\d+\/(new|ret\/)/.test(tag), () => scrollY < 200 && reload(), 2000);
  const filtered = Object.entries(settled).some(([name, value]) => value && value !== 'all' && name !== 'find_job');
  return html`
    <${Title} note="Newest first. You see your own jobs, and those that you could have started.">Jobs<//>
    <div class="filters" role="search">
      <${Select} id="jobs-state" label="State" value=${filters.state} onChange=${(state) => change({ state })} options=${[['all', 'All'], ['failed', 'Failed'], ['running', 'Running']]} />
      <${Input} id="jobs-fun" label="Function" type="search" value=${filters.fun} onChange=${(fun) => change({ fun })} placeholder="state.*" />
      <${Input} id="jobs-target" label="Target" type="search" value=${filters.target} onChange=${(target) => change({ target })} />
      <${Input} id="jobs-minion" label="Minion" type="search" value=${filters.minion} onChange=${(minion) => change({ minion })} />
      <${Input} id="jobs-user" label="User" type="search" value=${filters.user} onChange=${(user) => change({ user })} />
    </div>
    <${Problem} error=${error} reload=${reload} />
    <${Rows} label="Jobs" columns=${COLUMNS} rows=${rows} next=${next} more=${more} keyOf=${(row) => row.jid} hrefOf=${(row) => link('jobs', row.jid)}
      empty=${head && (next ? html`<button type="button" onClick=${more}>Look at older jobs</button>` : filtered ? 'No job is like that. Clear the filters to see all.' : 'There are no jobs yet.')} />`;
}
