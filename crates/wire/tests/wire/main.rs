//! Tests of the header code from outside.
//!
//! Mutation tests: each of these changes to the source was made alone, and at least the named test failed.
//!
//! | change | caught by |
//! |---|---|
//! | `checksum.rs`: carries folded only once | `checksum::tests::agrees_with_the_plain_sum` |
//! | `checksum.rs`: an odd last byte in the lower half | `checksum::tests::agrees_with_the_plain_sum` |
//! | `checksum.rs`: an update adds the old words | `checksum::tests::an_update_equals_a_fresh_sum` |
//! | `checksum.rs`: RFC 1141, with the other zero | `checksum::tests::the_example_of_rfc_1624` |
//! | `checksum.rs`: no length in the pseudo-header | `round_trip::what_etherparse_writes_is_read` |
//! | `options.rs`: length below two accepted | `options::tests::impossible_lengths_end_the_list` |
//! | `options.rs`: goes on after the end of the list | `options::tests::options_are_told_apart` |
//! | `options.rs`: goes on after a fault | `options::tests::impossible_lengths_end_the_list` |
//! | `segment.rs`: SACK blocks without padding | `round_trip::what_is_emitted_is_read_back` |
//! | `segment.rs`: SACK length without kind and length | `round_trip::what_is_emitted_is_read_back` |
//! | `segment.rs`: half a SACK block accepted | `replay::the_corpus_covers_what_its_names_say` |
//! | `segment.rs`: window scale read without SYN | `round_trip::syn_only_options_count_on_a_syn_only` |
//! | `segment.rs`: window scale padded behind it | `replay::we_lay_options_out_as_common_stacks_do` |
//! | `segment.rs`: SACK-permitted lost beside timestamps | `replay::we_lay_options_out_as_common_stacks_do` |
//! | `segment.rs`: ECT(0) and ECT(1) exchanged | `round_trip::what_is_emitted_is_read_back` |
//! | `ipv4.rs`: header length below five accepted | `ipv4::tests::impossible_headers_are_refused` |
//! | `ipv4.rs`: link-layer padding taken for payload | `ipv4::tests::fields_are_where_the_rfc_puts_them` |
//! | `ipv4.rs`: fragment offset in bytes | `ipv4::tests::fields_are_where_the_rfc_puts_them` |
//! | `ipv6.rs`: extension length one unit short | `ipv6::tests::the_walk_ends_at_the_transport_header` |
//! | `ipv6.rs`: later fragments walked on | `ipv6::tests::fragments_are_seen` |
//! | `layout.rs`: fragments taken for whole packets | `layout::tests::only_whole_tcp_packets_have_a_layout` |
//! | `tcp.rs`: data offset below five accepted | `tcp::tests::impossible_headers_are_refused` |

mod check;
mod corpus;
mod mutate;
mod oracle;
mod replay;
mod round_trip;
