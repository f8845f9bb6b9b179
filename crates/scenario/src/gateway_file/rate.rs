//! `[rate]`: the flow routers of a gateway. All keys but the rates and the encodings are those of
//! `[[flow_routers]]` in scenarios.

use super::keys::RateKeys;
use super::types::{Kind as DeployKind, ManagedRates};
use crate::diagnostic::{Fault, Result};
use crate::form::{At, Form, Read, wrong};
use crate::resolve::flow_routers::{config, encodings};
use crate::resolve::signalling::least_unit;
use crate::scalars::wrong_word;
use crate::value::{Kind, Value};
use bentpipe_advice::RATE_UNIT_BPS;
use bentpipe_base::{Rate, Size};
use bentpipe_flow_router::{Encodings, RouterConfig, RouterEncoding};
use bentpipe_gateway::Config;
use serde_json::json;

/// Largest packet of a direction, unless the file says otherwise.
const MTU: Size = Size(1500);

/// A list of encodings, perhaps empty.
#[derive(Clone, Debug)]
pub(crate) struct EncodingList(pub(crate) Vec<At<RouterEncoding>>);

impl Read for EncodingList {
    const FORM: Form = Form::Fixed("list of encodings", || {
        let words = RouterEncoding::ALL.map(RouterEncoding::word);
        json!({ "type": "array", "uniqueItems": true, "items": { "enum": words } })
    });

    fn read(value: &Value, key: &str) -> Result<Self> {
        let Kind::Array(items) = &value.kind else {
            return Err(
                wrong(value, key, "a list of encodings").help("help: write [\"tia-1039\", \"scone\"]")
            );
        };
        let one = |item: &Value| {
            let named = RouterEncoding::ALL.into_iter().find(|known| item.text() == Some(known.word()));
            let words = RouterEncoding::ALL.map(RouterEncoding::word);
            Ok(At { value: named.ok_or_else(|| wrong_word(item, key, &words))?, span: item.span })
        };
        items.iter().map(one).collect::<Result<_>>().map(Self)
    }
}

/// Returns the configurations of the flow routers; none if they are off. `hop`: the satellite hop.
pub(super) fn resolve(
    given: &At<RateKeys>,
    hop: &Config,
    deployed: DeployKind,
) -> Result<Option<ManagedRates>> {
    let keys = &given.value;
    let none = Encodings::default();
    let encodings = keys.encodings.as_ref().map_or(Ok(none), |given| encodings(&given.value))?;
    let hop_rate = hop.rate.unwrap_or(Rate::from_bps(RATE_UNIT_BPS).expect("more than zero"));
    let of_hop = config(&keys.sharing, hop_rate, MTU)?;
    of_hop.check().map_err(|why| Fault::new(given.span, format!("[rate]: {why}"), ""))?;
    let own = hop.rate.map(|rate| of_hop.of_packets(rate, hop.framing));
    let least = |key, given: Option<At<Rate>>| given.map(|rate| least_unit(key, rate)).transpose();
    let (rate, return_rate) = (least("rate", keys.rate)?.or(own), least("return_rate", keys.return_rate)?);
    let Some(rate) = rate else {
        if encodings.is_empty() {
            return Ok(None);
        }
        let message = "the rate to be shared out is not known";
        return Err(Fault::new(given.span, message, "give `rate` here, or in [satellite]"));
    };
    // the kernel forwards a routed packet twice: to the gateway and from it
    let hops = if deployed == DeployKind::Routed { 2 } else { 0 };
    let router = |rate| RouterConfig { rate, hops, encodings, is_live: true, ..of_hop.clone() };
    let rates = ManagedRates { outward: router(rate), inward: return_rate.map(router) };
    Ok((!encodings.is_empty()).then_some(rates))
}
