//! Addresses and authors of the project, which `Cargo.toml` of the workspace has. The rest reads them there or is compared.

/// Who has made the project, and where it is.
pub(crate) struct Identity {
    /// Names with mail addresses, as in `A. Author <a@example.org>`, separated by colons.
    pub(crate) authors: &'static str,
    pub(crate) homepage: &'static str,
    pub(crate) repository: &'static str,
}

/// What `Cargo.toml` says.
pub(crate) const IDENTITY: Identity = Identity {
    authors: env!("CARGO_PKG_AUTHORS"),
    homepage: env!("CARGO_PKG_HOMEPAGE"),
    repository: env!("CARGO_PKG_REPOSITORY"),
};

impl Identity {
    /// Returns the authors' names without their mail addresses.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.authors.split(':').map(|author| author.split(" <").next().unwrap_or(author)).collect()
    }

    /// Returns the first author with a mail address: whom users ask.
    pub(crate) fn contact(&self) -> &'static str {
        self.authors.split(':').next().unwrap_or_default()
    }

    /// Returns why nothing can be published under these addresses.
    pub(crate) fn lacks(&self) -> Option<String> {
        // RFC 2606 reserves these names: they have no address.
        let reserved = |text: &str| {
            let host = text.split("://").last().unwrap_or_default().split('/').next().unwrap_or_default();
            let host = host.rsplit('@').next().unwrap_or_default().trim_end_matches('>');
            [".invalid", ".example", ".test", "localhost"].iter().any(|end| host.ends_with(end))
        };
        let fields =
            [("authors", self.contact()), ("homepage", self.homepage), ("repository", self.repository)];
        let lacking: Vec<String> = fields
            .into_iter()
            .filter(|(_, text)| text.is_empty() || reserved(text))
            .map(|(field, text)| format!("{field} ({text})"))
            .collect();
        (!lacking.is_empty()).then(|| format!("Cargo.toml has no real address yet: {}", lacking.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_no_addresses() {
        let real = Identity {
            authors: "A. Author <a@example.org>:B. Author",
            homepage: "https://example.org",
            repository: "https://example.org/ombx.git",
        };
        assert_eq!(real.lacks(), None);
        assert_eq!(
            (real.names(), real.contact()),
            (vec!["A. Author", "B. Author"], "A. Author <a@example.org>")
        );
        for repository in ["", "https://git.invalid/x", "https://git.test/x", "http://localhost/x"] {
            let why = Identity { repository, ..real }.lacks().unwrap();
            assert!(why.ends_with(&format!(": repository ({repository})")), "{why}");
        }
        assert!(Identity { authors: "A <a@localhost>", ..real }.lacks().unwrap().contains("authors (A <a@"));
    }
}
