//! Types of the values of keys, and the macros that declare tables of keys. The parser, its errors, the JSON
//! schema and the reference page are all made from the tables in [`crate::keys`].

use crate::diagnostic::{Fault, Result, did_you_mean, fault, listed};
use crate::measure::Measure;
use crate::quantity::Quantity;
use crate::source::Span;
use crate::value::{Kind, Table, Value};
use core::fmt::Display;

#[derive(Clone, Copy)]
pub(crate) enum Form {
    /// Its name on the reference page, and its JSON schema.
    Fixed(&'static str, fn() -> serde_json::Value),
    /// A value that can also be a parameter: its name on the reference page, and its JSON schemas.
    Scalar(&'static str, fn() -> Vec<serde_json::Value>),
    /// A name: letters, digits, `-`, `_` and `.`.
    Name,
    Whole(u64, u64),
    /// Text with a unit.
    Quantity(&'static Quantity),
    Words(&'static [&'static str]),
    Table(&'static TableInfo),
    List(&'static TableInfo),
    /// A list of tables with these keys and any others.
    OpenList(&'static TableInfo),
    Measure(&'static Measure),
    Pairs(&'static Form, &'static Form),
    /// One value, or the lowest and the highest value.
    Range(&'static Form),
    Either(&'static [Form]),
    Special(&'static Special),
    /// One value, or a list of values.
    Many(&'static Form),
}

/// Text with its own syntax, such as an address.
pub(crate) struct Special {
    /// Name with its article: `an address`.
    pub(crate) what: &'static str,
    /// Regular expression, for the schema.
    pub(crate) pattern: &'static str,
    pub(crate) example: &'static str,
}

pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    /// Markdown text; `None` if the key is required.
    pub(crate) default: Option<&'static str>,
    pub(crate) doc: &'static [&'static str],
}

/// A table: its keys, and other tables whose keys it includes.
pub(crate) struct TableInfo {
    /// Title as in a file: `[[flows]]`.
    pub(crate) title: &'static str,
    pub(crate) doc: &'static [&'static str],
    pub(crate) keys: fn() -> &'static [Key],
    pub(crate) includes: &'static [&'static TableInfo],
    /// Markdown that follows the keys on the reference page.
    pub(crate) below: Option<fn() -> String>,
}

/// A value read from a file, with its position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

impl<T> At<T> {
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> At<U> {
        At { value: f(self.value), span: self.span }
    }
}

/// Checks. Each returns the value, or an error that calls it `key`.
impl<T: Copy + Default + PartialOrd + Display> At<T> {
    pub(crate) fn positive(self, key: &str) -> Result<T> {
        if self.value > T::default() { Ok(self.value) } else { Err(Fault::zero(self.span, key)) }
    }

    /// `small` is the word for a value below `least`: "small", or "short" for times.
    pub(crate) fn at_least(self, key: &str, least: T, small: &str) -> Result<T> {
        if self.value >= least {
            return Ok(self.value);
        }
        Err(fault!(self.span, "`{key}` is too {small}", "at least {least}"))
    }

    pub(crate) fn at_most(self, key: &str, most: T) -> Result<T> {
        if self.value <= most {
            return Ok(self.value);
        }
        Err(fault!(self.span, "`{key}` is too large", "the limit is {most}"))
    }
}

impl At<f64> {
    /// Checks that the value is in the range. `unit` follows the range in the error.
    pub(crate) fn within(self, key: &str, (least, most): (f64, f64), unit: &str) -> Result<f64> {
        if (least..=most).contains(&self.value) {
            return Ok(self.value);
        }
        Err(fault!(self.span, "`{key}` is out of range", "from {least} to {most}{unit}"))
    }

    /// Checks that the value is more than 0 and less than 1.
    pub(crate) fn fraction(self, key: &str) -> Result<f64> {
        if self.value > 0.0 && self.value < 1.0 {
            return Ok(self.value);
        }
        Err(fault!(self.span, "`{key}` is out of range", "more than 0 and less than 1"))
    }
}

/// A type that can be read from a value.
pub(crate) trait Read: Sized {
    /// Type of the value in the file.
    const FORM: Form;
    /// Reads the value. `key` is its name in errors.
    fn read(value: &Value, key: &str) -> Result<Self>;
}

/// A table with known keys, declared by `table!`.
pub(crate) trait Keys: Sized {
    const INFO: TableInfo;
    const REF: &'static TableInfo = &Self::INFO;
    /// Reads the keys of this table and ignores all others. `whose` names the table in errors.
    fn pick(table: &Table, span: Span, whose: &str) -> Result<Self>;
    /// Takes missing keys from `base`.
    #[must_use]
    fn over(self, base: &Self) -> Self;

    /// Returns the optional keys of the table that are given, without those of included tables.
    fn given(&self) -> Vec<(&'static str, Span)> {
        Vec::new()
    }

    /// Returns additional keys, which are registered at run time.
    fn more() -> Vec<&'static str> {
        Vec::new()
    }
}

impl TableInfo {
    /// Returns all keys, those of included tables last.
    pub(crate) fn all_keys(&self) -> Vec<&'static Key> {
        (self.keys)().iter().chain(self.includes.iter().flat_map(|t| t.all_keys())).collect()
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.all_keys().into_iter().map(|k| k.name).collect()
    }

    /// Returns the name of the table in errors: its title if that says where it is, else its key.
    fn name_in_errors(&self, key: &str) -> String {
        if self.title.starts_with('[') || self.title == "the file" {
            self.title.into()
        } else {
            format!("`{key}`")
        }
    }

    /// Returns an error for the first unknown key. `whose` names the table in errors.
    pub(crate) fn check(&'static self, table: &Table, whose: &str, more: &[&'static str]) -> Result<()> {
        let names = [self.names().as_slice(), more].concat();
        let Some(entry) = table.0.iter().find(|e| !names.contains(&e.key.as_str())) else { return Ok(()) };
        let key = &entry.key;
        let hint = did_you_mean(key, names.iter().copied());
        Err(Fault::new(entry.span, format!("unknown key `{key}` in {whose}"), hint)
            .help(format!("help: keys of {whose}: {}", listed(names))))
    }
}

/// Reads a whole file.
pub(crate) fn read_file<T: Keys>(root: Table) -> Result<T> {
    read_table(&Value { span: Span::file(0..0), kind: Kind::Table(root) }, "file")
}

/// Reads a table and checks its keys.
pub(crate) fn read_table<T: Keys>(value: &Value, key: &str) -> Result<T> {
    let info = T::REF;
    match &value.kind {
        Kind::Table(table) => {
            let whose = info.name_in_errors(key);
            info.check(table, &whose, &T::more())?;
            T::pick(table, value.span, &whose)
        }
        Kind::Array(_) if info.title.starts_with('[') => Err(Fault::new(
            value.span,
            format!("there is one `{key}`, not several"),
            format!("write {}", info.title),
        )),
        _ => Err(wrong(value, key, "a table").help(format!("help: its keys: {}", listed(info.names())))),
    }
}

impl<T: Keys> Read for Vec<At<T>> {
    const FORM: Form = Form::List(T::REF);

    fn read(value: &Value, key: &str) -> Result<Self> {
        let read = |v: &Value| Ok(At { value: read_table(v, key)?, span: v.span });
        list_of_tables(value, key)?.iter().map(read).collect()
    }
}

/// Returns the items of a list of tables.
pub(crate) fn list_of_tables<'a>(value: &'a Value, key: &str) -> Result<&'a [Value]> {
    match &value.kind {
        Kind::Array(items) => Ok(items),
        _ => Err(fault!(value.span, "`{key}` is a list of tables", "write [[{key}]], in double brackets")),
    }
}

/// A plain value, or a table in its place.
#[derive(Clone, Debug)]
pub(crate) enum OrTable<P, T> {
    Plain(P),
    Table(Box<T>),
}

impl<P: Read, T: Keys> Read for OrTable<P, T> {
    const FORM: Form = Form::Either(&[P::FORM, Form::Table(T::REF)]);

    fn read(value: &Value, key: &str) -> Result<Self> {
        match value.kind {
            Kind::Table(_) => read_table(value, key).map(|table| Self::Table(Box::new(table))),
            _ => P::read(value, key).map(Self::Plain),
        }
    }
}

/// Reads `key` of `table` if it is given.
pub(crate) fn optional<T: Read>(table: &Table, key: &str) -> Result<Option<At<T>>> {
    table.get(key).map(|v| Ok(At { value: T::read(v, key)?, span: v.span })).transpose()
}

/// Reads `key` of `table`, which is required.
pub(crate) fn required<T: Read>(table: &Table, key: &str, whose: &str, span: Span) -> Result<At<T>> {
    optional(table, key)?.ok_or_else(|| Fault::missing(span, whose, key))
}

/// Returns the error for a value of the wrong type.
pub(crate) fn wrong(value: &Value, key: &str, wanted: &str) -> Fault {
    Fault::new(value.span, format!("`{key}` is {wanted}"), format!("this is {}", value.called()))
}

/// Returns the name of a key in the file: `return` for `r#return`.
pub(crate) const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// Declares tables of keys: structs with the values, and their descriptions.
///
/// A key without a default must be given. Defaults are documentation; `resolve` applies them. `..field`
/// includes the keys of another table.
macro_rules! table {
    (@type $T:ty) => { crate::form::At<$T> };
    (@type $T:ty = $default:literal) => { Option<crate::form::At<$T>> };
    (@default) => { None };
    (@default $default:literal) => { Some($default) };
    (@pick $table:ident, $key:expr, $whose:ident, $span:ident) => {
        crate::form::required($table, $key, $whose, $span)?
    };
    (@pick $table:ident, $key:expr, $whose:ident, $span:ident, $default:literal) => {
        crate::form::optional($table, $key)?
    };
    (@span $own:expr) => { None };
    (@span $own:expr, $default:literal) => { $own.as_ref().map(|given| given.span) };
    (@over $own:expr, $base:expr) => { $own };
    (@over $own:expr, $base:expr, $default:literal) => { $own.or_else(|| $base.clone()) };
    ($( $(#[doc = $doc:literal])* struct $Name:ident $title:literal {
        $( $(#[doc = $kdoc:literal])* $key:ident : $T:ty $(= $default:literal)?, )*
        $( ..$field:ident : $Group:ty, )*
    } )+) => { $(
        $(#[doc = $doc])*
        #[derive(Clone, Debug)]
        pub(crate) struct $Name {
            $( pub(crate) $key: crate::form::table!(@type $T $(= $default)?), )*
            $( pub(crate) $field: $Group, )*
        }

        impl crate::form::Keys for $Name {
            const INFO: crate::form::TableInfo = crate::form::TableInfo {
                title: $title,
                doc: &[$($doc),*],
                keys: || const { &[$( crate::form::Key {
                    name: crate::form::plain(stringify!($key)),
                    form: <$T as crate::form::Read>::FORM,
                    default: crate::form::table!(@default $($default)?),
                    doc: &[$($kdoc),*],
                }, )*] },
                includes: &[$( <$Group as crate::form::Keys>::REF, )*],
                below: None,
            };

            fn pick(table: &crate::value::Table, span: crate::source::Span, whose: &str) -> crate::diagnostic::Result<Self> {
                let _ = (span, whose);
                Ok(Self {
                    $( $key: crate::form::table!(@pick table, crate::form::plain(stringify!($key)), whose, span $(, $default)?), )*
                    $( $field: <$Group as crate::form::Keys>::pick(table, span, whose)?, )*
                })
            }

            fn over(self, base: &Self) -> Self {
                let _ = base;
                Self {
                    $( $key: crate::form::table!(@over self.$key, base.$key $(, $default)?), )*
                    $( $field: self.$field.over(&base.$field), )*
                }
            }

            fn given(&self) -> Vec<(&'static str, crate::source::Span)> {
                let all: &[(&'static str, Option<crate::source::Span>)] =
                    &[$( (crate::form::plain(stringify!($key)), crate::form::table!(@span self.$key $(, $default)?)), )*];
                all.iter().filter_map(|(key, span)| Some((*key, (*span)?))).collect()
            }
        }

        impl crate::form::Read for $Name {
            const FORM: crate::form::Form = crate::form::Form::Table(<Self as crate::form::Keys>::REF);

            fn read(value: &crate::value::Value, key: &str) -> crate::diagnostic::Result<Self> {
                crate::form::read_table(value, key)
            }
        }
    )+ };
}

/// An enum whose values are written as words.
pub(crate) trait Word {
    fn word(&self) -> &'static str;
}

/// Declares the words for the variants of an enum. `or` lists other values that the key accepts, for errors.
///
/// A variant can have contents: `"codel" => Codel(Codel::default())`.
macro_rules! words {
    ($T:ident { $( $word:literal => $value:ident $(($content:expr))?, )+ } $(or $other:literal)*) => {
        impl crate::form::Word for $T {
            fn word(&self) -> &'static str {
                match self {
                    $( Self::$value { .. } => $word, )+
                }
            }
        }

        crate::form::read_words! { $T { $( $word => $value $(($content))?, )+ } $(or $other)* }
    };
}

/// As `words!`, for an enum that also has variants without a word: it can be read, but not written.
macro_rules! read_words {
    ($T:ident { $( $word:literal => $value:ident $(($content:expr))?, )+ } $(or $other:literal)*) => {
        impl crate::form::Read for $T {
            const FORM: crate::form::Form = crate::form::Form::Words(&[$($word),+]);

            fn read(value: &crate::value::Value, key: &str) -> crate::diagnostic::Result<Self> {
                match value.text() {
                    $( Some($word) => Ok(Self::$value $(($content))?), )+
                    _ => Err(crate::scalars::wrong_word(value, key, &[$($word,)+ $($other),*])),
                }
            }
        }
    };
}

pub(crate) use {read_words, table, words};
