//! Asks editors for their unsaved text.

use std::path::Path;

use crate::rpc::call::MethodCall;
use crate::rpc::editors::Heard;
use crate::wire::message::WireError;

/// Asks all editors but the caller for their changes and, if `path` is given, for the unsaved text
/// of that file.
pub(in crate::rpc) async fn ask(
    call: &MethodCall,
    path: Option<&Path>,
) -> Result<Heard, WireError> {
    Ok(call.tools.editors.ask(&call.tools.engine, Some(&call.client), path).await?)
}
