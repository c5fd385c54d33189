//! States of static grains, which are in a file beside the configuration. Each list is changed by one state of a run: Salt
//! shows in the changes of a state what later states have made of the same list.

use super::{Side, compare};

/// The file before.
const MADE: &str = "\
app: {port: 80, roles: [a, b], empty: []}
crowd: [a, b, c]
emptied: null
half: [x]
list: [x]
port: 80
role: web
truth: true
word: one
";

const STATES: &str = r#"
there: {grains.exists: [{name: role}]}
there within: {grains.exists: [{name: 'app,port'}, {delimiter: ','}]}
there without a value: {grains.exists: [{name: emptied}]}
not there: {grains.exists: [{name: nothing}]}
new: {grains.present: [{name: fresh}, {value: web}]}
the same: {grains.present: [{name: role}, {value: web}]}
another: {grains.present: [{name: word}, {value: two}]}
a number: {grains.present: [{name: number}, {value: 1}]}
a part: {grains.present: [{name: part}, {value: 1.5}]}
a list: {grains.present: [{name: made}, {value: [a, 1, true]}]}
no value: {grains.present: [{name: nil}, {value: null}]}
within: {grains.present: [{name: 'deep,er,est'}, {value: x}, {delimiter: ','}]}
below its text: {grains.present: [{name: 'role:web'}, {value: 1}]}
below another: {grains.present: [{name: 'port:x'}, {value: 1}]}
below by force: {grains.present: [{name: 'truth:x'}, {value: 1}, {force: true}]}
over a list: {grains.present: [{name: 'app:roles'}, {value: x}]}
a list over it: {grains.present: [{name: port}, {value: [x]}]}
over a list by force: {grains.present: [{name: half}, {value: y}, {force: true}]}
in a list: {grains.present: [{name: 'list:x'}, {value: y}]}
added: {grains.append: [{name: crowd}, {value: d}]}
added to nothing: {grains.append: [{name: nothing}, {value: d}]}
added to a text: {grains.append: [{name: word}, {value: d}]}
converted: {grains.append: [{name: word}, {value: d}, {convert: true}]}
added to no value: {grains.append: [{name: emptied}, {value: d}]}
added to an empty one within: {grains.append: [{name: 'app:empty'}, {value: d}]}
one role: {grains.list_present: [{name: roles}, {value: web}]}
the same role: {grains.list_present: [{name: roles}, {value: web}]}
many: {grains.list_present: [{name: many}, {value: [a, b, a]}]}
some are there: {grains.list_present: [{name: 'app:roles'}, {value: [a, b]}]}
some are not: {grains.list_present: [{name: 'app:roles'}, {value: [b, c]}]}
in no list: {grains.list_present: [{name: port}, {value: x}]}
gone of no list: {grains.list_absent: [{name: port}, {value: x}]}
gone of nothing: {grains.list_absent: [{name: nothing}, {value: x}]}
no value of nothing: {grains.absent: [{name: nothing}]}
"#;

/// What is changed and removed.
const CHANGED: &str = r#"
some gone: {grains.list_absent: [{name: crowd}, {value: [a, z, a]}]}
one gone: {grains.list_absent: [{name: 'app:roles'}, {value: a}]}
added within: {grains.append: [{name: 'deep:er:list'}, {value: d}]}
no value: {grains.absent: [{name: number}]}
no value before: {grains.absent: [{name: emptied}]}
no value of a list: {grains.absent: [{name: many}]}
no value by force: {grains.absent: [{name: made}, {force: true}]}
gone: {grains.absent: [{name: part}, {destructive: true}]}
gone without a value: {grains.absent: [{name: nil}, {destructive: true}]}
gone within: {grains.absent: [{name: 'app;port'}, {destructive: true}, {delimiter: ;}]}
gone by force: {grains.absent: [{name: deep}, {destructive: true}, {force: true}]}
"#;

pub(super) fn check(sides: &[Side; 2]) {
    let file = |side: &Side| side.folder.path().join("grains");
    let there = |side: &Side| std::fs::read_to_string(file(side)).expect("the file");
    for side in sides {
        std::fs::write(file(side), MADE).expect("our own folder");
    }
    let [python, brine] = sides;
    brine.apply(STATES, true);
    assert_eq!(there(brine), MADE, "the dry run wrote");
    compare("grains", sides, STATES, false);
    assert_eq!(there(brine), there(python));
    compare("changed grains", sides, CHANGED, false);
    assert_eq!(there(brine), there(python));
}
