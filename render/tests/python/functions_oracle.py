#!/usr/bin/env python3
"""Stock Salt's answers to execution functions that only compute: functions_oracle.py > tests/data/functions.jsonl, with
the Python of a venv with salt==3008.3.

The first line is what the functions see. Each other line: the call, what it gives (Python's repr) or the error, and the
arguments afterwards, since some functions change them."""
import collections, copy, json, logging, sys, tempfile
logging.disable(logging.CRITICAL)
import salt.config, salt.exceptions, salt.loader, salt.utils.aggregation, salt.utils.secret

GRAINS = {
    'id': 'web1', 'os': 'Debian', 'os_family': 'Debian', 'osrelease': '12', 'osmajorrelease': 12, 'osfinger': 'Debian-12', 'oscodename': 'bookworm',
    'kernel': 'Linux', 'cpuarch': 'x86_64', 'num_cpus': 4, 'roles': ['web', 'db'], 'ipv4': ['10.0.0.7', '127.0.0.1'], 'ipv6': ['::1', 'fe80::1'],
    'systemd': {'version': '252', 'features': '+PAM'}, 'serialnumber': 'ABCDEFGH', 'host': 'web1', 'domain': 'example.com', 'fqdn': 'web1.example.com',
    'empty': {}, 'none': None, 'zero': 0, 'disks': [{'sda': 10}, {'sdb': 20}], 'number_keys': {'1': 'text', '2': 'two'}, 'a:b': 'colon', 'test.foo': 'grain',
}
PILLAR = {
    'role': 'front', 'apache': {'lookup': {'name': 'httpd', 'port': 80}, 'list': ['a', 'b'], 'deep': {'er': {'x': 1}}}, 'users': {'ann': {'uid': 1}, 'bob': {'uid': 2}},
    'list': [1, 2, {'k': 'v'}], 'empty': {}, 'zero': 0, 'no': False, 'none': None, 'text': 'plain', 'secret': 'hunter2',
    'master': {'master_opt': 'm', 'nested': {'x': 'from master'}, 'dot.one': 1, 'pillar_roots': {'base': ['/srv/pillar']}}, 'dot.two': 2, 'both': {'p': 1}, 'joined': ['p'],
    'os': 'pillar os', 'test.foo': 'pillar',
}
OPTS = {
    'both': {'o': 2, 'p': 3}, 'joined': ['o'], 'custom': {'a': {'b': 'deep opts'}}, 'dot.three': 3, 'dot.one': 'opts', 'text_opt': 'yes', 'sdb_value': 'sdb://x/y',
    'nodegroups': {'web': 'web*', 'both_groups': 'N@web and G@os:Debian', 'listed': ['web1', 'db1'], 'none': 'L@nobody'},
}

C = []


def c(fun, *args, **kwargs):
    C.append((fun, list(args), kwargs))


def calls():
    for key in ['os', 'nope', 'systemd:version', 'systemd', 'roles', 'roles:0', 'roles:-1', 'roles:7', 'disks:sdb', 'disks:0:sda', 'number_keys:1', 'number_keys:3', 'a:b', 'os:x', 'none', 'zero', 'empty', 'kernel:0', '', ':', 'systemd:', 12, ['systemd', 'version'], [], None, 1.5]:
        c('grains.get', key)
        c('grains.get', key, 'default')
        c('grains.has_value', key)
    c('grains.get', 'systemd|version', delimiter='|'), c('grains.get', 'systemd::version', delimiter='::'), c('grains.get', 'os', delimiter='')
    c('grains.get'), c('grains.get', 'os', 'a', ':', True, 5), c('grains.get', 'os', nope=1), c('grains.get', 'os', key='x'), c('grains.fetch', 'os'), c('grains.fetch')
    c('grains.items'), c('grains.items', sanitize=True), c('grains.items', sanitize='no'), c('grains.ls'), c('grains.ls', 1)
    c('grains.item', 'os'), c('grains.item', 'os', 'nope', 'systemd:version'), c('grains.item'), c('grains.item', 'nope', default=3), c('grains.item', 'host', 'serialnumber', sanitize=True), c('grains.item', 'systemd/version', delimiter='/')
    for a, b in [('os', 'Debian'), ('os', 'debian'), ('num_cpus', 4), ('num_cpus', '4'), ('nope', ''), ('roles', ['web', 'db']), ('none', None)]:
        c('grains.equals', a, b)
    c('grains.equals', 'os'), c('grains.equals')
    table = {'Debian': {'pkg': 'apache2', 'srv': {'a': 1}}, 'RedHat': {'pkg': 'httpd'}, 'default': {'pkg': 'none'}, 'base': {'base': True, 'pkg': 'base', 'srv': {'b': 2}}}
    c('grains.filter_by', table), c('grains.filter_by', table, 'os'), c('grains.filter_by', table, grain='nope'), c('grains.filter_by', table, default='RedHat', grain='nope'), c('grains.filter_by', table, base='base')
    c('grains.filter_by', table, merge={'pkg': 'merged', 'srv': {'z': 9}}), c('grains.filter_by', table, merge={}), c('grains.filter_by', table, merge=None), c('grains.filter_by', table, merge=['x']), c('grains.filter_by', table, base='missing')
    c('grains.filter_by', {'D*': 'glob', 'default': 'd'}), c('grains.filter_by', {'debian': 1}), c('grains.filter_by', {'12': 'twelve'}, grain='osrelease'), c('grains.filter_by', {'12': 'twelve'}, grain='osmajorrelease')
    c('grains.filter_by', {'web': 'w', 'db': 'd'}, grain='roles'), c('grains.filter_by', {'db': 'd'}, grain='roles'), c('grains.filter_by', {'nope': 1}, grain='roles', default='nope'), c('grains.filter_by', {'Debian': None, 'default': 'd'})
    c('grains.filter_by', {'Debian': 'text'}, merge={'a': 1}), c('grains.filter_by', {'Debian': 'text', 'base': {'a': 1}}, base='base'), c('grains.filter_by', {}, merge={'a': 1}), c('grains.filter_by', {'Debian': {'a': [1]}}, merge={'a': [2]})
    c('grains.filter_by', {'Debian-1[0-9]': 'x'}, grain='osfinger'), c('grains.filter_by', {'*': 'any'}, grain='nope'), c('grains.filter_by', {'': 'nothing', 'None': 'none'}, grain='none'), c('grains.filter_by'), c('grains.filter_by', None), c('grains.filter_by', {'252': 1}, grain='systemd:version'), c('grains.filter_by', ['Debian'])
    for key in ['role', 'nope', 'apache', 'apache:lookup:name', 'apache:lookup:nope', 'apache:list', 'apache:list:1', 'list:2:k', 'list:k', 'empty', 'zero', 'no', 'none', 'master:master_opt', 'users:ann:uid', '', None, 5]:
        for fun in ['pillar.get', 'pillar.fetch']:
            c(fun, key)
        c('pillar.get', key, 'default'), c('pillar.get', key, default={}), c('pillar.get', key, default=None), c('pillar.get', key, unmask=False), c('pillar.keys', key), c('pillar.raw', key)
        c('pillar.get', key, default={'lookup': {'name': 'd', 'extra': 1}, 'list': ['z']}, merge=True), c('pillar.get', key, default=['z', 'a', 1], merge=True), c('pillar.get', key, default='text', merge=True)
    c('pillar.get', 'apache', {'list': ['a', 'z']}, merge=True, merge_nested_lists=True), c('pillar.get', 'apache', {'list': ['a', 'z']}, merge=True, merge_nested_lists=False), c('pillar.get', 'apache|lookup', delimiter='|'), c('pillar.get'), c('pillar.get', 'a', nope=2), c('pillar.get', 'apache:lookup', {}, True)
    c('pillar.item', 'role'), c('pillar.item', 'role', 'apache:lookup', 'nope'), c('pillar.item', 'nope', default='d'), c('pillar.item'), c('pillar.item', 'apache/lookup', delimiter='/'), c('pillar.item', 'role', unmask=False), c('pillar.raw'), c('pillar.raw', 'apache:lookup'), c('pillar.keys'), c('pillar.keys', 'apache/lookup', delimiter='/')
    c('pillar.filter_by', {'front': {'x': 1}, 'default': {'y': 2}}, 'role'), c('pillar.filter_by', {'front': 1}, 'nope'), c('pillar.filter_by', {'x': 1, 'default': 'd'}, 'nope'), c('pillar.filter_by', {'front': {'x': 1}}, pillar='role', merge={'z': 1}), c('pillar.filter_by', {'front': 1})
    for key in ['both', 'os', 'nope', 'custom:a:b', 'custom', 'systemd:version', 'apache:lookup:port', 'master_opt', 'nested:x', 'test.foo', 'mongo.db', 'solr.cores', 'virt', 'virt:tunnel', 'joined', 'text_opt', 'role', 'sdb_value', 'id', 'num_cpus', 'roles', 'dot.one', None, 'none', 'zero']:
        c('config.get', key), c('config.get', key, 'default'), c('config.get', key, default={}), c('config.get', key, omit_opts=True), c('config.get', key, omit_grains=True, omit_opts=True), c('config.get', key, omit_pillar=True), c('config.get', key, omit_opts=True, omit_grains=True, omit_pillar=True), c('config.get', key, omit_opts=True, omit_grains=True, omit_pillar=True, omit_master=True)
        c('config.get', key, merge='recurse'), c('config.get', key, {}, merge='overwrite'), c('config.option', key), c('config.option', key, 'default'), c('config.option', key, omit_opts=True), c('config.option', key, omit_all=True), c('config.merge', key), c('config.merge', key, 'default'), c('config.merge', key, omit_opts=True), c('config.merge', key, omit_pillar=True, omit_master=True)
    c('config.get', 'custom/a/b', delimiter='/'), c('config.get'), c('config.option', 'dot.*', wildcard=True), c('config.option', 'mongo.*', wildcard=True), c('config.option', 'zzz*', wildcard=True), c('config.option', 'zzz*', default='x', wildcard=True), c('config.option', 'dot.*', wildcard=True, omit_opts=True)
    c('config.dot_vals', 'dot'), c('config.dot_vals', 'nope'), c('config.valid_fileproto', 'salt://x'), c('config.valid_fileproto', 'http://x'), c('config.valid_fileproto', '/x'), c('config.valid_fileproto', 'gopher://x'), c('config.backup_mode', 'minion'), c('config.get', 'os', 1, 2, 3, 4, 5, 6, 7, 8, 9)
    a, b = {'a': 1, 'd': {'x': 1, 'l': [1, 2]}, 'l': [1, {'q': 1}]}, {'a': 2, 'd': {'y': 2, 'l': [2, 3]}, 'l': [{'q': 1}, 5], 'new': {'n': None}}
    for fun in ['slsutil.merge', 'slsutil.update', 'defaults.merge']:
        for x, y in [(a, b), (b, a), ({}, b), (a, {}), ({'a': {}}, {'a': 1}), ({'a': 1}, {'a': {'x': 1}}), ({'a': None}, {'a': {'x': 1}}), ({'a': [1]}, {'a': {'x': 1}}), (None, {}), ({}, None), ([1], [2]), ('a', {}), ({'d': {'x': 1}}, {'e': {'x': 2}})]:
            c(fun, x, y), c(fun, x, y, merge_lists=True)
            if fun == 'slsutil.merge':
                for strategy in ['smart', 'recurse', 'overwrite', 'list', 'none', 'aggregate', 'unknown']:
                    c(fun, x, y, strategy), c(fun, x, y, strategy=strategy, merge_lists=True)
            if fun == 'slsutil.update':
                c(fun, x, y, False), c(fun, x, y, recursive_update=False)
            if fun == 'defaults.merge':
                c(fun, x, y, in_place=False), c(fun, x, y, in_place=False, convert_none=False), c(fun, x, y, False, False, False)
    c('slsutil.merge', a, b, renderer='yamlex'), c('slsutil.merge', a), c('slsutil.merge'), c('slsutil.merge_all', [a, b, {'z': 1}]), c('slsutil.merge_all', []), c('slsutil.merge_all', [a, b], 'overwrite'), c('slsutil.merge_all', [a, b], merge_lists=True), c('slsutil.merge_all', [a, 'x']), c('slsutil.merge_all', 5)
    c('slsutil.boolstr', True), c('slsutil.boolstr', False), c('slsutil.boolstr', 0, 'on', 'off'), c('slsutil.boolstr', 'x', true='on'), c('slsutil.boolstr', '', false='off'), c('slsutil.boolstr')
    c('defaults.deepcopy', a), c('defaults.deepcopy', 'x'), c('defaults.update', {'n1': {'a': 1}, 'n2': {}}, {'a': 0, 'l': [1]}), c('defaults.update', {'n1': {'l': [2]}}, {'l': [1]}), c('defaults.update', {'n1': {'l': [2]}}, {'l': [1]}, merge_lists=False), c('defaults.update', {'n1': None}, {'a': 1}), c('defaults.update', {'n1': {}}, None), c('defaults.update', None, {}), c('defaults.update', None, {}, in_place=False), c('defaults.update', {'n': {}}, {'a': {'b': 1}}, in_place=False)
    targets = ['web1', 'web*', 'db*', '*', 'web[0-9]', 'web1,db1', 'db1,web1', 'L@web1,db1', 'G@os:Debian', 'G@os:RedHat', 'G@os:Deb* and web*', 'not G@os:Debian', 'P@os:(Debian|Ubuntu)', 'I@role:front', 'I@role:fr*', 'J@role:f.*t', 'E@web.', 'S@10.0.0.0/8', 'S@10.0.0.7', 'S@192.168.0.0/16', 'N@web', 'N@both_groups', 'N@none', 'N@nope', 'N@listed',
               'web* or db*', 'web* and not db*', '( web* or db* ) and G@os:Debian', 'and', 'web1 and', '', 'os:Debian', 'os:debian', 'os:Deb*', 'roles:web', 'roles:*', 'roles:nope', 'systemd:version:252', 'systemd:version', 'role:front', 'role:f*', 'users:ann:uid:1', 'users:*:uid:2', 'nope:x', '10.0.0.7', '10.0.0.0/8', 'fe80::/10', '::1', 'nonsense', 'G@roles:web and I@users:bob:*', '(', 'os', 'number_keys:1:text', 'none:None', 'zero:0', 5, None, ['web1', 'db1'], ['web*']]
    for fun in ['compound', 'glob', 'pcre', 'list', 'grain', 'grain_pcre', 'pillar', 'pillar_pcre', 'ipcidr']:
        for t in targets:
            c('match.' + fun, t)
    c('match.compound', 'web*', 'db1'), c('match.glob', 'web*', minion_id='db1'), c('match.list', 'db1,x', 'db1'), c('match.pcre', 'db.', 'db1'), c('match.grain', 'os|Debian', '|'), c('match.grain', 'os|Debian', delimiter='|'), c('match.pillar', 'users|ann|uid|1', delimiter='|'), c('match.grain'), c('match.glob')
    c('match.filter_by', {'db*': 1, 'web*': 2}), c('match.filter_by', {'db*': 1, 'default': 'd'}), c('match.filter_by', {'db*': 1}), c('match.filter_by', {'G@os:Debian': {'a': 1}}, merge={'b': 2}), c('match.filter_by', {'os:Debian': 'x'}, 'grain'), c('match.filter_by', {'web1': None}, merge={'b': 2}), c('match.filter_by', {'web1': {}}, merge=[1]), c('match.filter_by', {'web1': 1}, 'list'), c('match.filter_by', {'web1': 1}, 'list_'), c('match.filter_by', {'db*': 1}, minion_id='db7')
    c('match.search_by', {'a': ['web*'], 'b': ['db*'], 'c': ['db*', 'G@os:Debian']}), c('match.search_by', {'a': ['db*']}), c('match.search_by', {'a': ['os:Debian']}, 'grain'), c('match.ifelse', 'web*', 'is web', 'other'), c('match.ifelse', 'db*', 'is db', 'other'), c('match.ifelse', True, 'yes', 'no'), c('match.ifelse', False, 'yes', 'no'), c('match.ifelse', 'only'), c('match.ifelse', 'a', 'b'), c('match.ifelse', 'db*', 1, 'G@os:Debian', 2, 3)
    for p in ['/a/b/c', 'a', '', '/', '//a', 'a/', '/a//b', '/a/../b', 'a/./b/', '../a', 5, None]:
        c('file.dirname', p), c('file.basename', p), c('file.normpath', p), c('file.join', p), c('file.join', '/x', p), c('file.join', 'x', 'y', p)
    c('file.join'), c('file.dirname'), c('file.pardir'), c('log.debug', 'x'), c('log.info', 'x'), c('log.warning', 'x'), c('log.error', 'x'), c('log.critical', {'a': 1}), c('log.debug'), c('log.nope', 'x')
    c('test.ping'), c('test.echo', 'x'), c('test.echo', [1]), c('test.echo'), c('test.true'), c('test.false'), c('test.kwarg', a=1, b=[2]), c('test.arg', 1, 'a', b=2), c('test.outputter', {'a': 1}), c('test.exception', 'boom'), c('test.ping', 1), c('test.true', 1)
    for f in ['md5_digest', 'sha256_digest', 'sha512_digest', 'base64_b64encode', 'base64_b64decode', 'base64_encodestring', 'base64_decodestring']:
        for v in ['', 'get salted', 'Z2V0IHNhbHRlZA==', 'Z2V0IHNhbHRlZA', 'a', 'ab', 'abc', 'é' * 60, 'Z2V0\nIHNh', '!!!!', '/w==', 5]:
            c('hashutil.' + f, v)
    for ip in ['172.17.0.5', '172.17.0.5/28', '127.0.0.1', '8.8.8.8', '192.0.0.9', '255.255.255.255', '0.0.0.0/0', '::1', '2001:db8::5/64', '::ffff:8.8.8.8', '::ffff:10.0.0.1', 'fe80::1', 'fc00::/7', '2a00::1', '', 'x', '010.0.0.1', '10.0.0.1/33', '10.0.0.1/255.0.255.0', '10.0.0.9/0.0.0.7', 167772161]:
        for f in ['calc_net', 'convert_cidr', 'is_private', 'is_loopback', 'reverse_ip']:
            c('network.' + f, ip)
        c('network.ip_in_subnet', ip, '172.16.0.0/12'), c('network.ip_in_subnet', '172.17.0.5', ip)
    c('network.calc_net', '172.17.0.5', '255.255.255.240'), c('network.calc_net', '172.17.0.5', 12), c('network.calc_net', '172.17.0.5', netmask='12'), c('network.calc_net'), c('network.calc_net', '::1', '64'), c('network.calc_net', '172.17.0.5', 'x'), c('network.calc_net', '172.17.0.5/8', '12'), c('network.calc_net', '172.17.0.5', None)
    c('network.ip_in_subnet', ['10.0.0.1', '172.17.0.5'], '172.16.0.0/12'), c('network.ip_in_subnet', [], '172.16.0.0/12'), c('network.ip_in_subnet', '10.0.0.1', 'x'), c('network.ip_in_subnet', '10.0.0.1')
    c('network.iphexval', '10.0.0.1'), c('network.iphexval', '255.255.255.255'), c('network.iphexval', 'x'), c('network.iphexval', ''), c('network.iphexval', '300.1')
    c('hashutil.digest', 'x'), c('hashutil.digest', 'x', 'sha256'), c('hashutil.digest', 'x', 'nope'), c('hashutil.hmac_compute', 'x', 'k'), c('hashutil.hmac_signature', 'get salted', 'shared secret', 'eBWf9bstXg+NiP5AOwppB5HMvZiYMPzEM9W5YMm/AmQ='), c('hashutil.hmac_signature', 'x', 'k', 'no')


def known_class(value):
    """The strategy `aggregate` gives classes of its own, which print as YAML."""
    if isinstance(value, salt.utils.aggregation.Map):
        return collections.OrderedDict(value)
    return list(value) if isinstance(value, salt.utils.aggregation.Sequence) else value


def main():
    with tempfile.TemporaryDirectory() as tmp:
        opts = salt.config.DEFAULT_MINION_OPTS.copy()
        opts.update(cachedir=tmp, extension_modules=tmp, id='web1', file_client='local', pillar_roots={}, file_roots={}, conf_file=tmp + '/minion', saltenv='base', pillarenv=None)
        keep = {k: opts[k] for k in ('id', 'saltenv', 'pillarenv', 'pillar_merge_lists', 'pillar_raise_on_missing', 'file_client', 'master', 'renderer')if k in opts}
        opts.update(OPTS)
        opts['grains'] = GRAINS
        opts['pillar'] = salt.utils.secret.hide(copy.deepcopy(PILLAR))
        print(json.dumps({'id': 'web1', 'grains': GRAINS, 'pillar': PILLAR, 'opts': {**keep, **OPTS}}))
        calls()
        mods = salt.loader.minion_mods(opts, utils=salt.loader.utils(opts))
        salt.utils.secret.mask_pillar.set(False)
        known = []
        for fun, args, kwargs in C:
            if fun == 'config.merge':
                # it changes the pillar
                opts['pillar'] = salt.utils.secret.hide(copy.deepcopy(PILLAR))
                mods = salt.loader.minion_mods(opts, utils=salt.loader.utils(opts))
            given = copy.deepcopy((args, kwargs))
            line = {'call': fun, 'args': given[0], 'kwargs': given[1]}
            a, k = copy.deepcopy((args, kwargs))
            try:
                line['ret'] = repr(known_class(mods[fun](*a, **k)))
            except (salt.exceptions.CommandExecutionError, salt.exceptions.SaltInvocationError) as e:
                line['error'], line['refused'] = str(e), True
            except Exception as e:
                line['error'] = str(e)
            if (a, k) != given:
                line['after'] = repr(a), repr(k)
            text = json.dumps(line)
            if text not in known and '/tmp' not in text:
                known.append(text)
                print(text)


if __name__ == '__main__':
    main()
