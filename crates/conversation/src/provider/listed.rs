//! What is known of a model in a list.

/// A model in a list, with what its server tells of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelListing {
    /// Name of the model.
    pub name: String,
    /// Maximum number of tokens in a request.
    pub limit: Option<u64>,
    /// Whether it calls tools.
    pub tools: Option<bool>,
    /// Whether it sees pictures.
    pub pictures: Option<bool>,
    /// Whether it takes PDFs.
    pub pdf: Option<bool>,
    /// Whether it can reason more or less.
    pub effort: Option<bool>,
}

impl ModelListing {
    /// Returns a model of which only the name is known.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}
