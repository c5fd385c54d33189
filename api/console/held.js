// Held updates: what minions do not use before their owner approves it, on the host itself.
import { html } from './html.js';
import { usePages } from './reads.js';
import { Title, Problem, Copy, Output, Minions } from './parts.js';
import { count, many, visible, bytes, short } from './text.js';

export function Held() {
  const { rows, head, error, next, more, reload } = usePages('held');
  return html`
    <${Title} note="Updates of modules that minions hold until the host's owner approves them there. Nothing here approves one.">Held updates<//>
    <${Problem} error=${error} reload=${reload} />
    ${head && rows.length === 0 && html`<p class="empty">No minion holds an update.</p>`}
    <div class="stack">${rows.map((item) => html`<${Update} item=${item} />`)}</div>
    ${next && html`<p class="empty"><button type="button" onClick=${more}>Show more</button></p>`}
    ${head?.unknown > 0 && html`<p class="notice">${many(head.unknown, 'minion')} reported nothing of ${head.unknown === 1 ? 'its' : 'their'} sandbox, so what ${head.unknown === 1 ? 'it holds' : 'they hold'} is not known.</p>`}`;
}

function Update({ item }) {
  const { held, in_use: used, permissions, functions } = item;
  const names = [['added', 'New functions'], ['removed', 'Functions gone'], ['changed', 'Functions changed']];
  return html`<article class="card update">
    <h2>${visible(item.name)} <span class="dim">${visible(used?.version || 'none')} → ${visible(held.version || '?')}</span></h2>
    <p>${visible(item.why)}</p>
    <div class="changes">
      <${Changes} kind="added" title="Permissions added" of=${permissions.added} none="It asks for nothing more." />
      <${Changes} kind="removed" title="Permissions removed" of=${permissions.removed} none="It asks for nothing less." />
    </div>
    ${names.map(([name, title]) => functions?.[name]?.length > 0 && html`<p><strong>${title}:</strong> <span class="mono">${functions[name].map(visible).join(', ')}</span></p>`)}
    <dl class="facts">
      <div><dt>Signed by</dt><dd class="mono">${held.signed_by.length ? held.signed_by.map(visible).join(', ') : 'nobody'}</dd></div>
      <div><dt>In use is signed by</dt><dd class="mono">${used?.signed_by.length ? used.signed_by.map(visible).join(', ') : 'nobody'}</dd></div>
      <div><dt>Size</dt><dd>${bytes(held.size)}${used ? ` (in use: ${bytes(used.size)})` : ''}</dd></div>
      <div><dt>sha256</dt><dd class="mono" title=${visible(held.sha256)}>${short(held.sha256)}</dd></div>
    </dl>
    ${item.lines && html`<${Output} value=${item.lines} label=${`What the configuration of ${visible(item.name)} would say`} class="small" />`}
    <p>To approve it, on ${item.minions === 1 ? 'the minion' : `each of the ${count(item.minions)} minions`}: <${Minions} ids=${item.some} all=${item.minions} /></p>
    <${Copy} text=${item.approve} label=${`Line that approves ${visible(item.name)}`} />
  </article>`;
}

function Changes({ kind, title, of, none }) {
  const entries = Object.entries(of || {});
  return html`<div class=${`change ${kind}`}><h3>${title}</h3>
    ${entries.length ? html`<ul>${entries.map(([name, what]) => html`<li><span class="sign" aria-hidden="true">${kind === 'added' ? '+' : '−'}</span> <span class="mono">${visible(name)}</span>
      ${what && html` <span class="note">${visible(typeof what === 'string' ? what : JSON.stringify(what))}</span>`}</li>`)}</ul>` : html`<p class="dim">${none}</p>`}</div>`;
}
