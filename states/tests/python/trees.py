"""Small trees of SLS files, one for each rule of the compile. A tree is text: `== PATH` begins a file of base, `== ENV:PATH` one of
another environment; what comes before the first file is the file `a.sls`. Options follow as `@NAME: YAML` at the begin."""

TREES = r'''
#### one state
x:
  test.nop
#### function among the arguments
x:
  test:
    - nop
    - foo: bar
#### short declaration
x: test.nop
y: pkg.installed.more
#### two modules of one id
x:
  test.nop: []
  cmd.run:
    - name: 'true'
#### two functions of one module
x:
  pkg.installed: []
  pkg.latest: []
#### the module and its function
x:
  pkg: []
  pkg.latest: []
#### no function
x:
  pkg:
    - name: vim
#### too many functions
x:
  pkg:
    - installed
    - latest
#### too many functions with a dot
x:
  pkg.installed:
    - latest
    - removed
#### function with a space
x:
  pkg:
    - installed now
#### trailing colon
x:
  test.nop:
#### arguments that are no list
x:
  pkg:
    installed: now
#### an id that is text without a dot
x: vim
y: test.nop
#### an id that is a list
x:
  - test.nop
#### an id that is empty
x:
y: test.nop
#### an id that is a number
5:
  test.nop
#### an id that is none
null:
  test.nop
#### an id that is a date
2020-01-02:
  test.nop
#### a module that is a number
x:
  5:
    - nop
#### a file that is a list
- x
- y
#### a file that is text
just text
#### an empty file


#### only a comment
# nothing
#### not yaml
x: [a
#### a tab
x:
	test.nop
#### mapping where none can be
x: a: b
#### conflicting keys
x:
  test.nop
x:
  pkg.installed
#### jinja undefined
x:
  test.nop:
    - a: {{ nope }}
#### jinja syntax
{% if %}
#### jinja type error
{{ 1 + 'a' }}
#### jinja names
{{ sls }}-{{ slspath }}-{{ tpldir }}-{{ tplfile }}-{{ saltenv }}:
  test.nop
#### jinja names in folders
include: [d.e, d]
== d/init.sls
{{ sls }}-{{ slspath }}-{{ tpldir }}-{{ tplfile }}-{{ slsdotpath }}-{{ slscolonpath }}-{{ sls_path }}-{{ tpldot }}:
  test.nop
== d/e.sls
{{ sls }}-{{ slspath }}-{{ tpldir }}-{{ tplfile }}-{{ slsdotpath }}-{{ slscolonpath }}-{{ sls_path }}-{{ tpldot }}:
  test.nop
#### jinja import
{% from 'd/map.jinja' import v %}
x:
  test.nop:
    - v: {{ v }}
== d/map.jinja
{% set v = 5 %}
#### jinja import of a missing file
{% from 'd/map.jinja' import v %}
x: test.nop
#### another renderer
#!yaml
x:
  test.nop:
    - a: '{{ b }}'
#### json
#!json
{"x": {"test": ["nop", {"a": 1}]}}
#### json that is none
#!json
{"x": 
#### names
x:
  test.nop:
    - names: [a, b, a, c]
    - v: 1
#### names with overrides
x:
  file.managed:
    - mode: 600
    - names:
      - /a
      - /b:
        - mode: 644
        - user: root
#### names with an order
x:
  test.nop:
    - order: 5
    - names: [c, b, a]
#### names that are no list
x:
  test.nop:
    - names: abc
#### names with text as override
x:
  test.nop:
    - names:
      - a: b
#### names with no override
x:
  test.nop:
    - names:
      - a:
#### names that are numbers
x:
  test.nop:
    - names: [1, 2]
#### names that are lists
x:
  test.nop:
    - names: [[1, 2]]
#### name that is a dict
x:
  test.nop:
    - name: {a: b}
#### name that is a number
x:
  test.nop:
    - name: 5
#### name and names
x:
  test.nop:
    - name: n
    - names: [a, b]
#### state as argument
x:
  test.nop:
    - state: other
    - fun: other
#### argument with two keys
x:
  test.nop:
    - a: 1
      b: 2
#### argument that is a number
x:
  test.nop:
    - 5
    - [1]
    - null
#### empty dict as argument
x:
  test.nop:
    - {}
#### order
a: {test.nop: [{order: last}]}
b: {test.nop: [{order: 3}]}
c: test.nop
d: {test.nop: [{order: first}]}
e: {test.nop: [{order: -1}]}
f: {test.nop: [{order: -5}]}
g: {test.nop: [{order: 2.5}]}
h: {test.nop: [{order: bogus}]}
i: {test.nop: [{order: null}]}
j: {test.nop: [{order: true}]}
#### order without auto order
@state_auto_order: false
b: test.nop
a: test.nop
c: {test.nop: [{order: 1}]}
#### large orders
a: {test.nop: [{order: 5000000}]}
b: {test.nop: [{order: last}]}
c: {test.nop: [{order: 20000}]}
#### require
a: {test.nop: [{require: [{test: c}]}]}
b: test.nop
c: test.nop
#### require by id
a: {test.nop: [{require: [c]}]}
b: test.nop
c: test.nop
#### require by name
a: {test.nop: [{require: [{test: n}]}]}
b: {test.nop: [{name: n}]}
#### require of an sls
include: [b]
a: {test.nop: [{require: [{sls: b}]}]}
== b.sls
b1: test.nop
b2: test.nop
#### require of an sls that includes
include: [b]
a: {test.nop: [{require: [{sls: b}]}]}
== b.sls
include: [c]
== c.sls
c1: test.nop
#### require of a missing sls
a: {test.nop: [{require: [{sls: b}]}]}
#### require of an sls by pattern
include: [b.c]
a: {test.nop: [{require: [{sls: 'b.*'}]}]}
== b/c.sls
c: test.nop
#### require of an sls by pattern that matches nothing
a: {test.nop: [{require: [{sls: 'b.*'}]}]}
#### require by pattern
a: {test.nop: [{require: [{test: 'x*'}]}]}
x1: test.nop
x2: test.nop
y: test.nop
#### require by pattern that matches nothing
a: {test.nop: [{require: [{test: 'z*'}]}]}
#### missing requisite
a: {test.nop: [{require: [{pkg: vim}]}]}
b: {test.nop: [{watch: [{pkg: vim}]}, {require: [nope]}]}
#### requisite with a dot
a: {test.nop: [{require: [{test.nop: b}]}]}
b: test.nop
#### requisite that is no list
a: {test.nop: [{require: {test: b}}]}
b: test.nop
#### requisite with two keys
a: {test.nop: [{require: [{test: b, pkg: c}]}]}
b: test.nop
#### requisite that is a list
a: {test.nop: [{require: [[b]]}]}
b: test.nop
#### requisite whose name is a list
a: {test.nop: [{require: [{test: [b]}]}]}
b: test.nop
#### requisite whose name is a number
a: {test.nop: [{require: [{test: 5}]}]}
#### requisite whose name is none
a: {test.nop: [{require: [{test: null}]}]}
#### requisite whose module is a number
a: {test.nop: [{require: [{5: x}]}]}
#### requisites in one argument
a:
  test.nop:
    - require: [{test: b}]
      watch: [{test: b}]
b: test.nop
#### recursive requisites
a: {test.nop: [{require: [{test: b}]}]}
b: {test.nop: [{require: [{test: a}]}]}
#### longer cycle
a: {test.nop: [{require: [{test: b}]}]}
b: {test.nop: [{watch: [{test: c}]}]}
c: {test.nop: [{onchanges: [{test: a}]}, {name: n}]}
#### requires itself
a: {test.nop: [{require: [{test: a}]}]}
#### watch
a: {test.nop: [{watch: [{test: b}]}]}
b: test.nop
#### watch without mod_watch
a: {file.managed: [{watch: [{test: b}]}, {require: [{test: c}]}]}
b: test.nop
c: test.nop
#### watch_any without mod_watch
a: {file.managed: [{watch_any: [{test: b}]}]}
b: test.nop
#### all kinds
a:
  test.nop:
    - require: [{test: t}]
    - require_any: [{test: t}]
    - watch: [{test: t}]
    - watch_any: [{test: t}]
    - onchanges: [{test: t}]
    - onchanges_any: [{test: t}]
    - onfail: [{test: t}]
    - onfail_any: [{test: t}]
    - onfail_all: [{test: t}]
    - listen: [{test: t}]
t: test.nop
#### prereq
a: {test.nop: [{prereq: [{test: b}]}]}
b: test.nop
#### prereq of one that requires
a: {test.nop: [{prereq: [{test: b}]}]}
b: {test.nop: [{require: [{test: c}]}]}
c: test.nop
#### chain of prereqs
a: {test.nop: [{prereq: [{test: b}]}]}
b: {test.nop: [{prereq: [{test: c}]}]}
c: test.nop
#### prereq and require of the same
a: {test.nop: [{prereq: [{test: b}]}, {require: [{test: b}]}]}
b: test.nop
#### two prereqs
a: {test.nop: [{prereq: [{test: c}]}]}
b: {test.nop: [{prereq: [{test: c}]}]}
c: {test.nop: [{names: [x, y]}]}
#### require_in
a: test.nop
b: {test.nop: [{require_in: [{test: a}]}]}
#### require_in by id
a: test.nop
b: {test.nop: [{require_in: [a]}]}
#### require_in by name
a: {test.nop: [{name: n}]}
b: {test.nop: [{require_in: [n]}]}
#### require_in of several
a: test.nop
c: test.nop
b: {test.nop: [{require_in: [{test: a}, {test: c}]}]}
#### require_in as dict
a: test.nop
b: {test.nop: [{require_in: {test: a}}]}
#### require_in of a missing id
b: {test.nop: [{require_in: [{test: nope}]}]}
c: {test.nop: [{require_in: [nope]}]}
#### require_in with a dot
a: test.nop
b: {test.nop: [{require_in: [{test.nop: a}]}]}
#### require_in of an sls
include: [b]
a: {test.nop: [{require_in: [{sls: b}]}]}
== b.sls
b1: test.nop
b2: {pkg.installed: [], test.nop: []}
#### in of all kinds
t: test.nop
a:
  test.nop:
    - watch_in: [{test: t}]
    - onfail_in: [{test: t}]
    - onchanges_in: [{test: t}]
    - listen_in: [{test: t}]
p: {test.nop: [{prereq_in: [{test: t}]}]}
#### in from several states
t: {test.nop: [{require: [{test: z}]}]}
a: {test.nop: [{require_in: [{test: t}]}]}
b: {test.nop: [{require_in: [{test: t}]}]}
z: test.nop
#### use
a: {test.nop: [{v: 1}, {w: 2}, {require: [{test: c}]}]}
b: {test.nop: [{use: [{test: a}]}, {w: 3}]}
c: test.nop
#### use_in
a: {test.nop: [{v: 1}, {w: 2}, {use_in: [{test: b}]}]}
b: {test.nop: [{w: 3}]}
#### use of what is not there
b: {test.nop: [{use: [{test: nope}]}, {w: 3}]}
#### disabled requisites
@disabled_requisites: [require, require_in]
a: {test.nop: [{require: [{test: nope}]}]}
b: {test.nop: [{require_in: [{test: a}]}]}
#### include
include: [b]
a: test.nop
== b.sls
b: test.nop
#### include in a folder
include: [d.b, d]
a: test.nop
== d/b.sls
b: test.nop
== d/init.sls
d: test.nop
#### relative include
include: [d]
== d/init.sls
include: [.b, ..e, .f.g]
d: test.nop
== d/b.sls
include: [.c]
b: test.nop
== d/c.sls
c: test.nop
== d/f/g.sls
include: [...e, ..c]
g: test.nop
== e.sls
e: test.nop
#### relative include above the top
include: [..b]
#### relative include of nothing
include: ['.']
#### include by pattern
include: ['d.*']
== d/b.sls
b: test.nop
== d/c.sls
c: test.nop
#### include of a missing sls
include: [nope]
a: test.nop
#### include by pattern of nothing
include: ['nope.*']
a: test.nop
#### include that is text
include: b
a: test.nop
#### include that is a number
include: [5]
#### include of itself
include: [a]
x: test.nop
#### includes in a circle
include: [b]
x: test.nop
== b.sls
include: [a]
y: test.nop
#### include twice
include: [b, c, b]
== b.sls
b: test.nop
== c.sls
include: [b]
c: {test.nop: [{require: [{sls: b}]}]}
#### included file is not yaml
include: [b, c]
a: test.nop
== b.sls
x: [
== c.sls
c: test.nop
#### included file has no states
include: [b]
a: {test.nop: [{require: [{sls: b}]}]}
== b.sls
{}
#### order of includes
include: [c, b]
a: test.nop
== b.sls
b: test.nop
== c.sls
c1: test.nop
c2: test.nop
#### conflicting ids
include: [b]
a: test.nop
== b.sls
a: pkg.installed
#### the same id in two files
include: [b]
x: {test.nop: [{v: 1}]}
== b.sls
x: {test.nop: [{v: 1}]}
#### include of another environment
include: [{dev: b}]
a: test.nop
== dev:b.sls
b: test.nop
#### include of an environment that is not there
include: [{nope: b}]
a: test.nop
#### include of any environment
include: [{_xenv: b}]
a: test.nop
== dev:b.sls
b: test.nop
== top.sls
base: {'*': [a]}
dev: {'*': [c]}
== dev:c.sls
c: test.nop
#### include of any environment that has it twice
include: [{_xenv: b}]
a: test.nop
== prod:b.sls
b: test.nop
== dev:b.sls
b: test.nop
== top.sls
base: {'*': [a]}
dev: {'*': [b]}
prod: {'*': [b]}
#### include of any environment that has it nowhere
include: [{_xenv: b}]
a: test.nop
#### extend
include: [b]
extend:
  b:
    test:
      - v: 2
      - w: 3
== b.sls
b: {test.nop: [{v: 1}]}
#### extend with a function
include: [b]
extend:
  b:
    test:
      - succeed_with_changes
== b.sls
b: {test.nop: [{v: 1}]}
#### extend with a dotted function
include: [b]
extend:
  b:
    test.succeed_with_changes:
      - v: 5
== b.sls
b: {test.nop: [{v: 1}]}
#### extend of requisites
include: [b]
extend:
  b:
    test:
      - require: [{test: c}]
      - watch: [{test: c}]
c: test.nop
== b.sls
b: {test.nop: [{require: [{test: d}]}]}
d: test.nop
#### extend by name
include: [b]
extend:
  n:
    test:
      - v: 2
== b.sls
b: {test.nop: [{name: n}]}
#### extend with another module
include: [b]
extend:
  b:
    pkg:
      - installed
== b.sls
b: test.nop
#### extend of names by name
include: [b]
extend:
  b:
    test:
      - name: one
== b.sls
b: {test.nop: [{names: [x, y]}]}
#### extend of a missing id
extend:
  nope:
    test:
      - v: 2
x: test.nop
#### extend that is a list
extend:
  - b
#### extend of an id that is text
extend:
  b: test.nop
#### the same extension twice
include: [b, c]
== b.sls
include: [d]
extend:
  d: {test: [{v: 2}]}
== c.sls
include: [d]
extend:
  d: {test: [{v: 2}]}
== d.sls
d: {test.nop: [{v: 1}]}
#### exclude of an id
exclude: [{id: x}]
x: test.nop
y: test.nop
#### exclude of an sls
include: [b]
exclude: [{sls: b}]
y: test.nop
== b.sls
b: test.nop
#### exclude by text and pattern
include: [b.c, b.d]
exclude: ['b.*']
y: test.nop
== b/c.sls
c: test.nop
== b/d.sls
d: test.nop
#### exclude that is text
exclude: b
y: test.nop
#### exclude of an sls that extends
include: [b]
exclude: [b]
y: {test.nop: [{v: 1}]}
== b.sls
extend:
  y: {test: [{v: 2}]}
#### exclude of a required id
exclude: [{id: x}]
x: test.nop
y: {test.nop: [{require: [{test: x}]}]}
#### aliases shared by two ids
.a: &args
  - v: 1
x:
  test.nop: *args
y:
  pkg.installed: *args
#### top with several matchers
== top.sls
base:
  'web*': [a]
  'db*': [b]
  'os:Debian':
    - match: grain
    - b
  'G@os:Debian and web1':
    - match: compound
    - c
== a.sls
a: test.nop
== b.sls
b: test.nop
== c.sls
c: test.nop
#### top with patterns
== top.sls
base: {'*': ['d.*']}
== d/a.sls
a: test.nop
== d/b.sls
b: test.nop
#### top with environments
== top.sls
base: {'*': [a]}
dev: {'*': [b]}
== a.sls
a: test.nop
== dev:b.sls
b: test.nop
#### top of each environment
== top.sls
base: {'*': [a]}
== dev:top.sls
dev: {'*': [b]}
base: {'*': [nope]}
== a.sls
a: test.nop
== dev:b.sls
b: test.nop
#### tops that say the same environment
== top.sls
base: {'*': [a]}
dev: {'*': [c]}
== dev:top.sls
dev: {'*': [b]}
== a.sls
a: test.nop
== dev:b.sls
b: test.nop
== dev:c.sls
c: test.nop
#### tops merged same
@top_file_merging_strategy: same
@default_top: base
== top.sls
base: {'*': [a]}
dev: {'*': [c]}
prod: {'*': [d]}
== dev:top.sls
dev: {'*': [b]}
== a.sls
a: test.nop
== dev:b.sls
b: test.nop
== prod:d.sls
d: test.nop
#### tops merged same without default_top
@top_file_merging_strategy: same
== top.sls
base: {'*': [a]}
== a.sls
a: test.nop
#### tops merged all
@top_file_merging_strategy: merge_all
== top.sls
base: {'*': [a]}
dev: {'*': [b, {match: glob}]}
== dev:top.sls
dev: {'*': [c, b]}
base: {'*': [d]}
== a.sls
a: test.nop
== d.sls
d: test.nop
== dev:b.sls
b: test.nop
== dev:c.sls
c: test.nop
#### a strategy that is not there
@top_file_merging_strategy: bogus
== top.sls
base: {'*': [a]}
== a.sls
a: test.nop
#### env_order
@env_order: [dev, base]
== top.sls
base: {'*': [a]}
== dev:top.sls
dev: {'*': [b]}
== a.sls
a: test.nop
== dev:b.sls
b: test.nop
#### saltenv
@saltenv: dev
== top.sls
base: {'*': [a]}
== dev:top.sls
dev: {'*': [b]}
base: {'*': [a]}
== a.sls
a: test.nop
== dev:a.sls
adev: test.nop
== dev:b.sls
b: test.nop
#### state_top
@state_top: other.sls
== other.sls
base: {'*': [a]}
== a.sls
a: test.nop
#### state_top_saltenv
@state_top_saltenv: dev
== top.sls
base: {'*': [a]}
== dev:top.sls
base: {'*': [a]}
dev: {'*': [b]}
== a.sls
a: test.nop
== dev:b.sls
b: test.nop
#### no top
== nothing.txt
x
#### top that includes
== top.sls
include: [more.top]
base: {'*': [a]}
== more/top.sls
base: {'web1': [b]}
== a.sls
a: test.nop
== b.sls
b: test.nop
#### top that is a list
== top.sls
- base
#### top of an environment that is a list
== top.sls
base: [a]
#### top with text
== top.sls
base: {'*': a}
== a.sls
a: test.nop
#### top with an empty name
== top.sls
base: {'*': ['']}
#### top with an empty environment
== top.sls
'': {'*': [a]}
#### top with a number
== top.sls
5: {'*': [a]}
#### top without targets
== top.sls
base:
#### top that does not render
== top.sls
base: {{ nope }}
#### top with a matcher of nothing
== top.sls
base: {'*': [{match: ''}, a]}
== a.sls
a: test.nop
#### top with an sls of another environment
== top.sls
base: {'*': [a, {dev: b}]}
== a.sls
a: test.nop
== dev:b.sls
b: test.nop
#### top with a subfilter
== top.sls
base:
  '*':
    - subfilter:
        'web*': [b]
        'db*': [c]
    - a
== a.sls
a: test.nop
== b.sls
b: test.nop
== c.sls
c: test.nop
#### top of an environment that is not there
== top.sls
nope: {'*': [a]}
== a.sls
a: test.nop
#### top with a missing sls
== top.sls
base: {'*': [nope, a]}
== a.sls
a: test.nop
#### two files with one id
== top.sls
base: {'*': [a, b]}
== a.sls
x: test.nop
== b.sls
x: pkg.installed
#### an sls in a folder and beside it
include: [d]
== d.sls
beside: test.nop
== d/init.sls
inside: test.nop
#### aggregate
@state_aggregate: true
a: pkg.installed
b: {pkg.installed: [{require: [{test: t}]}]}
t: {test.nop: [{require: [{pkg: c}]}]}
c: pkg.installed
d: {pkg.installed: [{aggregate: false}]}
#### labels decide between equal orders
@state_auto_order: false
b: {test.nop: [], pkg.installed: [], cmd.run: [{name: a}]}
a: {test.nop: [], pkg.installed: []}
#### requisites pull states forward
z: {test.nop: [{order: last}]}
a: {test.nop: [{require: [{test: z}]}]}
b: {test.nop: [{order: 1}, {require: [{test: c}]}]}
c: {test.nop: [{order: 900000}]}
#### watch pulls more than require
w: {test.nop: [{require: [{test: t}]}, {order: 10}]}
v: {test.nop: [{watch: [{test: t}]}, {order: 20}]}
u: {test.nop: [{order: 15}]}
t: {test.nop: [{order: 30}]}
#### runs that are disabled
@grains: {id: web1, os: Debian, state_runs_disabled: ['pkg.*']}
a: pkg.installed
b: test.nop
#### blacklisted renderer
@renderer_blacklist: [jinja]
x:
  test.nop:
    - a: '{{ b }}'
#### environments of jinja
@jinja_sls_env: {trim_blocks: true, lstrip_blocks: true}
x:
  {% if true %}
  test.nop:
    - a: |
        one
        {% if true %}
        two
        {% endif %}
  {% endif %}
'''


def trees():
    import yaml
    for tree in TREES.strip('\n').split('#### ')[1:]:
        name, _, text = tree.partition('\n')
        options, files, at = {}, {'base': {}}, ('base', 'a.sls')
        lines = text.split('\n')[:-1] if text.endswith('\n') else text.split('\n')
        while lines and lines[0].startswith('@'):
            key, _, value = lines.pop(0)[1:].partition(': ')
            options[key] = yaml.safe_load(value)
        content = []

        def end():
            if content or at != ('base', 'a.sls'):
                files.setdefault(at[0], {})[at[1]] = ''.join(line + '\n' for line in content)
        for line in lines:
            if line.startswith('== '):
                end()
                content = []
                env, _, path = line[3:].rpartition(':')
                at = (env or 'base', path)
            else:
                content.append(line)
        end()
        yield name, options, files
