"""How many pillars stock Salt compiles in a second, with a process for each processor.

    pillar_bench.py tree FOLDER      writes the tree: a top file and 40 files, of which each minion gets 20
    pillar_bench.py run FOLDER N     compiles the pillars of N minions, and prints seconds, pillars a second and memory

docs/benchmarks.md has the numbers beside Brine's.
"""
import logging
import multiprocessing
import os
import resource
import sys
import time

GRAINS = {"os": "Debian", "osrelease": "12.4", "roles": ["web"], "num_cpus": 4, "kernel": "Linux"}


def write_tree(folder):
    os.makedirs(os.path.join(folder, "data"), exist_ok=True)
    names = [f"app{n}" for n in range(40)]
    with open(os.path.join(folder, "top.sls"), "w") as top:
        top.write("base:\n")
        for group in range(4):
            top.write(f"  '*[{'|'.join(str(d) for d in range(10) if d % 4 in (group, (group + 1) % 4))}]':\n    - match: compound\n")
            top.writelines(f"    - {name}\n" for name in names[group::4])
    with open(os.path.join(folder, "data/map.yaml"), "w") as file:
        file.write("Debian: {conf: /etc, user: www-data}\nRedHat: {conf: /etc/sysconfig, user: apache}\nSwarm: {conf: /etc, user: swarm}\n")
    for n, name in enumerate(names):
        with open(os.path.join(folder, f"{name}.sls"), "w") as file:
            file.write(
                "{% import_yaml 'data/map.yaml' as map %}\n{% set os = map.get(grains.os, {}) %}\n"
                f"{name}:\n  user: {{{{ os.user }}}}\n  id: {{{{ grains.id }}}}\n  port: {{{{ 8000 + {n} }}}}\n  hosts:\n"
                "{% for i in range(8) %}    - host{{ i }}.example\n{% endfor %}"
                "  options:\n{% for key in ['alpha', 'beta', 'gamma', 'delta'] %}    {{ key }}: {value: '{{ key|upper }}', on: {{ loop.first }}}\n{% endfor %}"
                "{% set cpus = grains.get('num_cpus', 4) %}{% if cpus > 2 %}  workers: {{ cpus * 2 }}\n{% endif %}"
                f"shared:\n  {name}: true\n"
            )


def compile_some(folder, ids):
    import salt.config
    import salt.pillar

    logging.disable(logging.CRITICAL)
    opts = salt.config.apply_master_config({"root_dir": folder + ".home", "conf_file": folder + ".conf", "cachedir": folder + ".cache"})
    opts["pillar_roots"] = {"base": [folder]}
    for minion in ids:
        salt.pillar.Pillar(opts, dict(GRAINS, id=minion), minion, "base").compile_pillar()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main():
    what, folder, *rest = sys.argv[1:]
    if what == "tree":
        return write_tree(folder)
    count, processes = int(rest[0]), multiprocessing.cpu_count()
    ids = [f"swarm-{n:05}" for n in range(1, count + 1)]
    with multiprocessing.Pool(processes) as pool:
        # each has loaded Salt before the clock starts
        pool.starmap(compile_some, [(folder, ids[:1])] * processes * 4, chunksize=1)
        began = time.time()
        memory = pool.starmap(compile_some, [(folder, ids[at::processes]) for at in range(processes)], chunksize=1)
        took = time.time() - began
    print(f"{took:.1f} s, {count / took:.1f} a second with {processes} processes, {sum(memory) // 1024} MiB")


if __name__ == "__main__":
    main()
