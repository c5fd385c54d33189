//! The states of the module, with Salt's comments and changes.
//!
//! - [`toggle`]: `running` and `dead`
//! - [`boot`]: `enabled` and `disabled`, also of the two above
//! - [`masking`]: `masked` and `unmasked`
//! - [`watch`]: what a watch that fired does
//! - [`result`]: a result that is put together

mod boot;
mod masking;
mod result;
mod toggle;
mod watch;

use brine_guest::keywords::Keywords;
use brine_guest::states::StateResult;
use brine_guest::{Data, Value};

use crate::Module;
use crate::backend::Backend;
use crate::exports::states::Guest;
use crate::units::How;
use crate::wasi::clocks::monotonic_clock::subscribe_duration;
use boot::Started;
use result::Parts;

type Done = Result<StateResult, String>;

/// Upper bound on a delay in seconds: no job takes longer.
const MAX_DELAY: f64 = 86_400.0;

/// The service that a state is about.
struct Service {
    name: String,
    backend: Backend,
    sig: Option<Value>,
    /// Further keywords.
    more: Keywords,
}

impl Service {
    fn new(name: String, sig: Option<Data>, kwargs: &Data) -> Result<Self, String> {
        let sig = sig.map(|sig| sig.value()).transpose()?.filter(Value::truthy);
        Ok(Self { name, backend: Backend::of_host()?, sig, more: Keywords::new(kwargs, [])? })
    }

    fn status(&self) -> Result<Value, String> {
        self.backend.status(&self.name, self.sig.as_ref())
    }

    fn is_enabled(&self) -> Result<bool, String> {
        self.backend.is_enabled(&self.name, self.more.text("root").as_deref())
    }

    /// How the unit is to be changed: what the state says, where systemd runs.
    fn how(&self) -> How {
        How {
            no_block: self.more.get("no_block").map(Value::truthy),
            unmask: self.more.is_set("unmask"),
            unmask_runtime: self.more.is_set("unmask_runtime"),
            root: self.more.text("root"),
        }
    }
}

/// Salt's `enable`: a truth value, or one in words. Others say nothing.
fn enable(enable: Option<Data>) -> Result<Option<bool>, String> {
    Ok(match enable.map(|enable| enable.value()).transpose()? {
        Some(Value::Bool(enable)) => Some(enable),
        // As in Salt, text that is no number is true if it says so.
        Some(Value::Text(text)) => Some(match text.trim().parse::<f64>() {
            Ok(number) => number > 0.0,
            Err(_) => text.eq_ignore_ascii_case("true"),
        }),
        _ => None,
    })
}

/// Waits as long as `init_delay` says.
fn delay(init_delay: Option<&Value>) {
    let seconds = match init_delay {
        Some(Value::Int(seconds)) => *seconds as f64,
        Some(Value::Float(seconds)) => *seconds,
        _ => return,
    };
    if seconds > 0.0 {
        // The cast saturates.
        subscribe_duration((seconds.min(MAX_DELAY) * 1e9) as u64).block();
    }
}

impl Guest for Module {
    fn running(name: String, enable: Option<Data>, sig: Option<Data>, init_delay: Option<Data>, kwargs: Data) -> Done {
        let init_delay = init_delay.map(|delay| delay.value()).transpose()?.filter(Value::truthy);
        toggle::running(&Service::new(name, sig, &kwargs)?, self::enable(enable)?, init_delay.as_ref())
    }

    fn dead(name: String, enable: Option<Data>, sig: Option<Data>, init_delay: Option<Data>, kwargs: Data) -> Done {
        let init_delay = init_delay.map(|delay| delay.value()).transpose()?.filter(Value::truthy);
        toggle::dead(&Service::new(name, sig, &kwargs)?, self::enable(enable)?, init_delay.as_ref())
    }

    fn enabled(name: String, kwargs: Data) -> Done {
        let service = Service::new(name, None, &kwargs)?;
        let mut parts = Parts::good();
        parts.update(boot::enable(&service, Started::Unsaid, true)?);
        if brine_guest::states::is_dry_run() && parts.comment == boot::unavailable(&service.name) {
            parts.result = None;
            parts.comment = format!(
                "Service {} not present; if created in this state run, it would have been enabled",
                service.name
            );
        }
        Ok(parts.into())
    }

    fn disabled(name: String, kwargs: Data) -> Done {
        let mut parts = Parts::good();
        parts.update(boot::disable(&Service::new(name, None, &kwargs)?, Started::Unsaid, true)?);
        Ok(parts.into())
    }

    fn masked(name: String, runtime: Option<bool>) -> Done {
        Ok(masking::masked(&name, runtime == Some(true))?.into())
    }

    fn unmasked(name: String, runtime: Option<bool>) -> Done {
        Ok(masking::unmasked(&name, runtime == Some(true))?.into())
    }

    fn mod_watch(
        name: String,
        sfun: Option<String>,
        sig: Option<Data>,
        reload: Option<Data>,
        full_restart: Option<Data>,
        init_delay: Option<Data>,
        force: Option<Data>,
        kwargs: Data,
    ) -> Done {
        let is_set = |data: Option<Data>| {
            Ok::<_, String>(data.map(|data| data.value()).transpose()?.is_some_and(|value| value.truthy()))
        };
        // No system of these has a full restart: it is a restart.
        is_set(full_restart)?;
        let asked = watch::Asked {
            sfun: sfun.unwrap_or_else(|| "None".into()),
            reload: is_set(reload)?,
            force: is_set(force)?,
            init_delay: init_delay.map(|delay| delay.value()).transpose()?.filter(Value::truthy),
        };
        watch::fired(&Service::new(name, sig, &kwargs)?, &asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enable_is_a_truth_value_or_its_text() {
        let of = |value: Value| enable(Some(value.into())).unwrap();
        assert_eq!(of(true.into()), Some(true));
        assert_eq!(of("True".into()), Some(true));
        assert_eq!(of("1".into()), Some(true));
        assert_eq!(of("False".into()), Some(false));
        assert_eq!(of("yes".into()), Some(false));
        assert_eq!(of(Value::Int(1)), None);
        assert_eq!(enable(None), Ok(None));
    }
}
