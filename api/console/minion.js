// One minion: what it said of itself, and what its modules may do.
import { html } from './html.js';
import { useRead } from './reads.js';
import { link } from './route.js';
import { Title, Problem, Output, Grants, Fit, State, signers } from './parts.js';
import { MinionState } from './fleet.js';
import { visible, ago, short, pretty, bytes } from './text.js';

export function Minion({ me, name }) {
  const { data: minion, error, reload } = useRead(`fleet/${encodeURIComponent(name)}`);
  const actions = minion && html`
    ${me.clients.includes('local_async') && html`<a class="button" href=${link('run', '', { tgt: name, type: 'list' })}>Run here</a>`}
    <a class="button quiet" href=${link('jobs', '', { minion: name })}>Its jobs</a>`;
  return html`
    <p class="crumb"><a href=${link('fleet')}>Fleet</a></p>
    <${Title} actions=${actions} note=${minion ? html`<${MinionState} of=${minion} /> · reported ${ago(minion.reported)}` : ' '}>${visible(name)}<//>
    <${Problem} error=${error} reload=${reload} />
    ${minion && html`<${Facts} minion=${minion} /><${Modules} of=${minion.sandbox} />
      <section><h2>Grains</h2><${Output} value=${minion.grains || {}} label="Grains" /></section>`}`;
}

function Facts({ minion }) {
  const grains = minion.grains || {};
  const facts = [
    ['System', [minion.os, minion.osrelease, grains.osfinger && `(${grains.osfinger})`].filter(Boolean).join(' ')],
    ['Kernel', [minion.kernel, grains.kernelrelease, minion.cpuarch].filter(Boolean).join(' ')],
    ['Version', minion.version],
    ['Host', grains.fqdn || grains.host],
    ['Addresses', [grains.ipv4, grains.ipv6].flat().filter(Boolean).join(', ')],
    ['Processors, memory', [grains.num_cpus, grains.mem_total && bytes(grains.mem_total * 1048576)].filter(Boolean).join(', ')],
    ['Machine', grains.virtual],
    ['Fingerprint', minion.fingerprint],
  ].filter(([, value]) => value);
  return html`<dl class="facts">${facts.map(([title, value]) => html`<div><dt>${title}</dt><dd>${visible(pretty(value))}</dd></div>`)}</dl>`;
}

function Modules({ of }) {
  if (!of) return html`<section><h2>Modules</h2><p class="empty">This minion has reported nothing of its sandbox since the master started (a Python minion never does).</p></section>`;
  return html`<section><h2>Modules</h2><div class="stack">${of.modules.map((module) => html`<details class="card" key=${module.name}>
    <summary><span class="name">${visible(module.name)}</span> <span class="dim">${visible(module.version || '')}</span>
      ${!module.usable && html`<${State} kind="failed">not usable<//>`}
      ${module.missing.length > 0 && html`<${State} kind="warn">lacks grants<//>`}
      ${module.drift && html`<${State} kind="warn">drift<//>`}
      ${module.held && html`<${State} kind="busy">update held<//>`}</summary>
    <p><${Fit} ...${module} /></p><${Grants} ...${module} />
    <dl class="facts"><div><dt>From</dt><dd>${visible(module.origin || 'the standard modules')}</dd></div>
      <div><dt>Signed by</dt><dd class="mono">${signers(module)}</dd></div>
      <div><dt>sha256</dt><dd class="mono">${visible(module.sha256)}</dd></div>
      ${module.drift && html`<div><dt>The master serves</dt><dd class="mono">${visible(module.served)}</dd></div>`}
      ${module.held && html`<div><dt>Held</dt><dd class="mono"><a href=${link('held')}>${short(module.held)}</a></dd></div>`}</dl>
  </details>`)}</div></section>`;
}
