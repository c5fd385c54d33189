#!/usr/bin/env python3
"""Every template that stock Salt renders while it compiles formulas: formula_oracle.py FORMULAS OUT [NAME…], with the Python of a
venv with salt==3008.3. FORMULAS is a folder with clones of saltstack-formulas; `render_oracle.py`, which compiles them, is in the
folder that BRINE_ORACLE names.

OUT/NAME.jsonl: a line {"files": [folders]}, then for each template its text, its context, the execution functions that it
called with their answers, and the output or the error. Values have the form of `typed`."""
import copy, datetime, hashlib, json, os, re, sys, threading
sys.path.insert(0, os.environ['BRINE_ORACLE'])
import render_oracle as R
import salt.loader.lazy, salt.utils.templates, salt.utils.jinja
from collections import OrderedDict

LOCAL = threading.local()
SEEN, OUT, SHARED, ROOTS = set(), [], {}, []


class Untyped(Exception):
    pass


def typed(v, depth=0):
    """A value as JSON, with what JSON lacks."""
    if depth > 80:
        raise Untyped()
    if v is None or isinstance(v, bool):
        return v
    if isinstance(v, str):
        return R.text(str(v))
    if isinstance(v, int):
        return {'int': str(v)}
    if isinstance(v, float):
        return {'float': repr(v)}
    if isinstance(v, bytes):
        return {'bytes': v.hex()}
    if isinstance(v, datetime.datetime):
        raise Untyped()
    if isinstance(v, datetime.date):
        return {'date': [v.year, v.month, v.day]}
    if isinstance(v, dict):
        kind = 'ordered' if isinstance(v, OrderedDict) else 'dict'
        return {kind: [[typed(k, depth + 1), typed(x, depth + 1)] for k, x in v.items()]}
    if isinstance(v, list):
        return [typed(x, depth + 1) for x in v]
    if isinstance(v, tuple):
        return {'tuple': [typed(x, depth + 1) for x in v]}
    if hasattr(v, 'value') and hasattr(v, 'items'):
        return typed(v.value(), depth)
    raise Untyped()


def call(self, *a, **k):
    if getattr(self.loader, 'tag', None) != 'module' or not getattr(LOCAL, 'tapes', None) or getattr(LOCAL, 'inside', False):
        return R._original(self, *a, **k)
    try:
        line = {'fun': self.name, 'args': typed(list(a)), 'kwargs': typed(dict(k))}
    except Untyped:
        line = None
    LOCAL.inside = True
    try:
        if R.is_real(self.name):
            r = R._original(self, *a, **k)
        else:
            r = copy.deepcopy(R.FIXTURE.get(self.name, ''))
        try:
            if line:
                line['ret'] = typed(r)
        except Untyped:
            line = None
        return r
    except BaseException as e:
        if line:
            line['error'], line['refused'] = R.text(str(e)), isinstance(e, (salt.exceptions.CommandExecutionError, salt.exceptions.SaltInvocationError))
        raise
    finally:
        LOCAL.inside = False
        LOCAL.tapes[-1].append(line)


salt.loader.lazy.LoadedFunc.__call__ = call
original = salt.utils.templates.render_jinja_tmpl


def share(value):
    """A large value once, under a number."""
    text = json.dumps(typed(value))
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    if key not in SHARED:
        SHARED[key] = text
    return {'shared': key}


def render(tmplstr, context, tmplpath=None):
    inside, LOCAL.inside = getattr(LOCAL, 'inside', False), False
    LOCAL.tapes = getattr(LOCAL, 'tapes', []) + [[]]
    line = {'template': R.text(tmplstr), 'context': {}, 'opaque': []}
    for key, value in context.items():
        try:
            if key in ('salt', '_pillar_rend', 'fileclient'):
                continue
            line['context'][key] = share(value) if key in ('opts', 'grains', 'pillar') else typed(value)
        except Untyped:
            line['opaque'].append(key)
    try:
        out = original(tmplstr, context, tmplpath)
        line['output'] = R.text(out)
        return out
    except BaseException as e:
        line['error'] = R.text(str(e).split('\n\nTraceback')[0])
        line['class'] = type(e).__name__
        raise
    finally:
        LOCAL.inside = inside
        line['calls'] = LOCAL.tapes.pop()
        key = hashlib.sha256(json.dumps([line['template'], line['context'], line.get('output'), line.get('error')], sort_keys=True).encode()).hexdigest()
        if key not in SEEN:
            SEEN.add(key)
            OUT.append(line)


salt.utils.templates.render_jinja_tmpl = render
salt.utils.templates.JINJA = salt.utils.templates.wrap_tmpl_func(render)
salt.utils.templates.TEMPLATE_REGISTRY['jinja'] = salt.utils.templates.JINJA


def main():
    folder, out, names = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    name, grains = R.read_grains('debian12')
    only = os.environ.get('BRINE_ORACLE_CASES', 'suite|example')
    os.makedirs(out, exist_ok=True)
    for formula in names or sorted(os.listdir(folder)):
        root = os.path.join(folder, formula)
        if not os.path.isdir(root) or formula == 'psf-salt':
            continue
        deps = R.dependencies(root, folder)
        SEEN.clear(), OUT.clear(), SHARED.clear()
        for case in R.cases(root):
            if re.search(only, case[0]):
                R.run(root, case, grains, deps, 60)
        with open(os.path.join(out, formula + '.jsonl'), 'w') as f:
            f.write(json.dumps({'files': R.file_roots(root) + deps, 'root': root, 'deps': deps}) + '\n')
            f.write('{%s}\n' % ', '.join('"%s": %s' % (k, v) for k, v in SHARED.items()))
            for line in OUT:
                f.write(json.dumps(line) + '\n')
        print(formula, len(OUT), sum('error' in x for x in OUT), file=sys.stderr)


if __name__ == '__main__':
    main()
