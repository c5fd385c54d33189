//! Several returns in one request (§6.2.1), from a Brine minion. Each is accepted as if it had come alone.

use brine_protocol::job::split_returns;
use brine_protocol::request::Request;
use brine_protocol::value::Value;
use futures_util::future::join_all;

use super::ReturnIntake;
use crate::fault::Fault;
use crate::keys::MinionKey;
use crate::lanes::Turn;
use crate::refusals::Who;

impl ReturnIntake {
    /// Accepts the returns of a `_return` request of `bytes`. The answer is [`ReturnIntake::accept`]'s, or a list of one for each return.
    pub(crate) async fn accept_request(
        &self,
        mut request: Request,
        key: &MinionKey,
        bytes: u64,
        turn: &mut Turn,
    ) -> Result<Value, Fault> {
        let loads = match split_returns(&mut request.load) {
            None => return self.accept(request, key, bytes, turn).await,
            // A large request gives its turn back where it waits for its quota; several returns in one have no turn each.
            Some(Ok(_)) if turn.is_taken() => {
                return Ok(Value::from("it is too large for several returns"));
            }
            Some(Ok(loads)) => loads,
            Some(Err(why)) => {
                self.refusals.log(Who::Minion(&request.id), &format!("returns of {} were refused: {why}", request.id));
                return Ok(Value::from(why));
            }
        };
        let each = bytes / loads.len() as u64;
        // One after the other until the job store, which commits them together.
        let accepted = loads.into_iter().map(|load| {
            let one = Request { load, ..request.clone() };
            async move { self.accept(one, key, each, &mut Turn::default()).await }
        });
        let answers = join_all(accepted).await.into_iter().map(|answer| match answer {
            Ok(answer) => answer,
            Err(fault) => {
                self.refusals.log(Who::Minion(&request.id), &format!("a return of {} failed: {fault}", request.id));
                // A minion keeps a return that is answered by a text.
                Value::from("the master failed on it")
            }
        });
        Ok(Value::Array(answers.collect()))
    }
}
