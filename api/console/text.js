// How values are shown. All of it is text; nothing here makes HTML.

/** Characters that change the order or the sight of others, which a minion could use to make an output look like another one. */
// eslint-disable-next-line no-control-regex
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/** Shows characters that would not be seen as their numbers. */
export function visible(text) {
  return String(text).replace(HIDDEN, (found) => `\u27e8U+${found.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}\u27e9`);
}

/** A value as a person reads it: texts as they are, the rest in the form of YAML. */
export function pretty(value) {
  return typeof value === 'string' ? value : block(value, '').replace(/^\n/, '');
}

function block(value, indent) {
  if (Array.isArray(value)) {
    return value.length ? value.map((item) => `\n${indent}- ${block(item, `${indent}  `).replace(/^\n\s*/, '')}`).join('') : '[]';
  }
  if (value && typeof value === 'object') {
    const entries = Object.entries(value);
    return entries.length ? entries.map(([key, item]) => {
      const shown = block(item, `${indent}  `);
      return `\n${indent}${key}:${shown.startsWith('\n') ? '' : ' '}${shown}`;
    }).join('') : '{}';
  }
  if (typeof value === 'string') {
    return value.includes('\n') ? `|\n${value.replace(/\n$/, '').split('\n').map((line) => indent + line).join('\n')}` : value === '' ? "''" : value;
  }
  return String(value);
}

/** One argument as one would type it. */
export const argument = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

export function args(list) {
  return list == null ? '…' : list.flatMap((value) => {
    if (!value || typeof value !== 'object' || !value.__kwarg__) return [argument(value)];
    return Object.entries(value).filter(([name]) => name !== '__kwarg__').map(([name, item]) => `${name}=${argument(item)}`);
  }).join(' ');
}

const number = new Intl.NumberFormat('en');
export const count = (value) => (value == null ? '–' : number.format(value));
export const many = (value, one, more = `${one}s`) => `${count(value)} ${value === 1 ? one : more}`;

export function bytes(value) {
  if (value == null) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB'];
  let unit = 0;
  for (; value >= 1024 && unit < 3; unit++) value /= 1024;
  return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function micros(value) {
  if (value == null) return '–';
  return value < 1000 ? `${value} µs` : value < 1e6 ? `${(value / 1000).toFixed(1)} ms` : `${(value / 1e6).toFixed(2)} s`;
}

const day = new Intl.DateTimeFormat('sv', { dateStyle: 'short', timeStyle: 'medium' });
export const time = (seconds) => (seconds == null ? '–' : day.format(seconds * 1000));

export function ago(seconds) {
  if (seconds == null) return 'never';
  const passed = Math.max(0, Date.now() / 1000 - seconds);
  const [value, unit] = passed < 60 ? [passed, 's'] : passed < 3600 ? [passed / 60, 'min'] : passed < 86400 ? [passed / 3600, 'h'] : [passed / 86400, 'd'];
  return `${Math.floor(value)} ${unit} ago`;
}

export const short = (hash) => (hash ? String(hash).slice(0, 12) : '–');
