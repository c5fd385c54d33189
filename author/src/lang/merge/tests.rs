//! Components whose core modules are linked with each other as componentize-py's are.

use brine_kit::wat::wasm;
use wasmparser::{ElementKind, Instance, Operator, Parser, Payload, Validator};

use super::{Unmerged, merged};

/// The interpreter and a library that share a memory and a table, call each other directly and by the table, and call the
/// host by a table that is filled when both are there.
const LINKED: &str = r#"(component
    (import "host" (instance $host (export "told" (func (param "n" u32)))))
    (core module $shim
        (table (export "imports") 1 1 funcref)
        (type $told (func (param i32)))
        (func (export "told") (param i32) (call_indirect (type $told) (local.get 0) (i32.const 0))))
    (core module $env
        (memory (export "memory") 1)
        (table (export "table") 16 funcref)
        (global (export "stack") (mut i32) (i32.const 4096))
        (global (export "base") i32 (i32.const 4))
        (data (i32.const 64) "image"))
    (core module $bases (global (export "__table_base") i32 (i32.const 8)))
    (core module $python
        (import "env" "memory" (memory 1))
        (import "env" "table" (table 4 funcref))
        (import "env" "base" (global $base i32))
        (import "env" "stack" (global $stack (mut i32)))
        (import "host" "told" (func $told (param i32)))
        (type $binary (func (param i32 i32) (result i32)))
        (global (export "first") i32 (i32.add (global.get $base) (i32.const 1)))
        (func $add (export "add") (type $binary) (i32.add (local.get 0) (local.get 1)))
        (func $told-stack (param i32) (call $told (global.get $stack)))
        (elem (global.get $base) func $told-stack $add))
    (core module $library
        (import "python" "add" (func $add (param i32 i32) (result i32)))
        (import "python" "first" (global $first i32))
        (import "env" "table" (table 4 funcref))
        (import "env" "__table_base" (global $base i32))
        (import "env" "memory" (memory 1))
        (type $binary (func (param i32 i32) (result i32)))
        (type $unary (func (param i32)))
        (func $f (export "f") (result i32)
            (call_indirect (type $unary) (i32.const 0) (i32.sub (global.get $first) (i32.const 1)))
            (call $add (i32.load8_u (i32.const 64))
                (call_indirect (type $binary) (i32.const 1) (i32.const 2) (global.get $first))))
        (elem (i32.add (global.get $base) (i32.const 1)) func $f $f)
        (data $later "late")
        (func (export "late") (memory.init $later (i32.const 0) (i32.const 0) (i32.const 4)) (data.drop $later)))
    (core module $fixup
        (import "" "0" (func $told (param i32)))
        (import "" "imports" (table 1 1 funcref))
        (elem (i32.const 0) func $told))
    (core instance $shim (instantiate $shim))
    (core instance $env (instantiate $env))
    (core instance $bases (instantiate $bases))
    (core instance $python (instantiate $python (with "env" (instance $env)) (with "host" (instance $shim))))
    (core instance $library (instantiate $library
        (with "python" (instance $python))
        (with "env" (instance
            (export "memory" (memory $env "memory"))
            (export "table" (table $env "table"))
            (export "__table_base" (global $bases "__table_base"))))))
    (core func $told (canon lower (func $host "told")))
    (core instance (instantiate $fixup (with "" (instance
        (export "imports" (table $shim "imports")) (export "0" (func $told))))))
    (func (export "f") (result u32) (canon lift (core func $library "f"))))"#;

/// What a component makes when it is instantiated: the modules that it instantiates, and the tables and places of their
/// elements with the number of functions.
fn made(component: &[u8]) -> (usize, Vec<(u32, Vec<String>, u32)>) {
    let (mut instances, mut elements) = (0, Vec::new());
    for payload in Parser::new(0).parse_all(component) {
        match payload.unwrap() {
            Payload::InstanceSection(section) => {
                let made = section.into_iter().filter(|it| matches!(it, Ok(Instance::Instantiate { .. })));
                instances += made.count();
            }
            Payload::ElementSection(section) => {
                for element in section {
                    let element = element.unwrap();
                    let wasmparser::ElementItems::Functions(functions) = element.items else { panic!("expressions") };
                    let ElementKind::Active { table_index, offset_expr } = element.kind else { panic!("not active") };
                    let operators = offset_expr.get_operators_reader().into_iter().map(Result::unwrap);
                    let operators = operators.filter(|operator| !matches!(operator, Operator::End));
                    let offset = operators.map(|operator| format!("{operator:?}")).collect();
                    elements.push((table_index.unwrap_or(0), offset, functions.count()));
                }
            }
            _ => {}
        }
    }
    (instances, elements)
}

#[test]
fn modules_that_are_linked_with_each_other_become_one() {
    let component = wasm(LINKED);
    assert_eq!(made(&component).0, 6);
    let out = merged(&component).unwrap();
    Validator::new().validate_all(&out).unwrap();
    let (instances, elements) = made(&out);
    // The module of all, and the one that needs the host's function.
    assert_eq!(instances, 2);
    let at = |table, offset: i32, count| (table, vec![format!("I32Const {{ value: {offset} }}")], count);
    assert_eq!(elements, [at(1, 4, 2), at(1, 9, 2), at(0, 0, 1)]);
    assert_eq!(merged(&component).unwrap(), out, "the same bytes each time");
    assert!(matches!(merged(&out), Err(Unmerged::Has(_))), "nothing is left to merge");
}

/// Everything else of the component is as it was.
#[test]
fn what_the_component_imports_and_exports_stays() {
    let outside = |component: &[u8]| {
        let (mut depth, mut sections) = (0_u32, Vec::new());
        for payload in Parser::new(0).parse_all(component) {
            let payload = payload.unwrap();
            match payload {
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentImportSection(_)
                | Payload::ComponentExportSection(_)
                | Payload::ComponentTypeSection(_)
                | Payload::ComponentCanonicalSection(_)
                    if depth == 0 =>
                {
                    let (id, range) = payload.as_section().unwrap();
                    sections.push((id, component[range].to_vec()));
                }
                _ => {}
            }
        }
        sections
    };
    let component = wasm(LINKED);
    let before = outside(&component);
    assert!(before.len() >= 4, "{before:?}");
    assert_eq!(outside(&merged(&component).unwrap()), before);
}

#[test]
fn what_cannot_be_merged_stays_as_it_is() {
    let alone = r#"(component (core module $m (func (export "f"))) (core instance $i (instantiate $m))
        (func (export "f") (canon lift (core func $i "f"))))"#;
    let twice = r#"(component (core module $m (func (export "f"))) (core instance $i (instantiate $m))
        (core instance (instantiate $m)) (func (export "f") (canon lift (core func $i "f"))))"#;
    let starts = r#"(component
        (core module $m (global (export "g") (mut i32) (i32.const 0)))
        (core module $n (import "m" "g" (global $g (mut i32))) (func $f (export "f") (global.set $g (i32.const 1))) (start $f))
        (core instance $i (instantiate $m)) (core instance $j (instantiate $n (with "m" (instance $i))))
        (func (export "f") (canon lift (core func $j "f"))))"#;
    for text in [alone, twice, starts] {
        assert!(matches!(merged(&wasm(text)), Err(Unmerged::Has(_))), "{text}");
    }
    let memories = r#"(component
        (core module $m (memory (export "m") 1)) (core module $n (memory (export "n") 1) (func (export "f")))
        (core instance (instantiate $m)) (core instance $j (instantiate $n))
        (func (export "f") (canon lift (core func $j "f"))))"#;
    assert!(matches!(merged(&wasm(memories)), Err(Unmerged::Has("several memories"))));
    for bytes in [b"".as_slice(), b"(component)", &wasm("(component)")[..7]] {
        assert!(matches!(merged(bytes), Err(Unmerged::Malformed(_))));
    }
}
