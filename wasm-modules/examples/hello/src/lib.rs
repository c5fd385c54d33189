//! `hello`: the smallest useful module. Its functions and their documentation are in `wit/world.wit`.

wit_bindgen::generate!({
    world: "hello",
    path: "wit",
    with: { "brine:host/job@1.0.0": brine_guest::host::job },
});

struct Module;

impl Guest for Module {
    fn world(name: Option<String>) -> String {
        let minion = brine_guest::host::job::current().minion_id;
        format!("Hello, {}! This is {minion}.", name.as_deref().unwrap_or("world"))
    }
}

export!(Module);
