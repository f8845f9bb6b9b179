//! Reloads the gateway file while the gateway is running.

use super::deployment::Deployment;
use super::divert::{self, Scope};
use super::engine::EngineConfig;
use super::error::Error;
use super::rate_routers;
use super::run::{self, RunningGateway};
use crate::status::{Groups, Records, Verdict};
use bentpipe_os::nft;
use bentpipe_scenario::gateway_file::{GatewayFile, Kind};

impl RunningGateway {
    /// Replaces the old file by the current one; returns a message for the log.
    pub(super) fn reload(
        &mut self,
        deployment: &Deployment<'_>,
        records: &mut Option<Records>,
    ) -> Result<String, Error> {
        if let Some(records) = records {
            records.reopen();
        }
        let file = (deployment.read)()?;
        let old = &self.config.file;
        let listeners = |file: &GatewayFile| (file.status.socket.clone(), file.status.prometheus);
        for (what, differs) in [
            ("[deploy]", file.deploy != old.deploy),
            ("`socket` and `prometheus`", listeners(&file) != listeners(old)),
            ("[[nodes]]", file.customs != old.customs),
        ] {
            if differs {
                let text = format!("{what} cannot change while the gateway runs\nhelp: restart it");
                return Err(Error::Reload(text));
            }
        }
        if let Some(why) = rate_routers::refusal(old.rate.as_ref(), file.rate.as_ref()) {
            return Err(Error::Reload(format!("{why}\nhelp: restart it")));
        }
        if file == **old && self.bypass.is_none() {
            return Ok(format!("{} has not changed", deployment.path));
        }
        let new = if file.status.records == old.status.records { None } else { Some(run::records(&file)?) };
        self.bring(&file)?;
        let orders = EngineConfig::new(file);
        self.engine.reconfigure(&orders).map_err(Error::Reload)?;
        if let Some(new) = new {
            *records = new;
        }
        // earlier connections were accelerated under other settings
        self.groups = Groups::default();
        (self.config, self.bypass, self.verdict) = (orders, None, Verdict::TooFew);
        Ok(format!("{} is in effect", deployment.path))
    }

    /// Diverts what `file` needs in addition to what the old file diverted: packets of connections that are
    /// already accelerated must still be diverted, whatever the new rules say.
    fn bring(&mut self, file: &GatewayFile) -> Result<(), Error> {
        let old = &self.config.file;
        let is_as_before = file.policy == old.policy;
        let wider = self.scope.after_reload(Scope::of(file), is_as_before);
        if file.deploy.kind == Kind::Inline || wider == self.scope {
            return Ok(());
        }
        let table = &file.deploy.nft_table;
        let script = divert::script(file, wider, divert::is_tracked());
        // one transaction, so that no packet sees an incomplete table
        nft::run(&format!("delete table inet {table}\n{script}"))
            .map_err(|why| Error::Reload(format!("nft: {why}")))?;
        self.scope = wider;
        // the rules of the watch were in the deleted table
        self.watch = None;
        Ok(())
    }
}
