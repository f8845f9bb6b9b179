//! The engine directly behind the kernel's port, with super-packets.

use crate::kernel::{self, Crowd};
use crate::lab::{ENGINE, KERNEL, at};
use crate::talk::{Content, Talk, Talks};
use crate::{ALL, BYTES, config, lab};
use bentpipe_base::Duration;
use bentpipe_live::endpoint::{EndpointDriver, Settings};
use bentpipe_os::{Clock, wait};
use std::sync::Arc;

#[test]
fn the_engine_stands_alone_behind_a_port() {
    let Some(lab) = lab("the_engine_stands_alone_behind_a_port") else { return };
    let addresses = [false, true].map(|v6| at(ENGINE, v6, 0).ip()).to_vec();
    let settings = Settings { addresses, ..Settings::default() };
    let listener = kernel::listen(&lab, at(KERNEL, true, 5000));
    let host = Arc::clone(&lab.host);
    let clock = Clock::start();
    let mut driver = EndpointDriver::new(lab.port, clock, 5, settings);
    let (mut talks, mut crowd) = (Talks::default(), Crowd::default());
    talks.for_callers.insert(80, vec![Talk::new(200, BYTES, 100, BYTES)]);
    let both = ((Content(100), BYTES), (Content(200), BYTES));
    crowd.start(move || kernel::talk(&kernel::call(&host, false, 80).expect("an answer"), both.0, both.1));
    crowd.start(move || kernel::talk(&kernel::accept(&listener), both.0, both.1));
    driver.with(|endpoint, cx| {
        endpoint.listen(80, &config(ALL), 1).unwrap();
        let id = endpoint.connect(cx, at(KERNEL, true, 5000), &config(ALL)).unwrap();
        let mut talk = Talk::new(200, BYTES, 100, BYTES);
        talk.start(endpoint, id);
        talks.of.insert(id, talk);
    });
    while !(talks.all_done() && crowd.is_over() || crowd.has_failed()) {
        let next = driver.turn().unwrap();
        let busy = driver.with(|endpoint, cx| {
            talks.run(endpoint, cx);
            endpoint.wants_to_send()
        });
        assert!(clock.now().as_secs_f64() < 120.0, "too slow");
        if !busy {
            let next = next.min(clock.now() + Duration::from_millis(20));
            wait::wait(&[driver.fd()], Some(next), &clock, Duration::ZERO).unwrap();
        }
    }
    let took = clock.now().as_secs_f64();
    println!("{:.0} Mbit/s in all directions together", 4.0 * BYTES as f64 * 8.0 / took / 1e6);
    crowd.join();
    driver.with(|endpoint, _| assert_eq!(endpoint.counters().bad_checksum, 0));
}
