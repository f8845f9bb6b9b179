//! The other end of a control socket ([`crate::lines`]): a line asked, a line answered.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Who does not answer within this time hangs.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer in bytes.
const LONGEST: u64 = 64 << 20;

/// A connection to a control socket.
#[derive(Debug)]
pub struct Asker(BufReader<UnixStream>);

impl Asker {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// When nobody listens there, or it is not ours to ask.
    pub fn connect(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends a line, given without its end, and waits for the answer; that has its end.
    ///
    /// # Errors
    /// When the other end is gone or does not answer.
    pub fn ask(&mut self, mut line: Vec<u8>) -> io::Result<Vec<u8>> {
        line.push(b'\n');
        self.0.get_mut().write_all(&line)?;
        let mut answer = Vec::new();
        (&mut self.0).take(LONGEST).read_until(b'\n', &mut answer)?;
        if answer.last() == Some(&b'\n') {
            Ok(answer)
        } else {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has ended"))
        }
    }
}
