//! The module `match`: whether a target means this minion. The functions and their documentation are in `wit/world.wit`;
//! what they do is in `brine_render::functions`, as for templates.

wit_bindgen::generate!({
    world: "match",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/config@1.0.0": brine_guest::host::config,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/log@1.0.0": brine_guest::host::log,
        "brine:host/pillar@1.0.0": brine_guest::host::pillar,
    },
});

use std::rc::Rc;

use brine_guest::{compute, wire};
use brine_render::functions::Module as Functions;

struct Module;

type Answer = Result<Data, String>;

fn by_id(function: &str, tgt: Data, minion_id: Option<Data>) -> Answer {
    call(function, [("tgt", Some(tgt)), ("minion_id", minion_id)])
}

fn by_data(function: &str, tgt: Data, delimiter: Option<String>) -> Answer {
    call(function, [("tgt", Some(tgt)), ("delimiter", delimiter.map(Data::from))])
}

fn call<const N: usize>(function: &str, arguments: [(&str, Option<Data>); N]) -> Answer {
    compute::call(Functions::MATCH, &compute::surroundings()?, function, arguments)
}

impl Guest for Module {
    fn compound(tgt: Data, minion_id: Option<Data>) -> Answer {
        by_id("compound", tgt, minion_id)
    }

    fn glob(tgt: Data, minion_id: Option<Data>) -> Answer {
        by_id("glob", tgt, minion_id)
    }

    fn pcre(tgt: Data, minion_id: Option<Data>) -> Answer {
        by_id("pcre", tgt, minion_id)
    }

    fn list(tgt: Data, minion_id: Option<Data>) -> Answer {
        by_id("list", tgt, minion_id)
    }

    fn grain(tgt: Data, delimiter: Option<String>) -> Answer {
        by_data("grain", tgt, delimiter)
    }

    fn grain_pcre(tgt: Data, delimiter: Option<String>) -> Answer {
        by_data("grain_pcre", tgt, delimiter)
    }

    fn pillar(tgt: Data, delimiter: Option<String>) -> Answer {
        by_data("pillar", tgt, delimiter)
    }

    fn pillar_pcre(tgt: Data, delimiter: Option<String>) -> Answer {
        by_data("pillar_pcre", tgt, delimiter)
    }

    fn ipcidr(tgt: Data) -> Answer {
        call("ipcidr", [("tgt", Some(tgt))])
    }

    fn data(tgt: Data) -> Answer {
        call("data", [("tgt", Some(tgt))])
    }

    fn filter_by(
        lookup: Data,
        tgt_type: Option<Data>,
        minion_id: Option<Data>,
        merge: Option<Data>,
        merge_lists: Option<Data>,
        default: Option<Data>,
    ) -> Answer {
        let options = [("merge", merge), ("merge_lists", merge_lists), ("default", default)];
        let [merge, merge_lists, default] = options;
        call(
            "filter_by",
            [("lookup", Some(lookup)), ("tgt_type", tgt_type), ("minion_id", minion_id), merge, merge_lists, default],
        )
    }

    fn search_by(lookup: Data, tgt_type: Option<Data>, minion_id: Option<Data>) -> Answer {
        call("search_by", [("lookup", Some(lookup)), ("tgt_type", tgt_type), ("minion_id", minion_id)])
    }

    fn ifelse(
        args: Vec<Data>,
        tgt_type: Option<Data>,
        minion_id: Option<Data>,
        merge: Option<Data>,
        merge_lists: Option<Data>,
    ) -> Answer {
        let args = args.iter().map(wire::value).collect::<Result<Vec<_>, _>>()?;
        let named = [("tgt_type", tgt_type), ("minion_id", minion_id), ("merge", merge), ("merge_lists", merge_lists)];
        let given = named.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let named = given.map(|(name, value)| Ok((Rc::from(name), wire::value(&value)?)));
        compute::run(
            Functions::MATCH,
            &compute::surroundings()?,
            "ifelse",
            args,
            named.collect::<Result<Vec<_>, String>>()?,
        )
    }
}

export!(Module);
