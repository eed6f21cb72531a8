//! The server for agents that speak the Model Context Protocol: a bridge whose tools call methods
//! of the one running server. This module knows methods only by name, and must not know how the
//! server is reached.

mod agent;
mod answer;
mod argument;
mod brief;
mod brought;
pub(crate) mod http;
mod link;
mod marked;
mod open;
mod project;
mod prompts;
mod push;
mod resources;
mod tools;
mod watch;

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse, Implementation,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, SubscriptionFilter,
};
use rmcp::service::{
    NotificationContext, RequestContext, ServerInitializeError, SubscriptionContext,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) use self::link::{Dial, Dialing, ServerLink};
pub(crate) use self::open::{OpenConnection, Stream};
pub(crate) use self::project::AgentProjects;
pub(crate) use self::push::{Push, PushedSession, ROOM_OF_A_HOOK, import};

use self::agent::McpAgent;
use self::answer::{Trouble, refused, shown};
use self::brief::Brief;
use self::tools::context::GivenAnswers;
use self::tools::{McpTool, ToolCallContext};

/// Advice for the model, sent when the agent connects.
const INSTRUCTIONS: &str = "Contexture keeps what the user marked in Emacs for you. Call `context` \
    first, and again with `since` when you continue; `read` shows what the user's editor has, \
    unsaved text included.";

/// The bridge between one agent and the server.
pub(crate) struct Bridge {
    link: ServerLink,
    projects: AgentProjects,
    given: Arc<GivenAnswers>,
}

impl Bridge {
    /// Creates a bridge to the server that `dial` reaches.
    pub(crate) fn new(dial: impl Dial, projects: AgentProjects) -> Self {
        Self::sharing(dial, projects, Arc::default())
    }

    /// Creates a bridge that shares `given`, the record of its answers, with other bridges, since
    /// an agent may have a new bridge for each request.
    fn sharing(dial: impl Dial, projects: AgentProjects, given: Arc<GivenAnswers>) -> Self {
        Self { link: ServerLink::new(dial), projects, given }
    }

    /// Serves one agent until the agent disconnects.
    ///
    /// # Errors
    /// [`ServerInitializeError`] if the agent's first message does not begin a conversation.
    pub(crate) async fn serve_agent(
        self,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<(), ServerInitializeError> {
        let transport = Brief(AsyncRwTransport::new_server(input, output));
        match self.serve(transport).await {
            Ok(running) => {
                // An error means that the task was cancelled or panicked, so it has ended in any
                // case.
                let _ = running.waiting().await;
                Ok(())
            }
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn asked<'a>(&'a self, context: &'a RequestContext<RoleServer>) -> ToolCallContext<'a> {
        self.introduce(|| context.client_info());
        ToolCallContext { link: &self.link, projects: &self.projects, given: &self.given, context }
    }

    fn introduce(&self, told: impl FnOnce() -> Option<Implementation>) {
        self.link
            .introduce(|| McpAgent { project: self.projects.usual(), ..McpAgent::new(told()) });
    }
}

impl ServerHandler for Bridge {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_prompts();
        let named = Implementation::new("contexture", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities.build())
            .with_server_info(named)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // An agent that has the list is told of all later changes.
        self.link.watch_tools(false).await;
        let mut all: Vec<_> = McpTool::ALL.iter().map(McpTool::offered).collect();
        all.extend(brought::offered(&self.asked(&context)).await);
        Ok(ListToolsResult::with_all_items(all))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let asked = self.asked(&context);
        let arguments = request.arguments.unwrap_or_default();
        let result = if let Some(tool) = McpTool::named(&request.name) {
            let text = (tool.call)(&asked, arguments).await;
            text.map(|text| CallToolResult::success(vec![ContentBlock::text(text)]))
        } else {
            let called = brought::call(&asked, &request.name, arguments).await;
            if matches!(called, Err(Trouble::Refused(_))) {
                check_name(&asked, &request.name).await?;
            }
            called
        };
        let failed = |trouble: Trouble| {
            CallToolResult::error(vec![ContentBlock::text(shown(&trouble.reason()))])
        };
        Ok(result.unwrap_or_else(failed).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list(&self.asked(&context)).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&self.asked(&context), request.uri).await.map(Into::into)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(prompts::list())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&self.asked(&context), request).await.map(Into::into)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let unknown = Trouble::Wrong(format!("no method {:?}", request.method));
        Err(refused(ErrorCode::METHOD_NOT_FOUND, &unknown))
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.link.tool_changes().await;
        let telling = async {
            while changes.changed().await.is_ok() {
                // The agent may not have asked for this.
                let _ = context.sink().notify_tool_list_changed().await;
            }
        };
        tokio::select! {
            () = context.cancelled() => {}
            () = telling => {}
        }
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.introduce(|| context.peer.peer_info().map(|told| told.client_info.clone()));
        // First of all: an agent that has a list must not miss a change to it.
        let mut changes = self.link.tool_changes().await;
        // If the server cannot be reached, the first tool call reports it.
        let _ = self.link.call::<IgnoredAny>("ping", json!({})).await;
        // The task ends with the bridge, because it does not keep the bridge alive.
        tokio::spawn(async move {
            while changes.changed().await.is_ok()
                && context.peer.notify_tool_list_changed().await.is_ok()
            {}
        });
    }

    async fn on_roots_list_changed(&self, _: NotificationContext<RoleServer>) {
        self.projects.forget_roots().await;
    }
}

/// Fails, with a list of the tools that the agent has, unless a client offers the agent a tool with
/// this name.
async fn check_name(asked: &ToolCallContext<'_>, name: &str) -> Result<(), ErrorData> {
    let brought = brought::offered(asked).await;
    if brought.iter().any(|tool| tool.name == name) {
        return Ok(());
    }
    let known = McpTool::ALL.iter().map(|tool| Cow::Borrowed(tool.name));
    let known: Vec<_> = known.chain(brought.into_iter().map(|tool| tool.name)).collect();
    let message = format!("no tool {name:?}; the tools are {}", known.join(", "));
    Err(refused(ErrorCode::INVALID_PARAMS, &Trouble::Wrong(message)))
}
