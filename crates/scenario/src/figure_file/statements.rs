//! Resolves the statements of a figure file. A statement without a tolerance is an error.

use super::keys::StatementKeys;
use super::resolve::Context;
use super::types::{Accept, Claim, Statement, Tolerance};
use crate::diagnostic::{Fault, Result, bail};
use crate::form::At;
use crate::gateway_file::OneOrList;
use crate::quantity::Dimension;
use crate::scalars::Text;
use crate::source::Span;

const MOST: usize = 200;

pub(super) fn all(given: Vec<At<StatementKeys>>, context: &Context<'_>) -> Result<Vec<Statement>> {
    if let Some(one) = given.get(MOST) {
        return Err(Fault::too_many(one.span, "statements", MOST));
    }
    given.into_iter().map(|s| statement(s, context)).collect()
}

fn statement(given: At<StatementKeys>, context: &Context<'_>) -> Result<Statement> {
    let At { value: keys, span } = given;
    let claim = match (&keys.order, &keys.curve) {
        (Some(_), Some(curve)) => {
            bail!(curve.span, "a statement has `curve` or `order`, not both", "leave one of them out");
        }
        (None, None) => {
            return Err(Fault::new(span, "the statement says nothing that can be checked", "give `curve` or `order`")
                .help("help: write curve = \"...\", expect = \"...\" and tolerance = \"5 %\", or order = [\"...\", \"...\"]"));
        }
        (Some(order), None) => of_order(&keys, order, span, context)?,
        (None, Some(curve)) => {
            let over = keys.over.as_ref().map(|o| context.curve(&o.value.0, o.span)).transpose()?;
            Claim::Value {
                curve: context.curve(&curve.value.0, curve.span)?,
                over,
                accept: Box::new(accept(&keys, span, context)?),
            }
        }
    };
    let at = match &keys.at {
        Some(at) => at.value.0.iter().map(|at| context.place(at)).collect::<Result<_>>()?,
        None => (0..context.across.as_ref().map_or(1, |a| a.values.len())).collect(),
    };
    let text = context.located(keys.text.map(|t| t.0));
    Ok(Statement { text, claim, at, notes: keys.notes.map(|n| n.value.0) })
}

fn of_order(
    keys: &StatementKeys,
    order: &At<OneOrList<Text>>,
    span: Span,
    context: &Context<'_>,
) -> Result<Claim> {
    let needless = [
        ("over", keys.over.as_ref().map(|k| k.span)),
        ("expect", keys.expect.as_ref().map(|k| k.span)),
        ("between", keys.between.as_ref().map(|k| k.span)),
    ];
    if let Some((key, span)) = needless.into_iter().find_map(|(key, span)| Some((key, span?))) {
        bail!(span, "`{key}` has no effect beside `order`", "leave it out");
    }
    let mut curves = Vec::new();
    for name in &order.value.0 {
        let curve = context.curve(&name.value.0, name.span)?;
        if curves.contains(&curve) {
            bail!(name.span, "a curve is not above itself", "leave it out");
        }
        curves.push(curve);
    }
    if curves.len() < 2 {
        bail!(order.span, "an order has at least two curves", "write the highest first");
    }
    match keys.tolerance {
        Some(At { value: Tolerance::Share(tolerance), .. }) if tolerance < 1.0 => {
            Ok(Claim::Order { curves, tolerance })
        }
        Some(wrong) => {
            Err(Fault::new(wrong.span, "the tolerance of an order is a share", "write it as in \"1 %\"")
                .help("help: by this share a curve may be below the one after it; \"0 %\" allows nothing"))
        }
        None => Err(no_tolerance(span, "\"0 %\", or by how much a curve may be below the one after it")),
    }
}

fn no_tolerance(span: Span, what: &str) -> Fault {
    Fault::new(span, "the statement has no `tolerance`", "without one nothing is checked")
        .help(format!("help: write tolerance = {what}"))
}

fn accept(keys: &StatementKeys, span: Span, context: &Context<'_>) -> Result<Accept> {
    let expect = keys.expect.clone().map(|e| context.located(e.map(|e| e.0)));
    if let Some(between) = &keys.between {
        if let Some(tolerance) = keys.tolerance {
            bail!(
                tolerance.span,
                "a statement has `tolerance` or `between`, not both",
                "leave one of them out"
            );
        }
        let [low, high] = between.value.0.clone().map(|v| v.map(|v| v.0));
        let comparable = low.value.amount.dimension == high.value.amount.dimension;
        if !comparable || low.value.amount.value > high.value.amount.value {
            bail!(high.span, "`between` ends below its beginning", "write [lowest, highest] in like units");
        }
        return Ok(Accept::Between { low: context.located(low), high: context.located(high), expect });
    }
    let Some(expect) = expect else {
        let label = "give `expect` and `tolerance`, or `between`";
        return Err(Fault::new(span, "the statement expects nothing", label)
            .help("help: write expect = \"1 Mbit/s\" and tolerance = \"5 %\", or between = [\"0.9 Mbit/s\", \"1.1 Mbit/s\"]"));
    };
    let Some(tolerance) = keys.tolerance else { return Err(no_tolerance(span, "\"5 %\", or an amount")) };
    let of_expect = expect.value.amount.dimension;
    if let Tolerance::Amount(amount) = tolerance.value
        && amount.dimension != of_expect
    {
        let label =
            if amount.dimension == Dimension::Bare { "it needs a unit, or %" } else { "it has another unit" };
        bail!(tolerance.span, "`tolerance` does not fit `expect`", "{label}");
    }
    Ok(Accept::Near { expect, tolerance: context.located(tolerance) })
}
