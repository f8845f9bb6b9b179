//! The bytes before the IP header: none, or an Ethernet header with VLAN tags (IEEE 802.1Q, 802.1ad) or a
//! PPPoE session (RFC 2516).
//!
//! A frame keeps its link-layer header even if its packet is changed; only PPPoE's length field is updated.

/// Where the units of a port start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// At the IP header.
    #[default]
    Packet,
    /// At the Ethernet header.
    Frame,
}

/// Bytes of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;
const TAG: usize = 4;
/// PPPoE's header and the PPP protocol.
const PPPOE: usize = 8;
/// Most VLAN tags that are parsed.
const TAGS: usize = 3;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TAG_TYPES: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const PPPOE_SESSION: u16 = 0x8864;
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;

/// The link-layer header before the IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Its length in bytes.
    pub len: usize,
    /// Its last eight bytes are the PPPoE and PPP headers.
    pub pppoe: bool,
}

impl Link {
    /// Finds the IP header; `None` if there is none, or it is behind unknown headers.
    pub fn of(bytes: &[u8], unit: Unit) -> Option<Self> {
        if unit == Unit::Packet {
            return Some(Self::default());
        }
        let mut len = ETHERNET;
        let mut kind = word(bytes, len - 2)?;
        for _ in 0..TAGS {
            if !TAG_TYPES.contains(&kind) {
                break;
            }
            len += TAG;
            kind = word(bytes, len - 2)?;
        }
        let pppoe = kind == PPPOE_SESSION;
        if pppoe {
            // version 1, type 1, code 0: session data
            if word(bytes, len)? != 0x1100 {
                return None;
            }
            len += PPPOE;
            kind = word(bytes, len - 2)?;
        }
        let version = match (pppoe, kind) {
            (false, IPV4) | (true, PPP_IPV4) => 4,
            (false, IPV6) | (true, PPP_IPV6) => 6,
            _ => return None,
        };
        (bytes.get(len)? >> 4 == version).then_some(Self { len, pppoe })
    }

    /// Sets PPPoE's length field in `header` for a packet of `len` bytes.
    pub(crate) fn fit(self, header: &mut [u8], len: u16) {
        if let Some(field) = self.pppoe.then(|| header.get_mut(self.len - 4..self.len - 2)).flatten() {
            // includes the PPP protocol field
            field.copy_from_slice(&len.saturating_add(2).to_be_bytes());
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(between: &[u8], first: u8) -> Vec<u8> {
        let mut bytes = vec![2; 12];
        bytes.extend(between);
        bytes.extend([first, 0, 0, 20]);
        bytes
    }

    #[test]
    fn the_ip_header_is_found_behind_tags_and_sessions() {
        let len = |between: &[u8], first| Link::of(&frame(between, first), Unit::Frame);
        assert_eq!(len(&[8, 0], 0x45), Some(Link { len: 14, pppoe: false }));
        assert_eq!(len(&[0x81, 0, 0, 5, 0x86, 0xdd], 0x60), Some(Link { len: 18, pppoe: false }));
        assert_eq!(len(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0], 0x45), Some(Link { len: 22, pppoe: false }));
        let session = [0x88, 0x64, 0x11, 0, 0, 1, 0, 22, 0, 0x21];
        assert_eq!(len(&session, 0x45), Some(Link { len: 22, pppoe: true }));
        // ARP, a wrong EtherType, another PPP protocol, PPPoE discovery, nothing after the tags
        assert_eq!(len(&[8, 6], 0x45), None);
        assert_eq!(len(&[8, 0], 0x60), None);
        assert_eq!(len(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 22, 0xc0, 0x21], 0x45), None);
        assert_eq!(len(&[0x88, 0x64, 0x11, 9, 0, 1, 0, 22, 0, 0x21], 0x45), None);
        assert_eq!(Link::of(&frame(&[0x81, 0, 0, 5], 0x45)[..17], Unit::Frame), None);
        assert_eq!(Link::of(&[], Unit::Packet), Some(Link::default()));
    }

    #[test]
    fn a_session_s_length_follows_the_packet_s() {
        let mut bytes = frame(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 22, 0, 0x21], 0x45);
        let link = Link::of(&bytes, Unit::Frame).unwrap();
        link.fit(&mut bytes[..22], 1300);
        assert_eq!(bytes[18..20], 1302u16.to_be_bytes());
        let before = bytes.clone();
        Link { len: 14, pppoe: false }.fit(&mut bytes[..14], 9);
        assert_eq!(bytes, before);
    }
}
