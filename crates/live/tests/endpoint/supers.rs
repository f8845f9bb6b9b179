//! Super-packets give the same packets on the wire as single packets; and a driver that is late does not
//! lower the rate of a pacer.

use crate::duel::{End, LEFT, RIGHT, addresses};
use bentpipe_base::{Duration, Instant, Size};
use bentpipe_live::endpoint::Settings;
use bentpipe_tcp::{Config, ReceiveBuffer, Scheme};
use bentpipe_wire::offload::{HEADER_SPACE, SuperPacket, VnetHeader, complete};
use core::net::SocketAddr;
use std::collections::VecDeque;

/// A sender, a receiver, and the packets between them.
struct Pipe {
    ends: [End; 2],
    flying: [VecDeque<(Instant, Vec<u8>)>; 2],
    delay: Duration,
    /// Send super-packets.
    supers: bool,
    /// The sender's packets as on the wire; and the number of its super-packets.
    wire: Vec<Vec<u8>>,
    cut: u64,
    heard: u64,
}

impl Pipe {
    fn new(v6: bool, supers: bool, delay: Duration, config: &Config, bytes: usize) -> Self {
        let end = |side| {
            let settings = Settings { addresses: addresses(side).to_vec(), ..Settings::default() };
            End::new(side as u64, settings)
        };
        let mut ends = [end(LEFT), end(RIGHT)];
        ends[RIGHT].endpoint.listen(80, config, 1).unwrap();
        let to = SocketAddr::new(addresses(RIGHT)[usize::from(v6)], 80);
        let id = ends[LEFT].with(Instant::ZERO, |e, cx| e.connect(cx, to, config)).unwrap();
        let stream: Vec<u8> = (0..bytes as u64).map(|i| (i * 31 + i / 509) as u8).collect();
        assert_eq!(ends[LEFT].endpoint.write(id, &stream), Ok(bytes));
        ends[LEFT].endpoint.shutdown(id).unwrap();
        let flying = [VecDeque::new(), VecDeque::new()];
        Self { ends, flying, delay, supers, wire: Vec::new(), cut: 0, heard: 0 }
    }

    fn step(&mut self, now: Instant) {
        for side in [LEFT, RIGHT] {
            while self.flying[side].front().is_some_and(|(at, _)| *at <= now) {
                let (_, bytes) = self.flying[side].pop_front().unwrap();
                self.ends[1 - side].with(now, |e, cx| e.packet(cx, &bytes, &VnetHeader::default()));
            }
        }
        for side in [LEFT, RIGHT] {
            self.ends[side].with(now, bentpipe_live::endpoint::Endpoint::timer);
            for bytes in self.leaving(side, now) {
                if side == LEFT {
                    self.wire.push(bytes.clone());
                }
                self.flying[side].push_back((now + self.delay, bytes));
            }
        }
        let mut buffer = [0; 9000];
        let end = &mut self.ends[RIGHT];
        while let Some((id, _)) = end.endpoint.next_event() {
            let id = end.endpoint.accept(80).unwrap_or(id);
            while let Ok(read @ 1..) = end.endpoint.read(now, id, &mut buffer) {
                self.heard += read as u64;
            }
        }
    }

    /// Returns the packets that an end sends now, as on the wire.
    fn leaving(&mut self, side: usize, now: Instant) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        if !self.supers {
            let mut out = Vec::new();
            while self.ends[side].with(now, |e, cx| e.next_packet(cx, &mut out)) {
                all.push(out.clone());
            }
            return all;
        }
        let whole = |note: &VnetHeader, parts: &[std::io::IoSlice<'_>]| {
            (*note, parts.iter().flat_map(|p| p.to_vec()).collect::<Vec<u8>>())
        };
        while let Some((note, bytes)) = self.ends[side].with(now, |e, cx| e.next_super(cx, whole)) {
            let packet = SuperPacket::parse(&bytes, &note).unwrap();
            self.cut += u64::from(packet.pieces() > 1);
            for i in 0..packet.pieces() {
                let mut header = [0; HEADER_SPACE];
                let piece = packet.piece(&bytes, i..i + 1, &mut header);
                let mut one = [&header[..piece.header_len], &bytes[piece.payload]].concat();
                complete(&mut one, &piece.vnet);
                if one[0] >> 4 == 4 {
                    // identifications depend on where a packet is cut; unfragmentable packets need none
                    one[4..6].fill(0);
                    one[10..12].fill(0);
                    let sum = bentpipe_wire::Sum::of(&one[..20]).finish();
                    one[10..12].copy_from_slice(&sum.to_be_bytes());
                }
                all.push(one);
            }
        }
        all
    }
}

#[test]
fn super_packets_are_the_same_packets_on_the_wire() {
    const BYTES: usize = 700_001;
    for v6 in [false, true] {
        let run = |supers| {
            let mut pipe = Pipe::new(v6, supers, Duration::from_millis(3), &Config::default(), BYTES);
            (0..400).for_each(|ms| pipe.step(Instant::ZERO + Duration::from_millis(ms)));
            assert_eq!(pipe.heard, BYTES as u64);
            pipe
        };
        let (plain, supers) = (run(false), run(true));
        assert_eq!(plain.wire.len(), supers.wire.len());
        assert!(plain.wire == supers.wire && supers.cut > 10, "{} cut", supers.cut);
        assert_eq!(plain.ends[LEFT].endpoint.counters(), supers.ends[LEFT].endpoint.counters());
    }
}

/// 1 MB in 100 ms is 80 Mbit/s, about seven segments per millisecond: more than the pacer sends at once.
#[test]
fn a_pacer_that_is_called_late_keeps_its_rate() {
    let receive_buffer = ReceiveBuffer::Fixed(Size(1_000_000));
    let scheme = Scheme::named("newreno").unwrap();
    let send_buffer = Some(Size(40_000_000));
    let config = Config { pacing: true, receive_buffer, send_buffer, scheme, ..Config::default() };
    let heard = |late: Duration| {
        let mut pipe = Pipe::new(false, true, Duration::from_millis(50), &config, 40_000_000);
        let mut now = Instant::ZERO;
        while now < Instant::ZERO + Duration::from_secs(4) {
            pipe.step(now);
            now += late;
        }
        pipe.heard
    };
    let (often, late) = (heard(Duration::from_micros(20)), heard(Duration::from_millis(1)));
    assert!(often > 20_000_000, "{often}");
    assert!(late as f64 > 0.9 * often as f64, "{late} of {often} bytes when called every millisecond");
}
