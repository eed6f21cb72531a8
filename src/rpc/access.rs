//! How a client reached the server, and what follows from that. Which sockets there are is for others
//! to know.

/// How a client reached the server. Over TCP it may be any program of the same user, a web browser
/// included, and who knows a secret is not the user for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Over stdio or a Unix socket of the user's own: it acts for the user.
    Local,
    /// Over TCP without the secret: a program of the same user on this machine.
    Tcp,
    /// Over TCP, from wherever; it showed the secret.
    TcpWithSecret,
}

impl Access {
    /// Whether the client came over stdio or a Unix socket. Only such a client can name a command to
    /// run, a variable of the environment or a script, or say what the user trusts.
    pub fn is_local(self) -> bool {
        self == Self::Local
    }

    /// Whether the client may change which servers of models are talked to.
    pub fn may_change_providers(self) -> bool {
        matches!(self, Self::Local | Self::TcpWithSecret)
    }
}
