// The master's events: one stream for all pages that listen. `fetch` instead of EventSource, because that gives up for good
// when the master is away, and cannot say after which event it wants to go on.
import { ROOT, sessionEnded } from './api.js';

/** Longest event that is kept, in characters: the master's own bound is below it. */
const LONGEST = 8 << 20;
const PAUSE_MS = [400, 1000, 2000, 5000];

const listeners = new Set();
const watchers = new Set();
let state = 'closed';
let abort = null;
let last = null;

/** Calls `listener({tag, json, id})` for each event until the returned function is called. `json` is text. */
export function listen(listener) {
  listeners.add(listener);
  if (!abort) follow();
  return () => {
    listeners.delete(listener);
    // Another page may listen in the same moment.
    setTimeout(() => listeners.size || close());
  };
}

/** Calls `watcher(state)` now and at each change: `open`, `away` or `closed`. */
export function watchState(watcher) {
  watchers.add(watcher);
  watcher(state);
  return () => watchers.delete(watcher);
}

/** Ends the stream, and forgets where it was. */
export function close() {
  abort?.abort();
  abort = null;
  last = null;
  set('closed');
}

function set(now) {
  if (state === now) return;
  state = now;
  for (const watcher of watchers) watcher(state);
}

async function follow() {
  const own = abort = new AbortController();
  for (let failed = 0; abort === own;) {
    try {
      const headers = { Accept: 'text/event-stream' };
      if (last) headers['Last-Event-ID'] = last;
      const response = await fetch(`${ROOT}/events`, { headers, signal: own.signal, cache: 'no-store', credentials: 'same-origin' });
      if (response.status === 401 || response.status === 403) {
        if (response.status === 401) sessionEnded();
        return close();
      }
      if (!response.ok) throw new Error(response.status);
      set('open');
      failed = 0;
      await readAll(response.body.getReader(), own);
    } catch (error) {
      if (error.name === 'AbortError') return;
    }
    if (abort !== own) return;
    set('away');
    await new Promise((done) => setTimeout(done, PAUSE_MS[Math.min(failed++, PAUSE_MS.length - 1)]));
  }
}

async function readAll(reader, own) {
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done || abort !== own) return;
    rest += decoder.decode(value, { stream: true });
    if (rest.includes('\r')) rest = rest.replaceAll('\r\n', '\n');
    let begin = 0;
    for (let end; (end = rest.indexOf('\n\n', begin)) >= 0; begin = end + 2) emit(rest.slice(begin, end));
    rest = rest.slice(begin);
    if (rest.length > LONGEST) throw new Error('an event without end');
  }
}

function emit(block) {
  let tag = '';
  let json = '';
  for (const line of block.split('\n')) {
    if (line.startsWith('tag: ')) tag = line.slice(5);
    else if (line.startsWith('data: ')) json += (json && '\n') + line.slice(6);
    else if (line.startsWith('id: ')) last = line.slice(4);
  }
  if (!tag) return;
  for (const listener of listeners) listener({ tag, json, id: last });
}
