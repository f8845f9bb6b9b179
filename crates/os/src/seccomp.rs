//! seccomp(2), filter mode: a thread permanently gives up all system calls except those in a list, for itself
//! and everything it starts.
//!
//! A call that is not in the list returns EPERM and does not kill the process: a gateway must not end because
//! a library uses a new call. clone3 returns ENOSYS, since a filter cannot see its flags; C libraries then
//! use clone, whose flags the filter checks so that no namespace is created.

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

const fn op(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

const fn refuse(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32 & libc::SECCOMP_RET_DATA
}

/// The BPF program: checks the processor, then each call in turn. The kernel caches the calls that are always
/// allowed (Linux 5.11).
fn program(arch: u32, allowed: &[libc::c_long]) -> Vec<libc::sock_filter> {
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
    all.push(op(RETURN, 0, 0, no));
    all
}

/// True if this kernel supports filters and this module knows the processor.
pub fn is_there() -> bool {
    // SAFETY: numbers only; it returns the mode of this thread.
    ARCH.is_some() && unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) } >= 0
}

/// Restricts the calling thread and everything it starts to the system calls in `allowed` and to clone
/// without namespaces, in addition to earlier filters. `no_new_privs` must be set. Returns false if this
/// kernel or processor has no filters.
///
/// # Errors
/// When the kernel refuses.
pub fn restrict(allowed: &[libc::c_long]) -> io::Result<bool> {
    let Some(arch) = ARCH.filter(|_| is_there()) else { return Ok(false) };
    let mut code = program(arch, allowed);
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
    [EVERYWHERE, OF_OLD].concat()
}

/// Calls that exist on all processors.
const EVERYWHERE: &[libc::c_long] = &[
    // files and descriptors
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_openat,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_lseek,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_ioctl,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_umask,
    libc::SYS_splice,
    libc::SYS_sendfile,
    libc::SYS_copy_file_range,
    libc::SYS_memfd_create,
    libc::SYS_eventfd2,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_signalfd4,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_rm_watch,
    // memory
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_msync,
    libc::SYS_mincore,
    libc::SYS_brk,
    libc::SYS_mlock,
    libc::SYS_munlock,
    libc::SYS_membarrier,
    // sockets
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_shutdown,
    // time, threads, signals
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_timer_create,
    libc::SYS_timer_settime,
    libc::SYS_timer_delete,
    libc::SYS_setitimer,
    libc::SYS_getitimer,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_rseq,
    libc::SYS_set_tid_address,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_getparam,
    libc::SYS_sched_setattr,
    libc::SYS_sched_getattr,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_getpriority,
    libc::SYS_setpriority,
    libc::SYS_getcpu,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigsuspend,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    // processes: `nft` is started as one
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getgroups,
    libc::SYS_getpgid,
    libc::SYS_setpgid,
    libc::SYS_getsid,
    libc::SYS_setsid,
    libc::SYS_prctl,
    libc::SYS_prlimit64,
    libc::SYS_getrlimit,
    libc::SYS_setrlimit,
    libc::SYS_getrusage,
    libc::SYS_times,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrandom,
    libc::SYS_capget,
    libc::SYS_capset,
    // further restriction
    libc::SYS_seccomp,
    CREATE_RULESET,
    ADD_RULE,
    RESTRICT_SELF,
];

/// Older calls that only some processors have besides their newer replacements.
#[cfg(target_arch = "x86_64")]
const OF_OLD: &[libc::c_long] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_readlink,
    libc::SYS_unlink,
    libc::SYS_rmdir,
    libc::SYS_rename,
    libc::SYS_mkdir,
    libc::SYS_chmod,
    libc::SYS_getdents,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_getpgrp,
    libc::SYS_alarm,
    libc::SYS_pause,
    libc::SYS_time,
    libc::SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
const OF_OLD: &[libc::c_long] = &[];

/// Numbers of Landlock's system calls, which libc does not have on every platform.
const CREATE_RULESET: libc::c_long = 444;
const ADD_RULE: libc::c_long = 445;
const RESTRICT_SELF: libc::c_long = 446;

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
                assert!(restrict(&ordinary()).unwrap());
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
