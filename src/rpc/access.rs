//! How a client reached the server, and the rights that the client therefore has. This module knows
//! nothing of sockets.

/// The way in which a client reached the server. A client over TCP may be any program of the same
/// user, even a web browser. Knowing the secret does not prove that a client acts for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Over stdio or the user's own Unix socket: the client acts for the user.
    Local,
    /// Over TCP without the secret: a program of the same user on this machine.
    Tcp,
    /// Over TCP from anywhere, with the secret.
    TcpWithSecret,
}

impl Access {
    /// Returns whether the client came over stdio or a Unix socket. Only such a client may name a
    /// command, an environment variable or a script, or decide which projects the user trusts.
    pub fn is_local(self) -> bool {
        self == Self::Local
    }

    /// Returns whether the client may change the configured providers, and register or call tools.
    pub fn may_change_providers(self) -> bool {
        matches!(self, Self::Local | Self::TcpWithSecret)
    }
}
