//! `brine:host/job`: the job that the instance runs, and its return code.

use super::bindings::brine::host::job::{Context, Host, StateContext};
use crate::guest::Guest;

impl Host for Guest {
    fn current(&mut self) -> wasmtime::Result<Context> {
        let job = self.job();
        Ok(Context {
            jid: job.jid.clone(),
            function: job.function.clone(),
            user: job.user.clone(),
            minion_id: job.minion_id.clone(),
            test: job.test,
        })
    }

    fn called_by(&mut self) -> wasmtime::Result<Option<String>> {
        Ok(self.job().called_by.clone())
    }

    fn state(&mut self) -> wasmtime::Result<Option<StateContext>> {
        Ok(self.job().state.as_ref().map(|state| StateContext {
            id: state.id.clone(),
            sls: state.sls.clone(),
            saltenv: state.saltenv.clone(),
            run_number: state.run_number,
            changed: state.changed.clone(),
        }))
    }

    fn set_retcode(&mut self, code: i32) -> wasmtime::Result<()> {
        self.retcode = Some(code);
        Ok(())
    }
}
