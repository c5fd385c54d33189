#!/usr/bin/env python3
"""What a case's compile takes from stock Salt besides its answers, run with the Python of a venv with salt==3008.3:

  PYTHONHASHSEED=0 VENV/bin/python settings_oracle.py   writes data/opts.json (a minion's defaults), data/states.json and
                                                        data/functions.json (Salt's functions, by set of grains)"""
import copy, json, logging, os, tempfile
logging.disable(logging.CRITICAL)
import salt.config, salt.state

HERE = os.path.dirname(os.path.abspath(__file__))


def plain(x):
    if isinstance(x, (str, int, float, type(None))):
        return x
    if hasattr(x, 'items'):
        return {k: plain(v) for k, v in x.items()}
    return [plain(i) for i in x]


def main():
    defaults = salt.config.DEFAULT_MINION_OPTS
    with open(os.path.join(HERE, 'data', 'opts.json'), 'w') as f:
        json.dump(plain(defaults), f, indent=1)
    states, functions = {}, {}
    for name, grains in json.load(open(os.path.join(HERE, 'grains.json'))).items():
        if name not in os.listdir(os.path.join(HERE, 'answers')):
            continue
        tmp = tempfile.mkdtemp()
        opts = copy.deepcopy(dict(defaults))
        opts.update(id='web1', file_client='local', root_dir=tmp, cachedir=tmp + '/cache', pki_dir=tmp + '/pki', sock_dir=tmp + '/sock',
                    extension_modules=tmp + '/extmods', conf_file=tmp + '/minion', log_file=tmp + '/log', file_roots={'base': [tmp]},
                    pillar_roots={'base': [tmp]}, grains=grains, test=True, fileserver_backend=['roots'], jid=None)
        state = salt.state.State(opts)
        states[name], functions[name] = sorted(state.states), sorted(state.functions)
    for file, names in ('states', states), ('functions', functions):
        with open(os.path.join(HERE, 'data', file + '.json'), 'w') as f:
            json.dump(names, f, indent=0)


main()
