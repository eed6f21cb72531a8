//! The lower limit for `make bench`. Reads request lines from a pipe and answers each with a small
//! fixed reply that has the request's id, without parsing, storing or counting anything.
//!
//! It uses the same runtime and the same pipes as the real server, so the difference between the
//! two is the work of adding an item durably.

use std::io;
use std::os::fd::AsFd;

use memchr::memmem;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe::{Receiver, Sender};

/// Maximum size of a pipe for an unprivileged process (`/proc/sys/fs/pipe-max-size`). Emacs sleeps
/// for 20 ms each time it finds a pipe full.
const PIPE_BYTES: usize = 1 << 20;

/// The server's answer to an add, after the id and without the content.
const ITEM: &str = "(:id \"ctx-1\" :type :code :metadata (:filename \"bench.lisp\") \
                    :timestamp 1790000000 :tokens 25 :bytes 100 :pinned nil :state :fresh)";

fn main() -> io::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(serve())
}

async fn serve() -> io::Result<()> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::pipe::fcntl_setpipe_size(&input, PIPE_BYTES)?;
    let mut input = BufReader::with_capacity(PIPE_BYTES, Receiver::from_owned_fd(input)?);
    let mut output = Sender::from_owned_fd(io::stdout().as_fd().try_clone_to_owned()?)?;
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).await? > 0 {
        output.write_all(reply(&line).as_bytes()).await?;
        line.clear();
    }
    Ok(())
}

fn reply(line: &[u8]) -> String {
    format!("(:jsonrpc \"2.0\" :id {} :result {ITEM})\n", id(line))
}

/// Returns the digits after the first `:id`, which clients write before the parameters.
fn id(line: &[u8]) -> String {
    let start = memmem::find(line, b":id ").map_or(line.len(), |at| at + 4);
    line[start..].iter().take_while(|b| b.is_ascii_digit()).map(|b| *b as char).collect()
}
