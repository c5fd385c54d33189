//! YAML and JSON beside stock Salt: its answers to generated texts and values are in `data/`, made by
//! `python/yaml_oracle.py`. `interop.rs` asks Salt itself.

mod common;

#[test]
fn texts_are_loaded_as_stock_salt_loads_them() {
    common::compare(include_str!("data/load.jsonl"), common::check_load);
}

#[test]
fn values_are_dumped_as_stock_salt_dumps_them() {
    common::compare(include_str!("data/dump.jsonl"), common::check_dump);
}

#[test]
fn json_is_loaded_as_python_loads_it() {
    common::compare(include_str!("data/json.jsonl"), common::check_json);
}
