//! Invalid networks: the full text of each error.

use crate::support::{DUMBBELL, GRAPH, edit, refuses};

#[test]
fn no_network() {
    let text = edit(
        DUMBBELL,
        "[dumbbell]\npairs = 2\nrtt = \"550 ms\"\nrate = \"10 Mbit/s\"\nbuffer = \"50 packets\"\nloss = \"$loss\"\naccess = { rate = \"100 Mbit/s\", delay = \"1 ms\", buffer = \"1 MB\" }\n",
        "",
    );
    let text = edit(&text, "loss = 1e-4\n", "");
    refuses(
        &text,
        &[],
        r"
error: these flows have no network
  --> test.toml:13:1
   |
13 | [[flows]]
   | ^^^^^^^^^ give [dumbbell], [satellite], or [[hosts]], [[routers]] and [[links]]
",
    );
}

#[test]
fn both_ways_to_describe_a_network() {
    refuses(
        &edit(DUMBBELL, "[host]", "[[hosts]]\nname = \"x\"\n\n[host]"),
        &[],
        r"
error: [[hosts]] and [dumbbell] exclude each other
  --> test.toml:17:1
   |
17 | [[hosts]]
   | ^^^^^^^^^ the file has a [dumbbell]
   = help: a dumbbell's network is complete; to change it, write out hosts, routers and links
",
    );
}

#[test]
fn an_rtt_shorter_than_the_access_links() {
    refuses(
        &edit(DUMBBELL, "550 ms", "2 ms"),
        &[],
        r#"
error: `rtt` is too short for the access links
  --> test.toml:11:7
   |
11 | rtt = "2 ms"
   |       ^^^^^^ two access links of 1 ms each way take 4 ms of it
"#,
    );
}

#[test]
fn an_unknown_host() {
    refuses(
        &edit(DUMBBELL, "from = \"src\"", "from = \"scr1\""),
        &[],
        r#"
error: there is no host `scr1`
  --> test.toml:24:8
   |
24 | from = "scr1"
   |        ^^^^^^ did you mean `src1`?
   = help: hosts: src1, src2, dst1, dst2
"#,
    );
}

#[test]
fn a_prefix_without_count() {
    refuses(
        &edit(DUMBBELL, "count = 2\n", ""),
        &[],
        r#"
error: there is no host `src`
  --> test.toml:23:8
   |
23 | from = "src"
   |        ^^^^^ `src1` exists; `src` alone works with `count`
   = help: hosts: src1, src2, dst1, dst2
"#,
    );
}

#[test]
fn more_flows_than_hosts() {
    refuses(
        &edit(DUMBBELL, "count = 2", "count = 3"),
        &[],
        r#"
error: there is no host `src3` for flow 3 of 3
  --> test.toml:24:8
   |
24 | from = "src"
   |        ^^^^^ hosts `src1` to `src2` exist
"#,
    );
}

#[test]
fn two_flows_of_one_name() {
    refuses(
        &edit(
            DUMBBELL,
            "count = 2\nfrom = \"src\"\nto = \"dst\"",
            "from = \"src1\"\nto = \"dst1\"\n\n[[flows]]\nname = \"flow\"\nfrom = \"src2\"\nto = \"dst2\"",
        ),
        &[],
        r#"
error: two flows are called `flow`
  --> test.toml:27:8
   |
27 | name = "flow"
   |        ^^^^^^ this name is taken
"#,
    );
}

#[test]
fn a_flow_to_itself() {
    refuses(
        &edit(GRAPH, "name = \"up\"\nfrom = \"a\"\nto = \"b\"", "name = \"up\"\nfrom = \"a\"\nto = \"a\""),
        &[],
        r#"
error: a flow from `a` to `a`
  --> test.toml:61:6
   |
61 | to = "a"
   |      ^^^ a flow has two hosts
"#,
    );
}

#[test]
fn a_flow_to_a_router() {
    refuses(
        &edit(GRAPH, "name = \"up\"\nfrom = \"a\"\nto = \"b\"", "name = \"up\"\nfrom = \"a\"\nto = \"r3\""),
        &[],
        r#"
error: `r3` is a router
  --> test.toml:61:6
   |
61 | to = "r3"
   |      ^^^^ flows begin and end at hosts
"#,
    );
}

#[test]
fn two_nodes_of_one_name() {
    refuses(
        &edit(GRAPH, "name = \"r3\"", "name = \"r2\""),
        &[],
        r#"
error: two nodes are called `r2`
  --> test.toml:14:8
   |
14 | name = "r2"
   |        ^^^^ this name is taken
"#,
    );
}

#[test]
fn two_links_of_one_name() {
    refuses(
        &edit(GRAPH, "name = \"r31\"", "name = \"r12\""),
        &[],
        r#"
error: two links are called `r12`
  --> test.toml:43:8
   |
43 | name = "r12"
   |        ^^^^^ this name is taken
   = help: the two directions of a link have a name each
"#,
    );
}

#[test]
fn a_link_named_like_a_return() {
    refuses(
        &edit(GRAPH, "name = \"r31\"", "name = \"r12-return\""),
        &[],
        r#"
error: two links are called `r12-return`
  --> test.toml:43:8
   |
43 | name = "r12-return"
   |        ^^^^^^^^^^^^ this name is taken
   = help: the two directions of a link have a name each
"#,
    );
}

#[test]
fn a_link_to_nowhere() {
    refuses(
        &edit(GRAPH, "name = \"r31\"\nfrom = \"r3\"", "name = \"r31\"\nfrom = \"r33\""),
        &[],
        r#"
error: there is no node `r33`
  --> test.toml:44:8
   |
44 | from = "r33"
   |        ^^^^^ did you mean `r3`?
   = help: nodes: a, b, r1, r2, r3
"#,
    );
}

#[test]
fn a_link_to_itself() {
    refuses(
        &edit(GRAPH, "name = \"r31\"\nfrom = \"r3\"", "name = \"r31\"\nfrom = \"r1\""),
        &[],
        r#"
error: link `r31` ends where it begins
  --> test.toml:45:6
   |
45 | to = "r1"
   |      ^^^^
"#,
    );
}

#[test]
fn a_link_without_a_rate() {
    refuses(
        &edit(GRAPH, "rate = \"10 Mbit/s\"\n", ""),
        &[],
        r"
error: link `r12` (forward) has no `rate`
  --> test.toml:24:1
   |
24 | [[links]]
   | ^^^^^^^^^ `rate` must be given
",
    );
}

#[test]
fn a_host_without_a_link() {
    refuses(
        &edit(GRAPH, "{ name = \"b\" }", "{ name = \"b\" }, { name = \"c\" }"),
        &[],
        r#"
error: host `c` has no link
 --> test.toml:4:51
  |
4 | hosts = [{ name = "a" }, { name = "b" }, { name = "c" }]
  |                                                   ^^^ a host has exactly one
"#,
    );
}

#[test]
fn a_host_with_two_links() {
    refuses(
        &edit(GRAPH, "name = \"r31\"\nfrom = \"r3\"", "name = \"r31\"\nfrom = \"a\""),
        &[],
        r#"
error: host `a` has 2 links
 --> test.toml:4:19
  |
4 | hosts = [{ name = "a" }, { name = "b" }]
  |                   ^^^ a host has exactly one: put a router before it
"#,
    );
}

#[test]
fn flows_that_are_not_connected() {
    let text = edit(GRAPH, "from = \"r1\"\nto = \"r2\"", "from = \"r1\"\nto = \"r3\"");
    let text = edit(
        &text,
        "name = \"r23\"\nfrom = \"r2\"\nto = \"r3\"",
        "name = \"r23\"\nfrom = \"r1\"\nto = \"r3\"",
    );
    let text = edit(&text, ", via = \"r23\" ", ", via = \"b2\" ");
    let text = edit(&text, "routes =", "# ");
    refuses(
        &text,
        &[],
        r#"
error: no path leads from `a` to `b`
  --> test.toml:61:6
   |
61 | to = "b"
   |      ^^^ not connected
"#,
    );
}

#[test]
fn a_route_over_an_unknown_link() {
    refuses(
        &edit(GRAPH, "via = \"r23\"", "via = \"r32\""),
        &[],
        r#"
error: there is no link `r32`
  --> test.toml:11:29
   |
11 | routes = [{ to = "a", via = "r32" }]
   |                             ^^^^^ did you mean `r12`?
   = help: links of `r2`: r12, r23, b2
"#,
    );
}

#[test]
fn a_route_over_someone_elses_link() {
    refuses(
        &edit(GRAPH, "via = \"r23\"", "via = \"r31\""),
        &[],
        r#"
error: link `r31` does not touch `r2`
  --> test.toml:11:29
   |
11 | routes = [{ to = "a", via = "r31" }]
   |                             ^^^^^ a router sends over its own links
   = help: its links: r12, r23, b2
"#,
    );
}

#[test]
fn a_route_to_a_router() {
    refuses(
        &edit(GRAPH, "to = \"a\", via", "to = \"r1\", via"),
        &[],
        r#"
error: `r1` is a router
  --> test.toml:11:18
   |
11 | routes = [{ to = "r1", via = "r23" }]
   |                  ^^^^ a route leads to a host
"#,
    );
}

#[test]
fn two_routes_to_one_host() {
    refuses(
        &edit(GRAPH, "via = \"r23\" }", "via = \"r23\" }, { to = \"a\", via = \"r12\" }"),
        &[],
        r#"
error: `r2` has two routes to `a`
  --> test.toml:11:45
   |
11 | routes = [{ to = "a", via = "r23" }, { to = "a", via = "r12" }]
   |                                             ^^^ this is the second
"#,
    );
}

#[test]
fn routes_that_go_in_a_circle() {
    refuses(
        &edit(GRAPH, "name = \"r3\"\n", "name = \"r3\"\nroutes = [{ to = \"a\", via = \"r23-return\" }]\n"),
        &[],
        r#"
error: packets for `a` go in a circle: r2 -> r3 -> r2
  --> test.toml:11:29
   |
11 | routes = [{ to = "a", via = "r23" }]
   |                             ^^^^^ this route is part of it
"#,
    );
}

#[test]
fn a_way_into_a_circle() {
    let text = edit(GRAPH, "to = \"a\", via = \"r23\"", "to = \"b\", via = \"r23\"");
    let text = edit(&text, "name = \"r1\"\n", "name = \"r1\"\nroutes = [{ to = \"b\", via = \"r31\" }]\n");
    let text = edit(&text, "name = \"r3\"\n", "name = \"r3\"\nroutes = [{ to = \"b\", via = \"r23\" }]\n");
    refuses(
        &text,
        &[],
        r#"
error: packets for `b` go in a circle: r3 -> r2 -> r3
  --> test.toml:16:29
   |
16 | routes = [{ to = "b", via = "r23" }]
   |                             ^^^^^ this route is part of it
"#,
    );
}

#[test]
fn a_route_into_a_dead_end() {
    refuses(
        &edit(GRAPH, "via = \"r23\"", "via = \"b2\""),
        &[],
        r#"
error: packets for `a` end at `b`
  --> test.toml:11:29
   |
11 | routes = [{ to = "a", via = "b2" }]
   |                             ^^^^ this route does not lead there
"#,
    );
}
