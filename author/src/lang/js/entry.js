// What salt-module puts before module.js. An error that nothing catches becomes the job's error, with its place; its stack
// and what is printed go to the minion's log where the world imports brine:host/log, and nowhere where it does not.

const words = (values) => values.map((value) => (typeof value === 'object' ? JSON.stringify(value) : String(value))).join(' ');

const printers = {};
for (const [name, level] of [['log', 'info'], ['info', 'info'], ['debug', 'debug'], ['trace', 'trace'], ['warn', 'warning'], ['error', 'error']]) {
  printers[name] = (...values) => write(level, words(values));
}

function told(error) {
  // What is thrown as a value is what the world says it is.
  if (!(error instanceof Error) || 'payload' in error) return error;
  const text = `${error.name}: ${error.message}`;
  const stack = String(error.stack ?? '').split('\n').filter((line) => line && !line.includes('entry.js'));
  write('error', [text, ...stack.map((line) => `  ${line}`)].join('\n'));
  const place = stack.length ? stack[0].match(/([^\/@]+):(\d+):\d+$/) : null;
  return place ? `${text} (${place[1]}, line ${place[2]})` : text;
}

function guarded(from, name, of) {
  const called = from?.[name];
  if (typeof called !== 'function') {
    throw new Error(`module.js does not export the function ${of ? `${of}.` : ''}${name}, which the world in wit/ exports`);
  }
  return (...values) => {
    // Not before: while the module is built there is no log.
    Object.assign(console, printers);
    try {
      return called.apply(from, values);
    } catch (error) {
      throw told(error);
    }
  };
}

