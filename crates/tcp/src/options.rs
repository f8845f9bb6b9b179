//! What the two SYNs agreed on.
//!
//! Sources: RFC 7323, sections 2 and 3 (both SYNs must carry window scale, respectively timestamps), RFC
//! 2018, section 2, RFC 9293, section 3.7.1 (536 bytes when the peer sent no MSS), RFC 3168, section 6.1.1
//! (ECN: see `ecn.rs`), TIA-1039 (rate signalling: see `signalling/`).

use crate::config::Config;
use crate::ecn::ecn_agreed;
use bentpipe_advice::negotiation::Encoding;
use bentpipe_advice::scone_tcp;
use bentpipe_advice::tia1039::Structure;
use bentpipe_base::{IpVersion, ProbeOption, Size, TcpHeader, Timestamps};

/// Segment size to assume when the peer's SYN had no MSS option.
const DEFAULT_MSS: u16 = 536;
/// Bytes of the timestamps option with its padding.
const TIMESTAMPS_LEN: u16 = 12;
/// Bytes of a TCP header without options.
const TCP_HEADER: u64 = 20;
/// Bytes of a structure, for which each segment of such a connection has room.
const STRUCTURE_LEN: u16 = Structure::LEN as u16;

/// Options in force on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NegotiatedOptions {
    /// Largest payload we may send: the MSS less the options on every segment.
    pub mss: u16,
    /// Both ends scale windows.
    pub scaling: bool,
    /// Shift of the windows the peer sends, if windows are scaled.
    pub send_scale: u8,
    /// Shift of the windows we send.
    pub receive_scale: u8,
    /// Both ends understand SACK.
    pub sack: bool,
    /// Both ends send timestamps.
    pub timestamps: bool,
    /// Both ends understand ECN.
    pub ecn: bool,
    /// Both ends understand the probe option (see `probes.rs`).
    pub probe_option: bool,
    /// How both ends signal rates in packets, if they do (see `signalling/`).
    pub signalling: Option<Encoding>,
    /// IP version of the packets.
    pub ip: IpVersion,
}

impl NegotiatedOptions {
    /// Returns the options before the peer's SYN is known.
    pub fn none(config: &Config) -> Self {
        Self { mss: config.mss, ip: config.ip, ..Self::default() }
    }

    /// Returns the bytes of headers before a payload: IP and TCP, and what every data segment has of options
    /// and signalling.
    pub const fn headers(&self) -> Size {
        let options = if self.timestamps { TIMESTAMPS_LEN as u64 } else { 0 };
        let place = matches!((self.signalling, self.ip), (Some(Encoding::Tia1039), IpVersion::V6));
        Size(self.ip.header() as u64 + TCP_HEADER + options + if place { STRUCTURE_LEN as u64 } else { 0 })
    }

    /// Computes the options from our configuration and the peer's SYN. `signalling`: how both ends
    /// signal rates.
    pub fn from_syn(config: &Config, syn: &TcpHeader, signalling: Option<Encoding>) -> Self {
        let scale = config.options.window_scale && syn.window_scale.is_some();
        let timestamps = config.options.timestamps && syn.timestamps.is_some();
        let agreed = Self {
            mss: 0,
            scaling: scale,
            // RFC 7323, section 2.3: a shift above 14 counts as 14
            send_scale: if scale { syn.window_scale.map_or(0, |s| s.min(14)) } else { 0 },
            receive_scale: if scale { scale_for(config) } else { 0 },
            sack: config.options.sack && syn.sack_permitted,
            timestamps,
            ecn: ecn_agreed(config.ecn, syn.flags),
            probe_option: config.probe_option && syn.probe == ProbeOption::Permitted,
            signalling,
            ip: config.ip,
        };
        let segment = config.mss.min(syn.mss.unwrap_or(DEFAULT_MSS));
        Self { mss: agreed.mss_of(config, segment), ..agreed }
    }

    /// Returns the largest payload of a segment of `segment` bytes with its options. RFC 6691, section 2: the
    /// MSS option does not count header options, so the sender subtracts them. A full segment leaves room for
    /// the probe option, which a copy of it carries, and for signalling, which a router may insert.
    pub(crate) fn mss_of(&self, config: &Config, segment: u16) -> u16 {
        let stamps = if self.timestamps { TIMESTAMPS_LEN } else { 0 };
        let probes = self.probe_option && config.scheme.probes();
        let options = stamps + if probes { u16::from(ProbeOption::LEN) } else { 0 };
        let signal = match self.signalling {
            None | Some(Encoding::QuickStart) => 0,
            Some(Encoding::Tia1039) => STRUCTURE_LEN,
            Some(Encoding::SconeTcp) => u16::from(scone_tcp::packet::SPACE),
        };
        segment.saturating_sub(options + signal).max(1)
    }

    /// True if segments of `segment` bytes with their options are shorter than ours.
    pub(crate) fn is_shorter(&self, config: &Config, segment: u16) -> bool {
        self.mss_of(config, segment) < self.mss
    }
}

/// Returns the smallest shift that can express the largest window we ever advertise.
pub fn scale_for(config: &Config) -> u8 {
    let max = config.receive_buffer.max().0;
    (0..14).find(|s| max <= u64::from(u16::MAX) << s).unwrap_or(14)
}

/// Returns the options of our SYN, or of our SYN/ACK once `agreed` is known: an answer carries only what the
/// peer offered.
pub fn syn_options(config: &Config, agreed: Option<&NegotiatedOptions>) -> TcpHeader {
    let both = |ours: bool, agreed_on: fn(&NegotiatedOptions) -> bool| ours && agreed.is_none_or(agreed_on);
    TcpHeader {
        mss: config.options.mss.then_some(config.mss),
        window_scale: both(config.options.window_scale, |a| a.scaling).then(|| scale_for(config)),
        sack_permitted: both(config.options.sack, |a| a.sack),
        probe: probe_option(config, agreed),
        timestamps: both(config.options.timestamps, |a| a.timestamps).then(Timestamps::default),
        ..TcpHeader::default()
    }
}

/// Returns our probe option: the end that sends probes requests it, the other agrees.
fn probe_option(config: &Config, agreed: Option<&NegotiatedOptions>) -> ProbeOption {
    let wanted = config.probe_option && agreed.map_or_else(|| config.scheme.probes(), |a| a.probe_option);
    if wanted { ProbeOption::Permitted } else { ProbeOption::None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IPv6 has longer headers; a data packet of a connection that signals also has a place for a structure.
    #[test]
    fn a_segment_has_room_for_headers_and_signalling() {
        for (ip, signalling, headers, payload) in [
            (IpVersion::V4, None, 52, 988),
            (IpVersion::V4, Some(Encoding::Tia1039), 52, 972),
            (IpVersion::V4, Some(Encoding::SconeTcp), 52, 980),
            (IpVersion::V6, None, 72, 988),
            (IpVersion::V6, Some(Encoding::Tia1039), 88, 972),
            (IpVersion::V6, Some(Encoding::QuickStart), 72, 988),
        ] {
            let config = Config { mss: 1000, ip, ..Config::default() };
            let syn = syn_options(&config, None);
            let agreed = NegotiatedOptions::from_syn(&config, &syn, signalling);
            assert_eq!((agreed.headers(), agreed.mss), (Size(headers), payload), "{ip:?} {signalling:?}");
        }
        assert_eq!(NegotiatedOptions::none(&Config::default()).headers(), Size(40));
    }
}
