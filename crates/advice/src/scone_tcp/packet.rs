//! The option in a [`Packet`]: two NOPs and the option, at the end of the TCP header's options.

use super::{Advised, find, lower};
use crate::scone::Advice;
use bentpipe_base::{Packet, Proto, Signal};

/// Bytes that the option takes of a segment, with its padding.
pub const SPACE: u8 = 8;
/// Longest TCP header (RFC 9293, section 3.1: the data offset has four bits).
const LONGEST_HEADER: u8 = 60;
const NOP: u8 = 1;

/// Returns the option of a segment, if it has one.
pub fn of(packet: &Packet) -> Option<Advised> {
    let signal = packet.signal.as_deref().filter(|_| packet.proto == Proto::Tcp)?;
    find(signal.tcp_options()).map(|(_, option)| option)
}

/// True if the option fits into the TCP header of this segment.
pub fn fits(packet: &Packet) -> bool {
    packet.proto == Proto::Tcp
        && packet.signal.is_none()
        && packet.tcp.wire_len() + packet.other_options.len + SPACE <= LONGEST_HEADER
}

/// The option as a segment carries it, with its padding.
pub(crate) fn padded(option: Advised) -> [u8; SPACE as usize] {
    let [kind, len, id, of, high, low] = option.bytes();
    [NOP, NOP, kind, len, id, of, high, low]
}

/// Adds the option to a segment in which it [fits](fits()); any other stays as it is.
pub fn put(packet: &mut Packet, option: Advised) {
    if fits(packet) {
        packet.signal = Signal::options(&[], &padded(option)).map(Box::new);
        packet.seal();
    }
}

/// Lowers the signal of a segment that passes to `limit`; false if it stays as it came.
pub fn lower_in(packet: &mut Packet, limit: Advice) -> bool {
    let Some(signal) = packet.signal.as_deref_mut().filter(|_| packet.proto == Proto::Tcp) else {
        return false;
    };
    lower(signal.tcp_options_mut(), limit).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scone_tcp::Kind;
    use bentpipe_base::{Seq, Size, Timestamps};

    #[test]
    fn a_segment_carries_it_behind_its_other_options() {
        let option = Advised::new(Kind::default(), Advice::UNKNOWN);
        let mut packet = Packet::default();
        packet.seal();
        assert_eq!((of(&packet), lower_in(&mut packet, Advice::UNKNOWN)), (None, false));
        put(&mut packet, option);
        assert_eq!((of(&packet), packet.wire_len()), (Some(option), Size(48)));
        let limit = Advice::new(40).unwrap();
        assert!(lower_in(&mut packet, limit) && !lower_in(&mut packet, limit));
        assert_eq!(of(&packet).map(Advised::advice), Some(limit));
        let before = packet.clone();
        put(&mut packet, option);
        assert_eq!(packet, before, "there is one already");
    }

    #[test]
    fn a_full_header_has_no_room() {
        let mut packet = Packet::default();
        packet.tcp.timestamps = Some(Timestamps::default());
        packet.tcp.sack.push(Seq(1), Seq(2));
        packet.tcp.sack.push(Seq(3), Seq(4));
        assert!(fits(&packet));
        packet.tcp.sack.push(Seq(5), Seq(6));
        packet.seal();
        let before = packet.clone();
        put(&mut packet, Advised::new(Kind::default(), Advice::UNKNOWN));
        assert_eq!(packet, before);
        packet.proto = Proto::Udp;
        assert!(!fits(&packet));
    }
}
