//! Who is connected, for runners.

use std::sync::Arc;

use brine_protocol::value::Value;

use super::Outcome;
use crate::master::Master;
use crate::presence;

/// `manage.alived`, or its contrary.
pub(super) async fn alived(master: &Arc<Master>, yes: bool) -> Outcome {
    let (there, not) = presence::partition(master).await.map_err(|error| error.to_string())?;
    let ids = if yes { there } else { not };
    Ok(Value::Array(ids.iter().map(Value::from).collect()))
}
