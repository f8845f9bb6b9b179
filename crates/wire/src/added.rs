//! Options added to the headers of a packet, after those that it has.

use crate::checksum::Sum;
use crate::error::{Fault, WireError};
use crate::ipv4::Ipv4;
use crate::layout::{AddressPair, Layout};
use crate::offload::{TCP_CHECKSUM, write_word};
use crate::options::OPTION_SPACE;
use crate::tcp::TcpFixed;
use crate::{Ipv4Header, Ipv6Header};

/// Offset of the header length in a TCP header.
const DATA_OFFSET: usize = 12;

/// Adds `options` at the end of the header of the IPv4 packet that begins with `packet`. The checksum of TCP
/// or UDP does not cover them.
///
/// # Errors
/// If the packet is not IPv4, if the length of `options` is no multiple of four, or if they have no room; the
/// packet is then unchanged.
pub fn add_ipv4_options(options: &[u8], packet: &mut Vec<u8>) -> Result<(), WireError> {
    let ip = Ipv4::new(&packet[..])?;
    let end = size_of::<Ipv4Header>() + ip.options.len();
    check(options, ip.options.len(), end)?;
    let total = total_len(packet.len() + options.len())?;
    packet.splice(end..end, options.iter().copied());
    packet[0] = 0x40 | ((end + options.len()) / 4) as u8;
    set_total_len(packet, total);
    Ok(())
}

/// Adds `options` at the end of the TCP header of the IP packet that is `packet`, and completes its checksum.
///
/// # Errors
/// If the packet is no whole TCP packet, if the length of `options` is no multiple of four, or if they have
/// no room; the packet is then unchanged.
pub fn add_tcp_options(options: &[u8], packet: &mut Vec<u8>) -> Result<(), WireError> {
    let layout = Layout::of(packet)?;
    let (transport, end) = (layout.network.transport, layout.options.end);
    check(options, layout.options.len(), end)?;
    let total = total_len(packet.len() + options.len())?;
    packet.splice(end..end, options.iter().copied());
    let words = ((size_of::<TcpFixed>() + layout.options.len() + options.len()) / 4) as u8;
    packet[transport + DATA_OFFSET] = words << 4 | packet[transport + DATA_OFFSET] & 0x0F;
    match layout.network.ends {
        AddressPair::V4 { .. } => set_total_len(packet, total),
        AddressPair::V6 { .. } => write_word(packet, 4, total - size_of::<Ipv6Header>() as u16),
    }
    let checksum = transport + usize::from(TCP_CHECKSUM);
    write_word(packet, checksum, 0);
    let sum = Layout::of(packet)?.sum(packet).finish();
    write_word(packet, checksum, sum);
    Ok(())
}

/// Both headers have room for 40 bytes of options, in units of four bytes.
fn check(options: &[u8], present: usize, at: usize) -> Result<(), WireError> {
    let fit = present + options.len() <= OPTION_SPACE && options.len().is_multiple_of(4);
    if fit { Ok(()) } else { Err(WireError::new(Fault::OptionSpaceFull, at)) }
}

fn total_len(len: usize) -> Result<u16, WireError> {
    u16::try_from(len).map_err(|_| WireError::new(Fault::TooLong, len))
}

/// Sets the length of an IPv4 packet, and the checksum of its header.
fn set_total_len(packet: &mut [u8], total: u16) {
    write_word(packet, 2, total);
    write_word(packet, 10, 0);
    let header = packet.first().map_or(0, |first| usize::from(first & 0x0F) * 4);
    let sum = Sum::of(packet.get(..header).unwrap_or_default()).finish();
    write_word(packet, 10, sum);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Segment, emit, parse};
    use bentpipe_base::{Dscp, Ecn, Flags, TcpHeader, Timestamps};

    fn packet(v6: bool) -> Vec<u8> {
        let ends = if v6 {
            AddressPair::V6 { src: 1u128.into(), dst: 2u128.into() }
        } else {
            AddressPair::V4 { src: [10, 0, 0, 1].into(), dst: [10, 0, 0, 2].into() }
        };
        let timestamps = Some(Timestamps { value: 1, echo: 2 });
        let tcp = TcpHeader { flags: Flags::ACK, timestamps, ..TcpHeader::default() };
        let (dscp, ecn) = (Dscp::DEFAULT, Ecn::Ect0);
        let segment = Segment { ends, sport: 1, dport: 2, hops: 64, dscp, ecn, tcp, payload: b"seven b" };
        let mut bytes = Vec::new();
        emit(&segment, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn options_of_both_headers_follow_what_is_there() {
        for v6 in [false, true] {
            let before = packet(v6);
            let mut bytes = before.clone();
            add_tcp_options(&[1, 1, 254, 6, 1, 2, 3, 4], &mut bytes).unwrap();
            let plain = if v6 { 40 } else { 20 };
            if !v6 {
                add_ipv4_options(&[25, 8, 1, 2, 3, 4, 5, 6], &mut bytes).unwrap();
                add_ipv4_options(&[1, 1, 1, 0], &mut bytes).unwrap();
                assert_eq!(bytes[20..32], [25, 8, 1, 2, 3, 4, 5, 6, 1, 1, 1, 0]);
                assert!(Ipv4::new(&bytes[..]).unwrap().checksum_holds());
            }
            let layout = Layout::of(&bytes).unwrap();
            assert_eq!(layout.network.end, bytes.len());
            assert_eq!(layout.sum(&bytes).fold(), 0xffff);
            let options = &bytes[layout.options];
            assert_eq!(
                (&options[..12], &options[12..]),
                (&before[plain + 20..plain + 32], &[1, 1, 254, 6, 1, 2, 3, 4][..])
            );
            assert_eq!(parse(&bytes).unwrap(), parse(&before).unwrap(), "the rest is the same");
        }
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        for v6 in [false, true] {
            let before = packet(v6);
            let mut bytes = before.clone();
            for len in [3, 32] {
                assert!(add_tcp_options(&[1; 40][..len], &mut bytes).is_err());
            }
            assert!(add_ipv4_options(&[1; 44], &mut bytes).is_err());
            assert!(add_ipv4_options(&[1; 6], &mut bytes).is_err());
            assert_eq!(bytes, before);
        }
        assert!(add_ipv4_options(&[1; 4], &mut packet(true)).is_err());
        assert!(add_tcp_options(&[1; 4], &mut vec![0x45; 30]).is_err());
        assert!(add_tcp_options(&[1; 4], &mut Vec::new()).is_err());
    }
}
