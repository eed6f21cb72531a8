//! Pictures and PDFs in a request.

use std::sync::Arc;

/// Media type of a PDF.
#[cfg(feature = "providers")]
pub(super) const PDF: &str = "application/pdf";

/// A picture or PDF of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShownAttachment {
    /// Name of the file without its folder.
    pub name: String,
    /// Media type.
    pub media: &'static str,
    /// Hash of the content.
    pub hash: String,
    /// The content in base 64; its size in a request that is only looked at.
    pub data: Arc<str>,
    /// The text of a PDF, for a server that refuses the PDF itself.
    pub text: Option<Arc<str>>,
}

impl ShownAttachment {
    /// Creates a picture without its content.
    pub fn new(name: String, media: &'static str, hash: String, bytes: u64) -> Self {
        Self { name, media, hash, data: format!("({bytes} bytes)").into(), text: None }
    }

    /// Returns the content as an address, as several servers want it.
    #[cfg(feature = "providers")]
    pub(super) fn url(&self) -> String {
        format!("data:{};base64,{}", self.media, self.data)
    }

    /// Returns whether it is a PDF.
    #[cfg(feature = "providers")]
    pub(super) fn is_pdf(&self) -> bool {
        self.media == PDF
    }
}
