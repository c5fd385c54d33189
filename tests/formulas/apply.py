#!/usr/bin/env python3
"""Applies suites of public formulas for real, with stock Salt and with Brine, each in a root that is thrown away, and compares.

  apply.py BIN PYTHON FORMULAS OUT [-v] [--only PATTERN] [--keep-stock]

As root, in a machine that may be lost: the roots are overlays of this one, in mount and PID namespaces of their own, but the network and
the kernel are this host's, and packages come from its mirrors. BIN has Brine's programs, PYTHON is one with Salt, FORMULAS has the formulas
of formulas.tsv, OUT gets the results. Each suite is tried with test=True, applied, and applied again. After the dry run, nothing may have been
written anywhere but in the minion's own folders; its results, those of the others and the files have to be stock Salt's. Files that stock Salt
itself writes differently each time (keys, passwords that a package makes up) are found by applying once more with stock Salt, and are compared
without their content. --keep-stock takes stock Salt's results from OUT where they are. Ends with 1 if fewer suites than the goal are equal."""
import argparse, hashlib, json, os, re, shlex, shutil, socket, subprocess, sys, tempfile
import answers as A

HERE = os.path.dirname(os.path.abspath(__file__))
HOLD = os.path.join(HERE, '../kit/src/throwaway/hold.sh')
NOT = '-sys_time,-sys_module,-net_admin,-sys_boot'
# Formulas, and which of their cases. What needs a kernel of its own, systemd or hosts elsewhere is not among them.
SUITES = [(name, 'suite:default') for name in (
    'sudoers', 'cron', 'chrony', 'openssh', 'hostsfile', 'users', 'locale', 'redis', 'dnsmasq', 'sysstat', 'template', 'apache', 'bind', 'collectd', 'dhcpd',
    'fail2ban', 'logrotate', 'mysql', 'nfs', 'nginx', 'ntp', 'openldap', 'openvpn', 'postgres', 'powerdns', 'sysctl', 'systemd', 'timezone', 'tomcat', 'ufw',
    'varnish', 'zabbix', 'node', 'salt', 'suricata', 'lvm', 'iptables', 'firewalld', 'libvirt', 'prometheus')]
SUITES += [(name, 'example:init') for name in (
    'resolver', 'vim', 'rsyslog', 'memcached', 'haproxy', 'users', 'sudoers', 'samba', 'git', 'mysql', 'postgres', 'php', 'openldap', 'powerdns', 'timezone', 'varnish',
    'cron', 'logrotate', 'fail2ban', 'letsencrypt', 'nginx', 'systemd')]
SUITES += [('apt', 'suite:repositories'), ('apt', 'suite:preferences'), ('apt', 'suite:unattended'), ('php', 'suite:debian'), ('sudoers', 'suite:appended'),
           ('letsencrypt', 'suite:deb'), ('packages', 'suite:debian'), ('users', 'suite:vimrc'), ('golang', 'suite:package'), ('docker', 'suite:package')]
GOAL = 28
RUNS = [('test', ['test=True'], 300), ('apply', [], 900), ('again', [], 300)]
PATHS = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
# Files that differ by time or machine, and what is about the files and not of them.
NOISE = re.compile(r'^/(etc/(ld\.so\.cache|ssh/ssh_host_\w+_key(\.pub)?|shadow-?|gshadow-?|passwd-|group-|subuid-|subgid-|machine-id)$|root/\.cache|var/(log|cache|lib/(apt|dpkg))|run|tmp|proc)')


def roots(formulas, name, deps):
    root = os.path.join(formulas, name)
    tests = [os.path.join(root, x) for x in ('test/salt/states', 'test/salt')]
    return [root] + [p for p in tests if os.path.isdir(p)] + [os.path.join(formulas, d) for d in deps]


def free_ports():
    sockets = [socket.socket() for _ in range(2)]
    for s in sockets:
        s.bind(('127.0.0.1', 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def lay_out(t, answers, case, formulas):
    """The settings of both sides, the top file, and the pillar as stock Salt compiled it."""
    for d in ('srv', 'pillar', 'stock', 'brine/conf', 'brine/master'):
        os.makedirs(os.path.join(t, d))
    dump = lambda path, value: open(os.path.join(t, path), 'w').write(json.dumps(value))
    dump('srv/top.sls', case['top'])
    pillar = answers['pillars'][case['pillar']]
    dump('pillar/top.sls', {'base': {'*': ['data']}})
    # JSON is YAML; nothing in it is a template.
    open(t + '/pillar/data.sls', 'w').write('#!yaml\n' + json.dumps(pillar))
    files = {'file_roots': {'base': [t + '/srv'] + roots(formulas, answers['formula'], answers['deps'])}, 'pillar_roots': {'base': [t + '/pillar']}}
    grains = {'roles': ['web']}
    publish, request = free_ports()
    dump('stock/minion', {'id': 'web1', 'file_client': 'local', 'root_dir': t + '/run-stock', 'grains': grains, 'enable_fqdns_grains': False, **files})
    dump('brine/master/master', {'root_dir': t + '/run-master', 'interface': '127.0.0.1', 'auto_accept': True, 'user': 'root',
                                 'publish_port': publish, 'ret_port': request, **files})
    dump('brine/conf/minion', {'id': 'web1', 'master': '127.0.0.1', 'master_port': request, 'publish_port': publish, 'root_dir': t + '/run-minion', 'grains': grains, 'user': 'root',
                               'sandbox': {'profiles': ['states']}})


def side(t, name, calls, prepare):
    """Runs one side's calls in a root of its own. Returns their results and the files that they left."""
    own = tempfile.mkdtemp(prefix='root-', dir=t)
    hold = subprocess.Popen(['unshare', '-mpf', '--kill-child', '--propagation', 'private', 'sh', HOLD, own], stdout=subprocess.PIPE, text=True)
    try:
        if hold.stdout.readline() != 'ready\n':
            sys.exit('no overlay in namespaces of its own')
        first = open('/proc/%d/task/%d/children' % (hold.pid, hold.pid)).read().strip()
        env = {'PATH': PATHS, 'HOME': '/root', 'LANG': 'C.UTF-8', 'DEBIAN_FRONTEND': 'noninteractive', 'PYTHONHASHSEED': '0'}

        def run(argv, out, timeout):
            command = ['nsenter', '-t', first, '-m', '-p', '-r', '--wdns=/', 'setpriv', '--bounding-set', NOT, '--inh-caps', NOT] + argv
            with open(out, 'w') as o, open(out + '.err', 'w') as e:
                return subprocess.run(['timeout', str(timeout)] + command, stdin=subprocess.DEVNULL, stdout=o, stderr=e, env=env).returncode
        if prepare:
            run(['sh', '-c', prepare], '%s/%s.prepare' % (t, name), 60)
        result = {}
        for run_name, argv, timeout in calls:
            out = '%s/%s.%s' % (t, name, run_name)
            result[run_name + '_rc'] = run(argv, out, timeout)
            text = open(out).read()
            try:
                result[run_name] = json.loads(text)['local']
            except (ValueError, KeyError):
                result[run_name] = {'!unreadable': text[-2000:] + open(out + '.err').read()[-2000:]}
            if run_name == 'test':
                result['written'] = changed(run, t)
        result['files'] = files(run, t)
        return result
    finally:
        hold.kill(), hold.wait()
        shutil.rmtree(own, ignore_errors=True)


def changed(run, t):
    """All that is in the upper layer, but this script's own folder and the directories that lead somewhere."""
    out = t + '/changed'
    run(['sh', '-c', 'cd /run/changed && find . ! -type d -o -empty | LC_ALL=C sort'], out, 60)
    paths = [line[1:] for line in open(out).read().splitlines()]
    # A directory of the host that has nothing new in it led to something that is gone.
    return [p for p in paths if p and not p.startswith(t + '/') and not os.path.isdir(p)]


def files(run, t):
    """Files below the folders that states write to: kind, mode, owner, hash."""
    out = t + '/files'
    look = "cd /run/changed && find etc usr/local srv home opt var/spool var/lib/misc root ! -type d -printf '%y %m %u:%g /%p\\t%l\\n' 2>/dev/null | LC_ALL=C sort -k4"
    run(['sh', '-c', look], out, 60)
    found = {}
    for line in open(out).read().splitlines():
        kind, mode, owner, rest = line.split(' ', 3)
        path, link = rest.split('\t')
        if not NOISE.match(path):
            found[path] = [kind, mode, owner, link]
    # The first lines of a crontab have the time, and the name of the file that it was made from; the minute of a job may be a random one.
    crontabs = (r"for f in var/spool/cron/crontabs/*; do [ ! -f $f ] || echo $(sed -E '/^# \(.* installed on /d; s/^(#DISABLED#)?[0-9]+ /\1MINUTE /' $f"
                " | sha256sum | cut -d' ' -f1) '' $f; done")
    hashes = 'find etc usr/local srv home opt var/spool var/lib/misc root -type f ! -path "var/spool/cron/crontabs/*" -exec sha256sum {} + 2>/dev/null'
    run(['sh', '-c', 'cd /run/changed && { %s; %s; }' % (hashes, crontabs)], out, 60)
    for line in open(out).read().splitlines():
        if '/' + line[66:] in found:
            found['/' + line[66:]].append(line[:64])
    return found


def normal(value, t):
    """A result without what differs by run: times, process ids, the folder of this run. Of an exception, stock Salt has Python's traceback."""
    if isinstance(value, dict):
        return {k: normal(v, t) for k, v in value.items() if k not in ('start_time', 'duration', 'pid', 'plan', 'usage')}
    if isinstance(value, list):
        return [normal(v, t) for v in value]
    if isinstance(value, str):
        value = re.sub(re.escape(t) + r'/run-(stock|minion)', '/RUN', value)
        # An exception: Salt shows where it was raised, and what it says is on its last lines. Brine says that in one line.
        raised = re.match(r'(An exception occurred in this state: )Traceback .*\n[\w.]*(?:Error|Exception): (.*)', value, re.S)
        value = value if not raised else raised[1] + raised[2].rstrip().replace('\n', '\\n')
        # Sets in Salt, without an order: directories and files of `file.recurse`, and what failed.
        if value.startswith('#### '):
            value = '\n\n#### '.join(sorted(value[5:].rstrip().split('\n\n#### ')))
        names = re.match(r'(One or more requisite failed: )(.*)', value, re.S)
        value = value if not names else names[1] + ', '.join(sorted(names[2].split(', ')))
        return re.sub(r'0x[0-9a-f]{8,}', '0xADDR', re.sub(r'/tmp/[\w.]{6,}', '/tmp/NAME', value))
    return value


def other_files(a, b):
    return [path for path in sorted(set(a) | set(b)) if a.get(path) != b.get(path) and not NOISE.match(path)]


def differences(stock, brine, t):
    found = []
    for run, _, _ in RUNS:
        a, b = normal(stock[run], t), normal(brine[run], t)
        if not isinstance(a, dict) or not isinstance(b, dict):
            found += [] if a == b else ['%s: %s, not %s' % (run, str(b)[:300], str(a)[:300])]
            continue
        for tag in list(a) + [tag for tag in b if tag not in a]:
            if tag not in a or tag not in b:
                found.append('%s: %s is %s: %s' % (run, tag, 'missing' if tag in a else 'more', str(a.get(tag, b.get(tag)))[:600]))
                continue
            x, y = a[tag], b[tag]
            if not isinstance(x, dict) or not isinstance(y, dict):
                found += [] if x == y else ['%s: %s: %s, not %s' % (run, tag, y, x)]
                continue
            for key in ('result', 'changes', 'comment'):
                if x.get(key) != y.get(key):
                    found.append('%s: %s: %s: %s\n        not %s' % (run, tag, key, str(y.get(key))[:700], str(x.get(key))[:700]))
    a, b = stock['files'], brine['files']
    for path in other_files(a, b):
        x, y = a.get(path), b.get(path)
        if x and y and x[:4] == y[:4] and path in stock.get('varying', ()):
            continue
        found.append('file %s: %s, not %s' % (path, y, x))
    found += ['test=True wrote %s' % path for path in brine['written']]
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ('bin', 'python', 'formulas', 'out'):
        p.add_argument(name)
    p.add_argument('-v', action='store_true', help='each difference'), p.add_argument('--only', default='', help='a pattern of NAME-CASE, such as users-.*')
    p.add_argument('--keep-stock', action='store_true')
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    formulas, binaries, out = (os.path.abspath(x) for x in (a.formulas, a.bin, a.out))
    good = tried = 0
    for name, case_name in SUITES:
        suite = '%s-%s' % (name, case_name.split(':')[1])
        if a.only and not re.fullmatch(a.only, suite):
            continue
        answers = A.read(os.path.join(HERE, 'answers/debian12/%s-formula.json.xz' % name))
        case = next(c for c in answers['cases'] if c['case'] == case_name)
        t = tempfile.mkdtemp(prefix='apply-', dir=out)
        lay_out(t, answers, case, formulas)
        salt_call = os.path.join(os.path.dirname(os.path.abspath(a.python)), 'salt-call')
        common = ['--out=json', '-l', 'quiet', '--retcode-passthrough', 'state.apply']
        stock_call = [os.path.abspath(a.python), salt_call, '-c', t + '/stock', '--local'] + common
        calls_of_stock = [(n, stock_call + more, time) for n, more, time in RUNS]
        stock_file = '%s/%s.stock.json' % (out, suite)
        if a.keep_stock and os.path.exists(stock_file):
            stock = json.load(open(stock_file))
        else:
            stock = json.loads(json.dumps(side(t, 'stock', calls_of_stock, None)).replace(t, '/TMP'))
            json.dump(stock, open(stock_file, 'w'), indent=1)
        master = shlex.join([binaries + '/salt-master', '-c', t + '/brine/master', '-l', 'warning'])
        prepare = '%s >%s/master.out 2>&1 & for n in $(seq 100); do [ -S %s/run-master/var/run/salt/master/master_event_pub.ipc ] && break; sleep 0.1; done' % (master, t, t)
        call = [binaries + '/salt-call', '-c', t + '/brine/conf'] + common
        brine = side(t, 'brine', [(n, call + more, time) for n, more, time in RUNS], prepare)
        brine = json.loads(json.dumps(brine).replace(t, '/TMP'))
        json.dump(brine, open('%s/%s.brine.json' % (out, suite), 'w'), indent=1)
        if other_files(stock['files'], brine['files']) and 'varying' not in stock:
            once_more = side(t, 'stock', calls_of_stock[1:2], None)['files']
            stock['varying'] = other_files(stock['files'], json.loads(json.dumps(once_more).replace(t, '/TMP')))
            json.dump(stock, open(stock_file, 'w'), indent=1)
        found = differences(stock, brine, '/TMP')
        chunks = len(stock['apply']) if isinstance(stock['apply'], dict) else 0
        tried += 1
        good += not found
        print('%s: %d states, %s' % (suite, chunks, '%d differences' % len(found) if found else 'equal'), flush=True)
        for line in found if a.v else ():
            print('    ' + line)
        shutil.rmtree(t, ignore_errors=True)
    print('%d of %d suites are applied as by stock Salt' % (good, tried))
    return 1 if not a.only and good < GOAL else 0


if __name__ == '__main__':
    sys.exit(main())
