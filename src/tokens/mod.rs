//! How many tokens a text has, exactly or by estimate.
