export function make(what) {
  if (what === 'raises') return undefined.key;
  if (what === 'fails') throw 'as it says';
  console.log('printed', what);
  return 'done';
}
