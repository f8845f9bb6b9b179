//! Reads and writes segments in the notation of the scripts.

use crate::parse::Fault;
use crate::script::{OURS, PEERS, position};
use bentpipe_base::{Ecn, Flags, Packet, Timestamps};
use core::fmt::Write as _;

/// Flags by name; `ack` sets ACK.
const FLAGS: [(&str, Flags); 7] = [
    ("SYN", Flags::SYN),
    ("FIN", Flags::FIN),
    ("RST", Flags::RST),
    ("PSH", Flags::PSH),
    ("URG", Flags::URG),
    ("ECE", Flags::ECE),
    ("CWR", Flags::CWR),
];
/// ECN fields by name.
const ECN: [(&str, Ecn); 3] = [("ect0", Ecn::Ect0), ("ect1", Ecn::Ect1), ("ce", Ecn::Ce)];

/// A field that a line may set, exclude (`-ts`) or leave open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Said<T> {
    #[default]
    Nothing,
    Absent,
    Value(T),
}

impl<T> Said<T> {
    pub(crate) fn or(self, otherwise: Option<T>) -> Option<T> {
        match self {
            Self::Nothing => otherwise,
            Self::Absent => None,
            Self::Value(value) => Some(value),
        }
    }
}

/// A segment in a line of a script, or several of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Text {
    pub(crate) flags: Flags,
    /// Range `from..to` of positions of its bytes.
    pub(crate) range: Option<(u64, u64)>,
    /// Size of the segments into which the range is cut.
    pub(crate) by: Option<u64>,
    pub(crate) ack: Said<u64>,
    pub(crate) win: Option<u16>,
    pub(crate) sack: Vec<(u64, u64)>,
    pub(crate) ts: Said<(u32, u32)>,
    pub(crate) mss: Said<u16>,
    pub(crate) scale: Said<u8>,
    pub(crate) sackok: Said<()>,
    pub(crate) ecn: Ecn,
    /// Number of identical segments.
    pub(crate) times: usize,
    /// The segment must change nothing in the connection.
    pub(crate) unmoved: bool,
}

/// Words of a line.
struct Words<'a>(std::iter::Peekable<std::str::SplitWhitespace<'a>>);

impl Words<'_> {
    fn number<T: TryFrom<u64>>(&mut self, of: &str) -> Result<T, Fault> {
        let word = self.0.next().ok_or_else(|| Fault::new(format!("`{of}` wants a number after it")))?;
        let number = place(word)?;
        T::try_from(number).map_err(|_| Fault::new(format!("{word} is too large for `{of}`")))
    }

    fn next_range(&mut self) -> Option<Result<(u64, u64), Fault>> {
        self.0.next_if(|w| w.contains("..")).map(range)
    }
}

/// A number or a position; positions before the stream are negative.
pub(crate) fn place(word: &str) -> Result<u64, Fault> {
    let bad = || Fault::new(format!("`{word}` is no number"));
    match word.strip_prefix('-') {
        Some(back) => back.parse::<u32>().map(|b| (1 << 32) - u64::from(b)).map_err(|_| bad()),
        None => word.parse().map_err(|_| bad()),
    }
}

fn range(word: &str) -> Result<(u64, u64), Fault> {
    let (from, to) =
        word.split_once("..").ok_or_else(|| Fault::new(format!("`{word}` is no range `from..to`")))?;
    let (from, to) = (place(from)?, place(to)?);
    if from > to {
        return Err(Fault::new(format!("the range `{word}` ends before it begins")));
    }
    Ok((from, to))
}

impl Text {
    /// Parses the text after `<` or `>`.
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        let mut words = Words(text.split_whitespace().peekable());
        let mut seg = Self { times: 1, ..Self::default() };
        while let Some(word) = words.0.next() {
            if let Some((_, flag)) = FLAGS.iter().find(|(name, _)| *name == word) {
                seg.flags = seg.flags.with(*flag);
                continue;
            }
            if let Some((_, ecn)) = ECN.iter().find(|(name, _)| *name == word) {
                seg.ecn = *ecn;
                continue;
            }
            seg.word(word, &mut words)?;
        }
        match (seg.by, seg.range) {
            (Some(0), _) => Err(Fault::new("`by 0` cuts nothing")),
            (Some(_), None) => Err(Fault::new("`by` wants a range `from..to` before it")),
            _ => Ok(seg),
        }
    }

    fn word(&mut self, word: &str, words: &mut Words<'_>) -> Result<(), Fault> {
        match word {
            "by" => self.by = Some(words.number(word)?),
            "ack" => self.ack = Said::Value(words.number(word)?),
            "win" => self.win = Some(words.number(word)?),
            "mss" => self.mss = Said::Value(words.number(word)?),
            "scale" => self.scale = Said::Value(words.number(word)?),
            "sackok" => self.sackok = Said::Value(()),
            "ts" => self.ts = Said::Value((words.number(word)?, words.number(word)?)),
            "-ack" => self.ack = Said::Absent,
            "-mss" => self.mss = Said::Absent,
            "-scale" => self.scale = Said::Absent,
            "-sackok" => self.sackok = Said::Absent,
            "-ts" => self.ts = Said::Absent,
            "unmoved" => self.unmoved = true,
            "sack" => {
                while let Some(block) = words.next_range() {
                    self.sack.push(block?);
                }
                if self.sack.is_empty() || self.sack.len() > 4 {
                    return Err(Fault::new("`sack` wants one to four ranges `from..to` after it"));
                }
            }
            _ if word.starts_with('x') => self.times = place(&word[1..])? as usize,
            _ if self.range.is_some() => return Err(Fault::new(format!("`{word}` is no word of a segment"))),
            _ if word.contains("..") => self.range = Some(range(word)?),
            _ => {
                let at = place(word).map_err(|_| Fault::new(format!("`{word}` is no word of a segment")))?;
                self.range = Some((at, at));
            }
        }
        Ok(())
    }

    /// The ranges of the segments that the line stands for.
    pub(crate) fn ranges(&self) -> Vec<Option<(u64, u64)>> {
        let cut = match (self.range, self.by) {
            (Some((from, to)), Some(by)) => (from..to)
                .step_by(usize::try_from(by).unwrap_or(usize::MAX))
                .map(|left| Some((left, to.min(left + by))))
                .collect(),
            (range, _) => vec![range],
        };
        std::iter::repeat_n(cut, self.times).flatten().collect()
    }

    /// The first difference between `packet`, sent by us, and this line with `range` as its bytes.
    pub(crate) fn differs(&self, range: Option<(u64, u64)>, packet: &Packet) -> Option<String> {
        let (h, seq) = (&packet.tcp, position(OURS, packet.tcp.seq));
        let end = seq + u64::from(packet.body.len);
        let shown = Flags(h.flags.0 & !Flags::ACK.0);
        let mute = if self.flags.has(Flags::PSH) { 0 } else { Flags::PSH.0 };
        let blocks: Vec<_> =
            h.sack.as_slice().iter().map(|(l, r)| (position(PEERS, *l), position(PEERS, *r))).collect();
        let acked = h.flags.has(Flags::ACK).then(|| position(PEERS, h.ack));
        let stamps = h.timestamps.map(|t| (t.value, t.echo));
        let checks = [
            (shown.0 & !mute == self.flags.0, "flags"),
            (range.map_or(seq == end, |r| r == (seq, end)), "range"),
            (self.ack == Said::Nothing || self.ack.or(None) == acked, "ack"),
            (self.win.is_none_or(|w| w == h.window), "win"),
            (self.sack == blocks, "sack"),
            (self.ts == Said::Nothing || self.ts.or(None) == stamps, "ts"),
            (self.mss == Said::Nothing || self.mss.or(None) == h.mss, "mss"),
            (self.scale == Said::Nothing || self.scale.or(None) == h.window_scale, "scale"),
            (self.sackok == Said::Nothing || self.sackok.or(None).is_some() == h.sack_permitted, "sackok"),
            (self.ecn == packet.ecn, "ECN field"),
        ];
        checks.into_iter().find(|(same, _)| !same).map(|(_, field)| field.to_owned())
    }
}

/// Writes a segment of ours in the notation of the scripts.
pub(crate) fn written(packet: &Packet) -> String {
    let h = &packet.tcp;
    let mut text = String::new();
    for (name, flag) in FLAGS {
        if h.flags.has(flag) {
            _ = write!(text, "{name} ");
        }
    }
    let seq = position(OURS, h.seq);
    _ = match packet.body.len {
        0 => write!(text, "{seq}"),
        len => write!(text, "{seq}..{}", seq + u64::from(len)),
    };
    if h.flags.has(Flags::ACK) {
        _ = write!(text, " ack {}", position(PEERS, h.ack));
    }
    _ = write!(text, " win {}", h.window);
    for (i, (l, r)) in h.sack.as_slice().iter().enumerate() {
        _ = write!(
            text,
            "{}{}..{}",
            if i == 0 { " sack " } else { " " },
            position(PEERS, *l),
            position(PEERS, *r)
        );
    }
    if let Some(ts) = h.timestamps {
        _ = write!(text, " ts {} {}", ts.value, ts.echo);
    }
    if let Some(mss) = h.mss {
        _ = write!(text, " mss {mss}");
    }
    if let Some(scale) = h.window_scale {
        _ = write!(text, " scale {scale}");
    }
    if h.sack_permitted {
        text += " sackok";
    }
    if let Some((name, _)) = ECN.iter().find(|(_, ecn)| *ecn == packet.ecn) {
        _ = write!(text, " {name}");
    }
    text
}

#[cfg(test)]
impl Text {
    /// Builds the segment of ours that the line describes.
    pub(crate) fn sample(&self) -> Packet {
        let (from, to) = self.range.unwrap_or_default();
        let mut packet = Packet { ecn: self.ecn, ..Packet::default() };
        packet.body.len = (to - from) as u32;
        packet.tcp.seq = OURS.at(from);
        packet.tcp.flags = self.flags;
        if let Said::Value(ack) = self.ack {
            packet.tcp.ack = PEERS.at(ack);
            packet.tcp.flags = packet.tcp.flags.with(Flags::ACK);
        }
        packet.tcp.window = self.win.unwrap_or_default();
        for (l, r) in &self.sack {
            packet.tcp.sack.push(PEERS.at(*l), PEERS.at(*r));
        }
        packet.tcp.timestamps = self.ts.or(None).map(|(value, echo)| Timestamps { value, echo });
        packet.tcp.mss = self.mss.or(None);
        packet.tcp.window_scale = self.scale.or(None);
        packet.tcp.sack_permitted = self.sackok.or(None).is_some();
        packet
    }
}
