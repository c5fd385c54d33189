//! `brine:host/job`: the job that the instance runs, and its return code.

use super::bindings::brine::host::job::{Context, Host};
use crate::guest::Guest;

impl Host for Guest {
    fn current(&mut self) -> wasmtime::Result<Context> {
        let job = &self.context;
        Ok(Context {
            jid: job.jid.clone(),
            function: job.function.clone(),
            user: job.user.clone(),
            minion_id: job.minion_id.clone(),
            test: job.test,
        })
    }

    fn called_by(&mut self) -> wasmtime::Result<Option<String>> {
        Ok(self.context.called_by.clone())
    }

    fn set_retcode(&mut self, code: i32) -> wasmtime::Result<()> {
        self.retcode = Some(code);
        Ok(())
    }
}
