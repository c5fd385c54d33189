"""SLS files that are run with `state.sls a`, one for each rule of a run; in the form of trees.py. Commands of checks are `true` and
`false` only, functions test.true and test.false, paths `/` and `/nonexistent`."""
import trees

RUNS = r'''
#### results
a: test.nop
b: test.succeed_with_changes
c: test.fail_without_changes
d: test.fail_with_changes
e: {test.configurable_test_state: [{changes: false}, {result: false}, {comment: x}]}
f: {test.show_notification: [{text: hello}]}
#### results in a dry run
@test: true
a: test.nop
b: test.succeed_with_changes
c: test.fail_without_changes
d: test.fail_with_changes
e: {test.configurable_test_state: [{changes: true}]}
f: {test.configurable_test_state: [{changes: false}]}
#### require
a: {test.nop: [{require: [{test: b}]}]}
b: test.succeed_with_changes
#### require of a failure
a: {test.nop: [{require: [{test: b}]}]}
b: test.fail_without_changes
c: {test.nop: [{require: [{test: a}]}]}
#### require of two failures
a: {test.nop: [{require: [{test: b}, {test: c}]}]}
b: test.fail_without_changes
c: test.fail_without_changes
#### require_any
a: {test.nop: [{require_any: [{test: b}, {test: c}]}]}
b: test.fail_without_changes
c: test.nop
d: {test.nop: [{require_any: [{test: b}]}]}
#### watch of a change
a: {test.nop: [{watch: [{test: b}]}]}
b: test.succeed_with_changes
#### watch of no change
a: {test.nop: [{watch: [{test: b}]}]}
b: test.nop
#### watch of a failure
a: {test.nop: [{watch: [{test: b}]}]}
b: test.fail_with_changes
#### watch that changes itself
a: {test.succeed_with_changes: [{watch: [{test: b}]}]}
b: test.succeed_with_changes
#### watch with own words
a: {test.nop: [{watch: [{test: b}, {test: c}]}, {comment: mine}, {result: false}]}
b: test.succeed_with_changes
c: test.nop
#### watch_any
a: {test.nop: [{watch_any: [{test: b}, {test: c}]}]}
b: test.fail_without_changes
c: test.succeed_with_changes
#### watch in a dry run
@test: true
a: {test.nop: [{watch: [{test: b}]}]}
b: test.succeed_with_changes
#### onchanges
a: {test.nop: [{onchanges: [{test: b}]}]}
b: test.nop
c: {test.nop: [{onchanges: [{test: d}]}]}
d: test.succeed_with_changes
e: {test.nop: [{onchanges: [{test: f}]}]}
f: test.fail_with_changes
g: {test.nop: [{onchanges: [{test: b}, {test: d}]}]}
#### onchanges_any
a: {test.nop: [{onchanges_any: [{test: b}, {test: c}]}]}
b: test.nop
c: test.succeed_with_changes
d: {test.nop: [{onchanges_any: [{test: b}]}]}
#### onchanges and a failed require
a: {test.nop: [{onchanges: [{test: c}]}, {require: [{test: b}]}]}
b: test.fail_without_changes
c: test.succeed_with_changes
#### onfail
a: {test.nop: [{onfail: [{test: b}]}]}
b: test.nop
c: {test.nop: [{onfail: [{test: d}]}]}
d: test.fail_without_changes
e: {test.nop: [{onfail: [{test: b}, {test: d}]}]}
#### onfail_any and onfail_all
a: {test.nop: [{onfail_any: [{test: b}, {test: d}]}]}
c: {test.nop: [{onfail_all: [{test: b}, {test: d}]}]}
e: {test.nop: [{onfail_all: [{test: d}, {test: f}]}]}
b: test.nop
d: test.fail_without_changes
f: test.fail_with_changes
#### onfail and require
a: {test.nop: [{onfail: [{test: d}]}, {require: [{test: b}]}]}
b: test.nop
d: test.fail_without_changes
#### onfail and onchanges
a: {test.nop: [{onfail: [{test: b}]}, {onchanges: [{test: c}]}]}
b: test.nop
c: test.succeed_with_changes
#### prereq that changes
a: {test.nop: [{prereq: [{test: b}]}]}
b: test.succeed_with_changes
#### prereq that does not change
a: {test.nop: [{prereq: [{test: b}]}]}
b: test.nop
#### prereq whose first state fails
a: {test.fail_without_changes: [{prereq: [{test: b}]}]}
b: test.succeed_with_changes
#### prereq of a state that would fail
a: {test.nop: [{prereq: [{test: b}]}]}
b: test.fail_with_changes
#### prereq in a dry run
@test: true
a: {test.nop: [{prereq: [{test: b}]}]}
b: test.succeed_with_changes
c: {test.nop: [{prereq: [{test: d}]}]}
d: test.nop
#### prereq of two
a: {test.nop: [{prereq: [{test: b}, {test: c}]}]}
b: test.succeed_with_changes
c: test.nop
#### two prereqs of one
a: {test.nop: [{prereq: [{test: c}]}]}
b: {test.nop: [{prereq: [{test: c}]}]}
c: test.succeed_with_changes
#### chain of prereqs that change
a: {test.succeed_with_changes: [{prereq: [{test: b}]}]}
b: {test.succeed_with_changes: [{prereq: [{test: c}]}]}
c: test.succeed_with_changes
#### chain of prereqs without a change
a: {test.succeed_with_changes: [{prereq: [{test: b}]}]}
b: {test.succeed_with_changes: [{prereq: [{test: c}]}]}
c: test.nop
#### prereq and watch
a: {test.nop: [{prereq: [{test: b}]}]}
b: {test.nop: [{watch: [{test: c}]}]}
c: test.succeed_with_changes
#### prereq and a failed require
a: {test.nop: [{prereq: [{test: b}]}]}
b: {test.succeed_with_changes: [{require: [{test: c}]}]}
c: test.fail_without_changes
#### prereq and require in
a: {test.succeed_with_changes: [{prereq: [{test: b}]}, {require: [{test: d}]}]}
b: {test.succeed_with_changes: [{require: [{test: c}]}]}
c: test.nop
d: test.succeed_with_changes
#### listen
a: {test.nop: [{listen: [{test: b}]}]}
b: test.succeed_with_changes
c: test.nop
#### listen of no change
a: {test.nop: [{listen: [{test: b}]}]}
b: test.nop
#### listen_in
a: test.nop
b: {test.succeed_with_changes: [{listen_in: [{test: a}]}]}
#### listen to what is not there
a: {test.nop: [{listen: [{test: nope}]}]}
b: test.nop
#### listen by id
a: {test.nop: [{listen: [b]}]}
b: test.succeed_with_changes
#### listen with names
a: {test.nop: [{names: [x, y]}, {listen: [{test: b}]}]}
b: test.succeed_with_changes
#### unless
a: {test.nop: [{unless: 'true'}]}
b: {test.nop: [{unless: 'false'}]}
c: {test.nop: [{unless: ['true', 'false']}]}
d: {test.nop: [{unless: ['true', 'true']}]}
e: {test.nop: [{unless: []}]}
f: {test.nop: [{unless: [5]}]}
#### onlyif
a: {test.nop: [{onlyif: 'true'}]}
b: {test.nop: [{onlyif: 'false'}]}
c: {test.nop: [{onlyif: ['true', 'false']}]}
d: {test.nop: [{onlyif: ['true', 'true']}]}
e: {test.nop: [{onlyif: []}]}
f: {test.nop: [{onlyif: [5]}]}
#### conditions by functions
a: {test.nop: [{unless: [{fun: test.true}]}]}
b: {test.nop: [{unless: [{fun: test.false}]}]}
c: {test.nop: [{onlyif: [{fun: test.true}]}]}
d: {test.nop: [{onlyif: [{fun: test.false}]}]}
e: {test.nop: [{onlyif: [{nope: 1}]}]}
f: {test.nop: [{unless: [{nope: 1}]}]}
g: {test.nop: [{onlyif: [{fun: test.echo, args: [x]}, 'true']}]}
#### both conditions
a: {test.nop: [{unless: 'false'}, {onlyif: 'false'}]}
b: {test.nop: [{unless: 'true'}, {onlyif: 'true'}]}
c: {test.nop: [{unless: 'false'}, {onlyif: 'true'}]}
#### creates
a: {test.nop: [{creates: /}]}
b: {test.nop: [{creates: /nonexistent}]}
c: {test.nop: [{creates: [/, /nonexistent]}]}
d: {test.nop: [{creates: [/, /]}]}
e: {test.nop: [{creates: 5}]}
#### check_cmd
a: {test.nop: [{check_cmd: 'true'}]}
b: {test.nop: [{check_cmd: ['true', 'false']}]}
c: {test.fail_without_changes: [{check_cmd: ['true']}]}
d: {test.succeed_with_changes: [{check_cmd: ['false']}]}
#### a condition and watch
a: {test.nop: [{unless: 'true'}, {watch: [{test: b}]}]}
b: test.succeed_with_changes
#### failhard
a: test.nop
b: {test.fail_without_changes: [{failhard: true}]}
c: test.nop
#### failhard of the minion
@failhard: true
a: test.nop
b: {test.fail_without_changes: [{failhard: false}]}
c: test.fail_without_changes
d: test.nop
#### failhard and listen
a: {test.nop: [{listen: [{test: b}]}]}
b: test.succeed_with_changes
c: {test.fail_without_changes: [{failhard: true}]}
d: test.nop
#### failhard and prereq
a: {test.nop: [{prereq: [{test: b}]}]}
b: {test.fail_with_changes: [{failhard: true}]}
c: test.nop
#### retry that is met
a: {test.nop: [{retry: {attempts: 3, interval: 0}}]}
#### retry that is not met
a: {test.fail_without_changes: [{retry: {attempts: 3, interval: 0}}]}
b: {test.nop: [{retry: {attempts: 3, interval: 0, until: false}}]}
#### retry with one attempt
a: {test.fail_without_changes: [{retry: {attempts: 1, interval: 0}}]}
b: {test.fail_without_changes: [{retry: false}]}
#### retry in a dry run
@test: true
a: {test.fail_without_changes: [{retry: {attempts: 3, interval: 7, splay: 2}}]}
b: {test.nop: [{retry: true}]}
#### retry without a comment
a: {test.configurable_test_state: [{result: false}, {retry: {attempts: 2, interval: 0}}]}
#### parallel
a: {test.nop: [{parallel: true}]}
b: {test.succeed_with_changes: [{parallel: true}]}
c: {test.nop: [{require: [{test: a}]}]}
d: {test.nop: [{parallel: true}, {require: [{test: b}]}]}
#### parallel failure
a: {test.fail_without_changes: [{parallel: true}]}
b: {test.nop: [{require: [{test: a}]}]}
c: {test.nop: [{parallel: true}, {require: [{test: a}]}]}
#### parallel retry
a: {test.fail_without_changes: [{parallel: true}, {retry: {attempts: 2, interval: 0}}]}
#### unknown state
a: nope.nope
b: test.nope
c: {test.nop: [{require: [{nope: a}]}]}
#### a name that is a number
a: {test.nop: [{names: [1, b]}]}
#### umask
a: {test.nop: [{umask: 022}]}
b: {test.nop: [{umask: nope}]}
#### an exception
a: {test.configurable_test_state: [{changes: bogus}]}
b: {test.nop: [{require: [{test: a}]}]}
#### names
a: {test.nop: [{names: [z, y, x]}]}
#### order
a: {test.nop: [{order: last}]}
b: {test.nop: [{order: 1}]}
c: test.nop
#### disabled
@grains: {id: web1, state_runs_disabled: ['test.nop']}
a: test.nop
b: test.succeed_with_changes
#### no_log
a: {test.succeed_with_changes: [{no_log: true}]}
#### require of an sls
include: [b]
a: {test.nop: [{require: [{sls: b}]}]}
== b.sls
b1: test.nop
b2: test.fail_without_changes
#### require in another file
include: [b]
a: test.fail_without_changes
== b.sls
b: {test.nop: [{require: [{test: a}]}]}
#### extend and use
include: [b]
extend:
  b: {test: [{comment: more}]}
a: {test.succeed_with_changes: [{comment: c}]}
d: {test.nop: [{use: [{test: a}]}]}
== b.sls
b: test.succeed_with_changes
#### exclude
exclude: [{id: b}]
a: test.nop
b: test.nop
#### global conditions that are not met
@global_state_conditions: {test.nop: ['db*'], test: ['db*']}
a: test.nop
#### global conditions that are met
@global_state_conditions: {'*': ['db*', 'web*']}
a: test.nop
'''


def runs():
    before, trees.TREES = trees.TREES, RUNS
    try:
        yield from trees.trees()
    finally:
        trees.TREES = before
