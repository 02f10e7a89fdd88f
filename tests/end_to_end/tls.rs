//! A Temporal server that requires a client certificate or an API key.

use std::{io::ErrorKind, path::PathBuf, sync::Arc};

use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncWrite, copy_bidirectional},
    net::{TcpListener, TcpStream},
    process::Command,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        server::WebPkiClientVerifier,
    },
};

use crate::fleet::{Fleet, MODEL, fleet};

/// A file that `certificates/make.sh` made for these tests alone.
fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/certificates").join(name)
}

/// A server's TLS with the tests' certificate; `strict` requires client certificates.
fn acceptor(strict: bool) -> TlsAcceptor {
    let certificate = |name: &str| CertificateDer::from_pem_file(file(name)).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let clients = if strict {
        let mut roots = RootCertStore::empty();
        roots.add(certificate("authority.pem")).unwrap();
        WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider))
            .build()
            .unwrap()
    } else {
        WebPkiClientVerifier::no_client_auth()
    };
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![certificate("server.pem")], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// A TLS proxy before the dev server that accepts only clients with a certificate of the tests'
/// authority. Returns its port.
async fn strict_door(fleet: &Fleet) -> u16 {
    let acceptor = acceptor(true);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let behind = fleet.temporal.address().trim_start_matches("http://").to_owned();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, behind) = (acceptor.clone(), behind.clone());
            tokio::spawn(async move {
                let mut outside = acceptor.accept(stream).await?;
                let mut inside = TcpStream::connect(behind).await?;
                copy_bidirectional(&mut outside, &mut inside).await.or_else(|error| {
                    if error.kind() == ErrorKind::UnexpectedEof { Ok((0, 0)) } else { Err(error) }
                })
            });
        }
    });
    port
}

/// The `authorization` header of the first request on a connection; the request is refused.
async fn authorization(stream: impl AsyncRead + AsyncWrite + Unpin) -> Option<String> {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    let (request, mut answer) = connection.accept().await.unwrap().unwrap();
    let unauthenticated = http::Response::builder()
        .header("content-type", "application/grpc")
        .header("grpc-status", "16")
        .body(())
        .unwrap();
    answer.send_response(unauthenticated, true).unwrap();
    // Serves until the refusal is sent and the client is gone.
    while let Some(Ok(_)) = connection.accept().await {}
    let given = request.headers().get("authorization")?;
    Some(given.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn an_api_key_goes_over_tls_alone() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("tidegate.toml");
    std::fs::write(&config, "").unwrap();
    let authority = file("authority.pem").display().to_string();
    for (scheme, sent) in [("https", Some("Bearer the-key".to_owned())), ("http", None)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("{scheme}://localhost:{}", listener.local_addr().unwrap().port());
        let heard = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            if scheme == "https" {
                authorization(acceptor(false).accept(stream).await.unwrap()).await
            } else {
                authorization(stream).await
            }
        });
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(["status", "--config"]).arg(&config);
        command.env("TIDEGATE_TEMPORAL__ADDRESS", &address);
        command.env("TEMPORAL_API_KEY", "the-key");
        command.env("TEMPORAL_TLS_SERVER_CA_CERT_PATH", &authority);
        let output = command.output().await.unwrap();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{scheme}: {words}");
        assert!(!words.contains("the-key"), "{scheme}: {words}");
        assert_eq!(heard.await.unwrap(), sent, "{scheme}: {words}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_shows_its_certificate_to_temporal() {
    let settings = format!("[models.\"{MODEL}\"]\nrpm = 1_000\n");
    let Some(mut fleet) = fleet("", &settings).await else { return };
    fleet.documents(3, 60);
    let address = format!("localhost:{}", strict_door(&fleet).await);
    let [authority, client, key] =
        ["authority.pem", "client.pem", "client.key"].map(|name| file(name).display().to_string());
    let trusting = [
        ("TIDEGATE_TEMPORAL__ADDRESS", address.as_str()),
        ("TEMPORAL_TLS_SERVER_CA_CERT_PATH", authority.as_str()),
    ];
    let with_certificate = [
        trusting[0],
        trusting[1],
        ("TEMPORAL_TLS_CLIENT_CERT_PATH", client.as_str()),
        ("TEMPORAL_TLS_CLIENT_KEY_PATH", key.as_str()),
        // Container platforms pass absent values as empty ones.
        ("TEMPORAL_ADDRESS", ""),
    ];
    let status = async |environment: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(["status", "--config"]).arg(fleet.path("tidegate.toml"));
        command.envs(environment.iter().copied()).output().await.unwrap()
    };
    let refused = status(&trusting).await;
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "without a certificate: {words}");
    assert!(words.contains(&address), "{words}");
    let taken = status(&with_certificate).await;
    assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));

    fleet.worker_with(&with_certificate);
    fleet.start("behind", &fleet.batch("out")).await;
    let result = fleet.result("behind").await.unwrap();
    assert_eq!(result["succeeded"], json!(3), "{result}");
    fleet.stop().await;
}
