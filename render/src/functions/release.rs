//! `salt_version`: the release of Salt that a minion behaves like, beside the code names of releases.

use super::Level;
use super::call::{Call, Row};
use crate::data::CallError;
use crate::value::{Key, Value};

pub(super) const ROWS: &[Row] = &[
    Row::new("get_release_number", "name", |call| Ok(number(call)?.map(Value::from).unwrap_or_default())),
    Row::new("equal", "name", |call| Ok(order(call)?.is_some_and(|order| order.is_eq()).into())),
    Row::new("greater_than", "name", |call| Ok(order(call)?.is_some_and(|order| order.is_gt()).into())),
    Row::new("less_than", "name", |call| Ok(order(call)?.is_some_and(|order| order.is_lt()).into())),
];

/// The chemical elements in their order, by which Salt's releases are named.
const ELEMENTS: &str = "hydrogen helium lithium beryllium boron carbon nitrogen oxygen fluorine neon sodium magnesium aluminium \
    silicon phosphorus sulfur chlorine argon potassium calcium scandium titanium vanadium chromium manganese iron cobalt nickel \
    copper zinc gallium germanium arsenic selenium bromine krypton rubidium strontium yttrium zirconium niobium molybdenum \
    technetium ruthenium rhodium palladium silver cadmium indium tin antimony tellurium iodine xenon cesium barium lanthanum \
    cerium praseodymium neodymium promethium samarium europium gadolinium terbium dysprosium holmium erbium thulium ytterbium \
    lutetium hafnium tantalum tungsten rhenium osmium iridium platinum gold mercury thallium lead bismuth polonium astatine \
    radon francium radium actinium thorium protactinium uranium neptunium plutonium americium curium berkelium californium \
    einsteinium fermium mendelevium nobelium lawrencium rutherfordium dubnium seaborgium bohrium hassium meitnerium \
    darmstadtium roentgenium copernicium nihonium flerovium moscovium livermorium tennessine oganesson";
/// The releases before 3000: year and month.
const DATED: [(u32, u32); 9] =
    [(2014, 1), (2014, 7), (2015, 5), (2015, 8), (2016, 3), (2016, 11), (2017, 7), (2018, 3), (2019, 2)];
/// The first release after those.
const FIRST: u32 = 3000;

/// Year and month, or the number and nothing.
fn release(name: &str) -> Option<(u32, Option<u32>)> {
    let at = ELEMENTS.split_whitespace().position(|element| element == name)?;
    match DATED.get(at) {
        Some((year, month)) => Some((*year, Some(*month))),
        None => Some((FIRST + u32::try_from(at - DATED.len()).ok()?, None)),
    }
}

fn named(call: &Call<'_>) -> Result<Option<(u32, Option<u32>)>, CallError> {
    let name = call.need("name");
    let Some(name) = name.as_str() else { return Err(CallError::refused("'name' argument must be a string")) };
    let found = release(&name.to_lowercase());
    if found.is_none() {
        call.surroundings.say(Level::Info, &format!("no release of Salt is called {name}"));
    }
    Ok(found)
}

fn number(call: &Call<'_>) -> Result<Option<String>, CallError> {
    Ok(named(call)?.map(|(first, second)| match second {
        Some(second) => format!("{first}.{second}"),
        None => first.to_string(),
    }))
}

/// How this minion's release compares with a named one: by its first number.
fn order(call: &Call<'_>) -> Result<Option<std::cmp::Ordering>, CallError> {
    let Some(release) = named(call)? else { return Ok(None) };
    let surroundings = call.surroundings;
    let key = Key::from("saltversion");
    let known = |values: &crate::value::Dict| values.borrow().get(&key).and_then(first_number);
    // In a master's templates, the release is the master's.
    let own = known(&surroundings.opts).or_else(|| known(&surroundings.grains));
    let own = own.ok_or_else(|| CallError::refused("this minion has no grain saltversion"))?;
    Ok(Some((own, None).cmp(&release)))
}

fn first_number(version: &Value) -> Option<u32> {
    version.as_str()?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_releases_in_their_order() {
        for (name, expected) in [
            ("hydrogen", Some((2014, Some(1)))),
            ("fluorine", Some((2019, Some(2)))),
            ("neon", Some((3000, None))),
            ("argon", Some((3008, None))),
            ("oganesson", Some((3108, None))),
            ("phlogiston", None),
        ] {
            assert_eq!(release(name), expected, "{name}");
        }
    }
}
