//! The module `http`: requests, states that ask a server, and a returner. The functions and their documentation are in
//! `wit/world.wit`.
//!
//! - [`query`] one request and its answer · [`wait`] again and again · [`states`] · [`returner`]

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "http",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/config@1.0.0": brine_guest::host::config,
        "brine:host/http@1.0.0": brine_guest::host::http,
        "brine:host/job@1.0.0": brine_guest::host::job,
    },
    generate_all,
});

mod query;
mod returner;
mod states;
mod wait;

use brine_guest::Value;
use brine_guest::states::StateResult;
use query::Query;
use states::Wanted;
use wait::Patience;

struct Module;

fn value(data: Option<Data>) -> Result<Value, String> {
    Ok(data.map(|data| data.value()).transpose()?.unwrap_or_default())
}

fn seconds(value: Option<&Value>) -> Option<f64> {
    value?.to_text().parse().ok()
}

impl Guest for Module {
    fn query(
        url: String,
        method: Option<String>,
        params: Option<Data>,
        data: Option<Data>,
        header_dict: Option<Data>,
        header_list: Option<Data>,
        username: Option<Data>,
        password: Option<Data>,
        decode: Option<bool>,
        decode_type: Option<String>,
        status: Option<bool>,
        headers: Option<bool>,
        text: Option<bool>,
        raise_error: Option<bool>,
        kwargs: Data,
    ) -> Result<Data, String> {
        query::refuse_others(&kwargs.value()?)?;
        let query = Query {
            url,
            method,
            params: value(params)?,
            data: value(data)?,
            header_dict: value(header_dict)?,
            header_list: value(header_list)?,
            username: value(username)?,
            password: value(password)?,
            decode: decode == Some(true),
            decode_type,
            status: status == Some(true),
            headers: headers == Some(true),
            text: text == Some(true),
            keep_errors: raise_error == Some(false),
        };
        Ok(query.send()?.into())
    }

    fn wait_for_successful_query(
        url: String,
        wait_for: Option<f64>,
        request_interval: Option<f64>,
        kwargs: Data,
    ) -> Result<Data, String> {
        let query = Query::of(url, &kwargs.value()?)?;
        let answer = Patience::new(wait_for, request_interval);
        Ok(answer.until(|| query.send(), |answer| answer.get("error").is_none())?.into())
    }

    fn returner(ret: Data) -> Result<bool, String> {
        returner::post(&ret.value()?)
    }
}

/// The query of a state: text and status are looked at.
fn of_state(name: String, keywords: &Value) -> Result<Query, String> {
    Ok(Query { text: true, status: true, ..Query::of(name, keywords)? })
}

impl exports::states::Guest for Module {
    fn query(
        name: String,
        match_: Option<Data>,
        match_type: Option<String>,
        status: Option<Data>,
        status_type: Option<String>,
        wait_for: Option<f64>,
        kwargs: Data,
    ) -> Result<StateResult, String> {
        let keywords = kwargs.value()?;
        let query = of_state(name, &keywords)?;
        let given = |data: Option<Data>| Ok::<_, String>(Some(value(data)?).filter(|value| *value != Value::None));
        let wanted = Wanted {
            text: given(match_)?,
            text_type: match_type.unwrap_or_else(|| "string".to_owned()),
            status: given(status)?,
            status_type: status_type.unwrap_or_else(|| "string".to_owned()),
        };
        let wait_for = wait_for.filter(|seconds| *seconds > 0.0);
        let patience = wait_for.map(|most| Patience::new(Some(most), seconds(keywords.get("request_interval"))));
        wanted.ask(&query, patience)
    }

    fn wait_for_successful_query(
        name: String,
        wait_for: Option<f64>,
        request_interval: Option<f64>,
        kwargs: Data,
    ) -> Result<StateResult, String> {
        let keywords = kwargs.value()?;
        let query = of_state(name, &keywords)?;
        let get = |name: &str| keywords.get(name).filter(|value| **value != Value::None);
        let kind = |name: &str| get(name).map_or_else(|| "string".to_owned(), Value::to_text);
        let wanted = Wanted {
            text: get("match").cloned(),
            text_type: kind("match_type"),
            status: get("status").cloned(),
            status_type: kind("status_type"),
        };
        let patience = Patience::new(wait_for, request_interval);
        patience.until(|| wanted.ask(&query, None), |result| result.result != Some(false))
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
