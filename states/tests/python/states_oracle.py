#!/usr/bin/env python3
"""Stock Salt's answers about states, a line of JSON each; run it with the Python of a venv with salt==3008.3:

    PYTHONHASHSEED=0 VENV/bin/python states_oracle.py trees [STEP]    the compiles of trees.py: each form of each STEPth
    PYTHONHASHSEED=0 VENV/bin/python states_oracle.py runs [STEP]     the runs of runs.py
    PYTHONHASHSEED=0 VENV/bin/python states_oracle.py states          the names of Salt's state functions
    VENV/bin/python states_oracle.py version                   Salt's line and Python's

An answer is a value, {"errors": [...]}, or {"raises": "Class: text"}. Folders are /TMP."""
import copy, json, logging, os, shutil, sys, tempfile
logging.disable(logging.CRITICAL)
import salt.config, salt.state, salt.version
import salt.modules.state, salt.utils.args

GRAINS = {'id': 'web1', 'os': 'Debian', 'os_family': 'Debian', 'kernel': 'Linux', 'osarch': 'amd64', 'osmajorrelease': 12, 'osrelease': '12'}


def plain(x, tmp):
    if isinstance(x, str):
        return x.replace(tmp, '/TMP')
    if x is None or isinstance(x, (bool, int, float)):
        return x
    if hasattr(x, 'items'):
        return {k if isinstance(k, str) else '!%s:%s' % (type(k).__name__, k): plain(v, tmp) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(i, tmp) for i in x]
    return '!%s:%s' % (type(x).__name__, x)


def minion(tmp, options, files):
    """A minion's settings with files laid out."""
    roots = {}
    for env, texts in files.items():
        roots[env] = [os.path.join(tmp, 'srv', env)]
        os.makedirs(roots[env][0], exist_ok=True)
        for path, text in texts.items():
            path = os.path.join(roots[env][0], path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'w') as f:
                f.write(text)
    opts = copy.deepcopy(dict(salt.config.DEFAULT_MINION_OPTS))
    opts.update(id='web1', file_client='local', root_dir=tmp, cachedir=tmp + '/cache', pki_dir=tmp + '/pki', sock_dir=tmp + '/sock',
                extension_modules=tmp + '/extmods', conf_file=tmp + '/minion', log_file=tmp + '/log', file_roots=roots,
                pillar_roots={'base': []}, grains=copy.deepcopy(GRAINS), fileserver_backend=['roots'], jid=None, local=True, test=False)
    opts.update(copy.deepcopy(options))
    return opts


def asked(tmp, fun):
    try:
        answer = fun()
    except BaseException as e:
        return {'raises': plain('%s: %s' % (type(e).__name__, e), tmp)}
    if isinstance(answer, list) and any(isinstance(x, str) for x in answer):
        return {'errors': plain(answer, tmp)}
    return plain(answer, tmp)


class Compiles:
    """One compile in each of its forms, each with a HighState of its own."""
    def __init__(self, tmp, opts):
        self.tmp, self.opts = tmp, opts

    def state(self):
        return salt.state.HighState(copy.deepcopy(self.opts))

    def top(self):
        s = self.state()
        top = s.get_top()
        return s.verify_tops(top) or s.top_matches(top)

    def highstate(self):
        return self.state().compile_highstate()

    def lowstate(self):
        return self.state().compile_low_chunks()

    def sls(self, low):
        s = self.state()
        high, errors = s.render_highstate({self.opts['saltenv'] or 'base': ['a']})
        errors += s.state.verify_high(high)
        if errors or not low:
            return errors or high
        chunks, errors = s.state.compile_high_data(high)
        return errors or chunks

    def all(self):
        forms = {'top': self.top, 'highstate': self.highstate, 'lowstate': self.lowstate, 'sls': lambda: self.sls(False), 'low_sls': lambda: self.sls(True)}
        return {name: asked(self.tmp, fun) for name, fun in forms.items()}


def compiles(step):
    import trees
    for name, options, files in list(trees.trees())[::step]:
        if not any(path == options.get('state_top', 'top.sls') for texts in files.values() for path in texts) and 'nothing.txt' not in files['base']:
            files['base']['top.sls'] = "base: {'*': [a]}\n"
        tmp = tempfile.mkdtemp()
        print(json.dumps({'name': name, 'options': options, 'files': files, **Compiles(tmp, minion(tmp, options, files)).all()}), flush=True)
        shutil.rmtree(tmp)


def clean(ret):
    """A return without what differs from run to run."""
    if isinstance(ret, dict):
        for state in ret.values():
            for key in ('start_time', 'duration'):
                state.pop(key, None)
            if 'Traceback' in str(state.get('comment')):
                lines = state['comment'].rstrip('\n').split('\n')
                state['comment'] = lines[0].replace('Traceback (most recent call last):', '') + lines[-1]
    return ret


def runs(step):
    import runs as r
    for name, options, files in list(r.runs())[::step]:
        tmp = tempfile.mkdtemp()
        opts = minion(tmp, options, files)

        def run():
            s = salt.state.HighState(copy.deepcopy(opts))
            s.push_active()
            try:
                high, errors = s.render_highstate({'base': ['a']})
                return errors or clean(s.state.call_high(high))
            finally:
                s.pop_active()
        print(json.dumps({'name': name, 'options': options, 'files': files, 'return': asked(tmp, run)}), flush=True)
        shutil.rmtree(tmp)


def names():
    """The state functions that Salt has."""
    tmp = tempfile.mkdtemp()
    names = sorted(salt.state.State(minion(tmp, {}, {'base': {}})).states)
    shutil.rmtree(tmp)
    return names


def main():
    what, step = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    if what == 'version':
        print(salt.version.__version__.split('.')[0], '%d.%d' % sys.version_info[:2])
    elif what == 'states':
        print(json.dumps(names()))
    elif what == 'trees':
        compiles(step)
    else:
        runs(step)


if __name__ == '__main__':
    main()
