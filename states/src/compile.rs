//! The compile as Salt's functions see it: highstate, SLS, top, in each form that is shown or run.

use brine_render::{Dict, Value};

use crate::fault::{Fault, Res};
use crate::high::{self, Renderer};
use crate::host::{File, Host};
use crate::limits::{Budget, Limits};
use crate::low::{self, Lowstate};
use crate::options::Options;
use crate::run::Run;
use crate::{python, requisites, top};

/// What came of a compile that can say what is wrong.
pub type Compiled<T> = Result<Result<T, Vec<String>>, Fault>;

/// What a run of a highstate can say before it begins.
pub enum Start<'a> {
    /// The chunks, to be run.
    Run(Box<Run<'a>>),
    /// The compile found errors.
    Errors(Vec<String>),
    /// There is nothing to run: a return that says so.
    Nothing(Dict),
}

/// Compiles states for one job.
pub struct Compiler<'a> {
    pub(crate) host: &'a dyn Host,
    pub(crate) options: &'a Options,
    pub(crate) budget: Budget,
}

impl<'a> Compiler<'a> {
    /// A compiler with its bounds. The pillar has been checked for errors.
    pub fn new(host: &'a dyn Host, options: &'a Options, limits: Limits) -> Self {
        Self { host, options, budget: Budget::new(limits) }
    }

    fn renderer(&self) -> Renderer<'_> {
        Renderer::new(self.host, self.options, &self.budget)
    }

    /// The merged top; a top file that does not render counts as none.
    fn merged_top(&self, renderer: &Renderer<'_>) -> Res<Dict> {
        match top::tops(renderer) {
            Ok(tops) => top::merge(&tops, self.options),
            Err(Fault::Render(why)) => {
                self.host.warn(&format!("Unable to render top file: {why}"));
                Ok(Dict::default())
            }
            Err(other) => Err(other),
        }
    }

    /// What is wrong with the pillar, if anything is: then states neither compile nor run.
    pub fn pillar_errors(&self) -> Option<Vec<String>> {
        let Value::Dict(pillar) = &self.options.pillar else { return None };
        let errors = pillar.get("_errors").filter(Value::truthy)?;
        Some(python::iterate(&errors).unwrap_or_else(|_| vec![errors.clone()]).iter().map(python::name).collect())
    }

    /// `state.show_top`: SLS names by environment.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn show_top(&self) -> Compiled<Dict> {
        let renderer = self.renderer();
        let top = self.merged_top(&renderer)?;
        let errors = top::verify(&top)?;
        if errors.is_empty() { Ok(Ok(top::matches(&renderer, &top)?)) } else { Ok(Err(errors)) }
    }

    /// `state.show_highstate`: high data.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn show_highstate(&self) -> Compiled<Dict> {
        let mut renderer = self.renderer();
        let top = self.merged_top(&renderer)?;
        let mut errors = top::verify(&top)?;
        let matches = top::matches(&renderer, &top)?;
        let (high, more) = renderer.highstate(&matches)?;
        errors.extend(more);
        Ok(if errors.is_empty() { Ok(high) } else { Err(errors) })
    }

    /// `state.show_lowstate`: low chunks of the highstate, with all requisites.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn show_lowstate(&self) -> Compiled<Vec<Dict>> {
        let mut renderer = self.renderer();
        let top = self.merged_top(&renderer)?;
        let matches = top::matches(&renderer, &top)?;
        let (high, mut errors) = renderer.highstate(&matches)?;
        errors.extend(requisites::extend(&high, false, &self.budget)?);
        errors.extend(high::verify(&high, &self.budget)?);
        errors.extend(requisites::add_to_others(&high, &self.options.disabled_requisites, &self.budget)?);
        requisites::exclude(&high, &self.budget)?;
        if !errors.is_empty() {
            return Ok(Err(errors));
        }
        Ok(self.low(&high, None)?.map(|low| low.chunks))
    }

    /// `state.show_states`: the SLS names of the highstate, in the order in which they run.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn show_states(&self) -> Compiled<Vec<Value>> {
        let chunks = match self.show_lowstate()? {
            Ok(chunks) => chunks,
            Err(errors) => return Ok(Err(errors)),
        };
        let names: Dict =
            chunks.iter().filter_map(|chunk| Some((python::key(&chunk.get("__sls__")?).ok()?, Value::None))).collect();
        Ok(Ok(python::keys(&names)))
    }

    /// High data of SLS files of one environment, and what is wrong with them.
    fn render_sls(&self, names: &[String]) -> Res<(Dict, Vec<String>)> {
        let saltenv = self.options.saltenv.as_deref().unwrap_or("base");
        let matches = Dict::default();
        matches.set(saltenv, Value::list(names.iter().map(|name| name.as_str().into())));
        self.renderer().highstate(&matches)
    }

    /// `state.show_sls`: high data of SLS files.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn show_sls(&self, names: &[String]) -> Compiled<Dict> {
        let (high, mut errors) = self.render_sls(names)?;
        errors.extend(high::verify(&high, &self.budget)?);
        Ok(if errors.is_empty() { Ok(high) } else { Err(errors) })
    }

    /// `state.show_low_sls`: low chunks of SLS files. As in Salt, without `extend`, and without what states give others.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn show_low_sls(&self, names: &[String]) -> Compiled<Vec<Dict>> {
        match self.show_sls(names)? {
            Ok(high) => Ok(self.low(&high, None)?.map(|low| low.chunks)),
            Err(errors) => Ok(Err(errors)),
        }
    }

    /// `state.sls_exists`
    ///
    /// # Errors
    /// [`Fault`]
    pub fn sls_exists(&self, names: &[String]) -> Result<bool, Fault> {
        Ok(self.show_sls(names)?.is_ok())
    }

    /// `state.id_exists`
    ///
    /// # Errors
    /// [`Fault`]; Salt's is a TypeError if the SLS files do not compile.
    pub fn id_exists(&self, ids: &[String], names: &[String]) -> Result<bool, Fault> {
        let chunks =
            self.show_low_sls(names)?.map_err(|_| Fault::type_error("string indices must be integers, not 'str'"))?;
        let there: Vec<Value> = chunks.iter().filter_map(|chunk| chunk.get("__id__")).collect();
        Ok(ids.iter().all(|id| there.iter().any(|there| there.as_str() == Some(id))))
    }

    /// `state.show_state_usage`: of each environment, the SLS files that the top names and those that it does not.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn show_state_usage(&self) -> Compiled<Dict> {
        let renderer = self.renderer();
        let top = self.merged_top(&renderer)?;
        let errors = top::verify(&top)?;
        if !errors.is_empty() {
            return Ok(Err(errors));
        }
        let matches = top::matches(&renderer, &top)?;
        let usage = Dict::default();
        for saltenv in renderer.files.listed() {
            let named = matches.get(&saltenv).map_or(Ok(Vec::new()), |list| python::iterate(&list))?;
            let all = renderer.files.all(&saltenv).into_iter().map(Value::Str);
            let (used, unused): (Vec<Value>, Vec<Value>) = all.partition(|sls| named.contains(sls));
            let counts = Dict::default();
            let count = |list: &[Value]| Value::from(list.len() as u64);
            counts.set("count_all", Value::from((used.len() + unused.len()) as u64));
            counts.set("count_used", count(&used));
            counts.set("count_unused", count(&unused));
            counts.set("used", Value::list(used));
            counts.set("unused", Value::list(unused));
            usage.set(&saltenv, counts.into());
        }
        Ok(Ok(usage))
    }

    fn low(&self, high: &Dict, orchestration_jid: Option<&Value>) -> Compiled<Lowstate> {
        low::compile(high, orchestration_jid, self.host, self.options, &self.budget)
    }

    /// `state.high`: the run of high data.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn high(&self, high: &Dict, orchestration_jid: Option<&Value>) -> Compiled<Run<'a>> {
        let budget = &self.budget;
        let mut errors = requisites::extend(high, false, budget)?;
        errors.extend(high::verify(high, budget)?);
        if !errors.is_empty() {
            return Ok(Err(errors));
        }
        errors.extend(requisites::add_to_others(high, &self.options.disabled_requisites, budget)?);
        requisites::exclude(high, budget)?;
        if !errors.is_empty() {
            return Ok(Err(errors));
        }
        Ok(self.low(high, orchestration_jid)?.map(|low| Run::new(low, self.host, self.options, &budget.limits)))
    }

    /// `state.sls`: the run of SLS files. `exclude` is as an SLS has it.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn sls(&self, names: &[String], exclude: &[Value], orchestration_jid: Option<&Value>) -> Compiled<Run<'a>> {
        let (high, errors) = self.render_sls(names)?;
        if !errors.is_empty() {
            return Ok(Err(errors));
        }
        add_excludes(&high, exclude)?;
        self.high(&high, orchestration_jid)
    }

    /// `state.highstate`: the run of what the top files name. `whitelist`: only these SLS files of them.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn highstate(
        &self,
        exclude: &[Value],
        whitelist: &[String],
        orchestration_jid: Option<&Value>,
    ) -> Result<Start<'a>, Fault> {
        let mut renderer = self.renderer();
        let top = self.merged_top(&renderer);
        let top = match top {
            Err(Fault::Render(why)) => return Ok(nothing(&format!("Unable to render top file: {why}"))),
            other => other?,
        };
        let mut errors = top::verify(&top)?;
        let mut matches = top::matches(&renderer, &top)?;
        if matches.borrow().is_empty() {
            return Ok(nothing("No Top file or master_tops data matches found. Please see master log for details."));
        }
        if !whitelist.is_empty() {
            matches = listed(&matches, whitelist)?;
        }
        let (high, more) = renderer.highstate(&matches)?;
        errors.extend(more);
        add_excludes(&high, exclude)?;
        if !errors.is_empty() {
            return Ok(Start::Errors(errors));
        }
        if high.borrow().is_empty() {
            return Ok(nothing("No states found for this minion"));
        }
        Ok(match self.high(&high, orchestration_jid)? {
            Ok(run) => Start::Run(Box::new(run)),
            Err(errors) => Start::Errors(errors),
        })
    }

    /// `state.template`, `state.template_str`: the run of one file that is no SLS of the file server. Names in its errors
    /// are `sls`.
    ///
    /// # Errors
    /// [`Fault`]
    pub fn template(&self, file: &File, sls: &str) -> Compiled<Run<'a>> {
        let saltenv = self.options.saltenv.clone().unwrap_or_default();
        let (high, errors) = self.renderer().file(file, false, sls, &saltenv, &Dict::default(), 0)?;
        match high {
            _ if !errors.is_empty() => Ok(Err(errors)),
            Value::Dict(high) => self.high(&high, None),
            _ => self.high(&Dict::default(), None),
        }
    }
}

/// Adds what the caller excludes to what the files exclude.
fn add_excludes(high: &Dict, exclude: &[Value]) -> Res<()> {
    if !exclude.is_empty() {
        python::extend(&python::default_list(high, "__exclude__"), &Value::list(exclude.iter().cloned()))?;
    }
    Ok(())
}

/// The SLS names that are in a list.
fn listed(matches: &Dict, whitelist: &[String]) -> Res<Dict> {
    let kept = Dict::default();
    for (saltenv, names) in python::entries(matches) {
        let names = python::iterate(&names)?.into_iter();
        let names: Vec<Value> = names.filter(|name| whitelist.iter().any(|one| name.as_str() == Some(one))).collect();
        if !names.is_empty() {
            python::set_item(&kept.clone().into(), &saltenv, Value::list(names))?;
        }
    }
    Ok(kept)
}

/// The return of a highstate without states.
fn nothing<'a>(comment: &str) -> Start<'a> {
    let result = Dict::default();
    result.set("result", false.into());
    result.set("comment", comment.into());
    result.set("name", "No States".into());
    result.set("changes", Value::dict([]));
    result.set("__run_num__", 0.into());
    let all = Dict::default();
    all.set("no_|-states_|-states_|-None", result.into());
    Start::Nothing(all)
}
