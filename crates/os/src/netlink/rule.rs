//! Routing rules by firewall mark, and additional routing tables.
//!
//! The kernel removes a route together with its interface. It skips a rule whose table is empty (ip-rule(8)),
//! so marked packets then follow the other rules.

use super::route::direct_route;
use super::{Error, Netlink};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::route::RouteAttribute;
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

/// Routes packets with this firewall mark by this table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkRule {
    /// True for IPv6, false for IPv4.
    pub v6: bool,
    /// Smaller values are evaluated first; 0 is the local table, 32766 the main table.
    pub priority: u32,
    /// The mark, compared in the bits of `mask`.
    pub mark: u32,
    /// Bits of the mark that are compared.
    pub mask: u32,
    /// Number of the table.
    pub table: u32,
}

impl MarkRule {
    /// True if the rule applies to packets with this mark.
    pub const fn matches(&self, mark: u32) -> bool {
        (self.mark ^ mark) & self.mask == 0
    }
}

impl Netlink {
    /// Adds a rule.
    ///
    /// # Errors
    /// When it exists already ([`Error::is_taken`]) or the kernel refuses.
    pub fn add_rule(&mut self, rule: MarkRule) -> Result<(), Error> {
        self.request(RouteNetlinkMessage::NewRule(message(rule)), NLM_F_CREATE | NLM_F_EXCL, || {
            format!("the routing rule for mark {:#x} cannot be added", rule.mark)
        })
    }

    /// Removes a rule.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn delete_rule(&mut self, rule: MarkRule) -> Result<(), Error> {
        self.request(RouteNetlinkMessage::DelRule(message(rule)), 0, || {
            format!("the routing rule for mark {:#x} cannot be removed", rule.mark)
        })
    }

    /// Returns the rules that match by mark, of both families.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn rules(&mut self) -> Result<Vec<MarkRule>, Error> {
        let mut all = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut request = RuleMessage::default();
            request.header.family = family;
            let request = RouteNetlinkMessage::GetRule(request);
            all.extend(self.list("routing rules", request, |message| match message {
                RouteNetlinkMessage::NewRule(rule) => entry(&rule),
                _ => None,
            })?);
        }
        Ok(all)
    }

    /// Adds a default route over an interface to a table.
    ///
    /// # Errors
    /// When there is no such interface, or the table has a default route already ([`Error::is_taken`]).
    pub fn add_default_route(&mut self, interface: &str, table: u32, v6: bool) -> Result<(), Error> {
        let mut message = direct_route(family(v6), self.index_of(interface)?);
        message.attributes.push(RouteAttribute::Table(table));
        self.request(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL, || {
            format!("table {table} cannot have a route over {interface}")
        })
    }
}

const fn family(v6: bool) -> AddressFamily {
    if v6 { AddressFamily::Inet6 } else { AddressFamily::Inet }
}

fn message(rule: MarkRule) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = family(rule.v6);
    message.header.action = RuleAction::ToTable;
    message.attributes = vec![
        RuleAttribute::Priority(rule.priority),
        RuleAttribute::FwMark(rule.mark),
        RuleAttribute::FwMask(rule.mask),
        RuleAttribute::Table(rule.table),
    ];
    message
}

fn entry(message: &RuleMessage) -> Option<MarkRule> {
    let mut rule = MarkRule {
        v6: message.header.family == AddressFamily::Inet6,
        priority: 0,
        mark: 0,
        mask: u32::MAX,
        table: u32::from(message.header.table),
    };
    for attribute in &message.attributes {
        match attribute {
            RuleAttribute::Priority(n) => rule.priority = *n,
            RuleAttribute::FwMark(n) => rule.mark = *n,
            RuleAttribute::FwMask(n) => rule.mask = *n,
            RuleAttribute::Table(n) => rule.table = *n,
            _ => {}
        }
    }
    (rule.mark != 0).then_some(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_with_a_mask_takes_every_mark_that_agrees_in_its_bits() {
        // Cilium's rule for its proxy: `ip rule add pref 9 fwmark 0x200/0xf00 lookup 2004`
        let masked = MarkRule { v6: false, priority: 9, mark: 0x200, mask: 0xf00, table: 2004 };
        assert_eq!(entry(&message(masked)), Some(masked));
        assert!(masked.matches(0x6270) && !masked.matches(0x6370));
        let exact = MarkRule { mask: u32::MAX, ..masked };
        assert_eq!(entry(&message(exact)), Some(exact));
        assert!(exact.matches(0x200) && !exact.matches(0x6270));
    }
}
