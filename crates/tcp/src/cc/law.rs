//! A law is the window algorithm of a scheme; here is what the table of schemes needs of each.
//!
//! Each file in this folder ends in an [`Algorithm`]: the parameters that users may set, with ranges and
//! defaults, and a function that builds the controller. Scenario files, their error messages, the manual and
//! the JSON schema read the parameters from here, so adding a law to `scheme.rs` is enough.
//! [`params!`](crate::params) defines the list of parameters and the struct that holds them together.

use super::advised::Advised;
use super::quick_start::QuickStart;
use super::{CongestionControl, linux, standard};
use crate::config::{Config, Signalling, Stack};
use crate::scheme::Scheme;
use bentpipe_advice::negotiation::Encoding;
use bentpipe_base::{Duration, Size};
use core::fmt;

/// Largest number of parameters of a law.
pub const MAX_PARAMS: usize = 8;

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number; its unit is in the parameter's documentation.
    Number(f64),
    /// On or off.
    Switch(bool),
    /// A time.
    Time(Duration),
}

/// The allowed values of a parameter, and its default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// A number from `least` to `most`.
    Number {
        /// Smallest value.
        least: f64,
        /// Largest value.
        most: f64,
        /// Default.
        default: f64,
    },
    /// A switch.
    Switch {
        /// Default.
        default: bool,
    },
    /// A time from `least` to `most`.
    Time {
        /// Shortest time.
        least: Duration,
        /// Longest time.
        most: Duration,
        /// Default.
        default: Duration,
    },
}

impl Range {
    /// Returns the default value.
    pub const fn default(self) -> Value {
        match self {
            Self::Number { default, .. } => Value::Number(default),
            Self::Switch { default } => Value::Switch(default),
            Self::Time { default, .. } => Value::Time(default),
        }
    }

    /// True if `value` has this kind and is within the bounds.
    pub fn holds(self, value: Value) -> bool {
        match (self, value) {
            (Self::Number { least, most, .. }, Value::Number(v)) => (least..=most).contains(&v),
            (Self::Switch { .. }, Value::Switch(_)) => true,
            (Self::Time { least, most, .. }, Value::Time(v)) => (least..=most).contains(&v),
            _ => false,
        }
    }
}

/// A parameter of a law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// The key in scenario files.
    pub name: &'static str,
    /// Its meaning and unit, as lines of documentation.
    pub doc: &'static [&'static str],
    /// Allowed values and default.
    pub range: Range,
}

/// The values of all parameters of a law, in the order of its list; the rest of the array is unused.
pub type Values = [Value; MAX_PARAMS];

/// Two parameters that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamConflict {
    /// The keys; an error points at the first of them that the user set.
    pub keys: [&'static str; 2],
    /// What is wrong.
    pub message: &'static str,
}

/// What a new controller gets.
#[derive(Clone, Copy, Debug)]
pub struct ControllerStart<'a> {
    /// Sender maximum segment size.
    pub mss: Size,
    /// Bytes of headers before a segment's payload, from the IP header on.
    pub headers: Size,
    /// The host's configuration.
    pub config: &'a Config,
}

impl ControllerStart<'_> {
    /// Builds the controller of the configured scheme; on a host that asks for rates, with what these mean to
    /// it.
    pub fn build(&self) -> Box<dyn CongestionControl> {
        let law = self.controller(&self.config.scheme.growth);
        let asks = |s: &&Signalling| s.ask.ask.is_some();
        match self.config.signalling.as_ref().filter(asks).map(|s| s.ask.encoding) {
            Some(Encoding::SconeTcp) => Box::new(Advised::new(self, law)),
            Some(Encoding::QuickStart) => Box::new(QuickStart::new(self, law)),
            None | Some(Encoding::Tia1039) => law,
        }
    }

    /// Builds the controller of a law; on a Linux host Linux's own, if that is modelled.
    pub fn controller(&self, growth: &Growth) -> Box<dyn CongestionControl> {
        let Growth { algorithm, values } = *growth;
        let linux = algorithm.linux.filter(|_| self.config.stack == Stack::Linux);
        linux.unwrap_or(algorithm.build)(self, &values)
    }

    /// Returns the host's initial window in bytes.
    pub fn initial(&self) -> u64 {
        u64::from(self.config.initial_window) * self.mss.0
    }

    /// Returns the host's initial window and threshold.
    pub fn window(&self) -> standard::Window {
        standard::Window::new(self.mss, self.config.initial_window, self.config.initial_ssthresh)
    }

    /// Builds a controller of the scheme called `name` with default parameters, for a scheme that can fall
    /// back to another.
    pub fn standard(&self, name: &str) -> Box<dyn CongestionControl> {
        Scheme::named(name).unwrap_or_default().growth.build(self)
    }

    /// Returns the host's initial window and threshold, as Linux counts them.
    pub fn segments(&self) -> linux::LinuxWindow {
        linux::LinuxWindow::new(self.mss, self.config.initial_window, self.config.initial_ssthresh)
    }
}

/// Builds a controller.
pub type Build = fn(&ControllerStart<'_>, &Values) -> Box<dyn CongestionControl>;

/// The window algorithm of a scheme.
#[derive(Clone, Copy)]
pub struct Algorithm {
    /// Its name in messages; schemes have their own names.
    pub name: &'static str,
    /// The parameters that users may set.
    pub params: &'static [Param],
    /// Checks that the values do not contradict each other.
    pub check: fn(&Values) -> Result<(), ParamConflict>,
    /// Builds the controller as in the papers and RFCs.
    pub build: Build,
    /// Builds the controller as in Linux; `None` if that is not modelled.
    pub linux: Option<Build>,
    /// It sends probe segments.
    pub probes: bool,
    /// It uses granted rates, and its receivers report them.
    pub grants: bool,
    /// It may send copies that are not probes; the peer does not need to support them.
    pub copies: bool,
    /// Its window follows a model of the path or a granted rate, and losses do not hold it down.
    pub ignores_losses: bool,
}

impl Algorithm {
    /// Creates a law without parameters and without a Linux variant.
    pub const fn new(name: &'static str, build: Build) -> Self {
        Self {
            name,
            params: &[],
            check: |_| Ok(()),
            build,
            linux: None,
            probes: false,
            grants: false,
            copies: false,
            ignores_losses: false,
        }
    }

    /// A law with the parameters `P`, otherwise as [`Self::new`].
    pub const fn of<P: Params>(name: &'static str, build: Build) -> Self {
        Self { params: P::LIST, ..Self::new(name, build) }
    }

    /// Returns the default values of all parameters.
    pub const fn defaults(&self) -> Values {
        assert!(self.params.len() <= MAX_PARAMS, "a law has more parameters than MAX_PARAMS");
        let mut values = [Value::Switch(false); MAX_PARAMS];
        let mut i = 0;
        while i < self.params.len() {
            values[i] = self.params[i].range.default();
            i += 1;
        }
        values
    }
}

/// A law with the values of its parameters.
#[derive(Clone, Copy)]
pub struct Growth {
    algorithm: &'static Algorithm,
    values: Values,
}

impl Growth {
    /// `law` with its defaults.
    pub const fn of(law: &'static Algorithm) -> Self {
        Self { algorithm: law, values: law.defaults() }
    }

    /// Returns `law` with `params`, which must be its own.
    pub fn with<P: Params>(law: &'static Algorithm, params: P) -> Self {
        assert!(
            core::ptr::eq(law.params, P::LIST) || law.params == P::LIST,
            "these are another law's parameters"
        );
        Self { algorithm: law, values: params.values() }
    }

    /// Returns the law.
    pub const fn algorithm(&self) -> &'static Algorithm {
        self.algorithm
    }

    /// Returns the parameters, each with its value.
    pub fn params(&self) -> impl Iterator<Item = (&'static Param, Value)> {
        self.algorithm.params.iter().zip(self.values)
    }

    /// Returns the value of the parameter called `name`.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.params().find(|(p, _)| p.name == name).map(|(_, value)| value)
    }

    /// Sets a parameter. False if no parameter has this name, kind and range.
    pub fn set(&mut self, name: &str, value: Value) -> bool {
        let fits = |p: &Param| p.name == name && p.range.holds(value);
        let Some(i) = self.algorithm.params.iter().position(fits) else { return false };
        self.values[i] = value;
        true
    }

    /// Checks that the parameters do not contradict each other.
    ///
    /// # Errors
    /// The parameters, and why.
    pub fn check(&self) -> Result<(), ParamConflict> {
        (self.algorithm.check)(&self.values)
    }

    /// Builds the controller as in the papers and RFCs.
    pub fn build(&self, start: &ControllerStart<'_>) -> Box<dyn CongestionControl> {
        (self.algorithm.build)(start, &self.values)
    }
}

impl PartialEq for Growth {
    fn eq(&self, other: &Self) -> bool {
        self.algorithm.name == other.algorithm.name && self.params().eq(other.params())
    }
}

impl fmt::Debug for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.algorithm.name)?;
        f.debug_map().entries(self.params().map(|(p, value)| (p.name, value))).finish()
    }
}

/// A struct of parameters, defined by [`params!`](crate::params).
pub trait Params: Sized {
    /// The parameters, in the order of the fields.
    const LIST: &'static [Param];
    /// Reads the fields from `values`, in the order of `LIST`.
    fn of(values: &Values) -> Self;
    /// Returns the values of the fields, in the order of `LIST`.
    fn values(self) -> Values;
}

/// A type of parameter fields.
pub trait Field: Copy {
    /// Converts to a value.
    fn value(self) -> Value;
    /// Converts from a value of its kind.
    fn of(value: Value) -> Self;
}

/// Implements [`Field`] for a type.
macro_rules! fields {
    ($($T:ty => $kind:ident),+) => {$(
        impl Field for $T {
            fn value(self) -> Value {
                Value::$kind(self)
            }
            fn of(value: Value) -> Self {
                match value {
                    Value::$kind(v) => v,
                    other => panic!("a parameter was stored as {other:?}"),
                }
            }
        }
    )+};
}

fields! { f64 => Number, bool => Switch, Duration => Time }

/// Defines the parameters of a law: a struct, its defaults and the list for users.
#[macro_export]
macro_rules! params {
    ($(#[doc = $doc:literal])* pub struct $Name:ident {
        $( $(#[doc = $pdoc:literal])+ $key:ident : $kind:ident = $default:expr $(, from $least:expr, to $most:expr)?; )+
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $Name {
            $( $(#[doc = $pdoc])+ pub $key: $kind, )+
        }

        impl Default for $Name {
            fn default() -> Self {
                Self { $( $key: $default, )+ }
            }
        }

        impl $crate::cc::law::Params for $Name {
            const LIST: &'static [$crate::cc::law::Param] = &[
                $( $crate::cc::law::Param {
                    name: stringify!($key),
                    doc: &[$($pdoc),+],
                    range: $crate::params!(@range $kind, $default $(, $least, $most)?),
                }, )+
            ];

            fn of(values: &$crate::cc::law::Values) -> Self {
                let mut values = values.iter().copied();
                let mut next = || values.next().expect("a law has at most MAX_PARAMS parameters");
                Self { $( $key: $crate::cc::law::Field::of(next()), )+ }
            }

            fn values(self) -> $crate::cc::law::Values {
                let given = [$( $crate::cc::law::Field::value(self.$key), )+];
                let mut values = [$crate::cc::law::Value::Switch(false); $crate::cc::law::MAX_PARAMS];
                values[..given.len()].copy_from_slice(&given);
                values
            }
        }
    };
    (@range f64, $default:expr, $least:expr, $most:expr) => {
        $crate::cc::law::Range::Number { least: $least, most: $most, default: $default }
    };
    (@range bool, $default:expr) => {
        $crate::cc::law::Range::Switch { default: $default }
    };
    (@range Duration, $default:expr, $least:expr, $most:expr) => {
        $crate::cc::law::Range::Time { least: $least, most: $most, default: $default }
    };
}
