//! States of grains of any value.

use brine_guest::Value;
use brine_guest::lookup::traverse;
use brine_guest::states::no_changes;

use super::Came;
use crate::DELIMITER;
use crate::change::{Setting, set};

pub(super) fn present(grains: &Value, name: &str, value: &Value, force: bool, dry: bool) -> Came {
    let known = traverse(grains, name, DELIMITER);
    if known.is_some_and(|known| known.same(value)) {
        return Came::good("Grain is already set");
    }
    if dry {
        return match known {
            None => Came::would(format!("Grain {name} is set to be added"), Value::dict([("new", name.into())])),
            Some(_) => {
                let changed = Value::dict([(name, value.clone())]);
                Came::would(format!("Grain {name} is set to be changed"), Value::dict([("changed", changed)]))
            }
        };
    }
    let setting = Setting { key: name, value: value.clone(), force, destructive: false, delimiter: DELIMITER };
    match set(grains, &setting) {
        Err(why) => Came::bad(why),
        Ok(None) => Came::good("Grain is already set"),
        Ok(Some((top, whole))) => {
            let changes = Value::dict([(top.as_str(), whole.clone())]);
            Came::writing((top, whole), format!("Set grain {name} to {}", value.to_text()), changes)
        }
    }
}

pub(super) fn absent(grains: &Value, name: &str, destructive: bool, force: bool, dry: bool) -> Came {
    let Some(known) = traverse(grains, name, DELIMITER) else {
        return Came::good(format!("Grain {name} does not exist"));
    };
    let has_value = *known != Value::None;
    let deleted = || Value::dict([("deleted", name.into())]);
    let emptied = || Value::dict([("grain", name.into()), ("value", Value::None)]);
    if dry {
        return match (destructive, has_value) {
            (true, _) => Came::would(format!("Grain {name} is set to be deleted"), deleted()),
            (false, true) => Came::would(format!("Value for grain {name} is set to be deleted (None)"), emptied()),
            // As Salt's, which says nothing there.
            (false, false) => Came::would("", no_changes()),
        };
    }
    match set(grains, &Setting { key: name, value: Value::None, force, destructive, delimiter: DELIMITER }) {
        Err(why) => Came::bad(why),
        Ok(None) => Came::good("Grain is already set"),
        Ok(Some(changed)) => {
            let (comment, changes) = match destructive {
                true => (format!("Grain {name} was deleted"), deleted()),
                false => (format!("Value for grain {name} was set to None"), emptied()),
            };
            Came { write: Some((changed, destructive)), ..Came::new(Some(true), comment, changes) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{grains, said};
    use super::*;

    #[test]
    fn a_grain_is_set_and_changed() {
        let real = |name: &str, value: Value, force| said(present(&grains(), name, &value, force, false));
        let dry = |name: &str, value: Value| said(present(&grains(), name, &value, false, true));
        assert_eq!(real("role", "web".into(), false), "True Grain is already set {}");
        assert_eq!(real("none", Value::None, false), "True Grain is already set {}");
        assert_eq!(real("role", "db".into(), false), "True Set grain role to db {'role': 'db'} > role=db");
        assert_eq!(real("a:b", 1_i64.into(), false), "True Set grain a:b to 1 {'a': {'b': 1}} > a={'b': 1}");
        assert_eq!(
            real("roles", "x".into(), false),
            "False The key 'roles' exists but is a dict or a list. Use 'force=True' to overwrite. {}"
        );
        assert_eq!(real("roles", "x".into(), true), "True Set grain roles to x {'roles': 'x'} > roles=x");
        assert_eq!(dry("role", "db".into()), "None Grain role is set to be changed {'changed': {'role': 'db'}}");
        assert_eq!(dry("new", "db".into()), "None Grain new is set to be added {'new': 'new'}");
        assert_eq!(dry("role", "web".into()), "True Grain is already set {}");
    }

    #[test]
    fn a_grain_loses_its_value_or_goes() {
        let real = |name: &str, destructive, force| said(absent(&grains(), name, destructive, force, false));
        let dry = |name: &str, destructive| said(absent(&grains(), name, destructive, false, true));
        assert_eq!(real("nothing", true, true), "True Grain nothing does not exist {}");
        assert_eq!(
            real("role", false, false),
            "True Value for grain role was set to None {'grain': 'role', 'value': None} > role=None"
        );
        assert_eq!(real("role", true, false), "True Grain role was deleted {'deleted': 'role'} > role gone");
        assert_eq!(real("none", false, false), "True Grain is already set {}");
        assert_eq!(real("none", true, false), "True Grain none was deleted {'deleted': 'none'} > none gone");
        assert_eq!(
            real("roles", false, false),
            "False The key 'roles' exists but is a dict or a list. Use 'force=True' to overwrite. {}"
        );
        assert_eq!(real("roles", true, true), "True Grain roles was deleted {'deleted': 'roles'} > roles gone");
        assert_eq!(
            real("app:port", true, false),
            "True Grain app:port was deleted {'deleted': 'app:port'} > app={'empty': []}"
        );
        assert_eq!(dry("role", true), "None Grain role is set to be deleted {'deleted': 'role'}");
        assert_eq!(
            dry("role", false),
            "None Value for grain role is set to be deleted (None) {'grain': 'role', 'value': None}"
        );
        assert_eq!(dry("none", false), "None  {}");
    }
}
