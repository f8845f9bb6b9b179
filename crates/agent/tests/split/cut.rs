//! What a network card does with super-packets.

use bentpipe_wire::offload::VnetHeader;

/// Cuts a super-packet into wire packets with complete checksums, as a network card does.
pub(crate) fn cut(vnet: &VnetHeader, parts: &[std::io::IoSlice<'_>]) -> Vec<Vec<u8>> {
    use bentpipe_wire::offload::{HEADER_SPACE, SuperPacket, complete};
    let source: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
    let mut headers = [0; HEADER_SPACE];
    let all = SuperPacket::parse(&source, vnet).expect("an IP packet");
    let piece = |i: usize| {
        let piece = all.piece(&source, i..i + 1, &mut headers);
        let mut bytes = [&headers[..piece.header_len], &source[piece.payload.clone()]].concat();
        complete(&mut bytes, &piece.vnet);
        assert!(bytes.len() <= 1500, "a packet fits the network: {}", bytes.len());
        bytes
    };
    (0..all.pieces()).map(piece).collect()
}
