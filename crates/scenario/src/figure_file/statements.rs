//! Resolves the statements of a figure file. A statement without a tolerance is an error.

use super::keys::StatementKeys;
use super::resolve::{Context, settings};
use super::scalars::{Coordinate, Interval, Printed, Settings};
use super::types::{Accept, Claim, Known, Located, Over, PrintedPoints, PrintedValue, Statement, Tolerance};
use crate::diagnostic::{Fault, Result, bail};
use crate::form::At;
use crate::gateway_file::OneOrList;
use crate::quantity::Dimension;
use crate::scalars::{Text, Whole};
use crate::source::Span;

const MOST: usize = 200;
/// Those of references count point by point.
const MOST_POINTWISE: usize = 2000;

/// Numbers of items of a paper.
type Items = OneOrList<Whole<1, 100_000>>;

/// Statements without items have those of the file.
pub(super) fn all(
    given: Vec<At<StatementKeys>>,
    items: &[u64],
    references: &[PrintedPoints],
    context: &Context<'_>,
) -> Result<Vec<Statement>> {
    if let Some(one) = given.get(MOST) {
        return Err(Fault::too_many(one.span, "statements", MOST));
    }
    let mut all = Vec::new();
    for one in given {
        let span = one.span;
        if one.value.reference.is_some() {
            all.extend(of_reference(one, items, references, context)?);
            if all.len() > MOST_POINTWISE {
                return Err(Fault::too_many(span, "points in statements", MOST_POINTWISE));
            }
        } else {
            all.push(statement(one, items, context)?);
        }
    }
    Ok(all)
}

/// Returns a statement for each point of the references that are named.
fn of_reference(
    At { value: keys, span }: At<StatementKeys>,
    items: &[u64],
    references: &[PrintedPoints],
    context: &Context<'_>,
) -> Result<Vec<Statement>> {
    refuse_values(&keys, "reference")?;
    let needless = keys.order.as_ref().map(|k| k.span).or(keys.rises.or(keys.falls).map(|k| k.span));
    if let Some(needless) = needless {
        bail!(needless, "a reference has neither order nor trend", "leave it out, or leave `reference` out");
    }
    let Some(tolerance) = keys.tolerance else { return Err(no_tolerance(span, "\"5 %\", or an amount")) };
    let Some(At { value: Text(name), span: name_span }) = &keys.reference else { return Ok(Vec::new()) };
    let named: Vec<_> = references.iter().filter(|r| r.name == *name).collect();
    if named.is_empty() {
        let names = references.iter().map(|r| r.name.as_str());
        return Err(Fault::unknown(*name_span, "reference", name, names));
    }
    let of = keys.curve.as_ref().map(|c| context.curve(&c.value.0, c.span)).transpose()?;
    let at = |given: &At<OneOrList<Coordinate>>| {
        given.value.0.iter().map(|at| context.place(at)).collect::<Result<Vec<_>>>()
    };
    let (at, whole) = (keys.at.as_ref().map(at).transpose()?, keys.text.clone());
    let items = if keys.item.is_some() { self::items(keys.item) } else { items.to_vec() };
    let known = known(keys.differs, keys.turn, context)?;
    let mut all = Vec::new();
    for (curve, x, value) in
        named.iter().flat_map(|r| r.points.iter().map(|p| context.judged(r, p, of))).flatten()
    {
        if of.is_none_or(|of| of == curve) && at.as_ref().is_none_or(|at| at.contains(&x)) {
            let accept = Box::new(near(value.clone(), tolerance, context)?);
            all.push(Statement {
                text: context.located(whole.clone().map(|t| t.0)),
                items: items.clone(),
                claim: Claim::Value { curve, over: None, accept },
                at: vec![x],
                known: known.clone(),
                notes: keys.notes.as_ref().map(|n| n.value.0.clone()),
            });
        }
    }
    if all.is_empty() {
        bail!(
            *name_span,
            "no point of the reference is that of a curve",
            "a point needs a value of `[x]`, and a `curve`"
        );
    }
    Ok(all)
}

pub(super) fn items(given: Option<At<Items>>) -> Vec<u64> {
    given.map_or_else(Vec::new, |items| items.value.0.into_iter().map(|i| i.value.0).collect())
}

fn statement(given: At<StatementKeys>, items: &[u64], context: &Context<'_>) -> Result<Statement> {
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
            let curve = context.curve(&curve.value.0, curve.span)?;
            match trend(&keys)? {
                Some(rises) => of_trend(&keys, curve, rises, span, context)?,
                None => Claim::Value {
                    curve,
                    over: over(&keys, curve, context)?,
                    accept: Box::new(accept(&keys, span, context)?),
                },
            }
        }
    };
    let mut at: Vec<usize> = match &keys.at {
        Some(at) => at.value.0.iter().map(|at| context.place(at)).collect::<Result<_>>()?,
        None => (0..context.across.as_ref().map_or(1, |a| a.values.len())).collect(),
    };
    if let (Claim::Trend { .. }, Some(across)) = (&claim, &context.across) {
        let position = |x: &usize| across.positions.get(*x).copied().unwrap_or(f64::NAN);
        at.sort_by(|a, b| position(a).total_cmp(&position(b)));
        at.dedup();
        if let (Some(given), [_]) = (&keys.at, &at[..]) {
            bail!(given.span, "one value of x has no trend", "name at least two, or leave `at` out");
        }
    }
    let text = context.located(keys.text.map(|t| t.0));
    let items = if keys.item.is_some() { self::items(keys.item) } else { items.to_vec() };
    let known = known(keys.differs, keys.turn, context)?;
    Ok(Statement { text, items, claim, at, known, notes: keys.notes.map(|n| n.value.0) })
}

/// A disagreement that is known has a reason and what turns it, so that both can be checked.
fn known(why: Option<At<Text>>, turn: Option<At<Settings>>, context: &Context<'_>) -> Result<Option<Known>> {
    let help = "help: write differs = \"why\" and turn = { name = value }, with which the statement holds";
    let (why, turn) = match (why, turn) {
        (None, None) => return Ok(None),
        (Some(why), Some(turn)) => (why, turn),
        (Some(At { span, .. }), None) => {
            return Err(Fault::new(span, "`differs` has no `turn`", "nothing says what turns it").help(help));
        }
        (None, Some(At { span, .. })) => {
            return Err(Fault::new(span, "`turn` has no `differs`", "nothing says why it differs").help(help));
        }
    };
    if why.value.0.trim().is_empty() {
        return Err(Fault::new(why.span, "`differs` is empty", "say why the statement differs").help(help));
    }
    if turn.value.0.is_empty() {
        return Err(Fault::new(turn.span, "`turn` is empty", "name a parameter and its value").help(help));
    }
    Ok(Some(Known { why: why.value.0, turn: settings(Some(turn), context.sources) }))
}

/// Returns what the curve is divided by.
fn over(keys: &StatementKeys, curve: usize, context: &Context<'_>) -> Result<Option<Over>> {
    let other = keys.over.as_ref().map(|o| context.curve(&o.value.0, o.span)).transpose()?;
    let Some(over_at) = &keys.over_at else { return Ok(other.map(|curve| Over { curve, at: None })) };
    let at = context.place(over_at)?;
    let Some(given) = &keys.at else {
        bail!(over_at.span, "`over_at` has no `at`", "say at which value of x the mean is that is divided");
    };
    if other.is_none_or(|o| o == curve) {
        for one in &given.value.0 {
            if context.place(one)? == at {
                bail!(one.span, "a mean is not compared with itself", "`over_at` has the same value");
            }
        }
    }
    Ok(Some(Over { curve: other.unwrap_or(curve), at: Some(at) }))
}

/// Returns true if the mean must rise, false if it must fall, nothing if neither.
fn trend(keys: &StatementKeys) -> Result<Option<bool>> {
    let given = |key: Option<At<bool>>| key.filter(|k| k.value);
    match (given(keys.rises), given(keys.falls)) {
        (Some(_), Some(falls)) => bail!(falls.span, "a mean does not rise and fall", "leave one of them out"),
        (Some(_), None) => Ok(Some(true)),
        (None, Some(_)) => Ok(Some(false)),
        (None, None) => Ok(None),
    }
}

fn of_trend(
    keys: &StatementKeys,
    curve: usize,
    rises: bool,
    span: Span,
    context: &Context<'_>,
) -> Result<Claim> {
    let word = if rises { "rises" } else { "falls" };
    if context.across.is_none() {
        bail!(span, "there is no `[x]` along which a mean {word}", "a row of a table has one value");
    }
    refuse_values(keys, word)?;
    let tolerance = share(keys, span, "a trend", "by which a step may go the other way")?;
    Ok(Claim::Trend { curve, rises, tolerance })
}

/// Refuses what is expected of a value beside `word`.
fn refuse_values(keys: &StatementKeys, word: &str) -> Result<()> {
    let needless = [
        ("over", keys.over.as_ref().map(|k| k.span)),
        ("over_at", keys.over_at.as_ref().map(|k| k.span)),
        ("expect", keys.expect.as_ref().map(|k| k.span)),
        ("between", keys.between.as_ref().map(|k| k.span)),
        ("at_least", keys.at_least.as_ref().map(|k| k.span)),
        ("at_most", keys.at_most.as_ref().map(|k| k.span)),
    ];
    if let Some((key, span)) = needless.into_iter().find_map(|(key, span)| Some((key, span?))) {
        bail!(span, "`{key}` has no effect beside `{word}`", "leave it out");
    }
    Ok(())
}

/// Returns the tolerance of a statement that compares means, which is a share. `of` and `what` say which one.
fn share(keys: &StatementKeys, span: Span, of: &str, what: &str) -> Result<f64> {
    match keys.tolerance {
        Some(At { value: Tolerance::Share(tolerance), .. }) if tolerance < 1.0 => Ok(tolerance),
        Some(wrong) => {
            let message = format!("the tolerance of {of} is a share");
            Err(Fault::new(wrong.span, message, "write it as in \"1 %\"")
                .help(format!("help: it is the share {what}; \"0 %\" allows nothing")))
        }
        None => Err(no_tolerance(span, &format!("\"0 %\", or the share {what}"))),
    }
}

fn of_order(
    keys: &StatementKeys,
    order: &At<OneOrList<Text>>,
    span: Span,
    context: &Context<'_>,
) -> Result<Claim> {
    refuse_values(keys, "order")?;
    if let Some(trend) = keys.rises.or(keys.falls) {
        bail!(trend.span, "an order has no trend", "leave it out, or write `curve` in place of `order`");
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
    let tolerance = share(keys, span, "an order", "by which a curve may be below the one after it")?;
    Ok(Claim::Order { curves, tolerance })
}

fn no_tolerance(span: Span, what: &str) -> Fault {
    Fault::new(span, "the statement has no `tolerance`", "without one nothing is checked")
        .help(format!("help: write tolerance = {what}"))
}

/// The ways to say what is accepted, each of which excludes the others.
fn range(keys: &StatementKeys) -> Vec<(&'static str, Span)> {
    let all = [
        ("tolerance", keys.tolerance.map(|k| k.span)),
        ("between", keys.between.as_ref().map(|k| k.span)),
        ("at_least", keys.at_least.as_ref().map(|k| k.span)),
        ("at_most", keys.at_most.as_ref().map(|k| k.span)),
    ];
    all.into_iter().filter_map(|(name, span)| Some((name, span?))).collect()
}

fn accept(keys: &StatementKeys, span: Span, context: &Context<'_>) -> Result<Accept> {
    let located = |v: At<Printed>| context.located(v.map(|v| v.0));
    let expect = keys.expect.clone().map(located);
    if let [(first, _), (second, span), ..] = range(keys)[..] {
        let help = if first == "at_least" { "; for both ends write between = [lowest, highest]" } else { "" };
        bail!(span, "a statement has `{first}` or `{second}`, not both", "leave one of them out{help}");
    }
    if let Some(At { value: Interval([low, high]), .. }) = keys.between.clone() {
        let ends = [&low, &high].map(|v| v.value.0.amount);
        if ends[0].dimension != ends[1].dimension || ends[0].value > ends[1].value {
            bail!(high.span, "`between` ends below its beginning", "write [lowest, highest] in like units");
        }
        return Ok(Accept::Range { low: Some(located(low)), high: Some(located(high)), expect });
    }
    if keys.at_least.is_some() || keys.at_most.is_some() {
        let [low, high] = [&keys.at_least, &keys.at_most].map(|end| end.clone().map(located));
        return Ok(Accept::Range { low, high, expect });
    }
    let Some(expect) = expect else {
        let label = "give `expect` and `tolerance`, or `between`, `at_least` or `at_most`";
        return Err(Fault::new(span, "the statement expects nothing", label)
            .help("help: write expect = \"1 Mbit/s\" and tolerance = \"5 %\", or between = [\"0.9 Mbit/s\", \"1.1 Mbit/s\"]"));
    };
    let Some(tolerance) = keys.tolerance else { return Err(no_tolerance(span, "\"5 %\", or an amount")) };
    near(expect, tolerance, context)
}

fn near(expect: Located<PrintedValue>, tolerance: At<Tolerance>, context: &Context<'_>) -> Result<Accept> {
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
