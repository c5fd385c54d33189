#!/usr/bin/env python3
"""Stock Salt's answers to templates: jinja_oracle.py > tests/data/jinja.jsonl, with the Python of a venv with salt==3008.3.

Each line: template, and output or error. The context is CONTEXT; errors lose Python's traceback."""
import copy, json, logging, sys
logging.disable(logging.CRITICAL)
import salt.exceptions
from salt.utils.templates import render_jinja_tmpl

CONTEXT = {
    'a': 1, 'b': 2.5, 's': 'Hello World', 'l': [3, 1, 2], 'n': None, 't': True, 'e': [], 'd': {'x': 1, 'y': {'z': 'deep'}},
    'words': ['apple', 'Banana', 'cherry', 'apple'], 'users': [{'name': 'bob', 'uid': 2}, {'name': 'ann', 'uid': 1}],
    'text': 'one\ntwo\n\nthree',
}

EXPRESSIONS = r"""
1 + 2 * 3|7 // 2|-7 // 2|7 % 3|-7 % 3|7 / 2|2 ** 10|2 ** -1|2 ** 3 ** 2|-2 ** 2|1.0|1e3|1e16|0.1 + 0.2|10 // 2.5|5.5 % 2|1_000|0x1f|0b11
1 / 0|1 // 0|1 % 0|1.0 / 0|'a' + 1|1 + 'a'|[1] + 1|'a' * 3|[0] * 2|(1, 2) + (3,)|'a' - 'b'|-'a'|'a' * 'b'
a|b|s|l|n|t|e|d|x|d.x|d.y.z|d['y']['z']|d.nope|d.y.nope|d['nope']|l[0]|l[-1]|l[9]|s[0]|n.x|x.y|a.b|s.nope|d.items|l.0
true|false|none|True|None|[]|{}|()|(1,)|(1, 2)|[1, 'a', None, 2.0]|{'a': 1, 2: 'b'}|{'k': [1, {'m': 'n'}]}|'it\'s'|"q\"q"|'a\nb'|['a\nb']|{'a': 'x\ny'}
1 < 2|1 < 2 < 3|3 > 2 > 2|1 == 1.0|1 == true|'a' == 'a'|[1] == [1]|{'a': 1} == {'a': 1}|'a' < 'b'|1 < 'a'|[1, 2] < [1, 3]|n < 1|1 != 2|not 1|not not 0
1 in l|5 in l|'x' in d|'ell' in s|1 in s|1 not in l|a in n|t and a|0 or 'x'|n or e or 'last'|1 if t else 2|1 if n|'x' if false else 'y'
a ~ b|s ~ n ~ t|[1] ~ {'a': 1}|l[1:]|l[:1]|l[::-1]|s[1:4]|s[::-1]|s[-3:]|l[::0]|(1,2,3)[1:]|d[1:]
'%s' % 'a'|'%s-%d' % ('a', 3)|'%05.2f' % 3.14159|'%(k)s' % {'k': 'v'}|'%x %X %o' % (255, 255, 8)|'%5s|' % 'a'|'%-5s!' % 'a'|'%d' % 'a'|'%s %s' % 'a'|'%s' % ('a', 'b')|'%%' % ()|'%r' % 'a'|'%e' % 12345.678|'%g' % 0.00001
'{}'.format(1)|'{0} {1} {0}'.format('a', 'b')|'{x}'.format(x=1)|'{:>5}'.format('a')|'{:05d}'.format(42)|'{:.2f}'.format(3.14159)|'{:,}'.format(1234567)|'{:x}'.format(255)|'{:^7}'.format('a')|'{!r}'.format('a')|'{a[x]}'.format(a=d)|'{}'.format()|'{:d}'.format('a')|'{{}}'.format()|'{:*^9}'.format('mid')|'{:%}'.format(0.25)|'{:+d}'.format(3)|'{:#x}'.format(255)
s.upper()|s.lower()|s.split()|s.split('o')|s.split('o', 1)|s.rsplit('o', 1)|'a,b,,c'.split(',')|'  a b '.split()|'a b c'.rsplit(None, 1)|text.splitlines()|','.join(['a', 'b'])|','.join([1])|'  x '.strip()|'xxaxx'.strip('x')|'xxa'.lstrip('x')|'axx'.rstrip('x')|s.partition(' ')|s.rpartition('o')|s.partition('q')|s.rpartition('q')|s.replace('o', '0')|s.replace('o', '0', 1)|s.startswith('He')|s.startswith(('x', 'He'))|s.endswith('ld')|s.startswith(1)
s.find('o')|s.rfind('o')|s.find('q')|s.index('q')|s.count('l')|'5'.zfill(3)|'-5'.zfill(4)|'a'.center(5)|'ab'.center(5)|'a'.ljust(3) ~ '!'|'a'.rjust(3, '.')|'hello world'.title()|"it's".title()|'hELLO'.capitalize()|'aB'.swapcase()|'12'.isdigit()|'ab'.isalpha()|'a1'.isalnum()|'AB'.isupper()|'ab'.islower()|''.isdigit()|s.nope()|'a'.encode('utf-8')
d.get('x')|d.get('q')|d.get('q', 5)|d.keys()|d.values()|d.items()|d.keys()|list|d.items()|list|d.copy()|d.pop('x')|d.pop('q')|d.pop('q', 1)|d.setdefault('w', 3)|d.update({'x': 9})|d.popitem()|l.append(4)|l.pop()|l.index(1)|l.index(7)|l.count(3)|l.sort()|l.insert(0, 1)|l.remove(9)|l.extend([1])|e.pop()|l.copy()|(1,2).index(2)|d.has_key('x')
s|upper|s|length|l|length|a|length|n|default('x')|x|default('x')|n|default('x', true)|''|default('y', true)|l|sort|l|sort(reverse=true)|words|sort|words|sort(case_sensitive=true)|users|sort(attribute='name')|[1, 'a']|sort|l|join('-')|users|join(', ', attribute='name')|l|first|l|last|e|first|e|last|words|unique|words|map('upper')|list|users|map(attribute='name')|list|users|map(attribute='q', default='-')|list
l|select('odd')|list|l|reject('odd')|list|users|selectattr('uid', 'equalto', 1)|list|users|rejectattr('uid', '>', 1)|map(attribute='name')|list|l|sum|users|sum(attribute='uid')|l|min|l|max|e|min|d|dictsort|{'b': 1, 'A': 2}|dictsort|{'b': 1, 'A': 2}|dictsort(true)|{'b': 1, 'a': 2}|dictsort(false, 'value')|l|reverse|list|s|reverse|d|items|list|l|batch(2)|list|range(7)|batch(3, 'x')|list|range(7)|slice(3)|list|range(8)|slice(3, 'x')|list|users|groupby('uid')|list
'5'|int|'x'|int|'x'|int(7)|'0x1f'|int(0, 16)|'3.7'|int|3.9|int|n|int|'2.5'|float|'x'|float|-3|abs|2.567|round(2)|2.5|round|3.5|round|7|round|2.1|round(0, 'ceil')|2.9|round(0, 'floor')|5|string|'<a>'|e|'a b'|urlencode|'%s!'|format('x')|'a\nb'|indent|'a\nb'|indent(2, true)|'a\n\nb'|indent(2)|'a\n\nb'|indent(2, false, true)|'a b c d'|wordcount|'aaa bbb ccc'|truncate(5, true, '..', 0)|s|replace('o', '0')|s|trim|'  x '|trim|'xax'|trim('x')|s|title|"it's a-test"|title|'hELLO'|capitalize|'x'|center(5)
'The quick-brown fox -- jumped--over the lazy dog, and well-known-to-all a_very_long_word_here_that_does_not_fit x-y-z -option'|wordwrap|'The quick-brown fox -- jumped--over the lazy dog, and well-known-to-all a_very_long_word_here_that_does_not_fit x-y-z -option'|wordwrap(10)|'The quick-brown fox -- jumped--over the lazy dog, and well-known-to-all a_very_long_word_here_that_does_not_fit x-y-z -option'|wordwrap(10, false)|'The quick-brown fox -- jumped--over the lazy dog, and well-known-to-all a_very_long_word_here_that_does_not_fit x-y-z -option'|wordwrap(width=12, break_long_words=False, wrapstring='~')|'The quick-brown fox -- jumped--over the lazy dog, and well-known-to-all a_very_long_word_here_that_does_not_fit x-y-z -option'|wordwrap(7, break_on_hyphens=false)|'The quick-brown fox -- jumped--over the lazy dog, and well-known-to-all a_very_long_word_here_that_does_not_fit x-y-z -option'|wordwrap(1)|'  a  b  c  '|wordwrap(3)|'a\tb c\x0bd'|wordwrap(3)|text|wordwrap(4, wrapstring='; ')|'a\r\nb\x1cc\u2028d'|wordwrap(5)|''|wordwrap(0)|'a'|wordwrap(0)|'a'|wordwrap(-1)|5|wordwrap|n|wordwrap|'---- ----'|wordwrap(3)|'ab-cd-ef-gh'|wordwrap(4)|'a-b-c-def-g'|wordwrap(5)|'aa--bb---cc -d'|wordwrap(4)|'\u00e9t\u00e9-\u00e9t\u00e9 stra\u00dfe'|wordwrap(5)|'a1-b2 don-t_x'|wordwrap(4)|'x'|wordwrap('5')|'a b c d'|wordwrap(3, wrapstring=none)
d|yaml|d|yaml(false)|l|yaml|'a: b'|yaml|'yes'|yaml|n|yaml|5|yaml|s|yaml|[1, [2, {'a': 'b'}]]|yaml(false)|d|json|l|json|{'b': 1, 'a': '<\u00e9>'}|json|{'b': 1}|json(indent=2)|d|tojson|'<a>'|tojson|{'b': 1, 'a': 2}|tojson|t|tojson|x|yaml|[x]|json
'{a: 1, b: [x, y]}'|load_yaml|'1'|load_yaml|'yes'|load_yaml|'0644'|load_yaml|'a: b: c'|load_yaml|'{"a": [1, null]}'|load_json|'nope'|load_json|'a'|load_text|'a"b'|yaml_dquote|"a'b"|yaml_squote|'x'|yaml_encode|5|yaml_encode|true|yaml_encode|{'a': 1, 'b': 'c'}|dict_to_sls_yaml_params
s|regex_replace('o', '0')|s|regex_replace('(\\w+) (\\w+)', '\\2 \\1')|s|regex_replace('HELLO', 'x', ignorecase=true)|s|regex_search('W(or)')|s|regex_search('W')|s|regex_search('q')|s|regex_match('H(.)')|s|regex_match('W')|'a.b'|regex_escape|5|regex_replace('a', 'b')|'abc'|regex_replace('(?P<x>b)', '[\\g<x>]')
d|traverse('y:z')|d|traverse('y:q', 'no')|{'a': [1, {'b': 2}]}|traverse('a:1:b')|d|traverse('y/z', delimiter='/')|'yes'|to_bool|'no'|to_bool|1|to_bool|0|to_bool|e|to_bool|'a b'|quote|'ab'|quote|"a'b"|quote|'x'|sequence|l|sequence
[1,2]|union([2,3])|[1,2]|intersect([2,3])|[1,2]|difference([2,3])|[1,2]|symmetric_difference([2,3])|[1,2,3]|avg|l|is_list|s|is_list|l|is_iter|words|sorted_ignorecase|[1,[2,[3,none]]]|flatten|[1,[2,[3]]]|flatten(1)|'/a'|path_join('b', 'c')|'5'|to_num|'5.5'|to_num|'x'|to_num|'ff'|is_hex|'zz'|is_hex|s|method_call('upper')|'a b'|contains_whitespace|'ap'|substring_in_list(words)
a is odd|a is even|6 is divisibleby 3|a is defined|x is defined|x is undefined|d.q is defined|n is none|t is boolean|t is true|a is integer|b is float|a is number|s is string|d is mapping|l is sequence|s is sequence|l is iterable|a is iterable|s is callable|l is list|(1,) is list|n is sameas none|'a' is in 'abc'|a is eq 1|a is equalto 1|a is gt 0|a is lt 0|'ab' is lower|'AB' is upper|s is match('H')|s is match('W')|'upper' is filter|'odd' is test|a is not defined|not a is defined|a is not odd
x + 1|x == 1|x in l|x|upper|x|length|x|list|x()|a()|s.upper|d.x.y|[x]|{'a': x}|x.y.z|l.x|d|nofilter|a is notest|a b|a +|(1|[1|{1|'a|1 +* 2|a.|d[|foo(|a is|-|a |&|$|{{|}|'a' 'b'
d|set_dict_key_value('y:z', 5)|d|set_dict_key_value('q:r', 1)|d|set_dict_key_value('q/r', 1, '/')|d|append_dict_key_value('l', 1)|d|append_dict_key_value('x', 1)|d|extend_dict_key_value('y:m', [1, 2])|d|extend_dict_key_value('y:m', 5)|d|update_dict_key_value('y', {'n': 1})|d|update_dict_key_value('x', {'n': 1})|d|update_dict_key_value('y', 5)
{'a': 1}|compare_dicts({'a': 2})|{'a': 1}|compare_dicts({'a': 1})|{'a': 1}|compare_dicts({'b': 1})|length|[1, 2]|compare_lists([2, 3])|[1, 0]|exactly_n_true(1)|[1, 1]|exactly_n_true(2)|[1, 1]|exactly_one_true|d|to_entries|[3]|to_entries|5|to_entries|[{'key': 'a', 'value': 1}, {'Name': 'b', 'Value': 2}]|from_entries|['+--+', '| a | b |', '| 1 | x |']|mysql_to_dict('a')|{'a': ['b']}|json_encode_dict|['a', 1]|json_decode_list
'abc'|md5|'abc'|sha1|'abc'|sha256|'abc'|sha512|5|md5|'abc'|hmac_compute('k')|'get salted'|hmac('shared secret', 'eBWf9bstXg+NiP5AOwppB5HMvZiYMPzEM9W5YMm/AmQ=')|'abc'|base64_encode|'YWJj'|base64_decode|'YWJ'|base64_decode|'random'|uuid|'caf\u00e9'|uuid|'abc'|to_bytes|'10 MiB'|human_to_bytes|'1.5k'|human_to_bytes|'10MB'|human_to_bytes(handle_metric=true)|'x'|human_to_bytes|'7'|human_to_bytes|'5'|human_to_bytes('K')|'00:11:22:aa:BB:ff'|mac_str_to_bytes|'001122aabbff'|mac_str_to_bytes|'xx'|mac_str_to_bytes
'192.168.0.1'|is_ip|'::1'|is_ip|'x'|is_ip|'192.168.0.1'|is_ipv4|'::1'|is_ipv4|'::1'|is_ipv6|'192.168.0.1/24'|is_ipv4|'10.0.0.1'|is_ip('private')|'10.0.0.1'|is_ip('public')|'10.0.0.1'|is_ip('loopback, private')|'224.0.0.1'|is_ip('multicast')|'169.254.1.1'|is_ip('ll')|'fec0::1'|is_ip('sl')|'0.0.0.0'|is_ip('unspecified')|'240.0.0.1'|is_ip('reserved')
['192.168.0.1', '::1', 'x']|ipaddr|'192.168.0.1'|ipaddr|'x'|ipaddr|['192.168.0.1', '::1']|ipv4|['192.168.0.1', '::1']|ipv6|['10.0.0.1', '8.8.8.8']|ipv4('private')|5|ipv4|'192.168.0.1/28'|ip_host|['192.168.0.1/28', 'fe80::1/64']|ip_host|'x'|ip_host|'192.168.0.1/30'|network_hosts|'192.168.0.1/31'|network_hosts|'192.168.0.1'|network_hosts|'fe80::/126'|network_hosts|['192.168.0.1/30', '10.0.0.0/31']|network_hosts|'192.168.0.1/24'|network_size|'fe80::/64'|network_size|'192.168.0.1/255.255.255.0'|network_size|'::ffff:1.2.3.4'|ipaddr|'fe80::1'|ipwrap|['fe80::1', '10.0.0.1', 'x']|ipwrap|['10.0.0.1', '192.168.1.1']|filter_by_networks(['10.0.0.0/8'])|['10.0.0.1']|filter_by_networks(['10.0.0.1/8'])|{'eth0': ['10.0.0.1']}|filter_by_networks(['10.0.0.0/8'])|['x']|filter_by_networks(['10.0.0.0/8'])|['10.0.0.1']|filter_by_networks(none)
'camel_case_x'|to_camelcase|'camel_case_x'|to_camelcase(uppercamel=true)|'CamelCaseXML'|to_snake_case|'HTTPServerName'|to_snake_case|'web1'|check_whitelist_blacklist('web*')|'web1'|check_whitelist_blacklist(blacklist=['web[0-9]'])|'web1'|check_whitelist_blacklist(['db*'], ['x'])|'web1'|check_whitelist_blacklist|1000|filesizeformat|1|filesizeformat|1234567|filesizeformat|1234567|filesizeformat(true)|'x'|filesizeformat|{'a': 'b"', 'c': none}|xmlattr|{'a b': 1}|xmlattr
1040814000|strftime|'1040814000.5'|strftime|1040814000|strftime('%Y/%m/%d %H:%M:%S %j %a %A %b %B %p %I %y %U %W %w %%')|0|date_format('%d.%m.%Y')|'2002-12-25'|strftime('%A')|'2002/12/25'|strftime('%d')|'2002-12-25 10:20:30'|strftime('%H:%M:%S')
[1, 2, 3]|combinations(2)|list|[1, 2]|combinations_with_replacement(2)|list|[1, 2, 3]|permutations(2)|list|[1, 2, 3]|permutations|list|length|[1, 2]|product(['a', 'b'])|list|[1, 2]|product(repeat=2)|list|[1, 2]|product|list|[1, 2, 3]|compress([1, 0, 1])|list|[1, 2]|zip_longest(['a'])|list|[1, 2]|zip_longest(['a'], fillvalue='-')|list|[1, 2]|zip(['a', 'b'])|list
{'a': 1}|dictsort|first|users|groupby('name')|map(attribute='grouper')|list|'a'|combinations(2)|list|[]|permutations|list|range(3)|range(1, 4)|list|range(0, 10, 3)|list|range(5, 0, -2)|list|range(3)|list|range(1000000)|range('a')|range(1, 2, 0)|dict(a=1, b=2)|dict([('a', 1)])|odict(a=1)|cycler('a', 'b').next()|joiner()()|namespace(a=1).a|raise('boom')|dict(a=1).items()|list|lipsum is defined|(range(3)|list)[1]|range(3)[1]|2 in range(3)|range(3)|length
"""

TEMPLATES = [
    '{% if a == 1 %}one{% elif a == 2 %}two{% else %}many{% endif %}', '{% for i in l %}{{ i }},{% endfor %}', '{% for i in e %}x{% else %}empty{% endfor %}',
    '{% for i in l if i > 1 %}{{ loop.index }}:{{ i }} {% endfor %}', '{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}', '{% for k in d %}{{ k }}{% endfor %}',
    '{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}|{% endfor %}',
    '{% for i in l %}{{ loop.cycle("a", "b") }}{% endfor %}', '{% for i in [1,1,2] %}{{ loop.changed(i) }}{% endfor %}', '{% for i in l %}{{ loop.previtem|default("-") }}<{{ i }}>{{ loop.nextitem|default("-") }} {% endfor %}',
    '{% for i in [[1,[2,[3]]]] recursive %}{% if i is sequence %}({{ loop(i) }}){% else %}{{ i }}{% endif %}{% endfor %}', '{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}',
    '{% for i in l %}{% set a = i %}{% endfor %}{{ a }}', '{% set x = 1 %}{% if t %}{% set x = 2 %}{% endif %}{{ x }}', '{% set ns = namespace(n=0) %}{% for i in l %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}',
    '{% set x, y = 1, 2 %}{{ x }}{{ y }}', '{% set x, y = l %}', '{% set x %}body {{ a }}{% endset %}[{{ x }}]', '{% set x | upper %}body{% endset %}{{ x }}', '{% with x = 5, y = 6 %}{{ x + y }}{% endwith %}', '{% with %}{% set q = 1 %}{% endwith %}{{ q }}',
    '{% do l.append(9) %}{{ l }}', '{% do d.update({"w": 1}) %}{{ d }}', '{% set q = d %}{% do q.update({"m": 2}) %}{{ d }}', '{% set q = d.y %}{% do q.update(z=1) %}{{ d }}', '{% do [1].append(2) %}', '{% set z = [] %}{% for i in l %}{% do z.append(i * 2) %}{% endfor %}{{ z }}',
    '{% macro m(a, b=2) %}<{{ a }}{{ b }}>{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=4) }}', '{% macro m(a) %}{{ a }}{% endmacro %}{{ m() }}', '{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}', '{% macro m(a) %}{{ a }}{% endmacro %}{{ m(q=2) }}',
    '{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, z=3) }}', '{% macro m(a) %}[{{ caller(a) }}]{% endmacro %}{% call(x) m(7) %}got {{ x }}{% endcall %}', '{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}',
    '{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(4) }}', '{% macro m(n) %}{% endmacro %}{{ m.name }}{{ m.arguments }}', '{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(**{"a": 3, "b": 4}) }}',
    '{% filter upper %}abc {{ s }}{% endfilter %}', '{% raw %}{{ x }}{% endraw %}', '{% raw -%}  {{ x }}  {%- endraw %}', 'a {%- if t %} b {%- endif %} c', 'a {% if t -%} b {% endif -%} c', '{#- c -#} x', 'a\n{# c #}\nb', 'x\n', 'x\n\n', '', '\n', 'a\r\nb',
    '{% load_yaml as y %}\na: 1\nb: [x, 2]\n{% endload %}{{ y.b[1] }}{{ y }}', '{% load_json as j %}{"a": [1, 2.5, null]}{% endload %}{{ j }}', '{% load_text as x %} hi {% endload %}[{{ x }}]', '{% load_yaml as y %}a: [{% endload %}', '{% profile as "p" %}x{% endprofile %}',
    '#jinja2: {"trim_blocks": true}\n{% if t %}\nx\n{% endif %}\ny', '#!jinja|yaml\n#jinja2: {"lstrip_blocks": true, "trim_blocks": true}\n  {% if t %}\n  x\n  {% endif %}\ny', '{% block b %}hi{% endblock %}', '{% block b %}x{% endblock %}{{ self.b() }}',
    '{% include "missing" ignore missing %}ok', '{% if x is defined %}a{% else %}b{% endif %}', '{% if nope %}x{% endif %}', '{% for i in nope %}{% endfor %}', '{% for i in 5 %}{% endfor %}', '{% nope %}', '{% if %}', '{% if a %}', '{% endif %}', '{% for i in l %}{% endif %}',
    '{% for %}', '{% set %}', '{% set 1 = 2 %}', '{% macro %}', '{{', '{{ a', '{%', '{#', '{% raw %}', 'line1\nline2 {{ nope }}\nline3', 'line1\nline2 {{ nope.x }}\n\n', '{{ nope.x }}\r\nline2\r\n\r\n', '1\n2\n3\n4\n5\n6\n7\n8\n{{ d.q }}\n10\n11\n12\n13\n14\n15\n16', '{% macro m() %}\n{{ nope }}\n{% endmacro %}\n\n{{ m() }}',
    '{% set x = \n  nope + 1 %}', '{{ {"a": {"b": 1}} }}', '{{ {"a": [{"b": "x\\ny"}]} }}', '{% set x = ["a"] %}{{ x[0] ~ x }}', '{% print a, b %}', '{% autoescape false %}{{ "<" }}{% endautoescape %}', '{{ l|map("string")|join("") }}', '{% set a = a + 1 %}{{ a }}', '{% if d.items is defined %}m{% endif %}',
    '{% set l2 = l|list %}{% do l2.append(1) %}{{ l }}', '{% for i in l recursive %}{{ i }}{% endfor %}', '{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}', '{{ caller }}', '{{ loop }}', '{% set loop = 1 %}{{ loop }}', '{% for i in l %}{% for j in [1] %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}',
    '{{ "a" if a else "b" ~ "c" }}', '{{ not a == 2 }}', '{{ a is defined and b is defined }}', '{{ l[0] + l[1] * 2 - 1 }}', '{{ -a|abs }}', '{{ 2 * 3|string }}', '{{ (2 * 3)|string ~ "x" }}', '{{ a if a > 5 else (b if b > 5 else "none") }}',
    "{% for g, l in [{'g': 'Web'}, {'g': 'web'}, {'g': 'DB'}]|groupby('g') %}{{ g }}:{{ l|length }};{% endfor %}",
    "{% for g, l in [{'n': 1}, {'g': 'a'}, {'g': 'A'}, {'g': 'b'}]|groupby('g', default='z') %}{{ g }}:{{ l }};{% endfor %}",
]


def expressions():
    depth = 0
    for line in EXPRESSIONS.strip().split('\n'):
        parts, out = line.split('|'), []
        for p in parts:
            # a filter belongs to the expression before it
            name = p.split('(')[0].strip()
            if out and name in FILTERS and p == p.strip():
                out[-1] += '|' + p
            else:
                out.append(p)
        yield from out


def generated():
    values = ['1', '-3', '2.5', 'true', 'none', "'ab'", "''", '[1, 2]', '[]', "{'a': 1}", '(1, 2)', 'x']
    for op in ['+', '-', '*', '/', '//', '%', '**', '==', '!=', '<', '>=', 'in', 'and', 'or', '~']:
        for a in values:
            for b in values:
                yield '%s %s %s' % (a, op, b)
    for f in ['upper', 'length', 'int', 'float', 'string', 'list', 'first', 'last', 'join(",")', 'sort', 'reverse', 'sum', 'min', 'max', 'unique', 'default("D")', 'trim', 'title', 'abs', 'round', 'yaml', 'json', 'tojson',
              'to_bool', 'is_list', 'dictsort', 'quote', 'to_num', 'capitalize', 'lower', 'indent', 'replace("a", "b")', 'map("string")|list', 'select|list', 'load_yaml', 'load_json', 'sequence', 'traverse("a")', 'flatten']:
        for a in values:
            yield '%s|%s' % (a, f)
    for test in ['odd', 'defined', 'none', 'string', 'mapping', 'sequence', 'iterable', 'number', 'integer', 'boolean', 'list', 'in [1, "ab"]', 'eq 1', 'sameas none', 'divisibleby 2', 'callable', 'upper']:
        for a in values:
            yield '%s is %s' % (a, test)
    for i in ['0', '-1', '5', "'a'", "'upper'", "'items'", '1:', ':-1', '::-1', '::2', 'none']:
        for a in values:
            yield '(%s)[%s]' % (a, i)


FILTERS = set()


def render(template):
    context = dict(copy.deepcopy(CONTEXT), opts={'cachedir': '/nonexistent', 'file_client': 'local', 'file_roots': {}, 'pillar_roots': {}}, saltenv=None, sls='')
    try:
        out = render_jinja_tmpl(template, context)
        return None if ' at 0x' in out else {'output': out}
    except salt.exceptions.SaltRenderError as e:
        text = e.error if e.context == '' or 'Traceback' in e.context or 'Traceback' in str(e) else str(e)
        return {'error': text, 'line': e.line_num or 0} if ' at 0x' not in text else None
    except Exception as e:
        return None


def main():
    import jinja2
    from salt.utils.decorators.jinja import JinjaFilter
    FILTERS.update(jinja2.Environment().filters, JinjaFilter.salt_jinja_filters, ['yaml', 'json', 'python', 'load_yaml', 'load_json', 'load_text', 'dict_to_sls_yaml_params', 'nofilter'])
    FILTERS.difference_update({'d', 'e'})
    seen = set()
    for t in [*('{{ %s }}' % e for e in expressions()), *TEMPLATES, *('{{ %s }}' % e for e in generated())]:
        if t not in seen:
            seen.add(t)
            r = render(t)
            if r:
                print(json.dumps({'template': t, **r}))


if __name__ == '__main__':
    main()
