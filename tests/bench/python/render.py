"""Renders FOLDER/web/init.sls as a minion does, its renderers loaded. Prints the times in milliseconds as JSON.

Usage: render.py FOLDER WARM_UP RUNS
"""

import json
import os
import sys
import tempfile
import time

import salt.config
import salt.loader
import salt.template

folder, warm_up, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
work = tempfile.mkdtemp()
opts = salt.config.minion_config(os.devnull)
opts.update(
    root_dir=work, cachedir=work, id="web1", file_client="local", file_roots={"base": [folder]}, pillar_roots={"base": []},
    grains={"id": "web1", "os_family": "Debian", "os": "Ubuntu", "osfinger": "Ubuntu-24.04", "init": "systemd"}, pillar={})
functions = salt.loader.minion_mods(opts)
renderers = salt.loader.render(opts, functions)
times = []
for run in range(warm_up + runs):
    began = time.perf_counter()
    states = salt.template.compile_template(
        os.path.join(folder, "web/init.sls"), renderers, opts["renderer"], [], [], saltenv="base", sls="web")
    took = (time.perf_counter() - began) * 1000
    assert len(states) == 91, states
    if run >= warm_up:
        times.append(took)
print(json.dumps(times))
