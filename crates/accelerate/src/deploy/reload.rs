//! The file is read again while the gateway runs.

use super::deployment::Deployment;
use super::divert::{self, Scope};
use super::engine::Orders;
use super::error::Error;
use super::run::{self, Gateway};
use crate::status::{Groups, Records, Verdict};
use bentpipe_os::nft;
use bentpipe_scenario::gateway_file::{GatewayFile, Kind};

impl Gateway {
    /// Takes the file as it is now, in the place of the old one; says so, or why not.
    pub(super) fn exchange(
        &mut self,
        deployment: &Deployment<'_>,
        records: &mut Option<Records>,
    ) -> Result<String, Error> {
        if let Some(records) = records {
            records.reopen();
        }
        let file = (deployment.read)()?;
        let old = &self.orders.file;
        if file.deploy != old.deploy {
            return Err(fixed("[deploy]"));
        }
        if (&file.status.socket, file.status.prometheus) != (&old.status.socket, old.status.prometheus) {
            return Err(fixed("`socket` and `prometheus`"));
        }
        if file.customs != old.customs {
            return Err(fixed("[[nodes]]"));
        }
        if file == **old && self.bypass.is_none() {
            return Ok(format!("{} is as it was", deployment.path));
        }
        let new = if file.status.records == old.status.records { None } else { Some(run::records(&file)?) };
        self.bring(&file)?;
        let orders = Orders::new(file);
        self.engine.tell(&orders).map_err(Error::Reload)?;
        if let Some(new) = new {
            *records = new;
        }
        // what was compared was accelerated in another way
        self.groups = Groups::default();
        (self.orders, self.bypass, self.verdict) = (orders, None, Verdict::TooFew);
        Ok(format!("{} is in force", deployment.path))
    }

    /// Has the kernel bring what `file` needs beside what the old one did: connections that are accelerated
    /// must go on to come, whatever the new rules say of such.
    fn bring(&mut self, file: &GatewayFile) -> Result<(), Error> {
        let old = &self.orders.file;
        let is_as_before = file.policy == old.policy;
        let wider = self.scope.beside(Scope::of(file), is_as_before);
        if file.deploy.kind == Kind::Inline || wider == self.scope {
            return Ok(());
        }
        let table = &file.deploy.nft_table;
        let script = divert::script(file, wider, divert::is_tracked());
        // one transaction: no packet sees a table that is half there
        nft::run(&format!("delete table inet {table}\n{script}"))
            .map_err(|why| Error::Reload(format!("nft: {why}")))?;
        self.scope = wider;
        // its rules went with the table
        self.watch = None;
        Ok(())
    }
}

fn fixed(what: &str) -> Error {
    Error::Reload(format!("{what} cannot change while the gateway runs\nhelp: restart it"))
}
