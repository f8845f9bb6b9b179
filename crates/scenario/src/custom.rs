//! Nodes whose kind is not built in: the trait to implement, and how such a node reads its keys.
//!
//! ```text
//! Registry::default().with::<Mark>() -> register() -> [[nodes]] kind = "mark" -> Mark::read -> a node
//! ```

use crate::diagnostic::{Fault, Result, did_you_mean, listed};
use crate::form::{Read, wrong};
use crate::source::Span;
use crate::value::{Entry, Kind, Table, Value};
use bentpipe_base::{Duration, Node, Rate, Size};
use bentpipe_tcp::cc::law::Algorithm;
use bentpipe_tcp::{RecoveryParams, Scheme};
use core::fmt;
use core::ops::RangeInclusive;
use std::sync::OnceLock;

/// A node at the start of a link direction, as a gateway is. Packets of the link direction arrive at port 0
/// and leave through port 1; packets of the other direction pass through it as well.
///
/// It sees packets as on the wire, never super-packets. `Node::counters` become part of the report.
pub trait CustomNode: Node + 'static {
    /// Value of the key `kind`.
    const KIND: &'static str;
    /// Its keys and their descriptions.
    const KEYS: &'static [(&'static str, &'static str)];

    /// Creates a node from its keys, once for each `[[nodes]]` table of a run.
    ///
    /// # Errors
    /// Errors of [`Settings`], or of [`Settings::refuse`].
    fn read(settings: &Settings) -> core::result::Result<Self, SettingError>
    where
        Self: Sized;
}

/// Why a setting cannot be used. The diagnostic underlines its value.
#[derive(Clone, Debug)]
pub struct SettingError(pub(crate) Fault);

/// Keys of one `[[nodes]]` table.
#[derive(Clone, Debug)]
pub struct Settings {
    table: Table,
    span: Span,
}

/// Declares the methods of [`Settings`] that read one value.
macro_rules! readers {
    ($($doc:literal $name:ident $T:ty,)+) => { $(
        #[doc = $doc]
        ///
        /// # Errors
        /// If the value has another type.
        pub fn $name(&self, key: &str) -> core::result::Result<Option<$T>, SettingError> {
            self.read(key)
        }
    )+ };
}

/// Each method returns `None` if the key is missing, and an error if the value has another type.
impl Settings {
    /// Reads a whole number.
    ///
    /// # Errors
    /// If the value has another type or is outside `range`.
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
            let wanted = format!("a whole number from {} to {}", range.start(), range.end());
            SettingError(wrong(value, key, &wanted))
        })
    }

    readers! {
        "Reads a number without a unit." number f64,
        "Reads `true` or `false`." switch bool,
        "Reads a time with its unit." time Duration,
        "Reads a rate with its unit." rate Rate,
        "Reads a size with its unit." size Size,
    }

    /// Reads a text.
    ///
    /// # Errors
    /// If the value has another type.
    pub fn text(&self, key: &str) -> core::result::Result<Option<&str>, SettingError> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        value.text().map(Some).ok_or_else(|| SettingError(wrong(value, key, "a text")))
    }

    fn read<T: Read>(&self, key: &str) -> core::result::Result<Option<T>, SettingError> {
        self.table.get(key).map(|value| T::read(value, key)).transpose().map_err(SettingError)
    }

    /// Returns an error for the value of `key`: what is wrong, and what to write instead.
    pub fn refuse(&self, key: &str, message: &str, instead: &str) -> SettingError {
        let span = self.table.get(key).map_or(self.span, |value| value.span);
        SettingError(Fault::new(span, message, instead))
    }

    /// Returns the keys and values as TOML, in file order.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&str, String)> {
        self.table.0.iter().map(|entry| (entry.key.as_str(), written(&entry.value)))
    }
}

/// Returns a value as TOML.
fn written(value: &Value) -> String {
    match &value.kind {
        Kind::Raw(text) if text.parse::<f64>().is_ok() || text == "true" || text == "false" => text.clone(),
        Kind::Text(text) | Kind::Raw(text) => crate::write::quoted(text),
        Kind::Integer(n) => n.to_string(),
        Kind::Number(n) => format!("{n:?}"),
        Kind::Switch(on) => on.to_string(),
        Kind::Array(items) => format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(", ")),
        Kind::Table(table) => {
            let entry = |e: &Entry| format!("{} = {}", e.key, written(&e.value));
            format!("{{ {} }}", table.0.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Help if no kinds are registered.
const NO_KINDS: &str =
    "help: kinds of nodes come from a program that registers them: see the manual, Extensions";

type Constructor = fn(&Settings) -> core::result::Result<Box<dyn Node>, SettingError>;

#[derive(Clone, Copy)]
struct CustomKind {
    kind: &'static str,
    keys: &'static [(&'static str, &'static str)],
    make: Constructor,
}

/// Kinds of nodes and congestion control schemes that scenarios can use in addition to the built-in ones.
#[derive(Clone, Default)]
pub struct Registry {
    kinds: Vec<CustomKind>,
    schemes: Vec<(&'static str, RecoveryParams, &'static Algorithm)>,
}

impl Registry {
    /// Adds a kind of node. It replaces an earlier one of the same name.
    #[must_use]
    pub fn with<N: CustomNode>(mut self) -> Self {
        self.kinds.retain(|known| known.kind != N::KIND);
        let make: Constructor = |settings| N::read(settings).map(|node| Box::new(node) as Box<dyn Node>);
        self.kinds.push(CustomKind { kind: N::KIND, keys: N::KEYS, make });
        self
    }

    /// Adds a congestion control scheme for `tcp = "name"`: its loss recovery and its law of growth.
    #[must_use]
    pub fn with_scheme(
        mut self,
        name: &'static str,
        recovery: RecoveryParams,
        law: &'static Algorithm,
    ) -> Self {
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

/// Sets the registry of this process for all files read from now on. Returns false if one is already set:
/// its kinds of nodes stay, and schemes are added.
pub fn register(registry: Registry) -> bool {
    Scheme::register(&registry.schemes);
    REGISTRY.set(registry).is_ok()
}

/// A node of a kind that is not built in.
#[derive(Clone)]
pub struct CustomSpec {
    /// Unique name.
    pub name: String,
    /// Kind of the node.
    pub kind: &'static str,
    /// Keys of the node.
    pub settings: Settings,
    make: Constructor,
}

impl CustomSpec {
    /// Reads the keys of the kind. `kind` is its name and position.
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
            let kinds = names().next().map(|_| format!("help: kinds: {}", listed(names())));
            return Err(fault.help(kinds.unwrap_or_else(|| NO_KINDS.to_owned())));
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

    /// Creates a new node.
    ///
    /// # Errors
    /// Those of [`CustomNode::read`]. They do not occur for settings that were read before.
    pub fn node(&self) -> core::result::Result<Box<dyn Node>, SettingError> {
        (self.make)(&self.settings)
    }
}

impl fmt::Debug for CustomSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.kind)
            .field("name", &self.name)
            .field("settings", &self.settings.lines().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl PartialEq for CustomSpec {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.kind) == (&other.name, other.kind)
            && self.settings.lines().eq(other.settings.lines())
    }
}
