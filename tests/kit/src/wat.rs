//! Small components from text.

/// Returns the bytes of a component or module in text form.
#[track_caller]
pub fn wasm(text: impl AsRef<str>) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the text of a component around one core module, which exports these functions. Each is a name and a type
/// without text or lists: `("number", "(result u32)")`. `before` precedes the core module: types, imports, sections.
pub fn component(before: &str, core: &str, functions: &[(&str, &str)]) -> String {
    let lift =
        |(name, ty): &(&str, &str)| format!(r#"(func (export "{name}") {ty} (canon lift (core func $i "{name}")))"#);
    let functions: String = functions.iter().map(lift).collect();
    format!("(component {before} (core module $m {core}) (core instance $i (instantiate $m)) {functions})")
}

/// Returns a component whose `number() -> u32` returns this.
pub fn number(n: u32) -> String {
    number_with("", n)
}

/// Like [`number`], with these types, imports or sections.
pub fn number_with(before: &str, n: u32) -> String {
    component(before, &format!(r#"(func (export "number") (result i32) i32.const {n})"#), &[("number", "(result u32)")])
}

/// Returns nested components, each level instantiated `width` times, and `number`: from a few hundred bytes the engine's
/// translation makes `width` to the power of `levels` instances.
pub fn nested(width: usize, levels: usize) -> String {
    let inner = r#"(component $c0 (core module $m (func (export "f"))) (core instance (instantiate $m)))"#.to_owned();
    let inner = (1..=levels).fold(inner, |inner, level| {
        let instances = format!("(instance (instantiate $c{}))", level - 1).repeat(width);
        format!("(component $c{level} {inner} {instances})")
    });
    number_with(&format!("{inner} (instance (instantiate $c{levels}))"), 1)
}

/// Appends a custom section, which changes nothing but the bytes.
pub fn add_section(wasm: &mut Vec<u8>, name: &str, content: &[u8]) {
    // LEB128, always in five bytes, so that the size of all does not depend on that of the content.
    let number = |n: usize| {
        let n = u32::try_from(n).expect("a small section");
        let byte = move |at: u32| (n >> (7 * at)) as u8 & 0x7f;
        [0, 1, 2, 3].map(|at| byte(at) | 0x80).into_iter().chain([byte(4)])
    };
    wasm.push(0);
    wasm.extend(number(5 + name.len() + content.len()));
    wasm.extend(number(name.len()));
    wasm.extend(name.as_bytes());
    wasm.extend(content);
}
