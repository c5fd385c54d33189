//! `file.serialize`: a value as YAML, JSON or a file of sections.

use brine_guest::states::is_dry_run;
use brine_guest::{Value, wire};
use brine_render::yaml;

use super::arguments::Arguments;
use super::ret::Ret;
use crate::edit::{lines, place};
