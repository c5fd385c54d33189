// preact and htm, under the names that all pages use.
import { h, render, Component } from './preact.js';
import htm from './htm.js';

export const html = htm.bind(h);
export { render, Component };
export { useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback, useReducer, useId } from './hooks.js';
