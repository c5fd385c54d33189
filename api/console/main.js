// The shell: who is logged in, the pages that one's permissions offer, and the page in view.
import { html, render, Component, useState, useEffect, useRef, useCallback } from './html.js';
import { read, logOut, onSessionEnd } from './api.js';
import { close, watchState } from './stream.js';
import { route, useRoute, link } from './route.js';
import { useAway, useHeartbeat } from './reads.js';
import { Announcer } from './parts.js';
import { visible, time } from './text.js';
import { LogIn, Crystal } from './login.js';
import { Fleet } from './fleet.js';
import { Minion } from './minion.js';
import { Run } from './run.js';
import { Jobs } from './jobs.js';
import { Job } from './job.js';
import { Held } from './held.js';
import { Modules } from './modules.js';
import { Keys } from './keys.js';
import { Events } from './events.js';

const AGAIN_MS = 1500;

/** Pages: their name in the address, their title, whether one may open them, the page, and that of one item. */
const PAGES = [
  ['fleet', 'Fleet', ({ may }) => may.fleet, Fleet, Minion],
  ['run', 'Run', ({ may, clients }) => may.fleet && clients.includes('local_async'), Run],
  ['jobs', 'Jobs', () => true, Jobs, Job],
  ['modules', 'Modules', ({ may }) => may.fleet, Modules],
  ['held', 'Held updates', ({ may }) => may.fleet, Held],
  ['keys', 'Keys', ({ may }) => may.keys, Keys],
  ['events', 'Events', () => true, Events],
];

function Shell() {
  // undefined: not known yet; null: nobody.
  const [me, setMe] = useState(undefined);
  const [away, setAway] = useState(false);
  const known = useRef(false);
  const find = useCallback(async () => {
    for (;;) {
      try {
        const found = await read('me');
        known.current = true;
        setAway(false);
        setMe(found);
        return;
      } catch (error) {
        if (!error.passes) {
          setAway(false);
          setMe(null);
          if (error.status !== 401) throw error;
          return;
        }
        setAway(true);
        await new Promise((done) => setTimeout(done, AGAIN_MS));
      }
    }
  }, []);
  useEffect(() => {
    find().catch(() => {});
    return onSessionEnd(() => {
      close();
      setMe(null);
    });
  }, []);
  const leave = async () => {
    close();
    try {
      await logOut();
    } catch { /* The session has ended, or the master is away: the page forgets it either way. */ }
    known.current = false;
    setMe(null);
  };
  if (me === undefined) {
    return html`<main class="login" id="main"><div class="waiting"><${Crystal} />
      <p role="status">${away ? 'The master is away. This page goes on by itself when it is back.' : 'Opening…'}</p></div></main>`;
  }
  if (!me) return html`<${LogIn} onDone=${find} ended=${known.current} />`;
  return html`<${Frame} me=${me} leave=${leave} />`;
}

function Frame({ me, leave }) {
  const { page, name, params } = useRoute();
  const [open, setOpen] = useState(false);
  const main = useRef();
  useHeartbeat();
  const offered = PAGES.filter(([, , may]) => may(me));
  const current = PAGES.find(([own]) => own === page) || offered[0];
  const [own, title, may, List, Item] = current;
  const place = `${own}/${name}`;
  const before = useRef(place);
  useEffect(() => {
    document.title = `${name && Item ? visible(name) : title} – Brine`;
    setOpen(false);
    if (before.current !== place) {
      scrollTo(0, 0);
      main.current.querySelector('h1')?.focus();
    }
    before.current = place;
  }, [place]);
  const Shown = name && Item ? Item : List;
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>Skip to the page</a>
    <header class="top">
      <a class="brand" href=${link(offered[0][0])}><${Crystal} />Brine</a>
      <button type="button" class="menu" aria-expanded=${open} aria-controls="nav" onClick=${() => setOpen(!open)}>${open ? 'Close' : 'Menu'}</button>
    </header>
    <nav id="nav" class=${open ? 'open' : ''} aria-label="Pages" onKeyDown=${(event) => event.key === 'Escape' && setOpen(false)}>
      <ul>${offered.map(([target, shown]) => html`<li><a href=${link(target)} aria-current=${target === own ? 'page' : undefined}>${shown}</a></li>`)}</ul>
      <div class="who">
        <p><strong>${visible(me.user)}</strong> <span>${visible(me.eauth)}</span></p>
        <p class="note">until ${time(me.expire)}</p>
        <button type="button" onClick=${leave}>Log out</button>
      </div>
    </nav>
    <main id="main" tabindex="-1" ref=${main}>
      <${Away} />
      ${may(me) ? html`<${Guarded} key=${place}><${Shown} me=${me} name=${name} params=${params} /><//>`
        : html`<h1 tabindex="-1">${title}</h1><p class="empty">Your permissions do not offer this page. They come from external_auth in the master's configuration.</p>`}
    </main>
    <${Announcer} />`;
}

/** What says that the master is away, without moving the page. */
function Away() {
  const reads = useAway();
  const [stream, setStream] = useState('closed');
  useEffect(() => watchState(setStream), []);
  const is = reads || stream === 'away';
  return html`<div class=${`away ${is ? 'is' : ''}`} role="status">${is ? 'The master is away. What you see is from before; it goes on by itself.' : ''}</div>`;
}

/** A page that fails leaves the others usable. */
class Guarded extends Component {
  componentDidCatch(error) {
    this.setState({ error });
  }

  render({ children }, { error }) {
    return error ? html`<h1 tabindex="-1">This page failed</h1><p class="notice failed">${visible(error.message)}</p>
      <button type="button" onClick=${() => location.reload()}>Load it again</button>` : children;
  }
}

if (!route().page) history.replaceState(null, '', '#/');
const root = document.getElementById('console');
root.replaceChildren();
render(html`<${Shell} />`, root);
