//! seccomp(2), filter mode: a thread permanently gives up all system calls except those in a list, for itself
//! and everything it starts.
//!
//! A call that is not in the list returns EPERM and does not kill the process: a gateway must not end because
//! a library uses a new call. clone3 returns ENOSYS, since a filter cannot see its flags; C libraries then
//! use clone, whose flags the filter checks so that no namespace is created. Of bpf(2) only the commands that
//! read and write the entries of a map are allowed, and only to those who ask for it.

#![allow(unsafe_code, reason = "prctl with a pointer to a program; the block says why it is sound")]

use std::io::{self, Error};

/// Processor number in `seccomp_data`, from linux/audit.h.
#[cfg(target_arch = "x86_64")]
const ARCH: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCH: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCH: Option<u32> = None;

/// Offsets in `struct seccomp_data`: the call's number, the processor, the lower half of the first argument.
const NUMBER: u32 = 0;
const PROCESSOR: u32 = 4;
const FIRST: u32 = if cfg!(target_endian = "little") { 16 } else { 20 };
/// Set in the numbers of system calls of x86's x32 ABI.
const X32: u32 = 0x4000_0000;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_LESS: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const IF_ANY: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Flags of clone that create namespaces.
const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// Commands of bpf(2) from `BPF_MAP_LOOKUP_ELEM` to `BPF_MAP_DELETE_ELEM`: entries of a map that is open.
const MAP_ENTRIES: [u32; 3] = [1, 2, 3];

const fn op(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

const fn refuse(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32 & libc::SECCOMP_RET_DATA
}

/// The BPF program: checks the processor, then each call in turn. The kernel caches the calls that are always
/// allowed (Linux 5.11).
fn program(arch: u32, allowed: &[libc::c_long], maps: bool) -> Vec<libc::sock_filter> {
    let (yes, no) = (libc::SECCOMP_RET_ALLOW, refuse(libc::EPERM));
    let mut all = vec![
        op(LOAD, 0, 0, PROCESSOR),
        op(IF_EQUAL, 1, 0, arch),
        op(RETURN, 0, 0, no),
        op(LOAD, 0, 0, NUMBER),
        op(IF_LESS, 0, 1, X32),
        op(RETURN, 0, 0, no),
        op(IF_EQUAL, 0, 1, libc::SYS_clone3 as u32),
        op(RETURN, 0, 0, refuse(libc::ENOSYS)),
        op(IF_EQUAL, 0, 4, libc::SYS_clone as u32),
        op(LOAD, 0, 0, FIRST),
        op(IF_ANY, 0, 1, NAMESPACES),
        op(RETURN, 0, 0, no),
        op(RETURN, 0, 0, yes),
    ];
    for number in allowed {
        all.extend([op(IF_EQUAL, 0, 1, *number as u32), op(RETURN, 0, 0, yes)]);
    }
    if maps {
        let [first, second, third] = MAP_ENTRIES;
        all.extend([
            op(IF_EQUAL, 0, 5, libc::SYS_bpf as u32),
            op(LOAD, 0, 0, FIRST),
            op(IF_EQUAL, 2, 0, first),
            op(IF_EQUAL, 1, 0, second),
            op(IF_EQUAL, 0, 1, third),
            op(RETURN, 0, 0, yes),
        ]);
    }
    all.push(op(RETURN, 0, 0, no));
    all
}

/// True if this kernel supports filters and this module knows the processor.
pub fn is_there() -> bool {
    // SAFETY: numbers only; it returns the mode of this thread.
    ARCH.is_some() && unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) } >= 0
}

/// Restricts the calling thread and everything it starts to the system calls in `allowed` and to clone
/// without namespaces, in addition to earlier filters. With `maps`, entries of BPF maps can be read and
/// written too. `no_new_privs` must be set. Returns false if this kernel or processor has no filters.
///
/// # Errors
/// When the kernel refuses.
pub fn restrict(allowed: &[libc::c_long], maps: bool) -> io::Result<bool> {
    let Some(arch) = ARCH.filter(|_| is_there()) else { return Ok(false) };
    let mut code = program(arch, allowed, maps);
    let len = u16::try_from(code.len()).map_err(|_| Error::other("too many system calls in a filter"))?;
    let filter = libc::sock_fprog { len, filter: code.as_mut_ptr() };
    // SAFETY: `filter` and the program it points to live during the call, with the program's length.
    let done =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter, 0, 0) };
    if done == 0 { Ok(true) } else { Err(Error::last_os_error()) }
}

/// System calls that the gateway and `nft` need: memory, files, sockets, threads, time, signals, starting a
/// program. Excludes calls that change the whole machine, inspect other processes, load kernel code, mount,
/// or change users.
pub fn ordinary() -> Vec<libc::c_long> {
    [EVERYWHERE, OF_OLD, LANDLOCK].concat()
}

/// A list of system calls by their names in libc.
macro_rules! calls {
    ($($name:ident)*) => { &[$(libc::$name),*] };
}

/// Calls that exist on all processors.
const EVERYWHERE: &[libc::c_long] = calls![
    // files and descriptors
    SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_pwrite64 SYS_preadv SYS_pwritev SYS_openat
    SYS_close SYS_close_range SYS_fstat SYS_newfstatat SYS_statx SYS_statfs SYS_fstatfs SYS_lseek
    SYS_fcntl SYS_flock SYS_ioctl SYS_dup SYS_dup3 SYS_pipe2 SYS_getdents64 SYS_getcwd SYS_readlinkat
    SYS_faccessat SYS_faccessat2 SYS_mkdirat SYS_unlinkat SYS_renameat SYS_renameat2 SYS_ftruncate
    SYS_fallocate SYS_fsync SYS_fdatasync SYS_sync_file_range SYS_fchmod SYS_fchmodat SYS_umask
    SYS_splice SYS_sendfile SYS_copy_file_range SYS_memfd_create SYS_eventfd2 SYS_epoll_create1
    SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_ppoll SYS_pselect6 SYS_timerfd_create
    SYS_timerfd_settime SYS_signalfd4 SYS_inotify_init1 SYS_inotify_add_watch SYS_inotify_rm_watch
    // memory
    SYS_mmap SYS_munmap SYS_mprotect SYS_mremap SYS_madvise SYS_msync SYS_mincore SYS_brk SYS_mlock
    SYS_munlock SYS_membarrier
    // sockets
    SYS_socket SYS_socketpair SYS_bind SYS_listen SYS_accept SYS_accept4 SYS_connect SYS_getsockname
    SYS_getpeername SYS_getsockopt SYS_setsockopt SYS_sendto SYS_recvfrom SYS_sendmsg SYS_recvmsg
    SYS_sendmmsg SYS_recvmmsg SYS_shutdown
    // time, threads, signals
    SYS_clock_gettime SYS_clock_getres SYS_clock_nanosleep SYS_nanosleep SYS_gettimeofday
    SYS_timer_create SYS_timer_settime SYS_timer_delete SYS_setitimer SYS_getitimer SYS_futex
    SYS_set_robust_list SYS_get_robust_list SYS_rseq SYS_set_tid_address SYS_sched_yield
    SYS_sched_getaffinity SYS_sched_setaffinity SYS_sched_setscheduler SYS_sched_getscheduler
    SYS_sched_setparam SYS_sched_getparam SYS_sched_setattr SYS_sched_getattr SYS_sched_get_priority_max
    SYS_sched_get_priority_min SYS_getpriority SYS_setpriority SYS_getcpu SYS_rt_sigaction
    SYS_rt_sigprocmask SYS_rt_sigreturn SYS_rt_sigpending SYS_rt_sigtimedwait SYS_rt_sigsuspend
    SYS_sigaltstack SYS_restart_syscall SYS_kill SYS_tkill SYS_tgkill SYS_pidfd_open
    SYS_pidfd_send_signal
    // processes: `nft` is started as one
    SYS_execve SYS_execveat SYS_exit SYS_exit_group SYS_wait4 SYS_waitid SYS_getpid SYS_getppid
    SYS_gettid SYS_getuid SYS_geteuid SYS_getgid SYS_getegid SYS_getresuid SYS_getresgid SYS_getgroups
    SYS_getpgid SYS_setpgid SYS_getsid SYS_setsid SYS_prctl SYS_prlimit64 SYS_getrlimit SYS_setrlimit
    SYS_getrusage SYS_times SYS_uname SYS_sysinfo SYS_getrandom SYS_capget SYS_capset
    // further restriction
    SYS_seccomp
];

/// Older calls that only some processors have besides their newer replacements.
#[cfg(target_arch = "x86_64")]
const OF_OLD: &[libc::c_long] = calls![
    SYS_open SYS_stat SYS_lstat SYS_access SYS_poll SYS_select SYS_dup2 SYS_pipe SYS_readlink SYS_unlink
    SYS_rmdir SYS_rename SYS_mkdir SYS_chmod SYS_getdents SYS_epoll_create SYS_epoll_wait SYS_eventfd
    SYS_fork SYS_vfork SYS_getpgrp SYS_alarm SYS_pause SYS_time SYS_arch_prctl
];
#[cfg(not(target_arch = "x86_64"))]
const OF_OLD: &[libc::c_long] = &[];

/// Landlock's system calls (create_ruleset, add_rule, restrict_self), which libc does not have on every
/// platform.
const LANDLOCK: &[libc::c_long] = &[444, 445, 446];

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_is_not_in_the_list_is_refused_and_the_thread_goes_on() {
        if !is_there() {
            println!(
                "SKIPPED what_is_not_in_the_list_is_refused_and_the_thread_goes_on: this kernel filters no calls"
            );
            return;
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                rustix::thread::set_no_new_privs(true).unwrap();
                assert!(restrict(&ordinary(), true).unwrap());
                // a lookup in what is no map gets as far as the kernel, another command does not
                for (command, error) in [(1, libc::EBADF), (5, libc::EPERM)] {
                    let mut attributes = [u32::MAX, 0, 0, 0, 0, 0, 0, 0];
                    // SAFETY: the attributes live during the call, with their length.
                    let asked = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_mut_ptr(), 32) };
                    assert_eq!((asked, Error::last_os_error().raw_os_error()), (-1, Some(error)));
                }
                // SAFETY: a number only; this value queries the personality and changes nothing.
                let asked = unsafe { libc::syscall(libc::SYS_personality, 0xffff_ffffu32) };
                assert_eq!((asked, Error::last_os_error().raw_os_error()), (-1, Some(libc::EPERM)));
                // SAFETY: a number only; the call is refused and changes nothing.
                let own = unsafe { libc::unshare(libc::CLONE_NEWUSER) };
                assert_eq!((own, Error::last_os_error().raw_os_error()), (-1, Some(libc::EPERM)));
                // threads and programs can be started and have the same filter
                assert_eq!(std::thread::scope(|inner| inner.spawn(|| 7).join().unwrap()), 7);
                let done = Command::new("unshare").args(["--user", "true"]).output().unwrap();
                assert!(!done.status.success());
                assert!(Command::new("true").status().unwrap().success());
            });
        });
    }
}
