// Run: a call, and before it starts, who is meant by it and what its module may do there.
import { html, useState } from './html.js';
import { plan, run } from './api.js';
import { useLoad, useSettled } from './reads.js';
import { useFilters, link } from './route.js';
import { Title, Input, Select, Field, Problem, Grants, Copy, State, Fit, Minions, advice } from './parts.js';
import { count, many, visible, short } from './text.js';

const TYPES = [['glob', 'Names with * (glob)'], ['list', 'A list of names'], ['compound', 'Compound'], ['grain', 'Grain'], ['pcre', 'Regular expression'],
  ['nodegroup', 'Nodegroup'], ['ipcidr', 'Address or network'], ['pillar', 'Pillar']];

/** Reads arguments, one a line: `name=value` names one; what is JSON is that, and all else is text. */
export function readArguments(text) {
  const arg = [];
  const kwarg = {};
  for (const line of text.split('\n').filter((line) => line.trim() !== '')) {
    const named = /^([A-Za-z_]\w*)=(.*)$/s.exec(line);
    if (named) kwarg[named[1]] = value(named[2]);
    else arg.push(value(line));
  }
  return { arg, kwarg };
}

function value(text) {
  try {
    // Numbers that a double cannot hold stay what was typed.
    const read = JSON.parse(text);
    return typeof read === 'number' && String(read) !== text.trim() ? text : read;
  } catch {
    return text;
  }
}

function call({ tgt, type, fun, args }) {
  const { arg, kwarg } = readArguments(args);
  return { tgt: type === 'list' ? tgt.split(/[\s,]+/).filter(Boolean) : tgt, tgt_type: type, fun: fun.trim(), arg, kwarg };
}

export function Run({ me }) {
  const [form, change] = useFilters('run', { tgt: '', type: 'glob', fun: '', args: '' });
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const settled = useSettled(form, 350);
  const whole = settled.tgt.trim() !== '' && settled.fun.trim() !== '';
  const planned = useLoad(JSON.stringify(settled), async (signal) => {
    if (!whole) return null;
    const { kwarg, ...rest } = call(settled);
    // As a job carries keyword arguments.
    const arg = Object.keys(kwarg).length ? [...rest.arg, { __kwarg__: true, ...kwarg }] : rest.arg;
    return plan({ ...rest, arg }, signal);
  });
  const isNew = JSON.stringify(settled) === JSON.stringify(form);
  const found = whole && isNew ? planned.data : null;
  const start = async (event) => {
    event.preventDefault();
    if (busy) return;
    if (!form.tgt.trim() || !form.fun.trim()) {
      setError(new Error(form.tgt.trim() ? 'Type a function, such as test.ping.' : 'Type a target: * is all minions.'));
      document.getElementById(form.tgt.trim() ? 'run-fun' : 'run-tgt').focus();
      return;
    }
    setBusy(true);
    setError(null);
    try {
      const { kwarg, ...chunk } = call(form);
      const job = await run({ client: 'local_async', ...chunk, ...(Object.keys(kwarg).length ? { kwarg } : {}) });
      if (job?.jid) location.hash = link('jobs', job.jid);
      else setError(new Error('No minion is meant by this target, so nothing was started.'));
    } catch (failed) {
      setError(failed);
    } finally {
      setBusy(false);
    }
  };
  return html`
    <${Title} note="Nothing starts before you press Run.">Run<//>
    <div class="run">
      <form onSubmit=${start} novalidate class="card">
        <${Input} id="run-tgt" label="Target" value=${form.tgt} onChange=${(tgt) => change({ tgt })} class="mono" placeholder="web*" />
        <${Select} id="run-type" label="Target is" value=${form.type} onChange=${(type) => change({ type })} options=${TYPES} />
        <${Input} id="run-fun" label="Function" value=${form.fun} onChange=${(fun) => change({ fun })} class="mono" placeholder="state.apply" />
        <${Field} id="run-args" label="Arguments" hint="One a line. name=value names one; numbers, true, lists and maps are read as JSON.">
          <textarea id="run-args" rows="4" class="mono" spellcheck=${false} aria-describedby="run-args-hint" value=${form.args}
            onInput=${(event) => change({ args: event.target.value })}></textarea>
        <//>
        <div class="said" role="alert">${error && (error.status === undefined ? error.message : advice(error))}</div>
        <button class="main" aria-disabled=${busy}>${busy ? 'Starting…' : found?.allowed && found.expected ? `Run on ${many(found.expected, 'minion')}` : 'Run'}</button>
      </form>
      <section class="plan" aria-labelledby="plan-title" aria-live="polite" aria-busy=${planned.loading || !isNew}>
        <h2 id="plan-title">Before it starts</h2>
        <${Problem} error=${whole && planned.error} />
        ${!whole && html`<p class="empty">Type a target and a function: here stands who is meant, and what the module may do there.</p>`}
        ${whole && !found && !planned.error && html`<p class="empty">Looking…</p>`}
        ${found && html`<${Plan} of=${found} me=${me} form=${settled} />`}
      </section>
    </div>`;
}

function Plan({ of, me, form }) {
  return html`
    ${of.allowed ? html`<p class="big"><strong>${count(of.expected)}</strong> ${of.expected === 1 ? 'minion is' : 'minions are'} meant
        <span class="note">${count(of.connected)} connected${of.away ? `, ${count(of.away)} away` : ''}</span></p>` : html`<${Refused} me=${me} form=${form} />`}
    ${of.some.length > 0 && html`<details><summary>Which</summary><p><${Minions} ids=${of.some} all=${of.expected} /></p></details>`}
    ${of.groups.map((group) => html`<article class="card">
      <h3>${visible(of.module)} <span class="dim">${visible(group.version || '')}</span> on ${many(group.minions, 'minion')}</h3>
      <p><${Fit} ...${group} />
        ${group.held && html` <${State} kind="busy"><a href="#/held">an update is held</a><//>`}</p>
      <${Grants} ...${group} />
      <p class="dim"><${Minions} ids=${group.some} all=${group.minions} /> · sha256 <span class="mono" title=${visible(group.sha256 || '')}>${short(group.sha256)}</span></p>
    </article>`)}
    ${of.without > 0 && html`<p class="notice warn">${many(of.without, 'minion')} ${of.without === 1 ? 'has' : 'have'} no module ${visible(of.module)}.</p>`}
    ${of.unknown > 0 && html`<p class="notice">${many(of.unknown, 'minion')} reported nothing of ${of.unknown === 1 ? 'its' : 'their'} sandbox: what the module may do there is not known.</p>`}`;
}

/** What the master's owner would write to allow it. */
function Refused({ me, form }) {
  const target = form.type === 'glob' ? form.tgt : '*';
  const lines = `external_auth:\n  ${me.eauth}:\n    ${me.user}:\n      - ${JSON.stringify(target)}:\n          - ${form.fun}`;
  return html`<div class="notice failed"><p>Your permissions do not allow this call. The master's owner can allow it in the master's configuration:</p>
    <${Copy} text=${lines} label="Lines that allow it" /></div>`;
}
