// Events as they come, with bounds: how many are kept, how much, and how often the page is painted.
import { html, useState, useEffect, useRef } from './html.js';
import { listen } from './stream.js';
import { useFilters } from './route.js';
import { Title, Input, Rows, Dialog, Output } from './parts.js';
import { count, visible } from './text.js';

/** Events that are kept, and their characters together. */
const KEPT = 1000;
const KEPT_CHARACTERS = 8 << 20;
const PAINT_MS = 250;
const LOST = 'brine/events/lost';

const COLUMNS = [
  { title: 'Time', width: '7rem', narrow: '5.5rem', cell: (row) => html`<span class="dim">${row.at}</span>` },
  { title: 'Tag', width: 'minmax(0, 1fr)', mono: true, cell: (row) => visible(row.tag), sub: (row) => visible(row.json.slice(0, 120)) },
  { title: 'Data', width: 'minmax(0, 1.4fr)', low: true, mono: true, cell: (row) => html`<span class="dim">${visible(row.json.slice(0, 240))}</span>` },
];

/** What is kept: outside of the page, so that painting it seldom is enough. */
class Kept {
  constructor() {
    this.seen = 0;
    this.lost = 0;
    this.unknown = false;
    this.clear();
  }

  clear() {
    this.events = [];
    this.characters = 0;
  }

  add({ tag, json }) {
    this.seen += 1;
    if (tag === LOST) this.note(json);
    this.events.push({ key: this.seen, tag, json, at: new Date().toTimeString().slice(0, 8) });
    this.characters += tag.length + json.length;
    if (this.events.length <= 2 * KEPT && this.characters <= KEPT_CHARACTERS) return;
    // In one go, so that an event more does not move all others.
    let keep = Math.min(KEPT, this.events.length - 1);
    const size = (event) => event.tag.length + event.json.length;
    let left = this.events.slice(-keep).reduce((all, event) => all + size(event), 0);
    while (keep > 1 && left > KEPT_CHARACTERS / 2) left -= size(this.events[this.events.length - keep--]);
    this.events = this.events.slice(-keep);
    this.characters = left;
  }

  note(json) {
    const lost = /"lost":\s*(\d+)/.exec(json);
    if (lost) this.lost += Number(lost[1]);
    else this.unknown = true;
  }
}

export function Events() {
  const [filters, change] = useFilters('events', { tag: '', text: '' });
  const [paused, setPaused] = useState(false);
  const [open, setOpen] = useState(null);
  const kept = useRef(null);
  kept.current ||= new Kept();
  const [shown, setShown] = useState({ events: [], seen: 0, lost: 0, unknown: false });
  const stopped = paused || open !== null;
  useEffect(() => listen((event) => kept.current.add(event)), []);
  useEffect(() => {
    let before = -1;
    const paint = () => {
      const { events, seen, lost, unknown } = kept.current;
      if (document.hidden || (seen === before && !stopped)) return;
      before = seen;
      setShown((now) => ({ events: stopped ? now.events : events.slice(-2 * KEPT), seen, lost, unknown }));
    };
    paint();
    const timer = setInterval(paint, PAINT_MS);
    return () => clearInterval(timer);
  }, [stopped]);
  const matches = matcher(filters);
  const rows = shown.events.filter(matches).reverse();
  const clear = () => {
    kept.current.clear();
    setShown((now) => ({ ...now, events: [] }));
  };
  return html`
    <${Title} note=${`${count(shown.seen)} seen since you opened this page, the last ${count(KEPT)} are kept.`}
      actions=${html`<button type="button" aria-pressed=${paused} onClick=${() => setPaused(!paused)}>${paused ? 'Go on' : 'Pause'}</button>
        <button type="button" class="quiet" onClick=${clear}>Clear</button>`}>Events<//>
    <div class="filters" role="search">
      <${Input} id="events-tag" label="Tag" type="search" value=${filters.tag} onChange=${(tag) => change({ tag })} placeholder="salt/job/*" />
      <${Input} id="events-text" label="Text in the data" type="search" value=${filters.text} onChange=${(text) => change({ text })} />
    </div>
    <p class=${`lost ${shown.lost || shown.unknown ? 'warn-text' : 'dim'}`}>${shown.lost || shown.unknown ? `${shown.unknown ? 'An unknown number' : count(shown.lost)} of events were lost: the master no longer had them.` : 'None were lost.'}</p>
    <${Rows} label="Events" columns=${COLUMNS} rows=${rows} keyOf=${(row) => row.key} onOpen=${setOpen}
      empty=${shown.seen ? 'No event is like that.' : 'No event has come yet. You see those of your own jobs, and of jobs that you could have started.'} />
    ${open && html`<${Dialog} title=${visible(open.tag)} onClose=${() => setOpen(null)}><${Output} value=${parsed(open.json)} label="Data of the event" /><//>`}`;
}

function matcher({ tag, text }) {
  const glob = tag && new RegExp(`${/[*?]/.test(tag) ? '^' : ''}${tag.replace(/[.+^${}()|[\]\\]/g, '\\$&').replace(/\*/g, '.*').replace(/\?/g, '.')}${/[*?]/.test(tag) ? '$' : ''}`, 's');
  const part = text.toLowerCase();
  return (event) => (!glob || glob.test(event.tag)) && (!part || event.json.toLowerCase().includes(part));
}

function parsed(json) {
  try {
    return JSON.parse(json).data;
  } catch {
    return json;
  }
}
