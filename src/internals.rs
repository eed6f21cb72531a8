//! Re-exports for the project's own tests, benchmarks and programs. They are not part of the
//! library's interface: anything here may change at any time.

#![allow(missing_docs, reason = "these are re-exports for the project itself")]

pub mod cli {
    pub use crate::cli::{main, serve_within};
}
pub mod context {
    pub mod change {
        pub use crate::context::change::ContextSettings;
    }
    pub mod item {
        pub use crate::context::item::{Item, ItemId, Kind, Metadata};
    }
    pub mod manager {
        pub use crate::context::manager::{Arrival, Manager};
    }
    pub mod render {
        pub use crate::context::render::{Format, render};
    }
}
pub mod curation {
    pub mod config {
        pub use crate::curation::config::{SettingValue, TurnConfig};
    }
    pub mod prune {
        pub use crate::curation::prune::prune;
    }
    pub mod section {
        pub use crate::curation::section::{CountedText, Sections};
    }
    pub mod similarity {
        pub use crate::curation::similarity::Similarity;
    }
    pub mod strategy {
        pub use crate::curation::strategy::*;
    }
    pub mod summary {
        pub use crate::curation::summary::{Extractive, SummarySource, SummaryText, summarize};
    }
    pub mod unit {
        pub use crate::curation::unit::{Folded, History, HistoryCache, Unit};
    }
    pub mod used {
        pub use crate::curation::used::handed_over;
    }
    pub mod window {
        pub use crate::curation::window::{WindowInput, build};
    }
}
pub mod engine {
    pub use crate::engine::{DEFAULT_TEMPLATE, Engine, Handle, SessionSettings};
}
pub mod provider {
    pub use crate::provider::{ErrorKind, Family, HttpProvider, ProviderError, Serving, Times};
    pub mod chat {
        pub use crate::provider::chat::{
            ChatMessage, ChatProvider, Effort, OnWait, OutputSchema, Request, Response, Stop,
            StreamEvent, ToolChoice, ToolDefinition, Usage,
        };
    }
    pub mod embed {
        pub use crate::provider::embed::{Embedder, HttpEmbedder};
    }
    pub mod secret {
        pub use crate::provider::secret::KeySource;
    }
}
pub mod recorded {
    pub use crate::recorded::*;
}
pub mod retrieval {
    pub mod scan {
        pub use crate::retrieval::scan::scores;
    }
    pub mod words {
        pub use crate::retrieval::words::stems;
    }
}
pub mod rpc {
    pub use crate::rpc::{
        Answerer, Approval, ClientTools, Editors, Later, Limits, Listener, Method, MethodCaller,
        Param, ReplSettings, Tools, Topic, UserInput, methods,
    };
}
pub mod server {
    pub use crate::server::Server;
    pub mod auth {
        pub use crate::server::auth::{Admission, SecretHash};
    }
    pub mod listen {
        pub use crate::server::listen::serve_tcp;
    }
}
pub mod session {
    pub mod message {
        pub use crate::session::message::{Message, Role, Signals, ToolCall};
    }
}
pub mod store {
    pub mod sqlite {
        pub use crate::store::sqlite::{SqliteStore, schema_number};
    }
}
pub mod template {
    pub use crate::template::{Fields, Template, TemplatePlace, render};
}
pub mod tokens {
    pub use crate::tokens::{Counter, Estimate, Measure, TokenizerName};
    pub mod model {
        pub use crate::tokens::model::Model;
    }
}
pub mod value {
    pub use crate::value::Value;
    pub mod json {
        pub use crate::value::json::{from_json, to_json};
    }
    pub mod sexp {
        pub use crate::value::sexp::*;
    }
}
pub mod wire {
    pub mod dialect {
        pub use crate::wire::dialect::{Dialect, Encoder};
    }
    pub mod frame {
        pub use crate::wire::frame::{Frame, HEADER_BYTES, MessageEnds, StreamDecoder};
    }
    pub mod message {
        pub use crate::wire::message::{Incoming, Outgoing, RequestId, WireError};
    }
}
