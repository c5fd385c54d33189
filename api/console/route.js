// The page and its filters are in the address behind `#`, so that a link or a reload shows the same.
import { useState, useEffect } from './html.js';

/** Reads `#/page/rest?name=value`. */
export function route() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const [page, ...rest] = path.split('/');
  let name = rest.join('/');
  try {
    name = decodeURIComponent(name);
  } catch { /* as it stands */ }
  return { page: page || '', name, params: Object.fromEntries(new URLSearchParams(query || '')) };
}

export function useRoute() {
  const [now, set] = useState(route);
  useEffect(() => {
    const changed = () => set(route());
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return now;
}

export function link(page, name = '', params = {}) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== '' && value != null));
  return `#/${page}${name ? `/${encodeURIComponent(name)}` : ''}${query.size ? `?${query}` : ''}`;
}

/** Filters that stand in the address. Changing one adds no step to the browser's history. */
export function useFilters(page, defaults) {
  const { params } = useRoute();
  const filters = Object.fromEntries(Object.entries(defaults).map(([name, value]) => [name, params[name] ?? value]));
  const change = (changed) => {
    const all = Object.entries({ ...filters, ...changed }).filter(([name, value]) => value !== defaults[name]);
    history.replaceState(null, '', link(page, route().name, Object.fromEntries(all)));
    dispatchEvent(new HashChangeEvent('hashchange'));
  };
  return [filters, change];
}
