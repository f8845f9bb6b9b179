//! Compiles the program for the kernel, if it is to be there.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    if std::env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    let var = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let object = Path::new(&var("OUT_DIR")).join("rate.bpf.o");
    let headers = format!("/usr/include/{}-linux-gnu", var("CARGO_CFG_TARGET_ARCH"));
    let mut clang = Command::new(std::env::var_os("CLANG").unwrap_or_else(|| "clang".into()));
    clang.args(["-O2", "-g", "-target", "bpf", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]);
    clang.args(["-I", &headers, "-c", "bpf/rate.bpf.c", "-o"]).arg(&object);
    match clang.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("clang could not compile bpf/rate.bpf.c: {status}"),
        Err(error) => panic!("the feature `bpf` needs clang: {error}; install it, or set CLANG to its path"),
    }
}
