// What pages do with what they read: once, again, page by page, and where the address says what.
import { useState, useEffect, useRef, useCallback } from './html.js';
import { read } from './api.js';
import { listen } from './stream.js';

/** Pause before a read is tried again while salt-api or the master is away. */
const AGAIN_MS = 1500;
const HEARTBEAT_MS = 10_000;
const away = new Set();
const awayWatchers = new Set();

/** Whether a read of the page in view waits for the master. */
export function useAway() {
  const [is, set] = useState(away.size > 0);
  useEffect(() => {
    const watcher = () => set(away.size > 0);
    awayWatchers.add(watcher);
    watcher();
    return () => awayWatchers.delete(watcher);
  }, []);
  return is;
}

function noteAway(who, is) {
  if (is === away.has(who)) return;
  if (is) away.add(who);
  else away.delete(who);
  for (const watcher of awayWatchers) watcher();
  // What others read is from before.
  if (!away.size) for (const [reader, again] of readers) if (reader !== who) again();
}

/** The reads of the page in view, by who reads. */
const readers = new Map();

/** Runs `load(signal)` now and whenever `key` changes. Tries again by itself while the master is away; what was read stays meanwhile. */
export function useLoad(key, load) {
  const [state, set] = useState({ data: null, error: null, loading: true });
  const latest = useRef(load);
  latest.current = load;
  const start = useRef(() => {});
  useEffect(() => {
    const who = {};
    let timer;
    let abort;
    const go = async () => {
      clearTimeout(timer);
      abort?.abort();
      const own = abort = new AbortController();
      set((before) => ({ ...before, loading: true }));
      try {
        const data = await latest.current(own.signal);
        if (own.signal.aborted) return;
        noteAway(who, false);
        set({ data, error: null, loading: false });
      } catch (error) {
        if (own.signal.aborted) return;
        noteAway(who, Boolean(error.passes));
        set((before) => ({ data: error.passes ? before.data : null, error, loading: Boolean(error.passes) }));
        if (error.passes) timer = setTimeout(go, AGAIN_MS);
      }
    };
    start.current = go;
    readers.set(who, go);
    go();
    return () => {
      readers.delete(who);
      clearTimeout(timer);
      abort?.abort();
      noteAway(who, false);
    };
  }, [key]);
  const reload = useCallback(() => start.current(), []);
  return { ...state, reload };
}

/** Asks now and then whether the master is there and the session too, for pages that read nothing by themselves. */
export function useHeartbeat() {
  const { reload } = useRead('me');
  useEffect(() => {
    const timer = setInterval(() => document.hidden || reload(), HEARTBEAT_MS);
    return () => clearInterval(timer);
  }, []);
}

/** Reads one path below /v1. */
export function useRead(path, params = {}) {
  return useLoad(`${path}?${JSON.stringify(params)}`, (signal) => read(path, params, signal));
}

/** Reads a list page by page: `rows`, the first page's other values in `head`, `more()` for the next page. */
export function usePages(path, params = {}, limit = 100) {
  const [pages, set] = useState({ key: '', rows: [], next: null });
  const key = `${path}?${JSON.stringify(params)}`;
  const busy = useRef(false);
  const first = useLoad(key, async (signal) => {
    const page = await read(path, { ...params, limit }, signal);
    set({ key, rows: page.items, next: page.next });
    return page;
  });
  const current = pages.key === key;
  const more = useCallback(async () => {
    if (busy.current || !pages.next || pages.key !== key) return;
    busy.current = true;
    try {
      const page = await read(path, { ...params, limit: 500, cursor: pages.next });
      set((now) => (now.next === pages.next && now.key === key ? { key, rows: now.rows.concat(page.items), next: page.next } : now));
    } catch {
      // The next scroll tries again.
      await new Promise((done) => setTimeout(done, AGAIN_MS));
    } finally {
      busy.current = false;
    }
  }, [key, pages]);
  // The rows of before stay in view until the new ones are there.
  return { ...first, head: first.data, rows: pages.rows, next: current ? pages.next : null, more };
}

/** Calls `act` when an event with such a tag comes, at most once in `every_ms`, and not while nobody looks. */
export function useEvents(matches, act, every_ms = 1000) {
  const latest = useRef({});
  latest.current = { matches, act };
  useEffect(() => {
    let timer = null;
    const stop = listen(({ tag }) => {
      if (timer || !latest.current.matches(tag)) return;
      timer = setTimeout(() => {
        timer = null;
        if (!document.hidden) latest.current.act();
      }, every_ms);
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, []);
}

/** The text of a value that follows `value` when it has not changed for a moment. */
export function useSettled(value, after_ms = 250) {
  const [settled, set] = useState(value);
  const text = JSON.stringify(value);
  useEffect(() => {
    const timer = setTimeout(() => set(value), after_ms);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

/** Whether the page is narrow. */
export function useNarrow() {
  const query = '(max-width: 48rem)';
  const [is, set] = useState(matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const changed = () => set(media.matches);
    media.addEventListener('change', changed);
    return () => media.removeEventListener('change', changed);
  }, []);
  return is;
}
