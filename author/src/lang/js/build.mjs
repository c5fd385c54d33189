// Starts componentize-js: ENTRY WIT WORLD OUTPUT.
import { writeFile } from 'node:fs/promises';
import { componentize } from '@bytecodealliance/componentize-js';

const [sourcePath, witPath, worldName, output] = process.argv.slice(2);
try {
  const disableFeatures = ['stdio', 'random', 'clocks', 'http', 'fetch-event'];
  const { component } = await componentize({ sourcePath, witPath, worldName, disableFeatures });
  await writeFile(output, component);
} catch (error) {
  console.error(error.message ?? String(error));
  process.exit(1);
}
