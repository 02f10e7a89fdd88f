use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpListener,
    path::Path,
    sync::mpsc::{Receiver, channel},
    thread,
};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::json;

use super::{exchange::SCOPE, *};
use crate::key::{Key, KeySource};

/// A key made for this test, with which OpenSSL made `SIGNED_BY_OPENSSL`. The file has no PEM frame, so
/// that scanners do not report it as a leaked key.
const ACCOUNT_KEY: &str = concat!(
    "-----BEGIN ",
    "PRIVATE KEY-----\n",
    include_str!("testdata/account.pkcs8.base64"),
    "-----END ",
    "PRIVATE KEY-----\n"
);
const SIGNED_BY_OPENSSL: &str = include_str!("testdata/said.rs256");

/// A token server: answers by path, and records its requests.
struct Server {
    url: String,
    host: String,
    asked: Receiver<String>,
}

fn server(answers: &[(&str, u16, Value)]) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let answers: Vec<(String, u16, String)> = answers
        .iter()
        .map(|(path, status, answer)| ((*path).to_owned(), *status, answer.to_string()))
        .collect();
    let (tell, asked) = channel();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let (mut request, mut part) = (Vec::new(), [0; 4096]);
            loop {
                let read = connection.read(&mut part).unwrap();
                request.extend_from_slice(&part[..read]);
                let text = String::from_utf8_lossy(&request).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.lines().find_map(|line| {
                    let (name, value) = line.split_once(": ")?;
                    name.eq_ignore_ascii_case("content-length").then(|| value.parse().unwrap())
                });
                if read == 0 || body.len() >= length.unwrap_or(0) {
                    break;
                }
            }
            let request = String::from_utf8(request).unwrap();
            let path = request.split(' ').nth(1).unwrap();
            let path = path.split('?').next().unwrap();
            let found = answers.iter().find(|(it, ..)| it == path);
            let (status, answer) =
                found.map_or_else(|| (404, "{}".to_owned()), |it| (it.1, it.2.clone()));
            write!(
                connection,
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
                answer.len()
            )
            .unwrap();
            if tell.send(request).is_err() {
                break;
            }
        }
    });
    Server { url: format!("http://{host}"), host, asked }
}

/// The form's fields in a request's body.
fn form(request: &str) -> BTreeMap<String, String> {
    let (_, body) = request.split_once("\r\n\r\n").unwrap();
    url::form_urlencoded::parse(body.as_bytes()).into_owned().collect()
}

fn named(folder: &Path, credentials: &Value) -> ApplicationDefault {
    let path = folder.join("credentials.json");
    fs::write(&path, credentials.to_string()).unwrap();
    among(&[("GOOGLE_APPLICATION_CREDENTIALS", path.to_str().unwrap())])
}

fn among(variables: &[(&str, &str)]) -> ApplicationDefault {
    ApplicationDefault::among(|name| {
        variables.iter().find(|(it, _)| *it == name).map(|(_, value)| value.into())
    })
}

fn given(token: &str) -> Value {
    json!({"access_token": token, "expires_in": 3_599, "token_type": "Bearer"})
}

#[test]
fn a_service_account_signs_for_its_token() {
    let signed = credentials::signed(ACCOUNT_KEY, b"header.claims").unwrap();
    assert_eq!(STANDARD.encode(signed), SIGNED_BY_OPENSSL.trim());

    let server = server(&[("/token", 200, given("ya29.account"))]);
    let folder = tempfile::tempdir().unwrap();
    let token_uri = format!("{}/token", server.url);
    let account = json!({"type": "service_account", "client_email": "me@p.iam.gserviceaccount.com",
        "private_key_id": "k1", "private_key": ACCOUNT_KEY, "token_uri": token_uri});
    let token = named(folder.path(), &account).token().unwrap();
    assert_eq!((token.secret.expose(), token.lasts.as_secs()), ("ya29.account", 3_599));
    let form = form(&server.asked.recv().unwrap());
    assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-bearer");
    let parts: Vec<&str> = form["assertion"].split('.').collect();
    let part = |place: usize| URL_SAFE_NO_PAD.decode(parts[place]).unwrap();
    let json = |place| serde_json::from_slice::<Value>(&part(place)).unwrap();
    assert_eq!(json(0), json!({"alg": "RS256", "typ": "JWT", "kid": "k1"}));
    let claims = json(1);
    assert_eq!((&claims["iss"], &claims["aud"]), (&account["client_email"], &account["token_uri"]));
    assert_eq!(claims["scope"], SCOPE);
    assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 3_600);
    let said = format!("{}.{}", parts[0], parts[1]);
    assert_eq!(part(2), credentials::signed(ACCOUNT_KEY, said.as_bytes()).unwrap());
}

#[test]
fn gclouds_file_is_found_and_its_refresh_token_used() {
    let server = server(&[("/token", 200, given("ya29.user"))]);
    let folder = tempfile::tempdir().unwrap();
    let gcloud = folder.path().join(".config/gcloud");
    fs::create_dir_all(&gcloud).unwrap();
    let user = json!({"type": "authorized_user", "client_id": "id", "client_secret": "s3cret",
        "refresh_token": "1//refresh", "token_uri": format!("{}/token", server.url),
        "quota_project_id": "paying"});
    fs::write(gcloud.join("application_default_credentials.json"), user.to_string()).unwrap();
    let home = folder.path().to_str().unwrap();
    let found = among(&[("HOME", home)]);
    assert_eq!(found.token().unwrap().secret.expose(), "ya29.user");
    let form = form(&server.asked.recv().unwrap());
    let expected = [
        ("grant_type", "refresh_token"),
        ("client_id", "id"),
        ("client_secret", "s3cret"),
        ("refresh_token", "1//refresh"),
    ];
    assert_eq!(form, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    assert_eq!(found.project().as_deref(), Some("paying"));
    let other = among(&[("HOME", home), ("GOOGLE_CLOUD_QUOTA_PROJECT", "other")]);
    assert_eq!(other.project().as_deref(), Some("other"));
    let elsewhere = among(&[("HOME", "/nowhere"), ("CLOUDSDK_CONFIG", gcloud.to_str().unwrap())]);
    assert_eq!(elsewhere.token().unwrap().secret.expose(), "ya29.user");
    assert!(!format!("{found:?} {found}").contains("refresh\""));
}

#[test]
fn a_machine_has_an_account_of_its_own() {
    let path = "/computeMetadata/v1/instance/service-accounts/default/token";
    let server = server(&[(path, 200, given("ya29.machine"))]);
    let found = among(&[("HOME", "/nowhere"), ("GCE_METADATA_HOST", &server.host)]);
    assert_eq!(found.token().unwrap().secret.expose(), "ya29.machine");
    let asked = server.asked.recv().unwrap();
    assert!(asked.to_ascii_lowercase().contains("metadata-flavor: google"), "{asked}");
    assert!(asked.contains(&format!("scopes={SCOPE}")), "{asked}");
    assert_eq!(found.to_string(), format!("the metadata server {}", server.host));
}

#[test]
fn another_clouds_token_is_exchanged_and_an_account_impersonated() {
    let act = json!({"accessToken": "ya29.acting", "expireTime": "2999-01-01T00:00:00Z"});
    let server = server(&[
        ("/oidc", 200, json!({"value": "oidc-token"})),
        ("/sts", 200, given("federated")),
        ("/act", 200, act),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| format!("{}{path}", server.url);
    let account = json!({"type": "external_account", "audience": "//iam/pool",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": at("/sts"),
        "service_account_impersonation_url": at("/act"),
        "credential_source": {"url": at("/oidc"), "headers": {"authorization": "mine"},
            "format": {"type": "json", "subject_token_field_name": "value"}}});
    let token = named(folder.path(), &account).token().unwrap();
    assert_eq!(token.secret.expose(), "ya29.acting");
    assert!(token.lasts.as_secs() > 3_600, "as it says itself");
    let [oidc, sts, act] = [(); 3].map(|()| server.asked.recv().unwrap());
    assert!(oidc.contains("authorization: mine"), "{oidc}");
    let form = form(&sts);
    assert_eq!(
        (form["subject_token"].as_str(), form["audience"].as_str()),
        ("oidc-token", "//iam/pool")
    );
    assert!(
        act.contains("authorization: Bearer federated") && act.contains("\"lifetime\":\"3600s\""),
        "{act}"
    );

    // From a file, as Kubernetes mounts it, and without an account to impersonate.
    fs::write(folder.path().join("oidc"), "of-a-file\n").unwrap();
    let mut account = account;
    account["credential_source"] = json!({"file": folder.path().join("oidc")});
    account["service_account_impersonation_url"] = Value::Null;
    assert_eq!(named(folder.path(), &account).token().unwrap().secret.expose(), "federated");
    assert!(server.asked.recv().unwrap().contains("of-a-file"));
    account["credential_source"] = json!({"environment_id": "aws1"});
    let fault = named(folder.path(), &account).token().err().unwrap().to_string();
    assert!(fault.contains("neither file nor url"), "{fault}");
}

#[test]
fn faults_say_what_to_do_and_hold_no_secret() {
    let words =
        json!({"error": "invalid_grant", "error_description": "Token 1//refresh was revoked"});
    let server = server(&[("/token", 400, words), ("/empty", 200, json!({}))]);
    let folder = tempfile::tempdir().unwrap();
    let user = |path: &str| {
        json!({"type": "authorized_user", "client_id": "id", "client_secret": "s3cret",
            "refresh_token": "1//refresh", "token_uri": format!("{}{path}", server.url)})
    };
    let account = json!({"type": "service_account", "client_email": "e", "private_key": "s3cret"});
    let mut cases = vec![
        (user("/token"), "refuses: status 400 invalid_grant; these credentials are revoked"),
        (user("/empty"), "answers without a token"),
        (account, "its private_key is no RSA key in PEM"),
        (json!({"type": "authorized_user", "client_secret": "s3cret"}), "has no client_id"),
        (json!({"type": "authorized_user", "client_id": ["s3cret"]}), "a field of another type"),
        (json!({"type": "gdch"}), "its type is none of service_account, "),
        (json!("s3cret"), "its type is none of"),
    ];
    for (credentials, expected) in cases.drain(..) {
        let found = named(folder.path(), &credentials);
        let fault = found.token().err().unwrap().to_string();
        assert!(fault.contains("credentials.json") && fault.contains(expected), "{fault}");
        assert!(!fault.contains("s3cret") && !fault.contains("1//"), "{fault}");
    }
    let absent = among(&[("GOOGLE_APPLICATION_CREDENTIALS", "/no/such.json")]);
    let fault = absent.token().err().unwrap().to_string();
    assert!(fault.contains("(/no/such.json): it cannot be read"), "{fault}");
    let none = among(&[("HOME", "/nowhere"), ("GCE_METADATA_HOST", "127.0.0.1:1")]);
    let fault = none.token().err().unwrap().to_string();
    for part in [
        "there are no application-default credentials",
        "127.0.0.1 is not reached",
        "run `gcloud auth application-default login`",
    ] {
        assert!(fault.contains(part), "{fault}");
    }
}

#[tokio::test]
async fn a_key_asks_from_within_a_runtime_and_its_token_goes_as_a_bearers() {
    let server = server(&[("/token", 200, given("ya29.user"))]);
    let folder = tempfile::tempdir().unwrap();
    let user = json!({"type": "authorized_user", "client_id": "id", "client_secret": "s",
        "refresh_token": "r", "token_uri": format!("{}/token", server.url),
        "quota_project_id": "paying"});
    let source = KeySource::Google(named(folder.path(), &user));
    let key = Key::new(source.read().unwrap(), source);
    assert!(key.is_token());
    let mut headers = http::HeaderMap::new();
    crate::Vendor::VERTEX.add_key(&key, &mut headers);
    assert_eq!(headers["authorization"], "Bearer ya29.user");
    assert_eq!(headers["x-goog-user-project"], "paying");
    assert!(headers["authorization"].is_sensitive());
    assert_eq!(key.masked("a ya29.user b"), "a ****** b");
    assert_eq!(key.read_again().unwrap(), 0, "it was made just now");
    assert_eq!(server.asked.iter().take(1).count(), 1);
    assert!(server.asked.try_recv().is_err(), "one request for one token");
}

#[test]
fn tokens_go_to_googles_hosts_alone() {
    let takes = |vendor: crate::Vendor, url: &str| vendor.takes_google_credentials(url);
    let vertex = crate::Vendor::VERTEX;
    assert!(takes(vertex, "https://europe-west1-aiplatform.googleapis.com/v1/projects/p"));
    assert!(takes(crate::Vendor::VERTEX_ANTHROPIC, "https://aiplatform.googleapis.com/v1"));
    assert!(!takes(vertex, "http://aiplatform.googleapis.com/v1"));
    assert!(!takes(vertex, "https://aiplatform.googleapis.com.example/v1"));
    assert!(!takes(vertex, "http://127.0.0.1:8000/v1"));
    assert!(!takes(crate::Vendor::OPENAI, "https://x.googleapis.com/v1"));
}
