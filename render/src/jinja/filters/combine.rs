//! The filters of Python's `itertools`.

use super::super::error::{JinjaError, Res};
use super::super::interp::{Interp, Passed, check};
use super::super::object::{Iter, IterKind};
use super::super::ops;
use crate::value::Value;

pub(super) const NAMES: [&str; 6] =
    ["combinations", "combinations_with_replacement", "compress", "permutations", "product", "zip_longest"];

pub(super) fn apply(interp: &mut Interp, name: &'static str, value: &Value, passed: &Passed) -> Res<Value> {
    check(value)?;
    let items = ops::iterate(interp, value)?;
    let mut made = Made { interp, rows: Vec::new() };
    let count = |given: Option<Value>, default: usize| match given.as_ref().and_then(ops::integer) {
        Some(n) => usize::try_from(n).map_err(|_| JinjaError::python("r must be non-negative")),
        None => Ok(default),
    };
    match name {
        "compress" => {
            let selectors = passed.need(0, "selectors", name)?;
            let selectors = ops::iterate(made.interp, &selectors)?;
            let kept = items.into_iter().zip(selectors).filter(|(_, keep)| keep.truthy()).map(|(item, _)| item);
            return Ok(Iter::of(IterKind::Generator("compress"), kept.collect()));
        }
        "product" => {
            let repeat = count(passed.named("repeat").cloned(), 1)?;
            let mut pools = vec![items];
            for other in &passed.positional {
                pools.push(ops::iterate(made.interp, other)?);
            }
            let pools: Vec<&[Value]> = (0..repeat.min(1 << 16)).flat_map(|_| pools.iter().map(Vec::as_slice)).collect();
            made.product(&pools, &mut Vec::new())?;
        }
        "zip_longest" => {
            let fill = passed.named("fillvalue").cloned().unwrap_or_default();
            let mut columns = vec![items];
            for other in &passed.positional {
                columns.push(ops::iterate(made.interp, other)?);
            }
            for at in 0..columns.iter().map(Vec::len).max().unwrap_or(0) {
                made.add(columns.iter().map(|c| c.get(at).unwrap_or(&fill).clone()).collect())?;
            }
        }
        "permutations" => {
            let count = count(passed.get(0, "r"), items.len())?;
            made.choose(&items, count, &mut Vec::new(), true, |at, taken| !taken.contains(&at))?;
        }
        "combinations" => {
            let count = count(Some(passed.need(0, "r", name)?), 0)?;
            made.choose(&items, count, &mut Vec::new(), false, |at, taken| taken.last().is_none_or(|last| at > *last))?;
        }
        _ => {
            let count = count(Some(passed.need(0, "r", name)?), 0)?;
            made.choose(&items, count, &mut Vec::new(), false, |at, taken| {
                taken.last().is_none_or(|last| at >= *last)
            })?;
        }
    }
    Ok(Iter::of(IterKind::Generator(name), made.rows))
}

struct Made<'a, 'h> {
    interp: &'a mut Interp<'h>,
    rows: Vec<Value>,
}

impl Made<'_, '_> {
    fn add(&mut self, row: Vec<Value>) -> Res<()> {
        self.interp.step()?;
        self.interp.charge_values(row.len() + 1)?;
        self.rows.push(Value::tuple(row));
        Ok(())
    }

    fn product(&mut self, pools: &[&[Value]], row: &mut Vec<Value>) -> Res<()> {
        let Some((first, rest)) = pools.split_first() else { return self.add(row.clone()) };
        self.interp.step()?;
        if pools.len() > 200 {
            return Err(JinjaError::limit("maximum recursion depth exceeded"));
        }
        for item in *first {
            row.push(item.clone());
            self.product(rest, row)?;
            row.pop();
        }
        Ok(())
    }

    /// All ways to take so many of the places, where each next one `fits` those that are taken.
    fn choose(
        &mut self,
        items: &[Value],
        count: usize,
        taken: &mut Vec<usize>,
        is_order: bool,
        fits: fn(usize, &[usize]) -> bool,
    ) -> Res<()> {
        self.interp.step()?;
        if taken.len() == count {
            return self.add(taken.iter().map(|at| items[*at].clone()).collect());
        }
        if count > 200 {
            // more than there can be items, or too deep
            return if count > items.len() {
                Ok(())
            } else {
                Err(JinjaError::limit("maximum recursion depth exceeded"))
            };
        }
        if is_order && count > items.len() {
            return Ok(());
        }
        for at in 0..items.len() {
            if fits(at, taken) {
                taken.push(at);
                self.choose(items, count, taken, is_order, fits)?;
                taken.pop();
            }
        }
        Ok(())
    }
}
