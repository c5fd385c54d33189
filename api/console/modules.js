// Modules: what the master serves, what minions have of it, and what it may do there.
import { html } from './html.js';
import { usePages, useSettled } from './reads.js';
import { useFilters } from './route.js';
import { Title, Input, Problem, State, Grants, Fit, Minions, signers } from './parts.js';
import { count, many, visible, bytes, short } from './text.js';

export function Modules() {
  const [filters, change] = useFilters('modules', { q: '' });
  const { rows, head, error, next, more, reload } = usePages('modules', useSettled(filters));
  return html`
    <${Title} note=${head ? `As ${many(head.minions, 'minion')} reported${head.unknown ? `; ${count(head.unknown)} reported nothing` : ''}.` : ' '}>Modules<//>
    <div class="filters" role="search"><${Input} id="modules-q" label="Find" type="search" value=${filters.q} onChange=${(q) => change({ q })} placeholder="pkg*" /></div>
    <${Problem} error=${error} reload=${reload} />
    ${head && rows.length === 0 && html`<p class="empty">${filters.q ? 'No module is like that.' : 'No minion has reported its modules yet.'}</p>`}
    <div class="stack">${rows.map((module) => html`<${Module} key=${module.name} of=${module} />`)}</div>
    ${next && html`<p class="empty"><button type="button" onClick=${more}>Show more</button></p>`}`;
}

function Module({ of }) {
  const lacking = of.versions.some((version) => version.grants.some((grant) => grant.missing.length));
  return html`<details class="card"><summary><span class="name">${visible(of.name)}</span>
      <span class="dim">${of.versions.length === 1 ? visible(of.versions[0].version || short(of.versions[0].sha256)) : many(of.versions.length, 'version')}</span>
      ${of.drift > 0 && html`<${State} kind="warn">drift on ${count(of.drift)}<//>`}
      ${of.held > 0 && html`<${State} kind="busy">held on ${count(of.held)}<//>`}
      ${lacking && html`<${State} kind="warn">lacks grants<//>`}</summary>
    <p>${of.served.length ? of.served.map((one) => html`<span class="line">The master serves <span class="mono" title=${visible(one.sha256)}>${short(one.sha256)}</span> in ${visible(one.env)}, ${bytes(one.size)}, ${one.signed ? 'with a signature' : 'without a signature'}.</span>`)
      : 'The master serves none: it is a standard module, or was installed on the minions.'}</p>
    ${of.versions.map((version) => html`<article class="version">
      <h3>${visible(version.version || 'without a version')} <span class="dim">on ${many(version.minions, 'minion')}</span> ${version.usable === false && html`<${State} kind="failed">cannot run<//>`}</h3>
      <dl class="facts"><div><dt>From</dt><dd>${visible(version.origin || 'the standard modules')}</dd></div>
        <div><dt>Signed by</dt><dd class="mono">${signers(version)}</dd></div>
        <div><dt>sha256</dt><dd class="mono" title=${visible(version.sha256)}>${short(version.sha256)}</dd></div></dl>
      ${version.grants.map((grant) => html`<div class="grant"><p><strong>${many(grant.minions, 'minion')}</strong>: <${Minions} ids=${grant.some} all=${grant.minions} /></p>
        <p><${Fit} usable=${version.usable} has=${grant.has} missing=${grant.missing} /></p><${Grants} asks=${version.asks} has=${grant.has} missing=${grant.missing} /></div>`)}
    </article>`)}
  </details>`;
}
