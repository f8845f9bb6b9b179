//! The settings of a script: the two profiles, and the configuration of our end.

use crate::parse::Fault;
use crate::script::plain;
use bentpipe_base::{Duration, Size};
use bentpipe_tcp::{
    Config, DelayedAck, Detection, EcnUse, KeepAlive, ReceiveBuffer, RecoveryParams, Reduction, Scheme,
    Stack, Validation,
};

/// The stack that our end behaves like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    Rfc,
    Linux,
}

impl Profile {
    pub(crate) const ALL: [Self; 2] = [Self::Rfc, Self::Linux];

    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Rfc => "rfc",
            Self::Linux => "linux",
        }
    }

    const fn stack(self) -> Stack {
        match self {
            Self::Rfc => Stack::Rfc,
            Self::Linux => Stack::Linux,
        }
    }

    pub(crate) fn named(name: &str) -> Result<Self, Fault> {
        let found = Self::ALL.into_iter().find(|p| p.key() == name.trim());
        found.ok_or_else(|| Fault::new(format!("`{name}` is no profile: they are rfc and linux")))
    }
}

/// One value of `set`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    key: String,
    values: Vec<String>,
}

impl Setting {
    /// Parses a setting and checks that it can be applied.
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        let mut words = text.split_whitespace().map(str::to_owned);
        let key = words.next().unwrap_or_default();
        let setting = Self { key, values: words.collect() };
        setting.apply(&mut plain(), Profile::Rfc)?;
        Ok(setting)
    }

    fn number(&self, i: usize) -> Result<u64, Fault> {
        let value = self.values.get(i).and_then(|v| v.parse().ok());
        value.ok_or_else(|| Fault::new(format!("`set: {}` wants {} whole numbers", self.key, i + 1)))
    }

    fn millis(&self, i: usize) -> Result<Duration, Fault> {
        Ok(Duration::from_millis(self.number(i)?))
    }

    fn word<T: Copy>(&self, i: usize, known: &[(&str, T)]) -> Result<T, Fault> {
        let value = self.values.get(i).map_or("", String::as_str);
        known.iter().find(|k| k.0 == value).map(|k| k.1).ok_or_else(|| {
            let names: Vec<_> = known.iter().map(|k| k.0).collect();
            Fault::new(format!("`set: {} {value}`: it is one of {}", self.key, names.join(", ")))
        })
    }

    fn apply(&self, config: &mut Config, profile: Profile) -> Result<(), Fault> {
        match self.key.as_str() {
            "mss" => config.mss = u16::try_from(self.number(0)?).unwrap_or(u16::MAX),
            "iw" => config.initial_window = u32::try_from(self.number(0)?).unwrap_or(u32::MAX),
            "ssthresh" => config.initial_ssthresh = Some(Size(self.number(0)?)),
            "sack" => config.options.sack = true,
            "timestamps" => config.options.timestamps = true,
            "scaling" => config.options.window_scale = true,
            "ecn" if self.values.is_empty() => config.ecn = EcnUse::Request,
            "ecn" => config.ecn = self.word(0, &[("answer", EcnUse::AcceptOnly)])?,
            "nagle" => config.nagle = true,
            "pacing" => config.pacing = true,
            "limited-transmit" => config.limited_transmit = true,
            "window" => config.receive_buffer = ReceiveBuffer::Fixed(Size(self.number(0)?)),
            "send-buffer" => config.send_buffer = Some(Size(self.number(0)?)),
            "rto-min" => config.rto.min = self.millis(0)?,
            "rto-max" => config.rto.max = self.millis(0)?,
            "rto-initial" => config.rto.initial = self.millis(0)?,
            "time-wait" => config.time_wait = self.millis(0)?,
            "max-timeouts" => config.max_timeouts = u32::try_from(self.number(0)?).unwrap_or(u32::MAX),
            "user-timeout" => config.user_timeout = Some(self.millis(0)?),
            "keep-alive" => {
                let (idle, interval) = (self.millis(0)?, self.millis(1)?);
                let count = u32::try_from(self.number(2)?).unwrap_or(u32::MAX);
                config.keep_alive = Some(KeepAlive { idle, interval, count });
            }
            "delayed-ack" => {
                let count = u32::try_from(self.number(0)?).unwrap_or(u32::MAX).max(1);
                config.delayed_ack = Some(DelayedAck { count, timeout: self.millis(1)? });
            }
            "validation" => config.validation = self.word(0, VALIDATIONS)?,
            "scheme" => return self.scheme(config, profile),
            "recovery" => return self.recovery(config, profile),
            other => return Err(Fault::new(format!("`set: {other}` is not known"))),
        }
        Ok(())
    }

    /// Sets the scheme for the profile; offers SACK if the scheme uses it.
    fn scheme(&self, config: &mut Config, profile: Profile) -> Result<(), Fault> {
        let name = self.values.first().map_or("", String::as_str);
        let scheme = Scheme::named(name).ok_or_else(|| Fault::new(format!("there is no scheme `{name}`")))?;
        config.options.sack |= scheme.wants_sack();
        config.scheme = scheme.on(profile.stack());
        Ok(())
    }

    /// Sets detection, reduction and F-RTO in the RFC profile; the Linux profile has its own.
    fn recovery(&self, config: &mut Config, profile: Profile) -> Result<(), Fault> {
        let detection = self.word(0, DETECTIONS)?;
        let reduction = self.word(1, REDUCTIONS)?;
        let frto = self.values.get(2).is_some() && self.word(2, &[("frto", true)])?;
        if profile == Profile::Rfc {
            config.scheme.recovery = RecoveryParams { detection, reduction, frto };
        }
        Ok(())
    }
}

const VALIDATIONS: &[(&str, Validation)] =
    &[("keep", Validation::Keep), ("restart", Validation::Restart), ("validate", Validation::Validate)];
const DETECTIONS: &[(&str, Detection)] = &[
    ("reno", Detection::Reno),
    ("newreno", Detection::NewReno),
    ("sack", Detection::Sack),
    ("rack", Detection::Rack),
];
const REDUCTIONS: &[(&str, Reduction)] =
    &[("at-once", Reduction::AtOnce), ("rate-halving", Reduction::RateHalving), ("prr", Reduction::Prr)];

/// The configuration of a script in one profile: a plain host with segments of 1000 B, plus the settings.
pub(crate) fn config(settings: &[Setting], profile: Profile) -> Result<Config, Fault> {
    let mut config = plain().on(profile.stack());
    for setting in settings {
        setting.apply(&mut config, profile)?;
    }
    Ok(config)
}
