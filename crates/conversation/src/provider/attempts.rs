//! Attempts at a request: when to try again, and for how long.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::chat::OnWait;
use super::error::ProviderError;
use super::refusal::{RetryPolicy, ServerRefusal};

/// Maximum number of attempts if the failure may pass. A server that is loading or overloaded, or
/// that says when to try again, is tried again until the time is up.
const ATTEMPTS: u32 = 3;
/// Wait before the second attempt, and the shortest wait that a server can ask for. Each later wait
/// is twice as long, up to [`LONGEST_WAIT`], unless the server says otherwise.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Longest wait between attempts if the server does not say when it is ready.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Maximum time for attempts that the server refuses.
const RETRY_TIME: Duration = Duration::from_secs(180);
/// What is said of an answer that did not arrive in time.
pub(super) const LATE: &str = "no answer came in time";

/// The failure of one attempt.
pub(super) struct FailedAttempt {
    pub(super) error: ProviderError,
    pub(super) again: RetryPolicy,
    /// True if the server closed a connection without an answer, as happens with idle connections.
    /// The request is then sent once more on a new connection.
    pub(super) is_closed: bool,
    /// Status of the response, if there was one.
    pub(super) status: Option<u16>,
    /// The refusal, if the server answered.
    pub(super) refusal: Option<Box<ServerRefusal>>,
}

impl FailedAttempt {
    /// Returns the failure with another policy for trying again.
    pub(super) fn with(self, again: RetryPolicy) -> Self {
        Self { again, ..self }
    }
}

impl From<ProviderError> for FailedAttempt {
    fn from(error: ProviderError) -> Self {
        Self { error, again: RetryPolicy::Never, is_closed: false, status: None, refusal: None }
    }
}

/// The attempts at one request, until one succeeds, the failure is final, the attempts are used up,
/// or there is no time for another one.
pub(super) struct Attempts {
    wait: Duration,
    made: u32,
    may_reopen: bool,
    last: Instant,
    /// The failure of the last attempt, for the message of the next.
    before: String,
    /// Maximum number of attempts, if the user set one.
    most: Option<u32>,
}

impl Attempts {
    pub(super) fn new(until: Instant, retries: Option<u32>) -> Self {
        let last = until.min(Instant::now() + RETRY_TIME);
        let (before, most) = (String::new(), retries.map(|retries| retries.saturating_add(1)));
        Self { wait: FIRST_WAIT, made: 0, may_reopen: true, last, before, most }
    }

    /// Waits until the next attempt may be made.
    ///
    /// # Errors
    /// The failure, if there should be no further attempt.
    pub(super) async fn wait(
        &mut self,
        failed: FailedAttempt,
        on_wait: &OnWait,
    ) -> Result<(), ProviderError> {
        let FailedAttempt { error, again, is_closed, .. } = failed;
        if error.what == LATE {
            return Err(ProviderError { what: format!("{}{LATE}", self.before), ..error });
        }
        self.before = format!("{}; when asked again, ", error.what);
        if is_closed && std::mem::take(&mut self.may_reopen) {
            return Ok(());
        }
        self.made += 1;
        let goes_on = match (again, self.most) {
            (RetryPolicy::Never, _) => false,
            (_, Some(most)) => self.made < most,
            (RetryPolicy::Soon, None) => self.made < ATTEMPTS,
            (RetryPolicy::UntilReady, None) => true,
        };
        let pause = error.retry_after.map_or(self.wait, |pause| pause.max(FIRST_WAIT));
        // The sum of now and the server's pause could overflow.
        let left = self.last.saturating_duration_since(Instant::now());
        if !goes_on || pause >= left {
            return Err(error);
        }
        // Leaves out the error's advice, which may be to try again.
        let ProviderError { provider, what, .. } = &error;
        let pause_s = pause.as_secs_f64();
        on_wait.tell(&format!("{provider}: {what}; trying again in {pause_s:.1} s"));
        sleep(pause).await;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        Ok(())
    }
}
