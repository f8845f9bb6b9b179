//! Tests the file of connections: records that were written are read back, and damaged data is rejected.

use super::record_file::{RecordFile, RecordFileError, RecordFileWriter, SavedRecords, SlotCounts};
use bentpipe_base::Addresses;
use bentpipe_base::{Addr, Instant, NodeId, World};
use bentpipe_gateway::{Gateway, Record, Restored, SavedState};
use bentpipe_os::clock::monotonic;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::{env, fs, process};

const EXTENT: SlotCounts = SlotCounts { addresses: 1000, flows: 500 };
const SECOND: u64 = 1_000_000_000;

fn place(test: &str) -> RecordFile {
    let folder = env::temp_dir().join(format!("bentpipe-kept-{test}-{}", process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    RecordFile { path: folder.join("g.flows"), boot: "this start".to_owned(), network: 77 }
}

fn clean(place: &RecordFile) {
    fs::remove_dir_all(place.path.parent().unwrap()).unwrap();
}

/// A gateway and its addresses.
struct Side {
    gateway: Gateway,
    addresses: Addresses,
    world: World,
}

impl Side {
    fn new() -> Self {
        Self { gateway: Gateway::default(), addresses: Addresses::new(1000), world: World::new(1) }
    }

    fn restore(&mut self, bytes: &[u8]) -> Restored {
        self.gateway.restore(&mut self.world.cx(Instant::ZERO, NodeId(0)), bytes)
    }

    /// Opens a connection between hosts `n` and `n + 1`.
    fn open(&mut self, n: u32) {
        let ends = (Ipv4Addr::from(n).into(), Ipv4Addr::from(n + 1).into());
        let (a, b) = self.addresses.find(ends, |_| {}).unwrap();
        let persist = SavedState { advertised_shift: 7, mss: 1460, largest: n, ..SavedState::default() };
        let record = Record { addrs: [a, b], ports: [n as u16, 80], persist };
        assert_eq!(self.restore(&record.to_bytes()).flows, 1);
    }

    fn journal(&mut self) {
        self.addresses.keep_journal();
        self.gateway.keep_journal();
    }

    /// Lets `keeper` write all changes.
    fn write(&mut self, keeper: &mut RecordFileWriter) {
        while keeper.write(&mut self.gateway, &mut self.addresses).unwrap() {}
    }

    fn of(place: &RecordFile) -> Self {
        let mut side = Self::new();
        let saved = SavedRecords::read(place, monotonic()).unwrap().expect("a file");
        let (flows, damaged) = saved.restore_addresses(&mut side.addresses);
        assert_eq!(damaged, 0);
        side.restore(&flows);
        side
    }
}

#[test]
fn what_one_gateway_wrote_the_next_one_knows() {
    let place = place("next");
    assert!(SavedRecords::read(&place, monotonic()).unwrap().is_none());
    let mut first = Side::new();
    first.open(10);
    first.journal();
    let mut keeper = RecordFileWriter::create(&place, EXTENT).unwrap();
    assert!(!place.path.exists(), "it is not complete");
    first.write(&mut keeper);
    keeper.heartbeat(Instant::ZERO, monotonic).unwrap();
    for n in 20..120 {
        first.open(n);
    }
    first.write(&mut keeper);
    // connections beyond the file's slots are skipped until it has grown
    for n in 200..700 {
        first.open(n);
    }
    first.write(&mut keeper);
    assert_eq!(Side::of(&place).gateway.save().len(), 500 * 64);
    keeper.grow(2000).unwrap();
    first.journal();
    first.write(&mut keeper);
    drop(keeper);
    // the second gateway writes its own file while it reads this one
    let mut second = Side::of(&place);
    assert_eq!(second.gateway.save(), first.gateway.save());
    assert_eq!(second.addresses.address(Addr(0)), Some(Ipv4Addr::from(10).into()));
    second.journal();
    let mut keeper = RecordFileWriter::create(&place, EXTENT).unwrap();
    drop(RecordFileWriter::create(&place, EXTENT).unwrap());
    assert_eq!(
        Side::of(&place).gateway.save(),
        first.gateway.save(),
        "it is replaced when the new one is complete"
    );
    keeper = {
        drop(keeper);
        RecordFileWriter::create(&place, SlotCounts { flows: 2000, ..EXTENT }).unwrap()
    };
    second.write(&mut keeper);
    assert_eq!(Side::of(&place).gateway.save(), first.gateway.save());
    clean(&place);
}

#[test]
fn a_connection_without_its_addresses_is_not_taken_up() {
    let place = place("lost");
    let mut side = Side::new();
    for n in [10, 20, 30] {
        side.open(n);
    }
    side.journal();
    let mut keeper = RecordFileWriter::create(&place, EXTENT).unwrap();
    side.write(&mut keeper);
    let mut file = fs::read(&place.path).unwrap();
    // corrupts the first address of the second connection
    file[4096 + 2 * 24 + 5] ^= 1;
    fs::write(&place.path, file).unwrap();
    let mut next = Side::new();
    let saved = SavedRecords::read(&place, monotonic()).unwrap().expect("a file");
    let (flows, damaged) = saved.restore_addresses(&mut next.addresses);
    assert_eq!(damaged, 2);
    let restored = next.restore(&flows);
    assert_eq!((restored.flows, restored.damaged), (2, 0));
    clean(&place);
}

#[test]
fn a_file_that_is_not_ours_or_not_of_now_is_refused() {
    let place = place("foreign");
    let mut side = Side::new();
    side.open(1);
    side.journal();
    let mut keeper = RecordFileWriter::create(&place, EXTENT).unwrap();
    side.write(&mut keeper);
    let now = 1000 * SECOND;
    keeper.heartbeat(Instant::ZERO, || now).unwrap();
    let read = |place: &RecordFile, at: u64| {
        SavedRecords::read(place, at).map(|kept| kept.map(|k| k.gone.0 / SECOND))
    };
    assert_eq!(read(&place, now + 3 * SECOND).unwrap(), Some(3));
    let refused = |place: &RecordFile, at: u64| read(place, at).unwrap_err();
    let RecordFileError::Silent(gone) = refused(&place, now + 301 * SECOND) else { panic!("it is too old") };
    assert_eq!(gone.0, 301 * SECOND);
    let of_another = RecordFile { boot: "another".to_owned(), ..place.clone() };
    assert!(matches!(refused(&of_another, now), RecordFileError::Boot));
    assert!(matches!(refused(&RecordFile { network: 78, ..place.clone() }, now), RecordFileError::Network));
    let whole = fs::read(&place.path).unwrap();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut file = whole.clone();
        change(&mut file);
        fs::write(&place.path, file).unwrap();
        read(&place, now)
    };
    for at in 0..56 {
        for flip in [1, 0x80] {
            assert!(with(&|f| f[at] ^= flip).is_err(), "byte {at}");
        }
    }
    assert_eq!(with(&|f| f[56] ^= 1).unwrap(), Some(0), "a torn sign of life");
    for len in [0, 1, 55, 4095, 4096, whole.len() - 1] {
        assert!(with(&|f| f.truncate(len)).is_err(), "{len} bytes");
    }
    assert!(with(&|f| f.push(0)).is_err());
    fs::remove_file(&place.path).unwrap();
    let elsewhere = PathBuf::from("/dev/zero");
    std::os::unix::fs::symlink(&elsewhere, &place.path).unwrap();
    assert!(matches!(refused(&place, now), RecordFileError::System(_)), "a link is not followed");
    assert!(matches!(
        refused(&RecordFile { path: elsewhere, ..place.clone() }, now),
        RecordFileError::Foreign
    ));
    assert!(
        refused(&RecordFile { path: env::temp_dir(), ..place.clone() }, now)
            .to_string()
            .contains("not a file of records")
    );
    clean(&place);
}
