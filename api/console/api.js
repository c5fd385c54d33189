// Requests to salt-api. The session is a cookie that scripts cannot read, so nothing here knows the token.

export const ROOT = document.documentElement.dataset.root;

/** A request that salt-api refused, or that did not reach it. `status` is 0 then. */
export class ApiError extends Error {
  constructor(status, detail, retryAfter) {
    super(detail);
    this.status = status;
    this.retryAfter = retryAfter;
  }

  /** Whether the same request may work in a moment. */
  get passes() {
    return [0, 502, 503, 504].includes(this.status);
  }
}

const ended = new Set();

/** Calls `listener` when a request finds that there is no session (any more). */
export function onSessionEnd(listener) {
  ended.add(listener);
  return () => ended.delete(listener);
}

export function sessionEnded() {
  for (const listener of ended) listener();
}

/** Reads a path below /v1. */
export function read(path, params = {}, signal) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== '' && value != null));
  return send('GET', `/v1/${path}${query.size ? `?${query}` : ''}`, undefined, signal);
}

/** Asks who is meant by a call, and what its module may do there. */
export const plan = (call, signal) => send('POST', '/v1/plan', call, signal);

/** Runs one chunk of Salt's, and returns its result. */
export async function run(chunk) {
  const answer = await send('POST', '/', [chunk]);
  return answer.return[0];
}

/** Runs a function of the wheel, and returns what it returned. */
export async function wheel(fun, more) {
  const { data } = await run({ client: 'wheel', fun, ...more });
  if (!data || data.success === false) throw new ApiError(500, text(data && data.return) || 'The master refused.');
  return data.return;
}

export const logIn = (username, password, eauth) => send('POST', '/login', { username, password, eauth });
export const logOut = () => send('POST', '/logout', {});

async function send(method, path, body, signal) {
  const headers = { Accept: 'application/json' };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let response;
  let content;
  try {
    response = await fetch(ROOT + path, {
      method, headers, signal, cache: 'no-store', credentials: 'same-origin', redirect: 'error',
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    content = await response.text();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'salt-api does not answer.');
  }
  const kind = response.headers.get('Content-Type') || '';
  if (!response.ok) {
    if (response.status === 401 && path !== '/login' && path.startsWith('/v1/')) sessionEnded();
    throw new ApiError(response.status, reason(kind, content, response), Number(response.headers.get('Retry-After')) || null);
  }
  try {
    return JSON.parse(content);
  } catch {
    throw new ApiError(502, 'salt-api sent something that is no JSON. Is a proxy in between?');
  }
}

/** Why a request was refused: from a problem document, or from Salt's page, whose words stand in its paragraph. */
function reason(kind, content, response) {
  if (kind.includes('json')) {
    try {
      const problem = JSON.parse(content);
      return text(problem.detail || problem.title);
    } catch { /* as a page */ }
  }
  const said = /<p>([^<]*)<\/p>/.exec(content);
  const entities = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#x27;': "'", '&#39;': "'", '&amp;': '&' };
  return said ? said[1].replace(/&(?:lt|gt|quot|#x27|#39|amp);/g, (entity) => entities[entity])
    : `salt-api answered ${response.status} ${response.statusText}`;
}

const text = (value) => (typeof value === 'string' ? value : value == null ? '' : JSON.stringify(value));
