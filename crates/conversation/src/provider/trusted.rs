//! Certificates of servers that are trusted: those that the system trusts, and those that the user
//! names.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme, WantsVerifier,
};
use rustls_platform_verifier::Verifier;

/// The variable that names a file of certificates to trust in place of the system's.
const FILE: &str = "SSL_CERT_FILE";
/// Maximum size of a file of certificates in bytes.
const LARGEST_FILE: u64 = 4 << 20;

/// Checks the certificate that a server shows. A server may show a certificate that the user names,
/// although it is made as that of an authority: this is what `openssl req -x509` makes.
#[derive(Debug)]
struct TrustedCertificates {
    usual: Verifier,
    named: Vec<CertificateDer<'static>>,
}

/// Reads a file of certificates in PEM.
pub(super) fn read(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = crate::whole_file::read(file, LARGEST_FILE).map_err(|error| error.to_string())?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match read {
        Err(error) => Err(error.to_string()),
        Ok(found) if found.is_empty() => Err("it has no certificates".to_owned()),
        Ok(found) => Ok(found),
    }
}

/// Returns how to connect if these certificates are trusted, too.
pub(super) fn config(named: Vec<CertificateDer<'static>>) -> Result<ClientConfig, Error> {
    let trusted = Arc::new(TrustedCertificates::new(named)?);
    Ok(builder()?.dangerous().with_custom_certificate_verifier(trusted).with_no_client_auth())
}

/// Returns how to connect to servers without certificates.
pub(super) fn none() -> Result<ClientConfig, Error> {
    Ok(builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

/// Begins a configuration with this library's cryptography. The process may have another one as its
/// default.
fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, Error> {
    let provider = Arc::new(default_provider());
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}

impl TrustedCertificates {
    fn new(mut named: Vec<CertificateDer<'static>>) -> Result<Self, Error> {
        let provider = Arc::new(default_provider());
        let usual = match named.is_empty() {
            true => Verifier::new(provider)?,
            false => Verifier::new_with_extra_roots(named.clone(), provider)?,
        };
        // What is wrong with this file, the usual check tells.
        let file = std::env::var_os(FILE).and_then(|file| read(Path::new(&file)).ok());
        named.extend(file.into_iter().flatten());
        Ok(Self { usual, named })
    }
}

impl ServerCertVerifier for TrustedCertificates {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let usual = self.usual.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match usual {
            // Its dates were checked before its kind.
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if self.named.iter().any(|named| named == end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            usual => usual,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Made by `openssl req -x509` for `localhost`, until 2126.
    const MADE: &[u8] = b"-----BEGIN CERTIFICATE-----\n\
        MIIBmjCCAUGgAwIBAgIUUxqNOUpWmG1s6XBJeKhqs4EvaO4wCgYIKoZIzj0EAwIw\n\
        FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyNzE2MDEwNFoYDzIxMjYxMTAz\n\
        MTYwMTA0WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO\n\
        PQMBBwNCAAQJ4eZ7toblokAXBbQjhJm/rwMSkZiUbInIM70/DOtHjUY3JWbP+w9i\n\
        uDiQcvzRQeYJe3HeAaRgAZsxRYI+Ut6Go28wbTAdBgNVHQ4EFgQUspjGp+J5XYxx\n\
        z/1ASmVbePeK0cgwHwYDVR0jBBgwFoAUspjGp+J5XYxxz/1ASmVbePeK0cgwDwYD\n\
        VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI\n\
        zj0EAwIDRwAwRAIgU6X7VSG+1GpgltNfBRGrDRoYvgWayWB+/PDcBwFZ5SQCIGul\n\
        j/vUZV4nPw9A2RFVcbaMR4SCzciu8vUsi0YPAAJK\n\
        -----END CERTIFICATE-----";

    /// Returns why a certificate is refused, at this time in seconds.
    #[track_caller]
    fn refused(
        named: &[&CertificateDer<'static>],
        shown: &CertificateDer<'_>,
        host: &str,
        at: u64,
    ) -> Option<Error> {
        let trusted =
            TrustedCertificates::new(named.iter().map(|it| (*it).clone()).collect()).unwrap();
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(at));
        trusted.verify_server_cert(shown, &[], &name, &[], now).err()
    }

    #[test]
    fn a_server_may_show_the_certificate_that_the_user_names() {
        const TODAY: u64 = 1_800_000_000;
        let made = CertificateDer::from_pem_slice(MADE).unwrap();
        assert_eq!(refused(&[&made], &made, "localhost", TODAY), None);
        assert_eq!(refused(&[&made], &made, "127.0.0.1", TODAY), None);
        assert!(refused(&[&made], &made, "example.com", TODAY).is_some(), "another name");
        assert!(refused(&[&made], &made, "localhost", 1).is_some(), "too early");
        assert!(refused(&[], &made, "localhost", TODAY).is_some(), "nobody named it");
    }

    #[test]
    fn a_file_without_certificates_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca");
        assert!(read(&file).is_err());
        std::fs::write(&file, "nothing").unwrap();
        assert_eq!(read(&file).unwrap_err(), "it has no certificates");
        std::fs::write(&file, MADE).unwrap();
        assert_eq!(read(&file).unwrap().len(), 1);
    }
}
