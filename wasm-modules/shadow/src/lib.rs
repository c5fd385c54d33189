//! The module `shadow`: the passwords of this host's users. The functions and their documentation are in
//! `wit/world.wit`.

wit_bindgen::generate!({
    world: "shadow",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/process@1.0.0": brine_guest::host::process,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/log@1.0.0": brine_guest::host::log,
    },
    generate_all,
});

use brine_accounts::hash::{self, Algorithm};
use brine_accounts::shadow::{self, Age};
use wasi::random::random::get_random_u64;

struct Module;

impl Guest for Module {
    fn default_hash() -> String {
        shadow::UNSET.into()
    }

    fn info(name: String, root: Option<String>) -> Result<Data, String> {
        Ok(shadow::value(shadow::find(&name, root.as_deref())?.as_ref()).into())
    }

    fn list_users(root: Option<String>) -> Result<Vec<String>, String> {
        let mut names: Vec<String> = shadow::all(root.as_deref())?.into_iter().map(|shadow| shadow.name).collect();
        names.sort();
        Ok(names)
    }

    fn set_inactdays(name: String, inactdays: Data, root: Option<String>) -> Result<bool, String> {
        shadow::set_age(&name, Age::Inactive, &inactdays.value()?, root.as_deref())
    }

    fn set_maxdays(name: String, maxdays: Data, root: Option<String>) -> Result<bool, String> {
        shadow::set_age(&name, Age::Max, &maxdays.value()?, root.as_deref())
    }

    fn set_mindays(name: String, mindays: Data, root: Option<String>) -> Result<bool, String> {
        shadow::set_age(&name, Age::Min, &mindays.value()?, root.as_deref())
    }

    fn set_warndays(name: String, warndays: Data, root: Option<String>) -> Result<bool, String> {
        shadow::set_age(&name, Age::Warn, &warndays.value()?, root.as_deref())
    }

    fn set_date(name: String, date: Data, root: Option<String>) -> Result<bool, String> {
        shadow::set_age(&name, Age::Changed, &date.value()?, root.as_deref())
    }

    fn set_expire(name: String, expire: Data, root: Option<String>) -> Result<bool, String> {
        shadow::set_age(&name, Age::Expire, &expire.value()?, root.as_deref())
    }

    fn gen_password(password: String, crypt_salt: Option<String>, algorithm: Option<String>) -> Result<String, String> {
        let algorithm = Algorithm::named(algorithm.as_deref().unwrap_or("sha512"))?;
        let salt = crypt_salt.unwrap_or_else(|| {
            let mut random = [0; 16];
            random[..8].copy_from_slice(&get_random_u64().to_le_bytes());
            random[8..].copy_from_slice(&get_random_u64().to_le_bytes());
            hash::salt(random)
        });
        hash::hash(&password, &salt, algorithm)
    }

    fn set_password(
        name: String,
        password: String,
        _use_usermod: Option<Data>,
        root: Option<String>,
    ) -> Result<bool, String> {
        shadow::set_hash(&name, &password, root.as_deref())
    }

    fn del_password(name: String, root: Option<String>) -> Result<bool, String> {
        shadow::delete_hash(&name, root.as_deref())
    }

    fn lock_password(name: String, root: Option<String>) -> Result<bool, String> {
        shadow::lock(&name, true, root.as_deref())
    }

    fn unlock_password(name: String, root: Option<String>) -> Result<bool, String> {
        shadow::lock(&name, false, root.as_deref())
    }
}

export!(Module);
