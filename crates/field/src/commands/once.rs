//! A single run of the bed.

use bentpipe_field::cell::RunConfig;
use bentpipe_field::hop::record::write_pcap;
use bentpipe_field::{lines, report, run};
use std::fs::{self, File};
use std::io::BufWriter;

pub(crate) fn command(cell: &RunConfig) -> Result<(), String> {
    let ran = run::run(cell)?;
    let figures = report::figures(cell, &ran);
    if let Some(out) = &cell.out {
        for (name, at_gateway) in [("gateway.pcap", true), ("receiver.pcap", false)] {
            let path = out.join(name);
            let failed = |e| format!("{}: {e}", path.display());
            let mut file = BufWriter::new(File::create(&path).map_err(failed)?);
            write_pcap(&ran.hop.records, at_gateway, &mut file).map_err(failed)?;
        }
        let path = out.join("figures.json");
        fs::write(&path, figures.to_string()).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    if cell.json {
        println!("{figures}");
    } else {
        print!("{}", lines::lines(cell, &figures));
    }
    Ok(())
}
