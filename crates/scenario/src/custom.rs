//! Nodes of kinds that are not built in: who writes one, and how it reads its keys.
//!
//! ```text
//! Registry::default().with::<Mark>() -> register() -> [[nodes]] kind = "mark" -> Mark::read -> a node in the network
//! ```

use crate::diagnostic::{Fault, Result, did_you_mean, listed};
use crate::form::Read;
use crate::source::Span;
use crate::value::{Kind, Table, Value};
use bentpipe_base::{Duration, Node, Rate, Size};
use bentpipe_tcp::cc::law::Law;
use bentpipe_tcp::{RecoveryParams, Scheme};
use core::fmt;
use core::ops::RangeInclusive;
use std::sync::OnceLock;

/// A node that stands at the beginning of a direction of a link, as a gateway does: its port 0 leads to where
/// packets come from, its port 1 into the link; what comes back over the other direction passes as well.
///
/// It sees wire packets, never super-packets. `Node::counters` go into the report.
pub trait CustomNode: Node + 'static {
    /// The word for `kind`.
    const KIND: &'static str;
    /// Its keys, and what each is.
    const KEYS: &'static [(&'static str, &'static str)];

    /// Makes a node, one for each `[[nodes]]` of a run.
    ///
    /// # Errors
    /// What [`Settings`] gives, or [`Settings::refuse`].
    fn read(settings: &Settings) -> core::result::Result<Self, SettingError>
    where
        Self: Sized;
}

/// Why a setting cannot be used; the user sees its value underlined.
#[derive(Clone, Debug)]
pub struct SettingError(pub(crate) Fault);

/// The keys of one `[[nodes]]`.
#[derive(Clone, Debug)]
pub struct Settings {
    table: Table,
    span: Span,
}

/// A key that is not there is `None`; a value of another kind is an error.
impl Settings {
    /// A whole number.
    ///
    /// # Errors
    /// When it is something else, or out of `range`.
    pub fn whole(
        &self,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> core::result::Result<Option<u64>, SettingError> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let number = match &value.kind {
            Kind::Integer(n) => u64::try_from(*n).ok(),
            Kind::Raw(text) => text.parse().ok(),
            _ => None,
        };
        number.filter(|n| range.contains(n)).map(Some).ok_or_else(|| {
            let message = format!("`{key}` is a whole number from {} to {}", range.start(), range.end());
            SettingError(Fault::new(value.span, message, format!("this is {}", value.called())))
        })
    }

    /// A number without a unit.
    ///
    /// # Errors
    /// When it is something else.
    pub fn number(&self, key: &str) -> core::result::Result<Option<f64>, SettingError> {
        self.read(key)
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// When it is something else.
    pub fn switch(&self, key: &str) -> core::result::Result<Option<bool>, SettingError> {
        self.read(key)
    }

    /// A time with its unit.
    ///
    /// # Errors
    /// When it is something else.
    pub fn time(&self, key: &str) -> core::result::Result<Option<Duration>, SettingError> {
        self.read(key)
    }

    /// A rate with its unit.
    ///
    /// # Errors
    /// When it is something else.
    pub fn rate(&self, key: &str) -> core::result::Result<Option<Rate>, SettingError> {
        self.read(key)
    }

    /// A size with its unit.
    ///
    /// # Errors
    /// When it is something else.
    pub fn size(&self, key: &str) -> core::result::Result<Option<Size>, SettingError> {
        self.read(key)
    }

    /// A text.
    ///
    /// # Errors
    /// When it is something else.
    pub fn text(&self, key: &str) -> core::result::Result<Option<&str>, SettingError> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        value.text().map(Some).ok_or_else(|| {
            let label = format!("this is {}", value.called());
            SettingError(Fault::new(value.span, format!("`{key}` is a text"), label))
        })
    }

    fn read<T: Read>(&self, key: &str) -> core::result::Result<Option<T>, SettingError> {
        self.table.get(key).map(|value| T::read(value, key)).transpose().map_err(SettingError)
    }

    /// Refuses the value of `key`: what is wrong, and what to write instead.
    pub fn refuse(&self, key: &str, message: &str, instead: &str) -> SettingError {
        let span = self.table.get(key).map_or(self.span, |value| value.span);
        SettingError(Fault::new(span, message, instead))
    }

    /// As keys of a file, in its order.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&str, String)> {
        self.table.0.iter().map(|entry| (entry.key.as_str(), written(&entry.value)))
    }
}

/// A value as TOML.
fn written(value: &Value) -> String {
    match &value.kind {
        Kind::Text(text) => crate::write::quoted(text),
        Kind::Raw(text) if text.parse::<f64>().is_ok() || text == "true" || text == "false" => text.clone(),
        Kind::Raw(text) => crate::write::quoted(text),
        Kind::Integer(n) => n.to_string(),
        Kind::Number(n) => format!("{n:?}"),
        Kind::Switch(on) => on.to_string(),
        Kind::Array(items) => format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(", ")),
        Kind::Table(table) => {
            let entries: Vec<String> =
                table.0.iter().map(|e| format!("{} = {}", e.key, written(&e.value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}

type Make = fn(&Settings) -> core::result::Result<Box<dyn Node>, SettingError>;

/// A kind of node in a registry.
#[derive(Clone, Copy)]
struct CustomKind {
    kind: &'static str,
    keys: &'static [(&'static str, &'static str)],
    make: Make,
}

/// The kinds of nodes and the schemes that scenarios may use beside the built-in ones.
#[derive(Clone, Default)]
pub struct Registry {
    kinds: Vec<CustomKind>,
    schemes: Vec<(&'static str, RecoveryParams, &'static Law)>,
}

impl Registry {
    /// And nodes of this kind; of two with the same word the later one counts.
    #[must_use]
    pub fn with<N: CustomNode>(mut self) -> Self {
        self.kinds.retain(|known| known.kind != N::KIND);
        let make: Make = |settings| N::read(settings).map(|node| Box::new(node) as Box<dyn Node>);
        self.kinds.push(CustomKind { kind: N::KIND, keys: N::KEYS, make });
        self
    }

    /// And a congestion control, as `tcp = "name"`: how losses are found and how the window comes down, and the law
    /// of growth with its parameters.
    #[must_use]
    pub fn with_scheme(mut self, name: &'static str, recovery: RecoveryParams, law: &'static Law) -> Self {
        self.schemes.push((name, recovery, law));
        self
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.kinds.iter().map(|known| known.kind)).finish()
    }
}

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// Makes `registry` that of this process, for every file that is read from now on. The first one counts;
/// false when there was one already.
pub fn register(registry: Registry) -> bool {
    Scheme::register(&registry.schemes);
    REGISTRY.set(registry).is_ok()
}

/// A node of a kind that is not built in.
#[derive(Clone)]
pub struct CustomSpec {
    /// Unique name.
    pub name: String,
    /// Its kind.
    pub kind: &'static str,
    /// Its keys.
    pub settings: Settings,
    make: Make,
}

impl CustomSpec {
    /// Reads the keys that belong to the kind. `kind` is the word and its place.
    pub(crate) fn new(
        name: String,
        (kind, word): (&str, Span),
        (table, span): (Table, Span),
    ) -> Result<Self> {
        let registry = REGISTRY.get();
        let kinds = || registry.iter().flat_map(|r| &r.kinds);
        let Some(known) = kinds().find(|known| known.kind == kind) else {
            let names = || kinds().map(|known| known.kind);
            let fault =
                Fault::new(word, format!("there is no kind of node `{kind}`"), did_you_mean(kind, names()));
            let help = match names().next() {
                Some(_) => format!("help: kinds: {}", listed(names())),
                None => {
                    "help: kinds of nodes come from a program that registers them: see the manual, Extensions"
                        .to_owned()
                }
            };
            return Err(fault.help(help));
        };
        let keys = || known.keys.iter().map(|(key, _)| *key);
        if let Some(entry) = table.0.iter().find(|entry| !keys().any(|key| key == entry.key)) {
            let message = format!("unknown key `{}` of a node of kind `{kind}`", entry.key);
            let each = known.keys.iter().map(|(key, what)| format!("help: {key}: {what}"));
            let fault = Fault::new(entry.span, message, did_you_mean(&entry.key, keys()));
            return Err(each.fold(fault, Fault::help));
        }
        let spec = Self { name, kind: known.kind, settings: Settings { table, span }, make: known.make };
        spec.node().map_err(|error| error.0)?;
        Ok(spec)
    }

    /// A new node.
    ///
    /// # Errors
    /// Those of [`CustomNode::read`]; it has been read once, when the file was.
    pub fn node(&self) -> core::result::Result<Box<dyn Node>, SettingError> {
        (self.make)(&self.settings)
    }
}

impl fmt::Debug for CustomSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings: Vec<_> = self.settings.lines().collect();
        f.debug_struct(self.kind).field("name", &self.name).field("settings", &settings).finish()
    }
}

impl PartialEq for CustomSpec {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.kind) == (&other.name, other.kind)
            && self.settings.lines().eq(other.settings.lines())
    }
}
