// One job, live: failures first, then those that have not returned.
import { html, useState, useEffect } from './html.js';
import { read } from './api.js';
import { useLoad, useEvents } from './reads.js';
import { useFilters, link } from './route.js';
import { Title, Select, Problem, Output, State, Bar } from './parts.js';
import { JobState } from './jobs.js';
import { count, visible, args, time, micros, bytes, short, argument } from './text.js';

const PAGE = 100;
/** Pause between reads of a job that is not whole, for minions whose events do not reach this page. */
const AGAIN_MS = 5000;

export function Job({ me, name: jid }) {
  const [filters, change] = useFilters('jobs', { state: 'all' });
  const [wanted, setWanted] = useState(PAGE);
  const { data: job, error, reload } = useLoad(`${jid} ${filters.state} ${wanted}`, async (signal) => {
    let found = null;
    let cursor = '';
    do {
      const page = await read(`jobs/${encodeURIComponent(jid)}`, { state: filters.state, limit: Math.min(500, wanted), cursor }, signal);
      found = found ? { ...page, items: found.items.concat(page.items) } : page;
      cursor = page.next;
    } while (cursor && found.items.length < wanted);
    return found;
  });
  const running = job && job.returned < job.expected;
  useEvents((tag) => tag.startsWith(`salt/job/${jid}/`), reload, 700);
  useEffect(() => {
    if (!running || Date.now() / 1000 - job.start > 3600) return undefined;
    const timer = setInterval(() => document.hidden || reload(), AGAIN_MS);
    return () => clearInterval(timer);
  }, [running]);
  const again = job && job.args && me.clients.includes('local_async') && link('run', '', {
    tgt: job.target, type: job.target_type, fun: job.fun, args: job.args.map(argument).join('\n'),
  });
  return html`
    <p class="crumb"><a href=${link('jobs')}>Jobs</a></p>
    <${Title} note=${job ? html`on <span class="mono">${visible(job.target)}</span> by ${visible(job.user)}, ${time(job.start)} · <span class="mono">${visible(jid)}</span>` : html`<span class="mono">${visible(jid)}</span>`}
      actions=${again && html`<a class="button" href=${again}>Run again…</a>`}>
      <span class="mono">${job ? visible(job.fun) : 'Job'} <span class="dim">${job ? visible(args(job.args)).slice(0, 300) : ''}</span></span><//>
    <${Problem} error=${error} reload=${reload} />
    ${job && html`
      <div class="progress card">
        <p class="big"><strong>${count(job.returned)}</strong> of ${count(job.expected)} <${JobState} of=${job} /></p>
        <${Bar} of=${job.expected} done=${job.returned} failed=${job.failed} />
        <p class="note" role="status">${count(job.failed)} failed, ${count(job.missing)} have not returned${job.last ? `, last return ${time(job.last)}` : ''}</p>
      </div>
      <div class="filters"><${Select} id="job-state" label="Show" value=${filters.state} onChange=${(state) => change({ state })}
        options=${[['all', 'All, failures first'], ['failed', 'Failures'], ['missing', 'Not returned'], ['ok', 'Good ones']]} /></div>
      <div class="stack returns">${job.items.map((item, index) => html`<${Return} key=${item.id} item=${item} jid=${jid} open=${index < 3 || job.items.length <= 5} />`)}</div>
      ${job.items.length === 0 && html`<p class="empty">None of the minions is like that.</p>`}
      ${job.next && html`<p class="empty"><button type="button" onClick=${() => setWanted(wanted + 5 * PAGE)}>Show more minions</button></p>`}`}`;
}

function Return({ item, jid, open: first }) {
  // Nobody has chosen yet: a return may come after the minion was shown as missing.
  const [chosen, setOpen] = useState(null);
  const open = chosen ?? first;
  if (item.state === 'missing') {
    return html`<div class="card return missing"><a href=${link('fleet', item.id)}>${visible(item.id)}</a> <${State} kind="busy">not returned<//></div>`;
  }
  const sum = (name) => item.usage.reduce((all, one) => all + (one[name] || 0), 0);
  return html`<details class=${`card return ${item.state}`} open=${open} onToggle=${(event) => setOpen(event.target.open)}>
    <summary><span class="name">${visible(item.id)}</span>
      ${item.state === 'failed' ? html`<${State} kind="failed">failed${item.retcode ? ` (${item.retcode})` : ''}<//>` : html`<${State} kind="ok">good<//>`}
      <span class="dim used">${item.usage.length ? `${micros(sum('wall_us'))} · ${bytes(Math.max(...item.usage.map((one) => one.memory_peak || 0)))}` : ''}</span></summary>
    ${open && html`<${Whole} item=${item} jid=${jid} /><${Usage} of=${item.usage} />
      <p class="dim"><a href=${link('fleet', item.id)}>Minion ${visible(item.id)}</a> · returned ${time(item.at)} · ${bytes(item.bytes)}</p>`}
  </details>`;
}

function Whole({ item, jid }) {
  const [value, setValue] = useState(item.return);
  const [cut, setCut] = useState(Boolean(item.cut));
  const [said, setSaid] = useState('');
  const load = async () => {
    try {
      const [whole] = (await read(`jobs/${encodeURIComponent(jid)}`, { minion: item.id })).items;
      setValue(whole?.return ?? null);
      setCut(false);
      if (whole?.cut) setSaid('It is larger than 1 MiB: salt-run jobs.lookup_jid on the master shows it.');
    } catch (error) {
      setSaid(error.message);
    }
  };
  return html`${cut ? html`<p><button type="button" onClick=${load}>Read the return (${bytes(item.bytes)})</button></p>`
    : !said && html`<${Output} value=${value} label=${`Return of ${visible(item.id)}`} />`}${said && html`<p role="alert">${said}</p>`}`;
}

function Usage({ of }) {
  if (!of.length) return null;
  const columns = [['wall_us', 'Wall', micros], ['cpu_us', 'CPU', micros], ['memory_peak', 'Peak memory', bytes], ['host_calls', 'Host calls', count],
    ['bytes_in', 'Read', bytes], ['bytes_out', 'Written', bytes], ['sha256', 'Module sha256', short]];
  return html`<div class="table" tabindex="0" role="region" aria-label="What it used"><table><thead><tr>${columns.map(([, title]) => html`<th scope="col">${title}</th>`)}</tr></thead>
    <tbody>${of.map((one) => html`<tr>${columns.map(([name, , show]) => html`<td class=${name === 'sha256' ? 'mono' : ''} title=${name === 'sha256' ? visible(one[name] || '') : undefined}>${show(one[name])}</td>`)}</tr>`)}</tbody></table></div>`;
}
