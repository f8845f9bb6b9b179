//! The command `bentpipe`, but SIGUSR2 makes the thread that receives it panic. `panics at PROCESS THREAD`
//! sends this signal to one thread. For `make accept AREA=gateway PARTS=panics`; it stands in this crate
//! because only this one may contain unsafe code.

use std::process::ExitCode;

extern "C" fn panic_here(_: libc::c_int) {
    panic!("injected by SIGUSR2");
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if let [_, at, process, thread] = &words[..]
        && at == "at"
    {
        let number = |word: &str| word.parse::<libc::c_long>().unwrap_or(-1);
        // SAFETY: the call takes three numbers, and the kernel refuses wrong ones.
        #[expect(unsafe_code, reason = "no crate offers tgkill for other processes")]
        let failed = unsafe {
            libc::syscall(
                libc::SYS_tgkill,
                number(process),
                number(thread),
                libc::c_long::from(libc::SIGUSR2),
            )
        };
        return if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let handler: extern "C" fn(libc::c_int) = panic_here;
    // SAFETY: the handler never returns to the interrupted code, whose state it might otherwise disturb.
    #[expect(unsafe_code, reason = "a handler that panics is what no safe crate offers")]
    unsafe {
        libc::signal(libc::SIGUSR2, handler as libc::sighandler_t);
    }
    bentpipe::cli(bentpipe::Registry::default())
}
