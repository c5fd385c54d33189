// Log in.
import { html, useState, useEffect } from './html.js';
import { logIn } from './api.js';
import { Input, Select } from './parts.js';
import { visible } from './text.js';

const KINDS = [['pam', 'System account (pam)'], ['file', 'Password file (file)'], ['sharedsecret', 'Shared secret (sharedsecret)'],
  ['statictoken', 'Static token (statictoken)']];
const REMEMBERED = 'brine-eauth';

export function LogIn({ onDone, ended }) {
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [kind, setKind] = useState(() => localStorage.getItem(REMEMBERED) || 'pam');
  const [said, setSaid] = useState('');
  const [busy, setBusy] = useState(false);
  const [wait, setWait] = useState(0);
  useEffect(() => {
    document.title = 'Log in – Brine';
    document.getElementById('login-name')?.focus();
  }, []);
  useEffect(() => {
    if (!wait) return undefined;
    const timer = setTimeout(() => setWait(wait - 1), 1000);
    return () => clearTimeout(timer);
  }, [wait]);
  const submit = async (event) => {
    event.preventDefault();
    if (busy || wait) return;
    if (!name || !password) {
      setSaid('Type your name and your password.');
      document.getElementById(name ? 'login-password' : 'login-name').focus();
      return;
    }
    setBusy(true);
    setSaid('');
    try {
      await logIn(name, password, kind);
      localStorage.setItem(REMEMBERED, kind);
      await onDone();
    } catch (error) {
      setPassword('');
      setSaid(why(error));
      if (error.status === 429) setWait(Math.min(3600, error.retryAfter || 10));
      document.getElementById('login-password')?.focus();
    } finally {
      setBusy(false);
    }
  };
  return html`<main class="login" id="main">
    <form onSubmit=${submit} novalidate>
      <${Crystal} />
      <h1>Brine</h1>
      <p class="note">${ended ? 'Your session has ended. Log in again: you come back to where you were.' : 'Log in to the master.'}</p>
      <${Input} id="login-name" label="Name" value=${name} onChange=${setName} autocomplete="username" required />
      <${Input} id="login-password" label="Password" type="password" value=${password} onChange=${setPassword} autocomplete="current-password" required />
      <${Select} id="login-kind" label="Kind of account" value=${kind} onChange=${setKind} options=${KINDS} />
      <div role="alert" class="said">${wait ? `Too many wrong log-ins came from your address. Try again in ${wait} s.` : said}</div>
      <button class="main" aria-disabled=${busy || wait > 0}>${busy ? 'Logging in…' : 'Log in'}</button>
    </form>
  </main>`;
}

function why(error) {
  switch (error.status) {
    case 0: return 'salt-api does not answer. Check that it runs, then try again.';
    case 401: return "The master did not accept this name, password and kind of account. The master's log says more.";
    case 403: return `This address or this page may not log in (${visible(error.message)}). See authorized_ips and cors_origins.`;
    case 404: return 'This salt-api has no sessions (enable_sessions: False), which the console needs.';
    case 503: return 'The master is away. Try again when it is back.';
    default: return visible(error.message);
  }
}

/** The mark of Brine: a crystal of salt. */
export const Crystal = () => html`<svg class="crystal" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
  <path d="M12 2.5 20.5 7v10L12 21.5 3.5 17V7z" /><path d="M3.5 7 12 11.5 20.5 7M12 11.5v10" /></svg>`;
